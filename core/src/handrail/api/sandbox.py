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

__all__ = ["ALL_ASPECTS"]

# What a sandbox may keep a command from: reading the person's files, writing outside its bounds, the network, and other processes.
ConfinedAspect = Literal["read", "write", "network", "process"]
DenialKind = Literal["network", "credentials", "write", "secret", "privilege", "outside", "limit"]
# Only a sandbox that does all of it may stand for a person's yes.
ALL_ASPECTS: frozenset[ConfinedAspect] = frozenset(("read", "write", "network", "process"))


@dataclass(frozen=True, slots=True)
class Limits:
    """Resource limits of one sandboxed command; None: no limit set by Handrail.

    Sizes are in bytes, times in seconds of CPU time.
    """

    memory: int | None = 4 * 2**30
    processes: int | None = 512
    cpu_seconds: int | None = None
    file_size: int | None = 4 * 2**30


@dataclass(frozen=True, slots=True)
class Bounds:
    """Resources that a sandboxed command may access. All paths are real paths on the host.

    `writable`: mounted at the same path, for reading and writing. `readable`: mounted at the same path, read-only, in
    addition to the programs and libraries of the system. `temporary`: the session's private folder, mounted as /tmp and
    /var/tmp. `home`: an empty folder inside. `shown`: files inside the sandbox, by their path there, that are replaced
    by another file of the host; read-only. Within those folders: `masked` paths can be neither read nor changed
    (secrets), `kept` paths can be read but not changed, and `anchored` folders cannot be moved or removed though their
    contents can change. `hosts`: the only hosts that can be connected to if `network` is False, through a proxy at
    `gateway.PROXY_ADDRESS` inside (`Sandbox.filters`); each is `name`, `name:port` or `*.name`.
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
    """Ignore the process id, which most sandboxes do not need."""


def _report_no_failure() -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Confined:
    """Command ready to start: its words, its full environment, and the descriptors to inherit (closed by the caller).

    The first word is the program; a bare name is looked up by `Sandbox.programs`.

    The caller calls `started` with the process id immediately after starting it, and `ended` in a thread once it is
    over, even if it could not be started: `ended` releases everything and returns why the sandbox failed to start
    (nothing ran), or None. `channel`: a socket over which the command's side sends its listener at
    `gateway.PROXY_ADDRESS` (SCM_RIGHTS), if the bounds name hosts; its owner closes it.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    pass_fds: tuple[int, ...] = ()
    started: Callable[[int], None] = _ignore_start
    ended: Callable[[], str | None] = _report_no_failure
    channel: socket.socket | None = None


class PreparedSandbox(ABC):
    """Reusable sandbox that runs one command after another, each faster than in a new sandbox.

    Runs only one command at a time; when a command ends, all processes it has left are killed, and the sandbox returns
    to its earlier state.
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
    """Likely refusal by the sandbox: `what` for programs, `text` for people.

    `hosts` are those that the user may be prompted about.
    """

    what: DenialKind
    text: str
    hosts: tuple[str, ...] = ()
