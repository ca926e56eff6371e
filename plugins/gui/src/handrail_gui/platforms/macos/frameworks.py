"""macOS functions in use, as pyobjc exposes them: an output argument is passed as None and returned.

Source: the metadata of pyobjc-framework-Quartz and pyobjc-framework-ApplicationServices 13.0, and Apple's headers.
pyobjc has no types of its own.
"""

# Names are the frameworks' own.
# ruff: noqa: N802

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

from handrail import DesktopError


class QuartzApi(Protocol):
    """Displays, windows and events."""

    def CGWindowListCopyWindowInfo(self, option: int, window: int, /) -> Sequence[Mapping[str, Any]] | None: ...
    def CGPreflightScreenCaptureAccess(self) -> bool: ...
    def CGSessionCopyCurrentDictionary(self) -> Mapping[str, Any] | None: ...
    def CGEventSourceCreate(self, state: int, /) -> Any: ...
    def CGEventSourceSecondsSinceLastEventType(self, state: int, kind: int, /) -> float: ...
    def CGEventCreate(self, source: Any, /) -> Any: ...
    def CGEventGetLocation(self, event: Any, /) -> Any: ...
    def CGEventCreateMouseEvent(self, source: Any, kind: int, place: Any, button: int, /) -> Any: ...
    def CGEventCreateScrollWheelEvent2(
        self, source: Any, unit: int, wheels: int, vertical: int, horizontal: int, third: int, /
    ) -> Any: ...
    def CGEventCreateKeyboardEvent(self, source: Any, code: int, down: bool, /) -> Any: ...
    def CGEventKeyboardSetUnicodeString(self, event: Any, units: int, text: str, /) -> None: ...
    def CGEventSetFlags(self, event: Any, flags: int, /) -> None: ...
    def CGEventSetIntegerValueField(self, event: Any, field: int, value: int, /) -> None: ...
    def CGEventPost(self, tap: int, event: Any, /) -> None: ...


class AccessibilityApi(Protocol):
    """Functions that move other programs' windows. Errors are numbers, 0 for success."""

    def AXIsProcessTrusted(self) -> bool: ...
    def AXUIElementCreateSystemWide(self) -> Any: ...
    def AXUIElementCreateApplication(self, pid: int, /) -> Any: ...
    def AXUIElementSetMessagingTimeout(self, element: Any, seconds: float, /) -> int: ...
    def AXUIElementCopyAttributeValue(self, element: Any, name: str, value: None, /) -> tuple[int, Any]: ...
    def AXUIElementCopyMultipleAttributeValues(
        self, element: Any, names: Sequence[str], options: int, values: None, /
    ) -> tuple[int, Sequence[Any] | None]: ...
    def AXUIElementSetAttributeValue(self, element: Any, name: str, value: Any, /) -> int: ...
    def AXUIElementPerformAction(self, element: Any, name: str, /) -> int: ...
    def AXValueCreate(self, kind: int, value: Any, /) -> Any: ...
    def AXValueGetValue(self, value: Any, kind: int, into: None, /) -> tuple[bool, Any]: ...


class AppKitApi(Protocol):
    """Classes, whose methods are those of Objective-C with `_` for `:`."""

    NSPasteboard: Any
    NSPasteboardItem: Any
    NSRunningApplication: Any
    NSScreen: Any
    NSWorkspace: Any


@dataclass(frozen=True, slots=True)
class MacFrameworks:
    """The frameworks through which macOS is accessed."""

    quartz: QuartzApi
    accessibility: AccessibilityApi
    appkit: AppKitApi


def load_frameworks() -> MacFrameworks:
    """Load the frameworks of this Mac; raise `DesktopError` on other systems."""
    if sys.platform != "darwin":
        raise DesktopError(f"Quartz is a part of macOS, and this is {sys.platform}")
    quartz, accessibility, appkit = (
        importlib.import_module(name) for name in ("Quartz", "ApplicationServices", "AppKit")
    )
    return MacFrameworks(cast("QuartzApi", quartz), cast("AccessibilityApi", accessibility), cast("AppKitApi", appkit))
