"""Sandboxes: where commands, scripts and skill code run when they may not run on the host. Plugins supply them; the first usable one is taken.

A sandbox does the real work in the real workspace: it turns the words of a command into those of a command that runs it confined.
"""

from __future__ import annotations

import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

# What a sandbox may keep a command from: reading the person's files, writing outside its bounds, the network, and other processes.
ConfinedAspect = Literal["read", "write", "network", "process"]
DenialKind = Literal["network", "credentials", "write", "secret", "privilege", "outside", "limit"]
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


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal of the sandbox, as far as it is known: `what` for programs, `text` for people. `hosts`: those that a person may be asked about."""

    what: DenialKind
    text: str
    hosts: tuple[str, ...] = ()
