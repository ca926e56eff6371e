"""Base of the context that a handler is given beside its parameters."""

from __future__ import annotations

from typing import Protocol


class CallContext(Protocol):
    """The base of what a handler may ask for beside its parameters.

    A parameter annotated with a class derived from it is given the call's context, and is not in the schema. Plugins use `handrail.ToolContext`,
    which has all there is. A handler of core that lies below that derives a protocol with the members that it uses.
    """

    __slots__ = ()

    @property
    def call_id(self) -> str: ...
