"""Paths as calls name them: where they really lead, and what kind of place that is.

One resolver for evaluators and file tools, so that what was judged is what is opened. Nothing here opens a file; names and links are looked
at. Judging for another machine works too: what is not there is taken as it is written, and Windows paths are read by their grammar alone.
"""

from __future__ import annotations

import ntpath
import os
import re
import stat
from collections.abc import Iterable
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import NamedTuple

from handrail.files.known_places import (
    KEY_ENDINGS as KEY_ENDINGS,
    SECRET_NAMES as SECRET_NAMES,
    SECRET_PLACES as SECRET_PLACES,
    SHARED_TEMPORARY as SHARED_TEMPORARY,
    Place as Place,
    autorun as autorun,
    folded,
    kernel as kernel,
    lowered,
    secret as secret,
    startup as startup,
)
from handrail.judging.verdicts import Reason

# What Linux allows, too.
MAX_LINKS = 40
MAX_LENGTH = 4096

# Text in which nothing is strange; most paths are of this kind.
PLAIN = re.compile(r"[A-Za-z0-9_./](?:[A-Za-z0-9_./+,=@ -]{0,4000}[A-Za-z0-9_./+,=@-])?")
# Shown text that is not what it looks like: direction overrides, invisible letters, tags.
DECEPTIVE = re.compile("[\u200b\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
# Look-alikes of separators occur in honest names; behind two dots they do not.
FALSE_SEPARATOR = re.compile("[\u2044\u2215\u29f8\uff0f\u2216\u29f5\u29f9\uff3c\u200e\u200f]")
FALSE_CLIMB = re.compile(r"[.\u2024\uff0e]{2}" + FALSE_SEPARATOR.pattern)
CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
ENCODED_CLIMB = re.compile(r"(\.|%2e){2}(%2f|%5c)|%2e(\.|%2e)[/\\]|%00|%25(2e|2f|5c)", re.IGNORECASE)
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+://?")
VARIABLE = re.compile(r"\$\{?[A-Za-z_]|%[A-Za-z_][A-Za-z0-9_()]*%|\$\(|`")

# Links in /proc/<process> that stand for a place or a file of that process, not for their text.
MAGIC_LINKS = frozenset(("root", "cwd", "exe", "fd", "map_files", "ns"))

# Letters that Windows turns into separators, quotes or colons where it has only a code page.
BEST_FIT = re.compile("[\u00a5\u20a9\u2215\u2216\u2044\uff0f\uff3c\uff1a\uff02\uff0e\uff5e\uff04\uff05]")
# Where Windows keeps what a file system itself is made of.
METAFILE = re.compile(r"\$(mft|mftmirr|logfile|volume|attrdef|bitmap|boot|badclus|secure|upcase|extend)", re.IGNORECASE)
# Shares that are no folders.
DEVICE_SHARES = frozenset(("pipe", "mailslot", "ipc$"))

HARMLESS = "harmless"
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
Seen = dict[str, tuple[int, str | None] | None]


class Resolved(NamedTuple):
    """Where a path of a call leads, as text and as a path.

    `path` is the real place: absolute, without links, `.` or `..`, as far down as it exists; what does not exist yet is kept as written.
    `named` is the same without following links. `refused`: no tool may follow such a path. `doubtful`: a person should look first.
    """

    real: str
    written: str
    refused: Reason | None = None
    doubtful: Reason | None = None
    kind: type[PurePath] = Path

    @property
    def place(self) -> Place:
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
        """Whether it goes through a link."""
        return self.real != self.written and self.path != self.named


def resolve(
    text: str,
    *,
    cwd: PurePath,
    home: PurePath,
    platform: str = "linux",
    seen: Seen | None = None,
    follow_last: bool = True,
) -> Resolved:
    """Where `text` leads from `cwd`. `~` is `home` and `~name` the home beside it; nothing else is expanded or decoded.

    `platform` is that of the machine judged for (a value of `sys.platform`). Without `follow_last` a link at the very end is not followed.
    """
    plain = PLAIN.fullmatch(text) is not None
    if plain and seen is not None and platform != "win32":
        # Calls that are judged together name many files of one folder, by whole paths.
        folder, name = _split(text) if text[0] == "/" else (str(cwd), text)
        if (at := _below_folder(name, folder, seen)) is not None:
            return at
    refused = None if plain else _deceptive(text)
    if platform == "win32":
        return _resolve_windows(text, cwd=cwd, home=home, refused=refused)
    start = _at_home(text, PurePosixPath(home)) if text.startswith("~") else text
    named = os.path.join(str(cwd), start)
    if refused is not None:
        bare = CONTROL.sub("?", os.path.join("/", named))
        return Resolved(bare, bare, refused, kind=PurePosixPath)
    real, refused = _follow(named, {} if seen is None else seen, follow_last=follow_last)
    return Resolved(real, os.path.normpath(named), refused, None if plain else _doubtful(text))


def undisguised(text: str) -> str:
    """Return an absolute path as `resolve` takes it, for a place that is known and that no text of a call has chosen.

    Letters of its name that `resolve` refuses are written out (`\\u202e`); the folder that it is in is the real one.
    """
    if _deceptive(text) is None:
        return text
    folder, name = os.path.split(text)
    real = os.path.join(os.path.realpath(folder), name)
    percent = "|%" if ENCODED_CLIMB.search(real) else ""
    strange = re.compile(f"{CONTROL.pattern}|{DECEPTIVE.pattern}|{FALSE_SEPARATOR.pattern}{percent}")
    shown = strange.sub(_escape, real)
    # The letters are more when they are written out; the place is judged, not the length.
    return shown if len(shown) <= MAX_LENGTH else strange.sub("\ufffd", real)


def _escape(found: re.Match[str]) -> str:
    return "\\x25" if found[0] == "%" else found[0].encode("unicode_escape").decode()


def privately(
    found: Resolved, *, temporary: PurePath | None, workspace: Iterable[PurePath], seen: Seen | None = None
) -> Resolved:
    """Return the same place as the session's sandboxed commands see it: what they have in /tmp lies in a private folder.

    `temporary` is that folder on the host; None: there is none. Links in it lead where they lead on the host. A place that is in neither is
    in the private one, so that a new file is made there; what only the host's /tmp has stays what it is.
    """
    if temporary is None or found.refused is not None or inside(found.place, (temporary, *workspace), seen=seen):
        return found
    for shared in SHARED_TEMPORARY:
        if _below(found.real, shared) and found.real != shared:
            below = found.real[len(shared) :]
            own = f"{temporary}{below}"
            known: Seen = {} if seen is None else seen
            first = f"/{below.split('/')[1]}"
            if _look(f"{temporary}{first}", known) is not None or _look(f"{shared}{first}", known) is None:
                real, refused = _follow(own, known)
                return found._replace(real=real, written=own, refused=refused)
    return found


def inside(path: Place, roots: Iterable[PurePath], *, seen: Seen | None = None, platform: str = "linux") -> bool:
    """Whether a resolved path is one of the roots or below one. Roots are resolved too. Case and composition count on Linux only."""
    if isinstance(path, PureWindowsPath):
        return any(path.is_relative_to(PureWindowsPath(ntpath.normpath(str(root)))) for root in roots)
    known = {} if seen is None else seen
    fold = folded if platform == "darwin" else str
    text = fold(str(path))
    for root in map(str, roots):
        if _below(text, fold(root)):
            return True
        real, refused = _follow(root, known)
        if refused is None and real != root and _below(text, fold(real)):
            return True
    return False


def leads_to(folder: PurePath) -> str | None:
    """Return where an absolute path leads by a link on its way; None for a path without links."""
    real = os.path.realpath(folder)
    return None if real == str(folder) else real


def device(path: Place, *, seen: Seen | None = None) -> str | None:
    """What a device, a socket or a part of the kernel it is; None for an ordinary file's place."""
    # Most paths are none of these, and are not taken apart for it.
    text = str(path)
    if (DEVICE_LIKE.match(text) or not text.isascii()) and (what := _named_device(lowered(path))) is not None:
        return what if what != HARMLESS else None
    found = _look(text, {} if seen is None else seen) if isinstance(path, (str, Path)) else None
    if found is None:
        return None
    if stat.S_ISSOCK(found[0]):
        return "a socket"
    return "a device" if stat.S_ISBLK(found[0]) else None


def _named_device(parts: tuple[str, ...]) -> str | None:
    """What those names say that it is; `HARMLESS` for devices that hold nothing and change nothing."""
    parts = parts[1:] if parts[:1] == ("private",) else parts
    if parts[:1] == ("dev",) and len(parts) > 1 and parts[1] != "shm":
        return HARMLESS if len(parts) == 2 and parts[1] in HARMLESS_DEVICES else "a device"
    at_run = parts[1:] if parts[:2] == ("var", "run") else parts
    if at_run[:2] == ("run", "user") and len(at_run) > 3:
        return "a part of a running desktop session"
    if at_run and at_run[0] == "run" and at_run[-1].endswith((".sock", ".socket")):
        return "a socket"
    return "a socket" if parts[:2] in (("tmp", ".x11-unix"), ("tmp", ".ice-unix")) and len(parts) > 2 else None


def protected(path: PurePath, places: Iterable[PurePath], *, seen: Seen | None = None, platform: str = "linux") -> bool:
    """Whether it is one of the protected places, lies in one, or holds one."""
    if isinstance(path, PureWindowsPath):
        windows = [PureWindowsPath(str(place)) for place in places]
        return any(path.is_relative_to(place) or place.is_relative_to(path) for place in windows)
    known = {} if seen is None else seen
    fold = folded if platform == "darwin" else str
    text = fold(str(path))
    for place in map(str, places):
        for at in {fold(place), fold(_follow(place, known)[0])}:
            if _below(text, at) or _below(at, text):
                return True
    return False


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root if root.endswith("/") else f"{root}/")


def _deceptive(text: str) -> Reason | None:
    if not text:
        return Reason("empty_path", "the path is empty")
    if len(text) > MAX_LENGTH:
        return Reason("long_path", f"the path is longer than {MAX_LENGTH} characters")
    if CONTROL.search(text):
        return Reason("control_character", "the path holds a control character")
    if text.isascii():
        return _encoded(text)
    if DECEPTIVE.search(text) or FALSE_CLIMB.search(text):
        return Reason("deceptive_path", "the path holds characters that make it look like another one")
    return _encoded(text)


def _encoded(text: str) -> Reason | None:
    if "%" in text and ENCODED_CLIMB.search(text):
        return Reason("encoded_path", "the path hides `..` or a separator in percent signs, which are never decoded")
    return None


def _doubtful(text: str) -> Reason | None:
    if SCHEME.match(text):
        return Reason("url_as_path", "an address stands where a path belongs; it is taken as a file name")
    if VARIABLE.search(text):
        return Reason("unexpanded_variable", "variables in paths are not expanded; it is taken as a file name")
    if text != text.strip():
        return Reason("blank_ends", "the path begins or ends with a space, which is a part of the name")
    if text.startswith("-"):
        return Reason("option_as_path", "the path starts like an option")
    if not text.isascii() and FALSE_SEPARATOR.search(text):
        return Reason("false_separator", "the path holds a character that looks like a separator and is none")
    return None


def _at_home(text: str, home: PurePath) -> str:
    user, slash, rest = text[1:].partition("/")
    start = home if not user or user == home.name else home.parent / user
    return f"{start}{slash}{rest}"


def _look(at: str, seen: Seen) -> tuple[int, str | None] | None:
    """What is at an absolute place, from `seen` when it was looked at before."""
    if at not in seen:
        try:
            mode = os.lstat(at).st_mode
            seen[at] = mode, os.readlink(at) if stat.S_ISLNK(mode) else None
        except OSError:
            seen[at] = None
    return seen[at]


def _follow(path: str, seen: Seen, *, follow_last: bool = True) -> tuple[str, Reason | None]:
    """The real path of an absolute one, and why it must not be followed."""
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
        if real.startswith("/proc/") and name in MAGIC_LINKS and _of_process(real):
            return at, Reason("magic_link", f"{at!r} stands for a place of a running process")
        if not there:
            seen[at] = None
            real = at
            continue
        if at in ("/proc/self", "/proc/thread-self"):
            real = at
            continue
        found = seen[at] if at in seen else _look(at, seen)
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


def _split(text: str) -> tuple[str, str]:
    """The folder and the name in it of an absolute path that is written as it is; no folder and the whole text where it is not."""
    if "//" in text or "/./" in text or "/../" in text:
        return "/", text
    folder, _, name = text.rpartition("/")
    return (folder, name) if folder and name else ("/", text)


def _below_folder(text: str, cwd: str, seen: Seen) -> Resolved | None:
    """Where a plain text leads that only goes down from `cwd`, through no links; None when it has to be followed name by name.

    Where `cwd` really is, is kept in `seen` under its text with a `/` behind.
    """
    if text[0] in "/." and text != ".":
        return None
    if "//" in text or "/." in text or text[-1] == "/":
        return None
    start = f"{cwd}/"
    if start not in seen:
        real, refused = _follow(cwd, seen)
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
        return Resolved(at, cwd)
    there = True
    for name in text.split("/"):
        at = f"{at}/{name}"
        if not there:
            seen[at] = None
            continue
        found = seen[at] if at in seen else _look(at, seen)
        there = found is not None
        if found is not None and found[1] is not None:
            return None
    return Resolved(at, start + text)


def _of_process(folder: str) -> bool:
    parts = folder.split("/")[2:]
    return len(parts) == 1 or (len(parts) == 3 and parts[1] == "task")


def _resolve_windows(text: str, *, cwd: PurePath, home: PurePath, refused: Reason | None) -> Resolved:
    """By grammar alone: prefixes, separators, case, trailing dots, streams, device names and short names."""
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
    refused = refused or _windows_device(plain, extended is not None, names)
    doubtful = _doubtful(text) or _windows_doubt(plain, drive, names)
    return Resolved(named, named, refused, doubtful, PureWindowsPath)


def _windows_device(plain: str, extended: bool, names: list[str]) -> Reason | None:
    if (
        plain.startswith("\\??\\")
        or "globalroot" in plain.lower()
        or (extended and not re.match(r"[A-Za-z]:\\|\\\\", plain))
    ):
        return Reason("device_path", "the path names a device of the kernel")
    server = plain.lower().split("\\")[2:4] if plain.startswith("\\\\") else []
    if not DEVICE_SHARES.isdisjoint(server[1:]) or any(METAFILE.fullmatch(name) for name in names):
        return Reason("device_path", "the path names a device or a part of the file system itself")
    if any(RESERVED_NAME.fullmatch(name.partition(".")[0].rstrip().lower()) for name in names):
        return Reason("device_name", "the path holds a reserved device name")
    if any(":" in name for name in names):
        return Reason("data_stream", "the path names an alternate data stream")
    return None


def _windows_doubt(plain: str, drive: str, names: list[str]) -> Reason | None:
    if any(SHORT_NAME.fullmatch(name) for name in names):
        return Reason("short_name", "the path holds a short (8.3) name, which stands for another one")
    if BEST_FIT.search(plain):
        return Reason("false_separator", "the path holds a letter that some programs turn into another one")
    if drive.startswith("\\\\"):
        return Reason("network_path", "the path is on another machine")
    if re.match(r"[A-Za-z]:(?!\\)", plain):
        return Reason("drive_relative", "the path is relative to a drive's own folder")
    return None
