"""What a script that stands in a command line does, by small checkers for each language."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, cast

from handrail_cli.programs.languages.finding import Finding, is_alarming
from handrail_cli.programs.values import Inner

if TYPE_CHECKING:
    from handrail_cli.programs.taking import Taking

# By the module and function in which each stands: a command line needs one or none of them.
CHECKERS: Mapping[str, str] = {
    "sed": "sed.look",
    "awk": "awk.look",
    "jq": "jq.look",
    "yq": "jq.look",
    "miller": "miller.check_script",
    "python": "python.look",
    "sql": "sql.look",
    "sqlite": "sql.look_sqlite",
    "psql": "sql.look_psql",
    "mysql": "sql.look_mysql",
    "redis": "sql.look_redis",
    "perl": "plain.perl",
    "ruby": "plain.ruby",
    "node": "plain.node",
    "php": "plain.php",
    "lua": "plain.lua",
    "r": "plain.r",
}


# Languages whose scripts run no program and write no file.
HARMLESS = frozenset(("jq", "yq"))


# Languages of interpreters, whose code could as well stand in a file of the workspace; in some of them backquotes run commands.
GENERAL = frozenset(("python", "perl", "ruby", "node", "php", "lua", "r"))
BACKQUOTING = frozenset(("perl", "ruby", "php"))


def runs_commands(language: str, text: str) -> bool:
    """Return True if code holds backquotes where they run commands, a pipe that may start one, or the library of Lua that does by any name."""
    if language == "lua":
        return re.search(r"\bos\b(?!\.(?:time|date|clock)\b)", text) is not None
    return language in BACKQUOTING and ("`" in text or "%x" in text or (language == "perl" and "|" in text))


# By the module and function in which each stands: what tells scripts so simple that every version of the program can only filter by them.
SIMPLE: Mapping[str, str] = {"sed": "sed.is_simple", "awk": "awk.is_simple", "jq": "jq.is_simple"}


def is_simple(language: str, text: str) -> bool:
    """Return True if a script certainly prints what it makes of its input, and does nothing else."""
    if language not in SIMPLE:
        return False
    module, _, function = SIMPLE[language].partition(".")
    return cast("Callable[[str], bool]", getattr(import_module(f"{__name__}.{module}"), function))(text)


@lru_cache(maxsize=32)
def checker(language: str) -> Callable[[str], Finding]:
    """What tells what a script in this language does."""
    module, _, function = CHECKERS[language].partition(".")
    return cast("Callable[[str], Finding]", getattr(import_module(f"{__name__}.{module}"), function))


def looked_at(taking: Taking, language: str, text: str, at: int) -> None:
    """Add what a script does to what is known of its command line."""
    taking.inner.append(Inner(at, at + 1, text, language))
    if "filters" in taking.needs and not is_simple(language, text):
        taking.needs.discard("filters")
    if language not in CHECKERS:
        return
    finding = checker(language)(text)
    taking.worsen(
        finding.kind, code=finding.code or "runs_program", why=f"the script of {taking.path} {finding.why}", at=at
    )
    taking.needs |= finding.needs
    for role, value in finding.named:
        taking.name(role, at, value)
    if finding.doubtful and language in HARMLESS:
        taking.doubt(at)
    elif finding.doubtful:
        taking.unread(at, inline=language in GENERAL and not (runs_commands(language, text) or is_alarming(text)))
