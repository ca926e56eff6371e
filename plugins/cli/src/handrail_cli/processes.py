"""Running commands: started in a group of their own, read as they write, known until they are gone."""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import fcntl
import os
import secrets
import shutil
import signal
import struct
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from handrail import Downstream, NotFound, ServiceContext
from handrail.records.redaction import without_credentials
from handrail_cli.decoding import locale_charset
from handrail_cli.family import MARK, alive, becoming, behind, family, group_alive, ignores_hangup, send
from handrail_cli.output import MAX_WHOLE, HeadTail, Kept, Sink
from handrail_cli.prompts import READ_KEYS, Prompt, first_of, on_screen
from handrail_cli.shell import STATE, Left, arguments, outside, parse_left
from handrail_cli.warden import Warden

if TYPE_CHECKING:
    from handrail import Confined, Confinement
    from handrail_cli.config import HostLimits

# A pipe of this size lets a program that writes much run on while we are elsewhere.
WIDE_PIPE = 1_048_576
# Reads in a row for one stream before others get their turn.
BURST = 16
# How long the pipes of a command that has ended are still listened to when something holds them.
GRACE_S = 0.15
# What a command does at these is its own affair, whatever Handrail does: `nohup handrail …` ignores the first, Python the last two, and a program
# that writes into a closed pipe has to end.
ANEW = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGPIPE, signal.SIGXFSZ)
# How long what the shell has just forked may take to become its program.
BECOMING_S = 0.3
# Between asking processes to end and ending them.
TERM_S = 0.3
# The same for a command that was cancelled: whoever did that waits.
CANCEL_S = 0.02
# For so long what a command writes stays in its pipes, unless somebody listens.
UNREAD_S = 0.003
# A command that runs no longer than this is not told to the warden.
UNWATCHED_S = 0.02
# Ended commands whose output can still be read.
KEPT_ENDED = 32
END_OF_INPUT = b"\x04"


@dataclass(frozen=True, slots=True)
class Launch:
    """What to start: a command for the bash at `bash`. `stdin` None is empty; `state` is where the shell writes what it leaves.

    `fed`: its standard input can be written to later. `terminal` is the width and height of the one it runs in, None: in none; then it is
    fed, too. `sandbox` None runs it on the host, within `limits`. Of each output at most `output_limit` bytes go to a sink.
    """

    bash: str
    command: str
    cwd: Path
    environment: Mapping[str, str]
    stdin: bytes | None = None
    fed: bool = False
    terminal: tuple[int, int] | None = None
    state: int | None = None
    open_sink: Callable[[], Sink] | None = None
    on_output: Callable[[str, str], None] | None = None
    sandbox: Confinement | None = None
    limits: HostLimits | None = None
    output_limit: int = MAX_WHOLE
    # Whether somebody reads while it runs: nothing is left in its pipes then.
    followed: bool = False


@dataclass(slots=True)
class Stream:
    """One of a command's outputs: its descriptor (None once it is closed) and what has come from it."""

    name: str
    fd: int | None
    kept: Kept
    decode: codecs.IncrementalDecoder | None = None
    wide: bool = False


@dataclass(slots=True, eq=False)
class Process:
    """A command that was started. `exit_code` is None while it runs, negative for a signal, as the system tells it.

    `left` says that the shell itself has ended and that programs it started still run; `daemons` are those of them that moved away from its
    group, and `held` says that something keeps its outputs open. `alone`: no other command was waited for meanwhile. `heard` is when it
    wrote last and `fed_at` when it was written to last, by the monotonic clock. `stdin` is the descriptor that feeds it; for a terminal
    that is the terminal.
    """

    launch: Launch
    mark: str
    pid: int
    streams: tuple[Stream, Stream]
    stdin: int | None
    confined: Confined | None = None
    started: float = field(default_factory=time.time)
    id: str | None = None
    alone: bool = True
    watch: asyncio.TimerHandle | None = None
    exit_code: int | None = None
    left: bool = False
    held: bool = False
    daemons: tuple[int, ...] = ()
    heard: float = field(default_factory=time.monotonic)
    fed_at: float = 0.0
    _waiting: list[asyncio.Future[None]] = field(default_factory=list["asyncio.Future[None]"])
    _settled: bool = False
    _given_back: asyncio.Task[str | None] | None = None
    _pidfd: int | None = None
    _grace: asyncio.TimerHandle | None = None
    # Set while its streams are not watched yet.
    _reading: asyncio.TimerHandle | None = None
    _watch: asyncio.Task[None] | None = None

    @property
    def stdout(self) -> Kept:
        return self.streams[0].kept

    @property
    def stderr(self) -> Kept:
        return self.streams[1].kept

    @property
    def prompt(self) -> Prompt | None:
        """What its outputs end with, where that asks for something and nothing has been written to it since."""
        if self.stdout.whole_screen:
            return on_screen(self.stdout.ending(), stream="stdout")
        prompt = first_of([(stream.name, stream.kept.ending()) for stream in self.streams])
        answered = prompt is not None and prompt.kind not in READ_KEYS and self.heard < self.fed_at
        return None if answered else prompt

    @property
    def hides_typing(self) -> bool:
        """Whether its terminal shows nothing of what is typed, as programs ask for passwords."""
        if self.launch.terminal is None or self.stdin is None:
            return False
        modes = termios.tcgetattr(self.stdin)[3]
        return bool(modes & termios.ICANON) and not modes & termios.ECHO

    @property
    def silent_for(self) -> float:
        """Seconds since it wrote anything."""
        return time.monotonic() - self.heard

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that the shell was started with, without our mark."""
        return self.launch.environment if self.confined is None else self.confined.environment

    @property
    def running(self) -> bool:
        """Whether the shell or anything it left behind still runs."""
        return self.exit_code is None or (self.left and (group_alive(self.pid) or bool(alive(self.daemons, self.mark))))

    def follow(self) -> None:
        """Start to read what it writes and to wait for its end."""
        loop = asyncio.get_running_loop()
        if sys.platform == "linux":
            self._pidfd = os.pidfd_open(self.pid)
            loop.add_reader(self._pidfd, self._ended)
        else:
            self._watch = loop.create_task(self._wait_in_thread())
        if self.launch.followed or self.launch.on_output is not None:
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

    async def settle(self, seconds: float | None) -> bool:
        """Wait until the command has ended and all that it wrote has come; False when it had not after so many seconds."""
        if self._settled:
            return True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append(future)
        timer = loop.call_later(seconds, _give_up, future) if seconds is not None else None
        try:
            await future
        finally:
            if timer is not None:
                timer.cancel()
            if future in self._waiting:
                self._waiting.remove(future)
        return self._settled

    async def stop(self, *, patience: float = TERM_S) -> None:
        """End it and everything it started, wherever that moved: asked first, then made to. Returns when nothing is left.

        `patience`: seconds between the two.
        """
        for number, seconds in ((signal.SIGTERM, patience), (signal.SIGKILL, TERM_S)):
            # What is inside a sandbox ends with it, at once: the sandbox itself is not asked.
            asked = self.confined is None or number is signal.SIGKILL
            if asked:
                # Its group is told before the others are looked for, so that less is done meanwhile.
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, number)
            members = await asyncio.to_thread(family, self.pid, mark=self.mark)
            send(number, members if asked else members - {self.pid})
            if not members or await self._gone(seconds):
                break
        await self.settle(GRACE_S + TERM_S)
        self.close()
        await self.give_back()

    async def give_back(self) -> str | None:
        """Once it is over: let the sandbox go. Why it did not come about, so that nothing ran; None when it did, and on the host."""
        if self.confined is None:
            return None
        if self._given_back is None:
            self._given_back = asyncio.get_running_loop().create_task(asyncio.to_thread(self.confined.ended))
        return await asyncio.shield(self._given_back)

    async def hang_up(self) -> None:
        """End its group as a terminal does that closes: what was started with `nohup` or moved away by `setsid` stays."""
        await self._become()
        members = [pid for pid in await asyncio.to_thread(family, self.pid) if not ignores_hangup(pid)]
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGKILL):
            send(number, members)
            if number is not signal.SIGHUP and await self._all_gone(members, TERM_S):
                break
        await self.settle(GRACE_S)
        self.close()
        await self.give_back()

    def write(self, data: bytes) -> int:
        """How many of the bytes its standard input took at once."""
        if self.stdin is None:
            raise Downstream(f"process {self.id!r} has no open standard input")
        self.fed_at = time.monotonic()
        try:
            return os.write(self.stdin, data)
        except BlockingIOError:
            return 0
        except BrokenPipeError as exc:
            self.end_input()
            raise Downstream(f"process {self.id!r} does not read its standard input any more") from exc

    def end_input(self) -> None:
        """Close its standard input: it reads to the end."""
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
        """Send what a terminal's key would: to all that runs of it on the host, to what the sandbox holds."""
        if self.confined is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, number)
        else:
            send(number, family(self.pid) - {self.pid})

    def close(self) -> None:
        """Let go of its descriptors. What still writes to them gets SIGPIPE."""
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
        if self._grace is not None:
            self._grace.cancel()

    def _read(self, stream: Stream, bursts: int = BURST) -> None:
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
            if self.launch.on_output is not None:
                self._tell(stream, space[:size])
            if size < len(space):
                return
            if not stream.wide:
                _widen(stream)

    def _tell(self, stream: Stream, data: memoryview) -> None:
        assert self.launch.on_output is not None
        if stream.decode is None:
            stream.decode = codecs.getincrementaldecoder("utf-8")("replace")
        if text := stream.decode.decode(data):
            self.launch.on_output(stream.name, text)

    def _ended(self) -> None:
        ended, status = os.waitpid(self.pid, os.WNOHANG)
        if ended != self.pid:
            return
        self._finish(os.waitstatus_to_exitcode(status))

    def _finish(self, code: int) -> None:
        self.exit_code = code
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
        self._settle_if_done()
        if not self._settled:
            self._grace = asyncio.get_running_loop().call_later(GRACE_S, self._settle)

    async def _wait_in_thread(self) -> None:
        _, status = await asyncio.to_thread(os.waitpid, self.pid, 0)
        self._finish(os.waitstatus_to_exitcode(status))

    def _settle_if_done(self) -> None:
        if self.exit_code is not None and all(stream.fd is None for stream in self.streams):
            self._settle()

    def _settle(self) -> None:
        if self._settled:
            return
        self._settled = True
        self.held = any(stream.fd is not None for stream in self.streams)
        if self.confined is None:
            self.daemons = behind(self.pid, self.mark)
        self.left = bool(self.daemons) or group_alive(self.pid)
        if self._grace is not None:
            self._grace.cancel()
        if not self.left:
            self.end_input()
        if self.id is not None and self.confined is not None and self._given_back is None:
            self._given_back = asyncio.get_running_loop().create_task(asyncio.to_thread(self._tidy))
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    def _tidy(self) -> str | None:
        """What is done for a confined command that ends when no call waits for it."""
        assert self.confined is not None
        assert self.launch.sandbox is not None
        refused = self.confined.ended()
        self.launch.sandbox.put_aside()
        return refused

    def _hang_up_stream(self, stream: Stream) -> None:
        if stream.fd is not None:
            asyncio.get_running_loop().remove_reader(stream.fd)
            os.close(stream.fd)
            stream.fd = None

    async def _become(self) -> None:
        """Give what the shell has started a moment to become its program: before, nothing tells that it is to stay."""
        deadline = time.monotonic() + BECOMING_S
        while time.monotonic() < deadline:
            members = await asyncio.to_thread(family, self.pid)
            if not any(becoming(pid, self.launch.bash) and not ignores_hangup(pid) for pid in members):
                return
            await asyncio.sleep(0.01)

    async def _gone(self, seconds: float) -> bool:
        """Whether the whole family is gone within so many seconds."""
        deadline = time.monotonic() + seconds
        while True:
            if not await asyncio.to_thread(family, self.pid, mark=self.mark):
                return True
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.005)

    async def _all_gone(self, pids: Sequence[int], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while alive := family(self.pid).intersection(pids):
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(0.01)
        return not alive


class Processes:
    """Every command of one session, and what the session's shell remembers besides its folder and variables. Service `shell`, scope session.

    `unset` are variables of the host that a command took away. Closing ends what still runs.
    """

    def __init__(self) -> None:
        self.unset: frozenset[str] = frozenset()
        self._token = secrets.token_hex(8)
        self._numbers = 0
        self._handles = 0
        self._known: dict[str, Process] = {}
        self._foreground: set[Process] = set()
        self._warden: Warden | None = None
        self._strange = _strange_descriptors()
        self._host: tuple[Mapping[str, str], dict[str, str]] | None = None
        self._bash: tuple[str | None, str | None] = (None, None)
        self._left: tuple[bytes, Mapping[str, str], Left | None] = (b"", {}, None)

    @classmethod
    async def open(cls, context: ServiceContext) -> Processes:
        """The service, with nothing running."""
        return cls()

    def host_environment(self, environment: Mapping[str, str]) -> dict[str, str]:
        """A copy of the host's environment without credentials."""
        if self._host is None or self._host[0] is not environment:
            self._host = (environment, without_credentials(environment))
        base = self._host[1]
        return {name: value for name, value in base.items() if name not in self.unset} if self.unset else base.copy()

    def bash(self, path: str | None) -> str | None:
        """Where bash is on the host's PATH; None when it is not there."""
        if self._bash[0] != path or self._bash[1] is None:
            self._bash = (path, shutil.which("bash", path=path))
        return self._bash[1]

    def left_by(self, process: Process, written: bytes) -> Left | None:
        """What the shell of a command left behind. Most leave what the one before them did, and are not read again."""
        plain = written.replace(process.mark.encode(), b"")
        before, given, left = self._left
        if plain != before or given != process.environment:
            left = parse_left(written, given=process.environment)
            self._left = (plain, process.environment, left)
        if left is not None and process.launch.sandbox is not None:
            return outside(left, process.launch.cwd, process.launch.sandbox.bounds)
        return left if left is None or left.cwd.is_dir() else None

    def start(self, launch: Launch) -> Process:
        """Start it, in the foreground until it is `kept` or `finished`; `Downstream` when that fails."""
        self._numbers += 1
        mark = f"{self._token}.{self._numbers}"
        process = _spawn(launch, mark, strange=self._strange)
        try:
            process.follow()
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            process.close()
            os.waitpid(process.pid, 0)
            raise
        for other in self._foreground:
            other.alone = process.alone = False
        self._foreground.add(process)
        # Most commands are over before the warden would have read of them.
        process.watch = asyncio.get_running_loop().call_later(UNWATCHED_S, self._watch_over, process)
        return process

    def _watch_over(self, process: Process) -> None:
        if self._warden is None:
            self._warden = Warden()
        process.watch = None
        self._warden.foreground(process.pid, process.mark)

    def finished(self, process: Process) -> None:
        """A command in the foreground is over, with nothing left of it."""
        process.close()
        self._over(process)

    def keep(self, process: Process) -> str:
        """A command goes on running; its `process_id`."""
        self._foreground.discard(process)
        if process.id is None:
            self._handles += 1
            process.id = f"p{self._handles}"
            self._known[process.id] = process
            self._forget_ended()
        if process.watch is not None:
            process.watch.cancel()
            process.watch = None
        if self._warden is None:
            self._warden = Warden()
        self._warden.left(process.pid, process.mark)
        return process.id

    def get(self, process_id: str) -> Process:
        """The command with that `process_id`; `NotFound` names those there are."""
        if process_id not in self._known:
            known = ", ".join(self._known) or "none"
            raise NotFound(f"no process {process_id!r} in this session; there are: {known}")
        return self._known[process_id]

    def all(self) -> list[Process]:
        """Those with a `process_id`, in the order they were started."""
        return list(self._known.values())

    async def stop(self, process: Process, *, patience: float = TERM_S) -> None:
        """End a command and everything it started, `patience` seconds after it was asked to end."""
        await process.stop(patience=patience)
        self._over(process)

    def _over(self, process: Process) -> None:
        self._foreground.discard(process)
        if process.watch is not None:
            process.watch.cancel()
            process.watch = None
        elif self._warden is not None:
            self._warden.over(process.pid, process.mark)

    async def close(self) -> None:
        """End what still runs: commands that are waited for whole, those left running as a closing terminal does."""
        await asyncio.gather(*(self.stop(process) for process in list(self._foreground)))
        left = [process for process in self._known.values() if process.running]
        await asyncio.gather(*(process.hang_up() for process in left))
        for process in self._known.values():
            process.close()
            self._over(process)
        if self._warden is not None:
            await asyncio.to_thread(self._warden.close)
            self._warden = None

    def _forget_ended(self) -> None:
        ended = [process for process in self._known.values() if not process.running]
        for process in ended[: max(0, len(ended) - KEPT_ENDED)]:
            assert process.id is not None
            process.close()
            del self._known[process.id]


def _give_up(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _widen(stream: Stream) -> None:
    stream.wide = True
    if sys.platform == "linux" and stream.fd is not None:
        # There is a limit for each user; a narrow pipe works, too.
        with contextlib.suppress(OSError):
            fcntl.fcntl(stream.fd, fcntl.F_SETPIPE_SZ, WIDE_PIPE)


def _strange_descriptors() -> tuple[int, ...]:
    """Descriptors that this process was given by its parent and would hand on to every command."""
    try:
        return tuple(fd for fd in map(int, os.listdir("/dev/fd")) if fd > 2 and _inheritable(fd))
    except OSError:
        return ()


def _inheritable(fd: int) -> bool:
    try:
        return os.get_inheritable(fd)
    except OSError:
        return False


def _spawn(launch: Launch, mark: str, *, strange: Sequence[int]) -> Process:
    """Start bash in a session of its own, or the sandbox that runs it. Twice as fast as `subprocess`, which encodes the environment in Python."""
    limits = launch.limits if launch.sandbox is None else None
    program, words = launch.bash, arguments(launch.command, launch.cwd, keeps=launch.state is not None, limits=limits)
    environment = {**launch.environment, MARK: mark}
    confined: Confined | None = None
    if launch.sandbox is not None:
        confined = launch.sandbox.confine((program, *words[1:]), cwd=launch.cwd, environment=environment)
        program, words, environment = confined.argv[0], list(confined.argv), dict(confined.environment)
    handed = () if confined is None else confined.pass_fds
    plumbing = _in_terminal(*launch.terminal) if launch.terminal is not None else _in_pipes(launch)
    actions = [
        *((os.POSIX_SPAWN_CLOSE, fd) for fd in strange),
        *plumbing.actions,
        # Onto itself: from then on it is inherited.
        *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in handed),
    ]
    if launch.state is not None:
        actions.append((os.POSIX_SPAWN_DUP2, launch.state, STATE))
    try:
        pid = os.posix_spawn(
            program,
            words,
            environment,
            file_actions=actions,
            setsid=True,
            setsigdef=ANEW,
        )
    except (OSError, ValueError) as exc:
        for fd in plumbing.ours:
            os.close(fd)
        if confined is not None:
            confined.ended()
        raise Downstream(f"the command could not be started: {exc}") from exc
    finally:
        for fd in (*plumbing.theirs, *handed):
            os.close(fd)
    if confined is not None:
        confined.started(pid)
    for fd in plumbing.outputs:
        os.set_blocking(fd, False)
    return Process(launch, mark, pid, _streams(launch, plumbing), plumbing.feed, confined)


@dataclass(frozen=True, slots=True)
class Plumbing:
    """The descriptors between a command and us: `outputs` are read, `feed` is written to, `theirs` are closed here once it has them."""

    actions: Sequence[tuple[int, ...] | tuple[int, int, str, int, int]]
    outputs: tuple[int, ...]
    feed: int | None
    theirs: tuple[int, ...]

    @property
    def ours(self) -> tuple[int, ...]:
        return self.outputs if self.feed is None else (*self.outputs, self.feed)


def _in_pipes(launch: Launch) -> Plumbing:
    stdin, feed = _input(launch)
    out, out_end = os.pipe()
    err, err_end = os.pipe()
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0) if stdin is None else (os.POSIX_SPAWN_DUP2, stdin, 0),
        (os.POSIX_SPAWN_DUP2, out_end, 1),
        (os.POSIX_SPAWN_DUP2, err_end, 2),
    ]
    return Plumbing(actions, (out, err), feed, (out_end, err_end, *(() if stdin is None else (stdin,))))


def _in_terminal(width: int, height: int) -> Plumbing:
    """A terminal of that size, which becomes the command's own: it is the first one that its new session opens."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("4H", height, width, 0, 0))
    actions = [
        (os.POSIX_SPAWN_OPEN, 0, os.ttyname(theirs), os.O_RDWR, 0),
        (os.POSIX_SPAWN_DUP2, 0, 1),
        (os.POSIX_SPAWN_DUP2, 0, 2),
    ]
    return Plumbing(actions, (ours,), os.dup(ours), (theirs,))


def _streams(launch: Launch, plumbing: Plumbing) -> tuple[Stream, Stream]:
    def kept(open_sink: Callable[[], Sink] | None) -> HeadTail:
        return HeadTail(open_sink, limit=launch.output_limit, charset=locale_charset(launch.environment))

    if launch.terminal is None:
        out, err = plumbing.outputs
        return Stream("stdout", out, kept(launch.open_sink)), Stream("stderr", err, kept(launch.open_sink))
    from handrail_cli.drawing import Drawn

    feed = plumbing.feed
    assert feed is not None

    def reply(text: str) -> None:
        # A program that asks its terminal and does not read the answer gets none.
        with contextlib.suppress(OSError):
            os.write(feed, text.encode())

    drawn = Drawn(*launch.terminal, kept(launch.open_sink), reply=reply)
    return Stream("stdout", plumbing.outputs[0], drawn, wide=True), Stream("stderr", None, kept(None))


def _input(launch: Launch) -> tuple[int | None, int | None]:
    """The descriptor that the command reads (None: nothing), and the one that feeds it when it can be written to later."""
    if launch.fed:
        reading, feed = os.pipe()
        os.set_blocking(feed, False)
        return reading, feed
    if launch.stdin is None:
        return None, None
    # A file and not a pipe: a command that does not read all of it cannot make us wait.
    file = scratch_file("stdin")
    with open(file, "wb", closefd=False) as writing:
        writing.write(launch.stdin)
    os.lseek(file, 0, os.SEEK_SET)
    return file, None


def scratch_file(name: str) -> int:
    """The descriptor of an empty file without a place in any folder."""
    if sys.platform == "linux":
        return os.memfd_create(name)
    import tempfile

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())
