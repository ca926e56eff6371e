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
    """Return the script that is run in documents.

    It is an expression whose value is the object `asked`, to which each file of `page` adds its functions. All files
    share one scope: each can use the definitions of the others, in any order. Scripts of the page cannot access it.
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
        """Record that the frame now shows another document."""
        self.api = None


async def call_page_function(
    connection: CdpConnection,
    frame: PageFrame,
    function: str,
    args: dict[str, Any] | None = None,
    *,
    seconds: float | None = None,
) -> Any:
    """Call a page function of ours in a frame and return its value; repeat it if the document was replaced meanwhile.

    Raises `TargetGone` if the document keeps being replaced.
    """
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
    """Return the object with our functions in our isolated world of the frame, created if necessary."""
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
    """Return the number that our functions in a frame give an element, from its backend node id."""
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
    """Return a frame's point in pixels of the tab's window, and what covers it in the documents around the frame.

    The last item is None if nothing covers the point.
    """
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
