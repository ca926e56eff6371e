"""One skill as it lies in its folder: what it is, what it holds, and what it is known again by."""

from __future__ import annotations

import hashlib
import json
import os
import stat
import unicodedata
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from handrail_skills.skill_document import MAX_DOCUMENT_BYTES, SKILL_FILE, SkillDocument, SkillError, parse_document

if TYPE_CHECKING:
    from handrail.plans.plan_file import ReplayPlan

SkillOrigin = Literal["project", "user", "plugin"]

# Of one skill; what is larger is no set of instructions and helpers.
MAX_SKILL_FILES = 2_000
MAX_SKILL_BYTES = 32 * 2**20
WORKFLOWS, TOOLS, SCRIPTS = "workflows", "tools", "scripts"
WORKFLOW_ENDINGS = (".yaml", ".yml")
# What programs leave behind and is no part of it.
LEFTOVERS = frozenset(("__pycache__", ".git", ".DS_Store"))


@dataclass(frozen=True, slots=True)
class SkillFile:
    """Content of a file, and True in `runs` if its owner may execute it."""

    data: bytes
    runs: bool


@dataclass(frozen=True)
class Skill:
    """A skill that can be read. `of` is the plugin that brought it, or the project or person whose folder it is in."""

    folder: Path
    document: SkillDocument
    origin: SkillOrigin
    of: str

    @property
    def name(self) -> str:
        return self.document.frontmatter.name

    @property
    def description(self) -> str:
        return " ".join(self.document.frontmatter.description.split())

    @property
    def source(self) -> str:
        """Source under which the skill's tools are loaded."""
        return f"skill:{self.name}"

    @cached_property
    def files(self) -> tuple[str, ...]:
        """Files of the skill as relative paths, sorted.

        Raises `SkillError` for a path that leads out of the skill, is not a file or has a control character, and if
        there are too many files.
        """
        return tuple(sorted(_walk_files(self.folder)))

    @cached_property
    def held(self) -> Mapping[str, SkillFile]:
        """Contents of the files, read on first access, so that the fingerprint covers exactly what is used."""
        return {file: _read_file(self.folder / file) for file in self.files}

    @property
    def workflows(self) -> tuple[str, ...]:
        """The names of its workflow files."""
        named = (Path(file) for file in self._in(WORKFLOWS) if file.endswith(WORKFLOW_ENDINGS))
        return tuple(path.relative_to(WORKFLOWS).with_suffix("").as_posix() for path in named)

    @property
    def modules(self) -> tuple[str, ...]:
        """Its Python files that define tools."""
        return tuple(file for file in self._in(TOOLS) if file.endswith(".py") and not Path(file).name.startswith("_"))

    @property
    def scripts(self) -> tuple[str, ...]:
        return self._in(SCRIPTS)

    @property
    def resources(self) -> tuple[str, ...]:
        """Files that can be read and do not belong to any other kind."""
        others = {
            SKILL_FILE,
            *self.scripts,
            *self._in(TOOLS),
            *(f for f in self._in(WORKFLOWS) if f.endswith(WORKFLOW_ENDINGS)),
        }
        return tuple(file for file in self.files if file not in others)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of content in the skill, one word each."""
        held = {
            "workflows": self.workflows,
            "tools": self.modules,
            "scripts": self.scripts,
            "resources": self.resources,
        }
        return ("instructions", *(kind for kind, files in held.items() if files))

    @property
    def has_code(self) -> bool:
        return bool(self._in(TOOLS) or self.scripts)

    def workflow(self, name: str) -> ReplayPlan:
        """Return one of the skill's workflows; `ConfigError` says what is wrong with it.

        Raises `SkillError` if the skill has no workflow with this name.
        """
        for file in self._in(WORKFLOWS):
            if file in (f"{WORKFLOWS}/{name}{ending}" for ending in WORKFLOW_ENDINGS):
                from handrail.plans.plan_file import parse_plan

                return parse_plan(self.held[file].data, where=self.folder / file)
        known = ", ".join(self.workflows) or "none"
        raise SkillError(f"the skill {self.name!r} has no workflow {name!r}; there are: {known}")

    def fingerprint(self) -> str:
        """Return a hash of the complete content: any change of a name, byte or permission to execute changes it."""
        content = [(file, held.runs, hashlib.sha256(held.data).hexdigest()) for file, held in self.held.items()]
        # In JSON no name can be taken for several entries, nor for a part of one.
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()

    def put(self, folder: Path) -> None:
        """Write its files, as they are held, into a folder."""
        for file, held in self.held.items():
            path = folder / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(held.data)
            path.chmod(0o755 if held.runs else 0o644)

    def _in(self, folder: str) -> tuple[str, ...]:
        return tuple(file for file in self.files if file.startswith(f"{folder}/"))


def read_skill(folder: Path, origin: SkillOrigin, of: str) -> Skill:
    """Read the skill in a folder; `SkillError` says what is wrong with it."""
    document = parse_document(read_limited(folder / SKILL_FILE, MAX_DOCUMENT_BYTES + 1))
    if document.frontmatter.name != folder.name:
        raise SkillError(
            f"the skill in {str(folder)!r} calls itself {document.frontmatter.name!r}",
            hint="the folder and the name in the frontmatter are the same",
        )
    return Skill(folder, document, origin, of)


def read_limited(path: Path, most: int) -> bytes:
    """At most so many bytes of an ordinary file. Neither a link nor a pipe is read; `SkillError` says why."""
    return _read_file(path, most).data


def _read_file(path: Path, most: int = MAX_SKILL_BYTES) -> SkillFile:
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except OSError as exc:
        raise SkillError(f"{str(path)!r} cannot be read: {exc.strerror}") from exc
    with open(descriptor, "rb") as file:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise SkillError(f"{str(path)!r} is no ordinary file")
        return SkillFile(file.read(most), bool(mode & stat.S_IXUSR))


def _walk_files(folder: Path) -> Iterator[str]:
    count = size = 0
    for where, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in LEFTOVERS)
        for name in (*folders, *names):
            if name in LEFTOVERS:
                continue
            path = Path(where, name)
            found = path.lstat()
            shown = path.relative_to(folder).as_posix()
            if any(unicodedata.category(letter) == "Cc" for letter in name):
                raise SkillError(f"{shown!r} in the skill {folder.name!r} has a control character", hint="rename it")
            if stat.S_ISDIR(found.st_mode):
                continue
            if not stat.S_ISREG(found.st_mode):
                raise SkillError(f"{shown!r} in the skill {folder.name!r} is no ordinary file", hint="put a copy there")
            count, size = count + 1, size + found.st_size
            if count > MAX_SKILL_FILES or size > MAX_SKILL_BYTES:
                raise SkillError(
                    f"the skill {folder.name!r} has more than {MAX_SKILL_FILES} files or {MAX_SKILL_BYTES:,} bytes"
                )
            yield shown
