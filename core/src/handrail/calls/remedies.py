"""Remedies for denied calls: the shortest mode or rule that allows the call, verified by judging the call with it."""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from handrail.asking.confirming import shown_steps
from handrail.calls.invocation import Invocation
from handrail.config.rule_settings import RuleSettings
from handrail.errors import DeniedByUser
from handrail.judging.rules import ACCESS, rule_of
from handrail.judging.verdicts import Decision, Mode, Part, Touch, Verdict
from handrail.net import addresses
from handrail.tools.contract import Input, Run

if TYPE_CHECKING:
    from handrail.judging.court import Court

# A call that would need more rules than this is better allowed by a person who looks at it.
MAX_RULES = 3
GENERIC = "a person can allow it by a rule of their own; `handrail policy explain` shows what holds it back"
EDITS = "`--mode accept_edits` allows it, as it does any other edit of a file in the workspace"
# A character beyond U+FFFF as JSON writes it, which TOML does not.
PAIRED = re.compile(r"\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}")
# Codes of reasons that hosts allowed by name answer, and of those that are added where nobody could be asked.
FOR_HOSTS = frozenset(("needs_network", "sandbox_hosts"))
NOBODY_ANSWERED = frozenset(("no_confirmer", "mode_headless"))
Table = Mapping[str, Any]


async def find_remedy(court: Court, invocation: Invocation, verdict: Verdict) -> str | None:
    """Return how a person can allow the call; None where nobody should, or a person has just said no."""
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
    lacking = {reason.code for reason in verdict.reasons} - NOBODY_ANSWERED
    if verdict.reach is not None and verdict.reach.needed and lacking <= FOR_HOSTS:
        named = ", ".join(f'"{host}"' for host in verdict.reach.hosts)
        return f"a person can allow these hosts under [sandbox] in their own config.toml: hosts = [{named}]"
    if kind == "effects" and (naming := addresses.cure(name)) is not None:
        return naming
    return await _tried(court, invocation)


async def _tried(court: Court, invocation: Invocation) -> str:
    mode = court.judging.mode
    if mode in (Mode.DEFAULT, Mode.HEADLESS):
        eager = await court.suppose(invocation, mode=Mode.ACCEPT_EDITS)
        if eager.decision is Decision.ALLOW:
            return EDITS
    # In headless mode the verdict names the mode, and not the floor that a rule has to lift.
    found = await court.suppose(invocation, mode=Mode.DEFAULT if mode is Mode.HEADLESS else mode)
    if found.catastrophic or _brings_in_secrets(court, invocation, found.parts):
        return GENERIC
    for lifts in ((), (found.rule,)):
        tables = tuple(_tables(invocation, found.parts, lifts, folder=str(court.judging.cwd)))
        if not tables or len(tables) > MAX_RULES or not _can_be_written(tables):
            return GENERIC
        try:
            settings = tuple(RuleSettings.model_validate(dict(table)) for table in tables)
        except ValidationError:
            # What the call touches cannot be said in a rule.
            return GENERIC
        if not court.takes_rules(settings):
            return GENERIC
        given = await court.suppose(invocation, mode=mode, rules=tuple(map(rule_of, settings)))
        if given.decision is Decision.ALLOW:
            return f"a person can allow it by adding this to their own config.toml:\n{_written(tables)}"
    return GENERIC


def _brings_in_secrets(court: Court, invocation: Invocation, parts: tuple[Part, ...]) -> bool:
    """Return True if the decoded words of a call hold what it names as a variable and a model must not read."""
    shown = shown_steps(parts, invocation, court.judging.environment)
    return any((step.words, step.touches) != (part.argv, part.touches) for step, part in zip(shown, parts, strict=True))


def _tables(invocation: Invocation, parts: Iterable[Part], lifts: tuple[str, ...], *, folder: str) -> Iterator[Table]:
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
    narrowed = [dict(matched) for part in parts if not part.harmless and (matched := _matched(part, folder))]
    for matched in [each for number, each in enumerate(narrowed) if each not in narrowed[:number]]:
        yield {**named, **matched, **said}
    # A rule for a whole tool that acts on a desktop or runs code would allow far more than this call.
    if not narrowed and not any(effect.arg or isinstance(effect, Input | Run) for effect in tool.effects):
        yield {**named, **said}


def _matched(part: Part, folder: str) -> Table | None:
    """Return what a rule has to say to fit a part and nothing beside it; None where that cannot be said."""
    files = [touch for touch in part.touches if touch.kind in ACCESS]
    named = files if part.argv else part.touches
    # In a rule a star is a pattern, which would allow more than this call; what is empty is not known.
    if any("*" in text or not text for text in (*part.argv, *(touch.what for touch in named))):
        return None
    if part.argv:
        # By their words alone, commands are allowed wherever they run.
        return {"argv": list(part.argv), **_places(files)} if files or set(part.folders) <= {folder} else None
    if any(os.path.isdir(touch.what) for touch in files):
        # A rule for a folder is for all that is in it.
        return None
    hosts = [touch.what for touch in part.touches if touch.kind == "network"]
    found: dict[str, Any] = {}
    if len(files) + len(hosts) < len(part.touches):
        return None
    found.update(_places(files))
    if hosts:
        found["hosts"] = list(dict.fromkeys(hosts))
    return found or None


def _places(files: Iterable[Touch]) -> Table:
    touched = tuple(files)
    if not touched:
        return {}
    return {
        key: list(dict.fromkeys(values))
        for key, values in (("paths", (t.what for t in touched)), ("access", (t.kind for t in touched)))
    }


def _written(tables: Iterable[Table]) -> str:
    """Return the rules as TOML; its strings and arrays of them are written as those of JSON are."""
    return "\n\n".join(
        "\n".join(("[[policy.rules]]", *(f"{key} = {_value(value)}" for key, value in table.items())))
        for table in tables
    )


def _value(value: Any) -> str:
    text = PAIRED.sub(_whole, json.dumps(value))
    return text.replace("\x7f", "\\u007f")


def _whole(found: re.Match[str]) -> str:
    character = json.loads(f'"{found[0]}"')
    return f"\\U{ord(character):08x}"


def _can_be_written(tables: Iterable[Table]) -> bool:
    """Return False for names of files that are not Unicode, which TOML cannot hold."""
    try:
        tomllib.loads(_written(tables))
    except tomllib.TOMLDecodeError:
        return False
    return True
