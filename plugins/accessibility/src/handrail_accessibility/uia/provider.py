"""Windows' trees by UI Automation: one cached request for a window, and object by object where that takes too long."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from handrail import Window
from handrail_accessibility.native.tree import ActionVerb, NativeNode, WindowTree
from handrail_accessibility.uia.interfaces import UiaAutomation, UiaCacheRequest, UiaElement
from handrail_accessibility.uia.properties import UiaProperty, build_node

# TreeScope_Element, _Children, _Subtree.
SCOPE_ELEMENT, SCOPE_CHILDREN, SCOPE_SUBTREE = 1, 2, 7
(
    INVOKE_PATTERN,
    VALUE_PATTERN,
    RANGE_PATTERN,
    EXPAND_PATTERN,
    SELECTION_ITEM_PATTERN,
    TEXT_PATTERN,
    TOGGLE_PATTERN,
    SCROLL_ITEM_PATTERN,
    LEGACY_PATTERN,
) = (*(10000, 10002, 10003, 10005, 10010, 10014, 10015, 10017, 10018),)
# Milliseconds that one call may take beside the reading of a window.
CALL_TIMEOUT_MS = 2000
# The part of its time that a window is given for the one request, before it is asked level by level.
SINGLE_REQUEST_SHARE = 0.6

FailureType = type[Exception]


@dataclass(slots=True)
class UiaProvider:
    """A `TreeProvider`. `pattern` gives an object's pattern by its number as the interface it is, None when it has it not; `failure` is what
    its calls raise when an object is gone or its program does not answer.
    """

    automation: UiaAutomation
    pattern: Callable[[UiaElement, int], Any]
    failure: FailureType
    _requests: dict[int, UiaCacheRequest] = field(default_factory=dict[int, UiaCacheRequest])

    def read(self, window: Window, *, limit: int, deadline: float) -> WindowTree | None:
        """Read the window's tree."""
        try:
            return self._read(int(window.id, 16), limit, deadline)
        finally:
            self.automation.TransactionTimeout = CALL_TIMEOUT_MS

    def _read(self, handle: int, limit: int, deadline: float) -> WindowTree | None:
        until = monotonic() + deadline
        # A provider that takes longer is left by the request itself, and not only by the thread's deadline.
        self.automation.TransactionTimeout = max(1, round(deadline * SINGLE_REQUEST_SHARE * 1000))
        try:
            whole = self.automation.ElementFromHandleBuildCache(handle, self._request(SCOPE_SUBTREE))
            return _build_cached_tree(whole, limit)
        except self.failure:
            self.automation.TransactionTimeout = max(1, round((until - monotonic()) * 500))
        try:
            top = self.automation.ElementFromHandleBuildCache(handle, self._request(SCOPE_ELEMENT | SCOPE_CHILDREN))
        except self.failure:
            return None
        return self._by_levels(top, limit, until)

    def again(self, native: UiaElement) -> NativeNode | None:
        """Return the current state of one object, with its children; None if it is gone."""
        try:
            return _build_cached_tree(native.BuildUpdatedCache(self._request(SCOPE_ELEMENT | SCOPE_CHILDREN)), 500).root
        except self.failure:
            return None

    def do(self, native: UiaElement, verb: ActionVerb) -> str | None:
        """Ask for it by the pattern that fits, the most telling first."""
        ways: Mapping[ActionVerb, tuple[tuple[int, str], ...]] = {
            "press": (
                *(
                    (INVOKE_PATTERN, "Invoke"),
                    (TOGGLE_PATTERN, "Toggle"),
                    (SELECTION_ITEM_PATTERN, "Select"),
                    (LEGACY_PATTERN, "DoDefaultAction"),
                ),
            ),
            "select": ((SELECTION_ITEM_PATTERN, "Select"),),
            "expand": ((EXPAND_PATTERN, "Expand"),),
            "collapse": ((EXPAND_PATTERN, "Collapse"),),
            "scroll": ((SCROLL_ITEM_PATTERN, "ScrollIntoView"),),
            "focus": (),
        }
        if verb == "focus":
            return self._asked(native.SetFocus, "SetFocus")
        for number, method in ways[verb]:
            if (pattern := self.pattern(native, number)) is not None:
                return self._asked(getattr(pattern, method), method)
        return None

    def text(self, native: UiaElement) -> str | None:
        """Return the whole text: the value of a field, the text of a document; or None."""
        try:
            if (value := self.pattern(native, VALUE_PATTERN)) is not None:
                return _normalize_newlines(value.CurrentValue)
            if (text := self.pattern(native, TEXT_PATTERN)) is not None:
                return _normalize_newlines(text.DocumentRange.GetText(-1))
        except self.failure:
            return None
        return None

    def set_text(self, native: UiaElement, text: str) -> bool:
        """Replace its text by value."""
        value = self.pattern(native, VALUE_PATTERN)
        return value is not None and self._asked(lambda: value.SetValue(text), "SetValue") is not None

    def number(self, native: UiaElement) -> float | None:
        """Return the current number, or None."""
        value = self.pattern(native, RANGE_PATTERN)
        try:
            return None if value is None else float(value.CurrentValue)
        except self.failure:
            return None

    def set_number(self, native: UiaElement, number: float) -> bool:
        """Set its number."""
        value = self.pattern(native, RANGE_PATTERN)
        return value is not None and self._asked(lambda: value.SetValue(number), "SetValue") is not None

    def end(self) -> None:
        """Release the cache requests; objects are released as they are garbage-collected."""
        self._requests.clear()

    def _asked(self, ask: Callable[[], Any], name: str) -> str | None:
        try:
            ask()
        except self.failure:
            return None
        return name

    def _by_levels(self, top: UiaElement, limit: int, until: float) -> WindowTree:
        """Read as much as time allows, from the top down, with one request per object and its children."""
        children: dict[int, list[int]] = {0: []}
        natives = [top]
        waiting = deque([0])
        truncated = False
        while waiting:
            number = waiting.popleft()
            if len(natives) >= limit or monotonic() > until:
                truncated = True
                break
            for child in _cached_children(self._with_children(natives[number]), limit - len(natives)):
                children[number].append(len(natives))
                children[len(natives)] = []
                waiting.append(len(natives))
                natives.append(child)

        def node(number: int) -> NativeNode:
            return build_node(
                _cached_properties(natives[number]), natives[number], tuple(node(each) for each in children[number])
            )

        return WindowTree(node(0), truncated)

    def _with_children(self, native: UiaElement) -> UiaElement | None:
        try:
            return native.BuildUpdatedCache(self._request(SCOPE_ELEMENT | SCOPE_CHILDREN))
        except self.failure:
            return None

    def _request(self, scope: int) -> UiaCacheRequest:
        """Return the request for all properties of what is in view, read at once."""
        if scope not in self._requests:
            request = self.automation.CreateCacheRequest()
            for number in UiaProperty:
                request.AddProperty(number.value)
            request.TreeScope = scope
            shown = self.automation.CreatePropertyCondition(UiaProperty.OFFSCREEN.value, False)
            request.TreeFilter = self.automation.CreateAndCondition(self.automation.ControlViewCondition, shown)
            self._requests[scope] = request
        return self._requests[scope]


def _build_cached_tree(whole: UiaElement, limit: int) -> WindowTree:
    """Build a tree from the cache, which takes no further calls, up to `limit` objects in tree order."""
    left, truncated = limit, False

    def node(native: UiaElement) -> NativeNode:
        nonlocal left, truncated
        found: list[NativeNode] = []
        for child in _cached_children(native, left):
            left -= 1
            if left <= 0:
                truncated = True
                break
            found.append(node(child))
        return build_node(_cached_properties(native), native, tuple(found))

    return WindowTree(node(whole), truncated)


def _cached_children(native: UiaElement | None, most: int) -> list[UiaElement]:
    found = native.GetCachedChildren() if native is not None else None
    return [] if found is None else [found.GetElement(index) for index in range(min(found.Length, max(0, most)))]


def _cached_properties(native: UiaElement) -> dict[UiaProperty, Any]:
    return {number: native.GetCachedPropertyValue(number.value) for number in UiaProperty}


def _normalize_newlines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")
