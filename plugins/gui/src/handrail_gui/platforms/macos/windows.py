"""Monitors and windows of macOS. Places are points from the main monitor's upper left corner, as Quartz and the accessibility count them.

CGWindowList tells what lies over what, and the accessibility of each program what its windows are and changes them; the two know each other's
windows by their program and place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handrail import Downstream, Rect, Window
from handrail_gui.platforms.geometry import find_monitor_index
from handrail_gui.platforms.macos.frameworks import MacFrameworks
from handrail_gui.platforms.protocol import NativeMonitor, WindowState
from handrail_gui.platforms.terminals import TerminalWindow

ON_SCREEN_ONLY, EXCLUDE_DESKTOP = 1, 16
# Layers of CGWindowLevel: from programs' windows on; the pointer and beyond are no windows.
NORMAL_LAYER, CURSOR_LAYER = 0, 2147483630
AX_POINT_TYPE, AX_SIZE_TYPE = 1, 2
# Seconds that a program is given for each answer.
MESSAGING_TIMEOUT_S = 1.0
# Programs that a person sees in the Dock.
REGULAR_POLICY = 0
ACTIVATE_IGNORING_OTHERS = 2
# By how many points a window that fills its monitor may fall short.
MAXIMIZED_TOLERANCE = 3
WINDOW_ATTRIBUTES = ("AXTitle", "AXPosition", "AXSize", "AXMinimized", "AXFullScreen", "AXSubrole")
# Terminals whose names do not say it.
TERMINAL_PROGRAMS = frozenset(("Warp", "kitty", "Alacritty", "Ghostty", "Hyper", "Tabby", "Rio"))
TERMINAL_NAME_PART = "term"

ACCESSIBILITY_HINT = (
    "System Settings > Privacy & Security > Accessibility: switch on the program that Handrail was started from (the terminal or the editor), "
    "and start that program again"
)


@dataclass(frozen=True, slots=True)
class ListedWindow:
    """A window as CGWindowList tells it."""

    number: int
    pid: int
    owner: str
    title: str
    rect: Rect
    layer: int
    alpha: float

    @classmethod
    def of(cls, told: Mapping[str, Any]) -> ListedWindow:
        """Parse an entry of the window list. Titles are present only with the screen recording permission."""
        bounds = told["kCGWindowBounds"]
        rect = Rect(*(round(bounds[name]) for name in ("X", "Y", "Width", "Height")))
        return cls(
            int(told["kCGWindowNumber"]),
            int(told["kCGWindowOwnerPID"]),
            str(told.get("kCGWindowOwnerName", "")),
            str(told.get("kCGWindowName") or ""),
            rect,
            int(told.get("kCGWindowLayer", 0)),
            float(told.get("kCGWindowAlpha", 1)),
        )


@dataclass(frozen=True, slots=True)
class AccessibleWindow:
    """A window as reported by its program's accessibility interface, with its accessibility element."""

    pid: int
    program: str
    title: str
    rect: Rect
    minimized: bool
    fullscreen: bool
    element: Any = field(default=None, compare=False)


def match_windows(
    own: Sequence[AccessibleWindow], listed: Sequence[ListedWindow]
) -> list[tuple[AccessibleWindow, ListedWindow]]:
    """Match the windows that both sources report, in the order of the list.

    Each window is used once. Both sources report a minimized window at its former position.
    """
    left = list(own)
    found: list[tuple[AccessibleWindow, ListedWindow]] = []
    for line in listed:
        fitting = [each for each in left if each.pid == line.pid and each.rect == line.rect]
        named = [each for each in fitting if each.title == line.title] or fitting
        if line.layer == NORMAL_LAYER and named:
            left.remove(named[0])
            found.append((named[0], line))
    return found


def determine_state(own: AccessibleWindow, monitors: Sequence[NativeMonitor]) -> WindowState:
    """Return the state of a window.

    macOS has no maximized windows: one that fills its monitor, apart from panels, counts as maximized.
    """
    if own.minimized:
        return "minimized"
    if own.fullscreen:
        return "fullscreen"
    free = monitors[find_monitor_index(own.rect, [monitor.rect for monitor in monitors])].free
    off = (abs(a - b) for a, b in zip(own.rect.corners(), free.corners(), strict=True))
    return "maximized" if max(off) <= MAXIMIZED_TOLERANCE else "normal"


def build_surface(line: ListedWindow) -> Window | None:
    """Return a surface that covers the screen and takes clicks.

    Returns None for the pointer, for transparent surfaces, and for the desktop beneath everything.
    """
    if line.rect.empty or line.alpha == 0 or not NORMAL_LAYER <= line.layer < CURSOR_LAYER:
        return None
    state = "normal" if line.layer == NORMAL_LAYER else "popup"
    return Window(hex(line.number), line.title, line.owner, line.pid, line.rect, state=state)


def flip_rect(told: Any, main_height: float) -> Rect:
    """Convert an AppKit rectangle, whose y axis starts at the main monitor's lower left corner and points up."""
    top = main_height - told.origin.y - told.size.height
    return Rect(round(told.origin.x), round(top), round(told.size.width), round(told.size.height))


@dataclass(slots=True)
class MacWindows:
    """`NativeWindows` on macOS. `_before` is where windows were before they were asked to fill their monitor."""

    parts: MacFrameworks
    _before: dict[str, Rect] = field(default_factory=dict[str, Rect])

    def monitors(self) -> Sequence[NativeMonitor]:
        """Return the monitors, the main one first; its corner is 0, 0."""
        screens = list(self.parts.appkit.NSScreen.screens())
        if not screens:
            raise Downstream("macOS tells of no monitor", hint="log in at the screen, or connect one")
        height = screens[0].frame().size.height
        return [
            NativeMonitor(
                flip_rect(screen.frame(), height), flip_rect(screen.visibleFrame(), height), screen.backingScaleFactor()
            )
            for screen in screens
        ]

    def windows(self) -> list[Window]:
        """Return the windows of programs in the Dock, topmost first; minimized ones last."""
        monitors, active = self.monitors(), self._active()
        screens = [monitor.rect for monitor in monitors]
        return [
            Window(
                hex(line.number),
                own.title or line.title,
                own.program,
                own.pid,
                own.rect,
                find_monitor_index(own.rect, screens),
                determine_state(own, monitors),
                active=active == (own.pid, own.title, own.rect),
                frame=own.rect,
            )
            for own, line in self._joined()
        ]

    def surfaces(self) -> list[Window]:
        """Everything that covers a part of the screen and takes clicks, topmost first."""
        return [surface for line in self._listed(ON_SCREEN_ONLY) if (surface := build_surface(line)) is not None]

    def terminals(self) -> list[TerminalWindow]:
        """Return the terminal windows, topmost first. The program that reads their keys cannot be determined."""
        return [
            TerminalWindow(window.id, window.active)
            for window in self.windows()
            if window.state != "minimized"
            and (window.process in TERMINAL_PROGRAMS or TERMINAL_NAME_PART in window.process.casefold())
        ]

    def ask_active(self, window: str) -> None:
        """Ask for a window to be raised and to get the keyboard."""
        own = self._own(window)
        if own.minimized:
            self._set(own, "AXMinimized", False)
        program = self.parts.appkit.NSRunningApplication.runningApplicationWithProcessIdentifier_(own.pid)
        if program is not None:
            program.activateWithOptions_(ACTIVATE_IGNORING_OTHERS)
        self._set(own, "AXMain", True)
        self.parts.accessibility.AXUIElementPerformAction(own.element, "AXRaise")

    def has_keyboard(self, window: str) -> bool:
        """Return True if it is the focused window of the frontmost program."""
        return any(each.id == window and each.active for each in self.windows())

    def ask_state(self, window: str, state: WindowState) -> None:
        """Ask for it to be normal, minimized or as large as its monitor lets it."""
        own = self._own(window)
        if state == "minimized":
            self._set(own, "AXMinimized", True)
        elif state == "maximized":
            monitors = self.monitors()
            self._before[window] = own.rect
            self.ask_place(window, monitors[find_monitor_index(own.rect, [monitor.rect for monitor in monitors])].free)
        elif own.minimized or own.fullscreen:
            self._set(own, "AXMinimized" if own.minimized else "AXFullScreen", False)
        elif window in self._before:
            self.ask_place(window, self._before.pop(window))

    def ask_place(self, window: str, own: Rect) -> None:
        """Ask for it to be there. The size is asked for twice: a window is not made larger than the monitor that it comes from."""
        found, create = self._own(window), self.parts.accessibility.AXValueCreate
        size = create(AX_SIZE_TYPE, (float(own.width), float(own.height)))
        self._set(found, "AXSize", size)
        self._set(found, "AXPosition", create(AX_POINT_TYPE, (float(own.x), float(own.y))))
        self._set(found, "AXSize", size)

    def ask_to_close(self, window: str) -> None:
        """Press its close button."""
        error, button = self.parts.accessibility.AXUIElementCopyAttributeValue(
            self._own(window).element, "AXCloseButton", None
        )
        if error or self.parts.accessibility.AXUIElementPerformAction(button, "AXPress"):
            raise Downstream("the window has no close button", hint='ask its program: hotkey "cmd+w" by execute_gui')

    def _set(self, own: AccessibleWindow, name: str, value: Any) -> None:
        # Whether it came of it is read back; a refusal shows there.
        self.parts.accessibility.AXUIElementSetAttributeValue(own.element, name, value)

    def _own(self, window: str) -> AccessibleWindow:
        found = next((own for own, line in self._joined() if hex(line.number) == window), None)
        if found is None:
            raise Downstream(f"the window {window} is gone", hint="call window_list")
        return found

    def _joined(self) -> list[tuple[AccessibleWindow, ListedWindow]]:
        own = list(self._every())
        shown = match_windows(own, self._listed(ON_SCREEN_ONLY | EXCLUDE_DESKTOP))
        taken = {line.number for _, line in shown}
        rest = [each for each in own if all(each is not other for other, _ in shown)]
        away = [line for line in self._listed(0) if line.number not in taken]
        return [*shown, *match_windows(rest, away)]

    def _listed(self, option: int) -> list[ListedWindow]:
        return [ListedWindow.of(told) for told in self.parts.quartz.CGWindowListCopyWindowInfo(option, 0) or ()]

    def _every(self) -> Iterator[AccessibleWindow]:
        """Yield the windows of all programs, with one request per program.

        A program that does not answer in time contributes none.
        """
        if not self.parts.accessibility.AXIsProcessTrusted():
            raise Downstream(
                "macOS lets this program neither see nor move other programs' windows", hint=ACCESSIBILITY_HINT
            )
        for program in self.parts.appkit.NSWorkspace.sharedWorkspace().runningApplications():
            if program.activationPolicy() == REGULAR_POLICY:
                pid, name = int(program.processIdentifier()), str(program.localizedName() or "")
                element = self.parts.accessibility.AXUIElementCreateApplication(pid)
                _, windows = self.parts.accessibility.AXUIElementCopyAttributeValue(element, "AXWindows", None)
                for window in windows or ():
                    if (own := self._read(window, pid, name)) is not None:
                        yield own

    def _read(self, window: Any, pid: int, program: str) -> AccessibleWindow | None:
        """Read all attributes of a window in one call; return None if that fails or it has no rectangle."""
        error, values = self.parts.accessibility.AXUIElementCopyMultipleAttributeValues(
            window, WINDOW_ATTRIBUTES, 0, None
        )
        if error or values is None:
            return None
        title, place, size, minimized, fullscreen, _ = values
        rect = self._rect(place, size)
        # What an object has not is an error in its place, which is no True.
        return (
            None
            if rect is None
            else AccessibleWindow(
                pid,
                program,
                title if isinstance(title, str) else "",
                rect,
                minimized is True,
                fullscreen is True,
                window,
            )
        )

    def _rect(self, place: Any, size: Any) -> Rect | None:
        get = self.parts.accessibility.AXValueGetValue
        there, point = get(place, AX_POINT_TYPE, None)
        known, extent = get(size, AX_SIZE_TYPE, None)
        if not there or not known:
            return None
        return Rect(round(point.x), round(point.y), round(extent.width), round(extent.height))

    def _active(self) -> tuple[int, str, Rect] | None:
        program = self.parts.appkit.NSWorkspace.sharedWorkspace().frontmostApplication()
        if program is None:
            return None
        pid = int(program.processIdentifier())
        error, window = self.parts.accessibility.AXUIElementCopyAttributeValue(
            self.parts.accessibility.AXUIElementCreateApplication(pid), "AXFocusedWindow", None
        )
        own = None if error else self._read(window, pid, "")
        return None if own is None else (pid, own.title, own.rect)
