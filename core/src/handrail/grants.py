"""What a yes may be good for beyond the call it was given to: narrowed to what the person was shown, never below a floor."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from handrail.invocation import GrantOption, Invocation
from handrail.judging import Touch, Verdict
from handrail.tools import Input, Run

FILES = frozenset({"read", "write", "delete"})
# A folder that is offered is this deep at least: `/home/ada` is a whole home, `/home/ada/shop` a project.
DEPTH = 4


def options(invocation: Invocation, verdict: Verdict) -> tuple[GrantOption, ...]:
    """What a yes to this call may mean for later ones, narrowest first; nothing where it may not be remembered."""
    if not verdict.grantable or verdict.catastrophic:
        return ()
    tool = invocation.tool
    exact = GrantOption("exactly this call", tool.name, call_hash=invocation.call_hash)
    own = () if tool.grants is None else tool.grants(invocation.params)
    return tuple(dict.fromkeys((exact, *own, *_narrowed(invocation, verdict))))


def _narrowed(invocation: Invocation, verdict: Verdict) -> Iterator[GrantOption]:
    tool = invocation.tool
    if tool.server is not None:
        yield GrantOption(f"every call of {tool.name} on the server {tool.server}", tool.name, server=tool.server)
        yield GrantOption(f"every tool of the server {tool.server}", "*", server=tool.server)
    elif verdict.narrowed:
        commands = tuple(dict.fromkeys(verdict.narrowed))
        shown = " and ".join(shlex.join(words) for words in commands)
        yield GrantOption(f"commands that start with {shown}", tool.name, commands=commands)
    elif any(part.argv for part in verdict.parts) or any(isinstance(effect, Run | Input) for effect in tool.effects):
        return
    elif touches := [touch for part in verdict.parts for touch in part.touches]:
        yield from _places(tool.name, touches)
    elif not any(effect.arg for effect in tool.effects):
        yield GrantOption(f"every call of {tool.name}", tool.name)


def _places(tool: str, touches: Sequence[Touch]) -> Iterator[GrantOption]:
    """These files, or their folder, and these hosts; nothing when the call does more than that, or not all of it is known."""
    files = tuple(dict.fromkeys(touch.what for touch in touches if touch.kind in FILES))
    hosts = tuple(dict.fromkeys(touch.what for touch in touches if touch.kind == "network"))
    if not all(touch.what and (touch.kind in FILES or touch.kind == "network") for touch in touches):
        return
    at = f" on {', '.join(hosts)}" if hosts else ""
    if not files:
        yield GrantOption(f"{tool}{at}", tool, hosts=hosts)
        return
    yield GrantOption(f"{tool} of {', '.join(files)}{at}", tool, paths=files, hosts=hosts)
    if (folder := _folder(files)) is not None:
        yield GrantOption(f"{tool} of everything in {folder}{at}", tool, paths=(folder,), hosts=hosts)


def _folder(files: Sequence[str]) -> str | None:
    """The one folder that all of them are in; None when there is none, or when it is a whole home or disk."""
    folders = {_pure(file).parent for file in files}
    folder = folders.pop()
    return str(folder) if not folders and len(folder.parts) >= DEPTH else None


def _pure(path: str) -> PurePath:
    return PurePosixPath(path) if path.startswith("/") else PureWindowsPath(path)
