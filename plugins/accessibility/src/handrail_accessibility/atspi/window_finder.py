"""Selection of the window to read, and messages for when there is none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from handrail import AmbiguousElement, Downstream, NotFound, ToolUnavailable, Window
from handrail.text import fold_text
from handrail_accessibility.atspi.transform_resolver import TransformResolver
from handrail_accessibility.atspi.windows import ScannedWindows, TopLevelWindow
from handrail_accessibility.tree.wording import format_title


async def find_window(windows: ScannedWindows, named: str | None, places: TransformResolver) -> TopLevelWindow | None:
    """Return the window with that title or `Window.id`, or the active one; None if neither is given and none is active.

    Raises `NotFound` or `AmbiguousElement`, which list the existing windows.
    """
    if named is None:
        return await _find_active(windows.shown, places.services)
    known = await places.with_id(named, [window.node for window in windows.shown])
    fitting = [window for window in windows.shown if window.node in known] or _find_best_matches(windows.shown, named)
    if len(fitting) > 1:
        fitting = [window for window in fitting if window.active] or fitting
    if len(fitting) == 1:
        return fitting[0]
    if not fitting and (hung := _find_best_matches(windows.unanswered, named)):
        raise Downstream(
            f"window {format_title(hung[0].title)!r} cannot be read: {' or '.join(windows.silent)} does not answer",
            hint="wait for the program, or end it",
        )
    ids = await places.ids([window.node for window in fitting or windows.shown])
    candidates = [
        {"window": format_title(window.title), **({"id": id} if id else {})}
        for window, id in zip(fitting or windows.shown, ids, strict=True)
    ]
    details = {"candidates": candidates}
    if fitting:
        titles = _join_quoted([format_title(window.title) for window in fitting])
        raise AmbiguousElement(
            f"{len(fitting)} windows fit {named!r}: {titles}",
            hint="give more of the title, or a window's id",
            details=details,
        )
    raise NotFound(
        f"no window fits {named!r}; {_describe_windows(windows)}", hint="give a part of a title", details=details
    )


def build_read_note(windows: ScannedWindows, chosen: TopLevelWindow | None, *, late: bool) -> str:
    """Return the notes that a reader needs in addition to the elements."""
    notes = [f"skipped, because it does not answer: {name}" for name in windows.silent]
    if late:
        notes.append("the deadline passed, so this is only a part")
    elif chosen is None:
        notes.append(f"no window is active; {_describe_windows(windows)}")
    return "; ".join(notes)


async def is_active_window_silent(windows: ScannedWindows, services: Callable[[str], Awaitable[Any]]) -> bool:
    """Return True if the active window belongs to an application that is not answering."""
    if not windows.unanswered:
        return False
    known = await _fetch_active_window(services)
    return any(window.active if known is None else window.title == known.title for window in windows.unanswered)


async def describe_unpublished_window(services: Callable[[str], Awaitable[Any]]) -> str:
    """Describe an active window whose program publishes no tree, with remedies; empty without such a window."""
    active = await _fetch_active_window(services)
    if active is None:
        return ""
    return (
        f"the active window {format_title(active.title)!r} is of {active.process or 'a program'}, which publishes no tree: start it again with "
        "--force-renderer-accessibility (Chromium, Electron), QT_LINUX_ACCESSIBILITY_ALWAYS_ON=1 (Qt) or libatk-wrapper-java-jni "
        "(Java), on a desktop whose "
        'toolkit-accessibility is on, or have its picture read (backend_fallback = ["ocr"])'
    )


async def _find_active(
    shown: Sequence[TopLevelWindow], services: Callable[[str], Awaitable[Any]]
) -> TopLevelWindow | None:
    active = [window for window in shown if window.active]
    if len(active) == 1:
        return active[0]
    # A toolkit may claim it for several windows, or for none: the window manager knows.
    known = await _fetch_active_window(services)
    title = known and known.title
    return next((window for window in active or shown if window.title == title), active[0] if active else None)


async def _fetch_active_window(services: Callable[[str], Awaitable[Any]]) -> Window | None:
    try:
        screen = await services("screen")
        return next((window for window in await screen.windows() if window.active), None)
    # No plugin knows the screen. That the screen is gone is an answer, and not this one.
    except ToolUnavailable:
        return None


def _find_best_matches(shown: Sequence[TopLevelWindow], title: str) -> list[TopLevelWindow]:
    """Return the windows that match best.

    The whole title, else a part of it, else a part of the program's name, which also replaces a missing title.
    """
    sought = fold_text(title)
    ranks: Sequence[list[TopLevelWindow]] = (
        [window for window in shown if window.node.name == title],
        [window for window in shown if fold_text(window.node.name) == sought],
        [window for window in shown if fold_text(format_title(window.title)) == sought],
        [window for window in shown if sought in fold_text(window.node.name)],
        [window for window in shown if sought in fold_text(window.app_name)],
    )
    return next((fitting for fitting in ranks if fitting), list[TopLevelWindow]())


def _describe_windows(windows: ScannedWindows) -> str:
    titles = [format_title(window.title) for window in windows.shown]
    there = f"the windows are {_join_quoted(titles)}" if titles else "there is no window"
    silent = f"; not answering: {', '.join(windows.silent)}" if windows.silent else ""
    return there + silent


def _join_quoted(titles: Sequence[str]) -> str:
    return ", ".join(repr(title) for title in titles)
