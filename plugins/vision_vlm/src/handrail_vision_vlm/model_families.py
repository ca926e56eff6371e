"""The families of models, and what they differ in. Model names are those on Hugging Face; vendors and routers have their own."""

from __future__ import annotations

from typing import ClassVar

from handrail import Size
from handrail_vision_vlm import prompts
from handrail_vision_vlm.backend import VlmBackend
from handrail_vision_vlm.config import CoordinateKind
from handrail_vision_vlm.tars.backend import UiTarsBackend


class KimiBackend(VlmBackend):
    """Moonshot's Kimi. It counts from 0 to 1, and its servers refuse temperatures other than their own."""

    name = "kimi"
    model = "moonshotai/Kimi-K2.5"
    coordinates: ClassVar[CoordinateKind] = "unit"
    temperature = None


class QwenBackend(VlmBackend):
    """Alibaba's Qwen-VL from version 3; Qwen2.5-VL counts in pixels of its own resizing: `coordinates = "resized"`."""

    name = "qwen"
    model = "Qwen/Qwen3-VL-8B-Instruct"

    def _find(self, intent: str, size: Size) -> str:
        return prompts.build_find_prompt(intent, self._counts, size, box="bbox_2d")


class PhiBackend(VlmBackend):
    """Microsoft's Phi with vision; it counts from 0 to 1."""

    name = "phi"
    model = "microsoft/Phi-4-reasoning-vision-15B"
    coordinates: ClassVar[CoordinateKind] = "unit"


class MolmoBackend(VlmBackend):
    """Ai2's Molmo, which points: its places are points, in tags that say how it counts."""

    name = "molmo"
    model = "allenai/Molmo2-8B"

    def _find(self, intent: str, size: Size) -> str:
        return prompts.build_point_prompt(intent)


class HolotronBackend(VlmBackend):
    """H Company's Holotron and Holo, which find one place for what is looked for."""

    name = "holotron"
    model = "Hcompany/Holotron-12B"

    def _find(self, intent: str, size: Size) -> str:
        return prompts.build_localize_prompt(intent) if intent else super()._find(intent, size)


class OpenAiCompatibleBackend(VlmBackend):
    """Any other model that looks at pictures."""

    name = "openai_compatible"
    temperature = None


MODEL_FAMILIES: tuple[type[VlmBackend], ...] = (
    UiTarsBackend,
    KimiBackend,
    QwenBackend,
    PhiBackend,
    MolmoBackend,
    HolotronBackend,
    OpenAiCompatibleBackend,
)
