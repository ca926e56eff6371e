"""One rule of the policy as the configuration says it, and what keeps a rule from making sense."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from handrail.api.tool import EFFECT_KINDS, ToolLayer
from handrail.api.verdict import Decision, Mode, Route
from handrail.config.base_model import ConfigSection, NonEmptyStr, NonEmptyStrings, OneOrMany

ToolKind = Literal["execute", "input", "delete", "edit", "fetch", "read", "other"]
FileAccess = Literal["read", "write", "delete"]
EFFECT_NAMES = tuple(sorted(effect.__name__.lower() for effect in EFFECT_KINDS))


class RuleSettings(ConfigSection):
    """One `[[policy.rules]]`: of which calls it speaks (all matchers that are given must fit), and what it says of them."""

    tool: OneOrMany[NonEmptyStr] = Field(
        default=("*",), description="A tool's name, or several; `*` stands for any letters."
    )
    layer: OneOrMany[ToolLayer] | None = Field(default=None, description="The tool's layer, or several.")
    server: NonEmptyStr | None = Field(
        default=None, description="The MCP server whose tool it is; `*` stands for any letters."
    )
    kind: OneOrMany[ToolKind] | None = Field(
        default=None, description="The tool's kind, by its weightiest effect, or several."
    )
    effects: OneOrMany[NonEmptyStr] | None = Field(
        default=None,
        description="What the tool declares to do: write, or write:clipboard. An allow must name all of it.",
    )
    read_only: bool | None = Field(default=None, description="Whether the tool leaves no trace.")
    command: NonEmptyStrings | None = Field(
        default=None, description="The first words of a simple command, as they are."
    )
    argv: NonEmptyStrings | None = Field(
        default=None,
        description="All words of a simple command; `*` stands for any letters in a word, `**` for any number of words.",
    )
    options: OneOrMany[NonEmptyStr] | None = Field(
        default=None, description="Options, one of which is among the command's words."
    )
    paths: OneOrMany[NonEmptyStr] | None = Field(
        default=None,
        description="Files: ~/notes/**, src/*.py, or a folder with all that is in it. Relative ones start at the workspace.",
    )
    access: OneOrMany[FileAccess] | None = Field(
        default=None, description="What is done to the files; unset: any of it."
    )
    hosts: OneOrMany[NonEmptyStr] | None = Field(
        default=None, description="Hosts: example.org, *.example.org (anything below it), example.org:8080."
    )
    modes: OneOrMany[Mode] | None = Field(default=None, description="The modes it holds in; unset: all.")
    interactive: bool | None = Field(default=None, description="Whether anybody can be asked; unset: either.")
    decision: Decision = Field(description="allow, confirm or deny.")
    route: Route | None = Field(default=None, description="Where the call then runs: host, unless sandbox is said.")
    reason: str = Field(default="", description="Why, for whoever asks; it is shown with the verdict.")
    name: str = Field(default="", description="What the rule is called in verdicts.")
    priority: Annotated[int, Field(ge=0, le=1000, strict=True)] = Field(
        default=0, description="Within one file's tier the higher counts; of equal ones the stricter."
    )
    lifts: OneOrMany[NonEmptyStr] = Field(
        default=(),
        description="Floors that this rule goes below, by their rule's name; `catastrophic` for a call that is denied otherwise.",
    )
    tier: Literal["workspace", "user", "admin"] = Field(
        default="user", exclude=True, description="Set by where the rule stands."
    )
    tightening: bool = Field(default=False, exclude=True, description="Set where the folder is not trusted.")
    source: str = Field(default="", exclude=True, description="The file it stands in.")
    index: int | None = Field(default=None, exclude=True, description="Its place among the rules of that file.")

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        for key, problem in find_contradictions(self):
            raise PydanticCustomError("rule", "{problem}", {"problem": problem, "key": key})
        return self

    def given(self, *keys: str) -> bool:
        """Return True if any of these keys was set."""
        return any(getattr(self, key) not in (None, (), "") for key in keys)


# Matchers of what a call does, beside those of whose call it is.
NARROWING_KEYS = ("command", "argv", "options", "paths", "access", "hosts")
CHANGING_KINDS = frozenset(("execute", "input", "delete", "edit", "fetch"))


def find_contradictions(rule: RuleSettings) -> Iterator[tuple[str, str]]:
    """Yield what keeps a rule from ever matching or from making sense, each with the key at fault.

    The tools that exist do not matter.
    """
    if not rule.model_fields_set & {"tool", "layer", "server", "kind", "effects", "read_only", *NARROWING_KEYS}:
        yield "decision", 'it does not say of which calls; write tool = "*" for all'
    for key in ("tool", "layer", "kind", "effects", "modes", *NARROWING_KEYS):
        if getattr(rule, key) == ():
            yield key, "it is empty, so it can match nothing"
    yield from _check_words(rule)
    yield from _check_places(rule)
    yield from _check_tools(rule)
    yield from _check_decision(rule)


def _check_words(rule: RuleSettings) -> Iterator[tuple[str, str]]:
    if rule.command and rule.argv:
        yield "argv", "command and argv both say what the words are; keep one of them"
    for key in ("command", "argv"):
        words: tuple[str, ...] = getattr(rule, key) or ("",)
        if any(letter.isspace() for letter in words[0]):
            yield key, f"{words[0]!r} is one word, and no program is called so; write each word for itself"
    if (rule.command or ("",))[0].startswith("-"):
        yield "command", "it starts with an option; options = [...] finds them anywhere in a command"
    for option in rule.options or ():
        if not option.startswith(("-", "/")):
            yield "options", f"{option!r} is no option: those start with - or /"


def _check_places(rule: RuleSettings) -> Iterator[tuple[str, str]]:
    for pattern in rule.paths or ():
        if ".." in pattern.replace("\\", "/").split("/"):
            yield "paths", f"{pattern!r} goes up; name the folder itself"
    for host in rule.hosts or ():
        if (wrong := _find_host_problem(host)) is not None:
            yield "hosts", f"{host!r} {wrong}"


def _check_tools(rule: RuleSettings) -> Iterator[tuple[str, str]]:
    if rule.server is not None and rule.layer is not None and "mcp" not in rule.layer:
        yield "layer", "tools of servers are of the layer mcp"
    if rule.read_only is True and rule.kind is not None and not set(rule.kind) - CHANGING_KINDS:
        yield "kind", f"tools of the kind {', '.join(rule.kind)} are not read only"
    if rule.interactive is True and rule.modes == (Mode.HEADLESS,):
        yield "interactive", "in headless mode nobody can be asked"
    for effect in rule.effects or ():
        if effect.partition(":")[0] not in EFFECT_NAMES:
            yield "effects", f"{effect!r} is no effect; they start with {', '.join(EFFECT_NAMES)}"


def _check_decision(rule: RuleSettings) -> Iterator[tuple[str, str]]:
    if rule.decision is Decision.DENY and rule.route is not None:
        yield "route", "what is denied runs nowhere"
    if rule.lifts and rule.decision is Decision.DENY:
        yield "lifts", "a rule that denies goes below no floor"
    if "catastrophic" in rule.lifts:
        yield from _check_catastrophic_lift(rule)


def _check_catastrophic_lift(rule: RuleSettings) -> Iterator[tuple[str, str]]:
    if rule.decision is not Decision.CONFIRM:
        yield "decision", "a catastrophic call can be asked about at most; write confirm"
    if any("*" in name for name in rule.tool):
        yield "tool", "a rule that lifts `catastrophic` names its tool in full"
    if not rule.given("command", "argv", "paths", "hosts"):
        yield "lifts", "a rule that lifts `catastrophic` says exactly which command, argv, paths or hosts it means"
    if set(rule.argv or ()) and (rule.argv or ("",))[0] in ("*", "**"):
        yield "argv", "a rule that lifts `catastrophic` names the program"


def _find_host_problem(host: str) -> str | None:
    if "://" in host or "/" in host:
        return "is more than a host; write only its name, as in example.org"
    name = host.removeprefix("*.") if host != "*" else ""
    return "has a `*` that is not in front of a dot at its beginning" if "*" in name else None
