"""Every action of `execute_accessible` by its word."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from handrail_accessibility.acting import Act, Click, Outcome, already, did_not, reach, refuse_unusable
from handrail_accessibility.changes import changes, named, settled
from handrail_accessibility.switching import collapse, expand, select, toggle
from handrail_accessibility.writing import set_value


async def click(act: Act) -> Outcome:
    """Its own action, else a click at its centre; what changed in its window is the evidence."""
    refuse_unusable(act.element)
    before = await act.control.scene(act.element)
    act.context.checkpoint()
    route = "action"
    if await act.control.press(act.element) is None:
        route = "pointer"
        await act.pointer()
    after = await settled(act.control, act.element, before)
    if evidence := changes(before, after.scene):
        return Outcome("confirmed", route, evidence)
    if after.stirred:
        return Outcome("confirmed", route, (f"{named(act.element)} was pressed; nothing else changed in its window",))
    if after.silent:
        return Outcome("unverified", route, note="the program does not answer since then; look with observe_screen")
    return Outcome("unverified", route, note="the program took it, but nothing visible changed in its window")


async def focus(act: Act) -> Outcome:
    """Give it the keyboard focus."""
    refuse_unusable(act.element)
    if "focused" in act.element.states:
        return already(act, "focused")

    async def ask() -> bool:
        return await act.control.focus(act.element)

    # A click would do more than focus, save in a text.
    click_it: Click = "if_needed" if "editable" in act.element.states else "never"
    if await reach(act, ask, lambda e: "focused" in e.states, click=click_it) is None:
        raise did_not(act, "did not take the focus")
    return Outcome("confirmed", "action", (f"{named(act.element)} has the focus",))


async def scroll_to(act: Act) -> Outcome:
    """Bring it into view."""
    if act.element.rect is not None and "offscreen" not in act.element.states:
        return already(act, "in view")
    asked = await act.control.scroll_to(act.element)
    if asked and await act.until(lambda current: current.rect is not None and "offscreen" not in current.states):
        return Outcome("confirmed", "action", (f"{named(act.element)} is in view",))
    raise did_not(act, "is still not in view")


async def read(act: Act) -> Outcome:
    """Its whole text, value and states; nothing is changed."""
    if "password" in act.element.states:
        return Outcome("none", "none", note="the text of a password field is never read", more={"text": None})
    text = await act.control.read_text(act.element)
    more = {"text": text if text is not None else act.element.text, "value": act.element.value}
    return Outcome("none", "none", more=more)


Action = Callable[[Act], Awaitable[Outcome]]
ACTIONS: Mapping[str, Action] = {
    "click": click,
    "type": set_value,
    "set_value": set_value,
    "toggle": toggle,
    "select": select,
    "expand": expand,
    "collapse": collapse,
    "focus": focus,
    "scroll_to": scroll_to,
    "read": read,
}
