"""Members of UI Automation's interfaces in use, as comtypes exposes them.

Source: uiautomationclient.h of the Windows SDK. comtypes creates the classes themselves on Windows, from the type
library in UIAutomationCore.dll; these protocols replace them on other systems.
"""

# Names are the interfaces' own.
# ruff: noqa: N802

from __future__ import annotations

from typing import Any, Protocol


class UiaElementArray(Protocol):
    """IUIAutomationElementArray."""

    @property
    def Length(self) -> int: ...
    def GetElement(self, index: int, /) -> UiaElement: ...


class UiaElement(Protocol):
    """IUIAutomationElement."""

    def SetFocus(self) -> int: ...
    def BuildUpdatedCache(self, request: UiaCacheRequest, /) -> UiaElement: ...
    def GetCachedPropertyValue(self, property_id: int, /) -> Any: ...
    def GetCurrentPattern(self, pattern_id: int, /) -> Any: ...
    def GetCachedChildren(self) -> UiaElementArray | None: ...


class UiaCacheRequest(Protocol):
    """IUIAutomationCacheRequest."""

    TreeScope: int
    TreeFilter: Any

    def AddProperty(self, property_id: int, /) -> int: ...


class UiaAutomation(Protocol):
    """IUIAutomation, and of IUIAutomation2 what limits how long a provider may take."""

    ConnectionTimeout: int
    TransactionTimeout: int

    @property
    def ControlViewCondition(self) -> Any: ...
    def ElementFromHandleBuildCache(self, window: Any, request: UiaCacheRequest, /) -> UiaElement: ...
    def CreateCacheRequest(self) -> UiaCacheRequest: ...
    def CreatePropertyCondition(self, property_id: int, value: Any, /) -> Any: ...
    def CreateAndCondition(self, one: Any, other: Any, /) -> Any: ...
