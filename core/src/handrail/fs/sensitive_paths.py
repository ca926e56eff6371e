"""Places known by their names: what keeps secrets, and what is run or obeyed later without being asked.

Names are compared in lower case and in one Unicode form on every platform: a name that only a case-insensitive machine
would take for a secret's is treated as one everywhere. A place counts at any position in a path, because copies of a
home directory are as secret as the original; the places of a user's startup files count only in home directories, and
those of the system only at the root.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence, Set
from pathlib import PurePath, PureWindowsPath

from handrail.fs import sensitive_paths_data as data

__all__ = ["KEY_ENDINGS", "PUBLIC_ENDINGS", "PUBLIC_NAMES", "SECRET_NAMES", "SHARED_TEMPORARY", "TEMPLATE_SUFFIXES"]

PathNames = tuple[str, ...]
# Places by the first of their names, each with what it is.
PathTable = Mapping[str, list[tuple[PathNames, str]]]
# Names in a repository's folder by which git takes it for one.
REPOSITORY_NAMES = frozenset(("HEAD", "objects", "refs", "commondir"))
# A path, or the text of a POSIX path.
PathOrText = PurePath | str

# Folders that everybody shares, and a session's sandboxed commands have to themselves.
SHARED_TEMPORARY = ("/tmp", "/var/tmp")
# Characters that Apple's file systems leave out when they compare names.
IGNORED_CHARS = re.compile("[\u200b-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")


def describe_secret(path: PathOrText) -> str | None:
    """Return the kind of secret that a file or directory of that name keeps, or None if it looks like none."""
    parts = fold_path_names(path)
    if not parts:
        return None
    name = parts[-1]
    if name.endswith(PUBLIC_ENDINGS) or name in PUBLIC_NAMES:
        return None
    if not SECRET_STARTS.isdisjoint(parts) and (what := _match_anywhere(parts, SECRETS_BY_START)) is not None:
        return what
    what = (
        _describe_secret_name(name)
        or _describe_tool_credentials(parts)
        or (_describe_process_secret(parts) if parts[0] == "proc" else None)
    )
    if what is None and (copied := BACKUP_NAME.fullmatch(name)) is not None:
        return next(
            (what for original in copied.groups() if original and (what := _describe_secret_name(original))), None
        )
    return what


def describe_startup(path: PurePath, *, home: PurePath) -> str | None:
    """Return what would run the path unasked later, outside the workspace (a shell, a login, the system).

    None if nothing known would.
    """
    parts = fold_path_names(path)
    below = _names_below_home(parts, fold_path_names(type(path)(str(home))))
    if below and (what := _match_start(below, HOME_BY_START)) is not None:
        return what
    if isinstance(path, PureWindowsPath):
        return _match_start(parts, WINDOWS_BY_START)
    # macOS keeps /etc and /var in /private.
    return _match_start(parts[1:] if parts[:1] == ("private",) else parts, SYSTEM_BY_START)


def is_repository(names: Set[str]) -> bool:
    """Return True if git treats a directory with these names as a repository and obeys its settings.

    The directory's own name does not matter.
    """
    return "HEAD" in names and ("commondir" in names or {"objects", "refs"} <= names)


def describe_autorun(path: PurePath) -> str | None:
    """Return the program that runs such a project file without being asked, or None."""
    parts = fold_path_names(path)
    if (what := _match_anywhere(parts, PROJECT_BY_START)) is not None:
        return what
    return next((what for ending, what in AUTORUN_ENDINGS.items() if parts and parts[-1].endswith(ending)), None)


def is_notable(name: str) -> bool:
    """Return True if a file or directory of that name may keep secrets or be obeyed in some directory.

    In that case the tables have to be checked; False is certain. This takes a fraction of the time of `describe_secret`
    and `describe_autorun`, for searches through many names.
    """
    lower = name.lower()
    return (
        lower in NOTABLE_NAMES
        or lower[lower.rfind(".") + 1 :] in NOTABLE_EXTENSIONS
        or lower.startswith(NOTABLE_STARTS)
        or lower.endswith(NOTABLE_ENDINGS)
        or not name.isascii()
    )


def is_kernel_path(path: PurePath) -> bool:
    """Return True if a path is in /proc or /sys, where reading and writing differ from other places."""
    return fold_path_names(path)[:1] in (("proc",), ("sys",))


def fold_path_names(path: PathOrText) -> PathNames:
    """Return the names in a path in the form used for comparison, without its root."""
    if isinstance(path, PureWindowsPath):
        return tuple(fold_file_name(part) for part in (path.parts[1:] if path.anchor else path.parts))
    return tuple([name for name in fold_file_name(str(path)).split("/") if name not in ("", ".")])


def fold_file_name(text: str) -> str:
    """Return a text in the form used to compare names when case and composition do not matter."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", IGNORED_CHARS.sub("", text)).casefold()


def _match_anywhere(parts: PathNames, table: PathTable) -> str | None:
    for start, part in enumerate(parts):
        if (what := _match_start(parts[start:], table) if part in table else None) is not None:
            return what
    return None


def _match_start(parts: PathNames, table: PathTable) -> str | None:
    candidates = table.get(parts[0], ()) if parts else ()
    return next((what for place, what in candidates if parts[: len(place)] == place), None)


def _names_below_home(parts: PathNames, home: PathNames) -> PathNames:
    """Return the parts below a home directory: the user's, another user's, or root's."""
    if home and parts[: len(home)] == home:
        return parts[len(home) :]
    if parts[:1] == ("root",) or parts[:2] == ("var", "root"):
        return parts[1:] if parts[0] == "root" else parts[2:]
    return parts[2:] if parts[:1] in (("home",), ("users",)) else ()


def _describe_secret_name(name: str) -> str | None:
    if (what := SECRET_NAMES.get(name)) is not None:
        return what
    if "." in name:
        if name.startswith(".env.") and name.rpartition(".")[2] not in TEMPLATE_SUFFIXES:
            return "settings with secrets"
        if name.endswith(".env") and name[: -len(".env")] not in TEMPLATE_SUFFIXES:
            return "settings with secrets"
        if name[0] == "." and name.endswith(("_history", "-history")):
            return "a history of commands"
        if name.endswith(KEY_ENDINGS):
            return "a private key"
        if name.endswith(".pem") and not any(word in name for word in ("cert", "chain", "public", "ca-", "cacert")):
            return "a private key"
    if name.startswith(SECRET_SHAPE_STARTS):
        return next((what for shape, what in SECRET_SHAPES if shape.fullmatch(name)), None)
    return None


def _describe_tool_credentials(parts: PathNames) -> str | None:
    """Return a label for credentials in a program's directory: `.rye/credentials`, `.config/NAME/credentials`."""
    hidden = any(folder.startswith(".") for folder in parts[-3:-1])
    return "credentials" if hidden and parts[-1] in ("credentials", "credential", ".credentials") else None


def _describe_process_secret(parts: PathNames) -> str | None:
    if len(parts) > 1 and parts[-1] in (
        "environ",
        "mem",
        "auxv",
        "kcore",
        "kmem",
        "kmsg",
        "pagemap",
        "syscall",
        "stack",
    ):
        return "the memory or environment of a process"
    return None


def _parse_table(table: str) -> dict[str, str]:
    """Return what each place in a table is."""
    found: dict[str, str] = {}
    what = ""
    for line in table.splitlines():
        if line.startswith(" "):
            found.update(dict.fromkeys(line.strip().split("  "), what))
        else:
            what = line.rstrip(":")
    return found


def _parse_path_table(table: str) -> dict[PathNames, str]:
    return {tuple(path.split("/")): what for path, what in _parse_table(table).items()}


def _index_by_first_name(places: Mapping[PathNames, str]) -> PathTable:
    """Index the places by the first of their names."""
    table: dict[str, list[tuple[PathNames, str]]] = {}
    for place, what in places.items():
        table.setdefault(place[0], []).append((place, what))
    return table


SECRET_PLACES = _parse_path_table(data.SECRET_PLACES)
SECRETS_BY_START = _index_by_first_name(SECRET_PLACES)
SECRET_STARTS = frozenset(SECRETS_BY_START)
SECRET_NAMES = _parse_table(data.SECRET_NAMES)
KEY_ENDINGS = (
    ".key", ".ppk", ".p12", ".pfx", ".jks", ".keystore", ".kdbx", ".kdb", ".ovpn", ".agekey", ".p8",
    ".keytab", ".keychain", ".keychain-db",
    ".opvault", ".agilekeychain", ".1pif", ".psafe3", ".pkcs12", ".tfstate",
)  # fmt: skip
SECRET_SHAPES = (
    (re.compile(r"ssh_host_.+_key"), "a private key"),
    (re.compile(r"(service-account|service_account|client_secret).*\.json"), "a cloud credential"),
    # Data of this name, and neither code nor a template.
    (
        re.compile(
            r"\.?credentials(?![\w.-]*(?:example|sample|template|schema|dist|tmpl|tpl))(?:[._-][\w.-]*)?"
            r"\.(?:toml|json|ya?ml|ini|cfg|conf|properties|xml|db|sqlite3?|csv|txt)"
        ),
        "credentials",
    ),
    (re.compile(r"krb5cc_.*"), "a ticket of Kerberos"),
    (re.compile(r"agent\.\d+"), "the door to an agent of keys"),
)
# How all of them begin.
SECRET_SHAPE_STARTS = ("ssh_host_", "service", "client_secret", "credentials", ".credentials", "krb5cc_", "agent.")
# Copies that editors and people make beside a file: `.env~`, `id_rsa.bak`, `#.env#`, `.key.pem.swp`.
BACKUP_ENDINGS = ("~", ".bak", ".backup", ".old", ".orig", ".save", ".swp", ".swo", "#")
BACKUP_NAME = re.compile(
    r"\.(?P<swapped>.+)\.sw[op]|(?P<copied>.+?)(?:~|\.(?:bak|backup|old|orig|save|sw[op]))+|#(?P<locked>.+)#|\._(?P<forked>.+)"
)
PUBLIC_ENDINGS = (".pub",)
PUBLIC_NAMES = frozenset(("known_hosts", "known_hosts.old"))
TEMPLATE_SUFFIXES = frozenset(("example", "sample", "template", "dist", "defaults", "tmpl", "tpl", "schema"))
HOME_BY_START = _index_by_first_name(_parse_path_table(data.HOME_STARTUP))
SYSTEM_BY_START = _index_by_first_name(_parse_path_table(data.SYSTEM_STARTUP))
WINDOWS_BY_START = _index_by_first_name(_parse_path_table(data.WINDOWS_STARTUP))
PROJECT_BY_START = _index_by_first_name(_parse_path_table(data.PROJECT_AUTORUN))
AUTORUN_ENDINGS: dict[str, str] = {
    ".pth": "Python",
    "profile.ps1": "the next shell",
    ".code-workspace": "an editor",
    ".sublime-project": "an editor",
    **dict.fromkeys((".scf", ".lnk", ".url", ".library-ms", ".desktop"), "the file manager"),
}

# Names of folders on the way to a secret.
SECRET_STEPS = frozenset(part for place in SECRET_PLACES for part in place[:-1])
# Places that can be looked up below any folder, each by its name: `.vscode`, `.github/workflows`, `.ssh`.
PLACES_BY_NAME: Sequence[str] = tuple(
    dict.fromkeys(
        (
            *("/".join(place) for place in _parse_path_table(data.PROJECT_AUTORUN)),
            *SECRET_NAMES,
            *("/".join(place) for place in SECRET_PLACES if place[0].startswith(".")),
        )
    )
)
# How many names the longest place has that counts anywhere.
MOST_NAMES = max(
    len(place) for table in (data.SECRET_PLACES, data.PROJECT_AUTORUN) for place in _parse_path_table(table)
)
# Every name that stands in a table, whichever part of a place it is.
NOTABLE_NAMES = frozenset(
    part for table in (data.SECRET_PLACES, data.PROJECT_AUTORUN) for place in _parse_path_table(table) for part in place
) | frozenset(SECRET_NAMES)
NOTABLE_EXTENSIONS = frozenset(
    ending.rpartition(".")[2] for ending in (*KEY_ENDINGS, ".pem", *AUTORUN_ENDINGS) if ending.startswith(".")
)
NOTABLE_ENDINGS = ("_history", "-history", "profile.ps1", ".env", *BACKUP_ENDINGS)
NOTABLE_STARTS = (".env.", "._", "credential", *SECRET_SHAPE_STARTS)
