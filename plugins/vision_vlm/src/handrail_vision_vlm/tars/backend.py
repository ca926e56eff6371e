"""The vision backend `ui_tars`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from handrail import Frame, Plan, Size, Transform, Turn
from handrail_vision_vlm import prompts
from handrail_vision_vlm.backend import VlmBackend
from handrail_vision_vlm.config import CoordinateKind, TarsVersion, UiTarsConfig, select_dialect
from handrail_vision_vlm.tars import prompts as trained
from handrail_vision_vlm.tars.action_plan import build_plan, describe_outcome, get_earlier_answer

if TYPE_CHECKING:
    from handrail_vision_vlm.chat_client import ChatMessage

# 1.0, Doubao and 2 count in thousandths; 1.5 is made of Qwen2.5-VL and counts in the pixels of the picture as it resizes it.
COORDINATES_BY_VERSION: Mapping[TarsVersion, CoordinateKind] = {
    "1.0": "thousand",
    "1.5": "resized",
    "doubao": "thousand",
    "2": "thousand",
}
RETRY_PROMPT = "That could not be carried out: {}. Answer again, with {}."


class UiTarsBackend(VlmBackend):
    """ByteDance's UI-TARS, and Doubao, which is served by Volcano Engine. It finds one place for what is looked for, and it plans."""

    name = "ui_tars"
    capabilities: ClassVar[frozenset[str]] = frozenset({"parse_screen", "understand", "plan_actions"})
    Config = UiTarsConfig
    model = "ByteDance-Seed/UI-TARS-1.5-7B"

    async def plan(self, frame: Frame, instruction: str, history: Sequence[Turn]) -> Plan:
        """Return the next actions, with points in screen pixels."""
        messages, sent = await self._told(frame, instruction, history)
        on_screen = Transform(frame.screen, sent.width, sent.height)
        counted = select_dialect(self._counts, self.config)

        def at(x: float, y: float) -> tuple[int, int]:
            return on_screen.to_screen(*counted.point(x, y, sent))

        return await self._chat.read(messages, lambda answer: build_plan(answer, at), again=self._again)

    def _again(self, why: Exception) -> str:
        return RETRY_PROMPT.format(why, trained.describe_answer_form(self._tars.version))

    def _find(self, intent: str, size: Size) -> str:
        return (
            trained.build_grounding_prompt(self._tars.version, intent)
            if intent
            else prompts.build_find_prompt("", self._counts, size)
        )

    @property
    def _counts(self) -> CoordinateKind:
        return self.config.coordinates or COORDINATES_BY_VERSION[self._tars.version]

    @property
    def _tars(self) -> UiTarsConfig:
        assert isinstance(self.config, UiTarsConfig)
        return self.config

    async def _told(self, frame: Frame, instruction: str, history: Sequence[Turn]) -> tuple[list[ChatMessage], Size]:
        """Return the messages for the whole history, with the latest pictures, and the size of the last picture."""
        now = await self._shown(frame)
        task = trained.build_task_prompt(self._tars.version, self._tars.language, instruction)
        if not history:
            return [self._user(task, now)], now.size
        messages = [self._user(task)]
        # The picture after the last turn is the one that is looked at now.
        oldest = len(history) - self._tars.pictures
        for number, turn in enumerate(history):
            last = number + 1 == len(history)
            shown = [now] if last else []
            if not last and number >= oldest and turn.frame is not None:
                shown = [await self._shown(turn.frame)]
            messages += [
                {"role": "assistant", "content": get_earlier_answer(turn)},
                self._user(describe_outcome(turn), *shown),
            ]
        return messages, now.size
