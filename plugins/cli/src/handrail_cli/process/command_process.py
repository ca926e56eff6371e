"""Platform-independent interface to a started command: its output so far, its status and the operations on it."""

from __future__ import annotations

import asyncio
import codecs
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from handrail import Downstream
from handrail_cli.process.output_capture import MAX_ARTIFACT_BYTES, OutputBuffer, OutputSink
from handrail_cli.process.prompts import (
    READ_KEYS,
    DetectedPrompt,
    find_drawn_prompt,
    find_gravest_prompt,
    find_screen_prompt,
    is_alternate_screen,
    is_terminal_missed,
)
from handrail_cli.process.written_text import WrittenText

if TYPE_CHECKING:
    from handrail import Confined, Confinement
    from handrail_cli.process.bash_protocol import ShellState
    from handrail_cli.process.config import HostLimits

# Between asking processes to end and ending them.
TERM_S = 0.3
# The same for a command that was cancelled: whoever did that waits.
CANCEL_S = 0.02
# How long the pipes of a command that has ended are still listened to when something holds them.
GRACE_S = 0.15


@dataclass(frozen=True, slots=True)
class LaunchRequest:
    """Description of a command to start.

    `bash` is the path of the bash that runs it; empty for the system's own shell. `stdin` None means empty input. If
    `keeps`, the shell reports the working directory and variables that it leaves.

    `fed`: its standard input can be written to later. `terminal` is the width and height of its terminal, or None
    without one; in a terminal its input can always be written to later. `sandbox` None runs it on the host, within
    `limits`. At most `output_limit` bytes of each output go to a sink.
    """

    bash: str
    command: str
    cwd: Path
    environment: Mapping[str, str]
    stdin: bytes | None = None
    fed: bool = False
    terminal: tuple[int, int] | None = None
    keeps: bool = False
    open_sink: Callable[[], OutputSink] | None = None
    on_output: Callable[[str, str], None] = lambda stream, text: None
    # Whether anybody hears of it; it is asked again for each part.
    listening: Callable[[], bool] = lambda: False
    sandbox: Confinement | None = None
    limits: HostLimits | None = None
    output_limit: int = MAX_ARTIFACT_BYTES
    # Whether somebody reads while it runs: nothing is left in its pipes then.
    followed: bool = False
    # What its outputs are added to, where it goes on from another command.
    outputs: tuple[OutputBuffer, OutputBuffer] | None = None
    # Whether it is a step of a line whose steps have sandboxes of their own.
    in_steps: bool = False
    # The session's variables that it is not given.
    withheld: frozenset[str] = frozenset()
    # Whether its PATH lacks folders that agents can write.
    path_shortened: bool = False


@dataclass(slots=True)
class OutputStream:
    """One of a command's outputs: its descriptor (None once it is closed) and what has come from it."""

    name: str
    fd: int | None
    kept: OutputBuffer
    decode: codecs.IncrementalDecoder | None = None
    wide: bool = False


@dataclass(slots=True, eq=False)
class CommandProcess(ABC):
    """Command that was started. `exit_code` is None while it runs and negative for a signal, as reported by the system.

    `left`: the shell itself has ended, but programs it started still run; `daemons` are those that moved out of its
    process group; `held`: some process keeps its outputs open. `alone`: no other command was waited for in the
    meantime. `heard` is the time of its last output and `fed_at` the time of its last input, by the monotonic clock.
    `shown` is the title of a windowed program, which is not waited for. `written` is the input it was given so far.
    """

    # Whether what it started ends with this process anyhow; else somebody has to see to it.
    dies_with_us: ClassVar[bool] = False

    launch: LaunchRequest
    mark: str
    pid: int
    streams: tuple[OutputStream, OutputStream]
    confined: Confined | None = None
    shown: str | None = None
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
    written: WrittenText = field(default_factory=WrittenText)
    _waiting: list[asyncio.Future[None]] = field(default_factory=list["asyncio.Future[None]"])
    _settled: bool = False
    _grace: asyncio.TimerHandle | None = None
    _given_back: asyncio.Task[str | None] | None = None

    @property
    def stdout(self) -> OutputBuffer:
        return self.streams[0].kept

    @property
    def stderr(self) -> OutputBuffer:
        return self.streams[1].kept

    @property
    def prompt(self) -> DetectedPrompt | None:
        """Prompt at the end of its output if no input was written since, else None.

        Prompts that read keys (pagers, editors and full screens) are reported even after input was written.
        """
        if self.stdout.whole_screen:
            return find_screen_prompt(self.stdout.ending(), stream="stdout")
        prompt = find_gravest_prompt([(stream.name, stream.kept.ending()) for stream in self.streams])
        if prompt is None and self.exit_code is None and self.launch.terminal is None:
            return find_drawn_prompt(self.stdout.ending(), stream="stdout")
        answered = prompt is not None and prompt.kind not in READ_KEYS and self.heard < self.fed_at
        return None if answered else prompt

    @property
    def misses_terminal(self) -> bool:
        """True if it waits for keys on a full screen without having a terminal, and has reported that itself."""
        if self.launch.terminal is not None or self.exit_code is not None:
            return False
        endings = [stream.kept.ending() for stream in self.streams]
        return any(map(is_terminal_missed, endings)) and find_drawn_prompt(endings[0], stream="stdout") is not None

    @property
    def holds_screen(self) -> bool:
        """True if it draws on the alternate screen without having a terminal, like programs that a key ends."""
        if self.launch.terminal is not None or self.exit_code is not None:
            return False
        return is_alternate_screen(self.stdout.beginning(), self.stdout.ending())

    @property
    def hides_typing(self) -> bool:
        """True if its terminal does not echo what is typed, as during a password prompt."""
        return False

    @property
    def silent_for(self) -> float:
        """Seconds since it wrote anything."""
        return time.monotonic() - self.heard

    @property
    def environment(self) -> Mapping[str, str]:
        """The variables that the shell was started with, without our mark."""
        return self.launch.environment if self.confined is None else self.confined.environment

    @property
    @abstractmethod
    def fed(self) -> bool:
        """True if its standard input can still be written to."""

    @property
    @abstractmethod
    def running(self) -> bool:
        """True if the shell or any process it left behind is still running."""

    @abstractmethod
    def follow(self) -> None:
        """Start to read what it writes and to wait for its end."""

    @abstractmethod
    def abandon(self) -> None:
        """End it at once: it cannot be followed."""

    @abstractmethod
    async def stop(self, *, patience: float = TERM_S) -> None:
        """End it and everything it started, wherever that moved: asked first, then made to. Returns when nothing is left.

        `patience`: seconds between the two.
        """

    @abstractmethod
    async def hang_up(self) -> None:
        """End what it left running as a terminal does that closes: what was told to stay stays."""

    @abstractmethod
    def write(self, data: bytes) -> int:
        """Write to its standard input and return the number of bytes accepted at once."""

    @abstractmethod
    def end_input(self) -> None:
        """Close its standard input: it reads to the end."""

    @abstractmethod
    def interrupt(self, number: signal.Signals) -> None:
        """Send what a terminal's key would: to all that runs of it on the host, to what the sandbox holds."""

    @abstractmethod
    def left_behind(self) -> bytes | None:
        """Return the working directory and variables the shell wrote; None if they exceed the size limit."""

    @abstractmethod
    def parse_left(self, written: bytes) -> ShellState | None:
        """Parse the result of `left_behind`; None if it is incomplete."""

    @abstractmethod
    def close(self) -> None:
        """Release its resources. Output that its processes still write is not read any more."""

    async def settle(self, seconds: float | None) -> bool:
        """Wait until the command has ended and all that it wrote has come; False when it had not after so many seconds."""
        if self._settled:
            return True
        loop = asyncio.get_running_loop()
        future: asyncio.Future[None] = loop.create_future()
        self._waiting.append(future)
        timer = loop.call_later(seconds, _resolve_waiter, future) if seconds is not None else None
        try:
            await future
        finally:
            if timer is not None:
                timer.cancel()
            if future in self._waiting:
                self._waiting.remove(future)
        return self._settled

    async def give_back(self) -> str | None:
        """Release the sandbox after the command has ended.

        Returns why the sandbox failed to start (nothing ran), or None; always None on the host.
        """
        if self.confined is None:
            return None
        if self._given_back is None:
            self._given_back = asyncio.get_running_loop().create_task(asyncio.to_thread(self.confined.ended))
        return await asyncio.shield(self._given_back)

    def detach_outputs(self) -> tuple[OutputBuffer, OutputBuffer]:
        """Return its output buffers for a command that continues its output, and replace them with empty ones."""
        from handrail_cli.process.output_capture import HeadTailBuffer

        kept = self.stdout, self.stderr
        for stream in self.streams:
            stream.kept = HeadTailBuffer()
        return kept

    def restore_outputs(self, kept: tuple[OutputBuffer, OutputBuffer]) -> None:
        """Undo `detach_outputs`: what was to go on did not begin."""
        for stream, its in zip(self.streams, kept, strict=True):
            stream.kept = its

    def _no_input(self) -> Downstream:
        if not self.running:
            return Downstream(f"process {self.id!r} has ended and reads nothing any more (exit code {self.exit_code})")
        return Downstream(f"process {self.id!r} has no open standard input")

    def _tell(self, stream: OutputStream, data: bytes | memoryview) -> None:
        if stream.decode is None:
            stream.decode = codecs.getincrementaldecoder("utf-8")("replace")
        if text := stream.decode.decode(data):
            self.launch.on_output(stream.name, text)

    def _ended(self, code: int) -> None:
        """Record that the program itself has ended with exit code `code`."""
        self.exit_code = code
        self._settle_if_done()
        if not self._settled:
            self._grace = asyncio.get_running_loop().call_later(GRACE_S, self._settle)

    def _settle_if_done(self) -> None:
        if self.exit_code is not None and all(stream.fd is None for stream in self.streams):
            self._settle()

    def _settle(self) -> None:
        if self._settled:
            return
        self._settled = True
        self._listen_no_more()
        self.held = any(stream.fd is not None for stream in self.streams)
        self.left = self._find_left()
        if not self.left:
            self.end_input()
        self._wake()

    def _listen_no_more(self) -> None:
        if self._grace is not None:
            self._grace.cancel()
            self._grace = None

    @abstractmethod
    def _find_left(self) -> bool:
        """Return True if any process that the command started is still running after the command has ended."""

    def _wake(self) -> None:
        """Resume everything that waits for the command, which has settled."""
        if self.id is not None and self.confined is not None and self._given_back is None:
            self._given_back = asyncio.get_running_loop().create_task(asyncio.to_thread(self._tidy))
        for future in self._waiting:
            if not future.done():
                future.set_result(None)
        self._waiting.clear()

    def _tidy(self) -> str | None:
        """Clean up after a confined command that ends while no call waits for it.

        Returns why the sandbox failed to start (nothing ran), or None.
        """
        assert self.confined is not None
        assert self.launch.sandbox is not None
        refused = self.confined.ended()
        self.launch.sandbox.put_aside()
        return refused


def _resolve_waiter(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
