"""Remedies for denied calls: the shortest mode or rule that allows the call, verified by judging the call with it."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from handrail.api.call import Invocation
from handrail.api.tool import Input, Run
from handrail.api.verdict import Access, Decision, Mode, SubCommand, Verdict
from handrail.config.rule_settings import RuleSettings
from handrail.errors import DeniedByUser
from handrail.net import addresses
from handrail.pipeline.approval_stage import build_approval_steps
from handrail.policy.rules import FILE_ACCESS, build_rule

if TYPE_CHECKING:
    from handrail.policy.session_policy import SessionPolicy

# A call that would need more rules than this is better allowed by a person who looks at it.
MAX_RULES = 3
GENERIC_HINT = "a person can allow it by a rule of their own; `handrail policy explain` shows what holds it back"
ACCEPT_EDITS_HINT = "`--mode accept_edits` allows it, as it does any other edit of a file in the workspace"
# A character beyond U+FFFF as JSON writes it, which TOML does not.
SURROGATE_PAIR = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}")
# Codes of reasons that hosts allowed by name answer, and of those that are added where nobody could be asked.
HOST_REASONS = frozenset(("needs_network", "sandbox_hosts"))
UNANSWERED_REASONS = frozenset(("no_confirmer", "mode_headless"))
RuleTable = Mapping[str, Any]


async def find_remedy(court: SessionPolicy, invocation: Invocation, verdict: Verdict) -> str | None:
    """Return how the user can allow the call, or None if they should not, or have just denied it."""
    if verdict.decision is not Decision.DENY or verdict.catastrophic:
        return None
    kind, _, name = verdict.rule.partition(":")
    # A block of an observer is final, and its message names the observer.
    if kind == "observer" or any(reason.code == DeniedByUser.code for reason in verdict.reasons):
        return None
    if kind == "policy":
        return (
            f"it is denied by the rule {name!r}; `handrail policy list` shows where it is, and a person can change it"
        )
    if name == "crash":
        return f"no rule can allow it; the log of `handrail --debug` has the error, for whoever maintains the evaluator {kind!r}"
    lacking = {reason.code for reason in verdict.reasons} - UNANSWERED_REASONS
    if verdict.reach is not None and verdict.reach.needed and lacking <= HOST_REASONS:
        named = ", ".join(f'"{host}"' for host in verdict.reach.hosts)
        return f"a person can allow these hosts under [sandbox] in their own config.toml: hosts = [{named}]"
    if kind == "effects" and (naming := addresses.find_address_hint(name)) is not None:
        return naming
    return await _suggest_rules(court, invocation)


async def _suggest_rules(court: SessionPolicy, invocation: Invocation) -> str:
    mode = court.judging.mode
    if mode in (Mode.DEFAULT, Mode.HEADLESS):
        eager = await court.suppose(invocation, mode=Mode.ACCEPT_EDITS)
        if eager.decision is Decision.ALLOW:
            return ACCEPT_EDITS_HINT
    # In headless mode the verdict names the mode, and not the floor that a rule has to lift.
    found = await court.suppose(invocation, mode=Mode.DEFAULT if mode is Mode.HEADLESS else mode)
    if found.catastrophic or _has_secret_words(court, invocation, found.parts):
        return GENERIC_HINT
    for lifts in ((), (found.rule,)):
        tables = tuple(_build_rule_tables(invocation, found.parts, lifts, folder=str(court.judging.cwd)))
        if not tables or len(tables) > MAX_RULES or not _is_valid_toml(tables):
            return GENERIC_HINT
        try:
            settings = tuple(RuleSettings.model_validate(dict(table)) for table in tables)
        except ValidationError:
            # What the call touches cannot be said in a rule.
            return GENERIC_HINT
        if not court.takes_rules(settings):
            return GENERIC_HINT
        given = await court.suppose(invocation, mode=mode, rules=tuple(map(build_rule, settings)))
        if given.decision is Decision.ALLOW:
            return f"a person can allow it by adding this to their own config.toml:\n{_format_rules(tables)}"
    return GENERIC_HINT


def _has_secret_words(court: SessionPolicy, invocation: Invocation, parts: tuple[SubCommand, ...]) -> bool:
    """Return True if the decoded words of a call hold what it names as a variable and a model must not read."""
    shown = build_approval_steps(parts, invocation, court.judging.environment)
    return any((step.words, step.touches) != (part.argv, part.touches) for step, part in zip(shown, parts, strict=True))


def _build_rule_tables(
    invocation: Invocation, parts: Iterable[SubCommand], lifts: tuple[str, ...], *, folder: str
) -> Iterator[RuleTable]:
    """Yield rules that allow what the call does and as little as possible beside it, one for each part that needs one.

    `folder` is where the session's commands run.
    """
    tool = invocation.tool
    named: dict[str, Any] = {"tool": tool.name}
    if tool.server is not None:
        named["server"] = tool.server
    said: dict[str, Any] = {"decision": "allow"}
    if lifts:
        said["lifts"] = list(lifts)
    narrowed = [dict(matched) for part in parts if not part.harmless and (matched := _build_matchers(part, folder))]
    for matched in [each for number, each in enumerate(narrowed) if each not in narrowed[:number]]:
        yield {**named, **matched, **said}
    # A rule for a whole tool that acts on a desktop or runs code would allow far more than this call.
    if not narrowed and not any(effect.arg or isinstance(effect, Input | Run) for effect in tool.effects):
        yield {**named, **said}


def _build_matchers(part: SubCommand, folder: str) -> RuleTable | None:
    """Return what a rule has to say to fit a part and nothing beside it; None where that cannot be said."""
    files = [touch for touch in part.touches if touch.kind in FILE_ACCESS]
    named = files if part.argv else part.touches
    # In a rule a star is a pattern, which would allow more than this call; what is empty is not known.
    if any("*" in text or not text for text in (*part.argv, *(touch.what for touch in named))):
        return None
    if part.argv:
        # By their words alone, commands are allowed wherever they run.
        return {"argv": list(part.argv), **_path_matchers(files)} if files or set(part.folders) <= {folder} else None
    if any(os.path.isdir(touch.what) for touch in files):
        # A rule for a folder is for all that is in it.
        return None
    hosts = [touch.what for touch in part.touches if touch.kind == "network"]
    found: dict[str, Any] = {}
    if len(files) + len(hosts) < len(part.touches):
        return None
    found.update(_path_matchers(files))
    if hosts:
        found["hosts"] = list(dict.fromkeys(hosts))
    return found or None


def _path_matchers(files: Iterable[Access]) -> RuleTable:
    touched = tuple(files)
    if not touched:
        return {}
    return {
        key: list(dict.fromkeys(values))
        for key, values in (("paths", (t.what for t in touched)), ("access", (t.kind for t in touched)))
    }


def _format_rules(tables: Iterable[RuleTable]) -> str:
    """Return the rules as TOML; its strings and arrays of them are written as those of JSON are."""
    return "\n\n".join(
        "\n".join(("[[policy.rules]]", *(f"{key} = {_format_toml_value(value)}" for key, value in table.items())))
        for table in tables
    )


def _format_toml_value(value: Any) -> str:
    text = SURROGATE_PAIR.sub(_escape_surrogate_pair, json.dumps(value))
    return text.replace("\x7f", "\\u007f")


def _escape_surrogate_pair(found: re.Match[str]) -> str:
    character = json.loads(f'"{found[0]}"')
    return f"\\U{ord(character):08x}"


def _is_valid_toml(tables: Iterable[RuleTable]) -> bool:
    """Return False for names of files that are not Unicode, which TOML cannot hold."""
    try:
        tomllib.loads(_format_rules(tables))
    except tomllib.TOMLDecodeError:
        return False
    return True
