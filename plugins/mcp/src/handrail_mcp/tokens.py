"""Bearer tokens: each opens one session, and nothing else does."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from handrail import ConfigError

SHORTEST = 32


@dataclass(frozen=True, slots=True)
class Token:
    """One token. `name` is what it is called where it must not be shown."""

    name: str
    value: str = field(repr=False)

    @property
    def _digest(self) -> bytes:
        return hashlib.sha256(self.value.encode()).digest()

    def is_shown_by(self, authorization: str) -> bool:
        """Whether a request's Authorization header carries it; takes as long whether it does or not."""
        scheme, _, given = authorization.partition(" ")
        digest = hashlib.sha256(given.strip().encode("utf-8", "surrogatepass")).digest()
        return hmac.compare_digest(digest, self._digest) and scheme.lower() == "bearer"


def made() -> Token:
    """A token that nobody has seen."""
    return Token("token", secrets.token_urlsafe(SHORTEST))


def named(names: Sequence[str], environment: Mapping[str, str]) -> list[Token]:
    """The tokens in these variables. Raises `ConfigError` for one that is not there, too short, or there twice.

    Messages show no value, and no name either: somebody may have written the token in its place.
    """
    tokens = [_read(number, name, environment) for number, name in enumerate(names, 1)]
    if len({token.value for token in tokens}) < len(tokens):
        raise ConfigError("serve.tokens: two variables hold the same token", hint="each session needs one of its own")
    return tokens


def _read(number: int, name: str, environment: Mapping[str, str]) -> Token:
    value = environment.get(name, "")
    if not value:
        raise ConfigError(
            f"serve.tokens: there is no environment variable of the name that stands in place {number}",
            hint="it lists names of variables; the tokens are their values",
        )
    if len(value) < SHORTEST or not (value.isascii() and value.isprintable()) or " " in value:
        raise ConfigError(
            f"serve.tokens: the variable in place {number} holds no token of at least {SHORTEST} letters and digits",
            hint='make one: python3 -c "import secrets; print(secrets.token_urlsafe(32))"',
        )
    return Token(name, value)
