"""The vision backend `omniparser`: text and icons on the screen, by a server that runs Microsoft's OmniParser.

Only its HTTP interface is spoken here (https://github.com/microsoft/OmniParser, omnitool/omniparserserver); none of its code or weights is used.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import anyio
import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from handrail import BackendContext, BackendUnavailable, Element, Frame, Rect, VisionBackend
from handrail_vision_omniparser.response_parser import parse_elements

if TYPE_CHECKING:
    from handrail.vision.backend_server import BackendServer
    from handrail_vision_omniparser.local_server import LocalServer
    from handrail_vision_omniparser.request_picture import RequestPicture

# Seconds in which a server that has nothing else to do says that it is there.
PROBE_S = 3.0
START_POLL_S = 0.2
# Bytes of an answer: a picture of the screen with numbers on it comes with the elements.
MAX_REPLY_BYTES = 64_000_000


class OmniParserConfig(BaseModel):
    """`[backends.omniparser]`"""

    model_config = ConfigDict(extra="forbid", frozen=True)

    url: Annotated[str, Field(pattern=r"^https?://[^\s]+$")] = Field(
        default="http://127.0.0.1:8000", description="Where the server is."
    )
    command: tuple[str, ...] = Field(
        default=(), description="The program that is the server, and its arguments, if Handrail is to start and end it."
    )
    cwd: str | None = Field(default=None, description="The folder it runs in; unset: `/`, where no agent writes.")
    deadline: Annotated[float, Field(gt=0, le=600)] = Field(
        default=120, description="Seconds for one picture; a processor alone takes a minute and more."
    )


class OmniParser(VisionBackend):
    """Text and icons, by an OmniParser server on this machine or another one.

    The server works on one picture at a time and answers nothing meanwhile, so questions take turns.
    """

    name = "omniparser"
    capabilities: ClassVar[frozenset[str]] = frozenset({"parse_screen"})
    Config = OmniParserConfig
    config: OmniParserConfig

    def __init__(self, config: BaseModel | None = None) -> None:
        super().__init__(config)
        self.deadline = self.config.deadline
        self._remote: BackendServer | None = None
        self._local: LocalServer | None = None
        self._turn = anyio.Lock()

    async def open(self, context: BackendContext) -> None:
        """Check that the server answers; one to be started locally starts with the first request, or by `warm_up`."""
        from handrail.vision.backend_server import BackendServer

        self._remote = BackendServer(
            self.config.url, network=context.network, seconds=self.deadline, longest=MAX_REPLY_BYTES
        )
        if self.config.command:
            from handrail_vision_omniparser.local_server import LocalServer

            self._local = LocalServer(self.config.command, cwd=self.config.cwd, environment=context.environment)
        elif not await self._answers():
            raise BackendUnavailable(
                f"no OmniParser answers at {self.config.url}",
                hint="start one, or set backends.omniparser.url or .command; docs/vision-omniparser.md shows how",
            )

    async def warm_up(self) -> None:
        """Have the server load its models."""
        from handrail_vision_omniparser.request_picture import create_sample

        async with self._turn:
            await self._ready()
            await self._parsed(create_sample())

    async def close(self) -> None:
        """End the server that was started here."""
        if self._remote is not None:
            await self._remote.aclose()
            self._remote = None
        if self._local is not None:
            await self._local.stop()

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        """Return elements in the server's order; `ref` is the number shown in its own picture."""
        from handrail_vision_omniparser.request_picture import create_picture

        async with self._turn:
            try:
                await self._ready()
                self.doing = "reads the picture"
                sent = await _run_in_thread(partial(create_picture, frame.pixels))
                return await self._elements(sent, frame)
            finally:
                self.doing = ""

    async def _elements(self, sent: RequestPicture, frame: Frame) -> list[Element]:
        from handrail.vision.backend_server import ServerRefused
        from handrail_vision_omniparser.request_picture import add_text_line

        try:
            answered = await self._parsed(sent)
        except ServerRefused as exc:
            if exc.http_status != HTTPStatus.INTERNAL_SERVER_ERROR:
                raise
            # The server breaks where its reader finds no text at all (util/utils.py goes through None). So it is given a line to find.
            sent = await _run_in_thread(partial(add_text_line, frame.pixels))
            answered = await self._parsed(sent)
        return parse_elements(
            answered, sent.size, Rect(frame.screen.x, frame.screen.y, sent.shown.width, sent.shown.height)
        )

    async def _parsed(self, sent: RequestPicture) -> Mapping[str, Any]:
        assert self._remote is not None, "it is asked before it is open"
        asked = {"base64_image": base64.b64encode(sent.png).decode("ascii")}
        # One try: a server that is at work on a picture would be given the same one again.
        return await self._remote.ask("/parse/", asked, tries=1)

    async def _ready(self) -> None:
        """Wait until the server that is started here answers."""
        local = self._local
        if local is None or (local.ready and local.running):
            return
        self.doing = "starts its server"
        while not await self._answers():
            if not local.running:
                if local.started:
                    raise BackendUnavailable(
                        f"the server of backends.omniparser.command has ended: {await local.stop()}",
                        hint="see whether it works in a terminal",
                    )
                await local.start()
            await anyio.sleep(START_POLL_S)
        local.ready = True

    async def _answers(self) -> bool:
        """Return True if the server is there. A server that stays silent is busy with another picture."""
        from handrail.vision.backend_server import ServerNotReached

        assert self._remote is not None, "it is asked before it is open"
        with anyio.move_on_after(PROBE_S):
            try:
                await self._remote.ask("/probe/", tries=1)
            except ServerNotReached:
                return False
        return True


async def _run_in_thread(make: Any) -> RequestPicture:
    return await anyio.to_thread.run_sync(make, abandon_on_cancel=True)
