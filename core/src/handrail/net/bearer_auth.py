"""Bearer tokens of servers on this machine: a request is accepted only if it presents a valid token."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

__all__ = ["TOKEN_BYTES", "BearerToken", "create_token"]

TOKEN_BYTES = 32


@dataclass(frozen=True, slots=True)
class BearerToken:
    """One token. `name` is what it is called where it must not be shown."""

    name: str
    value: str = field(repr=False)

    @property
    def _digest(self) -> bytes:
        return hashlib.sha256(self.value.encode()).digest()

    def is_shown_by(self, authorization: str) -> bool:
        """Return True if a request's Authorization header contains this token; the comparison takes constant time."""
        scheme, _, given = authorization.partition(" ")
        digest = hashlib.sha256(given.strip().encode("utf-8", "surrogatepass")).digest()
        return hmac.compare_digest(digest, self._digest) and scheme.lower() == "bearer"


def create_token() -> BearerToken:
    """Create a new random token."""
    return BearerToken("token", secrets.token_urlsafe(TOKEN_BYTES))
