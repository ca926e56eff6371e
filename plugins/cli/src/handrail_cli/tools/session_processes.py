"""The commands of one session: started, known by their handles, and ended when the session is."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shlex
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from handrail import InvalidArguments, KeyboardTarget, NotFound, ServiceContext, StaleObservation, View
from handrail.redaction import remove_credentials
from handrail.sandbox.visible_variables import select_visible_variables
from handrail.workers.processes import find_marked_processes
from handrail.workers.registry import ProcessRegistry, RunningProgram
from handrail_cli.process.bash_protocol import ShellState, filter_confined_state
from handrail_cli.process.command_process import TERM_S, CommandProcess, LaunchRequest
from handrail_cli.process.key_input import translate_keys
from handrail_cli.process.process_tree import MARK_VARIABLE, pid_exists
from handrail_cli.process.reaper import ProcessReaper
from handrail_cli.process.written_text import WrittenText
from handrail_cli.sandboxes.named_files import NamedFileView

if TYPE_CHECKING:
    from handrail import Invocation, ToolContext
    from handrail.workers.host_programs import HostPrograms

# A command that runs no longer than this is not told to the warden.
UNWATCHED_S = 0.02
# Ended commands whose output can still be read.
KEPT_ENDED = 32
# Calls whose view of what was written before them is kept until they write.
KEPT_JUDGED = 64


class CommandStarter(Protocol):
    """Starts commands on one system."""

    def shell(self, programs: HostPrograms) -> str | None:
        """Return the path of the bash that runs commands; empty for the system's own shell, None without either."""
        ...

    def start(self, launch: LaunchRequest, mark: str) -> CommandProcess:
        """Start a command; `Downstream` when that fails."""
        ...

    def close(self) -> None:
        """Release the resources kept for later commands."""
        ...


class SessionProcesses:
    """All commands of one session, and the state of its shell besides working directory and variables.

    Service `shell`, scope session. `unset` are variables of the host that a command removed. Closing ends what still
    runs, and `ended` lists which of the commands ended this way were left running. Commands left running are recorded
    in `ledger`.
    """

    def __init__(self, starter: CommandStarter, ledger: ProcessRegistry) -> None:
        self._ledger = ledger
        self.unset: frozenset[str] = frozenset()
        self.ended: Sequence[str] = ()
        self._starter = starter
        self._token = secrets.token_hex(8)
        # Variables of the session with the values that commands on the host gave them, which somebody or a rule has allowed.
        self.vouched: Mapping[str, str] = {}
        self._numbers = 0
        self._handles = 0
        self._known: dict[str, CommandProcess] = {}
        self._foreground: set[CommandProcess] = set()
        self._judged: dict[str, WrittenText] = {}
        self._warden: ProcessReaper | None = None
        self._host: tuple[Mapping[str, str], dict[str, str]] | None = None
        self._visible: tuple[Mapping[str, str], dict[str, str]] | None = None
        # Closed when nothing runs any more that was started while they were open.
        self._files: list[NamedFileView] = []
        self._empty: tempfile.TemporaryDirectory[str] | None = None
        self._left: tuple[bytes, Mapping[str, str], ShellState | None] = (b"", {}, None)

    @classmethod
    async def open(cls, context: ServiceContext) -> SessionProcesses:
        """Create the service, with nothing running."""
        ledger = ProcessRegistry(context.state)
        if sys.platform == "win32":
            from handrail_cli.process.windows_process import WindowsStarter

            return cls(WindowsStarter(), ledger)
        from handrail_cli.process.posix_start import PosixStarter

        return cls(PosixStarter(), ledger)

    def host_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return a copy of the host's environment without credentials."""
        if self._host is None or self._host[0] is not environment:
            self._host = (environment, remove_credentials(environment))
        return self._without_unset(self._host[1])

    def visible_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """Return a copy of the host's environment as seen by builtins that run without approval.

        They see no more than a command in the sandbox.
        """
        if self._visible is None or self._visible[0] is not environment:
            self._visible = (environment, select_visible_variables(environment, environment))
        return self._without_unset(self._visible[1])

    def _without_unset(self, base: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in base.items() if name not in self.unset} if self.unset else base.copy()

    def directory_for(self, context: ToolContext) -> Path:
        """Return a directory with nothing in it but the files that an unconfined command may read."""
        if context.verdict.view is View.FILES:
            files = NamedFileView(context)
            self._files.append(files)
            return files.directory
        if self._empty is None:
            self._empty = tempfile.TemporaryDirectory(prefix="handrail-empty-")
            os.chmod(self._empty.name, 0o500)
        return Path(self._empty.name)

    def shell(self, programs: HostPrograms) -> str | None:
        """Return the path of the bash that runs commands; empty for the system's own shell, None without either."""
        return self._starter.shell(programs)

    def command_line(self, argv: Sequence[str], programs: HostPrograms) -> str:
        """Return the command that runs a program with these words in the available shell.

        Raises `InvalidArguments` if the shell cannot express it.
        """
        if self.shell(programs) != "":
            return shlex.join(argv)
        from handrail_cli.process.windows_start import create_cmd_line

        try:
            return create_cmd_line(argv)
        except ValueError as exc:
            raise InvalidArguments(
                f"execute_cli: {exc}", hint="install Git for Windows, whose bash takes any word"
            ) from exc

    def left_by(self, process: CommandProcess, written: bytes) -> ShellState | None:
        """Return the state that a command's shell left behind.

        Most shells leave the same state as the one before them, which is then not parsed again.
        """
        plain = written.replace(process.mark.encode(), b"")
        before, given, left = self._left
        if plain != before or given != process.environment:
            left = process.parse_left(written)
            self._left = (plain, process.environment, left)
        if left is not None and process.launch.sandbox is not None:
            # Where none is known, nothing leaves.
            own = self._host[0] if self._host is not None else left.changed
            return filter_confined_state(left, process.launch.cwd, process.launch.sandbox.bounds, own=own)
        return left if left is None or left.cwd.is_dir() else None

    def start(self, launch: LaunchRequest) -> CommandProcess:
        """Start it, in the foreground until it is `kept` or `finished`; `Downstream` when that fails."""
        self._numbers += 1
        mark = f"{self._token}.{self._numbers}"
        process = self._starter.start(launch, mark)
        try:
            process.follow()
        except BaseException:  # whatever it is, it goes on: nothing may run that nobody follows
            process.abandon()
            raise
        for other in self._foreground:
            other.alone = process.alone = False
        self._foreground.add(process)
        if process.dies_with_us:
            return process
        # Most commands are over before the warden would have read of them.
        process.watch = asyncio.get_running_loop().call_later(UNWATCHED_S, self._watch_over, process)
        return process

    async def run(
        self, argv: Sequence[str], context: ToolContext, *, timeout: float, readable: Sequence[Path] = ()
    ) -> Mapping[str, Any]:
        """Run a program for a call of another tool (`handrail.api.service.ShellService`)."""
        from handrail_cli.tools.execute import run_program

        return await run_program(argv, context, self, timeout=timeout, readable=readable)

    def _watch_over(self, process: CommandProcess) -> None:
        if self._warden is None:
            self._warden = ProcessReaper()
        process.watch = None
        self._warden.foreground(process.pid, process.mark)

    def finished(self, process: CommandProcess) -> None:
        """Release a command in the foreground that has ended completely."""
        process.close()
        self._over(process)

    def keep(self, process: CommandProcess) -> str:
        """Keep a command that continues to run and return its `process_id`."""
        self._foreground.discard(process)
        if process.id is None:
            self._handles += 1
            process.id = f"p{self._handles}"
            self._known[process.id] = process
            if process.launch.stdin:
                process.written = process.written.with_text(process.launch.stdin.decode("utf-8", "replace"))
            self._forget_ended()
        if process.watch is not None:
            process.watch.cancel()
            process.watch = None
        if not process.dies_with_us:
            if self._warden is None:
                self._warden = ProcessReaper()
            self._warden.left(process.pid, process.mark)
            # It is found later unless the disk is full, and it runs in any case.
            with contextlib.suppress(OSError):
                self._ledger.write(_create_ledger_entry(process))
        return process.id

    def get(self, process_id: str) -> CommandProcess:
        """Return the command with that `process_id`; `NotFound` names the existing ones."""
        if process_id not in self._known:
            known = ", ".join(self._known) or "none"
            raise NotFound(f"no process {process_id!r} in this session; there are: {known}")
        return self._known[process_id]

    async def focus(self, invocation: Invocation) -> KeyboardTarget | None:
        """Return the input of a command on the host as it would be after this call; None for a command in the sandbox."""
        given: Any = invocation.params
        process = self.get(given.process_id)
        if process.confined is not None:
            return None
        before = process.written
        while len(self._judged) >= KEPT_JUDGED:
            del self._judged[next(iter(self._judged))]
        self._judged[invocation.call_id] = before
        after = compute_written_text(process, invocation)
        *lines, rest = after.text.split("\n")
        earlier = len(before.text) if after.text.startswith(before.text) else 0
        unknown = (after.unknown,) if after.unknown is not None else ()
        return KeyboardTarget(
            given.process_id, process.launch.command, True, process.launch.cwd, tuple(lines), rest, unknown, earlier
        )

    def check_judged(self, process: CommandProcess, invocation: Invocation) -> None:
        """Raise `StaleObservation` if something else was written to a command since this call was judged."""
        if process.confined is None and self._judged.pop(invocation.call_id, None) is not process.written:
            raise StaleObservation(
                f"something else was written to process {process.id!r} since this was judged; nothing was written",
                hint="call it again, one call after the other",
            )

    def all(self) -> list[CommandProcess]:
        """Return the commands with a `process_id`, in the order they were started."""
        return list(self._known.values())

    async def stop(self, process: CommandProcess, *, patience: float = TERM_S) -> None:
        """End a command and everything it started, `patience` seconds after it was asked to end."""
        await process.stop(patience=patience)
        self._over(process)

    def _over(self, process: CommandProcess) -> None:
        self._foreground.discard(process)
        if self._files and not self._foreground and not any(known.running for known in self._known.values()):
            self._close_files()
        if process.watch is not None:
            process.watch.cancel()
            process.watch = None
        elif self._warden is not None:
            self._warden.over(process.pid, process.mark)
        # What was told to outlive the session stays written down.
        if process.id is not None and not _is_still_running(process):
            self._ledger.remove(_create_ledger_entry(process))

    async def close(self) -> None:
        """End what still runs.

        Commands that are waited for are ended completely, those left running as by a terminal that closes.
        """
        await asyncio.gather(*(self.stop(process) for process in list(self._foreground)))
        left = [process for process in self._known.values() if process.running]
        await asyncio.gather(*(process.hang_up() for process in left))
        self.ended = [f"the command {process.launch.command!r}" for process in left if not _is_still_running(process)]
        for process in self._known.values():
            process.close()
            self._over(process)
        if self._warden is not None:
            await asyncio.to_thread(self._warden.close)
            self._warden = None
        self._starter.close()
        self._close_files()
        if self._empty is not None:
            self._empty.cleanup()
            self._empty = None

    def _close_files(self) -> None:
        for files in self._files:
            files.close()
        self._files.clear()

    def _forget_ended(self) -> None:
        ended = [process for process in self._known.values() if not process.running]
        for process in ended[: max(0, len(ended) - KEPT_ENDED)]:
            assert process.id is not None
            process.close()
            self._over(process)
            del self._known[process.id]


def compute_written_text(process: CommandProcess, invocation: Invocation) -> WrittenText:
    """Return all text that a command's input was given, including that of this call."""
    given: Any = invocation.params
    text: str = given.text
    terminal = process.launch.terminal is not None
    if terminal:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    written = process.written.with_text(text)
    for key in translate_keys(process, given.keys):
        written = written.with_key(key)
    return written.with_unknown_keys() if given.end and terminal else written


def _is_still_running(process: CommandProcess) -> bool:
    """Return True if any process of an ended command is still running."""
    return any(map(pid_exists, process.daemons)) or bool(find_marked_processes(_get_mark_assignment(process)))


def _create_ledger_entry(process: CommandProcess) -> RunningProgram:
    """Return the command's entry in the ledger of running programs."""
    # The number of a shell that has ended may be another's by now.
    pid = process.pid if process.exit_code is None else 0
    return RunningProgram.of(
        "command", process.mark, "a command that was left running", pid=pid, mark=_get_mark_assignment(process)
    )


def _get_mark_assignment(process: CommandProcess) -> str:
    """Return the variable assignment in the environment of every process that it started."""
    return f"{MARK_VARIABLE}={process.mark}"
