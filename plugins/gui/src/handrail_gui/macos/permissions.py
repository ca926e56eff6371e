"""What macOS has to permit before a desktop can be worked, for `handrail doctor`."""

from __future__ import annotations

from collections.abc import Sequence

from handrail import Finding
from handrail_gui.macos.frameworks import Frameworks
from handrail_gui.macos.system import RECORDING
from handrail_gui.macos.windows import CURE


def findings(parts: Frameworks) -> Sequence[Finding]:
    """Each permission, whether it is there, and where a person gives it. Nothing is asked of the person here.

    macOS counts a permission to the program that a person started, and not to the Python that runs in it.
    """
    trusted, sees = parts.accessibility.AXIsProcessTrusted(), parts.quartz.CGPreflightScreenCaptureAccess()
    return [
        Finding("macOS: Accessibility", trusted, _told(trusted, "input, windows and trees"), "" if trusted else CURE),
        Finding("macOS: Screen Recording", sees, _told(sees, "pictures and titles"), "" if sees else RECORDING),
    ]


def _told(there: bool, what: str) -> str:
    return f"{what} are permitted" if there else f"macOS does not permit {what}"
