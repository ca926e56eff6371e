"""Small process that keeps offering a clipboard after its owner ends.

It runs until something else is copied or the screen is gone.
As a program: `python -m handrail_gui.platforms.x11.clipboard_keeper DISPLAY`, with the contents on stdin. It returns
once it owns them, and stays in the background.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from Xlib import error

from handrail import Downstream
from handrail.fs.app_dirs import AppDirs
from handrail.workers.host_programs import START_FOLDER
from handrail.workers.registry import ProcessRegistry, RunningProgram
from handrail_gui.platforms.x11.clipboard import FormatContent, SelectionContents, X11Selection
from handrail_gui.platforms.x11.connection import X11Client, open_client

# Seconds for a process to start and become the owner.
START_TIMEOUT_S = 10.0
# Between two looks at whether anything is still offered; requests are answered at once.
KEEPER_POLL_S = 60.0


@dataclass(frozen=True, slots=True)
class ClipboardKeeper:
    """Starter of the process that takes over the clipboards of one display."""

    display: str
    environment: Mapping[str, str]

    def hand_over(self, client: X11Client, selections: Iterable[X11Selection]) -> None:
        """Hand over what we still offer to another process; raise `Downstream` if it fails.

        A job for `X11Connection.run`.
        """
        offered = {selection.name: selection.offered(client) for selection in selections}
        left = {name: _serialize_contents(contents) for name, contents in offered.items() if contents is not None}
        if not left:
            return
        null = subprocess.DEVNULL
        try:
            subprocess.run(
                [sys.executable, "-P", "-m", "handrail_gui.platforms.x11.clipboard_keeper", self.display],
                input=json.dumps(left).encode(),
                stdout=null,
                stderr=null,
                cwd=START_FOLDER,
                env=dict(self.environment),
                start_new_session=True,
                timeout=START_TIMEOUT_S,
                check=True,
            )
        except (OSError, subprocess.SubprocessError) as exc:
            raise Downstream(f"the clipboard's content is lost: nobody took it over ({exc})") from exc


def _serialize_contents(contents: SelectionContents) -> dict[str, Any]:
    return {name: [content.type, content.bits, _serialize_data(content.data)] for name, content in contents.items()}


def _serialize_data(data: bytes | tuple[int, ...]) -> str | list[int]:
    return base64.b64encode(data).decode() if isinstance(data, bytes) else list(data)


def _parse_contents(wire: Mapping[str, Any]) -> SelectionContents:
    return {
        name: FormatContent(type_, bits, base64.b64decode(data) if isinstance(data, str) else tuple(data))
        for name, (type_, bits, data) in wire.items()
    }


def run_clipboard_keeper(name: str) -> None:
    """Own what stdin says, and answer for it until it is somebody else's."""
    given = {selection: _parse_contents(wire) for selection, wire in json.load(sys.stdin.buffer).items()}
    client = open_client(name)
    owned = [X11Selection(selection) for selection in given]
    for clipboard in owned:
        clipboard.own(client, given[clipboard.name])
    client.display.sync()
    if os.fork():
        # Whoever waits for this one knows now that all is owned; the connection belongs to the other.
        os._exit(0)
    ledger = ProcessRegistry(AppDirs.of(os.environ).state)
    heir = RunningProgram.of("clipboard", str(os.getpid()), "a clipboard that was handed over", pid=os.getpid())
    with ledger.kept(heir):
        _offer_selections(client, owned)


def _offer_selections(client: X11Client, owned: Sequence[X11Selection]) -> None:
    try:
        while any(clipboard.contents is not None for clipboard in owned):
            client.pump(lambda: all(clipboard.contents is None for clipboard in owned), timeout=KEEPER_POLL_S)
    except (error.ConnectionClosedError, OSError):
        # The screen is gone, and the clipboard with it.
        return


if __name__ == "__main__":
    run_clipboard_keeper(sys.argv[1])
