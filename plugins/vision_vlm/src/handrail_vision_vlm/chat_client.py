"""Talking to a model: https://platform.openai.com/docs/api-reference/chat, as far as all servers have it in common."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from handrail import BackendUnavailable, Cost, OutOfRange
from handrail.json_types import is_list, is_mapping
from handrail_vision_vlm.picture import EncodedPicture
from handrail_vision_vlm.place_parser import UnreadableAnswer

if TYPE_CHECKING:
    from handrail.vision.backend_server import BackendServer
    from handrail_vision_vlm.config import VlmConfig

T = TypeVar("T")

ChatMessage = Mapping[str, Any]

# What some servers leave in the answer of a model that thinks; not closed when the answer was cut.
THOUGHTS = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)
MAX_QUOTED = 200
# A model that says nothing, or nothing of use, is asked once more.
MAX_ATTEMPTS = 2
# What a server says that an answer has cost is believed up to this.
MAX_COUNT = 1_000_000_000


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """Answer of the model; `cut` if it was not finished."""

    text: str
    cut: bool = False


def build_user_message(text: str, *pictures: EncodedPicture) -> ChatMessage:
    """Build a user message: the pictures, then the text about them."""
    shown = [{"type": "image_url", "image_url": {"url": each.url}} for each in pictures]
    return {"role": "user", "content": [*shown, *([{"type": "text", "text": text}] if text else [])]}


def build_assistant_message(text: str) -> ChatMessage:
    """Build a message with an earlier answer of the model."""
    return {"role": "assistant", "content": text}


class ChatClient:
    """Client for one model at one server. `pay` is called with the cost of each answer."""

    def __init__(
        self,
        remote: BackendServer,
        *,
        model: str,
        temperature: float | None,
        config: VlmConfig,
        pay: Callable[[Cost], None],
    ) -> None:
        self._remote = remote
        self._pay = pay
        self._fields: dict[str, Any] = {"model": model}
        if temperature is not None:
            self._fields["temperature"] = temperature
        if config.max_tokens is not None:
            self._fields["max_tokens"] = config.max_tokens
        self._fields |= config.body

    async def ask(self, messages: Sequence[ChatMessage]) -> ModelAnswer:
        """Send messages and return the answer.

        Raises `BackendUnavailable` if the model refuses or its answer is empty.
        """
        cut = False
        for _ in range(MAX_ATTEMPTS):
            answer = await self._remote.ask("/chat/completions", {**self._fields, "messages": list(messages)})
            self._pay(_parse_cost(answer.get("usage")))
            said = self._said(answer)
            if said.text:
                return said
            cut = said.cut
        raise BackendUnavailable(
            "the model answered nothing", hint="where it thinks first, raise max_tokens" if cut else None
        )

    async def read(
        self, messages: Sequence[ChatMessage], reader: Callable[[str], T], *, again: Callable[[Exception], str]
    ) -> T:
        """Return the answer as parsed by `reader`.

        An answer that it cannot parse is requested once more, after the message that `again` builds.
        """
        asked, why, text = list(messages), "", ""
        for _ in range(MAX_ATTEMPTS):
            text = (await self.ask(asked)).text
            try:
                return reader(text)
            except (UnreadableAnswer, OutOfRange) as exc:
                why = str(exc)
                asked += [build_assistant_message(text), {"role": "user", "content": again(exc)}]
        raise BackendUnavailable(self.quoted(f"the model's answer is of no use ({why})", text))

    def _said(self, answer: Mapping[str, Any]) -> ModelAnswer:
        choice = _as_mapping(next(iter(_as_list(answer.get("choices"))), None))
        for told in (answer, choice):
            if error := told.get("error"):
                raise BackendUnavailable(
                    self.quoted("the server answered an error", _as_mapping(error).get("message", error))
                )
        message = _as_mapping(choice.get("message"))
        if not message:
            raise BackendUnavailable("what answers does not speak the protocol: there is no message in its answer")
        if refusal := message.get("refusal"):
            raise BackendUnavailable(self.quoted("the model refused", refusal))
        if choice.get("finish_reason") == "content_filter":
            raise BackendUnavailable("the server's filter withheld the answer")
        text = THOUGHTS.sub("", _extract_text(message.get("content"))).strip()
        return ModelAnswer(text, choice.get("finish_reason") == "length")

    def quoted(self, what: str, said: object) -> str:
        """Format a message that quotes the beginning of a server's or model's answer."""
        return f"{what}: {self._remote.shown(' '.join(str(said).split()))[:MAX_QUOTED]!r}"


def _extract_text(content: object) -> str:
    """Return the text of an answer, given whole or in parts."""
    if isinstance(content, str):
        return content
    return "".join(_extract_text(_as_mapping(part).get("text")) for part in _as_list(content))


def _parse_cost(usage: object) -> Cost:
    told = _as_mapping(usage)

    def count(name: str) -> int:
        value = told.get(name)
        return value if isinstance(value, int) and 0 < value <= MAX_COUNT else 0

    # OpenRouter says what it takes for an answer.
    dollars = told.get("cost")
    dollars = float(dollars) if isinstance(dollars, int | float) and 0 < dollars <= MAX_COUNT else 0.0
    return Cost(count("prompt_tokens"), count("completion_tokens"), dollars)


def _as_mapping(value: object) -> Mapping[str, Any]:
    return value if is_mapping(value) else {}


def _as_list(value: object) -> list[object]:
    return value if is_list(value) else []
