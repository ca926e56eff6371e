"""Skills that an agent may load, as enabled by the user.

Enabling covers the files as they are at that moment: a skill that has changed since must be enabled again.
"""

from __future__ import annotations

import json
import stat
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import StringConstraints, TypeAdapter, ValidationError

from handrail import HandrailError
from handrail.fs.app_dirs import AppDirs, hold_file_lock, write_private_file
from handrail_skills.skill import Skill

# By name, the fingerprint that was enabled; empty: a person has not looked at it yet, or has disabled it.
Entries = TypeAdapter(dict[str, Annotated[str, StringConstraints(pattern=r"^([0-9a-f]{64})?$")]])
MAX_STATE_BYTES = 1_048_576
ENABLE_HINT = "a person enables it: handrail skills enable {name}"


@dataclass(frozen=True, slots=True)
class EnabledSkills:
    """Skills enabled by name in the settings, and by the file that `handrail skills enable` writes."""

    file: Path
    named: Collection[str]

    @classmethod
    def of(cls, places: AppDirs, named: Collection[str]) -> EnabledSkills:
        return cls(places.data / "skills.json", named)

    def names(self) -> set[str]:
        """Return the names of enabled skills, without checking if they have changed since."""
        entries = self._read()
        return {name for name in {*self.named, *entries} if entries.get(name) != ""}

    def refusal(self, skill: Skill) -> str | None:
        """Return why an agent may not load a skill, or None if it may; an unreadable skill may not be loaded."""
        try:
            return self._refusal(skill)
        except HandrailError as exc:
            return f"{exc}; {exc.hint}" if exc.hint else str(exc)

    def _refusal(self, skill: Skill) -> str | None:
        cure = ENABLE_HINT.format(name=skill.name)
        pinned = self._read().get(skill.name)
        if pinned == "":
            return f"it waits for a person to look at it, or was disabled; {cure}"
        if pinned is not None:
            return None if pinned == skill.fingerprint() else f"it has changed since it was enabled; {cure}"
        if skill.name not in self.named:
            return f"it is not enabled; {cure}"
        if skill.origin == "plugin":
            return None
        if skill.origin == "project":
            return f"it lies in the project, where agents can write, so its name in the configuration is not enough; {cure}"
        return f"it has code, so its name in the configuration is not enough; {cure}" if skill.has_code else None

    def enable(self, skill: Skill) -> None:
        """Let agents load it as it is now."""
        self._change(lambda known: {**known, skill.name: skill.fingerprint()})

    def withhold(self, name: str) -> None:
        """Prevent agents from loading a skill, regardless of the settings."""
        self._change(lambda known: {**known, name: ""})

    def _change(self, change: Callable[[Mapping[str, str]], Mapping[str, str]]) -> None:
        with hold_file_lock(self.file):
            write_private_file(self.file, json.dumps(change(self._read()), indent=2, sort_keys=True) + "\n")

    def _read(self) -> Mapping[str, str]:
        try:
            found = self.file.stat()
            if (
                not stat.S_ISREG(found.st_mode)
                or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
                or found.st_size > MAX_STATE_BYTES
            ):
                raise HandrailError(f"{str(self.file)!r} is no file that only you can change", hint="remove it")
            return Entries.validate_json(self.file.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValidationError) as exc:
            raise HandrailError(
                f"{str(self.file)!r}, which says what skills are enabled, cannot be read", hint="remove it"
            ) from exc
