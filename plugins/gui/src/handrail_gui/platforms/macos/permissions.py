"""Permissions that macOS must grant before a desktop can be operated, for `handrail doctor`."""

from __future__ import annotations

from collections.abc import Sequence

from handrail import Finding
from handrail_gui.platforms.macos.frameworks import MacFrameworks
from handrail_gui.platforms.macos.system import RECORDING_HINT
from handrail_gui.platforms.macos.windows import ACCESSIBILITY_HINT


def list_permission_findings(parts: MacFrameworks) -> Sequence[Finding]:
    """Return a finding per permission: whether it is granted, and where the user grants it. Does not prompt the user.

    macOS attributes a permission to the program the user started, not to the Python that runs in it.
    """
    trusted, sees = parts.accessibility.AXIsProcessTrusted(), parts.quartz.CGPreflightScreenCaptureAccess()
    return [
        Finding(
            "macOS: Accessibility",
            trusted,
            _describe_permission(trusted, "input, windows and trees"),
            "" if trusted else ACCESSIBILITY_HINT,
        ),
        Finding(
            "macOS: Screen Recording",
            sees,
            _describe_permission(sees, "pictures and titles"),
            "" if sees else RECORDING_HINT,
        ),
    ]


def _describe_permission(there: bool, what: str) -> str:
    return f"{what} are permitted" if there else f"macOS does not permit {what}"
