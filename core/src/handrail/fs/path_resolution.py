"""Resolution of the paths in calls: where they really lead, and what kind of place that is.

Evaluators and file tools share one resolver, so what was judged is what is opened. Nothing here opens a file; only
names and links are looked at. Paths of another machine can be judged too: what does not exist is taken as written, and
Windows paths are parsed by their grammar alone.
"""

from __future__ import annotations

import ntpath
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from handrail.api.verdict import Reason
from handrail.fs.sensitive_paths import (
    KEY_ENDINGS as KEY_ENDINGS,
    SECRET_NAMES as SECRET_NAMES,
    SECRET_PLACES as SECRET_PLACES,
    SHARED_TEMPORARY as SHARED_TEMPORARY,
    PathOrText as PathOrText,
    describe_autorun as describe_autorun,
    describe_secret as describe_secret,
    describe_startup as describe_startup,
    fold_file_name,
    fold_path_names,
    is_kernel_path as is_kernel_path,
)

__all__ = [
    "KEY_ENDINGS",
    "SECRET_NAMES",
    "SECRET_PLACES",
    "PathCache",
    "ResolvedPath",
    "describe_autorun",
    "describe_device",
    "describe_secret",
    "describe_startup",
    "is_inside_roots",
    "is_protected_path",
    "resolve_path",
]

# What Linux allows, too.
MAX_LINKS = 40
MAX_LENGTH = 4096

# Text in which nothing is strange; most paths are of this kind.
PLAIN_PATH = re.compile(r"[A-Za-z0-9_./](?:[A-Za-z0-9_./+,=@ -]{0,4000}[A-Za-z0-9_./+,=@-])?")
# Shown text that is not what it looks like: direction overrides, invisible letters, tags.
DECEPTIVE_CHARS = re.compile("[\u200b\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
# Look-alikes of separators occur in honest names; behind two dots they do not.
FALSE_SEPARATOR = re.compile("[\u2044\u2215\u29f8\uff0f\u2216\u29f5\u29f9\uff3c\u200e\u200f]")
FALSE_CLIMB = re.compile(r"[.\u2024\uff0e]{2}" + FALSE_SEPARATOR.pattern)
CONTROL_CHARS = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
ENCODED_CLIMB = re.compile(r"(\.|%2e){2}(%2f|%5c)|%2e(\.|%2e)[/\\]|%00|%25(2e|2f|5c)", re.IGNORECASE)
URL_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://?")
VARIABLE_REFERENCE = re.compile(r"\$\{?[A-Za-z_]|%[A-Za-z_][A-Za-z0-9_()]*%|\$\(|`")

# Links in /proc/<process> that stand for a place or a file of that process, not for their text.
MAGIC_LINKS = frozenset(("root", "cwd", "exe", "fd", "map_files", "ns"))

# Letters that Windows turns into separators, quotes or colons where it has only a code page.
BEST_FIT = re.compile("[\u00a5\u20a9\u2215\u2216\u2044\uff0f\uff3c\uff1a\uff02\uff0e\uff5e\uff04\uff05]")
# Where Windows keeps what a file system itself is made of.
NTFS_METAFILE = re.compile(
    r"\$(mft|mftmirr|logfile|volume|attrdef|bitmap|boot|badclus|secure|upcase|extend)", re.IGNORECASE
)
# Shares that are no folders.
DEVICE_SHARES = frozenset(("pipe", "mailslot", "ipc$"))

HARMLESS_DEVICE = "harmless"
HARMLESS_DEVICES = frozenset(("null", "zero", "full", "random", "urandom"))
# Where a path begins that may be one of them.
DEVICE_LIKE = re.compile(r"[/.]*(private/[/.]*)?(dev|run|var/[/.]*run|tmp/[/.]*(x11|ice)-unix)(/|$)", re.IGNORECASE)
RESERVED_NAME = re.compile(
    r"(con|prn|aux|nul|clock\$|conin\$|conout\$|com[0-9\u00b9\u00b2\u00b3]|lpt[0-9\u00b9\u00b2\u00b3])"
)
SHORT_NAME = re.compile(r"[^\\/.]{1,8}~\d{1,6}(\.[^\\/.]{0,3})?")


# What was found at absolute places: mode and, of a link, its target; None where nothing is. Under a folder's text with a `/` behind: where
# that folder really is, None where that has to be found anew each time. One judgement looks at each place once when it
# passes the same dictionary to all that it asks, and so do the judgements of one call; nothing is kept longer than that.
PathCache = dict[str, tuple[int, str | None] | None]


class ResolvedPath(NamedTuple):
    """Destination of a path in a call, as text and as a path.

    `path` is the real path: absolute, without symlinks, `.` or `..`, as far down as it exists; what does not exist yet
    is kept as written. `named` is the same without following symlinks. `refused`: no tool may follow such a path.
    `doubtful`: the user should look at it first.
    """

    real: str
    written: str
    refused: Reason | None = None
    doubtful: Reason | None = None
    kind: type[PurePath] = Path

    @property
    def place(self) -> PathOrText:
        """The real place as what asks of it takes it: the text, save where the grammar of Windows counts."""
        return self.path if self.kind is PureWindowsPath else self.real

    @property
    def path(self) -> PurePath:
        return self.kind(self.real)

    @property
    def named(self) -> PurePath:
        return self.kind(self.written)

    @property
    def linked(self) -> bool:
        """True if the path goes through a symlink."""
        return self.real != self.written and self.path != self.named


def resolve_path(
    text: str,
    *,
    cwd: PurePath,
    home: PurePath,
    platform: str = "linux",
    seen: PathCache | None = None,
    follow_last: bool = True,
) -> ResolvedPath:
    """Resolve `text` from `cwd`, expanding only `~` (`home`) and `~name` (the home beside it) and decoding nothing.

    `platform` is that of the machine judged for (a value of `sys.platform`). Without `follow_last` a symlink at the
    very end is not followed.
    """
    plain = PLAIN_PATH.fullmatch(text) is not None
    if plain and seen is not None and platform != "win32":
        # Calls that are judged together name many files of one folder, by whole paths.
        folder, name = _split_plain_path(text) if text[0] == "/" else (str(cwd), text)
        if (at := _resolve_plain_below(name, folder, seen)) is not None:
            return at
    refused = None if plain else _find_deception(text)
    if platform == "win32":
        return _resolve_windows(text, cwd=cwd, home=home, refused=refused)
    start = _expand_home(text, PurePosixPath(home)) if text.startswith("~") else text
    named = os.path.join(str(cwd), start)
    if refused is not None:
        bare = CONTROL_CHARS.sub("?", os.path.join("/", named))
        return ResolvedPath(bare, bare, refused, kind=PurePosixPath)
    real, refused = _follow_links(named, {} if seen is None else seen, follow_last=follow_last)
    return ResolvedPath(real, os.path.normpath(named), refused, None if plain else _find_doubt(text))


def escape_deceptive_path(text: str) -> str:
    """Return an absolute path as `resolve_path` takes it, for a place that is known and that no text of a call has chosen.

    Letters of its name that `resolve_path` refuses are written out (`\\u202e`); the folder that it is in is the real one.
    """
    if _find_deception(text) is None:
        return text
    folder, name = os.path.split(text)
    real = os.path.join(os.path.realpath(folder), name)
    percent = "|%" if ENCODED_CLIMB.search(real) else ""
    strange = re.compile(f"{CONTROL_CHARS.pattern}|{DECEPTIVE_CHARS.pattern}|{FALSE_SEPARATOR.pattern}{percent}")
    shown = strange.sub(_escape_character, real)
    # The letters are more when they are written out; the place is judged, not the length.
    return shown if len(shown) <= MAX_LENGTH else strange.sub("\ufffd", real)


def _escape_character(found: re.Match[str]) -> str:
    return "\\x25" if found[0] == "%" else found[0].encode("unicode_escape").decode()


def map_to_private_tmp(
    found: ResolvedPath, *, temporary: PurePath | None, workspace: Iterable[PurePath], seen: PathCache | None = None
) -> ResolvedPath:
    """Return the path as the session's sandboxed commands see it: their /tmp is in a private directory.

    `temporary` is that directory on the host, or None if the session has not got one. Symlinks in it lead where they
    lead on the host. A path that exists in neither is taken to be in the private one, because a new file is created
    there; what exists only in the host's /tmp stays as it is.
    """
    if (
        temporary is None
        or found.refused is not None
        or is_inside_roots(found.place, (temporary, *workspace), seen=seen)
    ):
        return found
    for shared in SHARED_TEMPORARY:
        if _is_at_or_below(found.real, shared) and found.real != shared:
            below = found.real[len(shared) :]
            own = f"{temporary}{below}"
            known: PathCache = {} if seen is None else seen
            first = f"/{below.split('/')[1]}"
            if (
                _look_up_path(f"{temporary}{first}", known) is not None
                or _look_up_path(f"{shared}{first}", known) is None
            ):
                real, refused = _follow_links(own, known)
                return found._replace(real=real, written=own, refused=refused)
    return found


def is_inside_roots(
    path: PathOrText, roots: Iterable[PurePath], *, seen: PathCache | None = None, platform: str = "linux"
) -> bool:
    """Return True if a resolved path is one of the roots or below one; roots are resolved too.

    Case and Unicode composition matter on Linux only.
    """
    if isinstance(path, PureWindowsPath):
        return any(path.is_relative_to(PureWindowsPath(ntpath.normpath(str(root)))) for root in roots)
    known = {} if seen is None else seen
    fold = fold_file_name if platform == "darwin" else str
    text = fold(str(path))
    for root in map(str, roots):
        if _is_at_or_below(text, fold(root)):
            return True
        real, refused = _follow_links(root, known)
        if refused is None and real != root and _is_at_or_below(text, fold(real)):
            return True
    return False


def find_link_target(folder: PurePath) -> str | None:
    """Return where an absolute path leads by a link on its way; None for a path without links."""
    real = os.path.realpath(folder)
    return None if real == str(folder) else real


def describe_device(path: PathOrText, *, seen: PathCache | None = None) -> str | None:
    """Return what kind of device, socket or kernel file a path names, or None for an ordinary path."""
    # Most paths are none of these, and are not taken apart for it.
    text = str(path)
    if (DEVICE_LIKE.match(text) or not text.isascii()) and (
        what := _describe_device_name(fold_path_names(path))
    ) is not None:
        return what if what != HARMLESS_DEVICE else None
    found = _look_up_path(text, {} if seen is None else seen) if isinstance(path, (str, Path)) else None
    if found is None:
        return None
    if stat.S_ISSOCK(found[0]):
        return "a socket"
    return "a device" if stat.S_ISBLK(found[0]) else None


def _describe_device_name(parts: tuple[str, ...]) -> str | None:
    """Return what these names say a path is; `HARMLESS_DEVICE` for devices that hold nothing and change nothing."""
    parts = parts[1:] if parts[:1] == ("private",) else parts
    if parts[:1] == ("dev",) and len(parts) > 1 and parts[1] != "shm":
        return HARMLESS_DEVICE if len(parts) == 2 and parts[1] in HARMLESS_DEVICES else "a device"
    at_run = parts[1:] if parts[:2] == ("var", "run") else parts
    if at_run[:2] == ("run", "user") and len(at_run) > 3:
        return "a part of a running desktop session"
    if at_run and at_run[0] == "run" and at_run[-1].endswith((".sock", ".socket")):
        return "a socket"
    return "a socket" if parts[:2] in (("tmp", ".x11-unix"), ("tmp", ".ice-unix")) and len(parts) > 2 else None


def is_protected_path(
    path: PurePath, places: Iterable[PurePath], *, seen: PathCache | None = None, platform: str = "linux"
) -> bool:
    """Return True if a path is one of the protected places, is inside one, or contains one."""
    if isinstance(path, PureWindowsPath):
        windows = [PureWindowsPath(str(place)) for place in places]
        return any(path.is_relative_to(place) or place.is_relative_to(path) for place in windows)
    known = {} if seen is None else seen
    fold = fold_file_name if platform == "darwin" else str
    text = fold(str(path))
    for place in map(str, places):
        for at in {fold(place), fold(_follow_links(place, known)[0])}:
            if _is_at_or_below(text, at) or _is_at_or_below(at, text):
                return True
    return False


def _is_at_or_below(path: str, root: str) -> bool:
    return path == root or path.startswith(root if root.endswith("/") else f"{root}/")


def _find_deception(text: str) -> Reason | None:
    if not text:
        return Reason("empty_path", "the path is empty")
    if len(text) > MAX_LENGTH:
        return Reason("long_path", f"the path is longer than {MAX_LENGTH} characters")
    if CONTROL_CHARS.search(text):
        return Reason("control_character", "the path holds a control character")
    if text.isascii():
        return _find_encoding(text)
    if DECEPTIVE_CHARS.search(text) or FALSE_CLIMB.search(text):
        return Reason("deceptive_path", "the path holds characters that make it look like another one")
    return _find_encoding(text)


def _find_encoding(text: str) -> Reason | None:
    if "%" in text and ENCODED_CLIMB.search(text):
        return Reason("encoded_path", "the path hides `..` or a separator in percent signs, which are never decoded")
    return None


def _find_doubt(text: str) -> Reason | None:
    if URL_SCHEME.match(text):
        return Reason("url_as_path", "an address stands where a path belongs; it is taken as a file name")
    if VARIABLE_REFERENCE.search(text):
        return Reason("unexpanded_variable", "variables in paths are not expanded; it is taken as a file name")
    if text != text.strip():
        return Reason("blank_ends", "the path begins or ends with a space, which is a part of the name")
    if text.startswith("-"):
        return Reason("option_as_path", "the path starts like an option")
    if not text.isascii() and FALSE_SEPARATOR.search(text):
        return Reason("false_separator", "the path holds a character that looks like a separator and is none")
    return None


def _expand_home(text: str, home: PurePath) -> str:
    user, slash, rest = text[1:].partition("/")
    start = home if not user or user == home.name else home.parent / user
    return f"{start}{slash}{rest}"


def _look_up_path(at: str, seen: PathCache) -> tuple[int, str | None] | None:
    """Return what is at an absolute path, from `seen` if it was looked up before."""
    if at not in seen:
        try:
            mode = os.lstat(at).st_mode
            seen[at] = mode, os.readlink(at) if stat.S_ISLNK(mode) else None
        except OSError:
            seen[at] = None
    return seen[at]


def _follow_links(path: str, seen: PathCache, *, follow_last: bool = True) -> tuple[str, Reason | None]:
    """Return the real path of an absolute one, and a reason if it must not be followed."""
    waiting = path.split("/")[::-1]
    real = ""
    links = 0
    there = True
    while waiting:
        name = waiting.pop()
        if name in ("", "."):
            continue
        if name == "..":
            real = real.rpartition("/")[0]
            # What is above something missing may be there again.
            there = True
            continue
        at = f"{real}/{name}"
        if real.startswith("/proc/") and name in MAGIC_LINKS and _is_process_folder(real):
            return at, Reason("magic_link", f"{at!r} stands for a place of a running process")
        if not there:
            seen[at] = None
            real = at
            continue
        if at in ("/proc/self", "/proc/thread-self"):
            real = at
            continue
        found = seen[at] if at in seen else _look_up_path(at, seen)
        there = found is not None
        if found is None or (target := found[1]) is None or not (waiting or follow_last):
            real = at
            continue
        links += 1
        if links > MAX_LINKS:
            return at, Reason("link_loop", "the path goes through more links than can be followed")
        if target.startswith("/"):
            real = ""
        waiting.extend(target.split("/")[::-1])
    return real or "/", None


def _split_plain_path(text: str) -> tuple[str, str]:
    """Return the directory and the name of an absolute path in normal form, else "/" and the entire text."""
    if "//" in text or "/./" in text or "/../" in text:
        return "/", text
    folder, _, name = text.rpartition("/")
    return (folder, name) if folder and name else ("/", text)


def _resolve_plain_below(text: str, cwd: str, seen: PathCache) -> ResolvedPath | None:
    """Resolve a plain path that only descends from `cwd`, through no symlinks.

    None if it has to be followed name by name. The real path of `cwd` is cached in `seen` under its text with a `/`
    appended.
    """
    if text[0] in "/." and text != ".":
        return None
    if "//" in text or "/." in text or text[-1] == "/":
        return None
    start = f"{cwd}/"
    if start not in seen:
        real, refused = _follow_links(cwd, seen)
        direct = (
            refused is None
            and not f"{real}/".startswith("/proc/")
            and cwd[0] == "/"
            and cwd[:2] != "//"
            and "/.." not in cwd
        )
        seen[start] = 0, real if direct and real != "/" else None
    known = seen[start]
    if known is None or (at := known[1]) is None:
        return None
    if text == ".":
        return ResolvedPath(at, cwd)
    there = True
    for name in text.split("/"):
        at = f"{at}/{name}"
        if not there:
            seen[at] = None
            continue
        found = seen[at] if at in seen else _look_up_path(at, seen)
        there = found is not None
        if found is not None and found[1] is not None:
            return None
    return ResolvedPath(at, start + text)


def _is_process_folder(folder: str) -> bool:
    parts = folder.split("/")[2:]
    return len(parts) == 1 or (len(parts) == 3 and parts[1] == "task")


def _resolve_windows(text: str, *, cwd: PurePath, home: PurePath, refused: Reason | None) -> ResolvedPath:
    """Resolve a Windows path by grammar alone.

    This covers prefixes, separators, case, trailing dots, streams, device names and short names.
    """
    plain = text.replace("/", "\\")
    extended = re.match(r"\\\\[?.]\\(UNC\\)?", plain)
    if extended:
        plain = ("\\\\" if extended[1] else "") + plain[extended.end() :]
    if plain.startswith("~"):
        user, slash, rest = plain[1:].partition("\\")
        at = PureWindowsPath(home)
        plain = f"{at if not user or user == at.name else at.parent / user}{slash}{rest}"
    drive, tail = ntpath.splitdrive(ntpath.join(str(cwd), plain))
    names = [name if name in (".", "..") else name.rstrip(" .") for name in tail.split("\\")]
    named = str(PureWindowsPath(ntpath.normpath(drive + "\\".join(names))))
    refused = refused or _find_windows_device(plain, extended is not None, names)
    doubtful = _find_doubt(text) or _find_windows_doubt(plain, drive, names)
    return ResolvedPath(named, named, refused, doubtful, PureWindowsPath)


def _find_windows_device(plain: str, extended: bool, names: list[str]) -> Reason | None:
    if (
        plain.startswith("\\??\\")
        or "globalroot" in plain.lower()
        or (extended and not re.match(r"[A-Za-z]:\\|\\\\", plain))
    ):
        return Reason("device_path", "the path names a device of the kernel")
    server = plain.lower().split("\\")[2:4] if plain.startswith("\\\\") else []
    if not DEVICE_SHARES.isdisjoint(server[1:]) or any(NTFS_METAFILE.fullmatch(name) for name in names):
        return Reason("device_path", "the path names a device or a part of the file system itself")
    if any(RESERVED_NAME.fullmatch(name.partition(".")[0].rstrip().lower()) for name in names):
        return Reason("device_name", "the path holds a reserved device name")
    if any(":" in name for name in names):
        return Reason("data_stream", "the path names an alternate data stream")
    return None


def _find_windows_doubt(plain: str, drive: str, names: list[str]) -> Reason | None:
    if any(SHORT_NAME.fullmatch(name) for name in names):
        return Reason("short_name", "the path holds a short (8.3) name, which stands for another one")
    if BEST_FIT.search(plain):
        return Reason("false_separator", "the path holds a letter that some programs turn into another one")
    if drive.startswith("\\\\"):
        return Reason("network_path", "the path is on another machine")
    if re.match(r"[A-Za-z]:(?!\\)", plain):
        return Reason("drive_relative", "the path is relative to a drive's own folder")
    return None
