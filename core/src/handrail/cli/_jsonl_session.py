"""One session spoken with in JSON lines: calls in the order they were read, control lines at once.

The list of tools begins a step of the model when nothing is under way. While a call is, that step is not over, and the list is only looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import anyio

from handrail.api.approval import Answer, Approval, ApprovalStep, Choice
from handrail.api.call import GrantOption, ToolCall, confirmation_wire
from handrail.api.events import Event, event_wire
from handrail.api.result import RESULT_STATUSES, ResultStatus, ToolResult
from handrail.approval.ask_user import Inquiry, Reply, inquiry_wire, parse_reply
from handrail.cli._common import handle_signals
from handrail.cli.tools import tool_wire
from handrail.errors import Denied, DeniedByUser, HandrailError, NoConfirmer, Stopped
from handrail.json_types import is_list, is_object
from handrail.pipeline.scheduler import add_wait_argument
from handrail.session.session import Session
from handrail.terminal.json_lines import InvalidLine, OversizedLine, check_known_keys, error_wire, parse_json_line
from handrail.terminal.stdio import LineWriter, read_lines
from handrail.text import format_suggestion
from handrail.tools.session_tools import ListedTool

HostId = str | int | None

# Lines that may wait for their turn; no more is read until there are fewer.
MAX_WAITING_CALLS = 1_000
# Seconds that the last lines get to be read after a signal.
FLUSH_S = 2.0
UNANSWERED_MESSAGE = "it needs a yes, and nobody answered"
CALL_KEYS = ("id", "tool", "args")
BATCH_KEYS = ("batch", "stop_on")
CONTROL_KEYS: Mapping[str, tuple[str, ...]] = {
    "cancel": ("call",),
    "backend": ("name",),
    "tools": (),
    "answer": ("approval", "answer", "args", "feedback", "grant"),
    "reply": ("inquiry", "answers"),
}


@dataclass(slots=True)
class CallItem:
    """One call that was asked for. `id` is the host's."""

    id: HostId
    call: ToolCall


@dataclass(slots=True)
class QueuedJob:
    """One line's work: a call, a batch (ended by a result with a status in `stop_on`), or the list of tools (`listing`), asked for as `id`."""

    items: list[CallItem] = field(default_factory=list[CallItem])
    stop_on: frozenset[ResultStatus] = frozenset()
    listing: bool = False
    id: HostId = None
    scope: anyio.CancelScope = field(default_factory=anyio.CancelScope)


@dataclass(slots=True)
class OpenInquiry:
    """Questions that wait for a line; `refusal` is what they end with when no answers come."""

    inquiry: Inquiry
    replies: tuple[Reply, ...] | None = None
    refusal: Denied = field(default_factory=lambda: NoConfirmer("nobody answered"))
    closed: anyio.Event = field(default_factory=anyio.Event)


class JsonlConfirmer:
    """A confirmer that asks the host in a line and takes its answer from another."""

    def __init__(self, writer: LineWriter) -> None:
        self._writer = writer
        self._nobody = anyio.Event()
        self.ids: dict[str, HostId] = {}
        self.inquiries: dict[str, OpenInquiry] = {}

    async def __call__(self, approval: Approval) -> Answer:
        """Write the question to the host.

        The session holds the question, and its answer cancels this call; otherwise `NoConfirmer` is raised once the
        host has hung up.
        """
        if not self._nobody.is_set():
            self._writer.write(
                {"approval": approval.id, "id": find_host_id(approval.call_id, self.ids), **_approval_wire(approval)}
            )
        try:
            await self._nobody.wait()
        except anyio.get_cancelled_exc_class():
            self._say_who(approval)
            raise
        raise NoConfirmer(UNANSWERED_MESSAGE)

    def _say_who(self, approval: Approval) -> None:
        """Tell the host who has answered its question instead; it need not ask its user any longer."""
        answer = approval.among.given(approval.id)
        if isinstance(answer, Answer) and answer.by:
            self._writer.write({"answered": approval.id, "answer": answer.choice, "by": answer.by})

    async def ask(self, inquiry: Inquiry) -> Sequence[Reply]:
        """Write the questions of a call, and wait for the line that answers them."""
        open_ = self.inquiries[inquiry.id] = OpenInquiry(inquiry)
        try:
            if not self._nobody.is_set():
                self._writer.write({**inquiry_wire(inquiry), "id": find_host_id(inquiry.call_id, self.ids)})
            async with anyio.create_task_group() as group:
                group.start_soon(self._nobody_for, open_)
                await open_.closed.wait()
                group.cancel_scope.cancel()
        except anyio.get_cancelled_exc_class():
            if (given := inquiry.among.given(inquiry.id)) is not None:
                self._writer.write({"answered": inquiry.id, "by": given.by})
            raise
        finally:
            del self.inquiries[inquiry.id]
        if open_.replies is None:
            raise open_.refusal
        return open_.replies

    async def _nobody_for(self, open_: OpenInquiry) -> None:
        await self._nobody.wait()
        open_.closed.set()

    def reply(self, asked: Mapping[str, Any]) -> None:
        """Handle the line that answers the questions of a call; raises `InvalidLine` if it does not."""
        open_ = self.inquiries.get(cast("str", asked.get("inquiry")))
        if open_ is None or open_.closed.is_set():
            raise InvalidLine(f"no questions {asked.get('inquiry')!r} are open")
        given = asked.get("answers")
        if given is None:
            open_.refusal = DeniedByUser("a person was asked and did not answer")
        elif not is_list(given):
            raise InvalidLine("'answers' should be a list with an answer for each question, or null")
        else:
            replies = tuple(parse_reply(each) for each in given)
            if misfit := open_.inquiry.misfit(replies):
                raise InvalidLine(f"these are no answers: {misfit}")
            open_.replies = replies
        open_.closed.set()

    def hang_up(self) -> None:
        """Deny all open questions, as no more answers will come."""
        self._nobody.set()


def _approval_wire(approval: Approval) -> dict[str, Any]:
    return {
        "tool": approval.tool,
        "confirmation": confirmation_wire(approval.confirmation),
        "args": approval.args,
        "call_hash": approval.call_hash,
        "parts": [_step_wire(step) for step in approval.steps],
        "rule": approval.verdict.rule,
        "reasons": [reason.text for reason in approval.verdict.reasons],
        "spans": [reason.span for reason in approval.verdict.reasons if reason.span is not None],
        "grants": [grant.label for grant in approval.grants],
        "answers": approval.choices,
        "expires_s": approval.expires,
        **({"note": approval.note} if approval.note else {}),
    }


def _step_wire(step: ApprovalStep) -> dict[str, Any]:
    return {"words": step.words, "touches": [{"kind": touch.kind, "what": touch.what} for touch in step.touches]}


def parse_answer(asked: Mapping[str, Any], waiting: Sequence[Approval]) -> tuple[list[str], Answer]:
    """Return the ids of the questions that a control line answers, and its answer.

    Raises `InvalidLine` for a line that is not a valid answer.
    """
    named = asked.get("approval")
    ids = [named] if isinstance(named, str) else named if is_list(named) else []
    if not ids or not all(isinstance(id, str) for id in ids):
        raise InvalidLine("'approval' should be the name of a question, or a list of such")
    if asked.get("answer") not in list(Choice):
        raise InvalidLine(f"answer is {asked.get('answer')!r}; it should be {', '.join(Choice)}")
    choice = Choice(asked["answer"])
    args: Any = asked.get("args")
    if not isinstance(args, dict | None):
        raise InvalidLine("'args' should be an object with all arguments")
    if not isinstance(feedback := asked.get("feedback", ""), str):
        raise InvalidLine("'feedback' should be a text")
    return ids, Answer(
        choice, _parse_grant(asked.get("grant"), ids, waiting), cast("dict[str, Any] | None", args), feedback
    )


def _parse_grant(index: Any, ids: Sequence[str], waiting: Sequence[Approval]) -> GrantOption | None:
    if index is None:
        return None
    grants = next((approval.grants for approval in waiting if [approval.id] == list(ids)), ())
    if isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < len(grants):
        raise InvalidLine(f"grant is {index!r}; it should be a place in the 'grants' of one open question, from 0")
    return grants[index]


def find_host_id(call_id: str, ids: Mapping[str, HostId]) -> HostId:
    """Return the host's id of a call or, for a nested one, of the call that contains it."""
    while call_id not in ids and "." in call_id:
        call_id = call_id.rpartition(".")[0]
    return ids.get(call_id)


async def run_conversation(
    session: Session, stdin: int, writer: LineWriter, asking: JsonlConfirmer, *, events: bool
) -> int:
    """Work through the lines of `stdin` until its end; gives the number of the signal that ended it, or 0."""
    conversation = JsonlConversation(session, writer, asking)
    stop_telling = session.bus.subscribe(conversation.tell) if events else lambda: None
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(writer.run)
            async with handle_signals(conversation.interrupt):
                await conversation.run(stdin)
            writer.close()
            if conversation.caught:
                # Nobody may be reading any more.
                group.cancel_scope.deadline = anyio.current_time() + FLUSH_S
    finally:
        stop_telling()
    return conversation.caught


class JsonlConversation:
    """Conversation with a host: the work that was requested and is not done yet."""

    def __init__(self, session: Session, writer: LineWriter, asking: JsonlConfirmer) -> None:
        self.caught = 0
        self._session = session
        self._writer = writer
        self._asking = asking
        self._waiting: deque[QueuedJob] = deque()
        self._current: QueuedJob | None = None
        self._ended = False
        self._news = anyio.Event()
        self._room = anyio.Event()
        self._reading = anyio.CancelScope()
        self._looking = anyio.CancelScope()
        # Who asked for the list while calls were under way; it is looked at apart from reading, because toolsets may take their time.
        self._to_look, self._looks = anyio.create_memory_object_stream[HostId](MAX_WAITING_CALLS)
        self._calls = 0

    async def run(self, stdin: int) -> None:
        """Read and work until the input ends and all is done."""
        async with anyio.create_task_group() as group:
            group.start_soon(self._read, stdin)
            group.start_soon(self._look)
            while (job := await self._next()) is not None:
                self._current = job
                await self._do(job)
                self._current = None

    def interrupt(self, number: int) -> None:
        """Handle a signal: stop reading and cancel everything; a second signal does not wait for anything."""
        if self.caught:
            self._looking.cancel()
        if self.caught and self._current is not None:
            self._current.scope.cancel()
        self.caught = self.caught or number
        self._writer.hurry()
        self._reading.cancel()
        self._asking.hang_up()
        self._cancel((), every=True)

    def tell(self, event: Event) -> None:
        """Write an event."""
        self._writer.event({**event_wire(event), "id": find_host_id(event.call_id, self._asking.ids)})

    # Reading

    async def _read(self, stdin: int) -> None:
        number = 0
        with self._to_look, self._reading:
            async for line in read_lines(stdin):
                number += 1
                try:
                    await self._take(line)
                except InvalidLine as exc:
                    self._writer.write(
                        {"id": None, "error": error_wire("bad_line", f"line {number}: {exc}", line=number)}
                    )
                await self._writer.room()
                while len(self._waiting) >= MAX_WAITING_CALLS:
                    self._room = anyio.Event()
                    await self._room.wait()
        self._asking.hang_up()
        self._ended = True
        self._news.set()

    async def _take(self, line: bytes | OversizedLine) -> None:
        if isinstance(line, bytes) and not line.strip():
            return
        value = parse_json_line(line)
        if is_object(value) and "control" in value:
            await self._control(value)
        elif is_object(value) and "batch" in value:
            check_known_keys(value, BATCH_KEYS)
            if not is_list(value["batch"]):
                raise InvalidLine("'batch' should be a list of calls")
            self._batch(value["batch"], _parse_stop_on(value.get("stop_on", [])))
        elif is_object(value):
            self._queue(QueuedJob([self._item(value)]))
        elif is_list(value):
            self._batch(value, frozenset())
        else:
            raise InvalidLine(f"a line is an object or a list, not {type(value).__name__}")

    def _batch(self, values: list[Any], stop_on: frozenset[ResultStatus]) -> None:
        """Queue the items that can be called; each other one gets its error."""
        items: list[CallItem] = []
        for index, value in enumerate(values):
            try:
                items.append(self._item(value))
            except InvalidLine as exc:
                self._writer.write(
                    {"id": None, "error": error_wire("bad_line", f"item {index} of a batch: {exc}", item=index)}
                )
        if items:
            self._queue(QueuedJob(items, stop_on))

    def _item(self, value: Any) -> CallItem:
        if not is_object(value):
            raise InvalidLine(f"an item of a batch is an object, not {type(value).__name__}")
        check_known_keys(value, CALL_KEYS)
        if not isinstance(value.get("tool"), str):
            raise InvalidLine("'tool' should be a tool's name")
        id = _parse_id(value)
        self._calls += 1
        call_id = f"c{self._calls}" if id is None else str(id)
        if call_id in self._asking.ids:
            call_id = f"{call_id}#{self._calls}"
        self._asking.ids[call_id] = id
        return CallItem(id, ToolCall(value["tool"], value.get("args", {}), call_id))

    def _queue(self, job: QueuedJob) -> None:
        self._waiting.append(job)
        self._news.set()

    # Control lines

    async def _control(self, asked: dict[str, Any]) -> None:
        id = _parse_id(asked)
        name = asked["control"]
        if not isinstance(name, str) or name not in CONTROL_KEYS:
            raise InvalidLine(f"unknown control {name!r}{format_suggestion(str(name), CONTROL_KEYS)}")
        check_known_keys(asked, ("control", "id", *CONTROL_KEYS[name]))
        if name == "tools":
            # A call that has its result is over for the host, though the line it came in may not be.
            if self._asking.ids:
                await self._to_look.send(id)
            else:
                self._queue(QueuedJob(listing=True, id=id))
            return
        try:
            await self._obey(asked)
        except (InvalidLine, HandrailError) as exc:
            code = getattr(exc, "code", "refused")
            self._writer.write({"id": id, "ok": False, "error": error_wire(code, str(exc))})
        else:
            self._writer.write({"id": id, "ok": True})

    async def _obey(self, asked: dict[str, Any]) -> None:
        match asked["control"]:
            case "cancel":
                named = asked.get("call")
                ids = named if is_list(named) else [named]
                if not self._cancel(ids, every=named is None) and named is not None:
                    raise InvalidLine(f"no call {named!r} is waiting or running")
            case "backend":
                if not isinstance(asked.get("name"), str):
                    raise InvalidLine("'name' should be a backend's name")
                await self._session.use_backend(asked["name"])
            case "reply":
                self._asking.reply(asked)
            case _:
                approvals = self._session.approvals
                approvals.answer(*parse_answer(asked, approvals.waiting))

    def _cancel(self, ids: Sequence[Any], *, every: bool) -> int:
        """Cancel what waits and what runs, of those ids or all; gives how many calls."""
        hit = 0
        for job in list(self._waiting):
            for item in self._of(job, ids, every=every):
                job.items.remove(item)
                self._finish(item, _build_cancelled_result(item))
                hit += 1
            if not job.items and not job.listing:
                self._waiting.remove(job)
        if self._current is not None:
            for item in self._of(self._current, ids, every=every):
                self._session.cancel(item.call.call_id)
                hit += 1
        return hit

    def _of(self, job: QueuedJob, ids: Sequence[Any], *, every: bool) -> list[CallItem]:
        return [item for item in job.items if every or item.id in ids]

    # Work

    async def _next(self) -> QueuedJob | None:
        """Return the next line's work, or None at the end; unread results delay it."""
        await self._writer.room()
        while not self._waiting:
            if self._ended:
                return None
            self._news = anyio.Event()
            await self._news.wait()
        job = self._waiting.popleft()
        self._room.set()
        return job

    async def _do(self, job: QueuedJob) -> None:
        if job.listing:
            self._tell_tools(job.id, await self._session.begin_step())
            return
        left = list(job.items)

        def finish(item: CallItem, result: ToolResult) -> None:
            left.remove(item)
            self._finish(item, result)

        with job.scope:
            await self._call(job, finish)
        for item in tuple(left):
            finish(item, _build_cancelled_result(item))

    async def _look(self) -> None:
        """Give the list of tools as it is now to whoever asked while calls were under way."""
        with self._looks, self._looking:
            async for id in self._looks:
                self._tell_tools(id, await self._session.all_tools())

    def _tell_tools(self, id: HostId, listed: Sequence[ListedTool]) -> None:
        # This host sends batches, so it is told how to have a call wait.
        tools = [tool_wire(tool) for tool in listed if tool.available]
        told = [{**tool, "input_schema": add_wait_argument(tool["input_schema"])} for tool in tools]
        self._writer.write({"id": id, "tools": told})

    async def _call(self, job: QueuedJob, finish: Callable[[CallItem, ToolResult], None]) -> None:
        """Make the job's calls and report each result as soon as it is available."""
        calls = [item.call for item in job.items]
        items = tuple(job.items)
        await self._session.batch(calls, told=lambda index, result: finish(items[index], result), stop_on=job.stop_on)

    def _finish(self, item: CallItem, result: ToolResult) -> None:
        self._writer.write({"id": item.id, "result": result.wire()})
        del self._asking.ids[item.call.call_id]


def _build_cancelled_result(item: CallItem) -> ToolResult:
    return ToolResult.failure(Stopped("the call was cancelled"), title=item.call.name)


def _parse_stop_on(value: Any) -> frozenset[ResultStatus]:
    if not is_list(value) or not RESULT_STATUSES.issuperset(map(str, value)):
        raise InvalidLine(f"stop_on is {value!r}; it should be a list of {', '.join(sorted(RESULT_STATUSES))}")
    return frozenset(value)


def _parse_id(asked: Mapping[str, Any]) -> HostId:
    id = asked.get("id")
    if isinstance(id, bool) or not isinstance(id, str | int | None):
        raise InvalidLine("'id' should be a text or a whole number")
    return id
