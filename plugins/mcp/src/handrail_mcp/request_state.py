"""Sealed state that a client carries between a question and its answer, and can neither forge nor change.

Source: "Multi Round-Trip Requests" of MCP 2026-07-28, which tells servers to treat `requestState` as client input.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
import time
from dataclasses import asdict, dataclass
from typing import Self

from handrail import Denied
from handrail.errors import NoConfirmer

# A state of ours is far shorter.
MAX_STATE = 4_096


@dataclass(frozen=True, slots=True)
class StateClaims:
    """One question: of which request (`call_hash`), about which call (`asked_hash`: a part of it, or edited), until when by this process's clock.

    `nonce` names it where it is kept, once.
    """

    nonce: str
    call_hash: str
    asked_hash: str
    expires: float

    @classmethod
    def new(cls, call_hash: str, asked_hash: str, *, seconds: float) -> Self:
        """Create the claims of a question that stays open for `seconds`."""
        return cls(secrets.token_urlsafe(32), call_hash, asked_hash, time.monotonic() + seconds)


class StateSealer:
    """Seals claims with a key that is drawn for one session and never leaves it."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(32)

    def sealed(self, claims: StateClaims) -> str:
        """Return the claims as a client carries them: signed but not encrypted, since they contain nothing secret."""
        said = base64.urlsafe_b64encode(json.dumps(asdict(claims)).encode()).decode()
        return f"{said}.{self._mark(said)}"

    def opened(self, state: str) -> StateClaims:
        """Return the claims of a state sealed here; `Denied` for any other, `NoConfirmer` for an expired one."""
        said, _, mark = state.partition(".")
        if len(state) > MAX_STATE or not hmac.compare_digest(
            mark.encode("utf-8", "replace"), self._mark(said).encode()
        ):
            raise Denied(
                "this answer's state is not as it was given: it was changed, made up, or is another session's",
                hint="call the tool again, without requestState, to be asked anew",
            )
        claims = StateClaims(**json.loads(base64.urlsafe_b64decode(said)))
        if time.monotonic() > claims.expires:
            raise NoConfirmer("nobody answered in time, and the question is no longer open")
        return claims

    def _mark(self, said: str) -> str:
        return hmac.new(self._key, said.encode("utf-8", "replace"), hashlib.sha256).hexdigest()
