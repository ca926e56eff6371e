"""Values and interface that `execute_browser` uses with every browser driver.

A driver that cannot do something raises `Downstream` with an alternative. Elements are not numbered here: a driver
returns nodes with a handle and a fingerprint of its own, and the tool gives them the ids of the session.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeVar

from handrail import AmbiguousElement, Element, InvalidArguments, StaleElement

ActionEffect = Literal["confirmed", "none", "unverified"]
LoadState = Literal["load", "dom", "network"]


@dataclass(frozen=True, slots=True)
class BrowserTab:
    """A page that is open. `state` is `open`, `dialog`, `file_chooser`, `crashed`; `asks` says what a dialog or chooser asks."""

    id: str
    url: str
    title: str = ""
    active: bool = False
    state: Literal["open", "dialog", "file_chooser", "crashed"] = "open"
    asks: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class PageNode:
    """One thing on a page, or a piece of its text (`role` text). `handle` and `fingerprint` are the driver's; without one it cannot be acted on."""

    role: str
    name: str
    value: str | None = None
    states: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    url: str = ""
    depth: int = 0
    level: int = 0
    box: tuple[int, int, int, int] | None = None
    handle: Any = None
    fingerprint: str = ""
    # Whose the document is that it is in (`https://example.org`); empty where that is told by the tab's address.
    origin: str = ""

    @property
    def called(self) -> str:
        """Role and name of the node, for messages."""
        return f"{self.role} {self.name!r}"


@dataclass(frozen=True, slots=True)
class PageSnapshot:
    """Content of a page, in order.

    `total` counts everything found; `whole` is False if the search took too long and was cut short.
    """

    nodes: tuple[PageNode, ...]
    total: int
    whole: bool = True
    position: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class ActionOutcome:
    """Outcome of an action.

    `evidence` describes in words the changes that were seen; `more` has further keys of the result.
    """

    effect: ActionEffect
    evidence: tuple[str, ...] = ()
    settled: bool | None = None
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True, slots=True)
class WaitConditions:
    """Conditions to wait for; all that are given must hold.

    A text and a match of a selector, present or `gone`; a part of the address; a load state.
    """

    text: str | None = None
    selector: str | None = None
    gone: bool = False
    url: str | None = None
    until: LoadState | None = None


@dataclass(frozen=True, slots=True)
class PageText:
    """Text of a page: `html` as it is seen, or `text`.

    `hidden` counts the characters that were left out because no reader would see them.
    """

    html: str = ""
    text: str = ""
    content_type: str = "text/html"
    hidden: int = 0
    cut: bool = False


@dataclass(frozen=True, slots=True)
class DownloadedFile:
    """A file that the browser downloaded, in a folder of the driver's own; whoever takes it moves it away."""

    path: Path
    name: str
    url: str
    size: int


class PageInterrupted(Exception):
    """The page asks something, and does nothing else until it is answered."""


class StaleNode(StaleElement):
    """With the things that it may be now, still without ids."""

    def __init__(self, message: str, nodes: Sequence[PageNode]) -> None:
        super().__init__(message, hint="use a candidate's id, or take a new snapshot")
        self.nodes = nodes


class AmbiguousNode(AmbiguousElement):
    """With the first of them, still without ids."""

    def __init__(self, message: str, nodes: Sequence[PageNode]) -> None:
        super().__init__(message, hint="use a candidate's id")
        self.nodes = nodes


class TabHandle(Protocol):
    """A handle that says which tab it is of."""

    @property
    def page(self) -> str: ...


H = TypeVar("H", bound=TabHandle)


def require_handle(tab: BrowserTab, node: PageNode, kind: type[H]) -> H:
    """Return the node's handle, of the driver's own type.

    Raises `InvalidArguments` if it has none, or is in another tab.
    """
    handle = node.handle
    if not isinstance(handle, kind):
        raise InvalidArguments(f"{node.called} cannot be acted on")
    if handle.page != tab.id:
        raise InvalidArguments(
            f"{node.called} is in the tab {handle.page}, not in {tab.id}",
            hint=f"leave out tab_id, or give {handle.page!r}",
        )
    return handle


class BrowserDriver(ABC):
    """One session's browser. `lacks` are words for what it cannot do: it refuses that, with the way round it."""

    name: ClassVar[str]
    lacks: ClassVar[frozenset[str]] = frozenset()

    def be_patient(self, seconds: float) -> None:
        """Set how many seconds a page may take to answer in later calls before it is reported as hanging."""

    @abstractmethod
    async def tabs(self) -> Sequence[BrowserTab]:
        """Return the open tabs, in the order in which they were opened."""

    @abstractmethod
    async def tab(self, id: str | None) -> BrowserTab:
        """Return the tab with that id, or the active one. Raises `NotFound`, which lists the open tabs."""

    @abstractmethod
    async def open_tab(self, url: str | None) -> BrowserTab:
        """Open a tab, which becomes the active one."""

    @abstractmethod
    async def close_tab(self, tab: BrowserTab) -> ActionOutcome:
        """Close it, without asking the page."""

    @abstractmethod
    async def navigate(
        self, tab: BrowserTab, url: str, *, until: LoadState, seconds: float, login: tuple[str, str] | None = None
    ) -> ActionOutcome:
        """Go to an address."""

    @abstractmethod
    async def travel(
        self, tab: BrowserTab, where: Literal["back", "forward", "reload"], *, seconds: float
    ) -> ActionOutcome:
        """Go through the tab's history."""

    @abstractmethod
    async def snapshot(
        self, tab: BrowserTab, *, everything: bool, selector: str | None, most: int, skip: int
    ) -> PageSnapshot:
        """Return the elements on the page that can be used; with `everything`, also its text."""

    @abstractmethod
    async def locate(self, element: Element) -> PageNode:
        """Return an element that was seen before, as it is now.

        Raises `StaleElement` with candidates if it is gone or has become another.
        """

    @abstractmethod
    async def pick(
        self, tab: BrowserTab, *, selector: str | None, text: str | None, role: str | None = None
    ) -> PageNode:
        """Return the only element that a selector or a text identifies.

        Raises `NotFound`, or `AmbiguousElement` with candidates.
        """

    @abstractmethod
    async def click(self, tab: BrowserTab, node: PageNode, *, button: str, count: int, seconds: float) -> ActionOutcome:
        """Click it when it is there, still, able and on top."""

    @abstractmethod
    async def hover(self, tab: BrowserTab, node: PageNode, *, seconds: float) -> ActionOutcome:
        """Put the pointer over it."""

    @abstractmethod
    async def fill(self, tab: BrowserTab, node: PageNode, text: str, *, submit: bool, seconds: float) -> ActionOutcome:
        """Replace its text, and read it back."""

    @abstractmethod
    async def press(self, tab: BrowserTab, node: PageNode | None, key: str, *, seconds: float) -> ActionOutcome:
        """Press a key or chord (`Enter`, `Control+A`), on the node or what has the focus."""

    @abstractmethod
    async def select(self, tab: BrowserTab, node: PageNode, values: Sequence[str], *, seconds: float) -> ActionOutcome:
        """Choose from a list by value or label."""

    @abstractmethod
    async def upload(
        self, tab: BrowserTab, node: PageNode | None, paths: Sequence[Path], *, seconds: float
    ) -> ActionOutcome:
        """Give files to a file field, or to the chooser that is open."""

    @abstractmethod
    async def scroll(self, tab: BrowserTab, node: PageNode | None, direction: str, amount: float) -> ActionOutcome:
        """Scroll by `amount` views, or to an end."""

    @abstractmethod
    async def dialog(self, tab: BrowserTab, *, accept: bool, text: str | None, seconds: float) -> ActionOutcome:
        """Answer the dialog, or close the file chooser, that the page has opened."""

    @abstractmethod
    async def wait(self, tab: BrowserTab, awaited: WaitConditions, *, seconds: float) -> bool:
        """Return True if the conditions were met in time."""

    @abstractmethod
    async def read(self, tab: BrowserTab, selector: str | None) -> PageText:
        """Return the text of the page, or of a part of it."""

    @abstractmethod
    async def screenshot(self, tab: BrowserTab, node: PageNode | None, *, full: bool) -> bytes:
        """Return a screenshot as PNG."""

    @abstractmethod
    async def download(
        self, tab: BrowserTab, node: PageNode | None, url: str | None, *, seconds: float
    ) -> DownloadedFile:
        """Download the file to which a link or an address leads."""

    async def follow(self) -> None:
        """Make the tab in front the active one, where work on the screen has brought another there; where all count as shown, do nothing."""

    @abstractmethod
    async def close(self) -> None:
        """End the browser, and remove everything that it leaves."""

    def refused(self) -> Sequence[str]:
        """Return the addresses that pages were refused since the last call."""
        return ()
