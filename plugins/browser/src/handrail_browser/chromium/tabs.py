"""One tab: its frames, what it loads, and what it asks for, kept up to date by its events."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine
from functools import cache
from time import monotonic
from typing import TYPE_CHECKING, Any, TypeVar, cast

from handrail import Downstream, TimedOut
from handrail_browser.chromium import frames
from handrail_browser.chromium.cdp import TargetGone
from handrail_browser.chromium.frames import PageFrame
from handrail_browser.driver import BrowserTab, PageInterrupted

if TYPE_CHECKING:
    from handrail_browser.chromium.cdp import CdpConnection

T = TypeVar("T")

# Requests that may go on for ever.
LONG_LIVED_TYPES = frozenset(("WebSocket", "EventSource", "Ping", "Media", "Prefetch", "Preflight"))
# Only the frames of the same site are in the process of a page: others are attached to as they come.
FRAME_ATTACH_OPTIONS = {
    "autoAttach": True,
    "waitForDebuggerOnStart": False,
    "flatten": True,
    "filter": [{"type": "iframe"}],
}


@cache
def _handler_name(method: str) -> str:
    """Return the name of the method that handles an event: `Page.frameNavigated` is `_on_page_frame_navigated`."""
    return "_on_" + re.sub(r"(?<=[a-z])(?=[A-Z])", "_", method.replace(".", "_")).lower()


class ChromiumPage:
    """A tab as the DevTools protocol shows it. `moment` grows with every event that may matter to whoever waits."""

    def __init__(self, connection: CdpConnection, *, id: str, target: str, session: str) -> None:
        self.connection = connection
        self.id = id
        self.target = target
        self.session = session
        self.frames: dict[str, PageFrame] = {}
        self.main = target
        self.url = ""
        self.title = ""
        self.dialog: dict[str, Any] | None = None
        self.chooser: dict[str, Any] | None = None
        self.crashed = False
        # Until it is known how it is.
        self.fresh = True
        self.loading = False
        self.reached: set[str] = set()
        self.status: dict[str, Any] | None = None
        self.failure: str | None = None
        # Whether a document has come since one was asked for, and the last one that did not: it may be what a page began by itself.
        self._arrived = False
        self._error = ""
        self.started = 0.0
        self.navigations = 0
        # How many documents it has shown, and the files that it began to download with nobody waiting for them.
        self.documents = 0
        self.files: list[str] = []
        # Name and password for a server that asks for them, and the only one that gets them.
        self.login: tuple[str, str] | None = None
        self.login_origin = ""
        # When each began, and for which frame.
        self._requests: dict[str, tuple[float, str]] = {}
        self._tried: set[str] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._turn = asyncio.Event()
        connection.listen(session, self._told(session))

    @property
    def seen(self) -> BrowserTab:
        """The tab as drivers show it."""
        state = "crashed" if self.crashed else "dialog" if self.dialog else "file_chooser" if self.chooser else "open"
        asks = self.dialog or ({"multiple": self.chooser["mode"] == "selectMultiple"} if self.chooser else {})
        return BrowserTab(self.id, self.url, self.title, state=state, asks=asks)

    @property
    def document(self) -> PageFrame:
        """The outermost frame."""
        found = self.frames.get(self.main)
        if found is None:
            raise TargetGone("the tab shows nothing", hint="navigate somewhere")
        return found

    async def prepare(self) -> None:
        """Have it tell what happens in it."""
        await asyncio.gather(*self._enable(self.session))
        tree = await self.connection.send("Page.getFrameTree", session=self.session)
        going_to = self.url
        self._take(tree["frameTree"], self.session, None)
        # A tab tells where it is going before the document of that place is there; what was told is of the one before.
        if going_to not in ("", self.url) and not self.navigations:
            self.begin()
            self.loading = True
        self.fresh = False
        self.turned()

    def _enable(self, session: str) -> list[Coroutine[Any, Any, Any]]:
        send = self.connection.send
        return [
            send("Page.enable", session=session),
            send("Network.enable", {"maxTotalBufferSize": 0, "maxResourceBufferSize": 0}, session=session),
            send("Page.setLifecycleEventsEnabled", {"enabled": True}, session=session),
            send("Page.setInterceptFileChooserDialog", {"enabled": True}, session=session),
            send("Inspector.enable", session=session),
            send("Target.setAutoAttach", FRAME_ATTACH_OPTIONS, session=session),
            # A window that a page opens waits for this; the page that opened it does, too.
            send("Runtime.runIfWaitingForDebugger", session=session),
        ]

    def _take(self, tree: dict[str, Any], session: str, parent: str | None) -> None:
        told = tree["frame"]
        frame = self.frames.setdefault(told["id"], PageFrame(told["id"], session, parent))
        outermost = parent is None and session == self.session
        if outermost:
            self.main = told["id"]
        # An event may have told of a newer document meanwhile.
        if not frame.loader:
            frame.url, frame.loader = told["url"], told.get("loaderId", "")
            if outermost:
                self.url = told["url"] + told.get("urlFragment", "")
        for child in tree.get("childFrames", ()):
            self._take(child, session, told["id"])

    # Asking

    async def ask(
        self,
        function: str,
        args: dict[str, Any] | None = None,
        *,
        frame: PageFrame | None = None,
        seconds: float | None = None,
    ) -> Any:
        """Return the result of a page function of ours in a frame, by default the outermost one.

        Raises `PageInterrupted` if the page opens a dialog meanwhile.
        """
        return await self.unless_asked(
            frames.call_page_function(self.connection, frame or self.document, function, args, seconds=seconds)
        )

    async def unless_asked(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the result of the work.

        Raises `PageInterrupted` as soon as the page waits for an answer, and `TargetGone` when it crashes. The work is
        then canceled, but a command that the browser has received continues.
        """
        task = asyncio.ensure_future(work)
        turning: asyncio.Task[Any] | None = None
        try:
            while not task.done():
                if self.crashed:
                    raise TargetGone("the page has crashed", hint="navigate again, or close the tab")
                if self.dialog is not None or self.chooser is not None:
                    raise PageInterrupted
                turning = asyncio.create_task(self._turn.wait())
                await asyncio.wait([task, turning], return_when=asyncio.FIRST_COMPLETED)
                if not turning.done():
                    turning.cancel()
            return await task
        finally:
            if not task.done():
                task.cancel()
            if turning is not None and not turning.done():
                turning.cancel()

    async def until(self, met: Callable[[], bool], seconds: float) -> bool:
        """Return True once the condition is met, False if it is not met in time. It is checked after each event.

        Raises `TargetGone` if the browser ends.
        """
        ends = monotonic() + seconds
        while not met():
            if self.connection.closed.is_set():
                raise TargetGone("the browser has ended", hint="call again: a new one is started")
            left = ends - monotonic()
            if left <= 0:
                return False
            try:
                async with asyncio.timeout(min(left, 1.0)):
                    await self._turn.wait()
            except TimeoutError:
                continue
        return True

    def busy(self, since: float = 0.0) -> int:
        """Count pending requests that began at or after `since` (monotonic), without those that stay open for good."""
        return sum(1 for began, _ in self._requests.values() if began >= since)

    @property
    def interrupted(self) -> bool:
        """True if the page waits for an answer or has crashed."""
        return self.crashed or self.dialog is not None or self.chooser is not None

    @property
    def arrived(self) -> bool:
        """True if a document has arrived since one was requested."""
        return self._arrived

    def turned(self) -> None:
        """Wake whoever waits."""
        turn, self._turn = self._turn, asyncio.Event()
        turn.set()

    def begin(self) -> None:
        """Forget how the last document came: another one is asked for."""
        self.reached.clear()
        self.status, self.failure, self.started = None, None, monotonic()
        self._arrived, self._error = False, ""

    # Events

    def _told(self, session: str) -> Callable[[str, dict[str, Any]], None]:
        def told(method: str, params: dict[str, Any]) -> None:
            handler = cast("Callable[[str, dict[str, Any]], None] | None", getattr(self, _handler_name(method), None))
            if handler is not None:
                handler(session, params)
                self.turned()

        return told

    def _on_target_attached_to_target(self, session: str, params: dict[str, Any]) -> None:
        own, info = params["sessionId"], params["targetInfo"]
        self.connection.listen(own, self._told(own))
        frame = self.frames.get(info["targetId"])
        if frame is None:
            frame = self.frames[info["targetId"]] = PageFrame(info["targetId"], own, self._owner(session))
        frame.session = own
        frame.renewed()
        # The end of what brought the frame's document may have been told before anybody listened.
        for number in [each for each, (_, of) in self._requests.items() if of == frame.id]:
            del self._requests[number]
        for command in self._enable(own):
            self._later(command)

    def _owner(self, session: str) -> str | None:
        return next((frame.id for frame in self.frames.values() if frame.session == session), self.main)

    def _later(self, command: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.create_task(self._quietly(command))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _quietly(self, command: Coroutine[Any, Any, Any]) -> None:
        try:
            await command
        # A frame may be gone before it has answered.
        except (Downstream, TimedOut):
            return

    def _on_target_detached_from_target(self, session: str, params: dict[str, Any]) -> None:
        self.connection.forget(params["sessionId"])
        for frame in [each for each in self.frames.values() if each.session == params["sessionId"]]:
            del self.frames[frame.id]

    def _on_page_frame_attached(self, session: str, params: dict[str, Any]) -> None:
        self.frames.setdefault(
            params["frameId"], PageFrame(params["frameId"], session, params["parentFrameId"])
        ).parent = params["parentFrameId"]

    def _on_page_frame_detached(self, session: str, params: dict[str, Any]) -> None:
        if params.get("reason") != "swap":
            self.frames.pop(params["frameId"], None)

    def _on_page_frame_navigated(self, session: str, params: dict[str, Any]) -> None:
        told = params["frame"]
        frame = self.frames.setdefault(told["id"], PageFrame(told["id"], session, told.get("parentId")))
        frame.session, frame.url, frame.loader = session, told["url"], told.get("loaderId", "")
        frame.renewed()
        if told["id"] == self.main:
            self._arrived = "unreachableUrl" not in told
            self.url = told.get("unreachableUrl") or told["url"] + told.get("urlFragment", "")
            self.failure = None if self._arrived else self._error or "unreachable"
            self.crashed = False
            self.navigations += 1
            self.documents += 1
            self.reached.clear()

    def _on_page_navigated_within_document(self, session: str, params: dict[str, Any]) -> None:
        if params["frameId"] == self.main:
            self.url = params["url"]
            self.navigations += 1

    def _on_page_frame_started_loading(self, session: str, params: dict[str, Any]) -> None:
        if params["frameId"] == self.main:
            self.loading = True

    def _on_page_frame_requested_navigation(self, session: str, params: dict[str, Any]) -> None:
        if params["frameId"] == self.main and params.get("disposition", "currentTab") == "currentTab":
            self.loading = True

    def _on_page_frame_stopped_loading(self, session: str, params: dict[str, Any]) -> None:
        if params["frameId"] == self.main:
            self.loading = False

    def _on_page_lifecycle_event(self, session: str, params: dict[str, Any]) -> None:
        if params["frameId"] == self.main:
            self.reached.add(params["name"])

    def _on_page_dom_content_event_fired(self, session: str, params: dict[str, Any]) -> None:
        if session == self.session:
            self.reached.add("DOMContentLoaded")

    def _on_page_load_event_fired(self, session: str, params: dict[str, Any]) -> None:
        if session == self.session:
            self.reached.add("load")

    def _on_page_javascript_dialog_opening(self, session: str, params: dict[str, Any]) -> None:
        self.dialog = {"kind": params["type"], "message": params["message"][:2_000], "from": params["url"][:300]}
        if params["type"] == "prompt":
            self.dialog["default"] = params.get("defaultPrompt", "")

    def _on_page_javascript_dialog_closed(self, session: str, params: dict[str, Any]) -> None:
        self.dialog = None

    def _on_page_file_chooser_opened(self, session: str, params: dict[str, Any]) -> None:
        self.chooser = {**params, "session": session}

    def _on_inspector_target_crashed(self, session: str, params: dict[str, Any]) -> None:
        if session == self.session:
            self.crashed, self.loading, self.dialog, self.chooser = True, False, None, None

    def _on_network_request_will_be_sent(self, session: str, params: dict[str, Any]) -> None:
        kind = params.get("type")
        if kind in LONG_LIVED_TYPES:
            return
        self._requests[params["requestId"]] = monotonic(), params.get("frameId", "")

    def _on_network_response_received(self, session: str, params: dict[str, Any]) -> None:
        if params.get("type") == "Document" and params.get("frameId") == self.main:
            response = params["response"]
            self.status = {
                "status": response["status"],
                "by": response.get("statusText", ""),
                "content_type": response.get("mimeType", ""),
                "headers": {name.lower(): value for name, value in response.get("headers", {}).items()},
            }
        if params.get("response", {}).get("mimeType") == "text/event-stream":
            self._requests.pop(params["requestId"], None)

    def _on_network_loading_finished(self, session: str, params: dict[str, Any]) -> None:
        self._requests.pop(params["requestId"], None)

    def _on_network_loading_failed(self, session: str, params: dict[str, Any]) -> None:
        self._requests.pop(params["requestId"], None)
        if params.get("type") == "Document" and session == self.session:
            self._error = params.get("errorText", "")
            if not self._arrived:
                self.failure = self._error or self.failure

    def _on_fetch_request_paused(self, session: str, params: dict[str, Any]) -> None:
        self.connection.tell("Fetch.continueRequest", {"requestId": params["requestId"]}, session=session)

    def _on_fetch_auth_required(self, session: str, params: dict[str, Any]) -> None:
        """Answer with the user name and password of the call, once and for its own host only.

        A second challenge means that they are wrong, and is canceled.
        """
        number, origin = params["requestId"], params["authChallenge"].get("origin", "")
        answer: dict[str, str] = {"response": "CancelAuth"}
        if self.login is not None and number not in self._tried and params["authChallenge"].get("source") != "Proxy":
            self._tried.add(number)
            if origin.rstrip("/") == self.login_origin:
                answer = {"response": "ProvideCredentials", "username": self.login[0], "password": self.login[1]}
        self.connection.tell(
            "Fetch.continueWithAuth", {"requestId": number, "authChallengeResponse": answer}, session=session
        )
