"""Handrail's tools for agents of Google ADK: `Agent(…, tools=[HandrailToolset()])`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handrail_adk.toolset import HandrailToolset

__all__ = ["HandrailToolset"]


def __getattr__(name: str) -> Any:
    # ADK takes long to import, and a start of the program that runs no agent does not need it.
    if name != "HandrailToolset":
        raise AttributeError(f"module 'handrail_adk' has no attribute {name!r}")
    from handrail_adk.toolset import HandrailToolset

    return HandrailToolset
