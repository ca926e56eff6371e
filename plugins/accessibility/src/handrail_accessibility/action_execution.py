"""Carrying out one action on one element, and finding out whether it happened."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import anyio

from handrail import Denied, Downstream, Element, InvalidArguments, ToolContext
from handrail.desktop.load_timeouts import scale_timeout
from handrail_accessibility.change_detection import describe_element
from handrail_accessibility.element_finder import build_hidden_error
from handrail_accessibility.tree.protocol import AccessibilityController

ClickPolicy = Literal["if_needed", "if_refused", "never"]
ActionEffect = Literal["confirmed", "none", "unverified"]
# How long a program may take to show the state it was asked for, and how often it is looked at before that is given up: one that is starved
# of the processor takes as long for each answer as for the state. No longer than the last altogether.
STATE_WAIT_S = 0.7
MIN_STATE_CHECKS = 5
MAX_STATE_WAIT_S = 3.0
STATE_POLL_S = 0.02

# D-Bus has no room for them: NUL and halves of characters.
UNSUPPORTED_CHARS = re.compile("[\0\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """Outcome of an action.

    `route`: "action" asked the program itself, "pointer" clicked, "none" did nothing.
    """

    effect: ActionEffect
    route: str
    evidence: tuple[str, ...] = ()
    note: str = ""
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """One action to carry out."""

    context: ToolContext
    control: AccessibilityController
    element: Element
    value: str | None

    def needed_value(self, what: str) -> str:
        """Return the value; if it is missing, raise an error that says what it should be.

        Also raises for characters that no program accepts.
        """
        if self.value is None:
            raise InvalidArguments(f"this action needs a value: {what}")
        if UNSUPPORTED_CHARS.search(self.value) is not None:
            raise InvalidArguments("the value holds a NUL or half a character, which no program takes")
        return self.value

    async def pointer(self) -> None:
        """Click its visible centre, as a nested call that is judged and recorded like any other."""
        await self.gui(action="click", element_id=self.element.id)

    async def gui(self, **args: str | bool) -> None:
        """Call `execute_gui` as a nested call; its failure is this call's failure."""
        done = await self.context.call("execute_gui", args)
        if not done.ok:
            message = f"{args['action']} on {describe_element(self.element)} failed: {done['error']['message']}"
            raise (Denied if done.status == "denied" else Downstream)(message, details=dict(done["error"]["details"]))

    async def until(self, holds: Callable[[Element], bool]) -> bool:
        """Return True if the element soon meets the condition; an element that is gone does not."""

        async def is_so() -> bool:
            current = await self.control.now(self.element)
            return current is not None and holds(current)

        return await wait_until_true(is_so)


async def reach_state(
    act: ActionRequest,
    ask: Callable[[], Awaitable[bool]],
    holds: Callable[[Element], bool],
    *,
    click: ClickPolicy = "if_needed",
) -> str | None:
    """Ask the program, then click if it refused or that did not do it; how the state was reached, None if it was not."""
    act.context.checkpoint()
    asked = await ask()
    if asked and await act.until(holds):
        return "action"
    current = await act.control.now(act.element)
    may_click = click == "if_needed" or (click == "if_refused" and not asked)
    if not may_click or current is None or current.rect is None or holds(current):
        return None
    act.context.checkpoint()
    await act.pointer()
    return "pointer" if await act.until(holds) else None


async def wait_until_true(holds: Callable[[], Awaitable[bool]]) -> bool:
    """Return True if the condition soon becomes true; waits longer if each check takes long."""
    began, looks = anyio.current_time(), 0
    with anyio.move_on_after(scale_timeout(MAX_STATE_WAIT_S)):
        while not await holds():
            looks += 1
            if looks >= MIN_STATE_CHECKS and anyio.current_time() - began >= scale_timeout(STATE_WAIT_S):
                return False
            await anyio.sleep(STATE_POLL_S)
        return True
    return False


def ensure_usable(element: Element) -> None:
    """Raise for an element that a user could not use: disabled, or hidden and not part of a menu."""
    if "disabled" in element.states:
        raise Downstream(
            f"{describe_element(element)} is disabled; nothing was done",
            hint="find out what it waits for: a selection, a field to fill, a box to tick",
            details={"states": sorted(element.states)},
        )
    if "offscreen" in element.states and "menu" not in element.role:
        raise build_hidden_error(element)


def unchanged_outcome(act: ActionRequest, state: str) -> ActionOutcome:
    """Build the outcome of an action that had nothing to do."""
    return ActionOutcome("none", "none", note=f"{describe_element(act.element)} is already {state}")


def no_effect_error(act: ActionRequest, state: str) -> Downstream:
    """Build the error for an action that was carried out and changed nothing."""
    return Downstream(
        f"{describe_element(act.element)} {state}",
        hint="look at the window (observe_screen or get_ui_context), then try execute_gui",
        details={"effect": "none"},
    )
