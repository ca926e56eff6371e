"""What the page asks for, and what it is answered. Whoever comes here has passed the door."""

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
from handrail.artifacts.pictures import read_picture
from handrail.asking.confirm import Choice
from handrail.asking.inquiries import reply_in
from handrail.asking.pending import PendingApproval, PendingInquiry, give, reply
from handrail.commands._common import to_json
from handrail.errors import HandrailError, NotFound
from handrail.net.guarding import Refusal, body_of
from handrail.runtime import Runtime
from handrail_console.hands import Hands
from handrail_console.page import HEADERS, PAGE
from handrail_console.watch import Watch, past, past_calls

# Bytes of what the page sends.
BODY = 2 * 2**20
# Past sessions that are listed.
LISTED = 50
# Paths of one call that are shown.
SHOWN_PATHS = 40
# Faults of one request that are named.
MOST_FAULTS = 5
SESSION = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{6}")
BY = "in the console"
GONE = "this question is no longer open: it was answered elsewhere, cancelled, or came to its end"

Handler = Callable[[Request], Awaitable[Response]]


class Asked(BaseModel):
    """What the page sends; an unknown key is an error."""

    model_config = ConfigDict(extra="forbid")


class AnswerAsked(Asked):
    """An answer to the question `id` of a session about the call with this hash. `grant` is a place in its grants."""

    session: str
    id: str
    call_hash: str
    choice: Choice
    grant: int | None = Field(default=None, ge=0)
    args: dict[str, Any] | None = None
    feedback: str = Field(default="", max_length=10_000)


class ReplyAsked(Asked):
    """Answers to the questions of an agent in its own words, one for each, None for one that is left open; None at all: it is not answered."""

    session: str
    id: str
    call_hash: str
    replies: list[str | bool | list[str] | None] | None


class StopAsked(Asked):
    """The stop switch of one desktop, or of all, on or off."""

    action: Literal["stop", "resume"]
    desktop: str | None = None


class UndoAsked(Asked):
    """The call to undo, and what is to become of files that were changed since; unless something is said of them, nothing is undone then."""

    call: str = Field(pattern=r"^[^/]{1,64}/.{1,200}$")
    force: bool = False
    skip_changed: bool = False


class ControlAsked(Asked):
    """What to do on a session's desktop by hand."""

    session: str
    args: dict[str, Any]


class Answers:
    """The console's requests, one method each."""

    def __init__(self, runtime: Runtime, watch: Watch, hands: Hands) -> None:
        self._runtime = runtime
        self._watch = watch
        self._hands = hands

    def app(self) -> Starlette:
        """The application behind the door."""
        return Starlette(
            routes=[
                Route("/page", _told(self.page)),
                Route("/live", _told(self.live)),
                Route("/sessions", _told(self.sessions)),
                Route("/sessions/{id}", _told(self.session)),
                Route("/sessions/{id}/pictures/{name}", _told(self.kept_picture)),
                Route("/sessions/{id}/output", _told(self.output)),
                Route("/sessions/{id}/screen", _told(self.screen)),
                Route("/answer", _told(self.answer), methods=["POST"]),
                Route("/reply", _told(self.reply), methods=["POST"]),
                Route("/stops", _told(self.stop), methods=["POST"]),
                Route("/control", _told(self.control), methods=["POST"]),
                Route("/undo", _told(self.undo_plans)),
                Route("/undo/diff", _told(self.undo_diff)),
                Route("/undo", _told(self.undo), methods=["POST"]),
            ]
        )

    async def page(self, request: Request) -> Response:
        """The page itself."""
        return Response(PAGE, media_type="text/html")

    async def live(self, request: Request) -> Response:
        """Lines of JSON, as long as the page listens."""
        return StreamingResponse(_ndjson(self._watch.lines()), media_type="application/x-ndjson")

    async def sessions(self, request: Request) -> Response:
        """Sessions that there are records of."""
        places, before = self._runtime.places, request.query_params.get("before")
        return _json(await anyio.to_thread.run_sync(lambda: past(places, most=LISTED, before=before)))

    async def session(self, request: Request) -> Response:
        """The last calls of one of them, or those before."""
        file, before = self._audit(request), request.query_params.get("before")
        try:
            return _json(await anyio.to_thread.run_sync(lambda: past_calls(file, before=before)))
        except ValueError as exc:
            raise NotFound(f"there is no page before {before!r}") from exc

    async def output(self, request: Request) -> Response:
        """What the calls of a running session put out, as long as the page listens: lines of JSON."""
        id = request.path_params["id"]
        if self._watch.running(id) is None:
            raise NotFound(f"no session {id!r} runs here")
        return StreamingResponse(_ndjson(self._watch.output(id)), media_type="application/x-ndjson")

    async def kept_picture(self, request: Request) -> Response:
        """The picture of a result."""
        audit, name = self._audit(request), request.path_params["name"]
        folder = self._runtime.places.artifacts / audit.stem
        if (data := await anyio.to_thread.run_sync(read_picture, folder, name)) is None:
            raise NotFound("this picture is not kept any longer")
        return Response(data, media_type="image/png" if name.endswith("png") else "image/jpeg")

    async def screen(self, request: Request) -> Response:
        """What the desktop of a running session shows now, and which part of the screen that is."""
        picture = await self._hands.picture(self._desktop(request.path_params["id"]))
        shown = picture.transform.screen
        place = {"x": shown.x, "y": shown.y, "width": shown.width, "height": shown.height}
        return Response(picture.data, media_type="image/jpeg", headers={"handrail-screen": json.dumps(place)})

    async def answer(self, request: Request) -> Response:
        """A person's answer to a question about a call."""
        asked = AnswerAsked.model_validate_json(await _body(request))
        left = self._watch.question(asked.session, asked.id, asked.call_hash)
        if not isinstance(left, PendingApproval):
            raise NotFound(GONE)
        if asked.choice.value not in left.choices:
            raise HandrailError(f"this question is not answered with {asked.choice!s}")
        if asked.choice is not Choice.DENY:
            _check_hands(self._runtime)
        give(
            self._runtime.places,
            left,
            asked.choice,
            grant=asked.grant,
            args=asked.args,
            feedback=asked.feedback,
            by=BY,
        )
        return _json({"ok": True})

    async def reply(self, request: Request) -> Response:
        """A person's answers to questions in words."""
        asked = ReplyAsked.model_validate_json(await _body(request))
        left = self._watch.question(asked.session, asked.id, asked.call_hash)
        if not isinstance(left, PendingInquiry):
            raise NotFound(GONE)
        replies = [reply_in(each) for each in asked.replies] if asked.replies is not None else None
        if replies is not None and (misfit := left.misfit(replies)):
            raise HandrailError(f"these are no answers: {misfit}")
        if replies is not None:
            _check_hands(self._runtime)
        reply(self._runtime.places, left, replies, by=BY)
        return _json({"ok": True})

    async def stop(self, request: Request) -> Response:
        """The stop switch."""
        asked = StopAsked.model_validate_json(await _body(request))
        stops = self._runtime.stops
        if asked.action == "resume":
            _check_hands(self._runtime)
        if asked.action == "stop":
            stops.engage(asked.desktop)
        elif asked.desktop is None:
            # Whoever resumes all of them means those that were stopped one by one, too.
            for name in stops.all():
                stops.release(None if name == "every" else name)
        else:
            stops.release(asked.desktop)
        return _json({"ok": True, "stops": stops.all()})

    async def control(self, request: Request) -> Response:
        """A person's own hand."""
        asked = ControlAsked.model_validate_json(await _body(request))
        _check_hands(self._runtime)
        result = await self._hands.act(self._desktop(asked.session), asked.args)
        return _json(result.wire())

    async def undo_plans(self, request: Request) -> Response:
        """The newest calls that changed files, and what undoing each would do."""
        plans = await self._hands.undo_plans(most=LISTED)
        return _json([plan.wire(most=SHOWN_PATHS) for plan in plans])

    async def undo_diff(self, request: Request) -> Response:
        """The changes that undoing one of them would make."""
        lines = await self._hands.undo_diff(request.query_params.get("call", ""))
        return _json({"diff": "\n".join(lines)})

    async def undo(self, request: Request) -> Response:
        """Undo a call."""
        asked = UndoAsked.model_validate_json(await _body(request))
        _check_hands(self._runtime)
        result = await self._hands.undo(asked.call, force=asked.force, skip_changed=asked.skip_changed)
        return _json(result.wire())

    def _audit(self, request: Request) -> Path:
        id = request.path_params["id"]
        file = self._runtime.places.audit / f"{id}.jsonl"
        if not SESSION.fullmatch(id) or not file.is_file():
            raise NotFound(f"there is no record of a session {id!r}")
        return file

    def _desktop(self, session: str) -> Desktop:
        telling = self._watch.running(session)
        if telling is None or telling.desktop is None:
            raise NotFound(f"no session {session!r} runs here with a desktop that it has used")
        return telling.desktop


def _check_hands(runtime: Runtime) -> None:
    """Raise `HandrailError` for a press that may be an agent's: the page may lie open on the screen that it works."""
    if runtime.presses.recent():
        raise HandrailError(
            "an agent's hands were at work on your screen or in a browser just now, and this press may have been theirs: nothing was done",
            hint="press again in a few seconds; while agents keep at it, stop them first",
        )


class Refused(Exception):
    """A request that did not arrive as it should."""

    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.error)
        self.refusal = refusal


async def _body(request: Request) -> bytes:
    body = await body_of(request.scope, request.receive, most=BODY)
    if isinstance(body, Refusal):
        raise Refused(body)
    return body


def _told(handler: Handler) -> Handler:
    """The handler's answer with the headers of every answer; what goes wrong is said in words."""

    async def told(request: Request) -> Response:
        try:
            response = await handler(request)
        except ValidationError as exc:
            response = _json({"error": f"this is no such request: {_faults(exc)}"}, 400)
        except Refused as exc:
            response = _json({"error": exc.refusal.error}, exc.refusal.status)
        except NotFound as exc:
            response = _json({"error": str(exc)}, 404)
        except HandrailError as exc:
            response = _json({"error": str(exc), "hint": exc.hint}, 409)
        except OSError as exc:
            response = _json({"error": f"it could not be kept or read here: {exc.strerror or exc}"}, 500)
        response.headers.update(HEADERS)
        return response

    return told


def _faults(exc: ValidationError) -> str:
    """What is wrong with a request, each fault with where it is."""
    told = exc.errors(include_url=False, include_context=False, include_input=False)
    return "; ".join(f"{'.'.join(map(str, each['loc'])) or 'the whole'}: {each['msg']}" for each in told[:MOST_FAULTS])


async def _ndjson(lines: AsyncGenerator[Any]) -> AsyncGenerator[str]:
    async with aclosing(lines):
        async for line in lines:
            yield f"{to_json(line)}\n"


def _json(value: Any, status: int = 200) -> Response:
    return Response(to_json(value), status, media_type="application/json")
