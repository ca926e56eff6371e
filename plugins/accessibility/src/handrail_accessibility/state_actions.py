"""Actions that bring an element into a state: on or off, selected, open or closed. What is so already is left alone."""

from __future__ import annotations

from handrail import Element, InvalidArguments
from handrail.text import is_label_match
from handrail_accessibility.action_execution import (
    ActionOutcome,
    ActionRequest,
    ensure_usable,
    no_effect_error,
    reach_state,
    unchanged_outcome,
    wait_until_true,
)
from handrail_accessibility.change_detection import describe_changes, describe_element, wait_until_settled

ON_WORDS = frozenset({"on", "true", "yes", "1", "checked", "pressed"})
OFF_WORDS = frozenset({"off", "false", "no", "0", "unchecked", "released"})


async def toggle_element(act: ActionRequest) -> ActionOutcome:
    """Flip it, or set it to the value "on" or "off"; already so is a success with nothing done."""
    ensure_usable(act.element)
    if "toggle" not in act.element.actions:
        raise InvalidArguments(f"{describe_element(act.element)} has no on and off", hint="use the action click")
    was = _is_on(act.element)
    wanted = not was if act.value is None else _parse_switch_value(act.value)
    if was is wanted:
        return unchanged_outcome(act, "on" if wanted else "off")
    before = await act.control.scene(act.element)

    async def flip() -> bool:
        return await act.control.press(act.element) is not None

    # What was flipped and sprang back has been used; a click would use it twice.
    route = await reach_state(act, flip, lambda current: _is_on(current) is wanted, click="if_refused")
    after = await wait_until_settled(act.control, act.element, before)
    current = await act.control.now(act.element)
    if route is not None and (current is None or _is_on(current) is wanted):
        return ActionOutcome(
            "confirmed", route, (f"{describe_element(act.element)} is now {'on' if wanted else 'off'}",)
        )
    # Some "toggle buttons" spring back: what they do is elsewhere in the window.
    if evidence := describe_changes(before, after.scene):
        return ActionOutcome("confirmed", "action", evidence, note="it does not stay on or off")
    raise no_effect_error(act, f"is still {'on' if was else 'off'}")


async def select_element(act: ActionRequest) -> ActionOutcome:
    """Select the element itself, or the choice named by `value` in a combo box or list."""
    if act.value is not None:
        return await choose_option(act, act.value)
    ensure_usable(act.element)
    if act.element.role == "combo box":
        act.needed_value("the choice to select")
    if _is_selected(act.element):
        return unchanged_outcome(act, "selected")

    async def ask() -> bool:
        return await act.control.select(act.element) or await act.control.press(act.element) is not None

    before = await act.control.scene(act.element)
    route = await reach_state(act, ask, _is_selected)
    if route is None:
        evidence = describe_changes(before, (await wait_until_settled(act.control, act.element, before)).scene)
        if not evidence:
            raise no_effect_error(act, "is still not selected")
        return ActionOutcome("confirmed", "action", evidence)
    return ActionOutcome("confirmed", route, (f"{describe_element(act.element)} is now selected",))


async def choose_option(act: ActionRequest, choice: str) -> ActionOutcome:
    """Select a choice of a combo box or list by its name."""
    options = await act.control.options(act.element)
    fitting = [o for o in options if o.text == choice] or [o for o in options if is_label_match(choice, o.text)]
    if len(fitting) != 1:
        names = [option.text for option in options if option.text]
        raise InvalidArguments(
            f"{describe_element(act.element)} has {'several choices' if fitting else 'no choice'} {choice!r}",
            hint=f"its choices: {', '.join(repr(name) for name in names[:30]) or 'none are published; open it first'}",
            details={"choices": names[:100]},
        )
    (option,) = fitting

    # A box that has a label, and no value, does not say which of its choices it shows; the choice does.
    silent = not act.element.value and all(act.element.text != option.text for option in options)

    async def holds() -> bool:
        box, item = await act.control.now(act.element), await act.control.now(option)
        if box is not None and option.text in (box.text, box.value):
            return True
        if act.element.role == "combo box" and (not silent or box is None or "expanded" in box.states):
            return False
        return item is not None and _is_selected(item)

    if await holds():
        return unchanged_outcome(act, f"at {option.text!r}")
    for ask in (act.control.select, act.control.press):
        act.context.checkpoint()
        if await ask(option) and await wait_until_true(holds):
            return ActionOutcome("confirmed", "action", (f"{act.element.role} now shows {option.text!r}",))
    if await _click_option(act, option) and await wait_until_true(holds):
        return ActionOutcome("confirmed", "pointer", (f"{act.element.role} now shows {option.text!r}",))
    raise no_effect_error(act, f"does not show {option.text!r}")


async def _click_option(act: ActionRequest, option: Element) -> bool:
    """Open the box and click the choice, as a user would; return False if it does not come into view."""
    shown: list[Element] = []

    async def in_view() -> bool:
        current = await act.control.now(option)
        shown[:] = [current] if current is not None and current.rect is not None else []
        return bool(shown)

    await act.control.expand(act.element, wanted=True)
    if not await wait_until_true(in_view) and not (
        await _page_to_option(act, option) and await wait_until_true(in_view)
    ):
        await act.control.expand(act.element, wanted=False)
        return False
    (choice,) = act.context.observations.number(shown)
    await act.gui(action="click", element_id=choice.id)
    return True


async def _page_to_option(act: ActionRequest, option: Element) -> bool:
    """Page through the open box, as a user would, until the choice shows; return True if it does."""
    looks: list[frozenset[str]] = []

    async def changed() -> bool:
        return [each.states for each in await act.control.options(act.element)] != looks

    while True:
        options = await act.control.options(act.element)
        showing = [at for at, each in enumerate(options) if "offscreen" not in each.states]
        sought = next((at for at, each in enumerate(options) if each.ref == option.ref), None)
        if sought is None or not showing or sought in showing:
            return sought in showing
        looks[:] = [each.states for each in options]
        act.context.checkpoint()
        await act.gui(action="press_key", key="pagedown" if sought > showing[-1] else "pageup", settle=False)
        if not await wait_until_true(changed):
            return False


async def expand_element(act: ActionRequest) -> ActionOutcome:
    """Open it, unless it is open."""
    return await _set_expanded(act, wanted=True)


async def collapse_element(act: ActionRequest) -> ActionOutcome:
    """Close it, unless it is closed."""
    return await _set_expanded(act, wanted=False)


async def _set_expanded(act: ActionRequest, *, wanted: bool) -> ActionOutcome:
    word = "open" if wanted else "closed"
    if not {"expand", "collapse"} & set(act.element.actions):
        raise InvalidArguments(f"{describe_element(act.element)} does not open or close", hint="use the action click")
    ensure_usable(act.element)
    before = await act.control.scene(act.element)
    is_open = await _is_open(act, act.element)
    if is_open is wanted:
        return unchanged_outcome(act, word)
    act.context.checkpoint()
    asked = await act.control.expand(act.element, wanted=wanted)

    async def holds() -> bool:
        current = await act.control.now(act.element)
        return current is not None and await _is_open(act, current) is wanted

    route = "action"
    if not (asked and await wait_until_true(holds)):
        route = "pointer"
        await act.pointer()
        if not await wait_until_true(holds):
            raise no_effect_error(act, f"is not {word}")
    evidence = describe_changes(before, (await wait_until_settled(act.control, act.element, before)).scene)
    return ActionOutcome("confirmed", route, evidence or (f"{describe_element(act.element)} is {word}",))


async def _is_open(act: ActionRequest, element: Element) -> bool:
    """Return True if the element is open: its state says so, or its options are showing."""
    if "expanded" in element.states or "collapsed" in element.states:
        return "expanded" in element.states
    return any("offscreen" not in option.states for option in await act.control.options(element))


def _is_on(element: Element) -> bool:
    return bool(element.states & {"checked", "pressed"})


def _is_selected(element: Element) -> bool:
    return bool(element.states & {"selected", "checked"})


def _parse_switch_value(value: str) -> bool:
    word = value.casefold()
    if word in ON_WORDS | OFF_WORDS:
        return word in ON_WORDS
    raise InvalidArguments(f"toggle takes the value 'on' or 'off', or none to flip, not {value!r}")
