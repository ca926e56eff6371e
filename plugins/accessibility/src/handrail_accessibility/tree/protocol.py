"""Platform-independent interface to a platform's accessibility tree. Tools know only this, never a platform."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from handrail import Accessibility, Element


@dataclass(frozen=True, slots=True)
class WindowSnapshot:
    """One look at a window, to compare with a later one: the titles of all windows, by what each is, and all that shows in the window of interest.

    `open` is False when that window is gone.
    """

    titles: Mapping[Any, str]
    elements: tuple[Element, ...]
    open: bool = True


@runtime_checkable
class AccessibilityController(Accessibility, Protocol):
    """The service `accessibility` in full: reading, and acting on elements by their `ref`.

    Methods that act return whether the program accepted the request, which does not prove that anything happened. All
    raise `Downstream` if the program does not answer, and `StaleElement` if the element is gone.
    """

    async def titles(self) -> tuple[str, ...]:
        """Return the titles of all windows."""
        ...

    async def closed_items(self, *, window: str | None = None) -> tuple[Element, ...]:
        """Return the items of the window's closed menus.

        `text` is the item's name, `automation_id` its path like "File > Save".
        """
        ...

    async def cell(self, name: str, *, window: str | None = None) -> Element | None:
        """Return a cell of one of the window's tables, in view or not, or None.

        `name` is its name in a sheet ("AZ2000") or its position ("row 5, column 2").
        """
        ...

    async def options(self, element: Element) -> tuple[Element, ...]:
        """Return the choices of a combo box or list, shown or not."""
        ...

    async def scene(self, element: Element) -> WindowSnapshot:
        """Return the current state of the element's window."""
        ...

    async def now(self, element: Element) -> Element | None:
        """Return the element now at the element's place in the tree, whatever it has become; None if nothing is."""
        ...

    async def press(self, element: Element) -> str | None:
        """Do the element's own main action; its name, or None when it has none or refused."""
        ...

    async def set_text(self, element: Element, text: str) -> bool:
        """Replace the text of an editable element."""
        ...

    async def text_length(self, element: Element) -> int | None:
        """Return the number of characters, also for a password; None if unknown."""
        ...

    async def number(self, element: Element) -> float | None:
        """Return the current number of a slider or spin button, or None."""
        ...

    async def set_number(self, element: Element, number: float) -> bool:
        """Set a slider or spin button."""
        ...

    async def focus(self, element: Element) -> bool:
        """Give it the keyboard focus."""
        ...

    async def select(self, element: Element) -> bool:
        """Select it in the list, tab row or combo box that holds it."""
        ...

    async def expand(self, element: Element, *, wanted: bool) -> bool:
        """Ask it to open or close."""
        ...

    async def scroll_to(self, element: Element) -> bool:
        """Bring it into view."""
        ...
