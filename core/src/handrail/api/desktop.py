"""A desktop as a value, and what its services can do.

Everything that belongs to one desktop is reached through such a value, so that two sessions in one process can work two desktops and
`os.environ` is never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from handrail.api.observation import Element, Frame, Rect, Window

if TYPE_CHECKING:
    from handrail.api.call import Invocation
    from handrail.api.verdict import KeyboardTarget

# What leads a program to a screen. A private desktop replaces all of it, so that nothing shows up on a person's own.
SCREEN_VARIABLES = frozenset((
    "DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "AT_SPI_BUS_ADDRESS",
    "SESSION_MANAGER", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "DESKTOP_STARTUP_ID", "XDG_ACTIVATION_TOKEN",
    "GDK_BACKEND", "QT_QPA_PLATFORM", "SDL_VIDEODRIVER", "MOZ_ENABLE_WAYLAND", "WINDOWID",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Desktop:
    """One screen with its buses.

    `name` is "current" for the person's own, else the name it was started under. `environment` holds what a program needs to appear on
    it (DISPLAY, DBUS_SESSION_BUS_ADDRESS, XDG_RUNTIME_DIR …), to be laid over the session's own environment. `private` says that nobody's
    own screen is touched. `temporary`: it ends with this process.
    """

    name: str
    display: str | None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    private: bool = False
    temporary: bool = False
    scale: float = 1.0

    @property
    def key(self) -> str:
        """What its lease is held under, the same in every process: the display, else the name."""
        return (self.display or self.name).replace("/", "_").replace(":", "x")

    @property
    def switch(self) -> str:
        """The name of its stop switch. One that nobody started by name has one of its own, as there may be several of them."""
        return f"private.{self.key}" if self.temporary else self.name


def remove_screen_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment without what leads a program to a screen."""
    return {name: value for name, value in environment.items() if name not in SCREEN_VARIABLES}


@runtime_checkable
class Desktops(Protocol):
    """The capability `desktops` (scope process): finds and starts desktops."""

    async def current(self) -> Desktop:
        """The person's own desktop; its `display` is None where there is no screen."""
        ...

    async def start(self, name: str, *, width: int = 1280, height: int = 800) -> Desktop:
        """A new private desktop that ends when this process does; `DesktopError` says what is missing."""
        ...

    async def attach(self, name: str) -> Desktop:
        """A desktop that `handrail desktop start` left running; `DesktopError` names those that are."""
        ...


@runtime_checkable
class Screen(Protocol):
    """The capability `screen` (scope desktop): pictures and windows."""

    async def monitors(self) -> list[Rect]:
        """Every monitor's rectangle in screen pixels, the main one first."""
        ...

    async def capture(self, area: Rect | None = None) -> Frame:
        """A picture of `area`, or of the whole desktop."""
        ...

    async def windows(self) -> list[Window]:
        """The top-level windows that a person would see in a task list, topmost first."""
        ...


@dataclass(frozen=True, slots=True)
class Tree:
    """What an accessibility tree showed. `window` and `focused` are the title of the window read and the element with the focus in it."""

    elements: tuple[Element, ...]
    window: str | None = None
    focused: Element | None = None
    truncated: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Glance:
    """What is enough to tell whether a window has changed: a short hash of its visible tree, and the element with the focus."""

    fingerprint: str
    focused: Element | None = None


@runtime_checkable
class Accessibility(Protocol):
    """The capability `accessibility` (scope desktop): reading and using the accessibility tree by `Element.ref`."""

    async def tree(
        self,
        *,
        window: str | None = None,
        max_depth: int | None = None,
        query: str | None = None,
        full: bool = False,
        budget: int = 500,
        deadline: float = 3.0,
    ) -> Tree:
        """What the window (part of its title, or its `Window.id`; default: the active one) shows now, in reading order, not yet numbered.

        Interactive and named elements only, unless `full`. `query` keeps those whose text, role or value contains it. At most `budget`
        elements in `deadline` seconds, longer on a busy machine; what was left out is said by `truncated`. `NotFound` names the windows when
        none fits.
        """
        ...

    async def focused(self) -> Element | None:
        """The element that has the keyboard focus, or None."""
        ...

    async def refresh(self, element: Element) -> Element | None:
        """The same element as it is now, with its states, value and rectangle; None when it is gone."""
        ...

    async def read_text(self, element: Element) -> str | None:
        """The whole text of a text element, None when it keeps none."""
        ...

    async def insert_text(self, element: Element, text: str) -> bool:
        """Insert at the caret of an editable element by value, replacing its selection; False when it cannot take it."""
        ...

    async def glance(self) -> Glance:
        """The active window in short, to compare with a later glance."""
        ...


@runtime_checkable
class FocusService(Protocol):
    """The capability `focus` (scope session): what the input of a call would do to a terminal, asked before the call is judged.

    The capability `shell` is asked the same of input to a command that an earlier call started.
    """

    async def focus(self, invocation: Invocation) -> KeyboardTarget | None:
        """The terminal that its keys would go to; None when they go to no terminal. Changes nothing."""
        ...
