"""Table of places: what a call may do where without approval, for shell commands and for file tools alike.

`ACCESS_TABLE` lists for each kind of place which accesses it permits and which it forbids. A place may be of several kinds at once (`.env` in
the workspace is `workspace` and `secret`): without approval, a call may do what one kind permits and none forbids. The sandbox's view follows
from the same table. Names are classified by the tables of `sensitive_paths`.

    from handrail.fs import path_resolution
    from handrail.policy import place_kinds

    found = path_resolution.resolve_path("/usr/share/doc/x", cwd=judging.cwd, home=judging.home)
    kinds = place_kinds.classify_place(found, judging)
    place_kinds.is_access_free(kinds, "read")

The remaining differences between the shell and the file tools are explained beside the property test (`tests/end_to_end/test_places.py`).
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import lru_cache
from pathlib import Path, PurePath, PureWindowsPath
from typing import TYPE_CHECKING, Literal, NamedTuple

from handrail.fs import path_resolution
from handrail.fs.sensitive_paths import (
    MOST_NAMES,
    REPOSITORY_NAMES,
    SECRET_STEPS,
    SHARED_TEMPORARY as SHARED_TEMPORARY,
    PathOrText,
    describe_autorun as describe_autorun,
    describe_secret as describe_secret,
    describe_startup as describe_startup,
    fold_file_name,
    is_kernel_path as is_kernel_path,
    is_notable,
    is_repository,
)
from handrail.sandbox import repositories
from handrail.sandbox.survey import SKIPPED_FOLDERS

if TYPE_CHECKING:
    from handrail.api.verdict import EvaluationContext

__all__ = [
    "SHARED_TEMPORARY",
    "WINDOWS_PUBLIC",
    "describe_autorun",
    "describe_resolved_secret",
    "find_secret_below",
    "find_secret_within",
    "is_public",
    "is_stream",
]

AccessMode = Literal["read", "write", "delete"]


class PlaceKind(StrEnum):
    """A kind of place, by what may be done there."""

    WORKSPACE = "workspace"
    """In the workspace."""
    TEMPORARY = "temporary"
    """In the session's private folder, which its sandboxed commands have as /tmp and /var/tmp."""
    OPENED = "opened"
    """In a folder that a person has opened to sandboxed commands (`sandbox.writable`)."""
    READABLE = "readable"
    """In a folder that sandboxed commands can read: a toolchain on PATH, or one of `sandbox.readable`."""
    PUBLIC = "public"
    """A part of the system that anybody may read: programs, libraries, documentation, a few files of /etc, /proc and /sys."""
    SECRET = "secret"
    """Known by its name to keep keys, passwords, credentials or private messages."""
    KEYS = "keys"
    """The places of the files by which a person answers approvals."""
    PROTECTED = "protected"
    """Handrail's own policy, configuration, grants and audit."""
    DEVICE = "device"
    """A device, a socket, or a part of a running desktop session."""
    KERNEL = "kernel"
    """In /proc or /sys."""
    STARTUP = "startup"
    """Run or obeyed later by a shell, a login, the system or a program, without being asked."""
    AUTORUN = "autorun"
    """Run or obeyed by a program that works in the folder it is in, without being asked: `.git/hooks`, `.envrc`, `.vscode`."""


class AccessTerms(NamedTuple):
    """Terms of a kind of place for reading, writing and deleting: True opens it, False closes it, None says nothing."""

    read: bool | None
    write: bool | None
    delete: bool | None

    def of(self, access: AccessMode) -> bool | None:
        """Return what it says of one of them."""
        return self.read if access == "read" else self.write if access == "write" else self.delete


ACCESS_TABLE: Mapping[PlaceKind, AccessTerms] = {
    PlaceKind.WORKSPACE: AccessTerms(True, True, True),
    PlaceKind.TEMPORARY: AccessTerms(True, True, True),
    PlaceKind.OPENED: AccessTerms(True, True, True),
    PlaceKind.READABLE: AccessTerms(True, None, None),
    PlaceKind.PUBLIC: AccessTerms(True, None, None),
    PlaceKind.SECRET: AccessTerms(False, False, False),
    PlaceKind.KEYS: AccessTerms(False, False, False),
    PlaceKind.PROTECTED: AccessTerms(None, False, False),
    PlaceKind.DEVICE: AccessTerms(False, False, False),
    PlaceKind.KERNEL: AccessTerms(None, False, False),
    PlaceKind.STARTUP: AccessTerms(None, False, False),
    PlaceKind.AUTORUN: AccessTerms(None, False, False),
}
# What anybody may read, outside the workspace. macOS keeps /etc in /private.
PUBLIC_PATHS = re.compile(
    r"""(?x) /(usr|bin|sbin|lib\w*)(/.*)?
    | (/private)?/etc/(hosts|hostname|passwd|group|issue(\.net)?|motd|timezone|localtime|shells|services|protocols|networks|fstab|mtab|host\.conf
      |resolv\.conf|nsswitch\.conf|manpath\.config|mime\.types|debian_version|locale\.(conf|gen|alias)|(\w+-)?(os|lsb|system|redhat|fedora)-release
      |ld\.so\.conf(\.d/[\w.-]+)?)
    | /System/Library(/.*)?
    | /proc/(cpuinfo|meminfo|version|uptime|loadavg|stat|mounts|filesystems|partitions|swaps|devices|modules|interrupts|diskstats|vmstat)
    | /proc/(self/(status|stat|mounts|mountinfo|limits|cgroup)|sys/(kernel|vm|fs)/[\w/.-]+|net/(dev|route|arp|tcp|udp))
    | /sys/(class|block|bus|devices)/.*"""
)
# A folder of more entries is not looked through for secrets: it may hold one.
MAX_ENTRIES = 50_000
# Names in a folder and below it that are looked through for secrets.
MAX_SEARCHED_NAMES = 20_000
# The same on Windows, from the root of a drive.
WINDOWS_PUBLIC = frozenset(("windows", "program files", "program files (x86)"))
# Devices that take or give nothing but noise, and a shell's own streams.
STREAM_DEVICES = re.compile(r"/dev/(null|stdout|stderr|stdin|tty|zero|full|urandom|random|fd/[012])")


def is_public(place: PathOrText) -> bool:
    """Return True for a part of the system that anybody may read, unless it is named like a secret."""
    if isinstance(place, PureWindowsPath):
        return bool(place.drive) and len(place.parts) > 1 and place.parts[1].lower() in WINDOWS_PUBLIC
    return PUBLIC_PATHS.fullmatch(str(place)) is not None


def is_stream(real: str) -> bool:
    """Return True for a device that takes or gives nothing but noise, and for a shell's own streams."""
    return real.startswith("/dev/") and STREAM_DEVICES.fullmatch(real) is not None


def describe_resolved_secret(found: path_resolution.ResolvedPath, roots: Iterable[PurePath]) -> str | None:
    """Return what secret a resolved path keeps, or None.

    It is judged by its real name; if it was reached through a symlink, also by the name used; and by the name of a
    symlink to it that lies in a directory on the way to it, below one of the roots.
    """
    what = describe_secret(found.place)
    if what is None and found.linked:
        what = describe_secret(found.named)
    if what is not None or isinstance(found.place, PureWindowsPath):
        return what
    return _find_secret_behind_link(found.real, tuple(map(str, roots)))


def _find_secret_behind_link(real: str, roots: tuple[str, ...]) -> str | None:
    folder = real
    while any(folder.startswith(f"{root}/") for root in roots):
        folder = os.path.dirname(folder)
        with contextlib.suppress(OSError):
            for link, what in _list_secret_links(folder, os.stat(folder).st_ctime_ns):
                place = os.path.realpath(link)
                if real == place or real.startswith(f"{place}/"):
                    return what
    return None


@lru_cache(maxsize=1_024)
def _list_secret_links(folder: str, changed_ns: int) -> tuple[tuple[str, str], ...]:
    """Return the symlinks in a directory that are named like secrets, each with the secret it would keep.

    The result is valid for that change time of the directory.
    """
    with os.scandir(folder) as entries:
        names = [entry.path for entry in entries if is_notable(entry.name) and entry.is_symlink()]
    return tuple((path, what) for path in names if (what := describe_secret(path)) is not None)


def find_secret_below(folder: str, home: PurePath) -> str | None:
    """Return an existing, readable file or directory below this one that is known to keep secrets, or None.

    Only names are checked: in the directory itself, in the directories on the way to known places below it, and in the
    home directory if that is below it.
    """
    found = _find_secret_from(folder, MOST_NAMES)
    if found is None and f"{home}/".startswith(f"{folder.rstrip('/')}/") and str(home) != folder:
        return _find_secret_from(str(home), MOST_NAMES)
    return found


def _find_secret_from(folder: str, depth: int, *, links: bool = True) -> str | None:
    # A process of this user is as good as any other.
    steps = ["/proc/self"] if folder == "/proc" else []
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for number, entry in enumerate(entries):
            if number > MAX_ENTRIES:
                return folder
            # Of what a process has, the names count in /proc only.
            notable = is_notable(entry.name) or folder.startswith("/proc/")
            if notable and describe_secret(entry.path) is not None and os.access(entry.path, os.R_OK):
                return entry.path
            if links and not folder.startswith("/proc/") and entry.is_symlink() and _leads_to_secret(entry):
                return entry.path
            if fold_file_name(entry.name) in SECRET_STEPS and entry.is_dir(follow_symlinks=False):
                steps.append(entry.path)
    below = (_find_secret_from(step, depth - 1) for step in steps) if depth > 1 else ()
    return next((place for place in below if place is not None), None)


def find_secret_within(folder: str) -> str | None:
    """Return a readable file or directory that is known to keep secrets: this one, one at any depth below it, or one that a symlink there leads to.

    Packages of other people are not searched. A directory with more names than are searched stands for a secret in it.
    """
    if describe_secret(folder) is not None:
        return folder
    waiting, looked = [folder], 0
    while waiting:
        place = waiting.pop()
        with contextlib.suppress(OSError), os.scandir(place) as entries:
            for entry in entries:
                looked += 1
                if looked > MAX_SEARCHED_NAMES:
                    return folder
                if _is_readable_secret(entry):
                    return entry.path
                if entry.name not in SKIPPED_FOLDERS and entry.is_dir(follow_symlinks=False):
                    waiting.append(entry.path)
    return None


def _is_readable_secret(entry: os.DirEntry[str]) -> bool:
    """Return True for an entry that is known to keep secrets, or is a symlink to such a place or to a directory with one."""
    if is_notable(entry.name) and describe_secret(entry.path) is not None:
        return os.access(entry.path, os.R_OK)
    return entry.is_symlink() and _leads_to_secret(entry)


def _leads_to_secret(link: os.DirEntry[str]) -> bool:
    """Return True for a symlink to a place that is known to keep secrets, or to a directory with one: `grep -R` and `zip -r` follow it."""
    if not os.access(link.path, os.R_OK):
        return False
    target = os.path.realpath(link.path)
    return describe_secret(target) is not None or (
        os.path.isdir(target) and _find_secret_from(target, 1, links=False) is not None
    )


def find_obeying_program(found: path_resolution.ResolvedPath, judging: EvaluationContext) -> str | None:
    """Return the program that runs or obeys a path without being asked; in the workspace, names above it do not count.

    Git obeys everything in a repository, by any name, what would make a directory into one, what its settings name, and
    the targets of its symlinked hooks.
    """
    roots = (*judging.workspace, *judging.writable)
    named = _find_autorun(found.path, roots) or _find_autorun(found.named, roots)
    if named is not None or isinstance(found.path, PureWindowsPath):
        return named
    settings = repositories.list_common_settings(judging.home, judging.environment)
    return _find_obeying_git(found.path, roots, settings) or _find_obeying_link(found.path, roots)


def _find_obeying_git(path: PurePath, roots: Iterable[PurePath], settings: Iterable[Path]) -> str | None:
    tops = [type(path)(root) for root in roots]
    below = path
    for folder in path.parents:
        if not any(folder == top or top in folder.parents for top in tops):
            return None
        names = {name for name in REPOSITORY_NAMES if os.path.lexists(folder / name)}
        # On some file systems the case of a name does not count.
        names |= {name for name in REPOSITORY_NAMES if name.casefold() == below.name.casefold()}
        git = Path(folder, ".git")
        if is_repository(names) or (os.path.lexists(git) and _is_among(path, _iter_git_targets(git, settings))):
            return "git"
        below = folder
    return None


def _iter_git_targets(git: Path, settings: Iterable[Path]) -> Iterable[PurePath]:
    """Yield what settings of git name, and where it really is."""
    for place in repositories.iter_configured_places(git, settings):
        yield place
        yield PurePath(os.path.realpath(place))


def _is_among(path: PurePath, places: Iterable[PurePath]) -> bool:
    return any(path == place or place in path.parents for place in places)


def _find_obeying_link(path: PurePath, roots: Iterable[PurePath]) -> str | None:
    """Return the program that obeys a link to this place, or to a folder above it, from a folder on the way to it."""
    tops = [type(path)(root) for root in roots]
    for folder in path.parents:
        if not any(folder == top or top in folder.parents for top in tops):
            return None
        try:
            with os.scandir(folder) as entries:
                notable = [e.path for e in entries if e.is_symlink() and is_notable(e.name)]
        except OSError:
            continue
        for link in notable:
            who = describe_autorun(PurePath(link).relative_to(folder))
            if who is not None and _is_among(path, (PurePath(os.path.realpath(link)),)):
                return who
    return None


def _find_autorun(path: PurePath, roots: Iterable[PurePath]) -> str | None:
    for root in roots:
        if type(path)(root) in path.parents:
            return describe_autorun(path.relative_to(root))
    return describe_autorun(path)


def classify_place(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, *, seen: path_resolution.PathCache | None = None
) -> frozenset[PlaceKind]:
    """Return every kind that a place is of in these circumstances."""
    known: path_resolution.PathCache = {} if seen is None else seen
    return frozenset(kind for kind, holds in KIND_CHECKS.items() if holds(found, judging, known))


def is_access_free(kinds: Iterable[PlaceKind], access: AccessMode) -> bool:
    """Return True if one of the kinds opens the place to this, and none closes it."""
    said = {ACCESS_TABLE[kind].of(access) for kind in kinds}
    return True in said and False not in said


def find_opening_kind(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, access: AccessMode, seen: path_resolution.PathCache
) -> PlaceKind | None:
    """Return the first kind that opens a place to this, None if none does. What closes it has to be asked as well."""
    return next((kind for kind in OPENING_KINDS[access] if KIND_CHECKS[kind](found, judging, seen)), None)


def _is_workspace(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> bool:
    return path_resolution.is_inside_roots(found.place, judging.workspace, seen=seen, platform=judging.platform)


def _is_temporary(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> bool:
    own = judging.temporary
    return own is not None and path_resolution.is_inside_roots(
        found.place, (own,), seen=seen, platform=judging.platform
    )


def _is_opened(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> bool:
    return path_resolution.is_inside_roots(found.place, judging.writable, seen=seen, platform=judging.platform)


def _is_readable(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> bool:
    return path_resolution.is_inside_roots(found.place, judging.readable, seen=seen, platform=judging.platform)


def _is_public_place(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> bool:
    return is_public(found.place)


def _is_secret(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> bool:
    return describe_resolved_secret(found, judging.workspace) is not None


def _is_keys(found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache) -> bool:
    return path_resolution.is_inside_roots(found.place, judging.keys, seen=seen, platform=judging.platform)


def _is_protected(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> bool:
    return path_resolution.is_protected_path(found.path, judging.protected, seen=seen, platform=judging.platform)


def _is_device(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> bool:
    return path_resolution.describe_device(found.place, seen=seen) is not None


def _is_kernel(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> bool:
    return is_kernel_path(found.path)


def _is_startup(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> bool:
    return describe_startup(found.path, home=judging.home) is not None


def _is_autorun(
    found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> bool:
    # What is in the private folder no other program comes to.
    return not _is_temporary(found, judging, seen) and find_obeying_program(found, judging) is not None


KIND_CHECKS: Mapping[
    PlaceKind, Callable[[path_resolution.ResolvedPath, EvaluationContext, path_resolution.PathCache], bool]
] = {
    PlaceKind.WORKSPACE: _is_workspace,
    PlaceKind.TEMPORARY: _is_temporary,
    PlaceKind.OPENED: _is_opened,
    PlaceKind.READABLE: _is_readable,
    PlaceKind.PUBLIC: _is_public_place,
    PlaceKind.SECRET: _is_secret,
    PlaceKind.KEYS: _is_keys,
    PlaceKind.PROTECTED: _is_protected,
    PlaceKind.DEVICE: _is_device,
    PlaceKind.KERNEL: _is_kernel,
    PlaceKind.STARTUP: _is_startup,
    PlaceKind.AUTORUN: _is_autorun,
}
OPENING_KINDS: Mapping[AccessMode, tuple[PlaceKind, ...]] = {
    access: tuple(kind for kind, terms in ACCESS_TABLE.items() if terms.of(access))
    for access in ("read", "write", "delete")
}
