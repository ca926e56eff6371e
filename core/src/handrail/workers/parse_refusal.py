"""What a parser says when it will not or cannot read a file. Light: the worker imports it."""

from __future__ import annotations

from typing import Literal

RefusalKind = Literal["arguments", "not_found", "unreadable", "limit", "protected", "loss"]


class ParseRefused(Exception):
    """A file or a request that is turned down, in words for the model; `hint` says what to do instead.

    `kind`: arguments and not_found speak of the request, unreadable of a damaged or foreign file, limit of one that would take too much,
    protected of one that needs a password, loss of a change that would take something else away.
    """

    def __init__(self, kind: RefusalKind, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.kind: RefusalKind = kind
        self.hint = hint
