"""SKILL.md, read strictly: a block of YAML between two lines `---`, and Markdown. Source: https://agentskills.io/specification"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Annotated, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, field_validator

from handrail import HandrailError, validation_messages
from handrail.fs.yaml_files import find_yaml_traps, load_yaml
from handrail.json_types import is_object
from handrail.text import format_suggestion

NAME_PATTERN = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
MAX_NAME = 64
MAX_DOCUMENT_BYTES = 1_048_576
MAX_FRONTMATTER = 65_536
FENCE = "---"
SKILL_FILE = "SKILL.md"
# Names of other tools of the session that are loaded with the skill.
TOOLS_KEY = "adk_additional_tools"

NonEmptyText = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class SkillError(HandrailError):
    """A skill that cannot be used as it is."""


class SkillFrontmatter(BaseModel):
    """Frontmatter of a SKILL.md, between the fences.

    Keys outside of the specification are kept and reported as remarks.
    """

    model_config = ConfigDict(extra="allow", populate_by_name=True)

    name: NonEmptyText
    description: Annotated[NonEmptyText, StringConstraints(max_length=1024)]
    license: NonEmptyText | None = None
    compatibility: Annotated[NonEmptyText, StringConstraints(max_length=500)] | None = None
    metadata: dict[str, str | list[str]] = Field(default_factory=dict[str, "str | list[str]"])
    allowed_tools: tuple[str, ...] = Field(default=(), alias="allowed-tools")

    @field_validator("name")
    @classmethod
    def _kebab(cls, name: str) -> str:
        name = unicodedata.normalize("NFKC", name)
        if not NAME_PATTERN.fullmatch(name) or len(name) > MAX_NAME:
            raise ValueError(f"{name!r} is no name: 1 to 64 of a-z, 0-9 and single hyphens inside")
        return name

    @field_validator("allowed_tools", mode="before")
    @classmethod
    def _listed(cls, given: Any) -> Any:
        return given.split() if isinstance(given, str) else given

    @field_validator("metadata", mode="before")
    @classmethod
    def _texts(cls, given: Any) -> Any:
        if not is_object(given):
            return given
        return {key: str(value) if isinstance(value, int | float) else value for key, value in given.items()}

    @property
    def tools(self) -> tuple[str, ...]:
        """The tools of the session that are loaded with the skill; a list, or a text with spaces between them."""
        named = self.metadata.get(TOOLS_KEY, ())
        return tuple(dict.fromkeys(named.split() if isinstance(named, str) else named))


@dataclass(frozen=True, slots=True)
class SkillDocument:
    """A SKILL.md: its frontmatter, its Markdown, and what is odd about it without being wrong."""

    frontmatter: SkillFrontmatter
    body: str
    remarks: tuple[str, ...] = ()


def parse_document(data: bytes) -> SkillDocument:
    """Parse the document; `SkillError` says what is wrong, with the line if it is known."""
    if len(data) > MAX_DOCUMENT_BYTES:
        raise SkillError(f"{SKILL_FILE} has more than {MAX_DOCUMENT_BYTES:,} bytes")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        raise SkillError(f"{SKILL_FILE} is not UTF-8 (byte {exc.start})") from exc
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    if lines[0].rstrip(" \t") != FENCE:
        raise SkillError(f"{SKILL_FILE} does not begin with a line {FENCE!r}")
    end = next((number for number, line in enumerate(lines[1:], 1) if line.rstrip(" \t") == FENCE), None)
    if end is None:
        raise SkillError(f"{SKILL_FILE} has no second line {FENCE!r}, which ends the frontmatter")
    inside = "\n".join(lines[1:end])
    if len(inside) > MAX_FRONTMATTER:
        raise SkillError(f"the frontmatter of {SKILL_FILE} has more than {MAX_FRONTMATTER:,} characters")
    frontmatter = _parse_frontmatter(inside)
    return SkillDocument(frontmatter, "\n".join(lines[end + 1 :]).strip("\n") + "\n", tuple(_list_remarks(frontmatter)))


def _parse_frontmatter(text: str) -> SkillFrontmatter:
    try:
        for line, why in find_yaml_traps(text, aliases=False):
            # The first line is the fence.
            raise SkillError(f"{SKILL_FILE}, line {line + 1}: {why}")
        content: Any = load_yaml(text)
    except yaml.MarkedYAMLError as exc:
        # The first line is the fence.
        line = f", line {exc.problem_mark.line + 2}" if exc.problem_mark else ""
        raise SkillError(f"{SKILL_FILE}{line}: {exc.problem}") from exc
    except (yaml.YAMLError, RecursionError) as exc:
        raise SkillError(f"{SKILL_FILE}: the frontmatter is not YAML ({type(exc).__name__})") from exc
    if not is_object(content):
        raise SkillError(f"{SKILL_FILE}: the frontmatter is not a mapping of keys and values")
    try:
        return SkillFrontmatter.model_validate(content)
    except ValidationError as exc:
        raise SkillError(
            f"{SKILL_FILE}: {validation_messages.describe_error(validation_messages.select_error(exc), SkillFrontmatter)}"
        ) from exc


def _list_remarks(frontmatter: SkillFrontmatter) -> list[str]:
    known = [field.alias or name for name, field in SkillFrontmatter.model_fields.items()]
    return [
        f"{key!r} is no key of the specification{format_suggestion(key, known)}"
        for key in frontmatter.model_extra or {}
    ] + (["allowed-tools allows nothing here: policy does"] if frontmatter.allowed_tools else [])
