"""A Gemini server on this machine: it speaks the documented protocol, holds clients to it, and says what a test has written for it."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from google.genai import types
from tests.web_server import Answering, serving as listening

KEY = "a-key-of-the-tests"
SIGNATURE = b"thought"
PATH = re.compile(r"/v1beta/models/([^:]+):(generateContent|streamGenerateContent\?alt=sse)")
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.:-]{0,63}")


def call(name: str, /, *, id: str | None = None, signature: bytes | None = SIGNATURE, **args: Any) -> types.Part:
    """A function call of the model. Of those it makes at once, only the first need have a signature."""
    return types.Part(function_call=types.FunctionCall(name=name, args=args, id=id), thought_signature=signature)


def say(text: str) -> types.Part:
    """Words of the model."""
    return types.Part(text=text)


def think(text: str) -> types.Part:
    """A thought that the model shows."""
    return types.Part(text=text, thought=True)


@dataclass(frozen=True)
class Fails:
    """An answer that is an error of the API. It asks to wait `retry_after` seconds by the header, `retry_info` by a detail."""

    code: int
    message: str = "not now"
    status: str = "UNAVAILABLE"
    retry_after: str | None = None
    retry_info: str | None = None


@dataclass(frozen=True)
class LeadsOn:
    """An answer that sends the client to another address, with all that it sent."""

    to: str


@dataclass(frozen=True)
class Empty:
    """An answer without content."""

    finish: types.FinishReason | None = types.FinishReason.STOP
    block: types.BlockedReason | None = None


@dataclass(frozen=True)
class Stops:
    """An answer that ends for another reason than that it is whole."""

    parts: Sequence[types.Part]
    finish: types.FinishReason


@dataclass(frozen=True)
class Breaks:
    """An answer of which only these parts come: the stream then ends as if it were whole, or the connection is lost."""

    parts: Sequence[types.Part]
    lost: bool = False


@dataclass(frozen=True)
class Raw:
    """An answer that is not what the API promises."""

    text: str


Answer = Sequence[types.Part] | Fails | LeadsOn | Empty | Stops | Breaks | Raw
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
    def declared(self) -> dict[str, types.FunctionDeclaration]:
        """The functions of the request, by name."""
        tools = [types.Tool.model_validate(each) for each in self.body.get("tools", ())]
        found = [said for tool in tools for said in tool.function_declarations or ()]
        return {said.name or "": said for said in found}

    @property
    def system(self) -> str:
        """The system's instruction."""
        said = types.Content.model_validate(self.body["systemInstruction"])
        return "\n".join(part.text or "" for part in said.parts or ())

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

    def answer(self, path: str, key: str | None, body: Mapping[str, Any]) -> Reply:
        """What is sent in answer to one request."""
        found = PATH.fullmatch(path)
        if found is None:
            return _error(Fails(404, f"there is nothing at {path}", "NOT_FOUND"))
        if key != KEY:
            return _error(Fails(400, "API key not valid. Please pass a valid API key.", "INVALID_ARGUMENT"))
        contents = [types.Content.model_validate(each) for each in body["contents"]]
        request = Request(found[1], contents, body)
        self.requests.append(request)
        if fault := misuse(request):
            self.faults.append(fault)
            return _error(Fails(400, fault, "INVALID_ARGUMENT"))
        if self.hold is not None:
            self.held.set()
            self.hold.wait(30)
        answer = self.answers[0] if self.endless and len(self.answers) == 1 else self.answers.pop(0)
        if callable(answer):
            answer = answer(request)
        return _streamed(answer) if "stream" in found[2] else _whole(answer)


@dataclass(frozen=True)
class Reply:
    """A status, headers, and a body: whole, or in pieces of a stream that may be lost."""

    status: int
    pieces: Sequence[str]
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    stream: bool = False
    lost: bool = False


def _whole(answer: Answer) -> Reply:
    match answer:
        case LeadsOn():
            return Reply(307, [], {"Location": answer.to})
        case Fails():
            return _error(answer)
        case Raw():
            return Reply(200, [answer.text])
        case Breaks():
            return Reply(200, [_json(_response(answer.parts, finish=None))], lost=answer.lost)
        case _:
            return Reply(200, [_json(_response_of(answer))])


def _streamed(answer: Answer) -> Reply:
    """As server-sent events: each part in one of its own, the reason for the end in the last one."""
    match answer:
        case Fails():
            return _error(answer)
        case LeadsOn():
            return Reply(307, [], {"Location": answer.to})
        case Raw():
            return Reply(200, [_event(answer.text)], stream=True)
        case Breaks():
            pieces = [_event(_json(_response([part], finish=None))) for part in answer.parts]
            return Reply(200, pieces, stream=True, lost=answer.lost)
        case Empty():
            return Reply(200, [_event(_json(_response_of(answer)))], stream=True)
        case Stops():
            parts, finish = answer.parts, answer.finish
        case _:
            parts, finish = answer, types.FinishReason.STOP
    *first, last = parts
    told = [_response([part], finish=None, usage=None) for part in first] + [_response([last], finish=finish)]
    return Reply(200, [_event(_json(each)) for each in told], stream=True)


def _event(text: str) -> str:
    return f"data: {text}\r\n\r\n"


def _json(response: types.GenerateContentResponse) -> str:
    return json.dumps(response.model_dump(mode="json", by_alias=True, exclude_none=True))


def misuse(request: Request) -> str | None:
    """What the API would refuse in a request: calls that are not all answered, signatures that are missing, functions that are none."""
    contents = request.contents
    for name, said in request.declared.items():
        if not NAME.fullmatch(name) or not said.description:
            return f"the declaration of {name!r} lacks a name or a description"
        if said.parameters is not None and said.parameters.type is not types.Type.OBJECT:
            return f"the parameters of {name!r} are no object"
    if not contents or contents[0].role != "user" or contents[-1].role != "user":
        return "a conversation begins and ends with the user"
    uses_computer = any("computerUse" in tool for tool in request.body.get("tools", ()))
    for before, after in pairwise(contents):
        if before.role == after.role:
            return "user and model take turns"
        if before.role == "model" and (fault := _misturn(before, after, uses_computer=uses_computer)):
            return fault
    return None


def _misturn(before: types.Content, after: types.Content, *, uses_computer: bool) -> str | None:
    asking = [part for part in before.parts or () if part.function_call]
    calls = [part.function_call for part in asking if part.function_call]
    responses = [part.function_response for part in after.parts or () if part.function_response]
    if asking and asking[0].thought_signature != SIGNATURE:
        return "a call lacks its thought_signature"
    if [(c.name, c.id) for c in calls] != [(r.name, r.id) for r in responses]:
        return "the number of function response parts is not that of the function call parts of the function call turn"
    for asked, response in zip(calls, responses, strict=True):
        if uses_computer and (fault := _misanswered(asked, response)):
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


USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=1000, candidates_token_count=50, thoughts_token_count=10, total_token_count=1060
)


def _response(
    parts: Sequence[types.Part],
    *,
    finish: types.FinishReason | None,
    usage: types.GenerateContentResponseUsageMetadata | None = USAGE,
) -> types.GenerateContentResponse:
    content = types.Content(role="model", parts=list(parts)) if parts else None
    candidate = types.Candidate(content=content, finish_reason=finish, index=0)
    return types.GenerateContentResponse(candidates=[candidate], usage_metadata=usage)


def _response_of(answer: Sequence[types.Part] | Empty | Stops) -> types.GenerateContentResponse:
    match answer:
        case Empty(block=None):
            return _response([], finish=answer.finish)
        case Empty():
            feedback = types.GenerateContentResponsePromptFeedback(block_reason=answer.block)
            return types.GenerateContentResponse(prompt_feedback=feedback, usage_metadata=USAGE)
        case Stops():
            return _response(answer.parts, finish=answer.finish)
        case _:
            return _response(answer, finish=types.FinishReason.STOP)


def _error(fails: Fails) -> Reply:
    """https://cloud.google.com/apis/design/errors#http_mapping"""
    error: dict[str, Any] = {"code": fails.code, "message": fails.message, "status": fails.status}
    if fails.retry_info is not None:
        error["details"] = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": fails.retry_info}]
    headers = {} if fails.retry_after is None else {"Retry-After": fails.retry_after}
    return Reply(fails.code, [json.dumps({"error": error})], headers)


@contextmanager
def serving(*answers: Scripted, endless: bool = False) -> Iterator[Gemini]:
    """The server, while it listens."""
    gemini = Gemini(list(answers), endless)

    class Handler(Answering):
        def answer(self) -> None:
            reply = gemini.answer(self.path, self.headers.get("x-goog-api-key"), json.loads(self.body()))
            try:
                self._send(reply)
            except ConnectionError:
                # The client has gone: it was cancelled.
                self.close_connection = True

        def _send(self, reply: Reply) -> None:
            self.send_response(reply.status)
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Type", "text/event-stream" if reply.stream else "application/json")
            if reply.stream:
                self.send_header("Transfer-Encoding", "chunked")
            else:
                self.send_header("Content-Length", str(len("".join(reply.pieces).encode()) + reply.lost))
            self.end_headers()
            for piece in (each.encode() for each in reply.pieces):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece) if reply.stream else piece)
                self.wfile.flush()
            if reply.lost:
                self.close_connection = True
            elif reply.stream:
                self.wfile.write(b"0\r\n\r\n")

    with listening(Handler) as port:
        gemini.url = f"http://127.0.0.1:{port}"
        try:
            yield gemini
        finally:
            if gemini.hold is not None:
                gemini.hold.set()
