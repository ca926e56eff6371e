"""Sandboxes: where commands, scripts and skill code run when they may not run on the host. Plugins supply them; the first usable one is taken.

A sandbox does the real work in the real workspace: it turns the words of a command into those of a command that runs it confined.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel

from handrail.vision import NoSettings


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
    libraries of the system. `masked`: files and folders below those that are to look empty (secrets) or are not to be changed
    (`kept`: read-only although their folder is writable). `temporary`: the session's private folder that is /tmp and /var/tmp inside.
    """

    writable: tuple[Path, ...]
    temporary: Path
    readable: tuple[Path, ...] = ()
    masked: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    network: bool = False
    limits: Limits = Limits()


@dataclass(frozen=True, slots=True)
class Confined:
    """A command ready to be started: its words, its whole environment, and the descriptors that it must inherit (closed by who starts it)."""

    argv: tuple[str, ...]
    environment: Mapping[str, str]
    pass_fds: tuple[int, ...] = ()
    notes: tuple[str, ...] = field(default=())


class Sandbox(ABC):
    """One way to confine a command. Registered as a class; built once a process when it is the first in order that is usable."""

    name: ClassVar[str]
    # Whether `Bounds.network` can be given.
    networks: ClassVar[bool] = False
    Config: ClassVar[type[BaseModel]] = NoSettings

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

    def denied(self, stderr: str, exit_code: int | None) -> str | None:
        """What the sandbox itself has refused, in words, told from what a command that failed has printed; None when nothing points to it."""
        return None

    async def close(self) -> None:
        """Give everything back."""
