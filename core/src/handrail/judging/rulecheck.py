"""What is wrong with policy rules beyond their own words: measured against the tools that are here and against each other."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from handrail.calls.invocation import PLACES
from handrail.config.checking import line_of
from handrail.config.rule_settings import RuleSettings
from handrail.errors import ConfigError
from handrail.files.small_texts import read_small_text
from handrail.judging.rules import Rule, rule_of, runs_commands
from handrail.judging.verdicts import Decision, Route
from handrail.name_shapes import fits_shape
from handrail.plugins.loading import Plugins
from handrail.tools.contract import NamedToolset, Run, Send, Tool, Toolset
from handrail.tools.registry import Registry
from handrail.words import nearest

log = logging.getLogger(__name__)

# As near as a name must be to one that is here for it to be a slip of the fingers, whatever else may come.
SLIP = 0.88


class Around(Protocol):
    """What rules are measured against: a `Runtime`."""

    @property
    def registry(self) -> Registry: ...
    @property
    def toolsets(self) -> Sequence[tuple[Toolset, str]]: ...

    plugins: Plugins


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a rule. An error keeps the configuration from being used, a warning does not."""

    severity: Literal["error", "warning"]
    rule: RuleSettings
    key: str
    text: str

    def where(self, lines: Lines) -> str:
        """`FILE:LINE: policy.rules[2].tool`, as far as it is known."""
        at = lines.of(self.rule, self.key)
        return f"{at}: policy.rules[{self.rule.index or 0}].{self.key}" if at else f"policy.rules.{self.key}"


class Lines:
    """Where keys of rules stand, each file read once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def of(self, rule: RuleSettings | Rule, key: str = "") -> str:
        """`FILE:LINE` of a rule or of a key in it; only FILE when it has changed or is no file."""
        source, index = (rule.origin.source, rule.origin.index) if isinstance(rule, Rule) else (rule.source, rule.index)
        if not source or index is None:
            return source
        path = ("policy", "rules", index, key) if key else ("policy", "rules", index)
        try:
            if source not in self._texts:
                self._texts[source] = (read_small_text(Path(source)) or "").removeprefix("\ufeff")
            return f"{source}:{line_of(path, self._texts[source])}"
        except (OSError, ValueError):
            return source


def check_rules(rules: Sequence[RuleSettings], around: Around) -> None:
    """Raise `ConfigError` for the first rule that can match nothing; say what else is odd in the log."""
    lines = Lines()
    for problem in problems(rules, around):
        if problem.severity == "error":
            raise ConfigError(f"{problem.where(lines)}: {problem.text}", hint="handrail policy check says more")
        log.warning("%s: %s", problem.where(lines), problem.text)


def problems(rules: Sequence[RuleSettings], around: Around) -> Iterator[Problem]:
    """What keeps rules from matching anything, by the tools that are here and may come."""
    for settings in rules:
        rule = rule_of(settings)
        if rule.server is not None:
            # Servers are asked for their tools later.
            continue
        named = [tool for tool in (entry.tool for entry in around.registry) if _named(rule, tool)]
        yield from _misfits(settings, rule, named) if named else _unknown(settings, around)


def _named(rule: Rule, tool: Tool) -> bool:
    fit = rule.of_tool(tool)
    return fit.yes or fit.key != "tool"


def _unknown(settings: RuleSettings, around: Around) -> Iterator[Problem]:
    """Names that no tool has. A plugin that is off or broken takes its tools with it, and toolsets bring theirs later."""
    import difflib

    known = around.registry.names()
    foretold = [toolset for toolset, _ in around.toolsets if isinstance(toolset, NamedToolset)]
    coming = [name for toolset in foretold for name in toolset.names]
    settled = len(around.plugins.loaded) == len(around.plugins.listed) and len(foretold) == len(around.toolsets)
    for name in settings.tool:
        if any(fits_shape(name, pattern) for pattern in coming):
            continue
        slip = bool(difflib.get_close_matches(name.replace("*", ""), known, n=1, cutoff=SLIP))
        # A project's file is shared by people with other plugins.
        grave = (settled or slip) and settings.tier != "workspace"
        yield Problem(
            "error" if grave else "warning", settings, "tool", f"no tool here is called {name!r}{nearest(name, known)}"
        )


def _misfits(settings: RuleSettings, rule: Rule, named: Sequence[Tool]) -> Iterator[Problem]:
    """Matchers that fit none of the tools that the rule names."""
    fitting = [tool for tool in named if rule.of_tool(tool).yes]
    if not fitting:
        key = rule.of_tool(named[0]).key
        if key == "server":
            text = f"{named[0].name} is a tool of the server {named[0].server!r}; an allow for it names its server"
        else:
            text = (
                f"{', '.join(tool.name for tool in named[:3])} {'is' if len(named) == 1 else 'are'} not of that {key}"
            )
        # Tools of that layer or kind may come, if the rule does not name one that is here.
        yield Problem("warning" if any("*" in name for name in settings.tool) else "error", settings, key, text)
        return
    shown = ", ".join(tool.name for tool in fitting[:3])
    for key, can in CAPABLE.items():
        if getattr(settings, key) and not any(map(can, fitting)):
            yield Problem("error", settings, key, f"{shown} {NEEDS[key]}, so the rule can match nothing")
    if rule.route is Route.SANDBOX and not any(tool.confinable for tool in fitting):
        yield Problem("error", settings, "route", f"{shown} is not made to run in a sandbox")
    if rule.decision is Decision.ALLOW and rule.whole and any(map(_runs_shell, fitting)):
        yield Problem(
            "warning",
            settings,
            "decision",
            "it allows every command that no floor holds; command or argv would narrow it",
        )


def _touches_files(tool: Tool) -> bool:
    return runs_commands(tool) or any(effect.what in PLACES for effect in tool.effects)


def _reaches_out(tool: Tool) -> bool:
    return runs_commands(tool) or any(isinstance(effect, Send) for effect in tool.effects)


def _runs_shell(tool: Tool) -> bool:
    return any(isinstance(effect, Run) and effect.what == "shell" for effect in tool.effects)


CAPABLE = {
    "command": runs_commands,
    "argv": runs_commands,
    "options": runs_commands,
    "paths": _touches_files,
    "access": _touches_files,
    "hosts": _reaches_out,
}
NEEDS: Mapping[str, str] = {
    **dict.fromkeys(("command", "argv", "options"), "runs no commands"),
    **dict.fromkeys(("paths", "access"), "touches no files"),
    "hosts": "reaches no hosts",
}


def shadowed(rules: Sequence[Rule]) -> Iterator[tuple[Rule, Rule]]:
    """Rules that never answer, each with the one that always answers before it; the rules come the highest rank first."""
    for at, rule in enumerate(rules):
        if not rule.tightening and (above := next((r for r in rules[:at] if _always_before(r, rule)), None)):
            yield rule, above


def _always_before(above: Rule, rule: Rule) -> bool:
    """Whether one that ranks higher speaks of everything that the other does."""
    if above.tightening or (above.decision is Decision.ALLOW and rule.decision is not Decision.ALLOW):
        # An allow leaves open what it does not cover wholly.
        return False
    same = all(getattr(above, key) in ((), None, getattr(rule, key)) for key in MATCHERS)
    return same and (above.tools == ("*",) or set(rule.tools) <= set(above.tools))


MATCHERS = (
    "command",
    "argv",
    "options",
    "paths",
    "access",
    "hosts",
    "layers",
    "server",
    "kinds",
    "effects",
    "read_only",
    "modes",
    "interactive",
)
