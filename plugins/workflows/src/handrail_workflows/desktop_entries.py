"""Installed programs as described by their desktop entries.

Standards: Desktop Entry Specification 1.5, Desktop Application Autostart's directories, MIME Applications
Associations 1.0.
"""

from __future__ import annotations

import mimetypes
import os
import re
import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePath

from handrail.text import fold_text
from handrail_workflows.entry_command import CommandLine, split_command, unescape_value

GROUP_HEADER = re.compile(r"^\[(.+)\]\s*$")
ACTION_PREFIX = "Desktop Action "
# Where programs of other package systems put theirs, which is not always in XDG_DATA_DIRS.
EXPORTED_SHARES = ("/var/lib/flatpak/exports/share", "/var/lib/snapd/desktop")
# An entry that is longer is none; those of the largest programs, in a hundred languages, have a tenth of it.
MAX_ENTRY_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class DesktopEntry:
    """Program that can be started, or one of the additional actions that it offers (`action`).

    `names` are its names in every language, `generic` its generic names, likewise; `kinds` the MIME types that it
    opens. `program` is the file name of the program, for a sandboxed one that inside the sandbox. `hidden`: menus here
    do not show it.
    """

    id: str
    names: tuple[str, ...]
    generic: tuple[str, ...]
    command: CommandLine
    program: str
    tried: str
    window_class: str
    kinds: frozenset[str]
    hidden: bool
    terminal: bool
    folder: str | None
    action: bool = False

    def lacks(self, path: str | None) -> str | None:
        """Return the missing program that is needed to start it, or None; `path` is the search path for programs."""
        needed = (self.tried, self.command.program)
        return next((program for program in needed if program and shutil.which(program, path=path) is None), None)


def list_entry_folders(environment: Mapping[str, str]) -> list[Path]:
    """Return the folders of desktop entries, in order of precedence."""
    home = Path(environment.get("HOME") or Path.home())
    own = environment.get("XDG_DATA_HOME") or str(home / ".local/share")
    shared = (environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":")
    found = [own, f"{own}/flatpak/exports/share", *shared, *EXPORTED_SHARES]
    return [Path(folder) / "applications" for folder in dict.fromkeys(found) if folder]


def read_all_entries(environment: Mapping[str, str]) -> list[DesktopEntry]:
    """Read all desktop entries; of several with the same ID, the one in the folder with the highest precedence."""
    found: dict[str, list[DesktopEntry]] = {}
    for folder in list_entry_folders(environment):
        for path in sorted(folder.rglob("*.desktop")):
            id = "-".join(path.relative_to(folder).parts).removesuffix(".desktop")
            if id not in found:
                found[id] = list(read_entry(id, path, environment))
    return [entry for those in found.values() for entry in those]


def read_entry(id: str, path: Path, environment: Mapping[str, str]) -> Iterator[DesktopEntry]:
    """Yield the program that a file describes, followed by its actions; nothing if it may not be started."""
    try:
        # A pipe would be waited for.
        if not path.is_file() or path.stat().st_size > MAX_ENTRY_BYTES:
            return
        groups = _parse_groups(path.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return
    main = groups.get("Desktop Entry", {})
    if main.get("Type") != "Application" or main.get("Hidden") == "true":
        return
    # Without a command it is started over the session bus, where it has its id as its name.
    bus = f"gapplication launch {shlex.quote(id)} %U" if main.get("DBusActivatable") == "true" else ""
    entry = _build_entry(id, path, main, main.get("Exec") or bus, environment)
    if entry is None:
        return
    yield entry
    for name in filter(None, main.get("Actions", "").split(";")):
        values = groups.get(f"{ACTION_PREFIX}{name}", {})
        described = _build_entry(f"{id}:{name}", path, {**main, **values}, values.get("Exec", ""), environment)
        if described is not None:
            names = tuple(unescape_value(value) for value in _all_translations("Name", values))
            yield replace(described, names=names or (name,), generic=(), kinds=frozenset(), action=True)


def _build_entry(
    id: str, path: Path, values: Mapping[str, str], command: str, environment: Mapping[str, str]
) -> DesktopEntry | None:
    try:
        words = split_command(command)
    # A quote does not end.
    except ValueError:
        return None
    # What is nothing but variables starts no program.
    if all("=" in word for word in words):
        return None
    names = tuple(unescape_value(value) for value in _all_translations("Name", values)) or (id,)
    line = CommandLine(words, _translate_value("Name", values, environment) or names[0], values.get("Icon", ""), path)
    inside = next((word.partition("=")[2] for word in words if word.startswith("--command=")), "")
    by_id = "X-Flatpak" in values or "Exec" not in values
    return DesktopEntry(
        id,
        names,
        tuple(unescape_value(value) for value in _all_translations("GenericName", values)),
        line,
        PurePath((inside or id.rpartition(".")[2]) if by_id else line.program).name,
        values.get("TryExec", ""),
        values.get("StartupWMClass", ""),
        frozenset(kind for kind in values.get("MimeType", "").split(";") if kind),
        values.get("NoDisplay") == "true" or not _is_shown(values, environment),
        values.get("Terminal") == "true",
        values.get("Path") or None,
    )


def _is_shown(values: Mapping[str, str], environment: Mapping[str, str]) -> bool:
    """Return True if the menus of the current desktop environment show the entry."""
    here = set(environment.get("XDG_CURRENT_DESKTOP", "").split(":"))
    if "OnlyShowIn" in values:
        return not here.isdisjoint(filter(None, values["OnlyShowIn"].split(";")))
    return here.isdisjoint(filter(None, values.get("NotShowIn", "").split(";")))


def _all_translations(key: str, values: Mapping[str, str]) -> list[str]:
    """Return a value in every language, the untranslated one first."""
    found = [value for each, value in values.items() if re.fullmatch(rf"{key}\[.+\]", each)]
    return [values[key], *found] if key in values else found


def _translate_value(key: str, values: Mapping[str, str], environment: Mapping[str, str]) -> str:
    languages = next(filter(None, map(environment.get, ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "LANG"))), "")
    for language in languages.split(":"):
        whole = language.partition(".")[0]
        for short in (whole, whole.partition("_")[0]):
            if f"{key}[{short}]" in values:
                return unescape_value(values[f"{key}[{short}]"])
    return unescape_value(values.get(key, ""))


def _parse_groups(text: str) -> dict[str, dict[str, str]]:
    groups: dict[str, dict[str, str]] = {}
    values: dict[str, str] = {}
    for line in text.splitlines():
        if (found := GROUP_HEADER.match(line)) is not None:
            values = groups.setdefault(found[1], {})
        elif "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            values[key.strip()] = value.strip()
    return groups


def find_entries(found: Sequence[DesktopEntry], name: str, path: str | None = None) -> list[DesktopEntry]:
    """Return the programs that a user may mean by a name, in any of their languages.

    Only the best matches are returned, several if ambiguous; of these, the ones that can be started, if there are any.
    `path` is the search path for programs.
    """
    sought = fold_text(name).removesuffix(".desktop")
    programs = [entry for entry in found if not entry.action]
    shown = [entry for entry in programs if not entry.hidden]
    tiers = (
        [e for e in found if fold_text(e.id) == sought],
        *(tier for those in (shown, programs) for tier in _match_tiers(those, sought)),
        [e for e in shown if any(fold_text(n) == sought for n in e.generic)],
        [e for e in found if e.action and any(fold_text(n) == sought for n in e.names)],
        [e for e in shown if any(sought in fold_text(n) for n in e.names)],
    )
    best = next((tier for tier in tiers if tier), list[DesktopEntry]())
    return [entry for entry in best if entry.lacks(path) is None] or best


def _match_tiers(found: Sequence[DesktopEntry], sought: str) -> Iterator[list[DesktopEntry]]:
    yield [e for e in found if any(fold_text(n) == sought for n in e.names)]
    yield [e for e in found if fold_text(e.window_class) == sought]
    yield [e for e in found if fold_text(e.program) == sought]
    yield [e for e in found if fold_text(e.id).rpartition(".")[2] == sought]


def find_opener(found: Sequence[DesktopEntry], path: PurePath, environment: Mapping[str, str]) -> DesktopEntry | None:
    """Return the program that opens a file: the user's choice, else the one with its type and the fewest others.

    None if no program fits.
    """
    kind = mimetypes.guess_type(path.name)[0] or "text/plain"
    able = [entry for entry in found if not entry.action and entry.lacks(environment.get("PATH")) is None]
    by_id = {entry.id: entry for entry in able}
    for id in _iterate_default_ids(kind, environment):
        if id in by_id:
            return by_id[id]
    kinds = [kind, "text/plain"] if kind.startswith("text/") else [kind]
    fitting = ([e for e in able if each in e.kinds and not e.terminal and not e.hidden] for each in kinds)
    return next((min(those, key=lambda e: len(e.kinds)) for those in fitting if those), None)


def _iterate_default_ids(kind: str, environment: Mapping[str, str]) -> Iterator[str]:
    home = Path(environment.get("HOME") or Path.home())
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    system = [Path(folder) for folder in (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")]
    for folder in (config, *system, *list_entry_folders(environment)):
        yield from _read_mime_defaults(folder / "mimeapps.list", kind)


def _read_mime_defaults(path: Path, kind: str) -> Iterator[str]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    group = ""
    for line in lines:
        if (found := GROUP_HEADER.match(line)) is not None:
            group = found[1]
        elif group == "Default Applications" and line.partition("=")[0].strip() == kind:
            for id in line.partition("=")[2].split(";"):
                if id.strip():
                    yield id.strip().removesuffix(".desktop").replace(os.sep, "-")
