"""What is sent to the model: the task, what it asked for so far, and what came of it, as the API wants to have it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from handrail import Frame, PlannedAction, ToolResult, Turn
from handrail.json_types import BASE64_KEYS
from handrail_gemini_cu.functions import FunctionCall, HeldKeys, ModelSurface, is_approval_needed, map_call

if TYPE_CHECKING:
    from google.genai import types

# Characters of a result that the model is told.
MAX_RESULT_TEXT = 4_000
# What a result holds that the model does not need: it is told whether it worked, and sees the screen.
OMITTED_KEYS = BASE64_KEYS | {"status", "error", "voice_message", "duration_ms", "media", "observation_id", "sources"}
NOT_TRIED_NOTE = "it was not tried, because what came before it in the same turn did not work"

PictureMaker = Callable[[Frame], "types.FunctionResponsePart"]


@dataclass(frozen=True, slots=True)
class ModelReply:
    """What the model said: its own content, which it wants back as it was (signatures of thoughts among it), and the calls in it."""

    content: types.Content
    calls: tuple[FunctionCall, ...]


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """What came of one call: the actions it meant that were planned, and the results of those that were tried."""

    call: FunctionCall
    actions: tuple[PlannedAction, ...]
    results: tuple[ToolResult, ...]

    @property
    def failed(self) -> ToolResult | None:
        return next((result for result in self.results if not result.ok), None)

    @property
    def skipped(self) -> bool:
        return not self.results and bool(self.actions)

    @property
    def approved(self) -> bool:
        """Whether a person said yes to what the model's safety check asked."""
        return (
            is_approval_needed(self.call)
            and bool(self.results)
            and self.results[0].status != "denied"
            and not self.actions[0].problem
        )


def list_outcomes(turn: Turn) -> list[CallOutcome]:
    """What came of each call of a turn of this backend's."""
    reply: ModelReply = turn.plan.ref
    tried = list(zip(turn.plan.actions, turn.results, strict=False))
    return [
        CallOutcome(
            call,
            tuple(action for action in turn.plan.actions if action.id == call.id),
            tuple(result for action, result in tried if action.id == call.id),
        )
        for call in reply.calls
    ]


def is_own_turn(turn: Turn) -> bool:
    """Whether the turn was planned by this backend."""
    return isinstance(turn.plan.ref, ModelReply)


def compute_held_keys(history: Sequence[Turn], surface: ModelSurface) -> HeldKeys:
    """The keys that the model holds down by now: what it asked for is gone through once more."""
    held = HeldKeys()
    again = ModelSurface(surface.frame, surface.sent, surface.settings, surface.platform, held)
    for turn in filter(is_own_turn, history):
        for outcome in list_outcomes(turn):
            if not outcome.skipped:
                map_call(outcome.call, again)
    return held


@dataclass(frozen=True, slots=True)
class TaskConversation:
    """One task as the model is told it. `picture` makes a part of a frame; `browsing`: the screen shows the session's browser."""

    instruction: str
    history: Sequence[Turn]
    frame: Frame
    picture: PictureMaker
    entries: int
    pictures: int
    browsing: bool

    def contents(self) -> list[types.Content]:
        """The entries, the task first: at most `entries` of them, with the newest `pictures`, of which the screen as it is now is one."""
        kept = list(self.history)[-((self.entries - 1) // 2) :]
        shown = self._shown(kept)
        told = [self._task(len(self.history) - len(kept), shown)]
        url = self._url(self.history[: len(self.history) - len(kept)], "")
        for turn in kept:
            url = self._url([turn], url)
            told += self._turn(turn, shown, url, last=turn is kept[-1])
        return told

    def _shown(self, kept: Sequence[Turn]) -> set[int]:
        """The newest frames, by identity."""
        frames = [frame for turn in kept for frame in (*turn.frames.values(), turn.frame) if frame is not None]
        newest = dict.fromkeys(id(frame) for frame in reversed([*frames, self.frame]))
        return set(list(newest)[: self.pictures])

    def _task(self, left_out: int, shown: set[int]) -> types.Content:
        from google.genai import types

        text = self.instruction
        if left_out:
            text += f"\n\n({left_out} earlier turns are left out here. What they did shows on the screen.)"
        parts = [types.Part(text=text)]
        if not self.history:
            parts.append(self._plain(self.frame))
        return types.Content(role="user", parts=parts)

    def _turn(self, turn: Turn, shown: set[int], url: str, *, last: bool) -> list[types.Content]:
        from google.genai import types

        if is_own_turn(turn):
            said = turn.plan.ref.content
            parts = [self._answer(outcome, turn, shown, url) for outcome in list_outcomes(turn)]
        else:
            said = types.Content(
                role="model", parts=[types.Part(text=turn.plan.text or "(another model planned this)")]
            )
            parts = [
                types.Part(
                    text=json.dumps([_format_result(result) for result in turn.results], default=str)[:MAX_RESULT_TEXT]
                )
            ]
        if turn.note:
            parts.append(types.Part(text=turn.note))
        if last and not any(frame is self.frame for frame in (*turn.frames.values(), turn.frame)):
            parts += [types.Part(text="This is the screen now."), self._plain(self.frame)]
        return [said, types.Content(role="user", parts=parts or [types.Part(text="Go on.")])]

    def _answer(self, outcome: CallOutcome, turn: Turn, shown: set[int], url: str) -> types.Part:
        """The response to one call; each has the address of the page, and a picture as long as it is among the newest."""
        from google.genai import types

        response: dict[str, Any] = {"url": turn.urls.get(outcome.call.id, url) if self.browsing else url}
        if outcome.skipped:
            response["error"] = NOT_TRIED_NOTE
        elif (failed := outcome.failed) is not None:
            response |= {"error": failed["error"]["message"], "code": failed["error"]["code"]}
        elif outcome.results:
            response |= _format_result(outcome.results[-1])
        if outcome.approved:
            response["safety_acknowledgement"] = "true"
        frame = turn.frames.get(outcome.call.id, turn.frame)
        parts = [self.picture(frame)] if frame is not None and id(frame) in shown else None
        return types.Part(
            function_response=types.FunctionResponse(
                id=outcome.call.given_id, name=outcome.call.name, response=response, parts=parts
            )
        )

    def _url(self, turns: Sequence[Turn], known: str) -> str:
        """The address of the page after some turns, as far as a result told it or the browser was looked at."""
        for turn in turns:
            for result in turn.results:
                known = str(result.get("url") or known)
            if self.browsing and turn.urls:
                known = list(turn.urls.values())[-1]
        return known

    def _plain(self, frame: Frame) -> types.Part:
        from google.genai import types

        blob = self.picture(frame).inline_data
        assert blob is not None
        return types.Part(inline_data=types.Blob(mime_type=blob.mime_type, data=blob.data))


def _format_result(result: ToolResult) -> Mapping[str, Any]:
    """A result as the model is told it: no pictures, and not at any length."""
    told = {key: value for key, value in result.wire().items() if key not in OMITTED_KEYS}
    if "error" in result:
        told["error"] = result["error"]["message"]
    text = json.dumps(told, ensure_ascii=False, default=str)
    return told if len(text) <= MAX_RESULT_TEXT else {"output": f"{text[:MAX_RESULT_TEXT]}…"}
