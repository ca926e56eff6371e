"""Where an action goes: a point of a picture or an element, as a pixel of the screen, and only while it still means the same thing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from handrail import (
    Accessibility,
    AmbiguousElement,
    Downstream,
    Element,
    HandrailError,
    InvalidArguments,
    OutOfRange,
    Rect,
    Screen,
    StaleElement,
    StaleObservation,
    ToolContext,
    Window,
)
from handrail_gui import outline
from handrail_gui.hands import Hands

LOOK_AGAIN = "call observe_screen again"
MOST_CANDIDATES = 10
# Pixels that a part must be wide and high to be clicked.
SMALLEST = 3


@dataclass(frozen=True, slots=True)
class Target:
    """A pixel of the screen and what is there, in words. `image` is the same point in the picture that it was named in.

    `surface` is the window that was there when it was aimed at.
    """

    x: int
    y: int
    what: str
    image: tuple[int, int] | None = None
    element: Element | None = None
    surface: Window | None = None


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
    what = f'({x}, {y}) in "{outline.title_of(under)}"' if under else f"({x}, {y})"
    return Target(screen_x, screen_y, what, (x, y), surface=under)


def check_still_there(surfaces: Sequence[Window], target: Target) -> None:
    """Raise `StaleObservation` when another window than was aimed at takes a click there now, as one that came up while the pointer moved."""
    was, now = target.surface, surface_at(surfaces, target.x, target.y)
    if (was and was.id) != (now and now.id):
        change = f"{_named(now)} came up over" if now else "nothing is left of the window at"
        raise StaleObservation(f"{change} {target.what}; nothing was pressed", hint=LOOK_AGAIN)


async def at_element(
    context: ToolContext, hands: Hands, screen: Screen, accessibility: Accessibility | None, element_id: str
) -> Target:
    """The middle of what shows of an element now. Raises `StaleElement`, which names what looks like it, when it is gone, and `Downstream`
    or `StaleObservation` when it is disabled, hidden, covered or off the screen.
    """
    element = context.observations.element(element_id)
    if element.source == "accessibility" and accessibility is not None:
        element = await _refreshed(context, accessibility, element)
        _check_usable(element)
        home = _home(element, await screen.windows())
        surfaces = await hands.surfaces()
        _check_shown(element, home, surfaces)
        x, y = _uncovered(element, home, surfaces, await screen.monitors())
    else:
        x, y = _rect(element).center
        surfaces = await hands.surfaces()
        check_fresh(context.observations.get().windows, surfaces, x, y)
    what = f"{element.id} {outline.describe(element)}"
    return Target(x, y, what, _in_picture(context, x, y), element, surface_at(surfaces, x, y))


async def _refreshed(context: ToolContext, accessibility: Accessibility, known: Element) -> Element:
    current = await accessibility.refresh(known)
    if current is None:
        alike = await _alike(context, accessibility, known)
        raise StaleElement(
            f"{known.id} ({outline.describe(known)}) is gone"
            + ("; what looks like it now is another element" if alike else ""),
            hint="use a candidate's id, or observe again" if alike else "observe again and use an id of the result",
            details={"candidates": [{"id": e.id, "role": e.role, "text": outline.seen(e.text)} for e in alike]},
        )
    context.observations.update(current)
    return current


async def _alike(context: ToolContext, accessibility: Accessibility, known: Element) -> tuple[Element, ...]:
    """What has the same role and text now, in its window or else the active one."""
    for window in {known.window or None: None, None: None}:
        try:
            tree = await accessibility.tree(window=window, full=True)
        # The window is gone as well, or its program does not answer.
        except HandrailError:
            continue
        alike = [e for e in tree.elements if known.text and (e.role, e.text) == (known.role, known.text)]
        return context.observations.number(alike[:MOST_CANDIDATES])
    return ()


def _rect(element: Element) -> Rect:
    if element.rect is None or element.rect.empty or "offscreen" in element.states:
        raise Downstream(
            f"{element.id} ({outline.describe(element)}) cannot be seen now",
            hint="scroll to it, or open what hides it; execute_accessible can do that",
        )
    return element.rect


def _check_usable(element: Element) -> None:
    if "disabled" in element.states:
        raise Downstream(
            f"{element.id} ({outline.describe(element)}) is disabled; nothing was done",
            hint="find out what it waits for: a selection, a field to fill, a box to tick",
            details={"states": sorted(element.states)},
        )


def _home(element: Element, windows: Sequence[Window]) -> Window | None:
    """The window that an element is in; None where it is not known. Raises `AmbiguousElement` where several may be it."""
    own = [window for window in windows if window.id == element.window_id]
    own = own or [window for window in windows if window.title == element.window]
    if len(own) > 1:
        raise AmbiguousElement(
            f"{len(own)} windows are called {outline.cut(element.window)!r}, and {element.id} may be in any of them",
            hint="observe the one that is meant, by its id as window_list tells it; execute_accessible needs no window",
            details={"candidates": [{"id": window.id, "title": outline.title_of(window)} for window in own]},
        )
    return own[0] if own else None


def _check_shown(element: Element, home: Window | None, surfaces: Sequence[Window]) -> None:
    """Raise for an element of a window that is put away: what is on the screen in its place is something else."""
    if home is None or any(surface.id == home.id for surface in surfaces):
        return
    how = "minimized" if home.state == "minimized" else "not on the screen"
    raise Downstream(
        f"{element.id} ({outline.describe(element)}) is in the window {outline.title_of(home)!r}, which is {how}",
        hint="call window_focus first; execute_accessible can use it as it is",
    )


def _check_own(element: Element, home: Window | None, under: Window | None) -> None:
    """Raise where a click would go to another program's window."""
    if under is not None and _is_foreign(under, home):
        raise StaleObservation(
            f"{_named(under)} is where {element.id} ({outline.describe(element)}) says that it is",
            hint=f"bring {outline.cut(element.window)!r} to the front by window_focus",
        )


def _is_foreign(surface: Window, home: Window | None) -> bool:
    """Whether another program than that of an element's window is known to show it."""
    return home is not None and None not in (surface.pid, home.pid) and surface.pid != home.pid


def _hangs_over(surface: Window, home: Window | None) -> bool:
    """Whether it may be a menu or popup of the element's own window."""
    return surface.state == "popup" and not _is_foreign(surface, home)


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


def _uncovered(
    element: Element, home: Window | None, surfaces: Sequence[Window], monitors: Sequence[Rect]
) -> tuple[int, int]:
    """The middle of the largest part of an element that is on a monitor and under no other window.

    Menus and popups belong to whatever they hang over, unless another program is known to show them.
    """
    rect = _rect(element)
    top = surface_at(surfaces, *rect.center)
    own = next((surface for surface in surfaces if home and surface.id == home.id and _meet(surface, rect)), None)
    on_screen = [part for monitor in monitors if not (part := rect.intersect(monitor)).empty]
    if not on_screen or (top is None and own is None):
        raise OutOfRange(
            f"{element.id} ({outline.describe(element)}) is at {rect.center}, off the screen",
            hint="move its window onto the screen",
        )
    if own is None or (top is not None and _hangs_over(top, home)):
        _check_own(element, home, top)
        return rect.center
    above = [surface for surface in surfaces[: surfaces.index(own)] if not _hangs_over(surface, home)]
    showing = shown_part([part.intersect(own.rect) for part in on_screen], [surface.rect for surface in above])
    if showing is None:
        raise StaleObservation(
            f"{_named(next((s for s in above if _meet(s, rect)), own))} covers {element.id}",
            hint=f"bring {outline.cut(element.window)!r} to the front by window_focus",
        )
    return showing.center


def _meet(surface: Window, rect: Rect) -> bool:
    return not surface.rect.intersect(rect).empty


def shown_part(parts: Sequence[Rect], covers: Iterable[Rect]) -> Rect | None:
    """The largest rectangle that is left of some when others are laid over them; None when all are too small to be hit."""
    for cover in covers:
        parts = [left for part in parts for left in _around(part, cover.intersect(part))]
    large = [part for part in parts if min(part.width, part.height) >= SMALLEST]
    return max(large, key=lambda part: part.width * part.height, default=None)


def _around(part: Rect, hole: Rect) -> list[Rect]:
    """The four largest rectangles in a part that leave out a hole in it; they may overlap."""
    if hole.empty:
        return [part]
    sides = (
        Rect(part.x, part.y, part.width, hole.y - part.y),
        Rect(part.x, hole.bottom, part.width, part.bottom - hole.bottom),
        Rect(part.x, part.y, hole.x - part.x, part.height),
        Rect(hole.right, part.y, part.right - hole.right, part.height),
    )
    return [side for side in sides if not side.empty]


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
