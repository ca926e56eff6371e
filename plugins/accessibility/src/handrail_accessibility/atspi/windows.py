"""The windows of every application on the bus, and which applications do not answer."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

from handrail.desktops.patience import patience
from handrail_accessibility.atspi.bus import DBUS, REGISTRY, ROOT, Bus, CallFailed, NoAnswer, maybe, together
from handrail_accessibility.atspi.nodes import ACCESSIBLE, Node, children_of, fetch_nodes
from handrail_accessibility.atspi.roles import POPUP, State

# An idle application answers in a millisecond; one that was silent once may not cost every later read as much again.
PATIENCE_S = 0.5
PATIENCE_WITH_THE_SILENT_S = 0.1


@dataclass(frozen=True, slots=True)
class TopLevel:
    """A window as its application publishes it."""

    node: Node
    app_name: str

    @property
    def title(self) -> str:
        return self.node.name or self.app_name

    @property
    def active(self) -> bool:
        return self.node.has(State.ACTIVE)

    @property
    def shown(self) -> bool:
        """Whether a person would count it as a window: it shows, or is only minimised, and is no pop-up."""
        there = self.node.has(State.SHOWING) or self.node.has(State.ICONIFIED) or self.active
        return there and not self.popup

    @property
    def popup(self) -> bool:
        """A menu or list that floats over the window it belongs to."""
        return self.node.role == POPUP and not self.node.name


@dataclass(frozen=True, slots=True)
class Windows:
    """All windows; the names of the applications that did not answer, and the windows that these had when they last did."""

    windows: tuple[TopLevel, ...]
    silent: tuple[str, ...] = ()
    unanswered: tuple[TopLevel, ...] = ()

    @property
    def shown(self) -> tuple[TopLevel, ...]:
        return tuple(window for window in self.windows if window.shown)

    @property
    def titles(self) -> tuple[str, ...]:
        """Of every window a person would count; one whose application hangs is still there."""
        return tuple(self.named.values())

    @property
    def named(self) -> dict[tuple[str, str], str]:
        """The same, by each window's reference."""
        return {window.node.ref: window.title for window in (*self.shown, *self.unanswered) if window.shown}

    def popups_of(self, app: str) -> list[TopLevel]:
        return [w for w in self.windows if w.node.app == app and w.popup and w.node.has(State.SHOWING)]


@dataclass(slots=True)
class Roll:
    """Asks all applications at once for their windows, and remembers what they said and which were silent the last time."""

    bus: Bus
    _known: dict[str, list[TopLevel]] = field(default_factory=dict[str, list[TopLevel]])
    _silent: set[str] = field(default_factory=set[str])

    async def call(self, answer: float = PATIENCE_S) -> Windows:
        """The windows of every application that answers in `answer` seconds.

        One that was silent the last time is given less, unless more than usual is given to all.
        """
        references = await children_of(self.bus, REGISTRY, ROOT)
        apps = list(dict.fromkeys(app for app, _ in references))
        answers = await together(self._windows_of(app, answer) for app in apps)
        said = {app: answer for app, answer in zip(apps, answers, strict=True) if answer is not None}
        self._known = {app: said.get(app, self._known.get(app, [])) for app in apps}
        self._silent = set(apps) - set(said)
        silent = [app for app in apps if app not in said]
        return Windows(
            windows=tuple(window for windows in said.values() for window in windows),
            silent=tuple(await together(process_name(self.bus, app) for app in silent)),
            unanswered=tuple(window for app in silent for window in self._known[app]),
        )

    async def _windows_of(self, app: str, answer: float) -> list[TopLevel] | None:
        """None when it does not answer in time; nothing when it is just going away."""
        silent = app in self._silent and answer <= PATIENCE_S
        try:
            async with asyncio.timeout(patience(PATIENCE_WITH_THE_SILENT_S if silent else answer)):
                name = await maybe(self.bus.get, app, ROOT, ACCESSIBLE, "Name")
                children = await children_of(self.bus, app, ROOT)
                nodes = await fetch_nodes(self.bus, children)
        except (TimeoutError, NoAnswer):
            return None
        except CallFailed:
            return []
        return [TopLevel(node, str(name or "")) for node in nodes]


async def process_name(bus: Bus, app: str) -> str:
    """The name of the process behind a unique bus name, as a person may know it."""
    reply = await maybe(bus.call, *DBUS, "GetConnectionUnixProcessID", "s", [app])
    try:
        return f"{Path(f'/proc/{reply[0]}/comm').read_text().strip()} (process {reply[0]})" if reply else app
    except OSError:
        return app
