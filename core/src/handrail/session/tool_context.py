"""Context that a running tool receives in addition to its parameters."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.api.context import CallContext
from handrail.api.events import Output, Progress
from handrail.errors import Denied, NotUndoable
from handrail.fs import path_resolution
from handrail.fs.app_dirs import ensure_private_folder, find_home_folder

if TYPE_CHECKING:
    from pydantic import BaseModel

    from handrail.api.call import Invocation
    from handrail.api.desktop import Desktop
    from handrail.api.observation import Observations
    from handrail.api.result import ToolResult
    from handrail.api.verdict import AccessKind, Verdict
    from handrail.approval.ask_user import Question, Reply
    from handrail.artifacts.store import CallArtifacts
    from handrail.nested_dict import Bag
    from handrail.pipeline.call_task import CallTask
    from handrail.sandbox.confinement import Confinement
    from handrail.session.session import Session
    from handrail.vision.backend_chain import Vision
    from handrail.workers.host_programs import HostPrograms


class ToolContext(CallContext):
    """One call's view of its session. A handler that has a parameter of this type is given it; it is not in the schema."""

    __slots__ = ("_children", "_running", "invocation", "sandbox", "session", "verdict")

    def __init__(
        self,
        session: Session,
        invocation: Invocation,
        running: CallTask,
        *,
        verdict: Verdict,
        sandbox: Confinement | None = None,
    ) -> None:
        self.session = session
        # Why it may run, and what it was understood to do: nobody has to read the arguments a second time.
        self.verdict = verdict
        # None: the call runs on the host. Else all that it starts must be what this confines.
        self.sandbox = sandbox
        self.invocation = invocation
        self._running = running
        self._children = 0

    @property
    def call_id(self) -> str:
        return self.invocation.call_id

    @property
    def config(self) -> BaseModel:
        """The settings of the plugin that owns this tool."""
        return self.session.plugin_config(self.invocation.tool.name)

    @property
    def stash(self) -> Bag:
        """Values that tools keep for the session."""
        return self.session.stash

    @property
    def turn_stash(self) -> Bag:
        """Values that tools keep until the host begins the next turn (`Session.begin_turn`)."""
        return self.session.turn_stash

    @property
    def observations(self) -> Observations:
        """Observations of this session, and the only source of element ids."""
        return self.session.observations

    @property
    def artifacts(self) -> CallArtifacts:
        """Store of results that are too long to show."""
        tool = self.invocation.tool
        return self.session.artifacts.of_call(self.call_id, tool.name, trusted=tool.trusted)

    @property
    def cwd(self) -> Path:
        """The session's working directory."""
        return self.session.cwd

    @property
    def environment(self) -> Mapping[str, str]:
        """Variables set by earlier calls of this session, to be laid over the environment of the process."""
        return self.session.environment

    @property
    def host_environment(self) -> Mapping[str, str]:
        """The environment that Handrail itself was started with."""
        return self.session.runtime.environment

    @property
    def programs(self) -> HostPrograms:
        """Programs that Handrail may start for its own purposes without approval."""
        return self.session.runtime.programs

    @property
    def workspace(self) -> tuple[Path, ...]:
        """The roots that file tools may write."""
        return self.session.workspace

    @property
    def cache(self) -> Path:
        """A folder of Handrail's own, 0700, for what can be had again; no call may write there by naming it."""
        return ensure_private_folder(self.session.runtime.places.cache)

    @property
    def data(self) -> Path:
        """A folder of Handrail's own, 0700, for what is to last; no call may write there by naming it."""
        return ensure_private_folder(self.session.runtime.places.data)

    def judged_path(self, text: str, kind: AccessKind = "read") -> Path:
        """Return the real path that was judged when the call named it `text`; open it with `handrail.fs.safe_open`.

        `kind` is the declared kind of access. Raises `Denied` if `text` resolves elsewhere by now.
        """
        judged = {touch.what for part in self.verdict.parts for touch in part.touches if touch.kind == kind}
        if len(judged) == 1:
            # Whatever became of links on the way, this is the place that was spoken of.
            return Path(judged.pop())
        home = find_home_folder(self.host_environment)
        found = path_resolution.resolve_path(
            text, cwd=self.cwd, home=home, platform=self.session.runtime.platform, follow_last=kind != "delete"
        )
        found = path_resolution.map_to_private_tmp(
            found, temporary=self.session.court.judging.temporary, workspace=self.workspace
        )
        if found.real not in judged:
            raise Denied(f"{text!r} leads to {found.real!r} by now, which was not judged", hint="call again")
        return Path(found.real)

    def shown_path(self, path: Path) -> str:
        """Return a judged path as the session knows it: in the private /tmp as its commands call it, elsewhere as it is."""
        own = self.session.temporary
        return str(Path("/tmp", path.relative_to(own))) if own is not None and path.is_relative_to(own) else str(path)

    def keep(self, *, cwd: Path | None = None, environment: Mapping[str, str] | None = None) -> None:
        """Change the session's working directory or variables for the calls that follow."""
        self.session.keep(cwd=cwd, environment=environment)

    async def desktop(self) -> Desktop:
        """Return the session's desktop; a private one is started on first use."""
        return await self.session.desktop()

    async def service(self, capability: str) -> Any:
        """Another plugin's service; `ToolUnavailable` when none supplies it."""
        return await self.session.service(capability)

    @property
    def vision(self) -> Vision:
        """Vision for this call: the backend that was chosen when it began, and the fallbacks after it."""
        return self.session.views.of(self.invocation)

    async def call(self, name: str, args: Mapping[str, Any], *, ask: str | None = None) -> ToolResult:
        """Call another tool through the full pipeline as part of this call.

        The nested call inherits the leases, deadline and cancellation of this one. `ask` is the reason to prompt the
        user first, regardless of policy.
        """
        self._children += 1
        call_id = f"{self.call_id}.{self._children}"
        return await self.session.nested(name, args, call_id=call_id, parent=self.invocation, ask=ask)

    async def ask(self, questions: Sequence[Question]) -> tuple[Reply, ...]:
        """Return the user's own answers, in order; None for a question they left open.

        Raises `NoConfirmer` if nobody answers, `DeniedByUser` if the user declines.
        """
        from handrail.approval.ask_user import ask_questions

        return await ask_questions(self.session, self.invocation, questions)

    async def about_to_change(self, paths: Sequence[Path | str]) -> None:
        """Have undo keep files and folders (real paths) that the arguments do not name, before the call changes them."""
        unkept = await self.session.changes.name_more(self.call_id, list(map(str, paths)))
        if unkept and self.verdict.relies_on_undo:
            from handrail.undo.call_changes import describe_unkept

            raise NotUndoable(f"it could not be undone: {describe_unkept(unkept)}")

    def goes_on(self, running: Callable[[], bool]) -> None:
        """Say that something which the call has started may change files as long as `running` returns True, also when the call is over."""
        self.session.changes.goes_on(self.call_id, running)

    def checkpoint(self) -> None:
        """Raise if this call or an enclosing one has been stopped. Call it before each irreversible step."""
        if self._running.why is not None:
            raise self._running.why
        above = self.invocation.parent
        while above is not None:
            running = self.session.running.get(above.call_id)
            if running is not None and running.why is not None:
                raise running.why
            above = above.parent
        self.session.check_stopped()

    @property
    def listening(self) -> bool:
        """True if anyone is subscribed to the events of this session."""
        return self.session.bus.listening

    def output(self, stream: str, text: str) -> None:
        """Tell listeners of new output on `stream` (stdout or stderr), cleaned piece by piece."""
        if self.listening:
            from handrail.sanitize.envelope import clean_text

            if self.session.secrets.forms:
                text = self.session.secrets.streamed(self.call_id, stream, text)
            if not text:
                # All of it may be the beginning of a secret, and is published with what follows.
                return
            shown = text if self.invocation.tool.trusted else clean_text(text, foreign=False).text
            self.session.bus.publish(Output(self.call_id, stream, shown))

    @asynccontextmanager
    async def waiting(self, what: Callable[[], str]) -> AsyncGenerator[None, None]:
        """Tell listeners once a second what the call waits for, as long as the block takes; `what` is asked each time, and may be empty."""
        if not self.listening:
            yield
            return

        async def tell() -> None:
            for seconds in itertools.count(1):
                await asyncio.sleep(1)
                if told := what():
                    self.progress(None, f"{told} ({seconds} s)")

        # No task group: what the block raises is to come out as it is.
        telling = asyncio.get_running_loop().create_task(tell())
        try:
            yield
        finally:
            telling.cancel()

    def progress(self, fraction: float | None, message: str = "") -> None:
        """Tell listeners how far the call is: from 0 to 1 (what is beyond is brought back), or None when that is not known."""
        if self.listening:
            if fraction is not None:
                fraction = min(max(fraction, 0.0), 1.0)
            self.session.bus.publish(Progress(self.call_id, fraction, message))
