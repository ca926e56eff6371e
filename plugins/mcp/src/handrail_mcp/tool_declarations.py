"""Declarations of tools for MCP clients."""

from __future__ import annotations

from mcp import types

from handrail import Effect, Input, Read, Run, Send, Tool, Write, declare

# Changes that set a state: what was there can be set again, and setting it twice is setting it once.
STATES = frozenset({"windows", "clipboard", "session", "todos"})


def declare_tool(tool: Tool) -> types.Tool:
    """Return the tool's declaration, with hints derived from its effects."""
    return types.Tool(**declare(tool, dialect="mcp"), annotations=build_annotations(tool))


def build_annotations(tool: Tool) -> types.ToolAnnotations:
    """Return what a client may assume about the tool; where the effects do not decide it, the more dangerous value."""
    acting = [effect for effect in tool.effects if not isinstance(effect, Read)]
    return types.ToolAnnotations(
        read_only_hint=not acting,
        destructive_hint=not all(_is_state_write(effect) for effect in acting),
        idempotent_hint=all(_is_state_write(effect) for effect in acting),
        open_world_hint=any(isinstance(effect, Run | Send | Input) for effect in acting),
    )


def _is_state_write(effect: Effect) -> bool:
    return isinstance(effect, Write) and effect.what in STATES
