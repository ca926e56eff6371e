"""What a script that stands in a command line does, by small checkers for each language."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from handrail_cli.programs.languages import awk, jq, plain, python, sed, sql
from handrail_cli.programs.languages.finding import Finding
from handrail_cli.programs.values import Inner

if TYPE_CHECKING:
    from handrail_cli.programs.taking import Taking

CHECKERS: Mapping[str, Callable[[str], Finding]] = {
    "sed": sed.look,
    "awk": awk.look,
    "jq": jq.look,
    "yq": jq.look,
    "python": python.look,
    "sql": sql.look,
    "sqlite": sql.look_sqlite,
    "psql": sql.look_psql,
    "mysql": sql.look_mysql,
    "redis": sql.look_redis,
    "perl": plain.perl,
    "ruby": plain.ruby,
    "node": plain.node,
    "php": plain.php,
    "lua": plain.lua,
    "r": plain.r,
}


def looked_at(taking: Taking, language: str, text: str, at: int) -> None:
    """Add what a script does to what is known of its command line."""
    taking.inner.append(Inner(at, at + 1, text, language))
    checker = CHECKERS.get(language)
    if checker is None:
        return
    finding = checker(text)
    taking.worsen(
        finding.kind, code=finding.code or "runs_program", why=f"the script of {taking.path} {finding.why}", at=at
    )
    taking.needs |= finding.needs
    for role, value in finding.named:
        taking.name(role, at, value)
    if finding.doubtful:
        taking.doubt(at)
