"""The interface of a sandbox, which plugins implement: it turns the words of a command into those of a command that runs it confined."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel

from handrail.api.sandbox import Bounds, Confined, ConfinedAspect, Denial, PreparedSandbox
from handrail.api.vision import NoSettings
from handrail.workers.host_programs import HostPrograms, find_own_programs


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
        """Return what the sandbox lacks here, with the remedy, or None if nothing.

        Quick: checks names and settings, and starts nothing.
        """
        return None

    async def check(self) -> None:
        """Start the smallest command in it; raises `NoSandbox` with the cure when that does not work. Asked once a process."""

    @abstractmethod
    def confine(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], bounds: Bounds) -> Confined:
        """Return the command that runs `argv` in `cwd` within the bounds.

        Raises `NoSandbox` if they cannot be enforced.
        """

    def prepare(self, bounds: Bounds) -> PreparedSandbox | None:
        """Start to set up a sandbox for many commands within the bounds.

        Returns None if this sandbox does not support it, or lacks what it requires. Returns at once: the sandbox
        becomes `ready` later. Its process ends with the calling thread, so call it in one that lives as long as needed.
        """
        return None

    def is_set_up(self, pid: int) -> bool:
        """Return True once the sandbox that this process sets up has bound all places, and looks up no more paths on the host."""
        return True

    def denied(self, output: str, exit_code: int, bounds: Bounds) -> Denial | None:
        """Return what the sandbox seems to have blocked, judging by a failed command's output, or None."""
        from handrail.sandbox.denials import detect_denial

        return detect_denial(output, exit_code, bounds)

    async def close(self) -> None:
        """Give everything back."""
