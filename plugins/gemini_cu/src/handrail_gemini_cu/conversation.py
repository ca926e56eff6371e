"""Messages sent to the model: the task, its calls so far, and their results, in the form that the API expects."""

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
    """Reply of the model: its own content and the calls in it.

    The content must be sent back to the model unchanged, including thought signatures.
    """

    content: types.Content
    calls: tuple[FunctionCall, ...]


@dataclass(frozen=True, slots=True)
class CallOutcome:
    """Outcome of one call: the actions planned for it, and the results of those that were tried."""

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
        """True if the user approved what the model's safety check asked about."""
        return (
            is_approval_needed(self.call)
            and bool(self.results)
            and self.results[0].status != "denied"
            and not self.actions[0].problem
        )


def list_outcomes(turn: Turn) -> list[CallOutcome]:
    """Return the outcome of each call in a turn planned by this backend."""
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
    """Return True if the turn was planned by this backend."""
    return isinstance(turn.plan.ref, ModelReply)


def compute_held_keys(history: Sequence[Turn], surface: ModelSurface) -> HeldKeys:
    """Return the keys that the model now holds down, by replaying its calls."""
    held = HeldKeys()
    again = ModelSurface(surface.frame, surface.sent, surface.settings, surface.platform, held)
    for turn in filter(is_own_turn, history):
        for outcome in list_outcomes(turn):
            if not outcome.skipped:
                map_call(outcome.call, again)
    return held


@dataclass(frozen=True, slots=True)
class TaskConversation:
    """Messages of one task. `picture` encodes a frame as a part; `browsing`: the screen shows the session's browser."""

    instruction: str
    history: Sequence[Turn]
    frame: Frame
    picture: PictureMaker
    entries: int
    pictures: int
    browsing: bool

    def contents(self) -> list[types.Content]:
        """Return at most `entries` entries, task first, with the newest `pictures`, including the current screen."""
        kept = list(self.history)[-((self.entries - 1) // 2) :]
        shown = self._shown(kept)
        told = [self._task(len(self.history) - len(kept), shown)]
        url = self._url(self.history[: len(self.history) - len(kept)], "")
        for turn in kept:
            url = self._url([turn], url)
            told += self._turn(turn, shown, url, last=turn is kept[-1])
        return told

    def _shown(self, kept: Sequence[Turn]) -> set[int]:
        """Return the newest frames, by identity."""
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
        """Build the response to one call, with the page's address, and a picture if it is among the newest."""
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
        """Return the page's address after some turns, as far as a result or a look at the browser revealed it."""
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
    """Format a result for the model, without pictures and limited in length."""
    told = {key: value for key, value in result.wire().items() if key not in OMITTED_KEYS}
    if "error" in result:
        told["error"] = result["error"]["message"]
    text = json.dumps(told, ensure_ascii=False, default=str)
    return told if len(text) <= MAX_RESULT_TEXT else {"output": f"{text[:MAX_RESULT_TEXT]}…"}
