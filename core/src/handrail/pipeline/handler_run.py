"""Running: the handler of an allowed call, in the sandbox or on the host, under its lease and time limit."""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import anyio

from handrail.api.call import Invocation
from handrail.api.context import CallContext
from handrail.api.events import Started
from handrail.api.result import TailCall, ToolResult, complete_failure, convert_to_result
from handrail.api.secret_refs import has_secret_ref
from handrail.api.verdict import Decision, Reason, Route, Verdict
from handrail.errors import Denied, DeniedByUser, NoConfirmer
from handrail.pipeline.call_task import CallTask
from handrail.pipeline.finalize import mark_stopped
from handrail.pipeline.sandbox_report import report_renamed, report_sandbox

if TYPE_CHECKING:
    from handrail.api.tool import Tool
    from handrail.pipeline.approved_files import FileState
    from handrail.pipeline.call_session import CallSession
    from handrail.sandbox.confinement import Confinement
    from handrail.sandbox.quarantine import HostRun
    from handrail.undo.call_changes import RecordedCall

log = logging.getLogger(__name__)

BYTES_TYPES = (bytes, bytearray, memoryview)
DENIAL_TYPES: Mapping[str, type[Denied]] = {"denied_by_user": DeniedByUser, "no_confirmer": NoConfirmer}


def run_handler(
    session: CallSession, running: CallTask, invocation: Invocation, verdict: Verdict
) -> Coroutine[Any, Any, ToolResult | TailCall]:
    """Run the handler of an allowed call. Raises `Denied` for any other, and why it was stopped for a stopped one."""
    return _HandlerRun(session, running, invocation, verdict).run()


class _HandlerRun:
    """One run of a handler: what is set up for it, the run itself, and what its result says of it."""

    # Not in slots, so that what most calls never need costs them nothing.
    _sandbox: Confinement | None = None
    _host_run: HostRun | None = None
    _changes: RecordedCall | None = None
    _written: Callable[[], None] | None = None
    _aside: Sequence[str] = ()

    def __init__(self, session: CallSession, running: CallTask, invocation: Invocation, verdict: Verdict) -> None:
        self._session, self._running, self._invocation, self._verdict = session, running, invocation, verdict
        self._tool = invocation.tool

    async def run(self) -> ToolResult | TailCall:
        if self._verdict.decision is not Decision.ALLOW:
            raise await _build_denial(self._session, self._invocation, self._verdict)
        if self._verdict.route is Route.SANDBOX:
            self._sandbox = await self._confine()
        if not self._tool.read_only:
            self._session.check_stopped()
        if self._running.why is not None:
            raise self._running.why
        if not self._tool.read_only:
            if not self._tool.confinable:
                self._written = self._session.written_outside(self._verdict)
            self._changes = await self._session.changes.begin(self._invocation, self._verdict)
        try:
            if self._tool.confinable:
                await self._hold_other_commands()
            returned = await self._call_handler(self._create_context())
        except Exception as exc:
            # A handler that is stopped may fail on its way out, which is not why the call ended.
            if self._running.why is None or exc is self._running.why:
                raise
            log.debug("tool %s failed while it was stopped", self._tool.name, exc_info=True)
            raise self._running.why from exc
        finally:
            self._end()
        if isinstance(returned, TailCall):
            if self._running.why is not None:
                raise self._running.why
            return returned
        keeps = self._tool.artifact is not None or isinstance(returned, BYTES_TYPES)
        result = await self._store_as_artifact(returned) if keeps else convert_to_result(returned)
        if self._sandbox is not None or self._host_run is not None:
            self._report_surroundings(result)
        if self._changes is not None:
            await self._changes.tell(result)
        if result["status"] != "success" and "error" not in result:
            result = complete_failure(result, title=self._tool.title)
        return result if self._running.why is None else mark_stopped(result, self._running.why, self._tool.title)

    async def _confine(self) -> Confinement:
        """Return the sandbox of the call."""
        release_held_commands(self._session, self._running)
        hosts = _allowed_hosts(self._session, self._verdict)
        sandbox = await self._session.confinement(self._tool, self._verdict.view, hosts=hosts)
        return sandbox.keeping_repositories().changing_repository(self._verdict.changes_repositories)

    async def _hold_other_commands(self) -> None:
        """Hold sandboxed commands that could interfere with the call. Raises `Denied` if they have done so already."""
        if self._sandbox is not None:
            if is_repository_change(self._verdict):
                self._host_run = self._running.host_run = await self._session.begin_repository_run(self._sandbox)
            return
        held = self._host_run = await self._session.begin_host_run(self._verdict.view, self._running.host_run)
        self._running.host_run = held or self._running.host_run
        if held is None:
            return
        # While a person was asked, another session's command may have run and ended.
        if held.hold.held or self._verdict.approved is not None:
            await _check_unchanged(self._session, self._invocation, self._verdict)
        if self._verdict.approved is not None and self._running.asked_files:
            await _check_approved_files(self._invocation, self._running.asked_files)

    def _create_context(self) -> CallContext:
        if self._sandbox is not None and self._changes is not None:
            self._sandbox = self._sandbox.protecting(self._changes.protected)
        return self._session.context_of(self._invocation, self._running, verdict=self._verdict, sandbox=self._sandbox)

    def _call_handler(self, context: CallContext) -> Coroutine[Any, Any, Any]:
        """Return the handler's run: with the secrets that its arguments name, under its lease."""
        if self._tool.takes_text and has_secret_ref(self._invocation.args):
            return self._call_with_secrets(context)
        return self._call_leased(self._invocation, context)

    async def _call_with_secrets(self, context: CallContext) -> Any:
        filled = await self._session.secrets.filled(self._invocation)
        if self._running.why is not None:
            raise self._running.why
        return await self._call_leased(filled, context)

    def _call_leased(self, invocation: Invocation, context: CallContext) -> Coroutine[Any, Any, Any]:
        if self._tool.exclusive is None:
            return self._start(invocation, context)
        return self._call_exclusively(self._tool.exclusive, invocation, context)

    async def _call_exclusively(self, resource: str, invocation: Invocation, context: CallContext) -> Any:
        async with self._session.lease(resource, self._invocation), _mark_agent_input(self._session, self._tool):
            return await self._start(invocation, context)

    def _start(self, invocation: Invocation, context: CallContext) -> Coroutine[Any, Any, Any]:
        """Start the clock, and return the handler's coroutine."""
        session, running = self._session, self._running
        running.limit = self._tool.timeout_for(invocation.params)
        if running.watched:
            running.start_clock()
        if self._tool.live:
            session.onlookers.began(invocation.call_id)
        if session.bus.listening:
            session.bus.publish(Started(invocation.call_id, self._tool.name))
        return invocation.run(context)

    def _end(self) -> None:
        """Release what was set up for the run, whichever way it ended."""
        if self._tool.live:
            self._session.onlookers.ended(self._invocation.call_id)
        self._running.limit = None
        if self._running.watched:
            self._running.stop_clock()
        if self._sandbox is not None:
            self._aside = self._sandbox.put_aside()
        if self._host_run is not None:
            self._session.end_host_run(self._host_run)
        release_held_commands(self._session, self._running)
        if self._written is not None:
            self._written()
        if self._changes is not None:
            self._changes.over()

    async def _store_as_artifact(self, returned: Any) -> ToolResult:
        """Store a handler's return value as an artifact and return the result, with secrets redacted in both."""
        from handrail.artifacts.result_spooling import build_result, convert_to_plain

        # What is kept as an artifact is not looked through later.
        hidden = self._session.secrets.hidden(convert_to_plain(returned))
        tool = self._tool
        artifacts = self._session.artifacts.of_call(self._invocation.call_id, tool.name, trusted=tool.trusted)
        return await build_result(hidden, tool, artifacts, limit=self._session.settings.output.max_bytes)

    def _report_surroundings(self, result: ToolResult) -> None:
        """Add to the result what the sandbox did, or what was done to run on the host."""
        if self._sandbox is not None:
            changes = is_repository_change(self._verdict)
            report_sandbox(result, self._sandbox, self._aside, changes_repository=changes, title=self._tool.title)
        if self._host_run is not None:
            if self._host_run.aside:
                report_renamed(result, self._host_run.aside)
            for note in self._host_run.notes():
                result.add_note(note)


def release_held_commands(session: CallSession, running: CallTask) -> None:
    """Resume sandboxed commands that were held while the user was asked about the call."""
    if running.host_run is not None:
        session.end_host_run(running.host_run)
        running.host_run = None


def is_repository_change(verdict: Verdict) -> bool:
    """Return True if the call, or a step of it, may change a repository."""
    return any(each.changes_repositories for each in (verdict, *verdict.steps))


def _allowed_hosts(session: CallSession, verdict: Verdict) -> tuple[str, ...]:
    """Return the hosts that a call may connect to in the sandbox."""
    if verdict.reach is None:
        return verdict.hosts
    return tuple(dict.fromkeys((*verdict.hosts, *session.settings.sandbox.hosts)))


async def _check_unchanged(session: CallSession, invocation: Invocation, verdict: Verdict) -> None:
    """Raise `Denied` if a call is no longer about what it was judged for: sandboxed commands may have moved that."""
    now = await session.court.judge(invocation)
    if [(part.argv, part.touches, part.folders) for part in now.parts] != [
        (part.argv, part.touches, part.folders) for part in verdict.parts
    ]:
        raise Denied(
            f"{invocation.tool.name} was not run: something has changed where its paths lead since it was judged",
            hint="call it again; end sandboxed commands that still run by stop_process first",
        )


async def _check_approved_files(invocation: Invocation, asked_files: Mapping[str, FileState]) -> None:
    """Raise `Denied` if a file has changed since the user was asked about the call."""
    from handrail.pipeline.approved_files import find_changed_file

    path = await anyio.to_thread.run_sync(find_changed_file, asked_files)
    if path is not None:
        raise Denied(
            f"{invocation.tool.name} was not run: {path!r} has changed since a person was asked about this call",
            hint="look at the file, then call it again; end what changes it by stop_process",
        )


@asynccontextmanager
async def _mark_agent_input(session: CallSession, tool: Tool) -> AsyncGenerator[None]:
    """Mark the time of an agent's mouse or keyboard input on a desktop that the user may be using.

    Code that reads the user's answers can then tell such input from theirs.
    """
    if not tool.inputs or session.by_hand or (await session.desktop()).private:
        yield
        return
    with session.runtime.presses.made():
        yield


async def _build_denial(session: CallSession, invocation: Invocation, verdict: Verdict) -> Denied:
    """Build the error for a denied call: all reasons, how the user can allow it, and the last reason's code."""
    # Only what was denied needs it.
    from handrail.pipeline.remedies import find_remedy

    reason = verdict.reasons[-1] if verdict.reasons else Reason("denied", "policy refuses it")
    told = "; ".join(dict.fromkeys(each.text for each in verdict.reasons)) or reason.text
    error = DENIAL_TYPES.get(reason.code, Denied)
    remedy = await find_remedy(session.court, invocation, verdict)
    return error(f"{invocation.tool.name} was not run: {told}", hint=remedy, details={"rule": verdict.rule})
