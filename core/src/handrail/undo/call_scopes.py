"""The files that a call may change, derived from its tool's effects and its verdict."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from handrail.api.tool import Delete, Input, Run, Write
from handrail.api.verdict import OPAQUE_COMMAND, Route, View
from handrail.undo.path_patterns import PathLookup, get_fixed_folder
from handrail.undo.workspace_roots import is_inside

if TYPE_CHECKING:
    from handrail.api.call import Invocation
    from handrail.api.tool import Tool
    from handrail.api.verdict import Verdict
    from handrail.config.settings import ServerSettings
    from handrail.undo.keeper import CallScope

CHANGED_FILE_KINDS = frozenset(("file", "folder"))
CHANGING_KINDS = frozenset(("write", "delete"))
PLAIN_KINDS = CHANGING_KINDS | {"read", "session"}
# Surroundings in which a command cannot change a file of the workspace.
WITHOUT_WRITING = frozenset((View.SHELL, View.SYSTEM, View.FILES, View.READ))
# Places that hold no files of a person's.
PASSING_PATHS = re.compile(r"/(dev|proc|sys|run|tmp|var/tmp)(/|$)")


def derive_scope(
    roots: tuple[str, ...], servers: Mapping[str, ServerSettings], invocation: Invocation, verdict: Verdict
) -> CallScope | None:
    """Return what the call may change; None for a call that changes no file itself.

    `roots` are those of the workspace, `servers` the MCP servers of the configuration.
    """
    tool = invocation.tool
    if tool.read_only:
        return None
    runs = any(_is_running_anything(effect, tool, servers) for effect in tool.effects)
    named = [
        effect for effect in tool.effects if isinstance(effect, Write | Delete) and effect.what in CHANGED_FILE_KINDS
    ]
    if runs and verdict.view in WITHOUT_WRITING:
        runs = False
    anywhere = runs or any(effect.arg is None for effect in named)
    if not anywhere and not named:
        return None
    from handrail.undo.keeper import CallScope

    names = tuple(dict.fromkeys(_iter_named_paths(verdict, roots, runs=runs)))
    if not names and not anywhere:
        return None
    relied_on: tuple[str, ...] | None = ()
    if verdict.relies_on_undo:
        relied_on = _list_relied_on(verdict, names, roots)
    # Whoever names the whole workspace may change anything in it.
    anywhere = anywhere or any(name in roots for name in names)
    feeds = any(isinstance(effect, Input) and effect.what == "process" for effect in tool.effects)
    confined = verdict.route is Route.SANDBOX
    return CallScope(roots, names, anywhere, relied_on, confined=confined, feeds=feeds, named=is_fully_named(verdict))


def is_fully_named(verdict: Verdict) -> bool:
    """Return True for a command that changes only what it names, and cannot remove a name again that it gave to a file.

    That is, a path that it writes to is not written to or deleted by another part of it.
    """
    touches = [touch for part in verdict.parts for touch in part.touches]
    writes = [get_fixed_folder(touch.what) for touch in touches if touch.kind == "write"]
    deletes = [get_fixed_folder(touch.what) for touch in touches if touch.kind == "delete"]
    changing = [part for part in verdict.parts if part.view is View.WORK]
    return (
        bool(changing)
        and all(any(touch.kind in CHANGING_KINDS for touch in part.touches) for part in changing)
        and all(part.argv != OPAQUE_COMMAND and not (part.unlisted or part.obeys_workspace) for part in verdict.parts)
        and all(touch.kind in PLAIN_KINDS for touch in touches)
        and len(set(writes)) == len(writes)
        and not any(is_inside(path, deletes) or os.path.isdir(path) for path in writes)
    )


def _is_running_anything(effect: object, tool: Tool, servers: Mapping[str, ServerSettings]) -> bool:
    if not isinstance(effect, Run) or effect.what == "steps":
        return False
    if effect.what != "server" or tool.server is None:
        return True
    # A server elsewhere changes nothing here.
    server = servers.get(tool.server)
    return server is None or server.url is None


def _iter_named_paths(verdict: Verdict, roots: tuple[str, ...], *, runs: bool) -> Iterator[str]:
    """Yield the real paths that are written to or deleted, as far as they are named."""
    for part in verdict.parts:
        for touch in part.touches:
            if touch.kind not in CHANGING_KINDS or not touch.what.startswith("/"):
                continue
            name = get_fixed_folder(touch.what) if runs else touch.what
            if (
                not runs
                or is_inside(name, roots)
                or (not PASSING_PATHS.match(name) and _is_plain_path(name, touch.kind))
            ):
                yield name


def _is_plain_path(name: str, kind: str) -> bool:
    """Return True for a file, or for a directory that is deleted.

    For other directories outside the workspace, it is unknown which files are affected.
    """
    return kind == "delete" or not os.path.isdir(name)


def _list_relied_on(verdict: Verdict, names: tuple[str, ...], roots: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the paths that must be restorable: the existing ones among those written to or deleted.

    None means the entire workspace.
    """
    if not names:
        return None
    touches = [touch.what for part in verdict.parts for touch in part.touches if touch.kind in CHANGING_KINDS]
    lookup = PathLookup()
    found = [path for what in touches if what.startswith("/") for path in lookup.matching(what)]
    kept = tuple(dict.fromkeys(path for path in found if is_inside(path, (*names, *roots))))
    return None if any(path in roots for path in kept) else kept
