"""The families of models, and what they differ in. Model names are those on Hugging Face; vendors and routers have their own."""

from __future__ import annotations

from typing import ClassVar

from handrail import Size
from handrail_vision_vlm import prompts
from handrail_vision_vlm.backend import Vlm
from handrail_vision_vlm.config import Coordinates
from handrail_vision_vlm.tars.backend import UiTars


class Kimi(Vlm):
    """Moonshot's Kimi. It counts from 0 to 1, and its servers refuse temperatures other than their own."""

    name = "kimi"
    model = "moonshotai/Kimi-K2.5"
    coordinates: ClassVar[Coordinates] = "unit"
    temperature = None


class Qwen(Vlm):
    """Alibaba's Qwen-VL, from version 3 on; Qwen2.5-VL counts in pixels of its own: `coordinates = "resized"`."""

    name = "qwen"
    model = "Qwen/Qwen3-VL-8B-Instruct"

    def _find(self, intent: str, size: Size) -> str:
        return prompts.find(intent, self._counts, size, box="bbox_2d")


class Phi(Vlm):
    """Microsoft's Phi with vision; it counts from 0 to 1."""

    name = "phi"
    model = "microsoft/Phi-4-reasoning-vision-15B"
    coordinates: ClassVar[Coordinates] = "unit"


class Molmo(Vlm):
    """Ai2's Molmo, which points: its places are points, in tags that say how it counts."""

    name = "molmo"
    model = "allenai/Molmo2-8B"

    def _find(self, intent: str, size: Size) -> str:
        return prompts.point(intent)


class Holotron(Vlm):
    """H Company's Holotron and Holo, which find one place for what is looked for."""

    name = "holotron"
    model = "Hcompany/Holotron-12B"

    def _find(self, intent: str, size: Size) -> str:
        return prompts.localize(intent) if intent else super()._find(intent, size)


class OpenAiCompatible(Vlm):
    """Any other model that looks at pictures."""

    name = "openai_compatible"
    temperature = None


FAMILIES: tuple[type[Vlm], ...] = (UiTars, Kimi, Qwen, Phi, Molmo, Holotron, OpenAiCompatible)
