"""A bash on the host that has started and waits for its command: most of the time of a short command is the start of its shell."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# Where the shell reads its command and folder, each ended by a NUL: a number that no script uses, and that no command is given.
COMMAND_DESCRIPTOR = 251
# The shell reads byte by byte: longer commands gain nothing. So many are also written to a pipe at once.
MAX_COMMAND = 4096
# Variables that a shell obeys before it has its command, or that the lines below would change.
OBEYED_AT_START = frozenset(("BASH_ENV", "SHELLOPTS", "SECONDS"))
RECEIVING_SCRIPT = "; ".join(
    (
        'IFS= builtin read -r -d "" -u COMMANDS __handrail_command || builtin exit 126',
        'IFS= builtin read -r -d "" -u COMMANDS __handrail_folder || builtin exit 126',
        # As a word of `builtin` it would not last.
        "exec COMMANDS<&-",
        'builtin set -- "$__handrail_command" "$__handrail_folder"',
        "builtin unset __handrail_folder",
        # The clock of the shell starts with its command.
        "SECONDS=0",
    )
).replace("COMMANDS", str(COMMAND_DESCRIPTOR))


@dataclass(frozen=True, slots=True)
class ShellStart:
    """Parameters that a shell is started with. Shells with equal parameters run a command identically."""

    bash: str
    """Absolute path of the shell."""
    script: str
    """The script that the shell runs, with a command and its folder as arguments."""
    environment: Mapping[str, str]
    keeps: bool
    """True if the shell writes what it leaves to the descriptor STATE."""

    @property
    def can_wait(self) -> bool:
        """True if a command cannot distinguish such a shell from a newly started one."""
        functions = any(name.startswith("BASH_FUNC_") for name in self.environment)
        return not functions and OBEYED_AT_START.isdisjoint(self.environment)


@dataclass(frozen=True, slots=True)
class WaitingShell:
    """Started bash that waits for its command. It ends when this process does."""

    start: ShellStart
    mark: str
    pid: int
    outputs: tuple[int, ...]
    """The descriptors that its standard output and error are read from."""
    state: int | None
    """The descriptor of the file that it writes what it leaves to."""
    feed: int
    """The descriptor that takes its command."""

    def give(self, command: str, folder: Path) -> bool:
        """Have the shell run a command in a folder. Returns False, with the shell closed, if it is too long or the shell has ended."""
        text = b"".join(os.fsencode(part) + b"\0" for part in (command, folder))
        try:
            if len(text) <= MAX_COMMAND and os.write(self.feed, text) == len(text):
                os.close(self.feed)
                return True
        except OSError:
            pass
        self.close()
        return False

    def close(self) -> None:
        """End the shell."""
        # It has ended already if something else has killed it.
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        for fd in (*self.outputs, self.feed, *(() if self.state is None else (self.state,))):
            os.close(fd)
