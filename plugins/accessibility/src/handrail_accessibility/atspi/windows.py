"""The windows of every application on the bus, and which applications do not answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from handrail.desktop.load_timeouts import scale_timeout
from handrail_accessibility.atspi.bus import (
    DBUS_DAEMON,
    REGISTRY_NAME,
    ROOT_PATH,
    AccessibilityBus,
    CallFailed,
    NoAnswer,
    call_or_none,
    gather_results,
)
from handrail_accessibility.atspi.nodes import ACCESSIBLE_INTERFACE, AtSpiNode, fetch_children, fetch_nodes
from handrail_accessibility.atspi.roles import POPUP, AtSpiState

# An idle application answers in a millisecond; one that was silent once may not cost every later read as much again.
ANSWER_TIMEOUT_S = 0.5
SILENT_APP_TIMEOUT_S = 0.1


@dataclass(frozen=True, slots=True)
class TopLevelWindow:
    """A window as its application publishes it."""

    node: AtSpiNode
    app_name: str

    @property
    def title(self) -> str:
        return self.node.name or self.app_name

    @property
    def active(self) -> bool:
        return self.node.has(AtSpiState.ACTIVE)

    @property
    def shown(self) -> bool:
        """True if a user would count it as a window: it is showing or minimized, and not a pop-up."""
        there = self.node.has(AtSpiState.SHOWING) or self.node.has(AtSpiState.ICONIFIED) or self.active
        return there and not self.popup

    @property
    def popup(self) -> bool:
        """True for a menu or list that floats over the window it belongs to."""
        return self.node.role == POPUP and not self.node.name


@dataclass(frozen=True, slots=True)
class ScannedWindows:
    """All windows; the names of the applications that did not answer, and the windows that these had when they last did."""

    windows: tuple[TopLevelWindow, ...]
    silent: tuple[str, ...] = ()
    unanswered: tuple[TopLevelWindow, ...] = ()

    @property
    def shown(self) -> tuple[TopLevelWindow, ...]:
        return tuple(window for window in self.windows if window.shown)

    @property
    def titles(self) -> tuple[str, ...]:
        """The titles of all windows a user would count, including those whose application hangs."""
        return tuple(self.named.values())

    @property
    def named(self) -> dict[tuple[str, str], str]:
        """The same, by each window's reference."""
        return {window.node.ref: window.title for window in (*self.shown, *self.unanswered) if window.shown}

    def popups_of(self, app: str) -> list[TopLevelWindow]:
        return [w for w in self.windows if w.node.app == app and w.popup and w.node.has(AtSpiState.SHOWING)]


@dataclass(slots=True)
class WindowScan:
    """Asks all applications at once for their windows, and remembers what they said and which were silent the last time."""

    bus: AccessibilityBus
    _known: dict[str, list[TopLevelWindow]] = field(default_factory=dict[str, list[TopLevelWindow]])
    _silent: set[str] = field(default_factory=set[str])

    async def call(self, answer: float = ANSWER_TIMEOUT_S) -> ScannedWindows:
        """Return the windows of every application that answers in `answer` seconds.

        An application that was silent last time is given less, unless all are given more than usual.
        """
        references = await fetch_children(self.bus, REGISTRY_NAME, ROOT_PATH)
        apps = list(dict.fromkeys(app for app, _ in references))
        answers = await gather_results(self._windows_of(app, answer) for app in apps)
        said = {app: answer for app, answer in zip(apps, answers, strict=True) if answer is not None}
        self._known = {app: said.get(app, self._known.get(app, [])) for app in apps}
        self._silent = set(apps) - set(said)
        silent = [app for app in apps if app not in said]
        return ScannedWindows(
            windows=tuple(window for windows in said.values() for window in windows),
            silent=tuple(await gather_results(describe_process(self.bus, app) for app in silent)),
            unanswered=tuple(window for app in silent for window in self._known[app]),
        )

    async def _windows_of(self, app: str, answer: float) -> list[TopLevelWindow] | None:
        """Return an application's windows; None if it does not answer in time, empty if it is just exiting."""
        silent = app in self._silent and answer <= ANSWER_TIMEOUT_S
        try:
            async with asyncio.timeout(scale_timeout(SILENT_APP_TIMEOUT_S if silent else answer)):
                name = await call_or_none(self.bus.get, app, ROOT_PATH, ACCESSIBLE_INTERFACE, "Name")
                children = await fetch_children(self.bus, app, ROOT_PATH)
                nodes = await fetch_nodes(self.bus, children)
        except (TimeoutError, NoAnswer):
            return None
        except CallFailed:
            return []
        return [TopLevelWindow(node, str(name or "")) for node in nodes]


async def describe_process(bus: AccessibilityBus, app: str) -> str:
    """Return the name of the process behind a unique bus name, in a form that a user may recognize."""
    reply = await call_or_none(bus.call, *DBUS_DAEMON, "GetConnectionUnixProcessID", "s", [app])
    try:
        return f"{Path(f'/proc/{reply[0]}/comm').read_text().strip()} (process {reply[0]})" if reply else app
    except OSError:
        return app
