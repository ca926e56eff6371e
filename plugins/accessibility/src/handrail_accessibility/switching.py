"""Actions that bring an element into a state: on or off, selected, open or closed. What is so already is left alone."""

from __future__ import annotations

from handrail import Element, InvalidArguments
from handrail.words import said_by
from handrail_accessibility.acting import Act, Outcome, already, did_not, reach, refuse_unusable, soon
from handrail_accessibility.changes import changes, named, settled

ON = frozenset({"on", "true", "yes", "1", "checked", "pressed"})
OFF = frozenset({"off", "false", "no", "0", "unchecked", "released"})


async def toggle(act: Act) -> Outcome:
    """Flip it, or set it to the value "on" or "off"; already so is a success with nothing done."""
    refuse_unusable(act.element)
    if "toggle" not in act.element.actions:
        raise InvalidArguments(f"{named(act.element)} has no on and off", hint="use the action click")
    was = _is_on(act.element)
    wanted = not was if act.value is None else _as_switch(act.value)
    if was is wanted:
        return already(act, "on" if wanted else "off")
    before = await act.control.scene(act.element)

    async def flip() -> bool:
        return await act.control.press(act.element) is not None

    # What was flipped and sprang back has been used; a click would use it twice.
    route = await reach(act, flip, lambda current: _is_on(current) is wanted, click="if_refused")
    after = await settled(act.control, act.element, before)
    current = await act.control.now(act.element)
    if route is not None and (current is None or _is_on(current) is wanted):
        return Outcome("confirmed", route, (f"{named(act.element)} is now {'on' if wanted else 'off'}",))
    # Some "toggle buttons" spring back: what they do is elsewhere in the window.
    if evidence := changes(before, after.scene):
        return Outcome("confirmed", "action", evidence, note="it does not stay on or off")
    raise did_not(act, f"is still {'on' if was else 'off'}")


async def select(act: Act) -> Outcome:
    """Select the element itself, or the choice named by `value` in a combo box or list."""
    if act.value is not None:
        return await choose(act, act.value)
    refuse_unusable(act.element)
    if act.element.role == "combo box":
        act.needed_value("the choice to select")
    if _is_selected(act.element):
        return already(act, "selected")

    async def ask() -> bool:
        return await act.control.select(act.element) or await act.control.press(act.element) is not None

    before = await act.control.scene(act.element)
    route = await reach(act, ask, _is_selected)
    if route is None:
        evidence = changes(before, (await settled(act.control, act.element, before)).scene)
        if not evidence:
            raise did_not(act, "is still not selected")
        return Outcome("confirmed", "action", evidence)
    return Outcome("confirmed", route, (f"{named(act.element)} is now selected",))


async def choose(act: Act, choice: str) -> Outcome:
    """Select a choice of a combo box or list by its name."""
    options = await act.control.options(act.element)
    fitting = [o for o in options if o.text == choice] or [o for o in options if said_by(choice, o.text)]
    if len(fitting) != 1:
        names = [option.text for option in options if option.text]
        raise InvalidArguments(
            f"{named(act.element)} has {'several choices' if fitting else 'no choice'} {choice!r}",
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
        return already(act, f"at {option.text!r}")
    for ask in (act.control.select, act.control.press):
        act.context.checkpoint()
        if await ask(option) and await soon(holds):
            return Outcome("confirmed", "action", (f"{act.element.role} now shows {option.text!r}",))
    if await _click_choice(act, option) and await soon(holds):
        return Outcome("confirmed", "pointer", (f"{act.element.role} now shows {option.text!r}",))
    raise did_not(act, f"does not show {option.text!r}")


async def _click_choice(act: Act, option: Element) -> bool:
    """Open the box and click the choice, as a person would; False when it does not come into view."""
    shown: list[Element] = []

    async def in_view() -> bool:
        current = await act.control.now(option)
        shown[:] = [current] if current is not None and current.rect is not None else []
        return bool(shown)

    await act.control.expand(act.element, wanted=True)
    if not await soon(in_view) and not (await _page_to(act, option) and await soon(in_view)):
        await act.control.expand(act.element, wanted=False)
        return False
    (choice,) = act.context.observations.number(shown)
    await act.gui(action="click", element_id=choice.id)
    return True


async def _page_to(act: Act, option: Element) -> bool:
    """Go through the open box page by page, as a person would, until the choice shows; whether it does."""
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
        if not await soon(changed):
            return False


async def expand(act: Act) -> Outcome:
    """Open it, unless it is open."""
    return await _set_open(act, wanted=True)


async def collapse(act: Act) -> Outcome:
    """Close it, unless it is closed."""
    return await _set_open(act, wanted=False)


async def _set_open(act: Act, *, wanted: bool) -> Outcome:
    word = "open" if wanted else "closed"
    if not {"expand", "collapse"} & set(act.element.actions):
        raise InvalidArguments(f"{named(act.element)} does not open or close", hint="use the action click")
    refuse_unusable(act.element)
    before = await act.control.scene(act.element)
    is_open = await _opened(act, act.element)
    if is_open is wanted:
        return already(act, word)
    act.context.checkpoint()
    asked = await act.control.expand(act.element, wanted=wanted)

    async def holds() -> bool:
        current = await act.control.now(act.element)
        return current is not None and await _opened(act, current) is wanted

    route = "action"
    if not (asked and await soon(holds)):
        route = "pointer"
        await act.pointer()
        if not await soon(holds):
            raise did_not(act, f"is not {word}")
    evidence = changes(before, (await settled(act.control, act.element, before)).scene)
    return Outcome("confirmed", route, evidence or (f"{named(act.element)} is {word}",))


async def _opened(act: Act, element: Element) -> bool:
    """Whether it is open: its state says so, or what it holds shows."""
    if "expanded" in element.states or "collapsed" in element.states:
        return "expanded" in element.states
    return any("offscreen" not in option.states for option in await act.control.options(element))


def _is_on(element: Element) -> bool:
    return bool(element.states & {"checked", "pressed"})


def _is_selected(element: Element) -> bool:
    return bool(element.states & {"selected", "checked"})


def _as_switch(value: str) -> bool:
    word = value.casefold()
    if word in ON | OFF:
        return word in ON
    raise InvalidArguments(f"toggle takes the value 'on' or 'off', or none to flip, not {value!r}")
