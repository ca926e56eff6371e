"""Translation of key names into the bytes a terminal sends, or into signals for a process without a terminal."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handrail import InvalidArguments

if TYPE_CHECKING:
    from handrail_cli.process.command_process import CommandProcess


@dataclass(frozen=True, slots=True)
class KeyInput:
    """Effect of pressing a key: bytes to write, a signal to send, or the end of the input."""

    text: bytes = b""
    signal: signal.Signals | None = None
    end: bool = False


# As xterm sends them: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html#h2-PC-Style-Function-Keys.
NAMED_KEYS = {
    "enter": "\r", "return": "\r", "tab": "\t", "escape": "\x1b", "esc": "\x1b", "backspace": "\x7f", "space": " ",
    "up": "\x1b[A", "down": "\x1b[B", "right": "\x1b[C", "left": "\x1b[D", "home": "\x1b[H", "end": "\x1b[F",
    "insert": "\x1b[2~", "delete": "\x1b[3~", "pageup": "\x1b[5~", "pagedown": "\x1b[6~", "shift-tab": "\x1b[Z",
    "f1": "\x1bOP", "f2": "\x1bOQ", "f3": "\x1bOR", "f4": "\x1bOS", "f5": "\x1b[15~", "f6": "\x1b[17~", "f7": "\x1b[18~",
    "f8": "\x1b[19~", "f9": "\x1b[20~", "f10": "\x1b[21~", "f11": "\x1b[23~", "f12": "\x1b[24~",
}  # fmt: skip
CONTROL_KEY = re.compile(r"ctrl[-+]([a-z@\[\\\]^_])")
KEYS_WITHOUT_TERMINAL = {
    "ctrl-c": KeyInput(signal=signal.SIGINT),
    "ctrl-\\": KeyInput(signal=signal.SIGQUIT if sys.platform != "win32" else signal.SIGBREAK),
    "ctrl-d": KeyInput(end=True),
    "enter": KeyInput(b"\n"),
}


def translate_keys(process: CommandProcess, names: Sequence[str]) -> list[KeyInput]:
    """Return the effects of pressing the named keys in a process; `InvalidArguments` lists the available keys."""
    names = [name.lower().replace("+", "-") for name in names]
    if process.launch.terminal is None:
        for name in names:
            if name not in KEYS_WITHOUT_TERMINAL:
                known = ", ".join(KEYS_WITHOUT_TERMINAL)
                raise InvalidArguments(
                    f"process {process.id!r} has no terminal for the key {name!r}; without one there are {known}",
                    hint='start it with background=true and pty="120x40"',
                )
        return [KEYS_WITHOUT_TERMINAL[name] for name in names]
    return [KeyInput(_encode_key(name), _find_key_signal(process, name)) for name in names]


def _encode_key(name: str) -> bytes:
    if name in NAMED_KEYS:
        return NAMED_KEYS[name].encode()
    if (control := CONTROL_KEY.fullmatch(name)) is not None:
        return bytes((ord(control[1].upper()) & 0x1F,))
    raise InvalidArguments(f"there is no key {name!r}; there are ctrl- and a letter, {', '.join(NAMED_KEYS)}")


def _find_key_signal(process: CommandProcess, name: str) -> signal.Signals | None:
    """Return the signal to send for a key to a sandboxed process, or None.

    In a sandbox, the terminal is not the program's controlling terminal and sends it no signals.
    """
    return (
        KEYS_WITHOUT_TERMINAL[name].signal if process.confined is not None and name in KEYS_WITHOUT_TERMINAL else None
    )
