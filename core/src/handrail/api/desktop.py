"""Desktop values, and the interfaces of desktop services.

Everything that is specific to a desktop is reached through such a value. Two sessions in one process can therefore use
two desktops, and `os.environ` is never changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from handrail.api.observation import Element, Frame, Rect, Window

if TYPE_CHECKING:
    from handrail.api.call import Invocation
    from handrail.api.verdict import KeyboardTarget

__all__ = ["SCREEN_VARIABLES", "remove_screen_variables"]

# What leads a program to a screen. A private desktop replaces all of it, so that nothing shows up on a person's own.
SCREEN_VARIABLES = frozenset((
    "DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "AT_SPI_BUS_ADDRESS",
    "SESSION_MANAGER", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "DESKTOP_STARTUP_ID", "XDG_ACTIVATION_TOKEN",
    "GDK_BACKEND", "QT_QPA_PLATFORM", "SDL_VIDEODRIVER", "MOZ_ENABLE_WAYLAND", "WINDOWID",
))  # fmt: skip


@dataclass(frozen=True, slots=True)
class Desktop:
    """Screen with its buses.

    `name` is "current" for the user's own desktop, else the name it was started under. `environment` holds the
    variables a program needs to appear on it (DISPLAY, DBUS_SESSION_BUS_ADDRESS, XDG_RUNTIME_DIR …), to be merged over
    the session's own environment. `private`: it is not the screen of any user. `temporary`: it ends with this process.
    """

    name: str
    display: str | None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    private: bool = False
    temporary: bool = False
    scale: float = 1.0

    @property
    def key(self) -> str:
        """Key of its lease, the same in every process: the display, else the name."""
        return (self.display or self.name).replace("/", "_").replace(":", "x")

    @property
    def switch(self) -> str:
        """Name of its stop switch; temporary desktops have separate switches, as there may be several of them."""
        return f"private.{self.key}" if self.temporary else self.name


def remove_screen_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment without the variables that connect a program to a screen."""
    return {name: value for name, value in environment.items() if name not in SCREEN_VARIABLES}


@runtime_checkable
class Desktops(Protocol):
    """The capability `desktops` (scope process): finds and starts desktops."""

    async def current(self) -> Desktop:
        """Return the user's own desktop; its `display` is None if there is no screen."""
        ...

    async def start(self, name: str, *, width: int = 1280, height: int = 800) -> Desktop:
        """Start a private desktop that ends with this process. Raises `DesktopError`, which says what is missing."""
        ...

    async def attach(self, name: str) -> Desktop:
        """Return a desktop that `handrail desktop start` left running.

        Raises `DesktopError`, which lists the running ones.
        """
        ...


@runtime_checkable
class Screen(Protocol):
    """The capability `screen` (scope desktop): pictures and windows."""

    async def monitors(self) -> list[Rect]:
        """Return the rectangle of every monitor in screen pixels, the primary one first."""
        ...

    async def capture(self, area: Rect | None = None) -> Frame:
        """Capture `area`, or the entire desktop."""
        ...

    async def windows(self) -> list[Window]:
        """Return the top-level windows that a task list would show, topmost first."""
        ...


@dataclass(frozen=True, slots=True)
class Tree:
    """Contents of an accessibility tree.

    `window` is the title of the window read, `focused` its element with the focus.
    """

    elements: tuple[Element, ...]
    window: str | None = None
    focused: Element | None = None
    truncated: bool = False
    note: str = ""


@dataclass(frozen=True, slots=True)
class Glance:
    """Short summary to detect window changes: a hash of the visible tree, and the element with the focus."""

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
        """Return the current contents of a window in reading order, with elements not yet numbered.

        `window` is a part of its title, or its `Window.id`; default: the active one. Returns only interactive and named
        elements, unless `full`. `query` keeps those whose text, role or value contains it. At most `budget` elements
        are read within `deadline` seconds (longer on a busy machine); `truncated` reports omissions. Raises `NotFound`,
        which lists the windows, if none matches.
        """
        ...

    async def focused(self) -> Element | None:
        """Return the element that has the keyboard focus, or None."""
        ...

    async def refresh(self, element: Element) -> Element | None:
        """Return the element with its current states, value and rectangle, or None if it is gone."""
        ...

    async def read_text(self, element: Element) -> str | None:
        """Return the full text of a text element, or None if it has no text."""
        ...

    async def insert_text(self, element: Element, text: str) -> bool:
        """Insert at the caret of an editable element by value, replacing its selection; False when it cannot take it."""
        ...

    async def glance(self) -> Glance:
        """Return a summary of the active window, for comparison with a later glance."""
        ...


@runtime_checkable
class FocusService(Protocol):
    """The capability `focus` (scope session): what the input of a call would do to a terminal, asked before the call is judged.

    The capability `shell` is asked the same of input to a command that an earlier call started.
    """

    async def focus(self, invocation: Invocation) -> KeyboardTarget | None:
        """Return the terminal that the call's keystrokes would go to, or None if they go elsewhere. Changes nothing."""
        ...
