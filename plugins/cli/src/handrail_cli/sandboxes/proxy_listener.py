"""First program of a sandboxed command that may reach hosts: opens a listener, passes it out and becomes the command.

The listener is created in the sandbox's own network namespace; this process, outside, accepts connections to it.
Nothing in the sandbox thus has its own way out, and none has to be created from outside, which requires neither
privileges nor another program.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from handrail import Bounds, NoSandbox
from handrail.sandbox.gateway import PROXY_ADDRESS

BACKLOG = 128
# Run by this process's Python with nothing but the standard library, before anything of the command is there.
# Python ignores some signals and sets LC_CTYPE; the command gets both as they were given.
LISTENER_SCRIPT = f"""
import os, sys, _signal, _socket
fd, locale = int(sys.argv[1]), sys.argv[2]
listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
listener.bind({PROXY_ADDRESS!r})
listener.listen({BACKLOG})
channel = _socket.socket(fileno=fd)
channel.sendmsg([b"x"], [(_socket.SOL_SOCKET, _socket.SCM_RIGHTS, listener.fileno().to_bytes(4, sys.byteorder))])
channel.close()
listener.close()
os.environ.pop("LC_CTYPE", None)
if locale:
    os.environ["LC_CTYPE"] = locale
for name in ("SIGPIPE", "SIGXFSZ", "SIGXFZ"):
    if hasattr(_signal, name):
        _signal.signal(getattr(_signal, name), _signal.SIG_DFL)
os.execvp(sys.argv[3], sys.argv[3:])
"""


def find_interpreter() -> str:
    """Return the real path of the Python that runs this process. Raises `NoSandbox` if it is unknown."""
    if not sys.executable:
        raise NoSandbox("the network cannot be limited to hosts here: the Python of this process is not known")
    return os.path.realpath(sys.executable)


def create_listener_command(argv: Sequence[str], channel: int, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Return the words that open the listener, send it over the descriptor `channel`, and become the command."""
    return (find_interpreter(), "-I", "-S", "-c", LISTENER_SCRIPT, str(channel), environment.get("LC_CTYPE", ""), *argv)


def list_interpreter_folders(bounds: Bounds) -> Iterator[Path]:
    """Yield the folders that the Python of this process needs and that the bounds do not show."""
    shown = (Path("/usr"), *bounds.readable, *bounds.writable)
    for folder in dict.fromkeys((Path(os.path.realpath(sys.base_prefix)), Path(find_interpreter()).parent)):
        if not any(folder.is_relative_to(place) for place in shown):
            yield folder
