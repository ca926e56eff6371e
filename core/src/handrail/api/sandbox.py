"""Sandboxes: where commands, scripts and skill code run when they may not run on the host. Plugins supply them; the first usable one is taken.

A sandbox does the real work in the real workspace: it turns the words of a command into those of a command that runs it confined.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal

from pydantic import BaseModel

from handrail.api.vision import NoSettings
from handrail.workers.host_programs import HostPrograms, find_own_programs

if TYPE_CHECKING:
    from handrail.sandbox.denials import Denial

# What a sandbox may keep a command from: reading the person's files, writing outside its bounds, the network, and other processes.
ConfinedAspect = Literal["read", "write", "network", "process"]
# Only a sandbox that does all of it may stand for a person's yes.
ALL_ASPECTS: frozenset[ConfinedAspect] = frozenset(("read", "write", "network", "process"))


@dataclass(frozen=True, slots=True)
class Limits:
    """What one sandboxed command may use; None: no limit of ours. Sizes in bytes, times in seconds of CPU."""

    memory: int | None = 4 * 2**30
    processes: int | None = 512
    cpu_seconds: int | None = None
    file_size: int | None = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a sandboxed command may reach. All paths are real ones on the host.

    `writable`: bound at their own place, for reading and writing. `readable`: bound at their own place, read-only, beside the programs and
    libraries of the system. `temporary`: the session's private folder that is /tmp and /var/tmp inside. `home`: an empty folder inside.
    `shown`: files inside, by their place there, that another file of the host stands for; read-only.
    Of what lies in those folders: `masked` can neither be read nor changed (secrets), `kept` can be read and not changed, and `anchored`
    folders cannot be moved or removed though their content can change.
    `hosts`: the only ones that can be connected to, where `network` is false, by a proxy at `gateway.ADDRESS` inside (`Sandbox.filters`); each
    is `name`, `name:port` or `*.name`.
    """

    writable: tuple[Path, ...]
    temporary: Path
    home: Path
    readable: tuple[Path, ...] = ()
    shown: Mapping[Path, Path] = field(default_factory=dict[Path, Path])
    masked: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    anchored: tuple[Path, ...] = ()
    network: bool = False
    # Whether a command may connect to sockets that have a name in these folders (a database's, a container engine's).
    local_sockets: bool = True
    hosts: tuple[str, ...] = ()
    limits: Limits = Limits()


def _ignore_start(pid: int) -> None:
    """Most sandboxes need not know."""


def _report_no_failure() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Confined:
    """A command ready to be started: its words, its whole environment, and the descriptors that it must inherit (closed by who starts it).

    The first word is the program; one without a folder is looked up by `Sandbox.programs`.

    Who starts it calls `started` with its process id at once, and `ended` in a thread once it is over, also when it could not be started:
    that gives everything back and says why the sandbox did not come about, so that nothing ran in it; None when it did.
    `channel`: a socket over which the command's side sends its listener at `gateway.ADDRESS` (SCM_RIGHTS), where the bounds name hosts; whoever
    has it closes it.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    pass_fds: tuple[int, ...] = ()
    started: Callable[[int], None] = _ignore_start
    ended: Callable[[], str | None] = _report_no_failure
    channel: socket.socket | None = None


class PreparedSandbox(ABC):
    """A sandbox that has been set up and runs one command after another, each faster than a sandbox of its own.

    Only one command at a time; when it ends, every process that it has left is ended, and the sandbox is as it was before.
    """

    pid: int
    """The process of the host with which all in the sandbox end."""

    @property
    @abstractmethod
    def ready(self) -> bool:
        """True once it has been set up and no command runs in it."""

    @property
    @abstractmethod
    def usable(self) -> bool:
        """True until it has ended, or a command has left something in it that the next one would find."""

    @abstractmethod
    def start(
        self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], descriptors: Mapping[int, int]
    ) -> int:
        """Start a command with these descriptors (its number of each: ours). Returns a descriptor that becomes readable when it ends.

        Raises `OSError` if the sandbox has ended; then nothing was run.
        """

    @abstractmethod
    def finish(self) -> int | None:
        """Return the command's exit code (negative for a signal), or None if the sandbox ended with it. Call it once the descriptor is readable."""

    @abstractmethod
    def close(self) -> None:
        """End it with all that runs in it, and release what is held for it."""


class Sandbox(ABC):
    """One way to confine a command. Registered as a class; built once a process when it is the first in order that is usable."""

    name: ClassVar[str]
    # What it really withholds; with less than `ALL_ASPECTS` it is never taken for what may run without a question.
    confines: ClassVar[frozenset[ConfinedAspect]] = frozenset()
    # Whether `Bounds.network` can be given.
    networks: ClassVar[bool] = False
    # Whether `Bounds.hosts` can be given: connections to these hosts and to no others.
    filters: ClassVar[bool] = False
    # Whether a command inside has the descriptors that its starter gave it beside the first three.
    descriptors: ClassVar[bool] = False
    # Whether a command inside sees no processes but its own (a /proc of its own, on Linux), and all of them end with it.
    own_processes: ClassVar[bool] = False
    # Whether /tmp and /var/tmp inside are `Bounds.temporary`, so that file tools find there what commands have made, and the other way round.
    private_tmp: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = NoSettings
    # The programs that it may start on the host: asked for each time, because what agents may write changes with the sessions.
    programs: Callable[[], HostPrograms] = staticmethod(find_own_programs)

    def __init__(self, config: BaseModel | None = None) -> None:
        self.config = config if config is not None else self.Config()

    @classmethod
    def missing(cls) -> str | None:
        """What it lacks here, with the cure; None when nothing. Quick: names and settings are looked at, nothing is started."""
        return None

    async def check(self) -> None:
        """Start the smallest command in it; raises `NoSandbox` with the cure when that does not work. Asked once a process."""

    @abstractmethod
    def confine(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], bounds: Bounds) -> Confined:
        """The command that runs `argv` in `cwd` within the bounds. Raises `NoSandbox` when they cannot be kept."""

    def prepare(self, bounds: Bounds) -> PreparedSandbox | None:
        """Start to set up a sandbox for many commands within the bounds; None where this sandbox cannot, or lacks what that takes.

        Returns at once: it becomes `ready` later. Its process ends with this thread, so call it in one that lives as long as it should.
        """
        return None

    def is_set_up(self, pid: int) -> bool:
        """Return True once the sandbox that this process sets up has bound all places, and looks up no more paths on the host."""
        return True

    def denied(self, output: str, exit_code: int, bounds: Bounds) -> Denial | None:
        """What the sandbox seems to have refused, told from what a failed command has printed; None when nothing points to it."""
        from handrail.sandbox.denials import detect_denial

        return detect_denial(output, exit_code, bounds)

    async def close(self) -> None:
        """Give everything back."""
