"""Targets of actions: resolves a point in a picture or an element to a screen pixel.

A target is valid only while it still refers to the same thing.
"""

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
from handrail_gui.observe import outline
from handrail_gui.platforms.input_driver import InputDriver

OBSERVE_AGAIN_HINT = "call observe_screen again"
MAX_CANDIDATES = 10
# Pixels that a part must be wide and high to be clicked.
MIN_CLICK_SIDE = 3


@dataclass(frozen=True, slots=True)
class ActionTarget:
    """A pixel of the screen and what is there, in words. `image` is the same point in the picture that it was named in.

    `surface` is the window that was there when it was aimed at.
    """

    x: int
    y: int
    what: str
    image: tuple[int, int] | None = None
    element: Element | None = None
    surface: Window | None = None


def find_surface_at(surfaces: Iterable[Window], x: int, y: int) -> Window | None:
    """Return the topmost of the given surfaces at a point; None where only the desktop background shows."""
    return next((surface for surface in surfaces if surface.rect.contains(x, y)), None)


async def resolve_point(
    context: ToolContext, hands: InputDriver, x: int, y: int, observation_id: str | None
) -> ActionTarget:
    """Resolve a point in an observation's picture to a target on the screen.

    Raises `OutOfRange`, and `StaleObservation` if the window there has changed.
    """
    seen = context.observations.get(observation_id)
    if seen.transform is None:
        raise StaleObservation(f"observation {seen.id} has no picture", hint="call observe_screen")
    screen_x, screen_y = seen.transform.to_screen(x, y)
    surfaces = await hands.surfaces()
    ensure_fresh(seen.windows, surfaces, screen_x, screen_y)
    under = find_surface_at(surfaces, screen_x, screen_y)
    what = f'({x}, {y}) in "{outline.format_window_title(under)}"' if under else f"({x}, {y})"
    return ActionTarget(screen_x, screen_y, what, (x, y), surface=under)


def ensure_same_surface(surfaces: Sequence[Window], target: ActionTarget) -> None:
    """Raise `StaleObservation` if a window other than the target's would now receive the click.

    An example is a window that came up while the pointer moved.
    """
    was, now = target.surface, find_surface_at(surfaces, target.x, target.y)
    if (was and was.id) != (now and now.id):
        change = f"{_describe_surface(now)} came up over" if now else "nothing is left of the window at"
        raise StaleObservation(f"{change} {target.what}; nothing was pressed", hint=OBSERVE_AGAIN_HINT)


async def resolve_element(
    context: ToolContext, hands: InputDriver, screen: Screen, accessibility: Accessibility | None, element_id: str
) -> ActionTarget:
    """Resolve an element to the middle of its currently visible part.

    Raises `StaleElement`, which names similar elements, if it is gone, and `Downstream` or `StaleObservation` if it is
    disabled, hidden, covered or off the screen.
    """
    element = context.observations.element(element_id)
    if element.source == "accessibility" and accessibility is not None:
        element = await _refresh_element(context, accessibility, element)
        _ensure_usable(element)
        home = _find_home_window(element, await screen.windows())
        surfaces = await hands.surfaces()
        _ensure_shown(element, home, surfaces)
        x, y = _find_click_point(element, home, surfaces, await screen.monitors())
    else:
        x, y = _require_rect(element).center
        surfaces = await hands.surfaces()
        ensure_fresh(context.observations.get().windows, surfaces, x, y)
    what = f"{element.id} {outline.describe_element(element)}"
    return ActionTarget(x, y, what, _map_to_picture(context, x, y), element, find_surface_at(surfaces, x, y))


async def _refresh_element(context: ToolContext, accessibility: Accessibility, known: Element) -> Element:
    current = await accessibility.refresh(known)
    if current is None:
        alike = await _find_lookalikes(context, accessibility, known)
        raise StaleElement(
            f"{known.id} ({outline.describe_element(known)}) is gone"
            + ("; what looks like it now is another element" if alike else ""),
            hint="use a candidate's id, or observe again" if alike else "observe again and use an id of the result",
            details={
                "candidates": [{"id": e.id, "role": e.role, "text": outline.escape_invisible(e.text)} for e in alike]
            },
        )
    context.observations.update(current)
    return current


async def _find_lookalikes(context: ToolContext, accessibility: Accessibility, known: Element) -> tuple[Element, ...]:
    """Return the elements that now have the same role and text, in the element's window or else in the active one."""
    for window in {known.window or None: None, None: None}:
        try:
            tree = await accessibility.tree(window=window, full=True)
        # The window is gone as well, or its program does not answer.
        except HandrailError:
            continue
        alike = [e for e in tree.elements if known.text and (e.role, e.text) == (known.role, known.text)]
        return context.observations.number(alike[:MAX_CANDIDATES])
    return ()


def _require_rect(element: Element) -> Rect:
    if element.rect is None or element.rect.empty or "offscreen" in element.states:
        raise Downstream(
            f"{element.id} ({outline.describe_element(element)}) cannot be seen now",
            hint="scroll to it, or open what hides it; execute_accessible can do that",
        )
    return element.rect


def _ensure_usable(element: Element) -> None:
    if "disabled" in element.states:
        raise Downstream(
            f"{element.id} ({outline.describe_element(element)}) is disabled; nothing was done",
            hint="find out what it waits for: a selection, a field to fill, a box to tick",
            details={"states": sorted(element.states)},
        )


def _find_home_window(element: Element, windows: Sequence[Window]) -> Window | None:
    """Return the window that contains an element; None if unknown. Raises `AmbiguousElement` if several match."""
    own = [window for window in windows if window.id == element.window_id]
    own = own or [window for window in windows if window.title == element.window]
    if len(own) > 1:
        raise AmbiguousElement(
            f"{len(own)} windows are called {outline.format_title(element.window)!r}, and {element.id} may be in any of them",
            hint="observe the one that is meant, by its id as window_list tells it; execute_accessible needs no window",
            details={"candidates": [{"id": window.id, "title": outline.format_window_title(window)} for window in own]},
        )
    return own[0] if own else None


def _ensure_shown(element: Element, home: Window | None, surfaces: Sequence[Window]) -> None:
    """Raise for an element of a window that is put away: what is on the screen in its place is something else."""
    if home is None or any(surface.id == home.id for surface in surfaces):
        return
    how = "minimized" if home.state == "minimized" else "not on the screen"
    raise Downstream(
        f"{element.id} ({outline.describe_element(element)}) is in the window {outline.format_window_title(home)!r}, which is {how}",
        hint="call window_focus first; execute_accessible can use it as it is",
    )


def _ensure_own_window(element: Element, home: Window | None, under: Window | None) -> None:
    """Raise where a click would go to another program's window."""
    if under is not None and _is_foreign_surface(under, home):
        raise StaleObservation(
            f"{_describe_surface(under)} is where {element.id} ({outline.describe_element(element)}) says that it is",
            hint=f"bring {outline.format_title(element.window)!r} to the front by window_focus",
        )


def _is_foreign_surface(surface: Window, home: Window | None) -> bool:
    """Return True if the surface is known to belong to a different program than the element's window."""
    return home is not None and None not in (surface.pid, home.pid) and surface.pid != home.pid


def _is_own_popup(surface: Window, home: Window | None) -> bool:
    """Return True if the surface may be a menu or popup of the element's own window."""
    return surface.state == "popup" and not _is_foreign_surface(surface, home)


def ensure_fresh(before: Sequence[Window], now: Sequence[Window], x: int, y: int) -> None:
    """Raise `StaleObservation` unless the surface at a point is the one it was, in the same place and size."""
    was, is_now = find_surface_at(before, x, y), find_surface_at(now, x, y)
    if was is None:
        if is_now is not None:
            raise StaleObservation(f"{_describe_surface(is_now)} now covers that point", hint=OBSERVE_AGAIN_HINT)
        return
    current = next((surface for surface in now if surface.id == was.id), None)
    if current is None:
        raise StaleObservation(f"{_describe_surface(was)} has been closed or hidden since", hint=OBSERVE_AGAIN_HINT)
    if current.rect != was.rect:
        how = "moved" if (current.rect.width, current.rect.height) == (was.rect.width, was.rect.height) else "resized"
        raise StaleObservation(f"{_describe_surface(current)} has been {how} since", hint=OBSERVE_AGAIN_HINT)
    if is_now is None or is_now.id != was.id:
        raise StaleObservation(f"{_describe_surface(is_now or was)} now covers that point", hint=OBSERVE_AGAIN_HINT)


def _find_click_point(
    element: Element, home: Window | None, surfaces: Sequence[Window], monitors: Sequence[Rect]
) -> tuple[int, int]:
    """Return the middle of the largest part of an element that is on a monitor and not covered by another window.

    Menus and popups count as part of the window below them unless they are known to belong to another program.
    """
    rect = _require_rect(element)
    top = find_surface_at(surfaces, *rect.center)
    own = next(
        (surface for surface in surfaces if home and surface.id == home.id and _is_overlapping(surface, rect)), None
    )
    on_screen = [part for monitor in monitors if not (part := rect.intersect(monitor)).empty]
    if not on_screen or (top is None and own is None):
        raise OutOfRange(
            f"{element.id} ({outline.describe_element(element)}) is at {rect.center}, off the screen",
            hint="move its window onto the screen",
        )
    if own is None or (top is not None and _is_own_popup(top, home)):
        _ensure_own_window(element, home, top)
        return rect.center
    above = [surface for surface in surfaces[: surfaces.index(own)] if not _is_own_popup(surface, home)]
    showing = find_visible_part([part.intersect(own.rect) for part in on_screen], [surface.rect for surface in above])
    if showing is None:
        raise StaleObservation(
            f"{_describe_surface(next((s for s in above if _is_overlapping(s, rect)), own))} covers {element.id}",
            hint=f"bring {outline.format_title(element.window)!r} to the front by window_focus",
        )
    return showing.center


def _is_overlapping(surface: Window, rect: Rect) -> bool:
    return not surface.rect.intersect(rect).empty


def find_visible_part(parts: Sequence[Rect], covers: Iterable[Rect]) -> Rect | None:
    """Return the largest rectangle left of some parts under covers; None if all are too small to hit."""
    for cover in covers:
        parts = [left for part in parts for left in _split_around_hole(part, cover.intersect(part))]
    large = [part for part in parts if min(part.width, part.height) >= MIN_CLICK_SIDE]
    return max(large, key=lambda part: part.width * part.height, default=None)


def _split_around_hole(part: Rect, hole: Rect) -> list[Rect]:
    """Return up to four maximal rectangles of a part that leave out a hole in it; they may overlap."""
    if hole.empty:
        return [part]
    sides = (
        Rect(part.x, part.y, part.width, hole.y - part.y),
        Rect(part.x, hole.bottom, part.width, part.bottom - hole.bottom),
        Rect(part.x, part.y, hole.x - part.x, part.height),
        Rect(hole.right, part.y, part.right - hole.right, part.height),
    )
    return [side for side in sides if not side.empty]


def _describe_surface(window: Window) -> str:
    if window.title and window.state != "popup":
        return f"the window {outline.format_window_title(window)!r}"
    return f"a menu or popup of {window.process}" if window.process else "a menu or popup"


def _map_to_picture(context: ToolContext, x: int, y: int) -> tuple[int, int] | None:
    """Map a screen pixel to the latest picture; return None if the picture does not show it."""
    try:
        transform = context.observations.get().transform
    except StaleObservation:
        return None
    if transform is None or not transform.screen.contains(x, y):
        return None
    return int((x - transform.screen.x) / transform.scale), int((y - transform.screen.y) / transform.scale)


def parse_point(x: int | None, y: int | None, *, names: str) -> tuple[int, int] | None:
    """Return the point, or None if neither coordinate is given; raise `InvalidArguments` for half a point."""
    if x is None and y is None:
        return None
    if x is None or y is None:
        raise InvalidArguments(f"a point needs both {names}")
    return x, y
