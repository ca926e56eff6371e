"""Handlers of the page's requests. All of them have passed the checks of `auth_gate`."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any, Literal

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from handrail import Desktop
from handrail.api.approval import Choice
from handrail.approval.ask_user import parse_reply
from handrail.approval.inbox import PendingApproval, PendingInquiry, answer_approval, answer_inquiry
from handrail.artifacts.picture_files import read_picture
from handrail.errors import HandrailError, NotFound
from handrail.net.loopback_guard import HttpRefusal, read_body
from handrail.session.runtime import Runtime
from handrail.terminal.json_lines import encode_json_line
from handrail_console.manual_control import ManualControl
from handrail_console.page import CONSOLE_PAGE, RESPONSE_HEADERS
from handrail_console.session_watch import SessionWatch, list_past_sessions, read_past_calls

# Bytes of what the page sends.
MAX_BODY = 2 * 2**20
# Past sessions that are listed.
DEFAULT_LISTED = 50
# Paths of one call that are shown.
SHOWN_PATHS = 40
# Faults of one request that are named.
MAX_FAULTS = 5
SESSION_PATTERN = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")
ANSWERED_BY = "in the console"
CLOSED_QUESTION = "this question is no longer open: it was answered elsewhere, cancelled, or came to its end"

RequestHandler = Callable[[Request], Awaitable[Response]]


class RequestBody(BaseModel):
    """Body of a request from the page. An unknown key is an error."""

    model_config = ConfigDict(extra="forbid")


class AnswerRequest(RequestBody):
    """An answer to the question `id` of a session about the call with this hash. `grant` is a place in its grants."""

    session: str
    id: str
    call_hash: str
    choice: Choice
    grant: int | None = Field(default=None, ge=0)
    args: dict[str, Any] | None = None
    feedback: str = Field(default="", max_length=10_000)


class ReplyRequest(RequestBody):
    """Replies to an agent's questions, one for each; None leaves that question open.

    If `replies` is None, the user declined to answer.
    """

    session: str
    id: str
    call_hash: str
    replies: list[str | bool | list[str] | None] | None


class StopRequest(RequestBody):
    """The stop switch of one desktop, or of all, on or off."""

    action: Literal["stop", "resume"]
    desktop: str | None = None


class UndoRequest(RequestBody):
    """The call to undo, and what is to become of files that were changed since; unless something is said of them, nothing is undone then."""

    call: str = Field(pattern=r"^[^/]{1,64}/.{1,200}$")
    force: bool = False
    skip_changed: bool = False


class ControlRequest(RequestBody):
    """Action that the user takes on a session's desktop."""

    session: str
    args: dict[str, Any]


class RequestHandlers:
    """The console's requests, one method each."""

    def __init__(self, runtime: Runtime, watch: SessionWatch, hands: ManualControl) -> None:
        self._runtime = runtime
        self._watch = watch
        self._hands = hands

    def app(self) -> Starlette:
        """Return the application that runs behind the checks of `auth_gate`."""
        return Starlette(
            routes=[
                Route("/page", _handle_errors(self.page)),
                Route("/live", _handle_errors(self.live)),
                Route("/sessions", _handle_errors(self.sessions)),
                Route("/sessions/{id}", _handle_errors(self.session)),
                Route("/sessions/{id}/pictures/{name}", _handle_errors(self.kept_picture)),
                Route("/sessions/{id}/output", _handle_errors(self.output)),
                Route("/sessions/{id}/screen", _handle_errors(self.screen)),
                Route("/answer", _handle_errors(self.answer), methods=["POST"]),
                Route("/reply", _handle_errors(self.reply), methods=["POST"]),
                Route("/stops", _handle_errors(self.stop), methods=["POST"]),
                Route("/control", _handle_errors(self.control), methods=["POST"]),
                Route("/undo", _handle_errors(self.undo_plans)),
                Route("/undo/diff", _handle_errors(self.undo_diff)),
                Route("/undo", _handle_errors(self.undo), methods=["POST"]),
            ]
        )

    async def page(self, request: Request) -> Response:
        """Return the page itself."""
        return Response(CONSOLE_PAGE, media_type="text/html")

    async def live(self, request: Request) -> Response:
        """Stream news as lines of JSON for as long as the page listens."""
        return StreamingResponse(_stream_ndjson(self._watch.lines()), media_type="application/x-ndjson")

    async def sessions(self, request: Request) -> Response:
        """List the sessions that have records."""
        places, before = self._runtime.places, request.query_params.get("before")
        return _json_response(
            await anyio.to_thread.run_sync(lambda: list_past_sessions(places, most=DEFAULT_LISTED, before=before))
        )

    async def session(self, request: Request) -> Response:
        """Return the last calls of a session, or those before."""
        file, before = self._audit(request), request.query_params.get("before")
        try:
            return _json_response(await anyio.to_thread.run_sync(lambda: read_past_calls(file, before=before)))
        except ValueError as exc:
            raise NotFound(f"there is no page before {before!r}") from exc

    async def output(self, request: Request) -> Response:
        """Stream the output of the calls of a running session, as lines of JSON, for as long as the page listens."""
        id = request.path_params["id"]
        if self._watch.running(id) is None:
            raise NotFound(f"no session {id!r} runs here")
        return StreamingResponse(_stream_ndjson(self._watch.output(id)), media_type="application/x-ndjson")

    async def kept_picture(self, request: Request) -> Response:
        """Return the image of a result."""
        audit, name = self._audit(request), request.path_params["name"]
        folder = self._runtime.places.artifacts / audit.stem
        if (data := await anyio.to_thread.run_sync(read_picture, folder, name)) is None:
            raise NotFound("this picture is not kept any longer")
        return Response(data, media_type="image/png" if name.endswith("png") else "image/jpeg")

    async def screen(self, request: Request) -> Response:
        """Return a screenshot of a running session's desktop, and the part of the screen that it shows."""
        picture = await self._hands.picture(self._desktop(request.path_params["id"]))
        shown = picture.transform.screen
        place = {"x": shown.x, "y": shown.y, "width": shown.width, "height": shown.height}
        return Response(picture.data, media_type="image/jpeg", headers={"handrail-screen": json.dumps(place)})

    async def answer(self, request: Request) -> Response:
        """Record the user's answer to the approval of a call."""
        asked = AnswerRequest.model_validate_json(await _read_body(request))
        left = self._watch.question(asked.session, asked.id, asked.call_hash)
        if not isinstance(left, PendingApproval):
            raise NotFound(CLOSED_QUESTION)
        if asked.choice.value not in left.choices:
            raise HandrailError(f"this question is not answered with {asked.choice!s}")
        if asked.choice is not Choice.DENY:
            _check_not_agent_input(self._runtime)
        answer_approval(
            self._runtime.places,
            left,
            asked.choice,
            grant=asked.grant,
            args=asked.args,
            feedback=asked.feedback,
            by=ANSWERED_BY,
        )
        return _json_response({"ok": True})

    async def reply(self, request: Request) -> Response:
        """Record the user's replies to an agent's questions."""
        asked = ReplyRequest.model_validate_json(await _read_body(request))
        left = self._watch.question(asked.session, asked.id, asked.call_hash)
        if not isinstance(left, PendingInquiry):
            raise NotFound(CLOSED_QUESTION)
        replies = [parse_reply(each) for each in asked.replies] if asked.replies is not None else None
        if replies is not None and (misfit := left.misfit(replies)):
            raise HandrailError(f"these are no answers: {misfit}")
        if replies is not None:
            _check_not_agent_input(self._runtime)
        answer_inquiry(self._runtime.places, left, replies, by=ANSWERED_BY)
        return _json_response({"ok": True})

    async def stop(self, request: Request) -> Response:
        """Engage or release the stop switch of one desktop, or of all."""
        asked = StopRequest.model_validate_json(await _read_body(request))
        stops = self._runtime.stops
        if asked.action == "resume":
            _check_not_agent_input(self._runtime)
        if asked.action == "stop":
            stops.engage(asked.desktop)
        elif asked.desktop is None:
            # Whoever resumes all of them means those that were stopped one by one, too.
            for name in stops.all():
                stops.release(None if name == "every" else name)
        else:
            stops.release(asked.desktop)
        return _json_response({"ok": True, "stops": stops.all()})

    async def control(self, request: Request) -> Response:
        """Perform an action of the user on a session's desktop."""
        asked = ControlRequest.model_validate_json(await _read_body(request))
        _check_not_agent_input(self._runtime)
        result = await self._hands.act(self._desktop(asked.session), asked.args)
        return _json_response(result.wire())

    async def undo_plans(self, request: Request) -> Response:
        """Return the newest calls that changed files, and what undoing each would do."""
        plans = await self._hands.undo_plans(most=DEFAULT_LISTED)
        return _json_response([plan.wire(most=SHOWN_PATHS) for plan in plans])

    async def undo_diff(self, request: Request) -> Response:
        """Return the changes that undoing a call would make, as a diff."""
        lines = await self._hands.undo_diff(request.query_params.get("call", ""))
        return _json_response({"diff": "\n".join(lines)})

    async def undo(self, request: Request) -> Response:
        """Undo a call."""
        asked = UndoRequest.model_validate_json(await _read_body(request))
        _check_not_agent_input(self._runtime)
        result = await self._hands.undo(asked.call, force=asked.force, skip_changed=asked.skip_changed)
        return _json_response(result.wire())

    def _audit(self, request: Request) -> Path:
        id = request.path_params["id"]
        file = self._runtime.places.audit / f"{id}.jsonl"
        if not SESSION_PATTERN.fullmatch(id) or not file.is_file():
            raise NotFound(f"there is no record of a session {id!r}")
        return file

    def _desktop(self, session: str) -> Desktop:
        telling = self._watch.running(session)
        if telling is None or telling.desktop is None:
            raise NotFound(f"no session {session!r} runs here with a desktop that it has used")
        return telling.desktop


def _check_not_agent_input(runtime: Runtime) -> None:
    """Raise `HandrailError` for a press that may be an agent's: the page may lie open on the screen that it works."""
    if runtime.presses.recent():
        raise HandrailError(
            "an agent's hands were at work on your screen or in a browser just now, and this press may have been theirs: nothing was done",
            hint="press again in a few seconds; while agents keep at it, stop them first",
        )


class RequestRefused(Exception):
    """A request that did not arrive as it should."""

    def __init__(self, refusal: HttpRefusal) -> None:
        super().__init__(refusal.error)
        self.refusal = refusal


async def _read_body(request: Request) -> bytes:
    body = await read_body(request.scope, request.receive, most=MAX_BODY)
    if isinstance(body, HttpRefusal):
        raise RequestRefused(body)
    return body


def _handle_errors(handler: RequestHandler) -> RequestHandler:
    """Wrap a handler: its response gets the common headers, and an error becomes a response with a message."""

    async def told(request: Request) -> Response:
        try:
            response = await handler(request)
        except ValidationError as exc:
            response = _json_response({"error": f"this is no such request: {_format_faults(exc)}"}, 400)
        except RequestRefused as exc:
            response = _json_response({"error": exc.refusal.error}, exc.refusal.status)
        except NotFound as exc:
            response = _json_response({"error": str(exc)}, 404)
        except HandrailError as exc:
            response = _json_response({"error": str(exc), "hint": exc.hint}, 409)
        except OSError as exc:
            response = _json_response({"error": f"it could not be kept or read here: {exc.strerror or exc}"}, 500)
        response.headers.update(RESPONSE_HEADERS)
        return response

    return told


def _format_faults(exc: ValidationError) -> str:
    """Describe what is wrong with a request, each fault with its location."""
    told = exc.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'the whole'}: {each['msg']}" for each in told[:MAX_FAULTS])


async def _stream_ndjson(lines: AsyncGenerator[Any]) -> AsyncGenerator[str]:
    async with aclosing(lines):
        async for line in lines:
            yield f"{encode_json_line(line)}\n"


def _json_response(value: Any, status: int = 200) -> Response:
    return Response(encode_json_line(value), status, media_type="application/json")
