"""Traces that plugins wrote outside of Handrail's own directories and that would remain after it is uninstalled."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

__all__ = ["TraceProvider"]


@dataclass(frozen=True, slots=True)
class Trace:
    """Trace of Handrail in another program's file.

    `what` describes it for the user, `removal` is the command that removes it.
    """

    what: str
    removal: str


# Looks for them, each time it is called.
TraceProvider = Callable[[], Iterable[Trace]]
