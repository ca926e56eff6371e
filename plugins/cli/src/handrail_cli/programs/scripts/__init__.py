"""Checks of scripts in a command line, with a small checker for each language."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib import import_module
from typing import cast

from handrail_cli.programs.scripts.script_finding import ScriptFinding

# By the module and function in which each stands: a command line needs one or none of them.
CHECKERS: Mapping[str, str] = {
    "sed": "sed.check_sed_script",
    "awk": "awk.check_awk_script",
    "jq": "jq.check_jq_script",
    "yq": "jq.check_jq_script",
    "miller": "miller.check_miller_script",
    "python": "python.check_python_script",
    "sql": "sql.check_sql_script",
    "sqlite": "sql.check_sqlite_script",
    "psql": "sql.check_psql_script",
    "mysql": "sql.check_mysql_script",
    "redis": "sql.check_redis_command",
    "perl": "name_allowlist.check_perl_script",
    "ruby": "name_allowlist.check_ruby_script",
    "node": "name_allowlist.check_node_script",
    "php": "name_allowlist.check_php_script",
    "lua": "name_allowlist.check_lua_script",
    "r": "name_allowlist.check_r_script",
}


# Languages whose scripts run no program and write no file.
HARMLESS_LANGUAGES = frozenset(("jq", "yq"))


# Languages of interpreters, whose code could as well stand in a file of the workspace; in some of them backquotes run commands.
GENERAL = frozenset(("python", "perl", "ruby", "node", "php", "lua", "r"))
BACKQUOTING = frozenset(("perl", "ruby", "php"))


def runs_commands(language: str, text: str) -> bool:
    """Return True if code holds backquotes where they run commands, a pipe that may start one, or the library of Lua that does by any name."""
    if language == "lua":
        return re.search(r"\bos\b(?!\.(?:time|date|clock)\b)", text) is not None
    return language in BACKQUOTING and ("`" in text or "%x" in text or (language == "perl" and "|" in text))


# By the module and function in which each stands: what tells scripts so simple that every version of the program can only filter by them.
SIMPLE_CHECKERS: Mapping[str, str] = {"sed": "sed.is_simple_sed", "awk": "awk.is_simple_awk", "jq": "jq.is_simple_jq"}


def is_simple_script(language: str, text: str) -> bool:
    """Return True if a script certainly prints what it makes of its input, and does nothing else."""
    if language not in SIMPLE_CHECKERS:
        return False
    module, _, function = SIMPLE_CHECKERS[language].partition(".")
    return cast("Callable[[str], bool]", getattr(import_module(f"{__name__}.{module}"), function))(text)


@lru_cache(maxsize=32)
def load_checker(language: str) -> Callable[[str], ScriptFinding]:
    """Return the function that checks scripts in this language."""
    module, _, function = CHECKERS[language].partition(".")
    return cast("Callable[[str], ScriptFinding]", getattr(import_module(f"{__name__}.{module}"), function))
