"""The skills that one session may know: by name, the nearest first, read again where a folder has changed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from handrail import HandrailError, NotFound
from handrail.config.trust import is_trusted
from handrail.fs.app_dirs import AppDirs
from handrail.text import format_suggestion
from handrail_skills.skill import Skill, SkillOrigin, read_skill
from handrail_skills.skill_document import SKILL_FILE

# Where a project and a person keep theirs: a folder of ours, and the one that several agents share.
PROJECT_FOLDERS = (".handrail/skills", ".agents/skills")


@dataclass(frozen=True, slots=True)
class SkillFolder:
    """Folder that contains skills, each in a folder of its own."""

    folder: Path
    origin: SkillOrigin
    of: str


@dataclass(frozen=True, slots=True)
class BrokenSkill:
    """A folder that should hold a skill, and why it cannot be used."""

    folder: Path
    why: str


FileStamp = tuple[int, int, int, int]


@dataclass(slots=True)
class SkillLibrary:
    """Skills on several shelves; of two with one name the one on the earlier shelf counts."""

    shelves: Sequence[SkillFolder]
    _known: dict[Path, tuple[FileStamp, Skill | BrokenSkill]] = field(
        default_factory=dict[Path, "tuple[FileStamp, Skill | BrokenSkill]"]
    )

    def skills(self) -> dict[str, Skill]:
        """Return the skills by name; of several with the same name, the first in the order of the skill folders."""
        found: dict[str, Skill] = {}
        for each in self._all():
            if isinstance(each, Skill):
                found.setdefault(each.name, each)
        return found

    def shadowed(self) -> list[tuple[Skill, Skill]]:
        """Return the skills that are shadowed, each with the one that takes precedence."""
        found = [each for each in self._all() if isinstance(each, Skill)]
        counting = {each.name: each for each in reversed(found)}
        return [(each, counting[each.name]) for each in found if each is not counting[each.name]]

    def broken(self) -> list[BrokenSkill]:
        return [each for each in self._all() if isinstance(each, BrokenSkill)]

    def get(self, name: str) -> Skill:
        """Return the skill with that name; `NotFound` names the nearest, or says what is wrong with its folder."""
        skills = self.skills()
        if name in skills:
            return skills[name]
        for broken in self.broken():
            if broken.folder.name == name:
                raise NotFound(f"the skill {name!r} cannot be used: {broken.why}")
        raise NotFound(f"there is no skill {name!r}{format_suggestion(name, skills)}")

    def has(self, name: str) -> bool:
        """Return True if there is a folder with that name and a SKILL.md in it; nothing is read."""
        return any((shelf.folder / name / SKILL_FILE).is_file() for shelf in self.shelves)

    def _all(self) -> Iterator[Skill | BrokenSkill]:
        for shelf in self.shelves:
            for folder in _list_folders(shelf.folder):
                if (each := self._read(folder, shelf)) is not None:
                    yield each

    def _read(self, folder: Path, shelf: SkillFolder) -> Skill | BrokenSkill | None:
        """Return the skill in the folder, the reason it is broken, or None if the folder has no SKILL.md.

        SKILL.md is read again only when it has changed; other files are read when they are first needed.
        """
        stamp = _get_stamp(folder / SKILL_FILE)
        if stamp is None:
            return None
        known = self._known.get(folder)
        if known is None or known[0] != stamp:
            known = self._known[folder] = stamp, _read_folder(folder, shelf)
        return replace(known[1]) if isinstance(known[1], Skill) else known[1]


def _read_folder(folder: Path, shelf: SkillFolder) -> Skill | BrokenSkill:
    try:
        return read_skill(folder, shelf.origin, shelf.of)
    except HandrailError as exc:
        return BrokenSkill(folder, f"{exc}; {exc.hint}" if exc.hint else str(exc))


def _list_folders(shelf: Path) -> list[Path]:
    try:
        with os.scandir(shelf) as entries:
            return sorted(Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False))
    except OSError:
        return []


def _get_stamp(file: Path) -> FileStamp | None:
    try:
        found = file.lstat()
    except OSError:
        return None
    # Whoever writes a file can set when it was modified, but not when it was changed.
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def get_user_folder(places: AppDirs) -> Path:
    """Return the folder of the user's own skills and those that agents write; other tools cannot write there."""
    return places.config / "skills"


def list_skill_folders(
    places: AppDirs, workspace: Sequence[Path], brought: Sequence[tuple[Path, str]]
) -> tuple[SkillFolder, ...]:
    """Return the skill folders of a session: those of trusted projects, the user's, and those of plugins.

    `brought` are the plugins' folders, each with the name of its plugin.
    """
    projects = [root for root in workspace if is_trusted(root, places=places)]
    return (
        *(SkillFolder(root / folder, "project", str(root)) for root in projects for folder in PROJECT_FOLDERS),
        SkillFolder(get_user_folder(places), "user", "you"),
        *(SkillFolder(folder, "plugin", plugin) for folder, plugin in brought),
    )
