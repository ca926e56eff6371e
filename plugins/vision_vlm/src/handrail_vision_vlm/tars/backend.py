"""The vision backend `ui_tars`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

from handrail import Frame, Plan, Size, Transform, Turn
from handrail_vision_vlm import prompts
from handrail_vision_vlm.backend import Vlm
from handrail_vision_vlm.config import Coordinates, UiTarsConfig, Version, dialect
from handrail_vision_vlm.tars import prompts as trained
from handrail_vision_vlm.tars.planning import plan_of, said_before, told_after

if TYPE_CHECKING:
    from handrail_vision_vlm.chat import Message

# 1.0, Doubao and 2 count in thousandths; 1.5 is made of Qwen2.5-VL and counts in the pixels of the picture as it resizes it.
COUNTS: Mapping[Version, Coordinates] = {"1.0": "thousand", "1.5": "resized", "doubao": "thousand", "2": "thousand"}
AGAIN = "That could not be carried out: {}. Answer again, with {}."


class UiTars(Vlm):
    """ByteDance's UI-TARS, and Doubao, which is served by Volcano Engine. It finds one place for what is looked for, and it plans."""

    name = "ui_tars"
    capabilities: ClassVar[frozenset[str]] = frozenset({"parse_screen", "understand", "plan_actions"})
    Config = UiTarsConfig
    model = "ByteDance-Seed/UI-TARS-1.5-7B"

    async def plan(self, frame: Frame, instruction: str, history: Sequence[Turn]) -> Plan:
        """The next actions, with points in screen pixels."""
        messages, sent = await self._told(frame, instruction, history)
        on_screen = Transform(frame.screen, sent.width, sent.height)
        counted = dialect(self._counts, self.config)

        def at(x: float, y: float) -> tuple[int, int]:
            return on_screen.to_screen(*counted.point(x, y, sent))

        return await self._chat.read(messages, lambda answer: plan_of(answer, at), again=self._again)

    def _again(self, why: Exception) -> str:
        return AGAIN.format(why, trained.form(self._tars.version))

    def _find(self, intent: str, size: Size) -> str:
        return trained.ground(self._tars.version, intent) if intent else prompts.find("", self._counts, size)

    @property
    def _counts(self) -> Coordinates:
        return self.config.coordinates or COUNTS[self._tars.version]

    @property
    def _tars(self) -> UiTarsConfig:
        assert isinstance(self.config, UiTarsConfig)
        return self.config

    async def _told(self, frame: Frame, instruction: str, history: Sequence[Turn]) -> tuple[list[Message], Size]:
        """All that has happened, with the latest pictures, and the size of the last one."""
        now = await self._shown(frame)
        task = trained.work(self._tars.version, self._tars.language, instruction)
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
            messages += [{"role": "assistant", "content": said_before(turn)}, self._user(told_after(turn), *shown)]
        return messages, now.size
