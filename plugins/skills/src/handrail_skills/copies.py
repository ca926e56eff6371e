"""Copies of plugins' skills in the person's own folder: to be edited, and brought up to date where nobody has."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from handrail import HandrailError
from handrail.config.places import Places, locked, private_folder, write_private
from handrail_skills.library import user_shelf
from handrail_skills.skill import Skill, read_skill

Outcome = Literal["updated", "current", "edited"]
Entries = TypeAdapter(dict[str, str])


@dataclass(frozen=True, slots=True)
class Copies:
    """By name, what each copy was when it was made."""

    places: Places

    @property
    def file(self) -> Path:
        return self.places.data / "skill-copies.json"

    def make(self, skill: Skill) -> Path:
        """Copy a skill to the person's folder; where it is then. One that is there is not overwritten."""
        target = user_shelf(self.places) / skill.name
        if target.exists():
            raise HandrailError(f"{str(target)!r} is there already", hint="edit it there, or remove it first")
        with locked(self.file):
            _copy(skill, target)
            self._write({**self._read(), skill.name: skill.fingerprint()})
        return target

    def update(self, skill: Skill) -> Outcome | None:
        """Bring the copy of a plugin's skill up to date unless it was edited; None where there is no copy."""
        target = user_shelf(self.places) / skill.name
        with locked(self.file):
            made = self._read().get(skill.name)
            if made is None or not target.is_dir():
                return None
            if read_skill(target, "user", "you").fingerprint() != made:
                return "edited"
            if (now := skill.fingerprint()) == made:
                return "current"
            _copy(skill, target)
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
        write_private(self.file, json.dumps(dict(known), indent=2, sort_keys=True) + "\n")


def _copy(skill: Skill, target: Path) -> None:
    """The skill's files at `target`, in place of what is there, whole or not at all."""
    shelf = private_folder(target.parent)
    with tempfile.TemporaryDirectory(dir=shelf, prefix=".copying-") as beside:
        fresh = Path(beside, skill.name)
        skill.put(fresh)
        if target.exists():
            target.rename(Path(beside, "before"))
        fresh.rename(target)
