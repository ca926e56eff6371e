"""A vision backend that asks a model, whichever it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import anyio.to_thread
from pydantic import BaseModel

from handrail import (
    BackendContext,
    BackendUnavailable,
    Cost,
    Dialect,
    Element,
    Frame,
    NotFound,
    OutOfRange,
    Rect,
    Size,
    Transform,
    VisionBackend,
)
from handrail_vision_vlm import prompts
from handrail_vision_vlm.config import CoordinateKind, VlmConfig, compute_sent_size, select_dialect
from handrail_vision_vlm.place_parser import PicturePlace, parse_places

if TYPE_CHECKING:
    from handrail.vision.backend_server import BackendServer
    from handrail_vision_vlm.chat_client import ChatClient, ChatMessage
    from handrail_vision_vlm.picture import EncodedPicture

KEY_PREFIX = "secret:"
# Pixels around a point that a model named: who clicks the middle clicks the point.
POINT_REACH = 4
NO_ROLE = re.compile(r"[^a-z0-9 _-]")
TEXT_ROLES = frozenset({"text", "label", "heading", "title", "image", "picture"})


class VlmBackend(VisionBackend):
    """A model that looks at the picture. What families of models differ in is declared by its subclasses."""

    capabilities: ClassVar[frozenset[str]] = frozenset({"parse_screen", "understand"})
    Config = VlmConfig
    config: VlmConfig
    # Its name on Hugging Face, which is what servers call it unless told otherwise.
    model: ClassVar[str | None] = None
    coordinates: ClassVar[CoordinateKind] = "thousand"
    temperature: ClassVar[float | None] = 0.0

    def __init__(self, config: BaseModel | None = None) -> None:
        super().__init__(config)
        self.deadline = self.config.deadline
        self._remote: BackendServer | None = None
        self._talk: ChatClient | None = None

    @classmethod
    def unfit(cls, config: BaseModel) -> str | None:
        """Return what the user must configure before it can be used: pictures are sent to no default address."""
        assert isinstance(config, VlmConfig)
        if config.url is None:
            return f"backends.{cls.name}.url is not set; give the address where a model is served, as docs/vision-vlm.md shows"
        if config.model is None and cls.model is None:
            return f"backends.{cls.name}.model is not set; give the model's name there"
        return None

    async def open(self, context: BackendContext) -> None:
        """Make ready to ask. Nothing is sent before the first question."""
        from handrail.vision.backend_server import BackendServer
        from handrail_vision_vlm.chat_client import ChatClient

        if (lacks := self.unfit(self.config)) is not None:
            raise BackendUnavailable(lacks)
        model = self.config.model or self.model
        assert self.config.url is not None
        assert model is not None
        key = await self._key(context, f"backends.{self.name}")
        self._remote = BackendServer(
            self.config.url,
            network=context.network,
            seconds=self.deadline,
            headers={"authorization": f"Bearer {key}"} if key else {},
            hidden=(key,),
            tries=self.config.tries,
        )
        temperature = self.temperature if self.config.temperature is None else self.config.temperature
        self._talk = ChatClient(self._remote, model=model, temperature=temperature, config=self.config, pay=self._pay)

    async def close(self) -> None:
        """Close the connections."""
        if self._remote is not None:
            await self._remote.aclose()
            self._remote = self._talk = None

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        """Return the elements that the model finds for the intent, or all controls it sees without one.

        Points become small squares.
        """
        shown = await self._shown(frame)
        asked = [self._user(self._find(intent, shown.size), shown)]
        found = await self._chat.read(asked, parse_places, again=lambda _: prompts.RETRY_PROMPT)
        return self._elements(found, frame, shown.size, intent)

    async def understand(self, frame: Frame, intent: str) -> str:
        """Return the model's description of the picture."""
        said = await self._chat.ask([self._user(prompts.build_describe_prompt(intent), await self._shown(frame))])
        return f"{said.text} […]" if said.cut else said.text

    # What families do in their own way

    def _find(self, intent: str, size: Size) -> str:
        """Build the prompt that asks for places."""
        return prompts.build_find_prompt(intent, self._counts, size)

    @property
    def _counts(self) -> CoordinateKind:
        return self.config.coordinates or self.coordinates

    # What all of them share

    @property
    def _chat(self) -> ChatClient:
        assert self._talk is not None, "it is asked before it is open"
        return self._talk

    def _user(self, text: str, *pictures: EncodedPicture) -> ChatMessage:
        from handrail_vision_vlm.chat_client import build_user_message

        return build_user_message(text, *pictures)

    async def _key(self, context: BackendContext, table: str) -> str:
        """Return the API key; empty if none is configured."""
        if self.config.key is not None:
            try:
                return await context.secret(self.config.key.removeprefix(KEY_PREFIX))
            except NotFound as exc:
                raise BackendUnavailable(f"{table}.key: {exc}", hint=exc.hint) from exc
        if self.config.key_variable is None:
            return ""
        if key := context.environment.get(self.config.key_variable):
            return key
        raise BackendUnavailable(
            f"{table}.key_variable names {self.config.key_variable}, and it is not set in the environment",
            hint=f"export {self.config.key_variable}=…, or name a secret by {table}.key",
        )

    def _pay(self, cost: Cost) -> None:
        self.cost += cost

    async def _shown(self, frame: Frame) -> EncodedPicture:
        """Encode the picture as it is sent."""
        from handrail_vision_vlm.picture import encode_picture

        height, width = frame.pixels.shape[:2]
        try:
            size = compute_sent_size(Size(width, height), self._counts, self.config)
        except OutOfRange as exc:
            raise BackendUnavailable(str(exc)) from exc
        return await anyio.to_thread.run_sync(encode_picture, frame.pixels, size, abandon_on_cancel=True)

    def _elements(self, found: Sequence[PicturePlace], frame: Frame, sent: Size, intent: str) -> list[Element]:
        made: list[Element] = []
        outside = ""
        usual = select_dialect(self._counts, self.config)
        on_screen = Transform(frame.screen, sent.width, sent.height)
        for place in found:
            counted = select_dialect(place.coordinates, self.config) if place.coordinates else usual
            try:
                made.append(_create_element(place, _to_screen_rect(place, counted, on_screen, sent), intent))
            except OutOfRange as exc:
                outside = str(exc)
        if outside and not made:
            raise BackendUnavailable(
                outside, hint=f"see whether backends.{self.name}.coordinates says how this model counts"
            )
        return made


def _to_screen_rect(place: PicturePlace, counted: Dialect, on_screen: Transform, sent: Size) -> Rect:
    """Convert a place to a screen rectangle; raise `OutOfRange` if it is outside the picture."""
    screen = on_screen.screen
    if len(place.numbers) == 4:
        x1, y1, x2, y2 = place.numbers
        return _ensure_visible(on_screen.rect_to_screen(counted.box(x1, y1, x2, y2, sent)), screen)
    x, y = on_screen.to_screen(*counted.point(place.numbers[0], place.numbers[1], sent))
    reach = min(POINT_REACH, x - screen.x, y - screen.y, screen.right - 1 - x, screen.bottom - 1 - y)
    return Rect(x - reach, y - reach, 2 * reach + 1, 2 * reach + 1)


def _ensure_visible(rect: Rect, screen: Rect) -> Rect:
    """Enlarge a box thinner than a screen pixel to one pixel."""
    x, y = min(rect.x, screen.right - 1), min(rect.y, screen.bottom - 1)
    return Rect(x, y, max(1, rect.width), max(1, rect.height))


def _create_element(place: PicturePlace, rect: Rect, intent: str) -> Element:
    role = NO_ROLE.sub("", place.role.lower())[:30].strip() or "target"
    text = place.label or intent
    return Element(
        role,
        text,
        rect,
        source="vision",
        actions=() if role in TEXT_ROLES else ("click",),
        fingerprint=f"{role}:{text}" if text else "",
    )
