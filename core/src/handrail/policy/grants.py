"""Grants: approvals that apply beyond one call, narrowed to what the user was shown, never below a floor."""

from __future__ import annotations

import os
import secrets
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from handrail.api.call import GrantOption, Invocation
from handrail.api.tool import Input, Remote, Run
from handrail.api.verdict import MODES, Access, EvaluationContext, Mode, Route, SubCommand, Verdict
from handrail.fs.git_index import find_repository_above
from handrail.policy.rules import FILE_ACCESS, is_path_below

# A folder that is offered is this deep at least: `/home/ada` is a whole home, `/home/ada/shop` a project.
MIN_FOLDER_DEPTH = 4
UNKNOWN_FOLDER = ""


def build_grant_options(invocation: Invocation, verdict: Verdict) -> tuple[GrantOption, ...]:
    """Return the scopes that an approval of this call may have for later ones, narrowest first.

    Returns nothing if the approval may not be remembered.
    """
    if not verdict.grantable or verdict.catastrophic:
        return ()
    if verdict.route is Route.HOST and any(map(_has_variable_meaning, verdict.parts)):
        return ()
    tool = invocation.tool
    server, remote = invocation.served_by
    touches = tuple(dict.fromkeys(touch for part in verdict.parts for touch in part.touches))
    exact = GrantOption(
        "exactly this call",
        tool.name,
        server=server,
        declared=_declared_versions(remote),
        call_hash=invocation.call_hash,
        touches=touches,
        folders=_list_folders_and_repos(verdict.parts),
    )
    if verdict.route is Route.SANDBOX and verdict.reach is not None and verdict.reach.needed:
        return tuple(_confined_options(exact, verdict.reach.hosts))
    own = () if tool.grants is None else tool.grants(invocation.params)
    return tuple(dict.fromkeys((exact, *own, *_narrowed_options(invocation, verdict))))


def _has_variable_meaning(part: SubCommand) -> bool:
    """Return True if the same text may do another thing on the host the next time: other words, or other files that it obeys.

    What an option does that is not known may depend on a file that it names.
    """
    return part.obeys_workspace or part.varies or part.unlisted


def _confined_options(exact: GrantOption, hosts: tuple[str, ...]) -> Iterator[GrantOption]:
    """Yield the scopes of an approval of hosts: for all commands in the sandbox, and for exactly this call."""
    named = ", ".join(hosts)
    yield GrantOption(
        f"network to {named} for commands that run in the sandbox", exact.tool, hosts=hosts, confined=True
    )
    yield replace(exact, label=f"exactly this call, in the sandbox with network to {named}", hosts=hosts, confined=True)


@dataclass(frozen=True, slots=True)
class Grant:
    """Approval that remains valid for the scope of its option: in the session it was given in, or `always`.

    It is valid in the workspace and the mode it was given in, and in looser modes; one for commands also only in the
    directories that these were to run in: elsewhere the same words refer to another project. `uses` counts how often it
    has been applied.
    """

    option: GrantOption
    mode: Mode
    workspace: tuple[str, ...]
    cwd: str
    always: bool = False
    created: datetime = field(default_factory=lambda: datetime.now(UTC))
    expires: datetime | None = None
    uses: int = 0
    id: str = field(default_factory=lambda: f"g{secrets.token_hex(4)}")

    @classmethod
    def given(cls, option: GrantOption, judging: EvaluationContext, *, always: bool = False, days: int = 0) -> Grant:
        """Create the grant for an approval in this context.

        `days` is the lifetime of a permanent one, 0 for unlimited.
        """
        expires = datetime.now(UTC) + timedelta(days=days) if always and days else None
        workspace = tuple(sorted(map(str, judging.workspace)))
        return cls(option, judging.mode, workspace, str(judging.cwd), always, expires=expires)

    @property
    def told(self) -> str:
        """For how long and since when, in words."""
        return f"{'for always' if self.always else 'for this session'} on {self.created:%Y-%m-%d} ({self.id})"

    def same(self, other: Grant) -> bool:
        """Return True if both have the same scope and context."""
        return (self.option, self.mode, self.workspace, self.cwd) == (
            other.option,
            other.mode,
            other.workspace,
            other.cwd,
        )

    @property
    def hosts(self) -> tuple[str, ...]:
        """Hosts that the grant lets any sandboxed command reach."""
        return self.option.hosts if self.option.confined and self.option.call_hash is None else ()

    def expired(self) -> bool:
        return self.expires is not None and self.expires <= datetime.now(UTC)

    def holds(self, invocation: Invocation, judging: EvaluationContext) -> bool:
        """Return True if the grant may apply to any part of the call in the current context."""
        return self._means(invocation, judging) and not _is_redeclared(self.option, invocation)

    def outdated(self, invocation: Invocation, judging: EvaluationContext) -> bool:
        """Return True if the grant would apply to the call, but the server has since changed the tool's declaration."""
        return _is_redeclared(self.option, invocation) and self._means(invocation, judging)

    def holds_in(self, judging: EvaluationContext) -> bool:
        """Return True if the grant is valid in this workspace and mode, for any call."""
        if MODES.index(judging.mode) > MODES.index(self.mode) or self.expired():
            return False
        return set(self.workspace) == {str(root) for root in judging.workspace}

    def _means(self, invocation: Invocation, judging: EvaluationContext) -> bool:
        option, tool = self.option, invocation.tool
        named = option.tool in tool.names or (option.tool == "*" and option.server is not None)
        if not named or option.server != invocation.served_by[0]:
            return False
        if not self.holds_in(judging):
            return False
        return option.call_hash is None or (option.call_hash == invocation.call_hash and self.cwd == str(judging.cwd))

    def covers(self, part: SubCommand, judging: EvaluationContext) -> bool:
        """Return True if a part of a call to which the grant applies is within what the user was shown."""
        option = self.option
        if option.folders and not self._holds_there(part):
            return False
        if not option.confined and _has_variable_meaning(part):
            return False
        if option.call_hash is not None:
            return all(touch in option.touches for touch in part.touches)
        if option.confined:
            # Hosts of several such grants count together: the policy adds them up.
            return False
        if option.commands:
            shown = option.changing if part.changes else option.commands
            begins = any(_has_prefix(part, words) for words in shown)
            return begins and all(_is_known(t) and t in option.touches for t in part.touches)
        if option.paths or option.hosts:
            return bool(part.touches) and all(self._within(touch, judging) for touch in part.touches)
        return True

    def _holds_there(self, part: SubCommand) -> bool:
        """Return True if a part runs where the command ran that was shown."""
        grounds = _list_folders_and_repos((part,))
        known = self.option.call_hash is not None or (grounds != () and UNKNOWN_FOLDER not in grounds)
        return known and set(grounds) <= set(self.option.folders)

    def _within(self, touch: Access, judging: EvaluationContext) -> bool:
        # Word for word: a file may be called `*`.
        if touch.kind in FILE_ACCESS:
            return bool(touch.what) and any(
                is_path_below(touch.what, path, judging.platform) for path in self.option.paths
            )
        return touch.kind == "network" and touch.what in self.option.hosts and touch.what != ""


def _has_prefix(part: SubCommand, words: tuple[str, ...]) -> bool:
    return part.argv[: len(words)] == words


def _is_known(touch: Access) -> bool:
    """Return True if it is known what is accessed, which makes equal values refer to the same thing."""
    return touch.kind != "unknown" and touch.what != UNKNOWN_FOLDER


def _list_folders(parts: Iterable[SubCommand]) -> tuple[str, ...]:
    """Return the real directories that commands run in, as far as reported.

    `UNKNOWN_FOLDER` represents an unknown one. Parts that are harmless are ignored.
    """
    named = dict.fromkeys(folder for part in parts if not part.harmless for folder in part.folders)
    # Paths of another system's are compared as they are written.
    return tuple(dict.fromkeys(os.path.realpath(each) if os.path.isabs(each) else each for each in named))


def _list_folders_and_repos(parts: Iterable[SubCommand]) -> tuple[str, ...]:
    """Return the directories that commands run in, and the repositories that contain them.

    This detects another repository that appears in between later.
    """
    folders = _list_folders(parts)
    return tuple(dict.fromkeys((*folders, *filter(None, map(find_repository_above, folders)))))


def _declared_versions(remote: Remote | None) -> frozenset[str]:
    return frozenset() if remote is None else frozenset((remote.declared,))


def _is_redeclared(option: GrantOption, invocation: Invocation) -> bool:
    _, remote = invocation.served_by
    return option.server is not None and remote is not None and remote.declared not in option.declared


def _narrowed_options(invocation: Invocation, verdict: Verdict) -> Iterator[GrantOption]:
    tool = invocation.tool
    server, remote = invocation.served_by
    if server is not None:
        label = f"every call of {tool.name} on the server {server}"
        yield GrantOption(label, tool.name, server=server, declared=_declared_versions(remote))
        beside = remote.beside if remote is not None else frozenset[str]()
        yield GrantOption(f"every tool of the server {server}", "*", server=server, declared=beside)
    elif verdict.narrowed:
        commands = tuple(dict.fromkeys(verdict.narrowed))
        shown = " and ".join(shlex.join(words) for words in commands)
        folders = _list_folders(verdict.parts)
        touches = tuple(dict.fromkeys(touch for part in verdict.parts for touch in part.touches))
        if UNKNOWN_FOLDER in folders or not all(map(_is_known, touches)):
            return
        where = f" in {' and '.join(folders)}" if folders else ""
        label = f"commands that start with {shown}{where}"
        changing = tuple(
            words for words in commands if any(part.changes and _has_prefix(part, words) for part in verdict.parts)
        )
        grounds = _list_folders_and_repos(verdict.parts)
        yield GrantOption(label, tool.name, commands=commands, touches=touches, folders=grounds, changing=changing)
    elif any(part.argv for part in verdict.parts) or any(isinstance(effect, Run | Input) for effect in tool.effects):
        return
    elif touches := [touch for part in verdict.parts for touch in part.touches]:
        yield from _place_options(tool.name, touches)
    elif not any(effect.arg for effect in tool.effects):
        yield GrantOption(f"every call of {tool.name}", tool.name)


def _place_options(tool: str, touches: Sequence[Access]) -> Iterator[GrantOption]:
    """Yield grants for these files, for their folder, and for these hosts.

    Yields nothing if the call does more than that, or not everything it does is known.
    """
    files = tuple(dict.fromkeys(touch.what for touch in touches if touch.kind in FILE_ACCESS))
    hosts = tuple(dict.fromkeys(touch.what for touch in touches if touch.kind == "network"))
    if not all(touch.what and (touch.kind in FILE_ACCESS or touch.kind == "network") for touch in touches):
        return
    at = f" on {', '.join(hosts)}" if hosts else ""
    if not files:
        yield GrantOption(f"{tool}{at}", tool, hosts=hosts)
        return
    yield GrantOption(f"{tool} of {', '.join(files)}{at}", tool, paths=files, hosts=hosts)
    if (folder := _common_folder(files)) is not None:
        yield GrantOption(f"{tool} of everything in {folder}{at}", tool, paths=(folder,), hosts=hosts)


def _common_folder(files: Sequence[str]) -> str | None:
    """Return the folder that contains all files; None if they differ, or for an entire home directory or disk."""
    folders = {_to_pure_path(file).parent for file in files}
    folder = folders.pop()
    return str(folder) if not folders and len(folder.parts) >= MIN_FOLDER_DEPTH else None


def _to_pure_path(path: str) -> PurePath:
    return PurePosixPath(path) if path.startswith("/") else PureWindowsPath(path)
