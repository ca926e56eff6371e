"""Trees of macOS by AXUIElement: all attributes of an object in one call, as many objects as there is time for."""

from __future__ import annotations

import importlib
import sys
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, cast

from handrail import Rect, ToolUnavailable, Window
from handrail_accessibility.ax.attributes import REQUESTED_ATTRIBUTES, build_node
from handrail_accessibility.ax.interfaces import AccessibilityApi
from handrail_accessibility.native.tree import ActionVerb, NativeNode, WindowTree

AX_POINT_TYPE, AX_SIZE_TYPE = 1, 2
# Seconds that a program is given for each answer.
MESSAGING_TIMEOUT_S = 1.0
# A window of so few objects may be one of Chromium or Electron, which make the rest for those who ask for it.
SPARSE_TREE_SIZE = 12
UNBOUNDED_RECT = Rect(-100_000, -100_000, 200_000, 200_000)
PERMISSION_HINT = "System Settings > Privacy & Security > Accessibility; `handrail doctor` says more"
# What asks for each verb: an action by its name, or an attribute that is set.
VERB_REQUESTS: Mapping[ActionVerb, tuple[tuple[str, bool | None], ...]] = {
    "press": (("AXPress", None), ("AXConfirm", None), ("AXOpen", None)),
    "focus": (("AXFocused", True),),
    "select": (("AXSelected", True), ("AXPress", None)),
    "expand": (("AXExpanded", True), ("AXDisclosing", True)),
    "collapse": (("AXExpanded", False), ("AXDisclosing", False)),
    "scroll": (("AXScrollToVisible", None),),
}


@dataclass(slots=True)
class AxProvider:
    """A `TreeProvider` on macOS."""

    calls: AccessibilityApi
    # Programs that were asked for all of their tree.
    _asked: set[int] = field(default_factory=set[int])

    def read(self, window: Window, *, limit: int, deadline: float) -> WindowTree | None:
        """Read the window's tree from the top down; return None if the window is not found."""
        until = monotonic() + deadline
        native = self._find(window)
        if native is None:
            return None
        told: list[Mapping[str, Any]] = [self._told(native)]
        natives, children, waiting, truncated = [native], [list[int]()], deque([0]), False
        while waiting and not truncated:
            number = waiting.popleft()
            for child in _list_children(told[number]):
                if len(natives) >= limit or monotonic() > until:
                    truncated = True
                    break
                children[number].append(len(natives))
                waiting.append(len(natives))
                natives.append(child)
                children.append([])
                told.append(self._told(child))
        if len(natives) < SPARSE_TREE_SIZE and window.pid is not None and window.pid not in self._asked:
            self._asked.add(window.pid)
            # The one that makes Electron's tree and nothing else: AXEnhancedUserInterface also moves windows.
            self.calls.AXUIElementSetAttributeValue(
                self.calls.AXUIElementCreateApplication(window.pid), "AXManualAccessibility", True
            )

        def node(number: int) -> NativeNode:
            below = tuple(node(each) for each in children[number])
            return build_node(
                told[number], self._rect(told[number]), window.frame or window.rect, natives[number], below
            )

        return WindowTree(node(0), truncated)

    def again(self, native: Any) -> NativeNode | None:
        """Return the current state of one object, with its children; None if it is gone."""
        told = self._told(native)
        if not isinstance(told.get("AXRole"), str):
            return None
        below = [(child, self._told(child)) for child in _list_children(told)]
        nodes = tuple(build_node(each, self._rect(each), UNBOUNDED_RECT, child) for child, each in below)
        return build_node(told, self._rect(told), UNBOUNDED_RECT, native, nodes)

    def do(self, native: Any, verb: ActionVerb) -> str | None:
        """Ask for it in the ways there are, until the program takes one; its error tells."""
        for name, value in VERB_REQUESTS[verb]:
            error = (
                self.calls.AXUIElementPerformAction(native, name)
                if value is None
                else self.calls.AXUIElementSetAttributeValue(native, name, value)
            )
            if not error:
                return name
        return None

    def text(self, native: Any) -> str | None:
        """Return the whole text, or None."""
        error, value = self.calls.AXUIElementCopyAttributeValue(native, "AXValue", None)
        return str(value) if not error and isinstance(value, str) else None

    def set_text(self, native: Any, text: str) -> bool:
        """Replace its text by value."""
        return not self.calls.AXUIElementSetAttributeValue(native, "AXValue", text)

    def number(self, native: Any) -> float | None:
        """Return the current number, or None."""
        error, value = self.calls.AXUIElementCopyAttributeValue(native, "AXValue", None)
        return float(value) if not error and isinstance(value, int | float) else None

    def set_number(self, native: Any, number: float) -> bool:
        """Set its number."""
        return not self.calls.AXUIElementSetAttributeValue(native, "AXValue", number)

    def end(self) -> None:
        """Do nothing; there is nothing to release."""

    def _find(self, window: Window) -> Any:
        """Return the window's object: among those at its position, the one with its title, else the first."""
        if window.pid is None:
            return None
        _, found = self.calls.AXUIElementCopyAttributeValue(
            self.calls.AXUIElementCreateApplication(window.pid), "AXWindows", None
        )
        told = [(native, self._told(native)) for native in found or ()]
        there = [(native, each) for native, each in told if self._rect(each) == window.rect]
        named = [native for native, each in there if each.get("AXTitle") == window.title]
        return next(iter((*named, *(native for native, _ in there))), None)

    def _told(self, native: Any) -> Mapping[str, Any]:
        """Return the attributes; empty if the object is gone or its program does not answer in time."""
        error, values = self.calls.AXUIElementCopyMultipleAttributeValues(native, REQUESTED_ATTRIBUTES, 0, None)
        return {} if error or values is None else dict(zip(REQUESTED_ATTRIBUTES, values, strict=True))

    def _rect(self, told: Mapping[str, Any]) -> Rect | None:
        if told.get("AXPosition") is None or told.get("AXSize") is None:
            return None
        there, point = self.calls.AXValueGetValue(told["AXPosition"], AX_POINT_TYPE, None)
        known, size = self.calls.AXValueGetValue(told["AXSize"], AX_SIZE_TYPE, None)
        if not there or not known:
            return None
        rect = Rect(round(point.x), round(point.y), round(size.width), round(size.height))
        return None if rect.empty else rect


def _list_children(told: Mapping[str, Any]) -> list[Any]:
    # What an object has not is an error object in its place, and no list.
    found = cast("Sequence[Any]", told.get("AXChildren"))
    return list(found) if hasattr(found, "__len__") and not isinstance(found, str) else []


def open_ax_provider() -> AxProvider:
    """Open the provider for the calling thread; raise `ToolUnavailable` without the permission."""
    if sys.platform != "darwin":
        raise ToolUnavailable(f"AXUIElement is a part of macOS, and this is {sys.platform}")
    calls = cast("AccessibilityApi", importlib.import_module("ApplicationServices"))
    if not calls.AXIsProcessTrusted():
        raise ToolUnavailable("macOS does not let this program read other programs' trees", hint=PERMISSION_HINT)
    # Set for one object it would hold for that object only.
    calls.AXUIElementSetMessagingTimeout(calls.AXUIElementCreateSystemWide(), MESSAGING_TIMEOUT_S)
    return AxProvider(calls)
