"""Every action of `execute_accessible` by its word."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from handrail_accessibility.action_execution import (
    ActionOutcome,
    ActionRequest,
    ClickPolicy,
    ensure_usable,
    no_effect_error,
    reach_state,
    unchanged_outcome,
)
from handrail_accessibility.change_detection import describe_changes, describe_element, wait_until_settled
from handrail_accessibility.state_actions import collapse_element, expand_element, select_element, toggle_element
from handrail_accessibility.value_actions import set_value


async def click_element(act: ActionRequest) -> ActionOutcome:
    """Invoke the element's own action, or else click its center; changes in its window are the evidence."""
    ensure_usable(act.element)
    before = await act.control.scene(act.element)
    act.context.checkpoint()
    route = "action"
    if await act.control.press(act.element) is None:
        route = "pointer"
        await act.pointer()
    after = await wait_until_settled(act.control, act.element, before)
    if evidence := describe_changes(before, after.scene):
        return ActionOutcome("confirmed", route, evidence)
    if after.stirred:
        return ActionOutcome(
            "confirmed", route, (f"{describe_element(act.element)} was pressed; nothing else changed in its window",)
        )
    if after.silent:
        return ActionOutcome(
            "unverified", route, note="the program does not answer since then; look with observe_screen"
        )
    return ActionOutcome("unverified", route, note="the program took it, but nothing visible changed in its window")


async def focus_element(act: ActionRequest) -> ActionOutcome:
    """Give it the keyboard focus."""
    ensure_usable(act.element)
    if "focused" in act.element.states:
        return unchanged_outcome(act, "focused")

    async def ask() -> bool:
        return await act.control.focus(act.element)

    # A click would do more than focus, save in a text.
    click_it: ClickPolicy = "if_needed" if "editable" in act.element.states else "never"
    if await reach_state(act, ask, lambda e: "focused" in e.states, click=click_it) is None:
        raise no_effect_error(act, "did not take the focus")
    return ActionOutcome("confirmed", "action", (f"{describe_element(act.element)} has the focus",))


async def scroll_into_view(act: ActionRequest) -> ActionOutcome:
    """Bring it into view."""
    if act.element.rect is not None and "offscreen" not in act.element.states:
        return unchanged_outcome(act, "in view")
    asked = await act.control.scroll_to(act.element)
    if asked and await act.until(lambda current: current.rect is not None and "offscreen" not in current.states):
        return ActionOutcome("confirmed", "action", (f"{describe_element(act.element)} is in view",))
    raise no_effect_error(act, "is still not in view")


async def read_element(act: ActionRequest) -> ActionOutcome:
    """Return the element's whole text, value and states; changes nothing."""
    if "password" in act.element.states:
        return ActionOutcome("none", "none", note="the text of a password field is never read", more={"text": None})
    text = await act.control.read_text(act.element)
    more = {"text": text if text is not None else act.element.text, "value": act.element.value}
    return ActionOutcome("none", "none", more=more)


ActionHandler = Callable[[ActionRequest], Awaitable[ActionOutcome]]
ACTION_HANDLERS: Mapping[str, ActionHandler] = {
    "click": click_element,
    "type": set_value,
    "set_value": set_value,
    "toggle": toggle_element,
    "select": select_element,
    "expand": expand_element,
    "collapse": collapse_element,
    "focus": focus_element,
    "scroll_to": scroll_into_view,
    "read": read_element,
}
