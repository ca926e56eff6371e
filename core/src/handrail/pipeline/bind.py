"""Binding: the first stage of a call, which finds its tool and validates its arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.api.call import Invocation, ToolCall
from handrail.api.events import Proposed
from handrail.api.result import TailCall
from handrail.api.verdict import Decision, Opinion, Reason
from handrail.errors import InvalidArguments, ToolUnavailable
from handrail.json_types import MAPPING_TYPES
from handrail.pipeline.call_task import CallTask

if TYPE_CHECKING:
    from handrail.api.tool import Tool
    from handrail.pipeline.call_session import CallSession

MAX_DEPTH = 8
# How often one call may delegate to another.
MAX_TAIL_CALLS = 8


async def wait_for_turn(session: CallSession, running: CallTask, parent: Invocation | None) -> None:
    """Wait until the call may be judged, and count it. Raises `LimitReached` or `LoopDetected`, or why it was stopped."""
    if parent is None:
        if len(session.running) > 1:
            await session.scheduler.turn(running)
        if session.limits.watching:
            # By whatever name it is called, it is the same call.
            call = running.call = _with_tool_name(running.call, session.listing.known(running.call.name))
            session.limits.admit(call)
    if running.why is not None:
        raise running.why


async def bind_call(session: CallSession, running: CallTask, parent: Invocation | None) -> Invocation:
    """Find the call's tool and bind the call to it. Raises `UnknownTool`, `ToolUnavailable` or `InvalidArguments`."""
    call = running.call
    # Most calls name a tool that is known to be callable.
    plain = parent is None and not call.by_hand and call.name.__class__ is str
    tool = session.listing.ready.get(call.name) if plain else None
    if tool is None:
        tool = await find_tool(session, call, nested=parent is not None)
    call = running.call = _with_tool_name(call, tool)
    invocation = running.invocation = validate_call(session, call, tool, parent)
    return invocation


async def bind_tail_call(session: CallSession, running: CallTask, tail: TailCall, before: Sequence[str]) -> Invocation:
    """Bind and return the call to which a handler delegates, in place of its own.

    Raises `ToolUnavailable` after too many delegations.
    """
    if len(before) >= MAX_TAIL_CALLS:
        raise ToolUnavailable(
            f"{running.call.name} was handed on {MAX_TAIL_CALLS} times; {tail.name!r} is not run",
            details={"tail_calls": list(before)},
        )
    assert running.invocation is not None
    call = ToolCall(tail.name, tail.args, running.call.call_id)
    tool = await find_tool(session, call, nested=True)
    running.invocation = validate_call(session, call, tool, running.invocation.parent)
    return running.invocation


async def find_tool(session: CallSession, call: ToolCall, *, nested: bool) -> Tool:
    """Return the tool that a call names, if it may be called. `nested`: a handler makes the call."""
    if session.closed:
        raise ToolUnavailable("the session is over; nothing is run in it any more")
    if not isinstance(call.name, str):  # pyright: ignore[reportUnnecessaryIsInstance] # hosts pass what a model wrote
        raise InvalidArguments(f"a tool's name is a text, not {type(call.name).__name__}")
    return await session.listing.find(call.name, nested=nested, by_hand=call.by_hand)


def validate_call(session: CallSession, call: ToolCall, tool: Tool, parent: Invocation | None) -> Invocation:
    """Return the call with its tool and validated parameters: the only place where arguments are validated."""
    if not isinstance(call.args, MAPPING_TYPES):
        raise InvalidArguments(f"{call.name}: arguments are an object, not {type(call.args).__name__}")
    if parent is not None and parent.depth + 1 >= MAX_DEPTH:
        raise ToolUnavailable(f"calls are nested {MAX_DEPTH} deep; {call.name!r} is not run")
    invocation = Invocation(tool, call.args, tool.validate(call.args), call.call_id, parent)
    if call.ask is not None:
        invocation = _require_confirmation(invocation, call.ask)
    if session.bus.listening:
        session.bus.publish(
            Proposed(call.call_id, tool.name, invocation.describe(), parent.call_id if parent else None)
        )
    return invocation


def _require_confirmation(invocation: Invocation, why: str) -> Invocation:
    """Require the user's approval of the call regardless of policy, as requested by its caller."""
    from handrail.api.observer import ObserverOpinions

    asks = Opinion("caller:asks", floor=Decision.CONFIRM, reasons=(Reason("asks", why),), trusted=False)
    return invocation.observed(ObserverOpinions((asks,)))


def _with_tool_name(call: ToolCall, tool: Tool | None) -> ToolCall:
    """Return the call with the tool's canonical name if it was called by an alias."""
    return call if tool is None or tool.name == call.name else replace(call, name=tool.name)
