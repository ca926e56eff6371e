"""The windows of the desktop as a workflow sees them, and what shows in the active one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import Any

from handrail import AmbiguousElement, Downstream, NotFound, Rect
from handrail.text import fold_text
from handrail_workflows.steps import WorkflowSteps

# What is looked for may be far down in a window.
MAX_TREE_DEPTH = 100
# Of what shows in a window, as many as each call tells.
MAX_PAGES = 20


@dataclass(frozen=True, slots=True)
class ShownWindow:
    """A window."""

    id: str
    title: str
    process: str
    pid: int | None
    active: bool
    rect: Rect


@dataclass(frozen=True, slots=True)
class UiElement:
    """An element of a window, as `get_ui_context` tells it."""

    id: str
    role: str
    name: str
    value: str
    states: frozenset[str]
    automation_id: str
    actions: frozenset[str]
    # Screen pixels; None where it does not show.
    rect: Rect | None

    def has(self, *states: str) -> bool:
        return self.states.issuperset(states)

    @property
    def usable(self) -> bool:
        return self.states.isdisjoint(("disabled", "offscreen"))


async def list_windows(steps: WorkflowSteps) -> list[ShownWindow]:
    """Return all windows except popups, topmost first."""
    listed = await steps.look("window_list")
    return [
        ShownWindow(
            w["id"],
            w["title"],
            w["process"],
            w["pid"],
            w["active"],
            Rect(w["x"], w["y"], w["width"], w["height"]),
        )
        for w in listed["windows"]
        if w["state"] != "popup"
    ]


async def find_active_window(steps: WorkflowSteps) -> ShownWindow:
    """Return the window that has the keyboard focus; `Downstream` if no window is active."""
    found = next((window for window in await list_windows(steps) if window.active), None)
    if found is None:
        raise Downstream("no window is active", hint="bring one to the front with window_focus, or start a program")
    return found


async def read_elements(steps: WorkflowSteps) -> list[UiElement]:
    """Return the elements of the active window; empty if its program provides no accessibility tree of it.

    Raises `Downstream` if there are too many elements.
    """
    whole: dict[str, Any] = {"full": True, "max_depth": MAX_TREE_DEPTH}
    asked, shown = whole, list[UiElement]()
    for _ in range(MAX_PAGES):
        seen = await steps.context.call("get_ui_context", asked)
        if not seen.ok and not shown:
            return []
        if not seen.ok:
            # It has changed meanwhile.
            asked, shown = whole, []
            continue
        shown += [_build_element(steps, element) for element in seen["elements"]]
        if not (seen["truncated"] and seen["elements"]):
            break
        asked = {**whole, "after": shown[-1].id}
    else:
        raise Downstream(
            "the active window shows more than can be read", hint="work it by observe_screen, part by part"
        )
    active = next((window for window in await list_windows(steps) if window.active), None)
    return (
        shown
        if active is None or seen["foreground_window"] == active.title or _is_of_window(shown, active.rect)
        else []
    )


async def require_elements(steps: WorkflowSteps) -> list[UiElement]:
    """Return the elements of the active window; `Downstream` if none are reported.

    In that case, an element cannot be said to be missing.
    """
    if not (shown := await read_elements(steps)):
        now = await find_active_window(steps)
        raise Downstream(
            f"nothing is told of what {now.title!r} shows: its program publishes no tree, or does not answer",
            hint="get_ui_context says which; work it by execute_gui, by points of a picture",
        )
    return shown


def _is_of_window(shown: Sequence[UiElement], window: Rect) -> bool:
    """Return True if these elements belong to that window: their bounding box covers at least half of it.

    A dialog without a tree, or a bubble, may be in front of a window that has one.
    """
    rects = [part.rect.intersect(window) for part in shown if part.rect is not None]
    rects = [rect for rect in rects if not rect.empty]
    if not rects:
        return False
    width = max(r.x + r.width for r in rects) - min(r.x for r in rects)
    height = max(r.y + r.height for r in rects) - min(r.y for r in rects)
    return 2 * width * height >= window.width * window.height


def _build_element(steps: WorkflowSteps, element: Mapping[str, Any]) -> UiElement:
    whole = steps.context.observations.element(element["id"])
    return UiElement(
        element["id"],
        element["type"],
        whole.text,
        element.get("value") or "",
        frozenset(element["states"]),
        element["automation_id"] or "",
        frozenset(element["actions"]),
        whole.rect,
    )


def find_app_windows(found: Sequence[ShownWindow], name: str, programs: Collection[str] = ()) -> list[ShownWindow]:
    """Return the windows of a program.

    `name` is the ID or title of a window, or the name of its process; `programs` are the file names of the program.
    Raises `NotFound` if none matches, `AmbiguousElement` if several programs match.
    """
    sought = fold_text(name)
    known = {fold_text(PurePath(program).name) for program in programs}
    tiers: tuple[Callable[[ShownWindow], bool], ...] = (
        lambda w: w.id == name,
        lambda w: fold_text(w.title) == sought,
        lambda w: fold_text(w.process) == sought,
        lambda w: fold_text(w.process) in known,
        lambda w: sought in fold_text(w.title),
        lambda w: sought in fold_text(w.process),
    )
    for fits in tiers:
        fitting = [window for window in found if fits(window)]
        if len({window.pid for window in fitting}) > 1:
            raise AmbiguousElement(
                f"the windows of several programs fit {name!r}",
                hint="give more of the title, or a window's id",
                details={"candidates": [describe_window(window) for window in fitting]},
            )
        if fitting:
            return fitting
    raise NotFound(
        f"no window belongs to {name!r}",
        hint="launch_app starts a program; window_list shows what there is",
        details={"candidates": [describe_window(window) for window in found]},
    )


async def bring_to_front(steps: WorkflowSteps, window: ShownWindow) -> None:
    """Give it the keyboard, unless it has it."""
    if not window.active:
        await steps.take("window_focus", title=window.id)


def describe_window(window: ShownWindow) -> dict[str, Any]:
    """Describe a window for a list of candidates."""
    return {"id": window.id, "title": window.title, "process": window.process, "pid": window.pid}


def join_label_texts(elements: Iterable[UiElement]) -> str:
    """Return the texts of a dialog's labels, one per line, without repetitions."""
    return "\n".join(dict.fromkeys(part.name for part in elements if part.role == "label" and part.name))
