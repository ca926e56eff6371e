"""Effects of reading, writing, deleting or running a named place, for both dialects."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from handrail.api.verdict import AccessKind
from handrail.fs import path_resolution
from handrail.glob_match import is_glob_match
from handrail.policy import place_kinds
from handrail_cli.shell.windows.findings import FindingGrade, LineEvaluation, Span

# Names of PowerShell's drives have two letters or more; one letter is a disk.
DRIVE = re.compile(
    r"(?:(?:microsoft\.powershell\.(?:core|security)\\)?([a-z]+)::|([a-z][a-z0-9_]+):(?![:/\\]{2}\w))(.*)",
    re.IGNORECASE | re.DOTALL,
)
REGISTRY = frozenset(("hklm", "hkcu", "hkcr", "hku", "hkcc", "registry"))
HIVES = re.compile(
    r"(hkey_local_machine|hklm|hkey_current_user|hkcu|hkey_users|hku|hkey_classes_root|hkcr)", re.IGNORECASE
)
# Without these keys the system does not run.
WHOLE_HIVE = re.compile(r"(\w+[\\:]*)?(software|system|sam|security|hardware)?[\\*]*", re.IGNORECASE)
SECRET_KEYS = re.compile(
    r"(^|\\)(sam|security|lsa|winlogon|policy\\secrets|sessions|simontatham|realvnc|winvnc4|snmp)(\\|$)", re.IGNORECASE
)
NULL_DEVICE = re.compile(r"(?:\\\\[.?]\\)?nul:?", re.IGNORECASE)
RAW_DEVICE = re.compile(r"[\\/]{2}[.?][\\/](physicaldrive\d|[a-z]:[\\/]?$|harddisk|cdrom\d|globalroot)", re.IGNORECASE)
RUNS_FETCHED = "it runs a file that it has just fetched from the network"
WILDCARD = re.compile(r"[*?\[]")
MATCHES_EVERYTHING = re.compile(r"[*?.]*\*[*?.]*|\*|\?+")
SYSTEM_FOLDERS = frozenset(
    ("users", "windows", "program files", "program files (x86)", "programdata", "boot", "recovery", "efi")
)
POSIX_FATAL_FILES = frozenset(("/etc/passwd", "/etc/shadow", "/etc/sudoers", "/etc/fstab"))
BOOT_FILES = frozenset(("bootmgr", "ntldr", "boot.ini", "bcd"))
AUTOSTART_KEY = re.compile(
    r"\\(run|runonce|runonceex|runservices|image file execution options|winlogon|appinit_dlls|shell folders|user shell folders)(\\|$)",
    re.IGNORECASE,
)


def split_drive(text: str) -> tuple[str, str] | None:
    """Return the PowerShell drive or provider that a path starts with, in lower case, and the rest; None for files."""
    match = DRIVE.fullmatch(text)
    if match is None:
        return None
    name = (match[1] or match[2]).lower()
    return ("filesystem", match[3]) if name == "filesystem" else (name, match[3].lstrip("\\/"))


def resolve_path(case: LineEvaluation, text: str) -> path_resolution.ResolvedPath | None:
    """Resolve a file's path; None if it depends on an unknown directory."""
    case.looks()
    cwd = case.cwd
    if cwd is None:
        pure = PureWindowsPath(text) if case.windows else PurePosixPath(text)
        if not pure.is_absolute() and not text.startswith("~"):
            return None
        cwd = case.judging.cwd
    return path_resolution.resolve_path(text, cwd=cwd, home=case.judging.home, platform=case.judging.platform)


def _resolve_file(
    case: LineEvaluation, text: str, span: Span | None, kind: AccessKind
) -> path_resolution.ResolvedPath | None:
    """Return the place of a file if nothing speaks against naming it; None after noting what does."""
    if case.windows and NULL_DEVICE.fullmatch(text):
        return None
    if RAW_DEVICE.match(text):
        grade = FindingGrade.DANGEROUS if kind == "read" else FindingGrade.CATASTROPHIC
        case.add(
            grade, "overwrites_device" if kind != "read" else "device", f"{text!r} is a disk or volume itself", span
        )
        return None
    found = resolve_path(case, text)
    if found is None:
        case.touch(kind, "")
        grade = FindingGrade.UNKNOWN if kind == "read" else FindingGrade.DANGEROUS
        case.add(grade, "unknown_folder", f"{text!r} starts at a folder that is not known", span)
        return None
    case.touch(kind, found.real)
    if found.refused is not None:
        case.add(FindingGrade.DANGEROUS, found.refused.code, found.refused.text, span)
        return None
    if found.doubtful is not None:
        grade = FindingGrade.DANGEROUS if found.doubtful.code == "network_path" else FindingGrade.UNKNOWN
        case.add(grade, found.doubtful.code, found.doubtful.text, span)
    if (what := find_secret(case, text)) is not None:
        case.add(FindingGrade.DANGEROUS, "secret", f"{text!r} keeps {what}", span)
    return found


def find_secret(case: LineEvaluation, text: str) -> str | None:
    """Return the secret that a path may keep, considering its wildcards; None if it does not look like one."""
    found = resolve_path(case, text)
    if found is None:
        pure = PureWindowsPath(text) if case.windows else PurePosixPath(text)
        return path_resolution.describe_secret(pure)
    if (
        what := path_resolution.describe_secret(found.path) or path_resolution.describe_secret(found.named)
    ) is not None:
        return what
    if WILDCARD.search(text) is None:
        return None
    for name in PureWindowsPath(found.written).parts if case.windows else PurePosixPath(found.written).parts:
        # A pattern for endings, or for a word somewhere inside, does not look for a secret.
        if WILDCARD.search(name) and not MATCHES_EVERYTHING.fullmatch(name) and not re.match(r"\*(\.|.*[*?])", name):
            lowered = name.lower()
            hit = next(
                (
                    known
                    for known in (*path_resolution.SECRET_NAMES, *(place[0] for place in path_resolution.SECRET_PLACES))
                    if is_glob_match(known, lowered, if_long=True)
                ),
                None,
            )
            if hit is not None:
                return path_resolution.SECRET_NAMES.get(hit, "secrets")
    return None


def note_read(
    case: LineEvaluation, text: str, span: Span | None = None, *, recursive: bool = False, listing: bool = False
) -> None:
    """Note what reading a file, folder, variable or key of the registry amounts to; `listing`: only names and sizes are looked at.

    Without a sandbox, what is read has to be named plainly: of a pattern, or all below a folder, not every file is known to hold no secret.
    """
    drive = split_drive(text)
    if drive is not None and drive[0] != "filesystem":
        _note_drive_read(case, *drive, text, span)
        return
    text = drive[1] if drive is not None else text
    found = _resolve_file(case, text, span, "read")
    if found is None:
        return
    if path_resolution.is_protected_path(found.path, case.judging.protected) and not path_resolution.is_inside_roots(
        found.path, case.judging.workspace
    ):
        case.add(FindingGrade.DANGEROUS, "own", "files by which Handrail judges are named in it", span)
    if not listing and (recursive or WILDCARD.search(text)):
        note_found_read(case, span)
    if (
        listing
        or path_resolution.is_inside_roots(found.path, case.judging.workspace)
        or is_temporary_path(case, found.path)
    ):
        return
    if recursive or not (
        place_kinds.is_public(found.path) or path_resolution.is_inside_roots(found.path, case.judging.readable)
    ):
        case.add(FindingGrade.UNKNOWN, "read_outside", f"{text!r} is outside the workspace", span)


def note_found_read(case: LineEvaluation, span: Span | None) -> None:
    """Note that a command reads files which it finds on its own."""
    case.add(FindingGrade.EFFECT, "found_files", "it reads files whose names are not known before", span)


def _note_drive_read(case: LineEvaluation, name: str, rest: str, text: str, span: Span | None) -> None:
    if name in ("env", "environment"):
        case.touch("read", f"$env:{rest}")
        if not rest or WILDCARD.search(rest) or is_secret_variable(rest):
            case.add(FindingGrade.DANGEROUS, "secret", "it reads variables that may hold secrets", span)
    elif name in REGISTRY:
        case.touch("read", text)
        if SECRET_KEYS.search(rest):
            case.add(FindingGrade.DANGEROUS, "secret", f"{text!r} keeps passwords", span)
    elif name in ("variable", "alias", "function", "cert", "certificate"):
        case.touch("read", text)
    else:
        case.add(FindingGrade.UNKNOWN, "unknown_drive", f"{name!r} is a drive that is not known", span)


def is_secret_variable(name: str) -> bool:
    """Return True if a variable of that name holds a secret, as far as its name shows."""
    from handrail.redaction import is_credential

    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name)
    return is_credential(name, "") or is_credential(split, "") or is_credential(re.sub(r"[^A-Za-z]", "_", name), "")


def note_write(case: LineEvaluation, text: str, span: Span | None = None, *, fetched: bool = False) -> None:
    """Note what creating or changing a file, variable or key of the registry amounts to."""
    drive = split_drive(text)
    if drive is not None and drive[0] != "filesystem":
        _note_drive_write(case, *drive, text, span)
        return
    text = drive[1] if drive is not None else text
    found = _resolve_file(case, text, span, "write")
    if found is None:
        return
    (case.fetched if fetched else case.written).add(found.real.lower())
    _note_change(case, found, text, span)


def _note_change(case: LineEvaluation, found: path_resolution.ResolvedPath, text: str, span: Span | None) -> None:
    judging = case.judging
    if path_resolution.is_protected_path(found.path, judging.protected):
        case.add(FindingGrade.REFUSED, "own_files", "files by which Handrail judges are named in it", span)
    if not case.windows and (found.real in POSIX_FATAL_FILES or path_resolution.describe_device(found.path)):
        case.add(FindingGrade.CATASTROPHIC, "overwrites_system_file", f"it overwrites {text!r}", span)
    parts = tuple(part.lower() for part in found.path.parts)
    if case.windows and ((len(parts) == 2 and parts[1] in BOOT_FILES) or parts[1:2] == ("boot",)):
        case.add(FindingGrade.CATASTROPHIC, "overwrites_system_file", f"it overwrites {text!r}", span)
    if (who := path_resolution.describe_startup(found.path, home=judging.home) or _find_autostart(parts)) is not None:
        case.add(FindingGrade.DANGEROUS, "startup", f"{text!r} is run or obeyed by {who} without being asked", span)
    elif (
        who := path_resolution.describe_autorun(found.path) or path_resolution.describe_autorun(found.named)
    ) is not None:
        case.add(FindingGrade.DANGEROUS, "autorun", f"{text!r} is run or obeyed by {who} without being asked", span)
    elif not path_resolution.is_inside_roots(found.path, judging.workspace) and not is_temporary_path(case, found.path):
        case.add(FindingGrade.DANGEROUS, "write_outside", f"{text!r} is outside the workspace", span)
    else:
        case.add(FindingGrade.EFFECT, "write_inside", f"it changes {text!r}", span)


def _find_autostart(parts: tuple[str, ...]) -> str | None:
    return "the next login" if "startup" in parts and "start menu" in parts else None


def _note_drive_write(case: LineEvaluation, name: str, rest: str, text: str, span: Span | None) -> None:
    if name in ("env", "environment"):
        note_variable_change(case, rest, span)
    elif name in REGISTRY:
        case.touch("write", text)
        code = "persistence" if AUTOSTART_KEY.search(f"\\{rest}") else "registry"
        case.add(FindingGrade.DANGEROUS, code, f"it changes the registry at {text!r}", span)
    elif name == "variable":
        case.touch("session", rest)
        case.add(FindingGrade.UNKNOWN, "variable", "it sets a variable in a way that is not followed", span)
    elif name in ("alias", "function"):
        case.touch("session", rest)
        case.add(FindingGrade.DANGEROUS, "redefines", f"it changes what {rest!r} means", span)
    else:
        case.touch("write", text)
        case.add(FindingGrade.DANGEROUS, f"{name}_drive", f"it changes {text!r}", span)


# Variables of the environment that change only how things look.
HARMLESS_VARIABLES = frozenset(
    ("tz", "lang", "lc_all", "no_color", "force_color", "clicolor", "term", "columns", "lines", "ci", "debug", "verbose", "node_env",
     "python_env", "rust_backtrace", "rust_log", "pythonutf8", "pythonioencoding", "pythonunbuffered", "dotnet_nologo",
     "dotnet_cli_telemetry_optout", "dotnet_cli_ui_language")
)  # fmt: skip


def note_variable_change(case: LineEvaluation, name: str, span: Span | None = None) -> None:
    """Note what giving a value to a variable of the environment amounts to, for the programs that follow."""
    case.touch("session", name)
    if name.lower() not in HARMLESS_VARIABLES:
        case.add(FindingGrade.DANGEROUS, "variable", f"it sets the variable {name!r}, which programs may obey", span)


def is_temporary_path(case: LineEvaluation, path: PurePath, *, itself: bool = False) -> bool:
    """Return True if a path is in the directory for temporary files; `itself`: or is that directory."""
    if case.windows:
        homes = (PureWindowsPath(case.judging.home) / "AppData" / "Local" / "Temp",)
    else:
        homes = tuple(map(PurePosixPath, place_kinds.SHARED_TEMPORARY))
    return any(path.is_relative_to(folder) and (itself or path != folder) for folder in homes)


def note_delete(
    case: LineEvaluation,
    text: str | None,
    span: Span | None = None,
    *,
    guess: str = "",
    recursive: bool = False,
    bulk: bool = False,
) -> None:
    """Note what deleting a place amounts to. `text` None: it is not known; `guess` is it with nothing where something is not known.

    `bulk`: everything in the folder, not the folder. Deleting by a filter is deleting a pattern below the folder.
    """
    if text is None:
        _note_unknown_delete(case, guess, span, recursive=recursive)
        return
    drive = split_drive(text)
    if drive is not None and drive[0] != "filesystem":
        _note_drive_delete(case, *drive, text, span, recursive=recursive)
    else:
        _note_file_delete(case, drive[1] if drive is not None else text, span, recursive=recursive, bulk=bulk)


def _note_drive_delete(
    case: LineEvaluation, name: str, rest: str, text: str, span: Span | None, *, recursive: bool
) -> None:
    _note_drive_write(case, name, rest, text, span)
    if name in REGISTRY and recursive and WHOLE_HIVE.fullmatch(rest):
        case.add(
            FindingGrade.CATASTROPHIC,
            "deletes_system",
            f"it deletes {text!r}, without which the system does not run",
            span,
        )


def _note_file_delete(case: LineEvaluation, text: str, span: Span | None, *, recursive: bool, bulk: bool) -> None:
    found = _resolve_file(case, text, span, "delete")
    if found is None:
        return
    if recursive and is_fatal_delete(case, found):
        case.add(FindingGrade.CATASTROPHIC, "deletes_system", "it deletes the system or a home", span)
        return
    judging = case.judging
    if path_resolution.is_protected_path(found.path, judging.protected):
        case.add(FindingGrade.REFUSED, "own_files", "files by which Handrail judges are named in it", span)
    folder, last = _strip_wildcards(found)
    everything = bulk or last
    inside = path_resolution.is_inside_roots(folder, judging.workspace)
    if everything and any(folder in (PureWindowsPath(str(root)), root) for root in judging.workspace):
        case.add(FindingGrade.DANGEROUS, "deletes_workspace", "it deletes everything in the workspace", span)
    elif any(root.is_relative_to(folder) for root in _iter_workspace_roots(case, folder)):
        case.add(FindingGrade.DANGEROUS, "deletes_workspace", "it deletes the workspace or what is above it", span)
    elif (who := path_resolution.describe_autorun(found.path)) is not None:
        case.add(FindingGrade.DANGEROUS, "autorun", f"{text!r} is run or obeyed by {who} without being asked", span)
    elif inside or (is_temporary_path(case, folder, itself=not everything) and is_temporary_path(case, found.path)):
        case.add(FindingGrade.EFFECT, "delete_inside", f"it deletes {text!r}", span)
    else:
        case.add(FindingGrade.DANGEROUS, "delete_outside", f"{text!r} is outside the workspace", span)


def _iter_workspace_roots(case: LineEvaluation, folder: PurePath) -> Iterator[PurePath]:
    return (type(folder)(str(root)) for root in case.judging.workspace)


def _strip_wildcards(found: path_resolution.ResolvedPath) -> tuple[PurePath, bool]:
    """Return the directory that a path with trailing wildcards refers to, and True if it means all its contents."""
    path = found.path
    everything = False
    while path.name and MATCHES_EVERYTHING.fullmatch(path.name) and WILDCARD.search(path.name):
        path, everything = path.parent, True
    return path, everything


def _note_unknown_delete(case: LineEvaluation, guess: str, span: Span | None, *, recursive: bool) -> None:
    case.touch("delete", "")
    # An empty value in front of a separator leaves the root: what was meant below a folder then happens to the whole disk.
    if recursive and re.match(r"[\\/]|[A-Za-z]:[\\/]", guess):
        found = resolve_path(case, guess)
        if found is not None and is_fatal_delete(case, found):
            case.add(
                FindingGrade.CATASTROPHIC, "deletes_system", "with an empty value it deletes the system or a home", span
            )
            return
    case.add(FindingGrade.DANGEROUS, "unresolved", "it is not known what it deletes", span)


def is_fatal_delete(case: LineEvaluation, found: path_resolution.ResolvedPath) -> bool:
    """Return True if deleting all of it destroys a disk, the system or a home."""
    path, _ = _strip_wildcards(found)
    home = type(path)(str(case.judging.home))
    if home.is_relative_to(path):
        return True
    names = tuple(part.lower() for part in path.parts[1:])
    if not case.windows:
        return len(names) < 2 or (len(names) == 2 and names[0] in ("home", "users"))
    if not names:
        return True
    if len(names) == 1 or (len(names) == 2 and WILDCARD.search(names[1])):
        return any(is_glob_match(folder, names[0], if_long=True) for folder in SYSTEM_FOLDERS)
    return len(names) == 2 and (
        names[0] == "users" or names in (("windows", "system32"), ("windows", "system"), ("windows", "syswow64"))
    )


def note_run(case: LineEvaluation, text: str, span: Span | None = None, *, direct: bool = True) -> None:
    """Note what running a file, by its path, amounts to."""
    found = _resolve_file(case, text, span, "read") if split_drive(text) is None else None
    if found is None:
        case.add(FindingGrade.DANGEROUS, "runs_unknown", f"it runs {text!r}", span)
        return
    case.touch("execute", found.real)
    real = found.real.lower()
    if real in case.fetched or any(real == place.rpartition(".")[0] for place in case.fetched):
        case.add(FindingGrade.CATASTROPHIC, "network_code", RUNS_FETCHED, span)
    elif real in case.written:
        case.add(FindingGrade.DANGEROUS, "runs_written", "it runs a file that it has just written", span)
    elif path_resolution.is_inside_roots(found.path, case.judging.workspace):
        case.add(FindingGrade.EFFECT, "project_code", f"it runs {text!r}", span)
    elif not (direct and is_system_program(case, found.path)):
        case.add(
            FindingGrade.DANGEROUS, "runs_outside", f"{text!r} is a program outside the workspace and the system", span
        )


def note_fetched_run(case: LineEvaluation, text: str, span: Span | None = None) -> None:
    """Note the running of what a word names, if that has just been fetched."""
    found = resolve_path(case, text) if text else None
    if found is not None and found.real.lower() in case.fetched:
        case.add(FindingGrade.CATASTROPHIC, "network_code", RUNS_FETCHED, span)


def is_system_program(case: LineEvaluation, path: PurePath) -> bool:
    """Return True if a path is where only an administrator installs programs."""
    names = tuple(part.lower() for part in path.parts[1:])
    if not case.windows:
        return names[:1] in (("bin",), ("sbin",), ("usr",), ("opt",))
    if is_temporary_path(case, path) or names[:2] in (
        ("windows", "temp"),
        ("windows", "tasks"),
        ("windows", "tracing"),
    ):
        return False
    return bool(names) and names[0] in place_kinds.WINDOWS_PUBLIC


def is_in_workspace(case: LineEvaluation, text: str) -> bool:
    """Return True if a place is certainly in the workspace."""
    found = resolve_path(case, text)
    return (
        found is not None
        and found.refused is None
        and path_resolution.is_inside_roots(found.path, case.judging.workspace)
    )
