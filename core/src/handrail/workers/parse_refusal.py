"""Errors for files that a parser cannot or will not read. Keep this module light: the worker imports it."""

from __future__ import annotations

from typing import Literal

__all__ = ["ParseRefused", "RefusalKind"]

RefusalKind = Literal["arguments", "not_found", "unreadable", "limit", "protected", "loss"]


class ParseRefused(Exception):
    """File or request that is refused, with a message for the model; `hint` says what to do instead.

    `kind`: arguments and not_found concern the request; unreadable means a damaged or unsupported file, limit a file
    that would take too much, protected a file that needs a password, loss a change that would remove something else.
    """

    def __init__(self, kind: RefusalKind, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.kind: RefusalKind = kind
        self.hint = hint
