"""What plugins wrote outside of Handrail's own folders, where it would stay when Handrail goes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Trace:
    """Something of Handrail in another program's file: `what` tells it to a person, `removal` is the command that takes it out."""

    what: str
    removal: str


# Looks for them, each time it is called.
TraceProvider = Callable[[], Iterable[Trace]]
