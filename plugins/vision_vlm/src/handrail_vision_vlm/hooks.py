"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import VisionBackend


@hookimpl
def handrail_register_vision_backends() -> list[type[VisionBackend]]:
    """A backend for each family of models, and one for any other."""
    from handrail_vision_vlm.model_families import MODEL_FAMILIES

    return list(MODEL_FAMILIES)
