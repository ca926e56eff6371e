"""Installed programs as their desktop entries tell of them.

Standards: Desktop Entry Specification 1.5, Desktop Application Autostart's directories, MIME Applications Associations 1.0.
"""

from __future__ import annotations

import mimetypes
import os
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

GROUP = re.compile(r"^\[(.+)\]\s*$")
# Where programs of other package systems put theirs, which is not always in XDG_DATA_DIRS.
EXPORTED = ("/var/lib/flatpak/exports/share", "/var/lib/snapd/desktop")
FILES = frozenset(("%f", "%F", "%u", "%U"))


@dataclass(frozen=True, slots=True)
class Entry:
    """A program that can be started.

    `names` are its names in every language, `generic` what kind of program it is, likewise; `kinds` the MIME types that it opens.
    """

    id: str
    path: Path
    names: tuple[str, ...]
    generic: tuple[str, ...]
    command: tuple[str, ...]
    window_class: str
    kinds: frozenset[str]
    hidden: bool
    terminal: bool
    folder: str | None

    @property
    def program(self) -> str:
        """The file name of the program; of a Flatpak the application's."""
        words = [word for word in self.command if "=" not in word]
        names = [PurePath(word).name for word in words]
        return names[1] if names[:1] == ["env"] and len(names) > 1 else names[0]

    def argv(self, files: Sequence[str] = ()) -> list[str]:
        """Its command with these files in the place that it has for them."""
        made: list[str] = []
        placed = False
        for word in self.command:
            if word in FILES:
                made += files
                placed = True
            elif word == "%c":
                made.append(self.names[0])
            elif word == "%k":
                made.append(str(self.path))
            elif not re.fullmatch("%[a-zA-Z]", word):
                made.append(word.replace("%%", "%"))
        return made if placed else [*made, *files]


def folders(environment: Mapping[str, str]) -> list[Path]:
    """The folders of desktop entries, the strongest first."""
    home = Path(environment.get("HOME") or Path.home())
    own = environment.get("XDG_DATA_HOME") or str(home / ".local/share")
    shared = (environment.get("XDG_DATA_DIRS") or "/usr/local/share:/usr/share").split(":")
    found = [own, str(home / ".local/share/flatpak/exports/share"), *shared, *EXPORTED]
    return [Path(folder) / "applications" for folder in dict.fromkeys(found) if folder]


def entries(environment: Mapping[str, str]) -> list[Entry]:
    """Every program; of two with one id the stronger."""
    found: dict[str, Entry | None] = {}
    for folder in folders(environment):
        for path in sorted(folder.rglob("*.desktop")):
            id = "-".join(path.relative_to(folder).parts).removesuffix(".desktop")
            if id not in found:
                found[id] = read_entry(id, path)
    return [entry for entry in found.values() if entry is not None]


def read_entry(id: str, path: Path) -> Entry | None:
    """The entry in a file; None where that describes no program that may be started."""
    try:
        values = dict(_values(path.read_text(encoding="utf-8", errors="replace")))
        command = tuple(shlex.split(values.get("Exec", "")))
    # Unreadable, or with quotes that do not end.
    except (OSError, ValueError):
        return None
    if values.get("Type") != "Application" or values.get("Hidden") == "true" or not command:
        return None
    names = [value for key, value in values.items() if re.fullmatch(r"Name(\[.+\])?", key)]
    generic = [value for key, value in values.items() if re.fullmatch(r"GenericName(\[.+\])?", key)]
    return Entry(
        id,
        path,
        tuple(names or [id]),
        tuple(generic),
        command,
        values.get("StartupWMClass", ""),
        frozenset(kind for kind in values.get("MimeType", "").split(";") if kind),
        values.get("NoDisplay") == "true",
        values.get("Terminal") == "true",
        values.get("Path") or None,
    )


def _values(text: str) -> Iterator[tuple[str, str]]:
    group = ""
    for line in text.splitlines():
        if (found := GROUP.match(line)) is not None:
            group = found[1]
        elif group == "Desktop Entry" and "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            yield key.strip(), value.strip()


def named(found: Sequence[Entry], name: str) -> list[Entry]:
    """The programs that a person may mean by a name, in any of their languages; the best fit only, several when it is not clear."""
    folded = name.casefold().removesuffix(".desktop")
    shown = [entry for entry in found if not entry.hidden]
    tiers = (
        [e for e in found if e.id.casefold() == folded],
        [e for e in shown if any(n.casefold() == folded for n in e.names)],
        [e for e in shown if e.window_class.casefold() == folded],
        [e for e in shown if e.program.casefold() == folded],
        [e for e in shown if e.id.casefold().rpartition(".")[2] == folded],
        [e for e in shown if any(n.casefold() == folded for n in e.generic)],
        [e for e in shown if any(folded in n.casefold() for n in e.names)],
    )
    return next((tier for tier in tiers if tier), list[Entry]())


def opener(found: Sequence[Entry], path: PurePath, environment: Mapping[str, str]) -> Entry | None:
    """The program that a file is opened with: the person's choice, else the one that takes its type and the fewest others."""
    kind = mimetypes.guess_type(path.name)[0] or "text/plain"
    by_id = {entry.id: entry for entry in found}
    for id in _chosen(kind, environment):
        if id in by_id:
            return by_id[id]
    kinds = [kind, "text/plain"] if kind.startswith("text/") else [kind]
    fitting = ([e for e in found if each in e.kinds and not e.terminal and not e.hidden] for each in kinds)
    return next((min(those, key=lambda e: len(e.kinds)) for those in fitting if those), None)


def _chosen(kind: str, environment: Mapping[str, str]) -> Iterator[str]:
    home = Path(environment.get("HOME") or Path.home())
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    system = [Path(folder) for folder in (environment.get("XDG_CONFIG_DIRS") or "/etc/xdg").split(":")]
    for folder in (config, *system, *folders(environment)):
        yield from _listed(folder / "mimeapps.list", kind)


def _listed(path: Path, kind: str) -> Iterator[str]:
    try:
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return
    group = ""
    for line in lines:
        if (found := GROUP.match(line)) is not None:
            group = found[1]
        elif group == "Default Applications" and line.partition("=")[0].strip() == kind:
            for id in line.partition("=")[2].split(";"):
                if id.strip():
                    yield id.strip().removesuffix(".desktop").replace(os.sep, "-")
