"""A Gemini server on this machine: it speaks the documented protocol, holds clients to it, and says what a test has written for it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from typing import Any

from google.genai import types

KEY = "a-key-of-the-tests"
SIGNATURE = b"thought"
PATH = re.compile(r"/v1beta/models/([^:]+):generateContent")


def call(name: str, /, *, id: str | None = None, **args: Any) -> types.Part:
    """A function call of the model."""
    return types.Part(function_call=types.FunctionCall(name=name, args=args, id=id), thought_signature=SIGNATURE)


def say(text: str) -> types.Part:
    """Words of the model."""
    return types.Part(text=text)


@dataclass(frozen=True)
class Fails:
    """An answer that is an error of the API."""

    code: int
    message: str = "not now"
    status: str = "UNAVAILABLE"


@dataclass(frozen=True)
class Empty:
    """An answer without content."""

    finish: types.FinishReason | None = types.FinishReason.STOP
    block: types.BlockedReason | None = None


Answer = Sequence[types.Part] | Fails | Empty
Scripted = Answer | Callable[["Request"], Answer]


@dataclass(frozen=True)
class Request:
    """What a client asked, in the SDK's types."""

    model: str
    contents: Sequence[types.Content]
    body: Mapping[str, Any]

    @property
    def tool(self) -> types.ComputerUse:
        (tool,) = [types.Tool.model_validate(each) for each in self.body["tools"]]
        assert tool.computer_use is not None
        return tool.computer_use

    @property
    def responses(self) -> list[types.FunctionResponse]:
        """The responses to the calls of the turn before."""
        return [part.function_response for part in self.contents[-1].parts or () if part.function_response]

    @property
    def told(self) -> list[dict[str, Any]]:
        """What those responses say."""
        return [dict(response.response or {}) for response in self.responses]

    @property
    def pictures(self) -> list[bytes]:
        """All pictures of the request, in order."""
        found: list[bytes] = []
        for part in (part for content in self.contents for part in content.parts or ()):
            if part.inline_data is not None and part.inline_data.data:
                found.append(part.inline_data.data)
            for each in (part.function_response.parts if part.function_response else None) or ():
                assert each.inline_data is not None
                assert each.inline_data.data
                found.append(each.inline_data.data)
        return found


@dataclass
class Gemini:
    """The server. `answers` are given in turn; the last one again and again when `endless`."""

    answers: list[Scripted] = field(default_factory=list[Scripted])
    endless: bool = False
    requests: list[Request] = field(default_factory=list[Request])
    faults: list[str] = field(default_factory=list[str])
    url: str = ""
    hold: threading.Event | None = None
    held: threading.Event = field(default_factory=threading.Event)

    def answer(self, path: str, key: str | None, body: Mapping[str, Any]) -> tuple[int, Mapping[str, Any]]:
        """The status and the body of the answer to one request."""
        found = PATH.fullmatch(path)
        if found is None:
            return _error(404, f"there is nothing at {path}", "NOT_FOUND")
        if key != KEY:
            return _error(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT")
        contents = [types.Content.model_validate(each) for each in body["contents"]]
        request = Request(found[1], contents, body)
        self.requests.append(request)
        if fault := misuse(contents):
            self.faults.append(fault)
            return _error(400, fault, "INVALID_ARGUMENT")
        if self.hold is not None:
            self.held.set()
            self.hold.wait(30)
        answer = self.answers[0] if self.endless and len(self.answers) == 1 else self.answers.pop(0)
        if callable(answer):
            answer = answer(request)
        if isinstance(answer, Fails):
            return _error(answer.code, answer.message, answer.status)
        response = _response(answer)
        return 200, response.model_dump(mode="json", by_alias=True, exclude_none=True)


def misuse(contents: Sequence[types.Content]) -> str | None:
    """What the API would refuse in a conversation: calls that are not all answered, pictures of the wrong kind, a safety check passed over."""
    if not contents or contents[0].role != "user" or contents[-1].role != "user":
        return "a conversation begins and ends with the user"
    for before, after in pairwise(contents):
        if before.role == after.role:
            return "user and model take turns"
        calls = [part.function_call for part in before.parts or () if part.function_call]
        responses = [part.function_response for part in after.parts or () if part.function_response]
        if before.role != "model":
            continue
        if any(part.function_call and part.thought_signature != SIGNATURE for part in before.parts or ()):
            return "a call lacks its thought_signature"
        if [(c.name, c.id) for c in calls] != [(r.name, r.id) for r in responses]:
            return (
                "the number of function response parts is not that of the function call parts of the function call turn"
            )
        for asked, response in zip(calls, responses, strict=True):
            if fault := _misanswered(asked, response):
                return fault
    return None


def _misanswered(asked: types.FunctionCall, response: types.FunctionResponse) -> str | None:
    told = response.response or {}
    if not isinstance(told.get("url"), str):
        return f"the response to {asked.name} has no url"
    for part in response.parts or ():
        if (
            part.inline_data is None
            or part.inline_data.mime_type != "image/png"
            or not (part.inline_data.data or b"").startswith(b"\x89PNG")
        ):
            return f"the response to {asked.name} has a part that is no PNG"
    decision = (asked.args or {}).get("safety_decision") or {}
    if (
        decision.get("decision") == "require_confirmation"
        and "error" not in told
        and told.get("safety_acknowledgement") != "true"
    ):
        return f"the safety decision on {asked.name} is not acknowledged"
    return None


def _response(answer: Sequence[types.Part] | Empty) -> types.GenerateContentResponse:
    usage = types.GenerateContentResponseUsageMetadata(
        prompt_token_count=1000, candidates_token_count=50, thoughts_token_count=10, total_token_count=1060
    )
    if isinstance(answer, Empty):
        if answer.block is not None:
            feedback = types.GenerateContentResponsePromptFeedback(block_reason=answer.block)
            return types.GenerateContentResponse(prompt_feedback=feedback, usage_metadata=usage)
        candidate = types.Candidate(finish_reason=answer.finish, index=0)
    else:
        content = types.Content(role="model", parts=list(answer))
        candidate = types.Candidate(content=content, finish_reason=types.FinishReason.STOP, index=0)
    return types.GenerateContentResponse(candidates=[candidate], usage_metadata=usage)


def _error(code: int, message: str, status: str) -> tuple[int, Mapping[str, Any]]:
    return code, {"error": {"code": code, "message": message, "status": status}}


@contextmanager
def serving(*answers: Scripted, endless: bool = False) -> Iterator[Gemini]:
    """The server, while it listens."""
    gemini = Gemini(list(answers), endless)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, answer = gemini.answer(self.path, self.headers.get("x-goog-api-key"), body)
            told = json.dumps(answer).encode()
            try:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(told)))
                self.end_headers()
                self.wfile.write(told)
            except ConnectionError:
                # The client has gone: it was cancelled.
                self.close_connection = True

        def log_message(self, format: str, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    gemini.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield gemini
    finally:
        if gemini.hold is not None:
            gemini.hold.set()
        server.shutdown()
        thread.join()
        server.server_close()
