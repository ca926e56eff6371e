"""Closed shadow trees: no script sees into them, but the DevTools protocol does, and hands their roots to the functions of ours in the document."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from handrail import Downstream, TimedOut
from handrail_browser.chromium import frames

if TYPE_CHECKING:
    from handrail_browser.chromium.frames import PageFrame
    from handrail_browser.chromium.tabs import ChromiumPage

# Of the objects that are held meanwhile.
OBJECT_GROUP = "handrail-hosts"
# A closed tree may hold others.
MAX_SHADOW_DEPTH = 4


async def call_with_shadow_roots(
    page: ChromiumPage,
    function: str,
    args: dict[str, Any],
    *,
    frame: PageFrame | None = None,
    seconds: float | None = None,
) -> Any:
    """Call `ChromiumPage.ask` with a function that counts `strangers`, elements that may hold a closed shadow tree.

    The call is repeated once these trees are known.
    """
    told = await page.ask(function, args, frame=frame, seconds=seconds)
    for _ in range(MAX_SHADOW_DEPTH):
        if not told.get("strangers") or not await page.unless_asked(
            _discover_closed_roots(page, frame or page.document)
        ):
            break
        told = await page.ask(function, args, frame=frame, seconds=seconds)
    return told


async def _discover_closed_roots(page: ChromiumPage, frame: PageFrame) -> int:
    """Have the closed trees of a frame known; how many there were."""
    send = page.connection.send
    api = await frames.get_api_object(page.connection, frame)
    met = {"functionDeclaration": "function() { return this.meet(); }", "objectId": api, "objectGroup": OBJECT_GROUP}
    try:
        found = await send("Runtime.callFunctionOn", met, session=frame.session)
        listed = {"objectId": found["result"]["objectId"], "ownProperties": True}
        properties = await send("Runtime.getProperties", listed, session=frame.session)
        hosts = [each["value"]["objectId"] for each in properties["result"] if each["name"].isdigit()]
        return sum(await asyncio.gather(*(_adopt_closed_root(page, frame, api, host) for host in hosts)))
    finally:
        with suppress(Downstream, TimedOut):
            await send("Runtime.releaseObjectGroup", {"objectGroup": OBJECT_GROUP}, session=frame.session)


async def _adopt_closed_root(page: ChromiumPage, frame: PageFrame, api: str, host: str) -> bool:
    send = page.connection.send
    # It may be gone again.
    with suppress(Downstream):
        node = (await send("DOM.describeNode", {"objectId": host, "pierce": True}, session=frame.session))["node"]
        for root in node.get("shadowRoots", ()):
            if root.get("shadowRootType") == "closed":
                where = {"executionContextId": frame.context, "objectGroup": OBJECT_GROUP}
                given = {"backendNodeId": root["backendNodeId"], **where}
                resolved = await send("DOM.resolveNode", given, session=frame.session)
                adopt = {
                    "functionDeclaration": "function(host, root) { this.adopt(host, root); }",
                    "objectId": api,
                    "arguments": [{"objectId": host}, {"objectId": resolved["object"]["objectId"]}],
                }
                await send("Runtime.callFunctionOn", adopt, session=frame.session)
                return True
    return False
