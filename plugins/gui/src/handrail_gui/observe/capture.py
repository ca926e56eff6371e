"""Observation of the screen: the elements that the chosen backend detects, and the picture they belong to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import anyio.to_thread

from handrail import (
    AmbiguousElement,
    BackendUnavailable,
    Downstream,
    Element,
    Frame,
    NotFound,
    Observation,
    Rect,
    Screen,
    StaleElement,
    ToolContext,
    Transform,
    Window,
    element_wire,
)
from handrail.text import fold_text
from handrail_gui.observe import outline

# Elements that are gone through to find the place where to go on.
PAGING_BUDGET = 5_000


@dataclass(frozen=True, slots=True)
class ObserveRequest:
    """Request to observe the screen. `area` is in screen pixels; `window` limits the observation to one window."""

    area: Rect | None
    window: Window | None
    intent: str
    most: int
    # The id of the element after which to go on.
    after: str | None = None


@dataclass(frozen=True, slots=True)
class ObserveResult:
    """Result of an observation: `elements` before they are numbered, `frame` the picture they were seen in."""

    frame: Frame
    elements: tuple[Element, ...]
    windows: Sequence[Window]
    subject: str | None
    backend: str
    truncated: bool
    # Whether nothing of what was looked at was left out, at the end or at the beginning.
    whole: bool
    note: str = ""


async def run_observation(context: ToolContext, screen: Screen, wish: ObserveRequest) -> ObserveResult:
    """Look once, with the chosen backend or the first of the fallbacks that works."""
    windows = await screen.windows()
    # One more than asked tells whether there are more.
    async with context.waiting(context.vision.doing):
        looked = await context.vision.look(
            lambda: screen.capture(wish.area),
            intent=wish.intent,
            window=_window_reference(wish.window, windows) if wish.window else None,
            budget=wish.most + 1 if wish.after is None else PAGING_BUDGET,
        )
    frame, tree = looked.value.frame, looked.value.tree
    shown = [element for element in tree.elements if _is_in_area(element, frame.screen)]
    if wish.after is not None:
        shown = elements_after(context, shown, wish.after)
    truncated = tree.truncated or len(shown) > wish.most
    return ObserveResult(
        frame,
        tuple(shown[: wish.most]),
        windows,
        tree.window,
        looked.backend,
        truncated,
        not truncated and wish.after is None,
        "; ".join(note for note in (tree.note, looked.note) if note),
    )


def _window_reference(window: Window, windows: Sequence[Window]) -> str:
    """Return the name of a window: its title, or its id if the title is empty or not unique."""
    alone = [other.title for other in windows].count(window.title) == 1
    return window.title if window.title and alone else window.id


def elements_after(context: ToolContext, elements: Sequence[Element], id: str) -> list[Element]:
    """Return the elements after the one with that id; raise `StaleElement` if it is no longer among them."""
    numbered = context.observations.number(elements)
    at = next((at for at, element in enumerate(numbered) if element.id == id), None)
    if at is None:
        raise StaleElement(f"{id!r} is not in view any more, so nothing follows it", hint="observe from the beginning")
    return list(elements[at + 1 :])


def _is_in_area(element: Element, area: Rect) -> bool:
    return element.rect is None or not element.rect.intersect(area).empty


async def describe_frame(context: ToolContext, frame: Frame, intent: str) -> tuple[str | None, str]:
    """Return a description by the first backend that can describe pictures, and a note; (None, reason) without one."""
    try:
        async with context.waiting(context.vision.doing):
            answered = await context.vision.understand(frame, intent)
    except BackendUnavailable as exc:
        return None, f"no backend describes pictures ({exc}): this is an outline of the elements"
    return answered.value, f"described by {answered.backend}"


def find_window(windows: Sequence[Window], title: str) -> Window:
    """Return the one window whose id or title is `title`, or else whose title contains it (ignoring case).

    Otherwise raises an error that lists the windows there are.
    """
    sought = fold_text(title)
    exact = [window for window in windows if window.id == title]
    exact = exact or [window for window in windows if fold_text(window.title) == sought]
    # A title that was told cut short is still one to name it by.
    exact = exact or [window for window in windows if fold_text(outline.format_window_title(window)) == sought]
    fitting = exact or [window for window in windows if sought in fold_text(window.title)]
    if len(fitting) == 1:
        return fitting[0]
    candidates = [{"id": window.id, "title": outline.format_window_title(window)} for window in fitting or windows]
    title = outline.format_title(title)
    if fitting:
        raise AmbiguousElement(
            f"{len(fitting)} windows have {title!r} in their title",
            hint="give more of the title, or a window's id",
            details={"candidates": candidates},
        )
    raise NotFound(f"no window has {title!r} in its title", hint="see window_list", details={"candidates": candidates})


async def resolve_area(
    screen: Screen,
    *,
    region: Sequence[int] | None,
    window: Window | None,
    monitor: int | None,
    last: Observation | None,
) -> Rect | None:
    """Return the part of the screen to observe: a region of the last picture, a window, a monitor, or None for all."""
    if region is not None:
        x1, y1, x2, y2 = region
        if last is None or last.transform is None:
            return Rect(x1, y1, x2 - x1, y2 - y1)
        left, top = last.transform.to_screen(x1, y1)
        right, bottom = last.transform.to_screen(x2 - 1, y2 - 1)
        return Rect(left, top, right - left + 1, bottom - top + 1)
    if window is not None:
        if window.state == "minimized":
            raise Downstream(
                f"the window {outline.format_window_title(window)!r} is minimized", hint="call window_focus first"
            )
        return window.rect
    if monitor is not None:
        monitors = await screen.monitors()
        if monitor >= len(monitors):
            raise NotFound(f"there is no monitor {monitor}", hint=f"they are numbered 0 to {len(monitors) - 1}")
        return monitors[monitor]
    return None


async def build_images(sight: ObserveResult, seen: Observation, image: str) -> dict[str, Any]:
    """Return `image_b64` and `raw_image_b64` as requested."""
    if image == "none" or seen.transform is None:
        return {}
    transform = seen.transform

    def draw() -> dict[str, Any]:
        # numpy and OpenCV take a tenth of a second to import.
        from handrail_gui.observe import annotate, model_image

        pixels = model_image.cover_passwords(model_image.scale_frame(sight.frame, transform), seen.elements, transform)
        if image == "raw":
            return {"image_b64": model_image.encode_jpeg(pixels)}
        marked = annotate.draw_marks(pixels, annotate.place_marks(pixels, seen.elements, transform))
        drawn = {"image_b64": model_image.encode_jpeg(marked)}
        return drawn | {"raw_image_b64": model_image.encode_jpeg(pixels)} if image == "both" else drawn

    return await anyio.to_thread.run_sync(draw)


def format_observation(sight: ObserveResult, seen: Observation) -> str:
    """Format the outline: the other windows, then the elements."""
    parts: list[str] = []
    if windows := outline.format_windows(sight.windows, without=sight.subject):
        parts.append(f"Windows, topmost first:\n{windows}")
    active = any(window.active and window.title == sight.subject for window in sight.windows)
    subject = (
        f'{"Active" if active else "In"} "{outline.format_title(sight.subject)}":'
        if sight.subject
        else "On the screen:"
    )
    if seen.elements:
        parts.append(f"{subject}\n{outline.format_elements(seen.elements)}")
    elif not parts:
        parts.append("Nothing that could be named is on the screen.")
    if sight.truncated:
        parts.append(f'(only {len(seen.elements)} elements; go on with after="{last_element_id(seen)}")')
    return "\n".join(parts)


def last_element_id(seen: Observation) -> str:
    """Return the id of an observation's last element; empty if it has no elements."""
    return seen.elements[-1].id if seen.elements else ""


def list_window_changes(before: Observation, now: Observation) -> list[str]:
    """Return one line for each window that opened or closed between two observations."""
    old, new = ({w.id: w for w in seen.windows if w.state != "popup" and w.title} for seen in (before, now))
    opened = [f'window "{outline.format_window_title(window)}" opened' for id, window in new.items() if id not in old]
    return opened + [
        f'window "{outline.format_window_title(window)}" closed' for id, window in old.items() if id not in new
    ]


def compare_elements(before: Observation, now: Observation, sight: ObserveResult) -> dict[str, Any]:
    """Return the ids of elements added, removed or changed since an earlier observation.

    Only elements that would have been seen count as removed: an observation of a part, or a truncated one, says nothing
    about the rest.
    """
    old = {element.id: element for element in before.elements}
    new = {element.id: element for element in now.elements}
    return {
        "added": [id for id in new if id not in old],
        "removed": [id for id in old if id not in new and _is_expected_in_view(old[id], sight)],
        "changed": [id for id in new if id in old and _element_key(new[id]) != _element_key(old[id])],
    }


def _is_expected_in_view(element: Element, sight: ObserveResult) -> bool:
    if not sight.whole or _is_in_other_window(element, sight):
        return False
    return element.rect is None or element.rect.intersect(sight.frame.screen) == element.rect


def _is_in_other_window(element: Element, sight: ObserveResult) -> bool:
    """Return True if the element is in another window than the observed one, which may have the same title."""
    if sight.subject is None:
        return False
    own = next((window for window in sight.windows if window.id == element.window_id), None)
    title = own.title if own else element.window
    if title != sight.subject:
        return any(window.title == title for window in sight.windows)
    seen = {each.window_id for each in sight.elements}
    return own is not None and bool(seen) and own.id not in seen


def _element_key(element: Element) -> tuple[Any, ...]:
    return element.role, element.text, element.value, element.states, element.rect


def serialize_elements(elements: Sequence[Element], transform: Transform | None) -> list[dict[str, Any]]:
    """Serialize the elements for models; password values are left out."""
    told = [dict(element_wire(element, transform)) for element in elements]
    for element, shown in zip(elements, told, strict=True):
        shown |= {key: outline.escape_invisible(shown[key]) for key in ("text", "value") if key in shown}
        if "password" in element.states:
            shown.pop("value", None)
    return told
