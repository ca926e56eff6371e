"""Where an action goes: a point of a picture or an element, as a pixel of the screen, and only while it still means the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from handrail import (
    Accessibility,
    Downstream,
    Element,
    InvalidArguments,
    OutOfRange,
    StaleElement,
    StaleObservation,
    ToolContext,
    Window,
)
from handrail_gui import outline
from handrail_gui.hands import Hands

LOOK_AGAIN = "call observe_screen again"


@dataclass(frozen=True, slots=True)
class Target:
    """A pixel of the screen and what is there, in words. `image` is the same point in the picture that it was named in."""

    x: int
    y: int
    what: str
    image: tuple[int, int] | None = None
    element: Element | None = None


def surface_at(surfaces: Iterable[Window], x: int, y: int) -> Window | None:
    """The topmost of some surfaces at a point; None where the bare screen shows."""
    return next((surface for surface in surfaces if surface.rect.contains(x, y)), None)


async def at_point(context: ToolContext, hands: Hands, x: int, y: int, observation_id: str | None) -> Target:
    """A point of an observation's picture. Raises `OutOfRange`, and `StaleObservation` when the window there is not what it was."""
    seen = context.observations.get(observation_id)
    if seen.transform is None:
        raise StaleObservation(f"observation {seen.id} has no picture", hint="call observe_screen")
    screen_x, screen_y = seen.transform.to_screen(x, y)
    surfaces = await hands.surfaces()
    check_fresh(seen.windows, surfaces, screen_x, screen_y)
    under = surface_at(surfaces, screen_x, screen_y)
    return Target(screen_x, screen_y, f'({x}, {y}) in "{outline.title_of(under)}"' if under else f"({x}, {y})", (x, y))


async def at_element(
    context: ToolContext, hands: Hands, accessibility: Accessibility | None, element_id: str
) -> Target:
    """The middle of an element as it is now. Raises `StaleElement` when it is gone, `Downstream` when it cannot be seen."""
    element = context.observations.element(element_id)
    surfaces = await hands.surfaces()
    if element.source == "accessibility" and accessibility is not None:
        element = await _refreshed(context, accessibility, element)
        x, y = _middle(element)
        _check_uncovered(element, surfaces, x, y)
    else:
        x, y = _middle(element)
        check_fresh(context.observations.get().windows, surfaces, x, y)
    return Target(x, y, f"{element.id} {outline.describe(element)}", _in_picture(context, x, y), element)


async def _refreshed(context: ToolContext, accessibility: Accessibility, known: Element) -> Element:
    current = await accessibility.refresh(known)
    if current is None:
        raise StaleElement(
            f"{known.id} ({outline.describe(known)}) is gone", hint="observe again and use an id of the result"
        )
    context.observations.update(current)
    return current


def _middle(element: Element) -> tuple[int, int]:
    if element.rect is None or element.rect.empty or "offscreen" in element.states:
        raise Downstream(
            f"{element.id} ({outline.describe(element)}) cannot be seen now",
            hint="scroll to it, or open what hides it; execute_accessible can do that",
        )
    return element.rect.center


def check_fresh(before: Sequence[Window], now: Sequence[Window], x: int, y: int) -> None:
    """Raise `StaleObservation` unless the surface at a point is the one it was, in the same place and size."""
    was, is_now = surface_at(before, x, y), surface_at(now, x, y)
    if was is None:
        if is_now is not None:
            raise StaleObservation(f"{_named(is_now)} now covers that point", hint=LOOK_AGAIN)
        return
    current = next((surface for surface in now if surface.id == was.id), None)
    if current is None:
        raise StaleObservation(f"{_named(was)} has been closed or hidden since", hint=LOOK_AGAIN)
    if current.rect != was.rect:
        how = "moved" if (current.rect.width, current.rect.height) == (was.rect.width, was.rect.height) else "resized"
        raise StaleObservation(f"{_named(current)} has been {how} since", hint=LOOK_AGAIN)
    if is_now is None or is_now.id != was.id:
        raise StaleObservation(f"{_named(is_now or was)} now covers that point", hint=LOOK_AGAIN)


def _check_uncovered(element: Element, surfaces: Sequence[Window], x: int, y: int) -> None:
    """Refuse an element whose window lies under another one there. Menus and popups belong to whatever they hang over."""
    top = surface_at(surfaces, x, y)
    if top is None:
        raise OutOfRange(
            f"{element.id} is at ({x}, {y}), where no window shows", hint="move its window onto the screen"
        )
    own_is_open = any(surface.title == element.window for surface in surfaces)
    if top.state != "popup" and own_is_open and top.title != element.window:
        raise StaleObservation(
            f"{_named(top)} covers {element.id}", hint=f"bring {element.window!r} to the front by window_focus"
        )


def _named(window: Window) -> str:
    if window.title and window.state != "popup":
        return f"the window {outline.title_of(window)!r}"
    return f"a menu or popup of {window.process}" if window.process else "a menu or popup"


def _in_picture(context: ToolContext, x: int, y: int) -> tuple[int, int] | None:
    """The screen pixel in the latest picture, None when it does not show it."""
    try:
        transform = context.observations.get().transform
    except StaleObservation:
        return None
    if transform is None or not transform.screen.contains(x, y):
        return None
    return int((x - transform.screen.x) / transform.scale), int((y - transform.screen.y) / transform.scale)


def both(x: int | None, y: int | None, *, names: str) -> tuple[int, int] | None:
    """The point, None when neither number is given; `InvalidArguments` for half a point."""
    if x is None and y is None:
        return None
    if x is None or y is None:
        raise InvalidArguments(f"a point needs both {names}")
    return x, y
