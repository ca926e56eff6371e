"""A command on Linux or macOS: a process group that is read as it writes and known until it is gone."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import termios
import time
from collections.abc import Sequence
from dataclasses import dataclass

from handrail import Downstream
from handrail_cli.process.bash_protocol import ShellState, parse_bash_state, read_shell_state
from handrail_cli.process.command_process import GRACE_S, TERM_S, CommandProcess, OutputStream
from handrail_cli.process.process_tree import (
    filter_alive,
    find_left_running,
    find_process_tree,
    is_before_exec,
    is_group_alive,
    is_hangup_ignored,
    send_signal,
)

# A pipe of this size lets a program that writes much run on while we are elsewhere.
WIDE_PIPE = 1_048_576
# Reads in a row for one stream before others get their turn.
READS_IN_A_ROW = 16
# How long what the shell has just forked may take to become its program.
BECOMING_S = 0.3
# For so long what a command writes stays in its pipes, unless somebody listens.
UNREAD_S = 0.003
END_OF_INPUT = b"\x04"


@dataclass(slots=True, eq=False)
class PosixProcess(CommandProcess):
    """`stdin` is the descriptor that feeds it; for a terminal that is the terminal. `state` is where its shell writes what it leaves."""

    stdin: int | None = None
    state: int | None = None
    _pidfd: int | None = None
    # Set while its streams are not watched yet.
    _reading: asyncio.TimerHandle | None = None
    _watch: asyncio.Task[None] | None = None

    @property
    def hides_typing(self) -> bool:
        if self.launch.terminal is None or self.stdin is None:
            return False
        modes = termios.tcgetattr(self.stdin)[3]
        return bool(modes & termios.ICANON) and not modes & termios.ECHO

    @property
    def fed(self) -> bool:
        return self.stdin is not None

    @property
    def running(self) -> bool:
        return self.exit_code is None or (self.left and (is_group_alive(self.pid) or self._has_daemons()))

    def _has_daemons(self) -> bool:
        """Return True if a process outside the process group is alive, searching again if the known ones ended."""
        if not filter_alive(self.daemons, self.mark):
            self.daemons = find_left_running(self.pid, self.mark) if self.confined is None else ()
            self.left = bool(self.daemons)
        return self.left

    def follow(self) -> None:
        loop = asyncio.get_running_loop()
        if sys.platform == "linux":
            self._pidfd = os.pidfd_open(self.pid)
            loop.add_reader(self._pidfd, self._reap)
        else:
            self._watch = loop.create_task(self._wait_in_thread())
        self.watch_later(loop)

    def watch_later(self, loop: asyncio.AbstractEventLoop) -> None:
        """Read what it writes: at once if somebody listens, else when it has ended, or after a moment."""
        if self.launch.followed or self.launch.listening():
            self._watch_streams()
        else:
            # Most commands are over before: what they wrote is read at once, and nothing wakes us for each part of it.
            self._reading = loop.call_later(UNREAD_S, self._watch_streams)

    def _watch_streams(self) -> None:
        self._reading = None
        loop = asyncio.get_running_loop()
        for stream in self.streams:
            if stream.fd is not None:
                loop.add_reader(stream.fd, self._read, stream)

    def abandon(self) -> None:
        os.killpg(self.pid, signal.SIGKILL)
        self.close()
        os.waitpid(self.pid, 0)

    def left_behind(self) -> bytes | None:
        if self.state is None:
            return b""
        return read_shell_state(self.state)

    def parse_left(self, written: bytes) -> ShellState | None:
        return parse_bash_state(written, given=self.environment)

    def _forget_state(self) -> None:
        if self.state is not None:
            os.close(self.state)
            self.state = None

    async def stop(self, *, patience: float = TERM_S) -> None:
        for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, TERM_S)):
            # What is inside a sandbox ends with it, at once: the sandbox itself is not asked.
            asked = self.confined is None or number is signal.SIGKILL
            if asked:
                # Its group is told before the others are looked for, so that less is done meanwhile.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, number)
            members = await asyncio.to_thread(find_process_tree, self.pid, mark=self.mark)
            send_signal(number, members if asked else members - {self.pid})
            if not members or await self._gone(seconds):
                break
        await self.settle(GRACE_S + TERM_S)
        self.close()
        await self.give_back()

    async def hang_up(self) -> None:
        """End its group as a terminal does that closes: what was started with `nohup` or moved away by `setsid` stays."""
        await self._become()
        members = [pid for pid in await asyncio.to_thread(find_process_tree, self.pid) if not is_hangup_ignored(pid)]
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL):
            send_signal(number, members)
            if number is not signal.SIGHUP and await self._all_gone(members, TERM_S):
                break
        await self.settle(GRACE_S)
        self.close()
        await self.give_back()

    def write(self, data: bytes) -> int:
        if self.stdin is None:
            raise self._no_input()
        self.fed_at = time.monotonic()
        try:
            return os.write(self.stdin, data)
        except BlockingIOError:
            return 0
        except BrokenPipeError as exc:
            self.end_input()
            raise Downstream(f"process {self.id!r} does not read its standard input any more") from exc

    def end_input(self) -> None:
        if self.stdin is None:
            return
        if self.launch.terminal is not None and self.exit_code is None:
            # A terminal has no end: its program is told that there is no more, as ctrl-d does.
            with contextlib.suppress(OSError):
                os.write(self.stdin, END_OF_INPUT)
            return
        os.close(self.stdin)
        self.stdin = None

    def interrupt(self, number: signal.Signals) -> None:
        if self.confined is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
        else:
            send_signal(number, find_process_tree(self.pid) - {self.pid})

    def close(self) -> None:
        """Close its descriptors. Processes that still write to them get SIGPIPE."""
        self._forget_state()
        if self.stdin is not None:
            os.close(self.stdin)
            self.stdin = None
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None
        for stream in self.streams:
            self._hang_up_stream(stream)
            stream.kept.close()
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        self._listen_no_more()

    def _read(self, stream: OutputStream, bursts: int = READS_IN_A_ROW) -> None:
        for _ in range(bursts):
            if stream.fd is None:
                return
            space = stream.kept.space()
            try:
                size = os.readv(stream.fd, (space,))
            except BlockingIOError:
                return
            except OSError:
                size = 0
            if not size:
                self._hang_up_stream(stream)
                self._settle_if_done()
                return
            self.heard = time.monotonic()
            stream.kept.took(size)
            if self.launch.listening():
                self._tell(stream, space[:size])
            if size < len(space):
                return
            if not stream.wide:
                _widen_pipe(stream)

    def _reap(self) -> None:
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        if ended != self.pid:
            return
        self._finish(os.waitstatus_to_exitcode(status))

    def _finish(self, code: int) -> None:
        if self._pidfd is not None:
            asyncio.get_running_loop().remove_reader(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None
        unwatched = self._reading is not None
        for stream in self.streams:
            self._read(stream, bursts=1)
            if unwatched and stream.fd is not None:
                # Its end, where nothing that was started holds it open.
                self._read(stream, bursts=1)
        if self._reading is not None:
            self._reading.cancel()
            self._watch_streams()
        self._ended(code)

    async def _wait_in_thread(self) -> None:
        _, status = await asyncio.to_thread(os.waitpid, self.pid, 0)
        self._finish(os.waitstatus_to_exitcode(status))

    def _find_left(self) -> bool:
        # In this order: what moves out of the group meanwhile is found by one or the other.
        grouped = is_group_alive(self.pid)
        if self.confined is None:
            self.daemons = find_left_running(self.pid, self.mark)
        return bool(self.daemons) or grouped

    def _hang_up_stream(self, stream: OutputStream) -> None:
        if stream.fd is not None:
            asyncio.get_running_loop().remove_reader(stream.fd)
            os.close(stream.fd)
            stream.fd = None

    async def _become(self) -> None:
        """Give what the shell has started a moment to become its program: before, nothing tells that it is to stay."""
        deadline = time.monotonic() + BECOMING_S
        while time.monotonic() < deadline:
            members = await asyncio.to_thread(find_process_tree, self.pid)
            if not any(is_before_exec(pid, self.launch.bash) and not is_hangup_ignored(pid) for pid in members):
                return
            await asyncio.sleep(0.01)

    async def _gone(self, seconds: float) -> bool:
        """Wait up to `seconds` for the process tree to end, and return True if it has."""
        deadline = time.monotonic() + seconds
        while True:
            if not await asyncio.to_thread(find_process_tree, self.pid, mark=self.mark):
                return True
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.005)

    async def _all_gone(self, pids: Sequence[int], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while alive := find_process_tree(self.pid).intersection(pids):
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.01)
        return not alive


def _widen_pipe(stream: OutputStream) -> None:
    stream.wide = True
    if sys.platform == "linux" and stream.fd is not None:
        # There is a limit for each user; a narrow pipe works, too.
        with contextlib.suppress(OSError):
            fcntl.fcntl(stream.fd, fcntl.F_SETPIPE_SZ, WIDE_PIPE)
