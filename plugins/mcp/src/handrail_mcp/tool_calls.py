"""Tool calls of one client.

Each runs in a task of its own, because it may outlive the request that started it: on a connection where the server
may not send requests, the request is answered with "input required", the call waits, and the client's next request
brings the answer. The call is made once in either case.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.abc
from mcp import types
from mcp.server.context import ServerRequestContext
from mcp.shared.exceptions import MCPError

from handrail import Answer, Approval, Denied, Inquiry, Reply, Session, Stopped, ToolResult, ToolUnavailable
from handrail.api.call import compute_call_hash
from handrail.api.events import Event, Output, Progress
from handrail.errors import HandrailError, NoConfirmer
from handrail_mcp import approval_forms
from handrail_mcp.progress import ProgressReporter
from handrail_mcp.request_state import StateClaims, StateSealer
from handrail_mcp.result_content import render_result

log = logging.getLogger(__name__)

RequestContext = ServerRequestContext[Any, Any]

# Calls that may be under way at a time: each keeps memory, and a client may send without end.
MAX_CALLS = 1_024
# How many questions may be with the client at a time, on a connection where it has to come back with the answers.
MAX_OPEN_QUESTIONS = 32
# How long a call that was told to stop is waited for.
STOP_S = 5.0
QUESTION_KEY = "confirmation"
LATE_ANSWER_MESSAGE = "an answer of this client came late: its question had been answered elsewhere, or was over"
RETRY_HINT = "call the tool again, without requestState, to be asked anew"


@dataclass(eq=False, slots=True)
class PendingQuestion:
    """One form that the client takes to its person. `state` names it on the way back, once; `given` is what came back, None for nothing.
    `late`: it was answered elsewhere, or is over, before the client came back.
    """

    state: str
    call: PendingCall
    form: types.ElicitRequestFormParams
    hash: str
    given: object = None
    late: bool = False
    answered: anyio.Event = field(default_factory=anyio.Event)


@dataclass(eq=False, slots=True)
class PendingCall:
    """Tool call in progress.

    `request` is the newest request that waits for it; `hash` shows if a later request means the same call.
    """

    id: str
    hash: str
    request: RequestContext
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)
    moved: anyio.Event = field(default_factory=anyio.Event)
    ended: anyio.Event = field(default_factory=anyio.Event)
    questions: deque[PendingQuestion] = field(default_factory=deque["PendingQuestion"])
    result: ToolResult | None = None
    late: bool = False
    reporter: ProgressReporter | None = None


class ClientCalls:
    """Calls in a session for the requests of one client, whose user is prompted when the session needs approval.

    `tasks` is the task group in which calls run; cancelling it ends them.
    """

    def __init__(self, session: Session, tasks: anyio.abc.TaskGroup) -> None:
        self._session = session
        self._tasks = tasks
        self._calls: dict[str, PendingCall] = {}
        # By the nonces of their states.
        self._questions: dict[str, PendingQuestion] = {}
        self._seal = StateSealer()
        self._count = 0

    async def serve(
        self, request: RequestContext, params: types.CallToolRequestParams
    ) -> types.CallToolResult | types.InputRequiredResult:
        """Handle `tools/call`: a new call, or the answer to a question of a pending one."""
        try:
            if params.request_state is None:
                call = self._begin(request, params)
            else:
                call = self._take_answer(request, params, params.request_state)
        except HandrailError as exc:
            log.warning("a request was refused: %s", exc)
            return await render_result(ToolResult.failure(exc, title=params.name), self._session.artifacts)
        try:
            return await self._next(call)
        except anyio.get_cancelled_exc_class():
            await self._stop(call)
            raise

    async def confirm(self, approval: Approval) -> Answer:
        """Prompt the user of the client that made the call, as the session's confirmer."""
        form = approval_forms.build_approval_form(approval)
        given = await self._put(form, approval.call_id, approval.call_hash, seconds=approval.expires)
        return approval_forms.parse_answer(given, approval)

    async def ask(self, inquiry: Inquiry) -> Sequence[Reply]:
        """Ask the client's user the questions of a call; return the replies."""
        form = approval_forms.build_inquiry_form(inquiry)
        given = await self._put(form, inquiry.call_id, inquiry.call_hash, seconds=inquiry.expires)
        return approval_forms.parse_replies(given, inquiry)

    async def _put(self, form: types.ElicitRequestFormParams, call_id: str, hash: str, *, seconds: float) -> object:
        """Send a form to the client and return its response; None if that was not an answer to the form.

        Raises `NoConfirmer` if the client cannot show forms.
        """
        call = self._of(call_id)
        if call is None or not approval_forms.can_show_forms(call.request.session.client_capabilities):
            raise NoConfirmer("it needs a person, and this client cannot ask its own (it declares no elicitation)")
        if call.request.session.can_send_request:
            return await self._ask(call, form)
        return await self._have_asked(call, form, hash, seconds=seconds)

    def heard(self, event: Event) -> None:
        """Pass on how a call gets on, where its client asked to be told."""
        call = self._of(event.call_id)
        if call is None or not isinstance(event, Progress | Output):
            return
        if call.reporter is None:
            if (call.request.meta or {}).get("progress_token") is None:
                return
            call.reporter = ProgressReporter(call.request.session)
            self._tasks.start_soon(call.reporter.run)
        call.reporter.heard(event)

    def request_of(self, call_id: str) -> RequestContext | None:
        """Return the request that waits for a call, or for the call that contains it."""
        call = self._of(call_id)
        return call.request if call is not None else None

    def _of(self, call_id: str) -> PendingCall | None:
        """Return the call, or the one that contains it: core names nested calls `id.1`, `id.1.2`."""
        return self._calls.get(call_id.partition(".")[0])

    # One call

    def _begin(self, request: RequestContext, params: types.CallToolRequestParams) -> PendingCall:
        if len(self._calls) >= MAX_CALLS:
            raise ToolUnavailable(
                f"{MAX_CALLS} calls are under way, and no other is begun", hint="wait until some of them have ended"
            )
        self._count += 1
        call = PendingCall(f"m{self._count}", compute_call_hash(params.name, params.arguments or {}), request)
        self._calls[call.id] = call
        self._tasks.start_soon(self._run, call, params.name, params.arguments or {})
        return call

    async def _run(self, call: PendingCall, name: str, args: Mapping[str, Any]) -> None:
        try:
            with call.scope:
                call.result = await self._session.call(name, args, call_id=call.id)
        finally:
            del self._calls[call.id]
            if call.result is None:
                call.result = ToolResult.failure(Stopped("the call was cancelled"), title=name)
            if call.reporter is not None:
                call.reporter.end()
            call.ended.set()
            call.moved.set()

    async def _next(self, call: PendingCall) -> types.CallToolResult | types.InputRequiredResult:
        """Wait for the call's result or its next question, and return it."""
        while True:
            if call.result is not None:
                if call.reporter is not None:
                    await call.reporter.flush()
                if call.late:
                    call.result.setdefault("note", LATE_ANSWER_MESSAGE)
                return await render_result(call.result, self._session.artifacts)
            if call.questions:
                return _input_required_result(call.questions.popleft())
            call.moved = anyio.Event()
            await call.moved.wait()

    async def _stop(self, call: PendingCall) -> None:
        """Cancel a call that the client no longer wants, and wait up to `STOP_S` seconds until it has ended."""
        with anyio.move_on_after(STOP_S, shield=True):
            if not self._session.cancel(call.id):
                call.scope.cancel()
            await call.ended.wait()
        call.scope.cancel()

    # Asking where the server may send requests (up to 2025-11-25)

    async def _ask(self, call: PendingCall, form: types.ElicitRequestFormParams) -> object:
        try:
            return await call.request.session.elicit_form(form.message, form.requested_schema, call.request.request_id)
        except MCPError as exc:
            raise NoConfirmer(f"it needs a person, and the client could not ask its own: {exc}") from exc

    # Asking where it may not (2026-07-28): the client comes back

    async def _have_asked(
        self, call: PendingCall, form: types.ElicitRequestFormParams, hash: str, *, seconds: float
    ) -> object:
        question = self._open(call, form, hash, seconds=seconds)
        call.questions.append(question)
        call.moved.set()
        try:
            await question.answered.wait()
        except anyio.get_cancelled_exc_class():
            question.late = True
            raise
        finally:
            # A question that is no longer open is not taken to the client any more.
            if question in call.questions:
                call.questions.remove(question)
        return question.given

    def _open(
        self, call: PendingCall, form: types.ElicitRequestFormParams, hash: str, *, seconds: float
    ) -> PendingQuestion:
        for nonce in [nonce for nonce, other in self._questions.items() if other.call.result is not None]:
            del self._questions[nonce]
        if len(self._questions) >= MAX_OPEN_QUESTIONS:
            raise NoConfirmer(f"{MAX_OPEN_QUESTIONS} questions wait for an answer already")
        claims = StateClaims.new(call.hash, hash, seconds=seconds)
        question = PendingQuestion(self._seal.sealed(claims), call, form, hash)
        self._questions[claims.nonce] = question
        return question

    def _take_answer(self, request: RequestContext, params: types.CallToolRequestParams, state: str) -> PendingCall:
        """Return the call whose question this request answers.

        The client controls the entire request: a state only counts if it was sealed here, once, in time, and for
        exactly the call that it was sealed for. Raises `Denied` for an answer to a question that is not open, and for
        an answer sent with another call; the latter also denies the pending call.
        """
        claims = self._seal.opened(state)
        question = self._questions.pop(claims.nonce, None)
        if question is None:
            raise Denied("this answer was used already, or its question is no longer open", hint=RETRY_HINT)
        same = claims.call_hash == question.call.hash == compute_call_hash(params.name, params.arguments or {})
        same = same and claims.asked_hash == question.hash
        question.given = (params.input_responses or {}).get(QUESTION_KEY) if same else None
        question.answered.set()
        if not same:
            raise Denied("this answer was asked for another call; both are refused")
        question.call.late = question.call.late or question.late
        question.call.request = request
        if question.call.reporter is not None:
            question.call.reporter.client = request.session
        return question.call


def _input_required_result(question: PendingQuestion) -> types.InputRequiredResult:
    asked = types.ElicitRequest(params=question.form)
    return types.InputRequiredResult(input_requests={QUESTION_KEY: asked}, request_state=question.state)
