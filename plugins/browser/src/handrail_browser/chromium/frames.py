"""The documents in a tab: each frame with the session that reaches it, and the world of ours in it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail import Downstream
from handrail_browser.chromium.cdp import CommandRefused, TargetGone

if TYPE_CHECKING:
    from handrail_browser.chromium.cdp import CdpConnection

WORLD_NAME = "handrail"
CONTEXT_LOST_ERRORS = (
    "context with specified id",
    "context was destroyed",
    "Inspected target navigated",
    "uniqueContextId not found",
)


# A page that leads on by itself may replace a document as soon as it is asked.
MAX_TRIES = 3


@cache
def build_page_script() -> str:
    """What is asked of documents: an expression whose value is the object `asked`, to which each file of `page` adds its functions.

    All files are read in one scope: what one defines, the others use, in whatever order they stand. No script of the page reaches it.
    """
    files = sorted(Path(__file__).with_name("page").glob("*.js"))
    return "\n".join(
        (
            "(() => {",
            "const asked = {};",
            *(file.read_text(encoding="utf-8") for file in files),
            "return asked;",
            "})()",
        )
    )


@dataclass(slots=True)
class PageFrame:
    """A document in a tab. `session` is the process that shows it; `loader` changes with each document."""

    id: str
    session: str
    parent: str | None
    url: str = ""
    loader: str = ""
    api: str | None = None
    context: int = 0
    making: asyncio.Lock = field(default_factory=asyncio.Lock)

    def renewed(self) -> None:
        """It shows another document from now on."""
        self.api = None


async def call_page_function(
    connection: CdpConnection,
    frame: PageFrame,
    function: str,
    args: dict[str, Any] | None = None,
    *,
    seconds: float | None = None,
) -> Any:
    """What a function of ours gives in a frame; asked again when the document was replaced meanwhile."""
    for _ in range(MAX_TRIES):
        try:
            return await _call_function(connection, frame, function, args or {}, seconds)
        except CommandRefused as exc:
            if not any(each in str(exc) for each in CONTEXT_LOST_ERRORS):
                raise
            frame.renewed()
    raise TargetGone("the page was replaced by another one again and again while it was looked at", hint="try again")


async def _call_function(
    connection: CdpConnection, frame: PageFrame, function: str, args: dict[str, Any], seconds: float | None
) -> Any:
    held = await get_api_object(connection, frame, seconds)
    answer = await connection.send(
        "Runtime.callFunctionOn",
        {
            "functionDeclaration": f"function(args) {{ return this.{function}(args); }}",
            "objectId": held,
            "arguments": [{"value": args}],
            "awaitPromise": True,
            "returnByValue": function != "elementAt",
        },
        session=frame.session,
        seconds=seconds,
    )
    if (details := answer.get("exceptionDetails")) is not None:
        raise Downstream(
            f"the page could not be asked: {details.get('exception', {}).get('description', details.get('text'))}"[:500]
        )
    result = answer["result"]
    return result.get("objectId") if function == "elementAt" else result.get("value")


async def get_api_object(connection: CdpConnection, frame: PageFrame, seconds: float | None = None) -> str:
    """The object whose functions are ours, in our world of the frame; made where it is not there yet."""
    async with frame.making:
        held = frame.api
        if held is None:
            args = {"frameId": frame.id, "worldName": WORLD_NAME}
            world = await connection.send("Page.createIsolatedWorld", args, session=frame.session, seconds=seconds)
            frame.context = world["executionContextId"]
            args = {"expression": build_page_script(), "contextId": frame.context}
            made = await connection.send("Runtime.evaluate", args, session=frame.session, seconds=seconds)
            held = frame.api = str(made["result"]["objectId"])
    return held


async def get_element_number(connection: CdpConnection, frame: PageFrame, node: int) -> int:
    """What our functions in a frame call an element, given its number in the protocol."""
    held = await get_api_object(connection, frame)
    where = {"backendNodeId": node, "executionContextId": frame.context}
    found = await connection.send("DOM.resolveNode", where, session=frame.session)
    called = {
        "functionDeclaration": "function(element) { return this.numberOf(element); }",
        "objectId": held,
        "arguments": [{"objectId": found["object"]["objectId"]}],
        "returnByValue": True,
    }
    return (await connection.send("Runtime.callFunctionOn", called, session=frame.session))["result"]["value"]


async def map_to_window(
    connection: CdpConnection, frames: dict[str, PageFrame], frame: PageFrame, x: float, y: float
) -> tuple[float, float, str | None]:
    """Where a point of a frame lies in the window of its tab, in pixels; and what is in the way, in the documents around the frame."""
    why: str | None = None
    while frame.parent is not None:
        parent = frames.get(frame.parent)
        if parent is None:
            raise TargetGone("the frame is gone")
        owner = await connection.send("DOM.getFrameOwner", {"frameId": frame.id}, session=parent.session)
        shown = await get_element_number(connection, parent, owner["backendNodeId"])
        told = await call_page_function(connection, parent, "through", {"n": shown, "x": x, "y": y})
        if told.get("gone"):
            raise TargetGone("the frame is gone")
        x, y, why, frame = told["x"], told["y"], why or told["why"], parent
    return x, y, why
