"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import VisionBackend


@hookimpl
def handrail_register_vision_backends() -> list[type[VisionBackend]]:
    """Return the vision backend `ocr`."""
    from handrail_vision_ocr.backend import OcrBackend

    return [OcrBackend]
