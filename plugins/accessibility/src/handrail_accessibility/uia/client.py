"""UI Automation by comtypes, in the thread that calls this. The only module here that needs Windows."""

from __future__ import annotations

import importlib
from typing import Any

from handrail import ToolUnavailable
from handrail_accessibility.uia.interfaces import UiaElement
from handrail_accessibility.uia.provider import UiaProvider

CONNECTION_TIMEOUT_MS = 1000
# The interface of each pattern that is used.
PATTERN_INTERFACES = {
    10000: "IUIAutomationInvokePattern",
    10002: "IUIAutomationValuePattern",
    10003: "IUIAutomationRangeValuePattern",
    10005: "IUIAutomationExpandCollapsePattern",
    10010: "IUIAutomationSelectionItemPattern",
    10014: "IUIAutomationTextPattern",
    10015: "IUIAutomationTogglePattern",
    10017: "IUIAutomationScrollItemPattern",
    10018: "IUIAutomationLegacyIAccessiblePattern",
}


def open_uia_provider() -> UiaProvider:
    """Open the provider for the calling thread, which is initialized for COM.

    Raises `ToolUnavailable` if Windows has no UI Automation.
    """
    comtypes, client = (importlib.import_module(name) for name in ("comtypes", "comtypes.client"))
    try:
        comtypes.CoInitialize()
        library = client.GetModule("UIAutomationCore.dll")
        # The second interface, of Windows 8, limits how long a provider may take.
        automation = client.CreateObject(library.CUIAutomation8, interface=library.IUIAutomation2)
    except (OSError, AttributeError, comtypes.COMError) as exc:
        raise ToolUnavailable(f"Windows gives no UI Automation here: {exc}", hint="use the backend ocr") from exc
    automation.ConnectionTimeout = CONNECTION_TIMEOUT_MS

    def pattern(native: UiaElement, number: int) -> Any:
        try:
            found = native.GetCurrentPattern(number)
            return found.QueryInterface(getattr(library, PATTERN_INTERFACES[number])) if found else None
        # A pattern that it has not may be no pointer, or an error of COM.
        except (comtypes.COMError, ValueError):
            return None

    return UiaProvider(automation, pattern, comtypes.COMError)
