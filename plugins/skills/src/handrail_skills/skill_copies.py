"""Copies of plugins' skills in the user's own folder: to be edited, and updated as long as they have not been."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from handrail import HandrailError
from handrail.fs.app_dirs import AppDirs, ensure_private_folder, hold_file_lock, write_private_file
from handrail_skills.skill import Skill, read_skill
from handrail_skills.skill_library import get_user_folder

UpdateOutcome = Literal["updated", "current", "edited"]
Entries = TypeAdapter(dict[str, str])


@dataclass(frozen=True, slots=True)
class SkillCopies:
    """By name, what each copy was when it was made."""

    places: AppDirs

    @property
    def file(self) -> Path:
        return self.places.data / "skill-copies.json"

    def make(self, skill: Skill) -> Path:
        """Copy a skill to the user's folder and return its path there; an existing one is not overwritten."""
        target = get_user_folder(self.places) / skill.name
        if target.exists():
            raise HandrailError(f"{str(target)!r} is there already", hint="edit it there, or remove it first")
        with hold_file_lock(self.file):
            _copy_skill(skill, target)
            self._write({**self._read(), skill.name: skill.fingerprint()})
        return target

    def update(self, skill: Skill) -> UpdateOutcome | None:
        """Update the copy of a plugin's skill unless it was edited; None if it has not been copied."""
        target = get_user_folder(self.places) / skill.name
        with hold_file_lock(self.file):
            made = self._read().get(skill.name)
            if made is None or not target.is_dir():
                return None
            if read_skill(target, "user", "you").fingerprint() != made:
                return "edited"
            if (now := skill.fingerprint()) == made:
                return "current"
            _copy_skill(skill, target)
            self._write({**self._read(), skill.name: now})
            return "updated"

    def _read(self) -> Mapping[str, str]:
        try:
            return Entries.validate_json(self.file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError) as exc:
            raise HandrailError(f"{str(self.file)!r} cannot be read", hint="remove it") from exc

    def _write(self, known: Mapping[str, str]) -> None:
        write_private_file(self.file, json.dumps(dict(known), indent=2, sort_keys=True) + "\n")


def _copy_skill(skill: Skill, target: Path) -> None:
    """Replace `target` with the skill's files, completely or not at all."""
    shelf = ensure_private_folder(target.parent)
    with tempfile.TemporaryDirectory(dir=shelf, prefix=".copying-") as beside:
        fresh = Path(beside, skill.name)
        skill.put(fresh)
        before = Path(beside, "before")
        if target.exists():
            target.rename(before)
        try:
            fresh.rename(target)
        except OSError:
            if before.exists():
                before.rename(target)
            raise
