"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import VisionBackend


@hookimpl
def handrail_register_vision_backends() -> list[type[VisionBackend]]:
    """Return a backend for each model family, and one for any other model."""
    from handrail_vision_vlm.model_families import MODEL_FAMILIES

    return list(MODEL_FAMILIES)
