"""The bearer tokens that a configuration names: each opens one session, and nothing else does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from handrail import ConfigError
from handrail.net.bearer_auth import TOKEN_BYTES, BearerToken


def read_tokens(names: Sequence[str], environment: Mapping[str, str]) -> list[BearerToken]:
    """Read the tokens from these variables; `ConfigError` if one is missing, too short, or present twice.

    Messages contain neither values nor names: a token may have been written where a name belongs.
    """
    tokens = [_read_token(number, name, environment) for number, name in enumerate(names, 1)]
    if len({token.value for token in tokens}) < len(tokens):
        raise ConfigError("serve.tokens: two variables hold the same token", hint="each session needs one of its own")
    return tokens


def _read_token(number: int, name: str, environment: Mapping[str, str]) -> BearerToken:
    value = environment.get(name, "")
    if not value:
        raise ConfigError(
            f"serve.tokens: there is no environment variable of the name that stands in place {number}",
            hint="it lists names of variables; the tokens are their values",
        )
    if len(value) < TOKEN_BYTES or not (value.isascii() and value.isprintable()) or " " in value:
        raise ConfigError(
            f"serve.tokens: the variable in place {number} holds no token of at least {TOKEN_BYTES} letters and digits",
            hint='make one: python3 -c "import secrets; print(secrets.token_urlsafe(32))"',
        )
    return BearerToken(name, value)
