"""The skills that one session may know: by name, the nearest first, read again where a folder has changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from handrail import HandrailError, NotFound
from handrail.config.places import Places
from handrail.config.trust import is_trusted
from handrail.words import nearest
from handrail_skills.document import FILE
from handrail_skills.skill import Origin, Skill, read_skill

# Where a project and a person keep theirs: a folder of ours, and the one that several agents share.
IN_PROJECT = (".handrail/skills", ".agents/skills")


@dataclass(frozen=True, slots=True)
class Shelf:
    """A folder that holds skills, each in a folder of its own."""

    folder: Path
    origin: Origin
    of: str


@dataclass(frozen=True, slots=True)
class Broken:
    """A folder that should hold a skill, and why it cannot be used."""

    folder: Path
    why: str


Stamp = tuple[int, int, int, int]


@dataclass(slots=True)
class Library:
    """Skills on several shelves; of two with one name the one on the earlier shelf counts."""

    shelves: Sequence[Shelf]
    _known: dict[Path, tuple[Stamp, Skill | Broken]] = field(default_factory=dict[Path, "tuple[Stamp, Skill | Broken]"])

    def skills(self) -> dict[str, Skill]:
        """By name, in the order of the shelves."""
        found: dict[str, Skill] = {}
        for each in self._all():
            if isinstance(each, Skill):
                found.setdefault(each.name, each)
        return found

    def shadowed(self) -> list[tuple[Skill, Skill]]:
        """Those that do not count, each with the one that does."""
        found = [each for each in self._all() if isinstance(each, Skill)]
        counting = {each.name: each for each in reversed(found)}
        return [(each, counting[each.name]) for each in found if each is not counting[each.name]]

    def broken(self) -> list[Broken]:
        return [each for each in self._all() if isinstance(each, Broken)]

    def get(self, name: str) -> Skill:
        """The skill of that name; `NotFound` names the nearest, or says what is wrong with its folder."""
        skills = self.skills()
        if name in skills:
            return skills[name]
        for broken in self.broken():
            if broken.folder.name == name:
                raise NotFound(f"the skill {name!r} cannot be used: {broken.why}")
        raise NotFound(f"there is no skill {name!r}{nearest(name, skills)}")

    def has(self, name: str) -> bool:
        """Whether there is a folder of that name with a SKILL.md; nothing is read."""
        return any((shelf.folder / name / FILE).is_file() for shelf in self.shelves)

    def _all(self) -> Iterator[Skill | Broken]:
        for shelf in self.shelves:
            for folder in _folders(shelf.folder):
                if (each := self._read(folder, shelf)) is not None:
                    yield each

    def _read(self, folder: Path, shelf: Shelf) -> Skill | Broken | None:
        """What is in the folder: its SKILL.md as it was read when it last changed, its other files as they are when they are asked for."""
        stamp = _stamp(folder / FILE)
        if stamp is None:
            return None
        known = self._known.get(folder)
        if known is None or known[0] != stamp:
            known = self._known[folder] = stamp, _read(folder, shelf)
        return replace(known[1]) if isinstance(known[1], Skill) else known[1]


def _read(folder: Path, shelf: Shelf) -> Skill | Broken:
    try:
        return read_skill(folder, shelf.origin, shelf.of)
    except HandrailError as exc:
        return Broken(folder, f"{exc}; {exc.hint}" if exc.hint else str(exc))


def _folders(shelf: Path) -> list[Path]:
    try:
        with os.scandir(shelf) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _stamp(file: Path) -> Stamp | None:
    try:
        found = file.lstat()
    except OSError:
        return None
    # Whoever writes a file can set when it was modified, but not when it was changed.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def user_shelf(places: Places) -> Path:
    """Where a person's own skills are, and those that agents write: tools of other kinds cannot write there."""
    return places.config / "skills"


def shelves(places: Places, workspace: Sequence[Path], brought: Sequence[tuple[Path, str]]) -> tuple[Shelf, ...]:
    """The shelves of a session: those of trusted projects, the person's, those of plugins (`brought`, with who brought them)."""
    projects = [root for root in workspace if is_trusted(root, places=places)]
    return (
        *(Shelf(root / folder, "project", str(root)) for root in projects for folder in IN_PROJECT),
        Shelf(user_shelf(places), "user", "you"),
        *(Shelf(folder, "plugin", plugin) for folder, plugin in brought),
    )
