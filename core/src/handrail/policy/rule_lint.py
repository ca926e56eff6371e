"""Problems of policy rules beyond their syntax, checked against the available tools and against each other."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

from handrail.api.call import PATH_KINDS
from handrail.api.tool import NamedToolset, Run, Send, Tool, Toolset
from handrail.api.verdict import Decision, Route
from handrail.config.rule_settings import RuleSettings
from handrail.config.validation import find_key_line
from handrail.errors import ConfigError
from handrail.fs.small_files import read_small_text
from handrail.glob_match import is_glob_match
from handrail.policy.rules import Rule, build_rule, is_command_tool
from handrail.text import format_suggestion

log = logging.getLogger(__name__)

# As near as a name must be to one that is here for it to be a slip of the fingers, whatever else may come.
TYPO_CUTOFF = 0.88


class RegisteredTool(Protocol):
    """An entry of `KnownTools`."""

    @property
    def tool(self) -> Tool: ...


class KnownTools(Protocol):
    """The tools that plugins registered."""

    def __iter__(self) -> Iterator[RegisteredTool]: ...
    def names(self) -> Mapping[str, object]: ...


class InstalledPlugins(Protocol):
    """The plugins that were found, and those of them that loaded."""

    @property
    def listed(self) -> Sequence[object]: ...
    @property
    def loaded(self) -> Sequence[object]: ...


class LintContext(Protocol):
    """Context for checking rules: a `Runtime`."""

    @property
    def registry(self) -> KnownTools: ...
    @property
    def toolsets(self) -> Sequence[tuple[Toolset, str]]: ...
    @property
    def plugins(self) -> InstalledPlugins: ...


@dataclass(frozen=True, slots=True)
class RuleProblem:
    """One thing that is wrong with a rule. An error keeps the configuration from being used, a warning does not."""

    severity: Literal["error", "warning"]
    rule: RuleSettings
    key: str
    text: str

    def where(self, lines: RuleLocations) -> str:
        """Return the location of the problem, as far as known: `FILE:LINE: policy.rules[2].tool`."""
        at = lines.of(self.rule, self.key)
        return f"{at}: policy.rules[{self.rule.index or 0}].{self.key}" if at else f"policy.rules.{self.key}"


class RuleLocations:
    """Locations of the keys of rules, with each file read only once."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def of(self, rule: RuleSettings | Rule, key: str = "") -> str:
        """Return `FILE:LINE` of a rule or of a key in it; only FILE if it has changed or is not a file."""
        source, index = (rule.origin.source, rule.origin.index) if isinstance(rule, Rule) else (rule.source, rule.index)
        if not source or index is None:
            return source
        path = ("policy", "rules", index, key) if key else ("policy", "rules", index)
        try:
            if source not in self._texts:
                self._texts[source] = (read_small_text(Path(source)) or "").removeprefix("\ufeff")
            return f"{source}:{find_key_line(path, self._texts[source])}"
        except (OSError, ValueError):
            return source


def check_rules(rules: Sequence[RuleSettings], around: LintContext) -> None:
    """Raise `ConfigError` for the first rule that can match nothing; say what else is odd in the log."""
    lines = RuleLocations()
    for problem in find_problems(rules, around):
        if problem.severity == "error":
            raise ConfigError(f"{problem.where(lines)}: {problem.text}", hint="handrail policy check says more")
        log.warning("%s: %s", problem.where(lines), problem.text)


def find_problems(rules: Sequence[RuleSettings], around: LintContext) -> Iterator[RuleProblem]:
    """Yield problems that prevent rules from matching anything, given the tools that exist and may appear."""
    for settings in rules:
        rule = build_rule(settings)
        if rule.server is not None:
            # Servers are asked for their tools later.
            continue
        named = [tool for tool in (entry.tool for entry in around.registry) if _is_named(rule, tool)]
        yield from _find_misfits(settings, rule, named) if named else _find_unknown_names(settings, around)


def _is_named(rule: Rule, tool: Tool) -> bool:
    fit = rule.of_tool(tool)
    return fit.yes or fit.key != "tool"


def _find_unknown_names(settings: RuleSettings, around: LintContext) -> Iterator[RuleProblem]:
    """Yield a problem for each name that no tool has.

    The severity depends on how certain that is: a disabled or broken plugin lacks its tools, and toolsets add theirs
    later.
    """
    import difflib

    known = around.registry.names()
    foretold = [toolset for toolset, _ in around.toolsets if isinstance(toolset, NamedToolset)]
    coming = [name for toolset in foretold for name in toolset.names]
    settled = len(around.plugins.loaded) == len(around.plugins.listed) and len(foretold) == len(around.toolsets)
    for name in settings.tool:
        if any(is_glob_match(name, pattern) for pattern in coming):
            continue
        slip = bool(difflib.get_close_matches(name.replace("*", ""), known, n=1, cutoff=TYPO_CUTOFF))
        # A project's file is shared by people with other plugins.
        grave = (settled or slip) and settings.tier != "workspace"
        yield RuleProblem(
            "error" if grave else "warning",
            settings,
            "tool",
            f"no tool here is called {name!r}{format_suggestion(name, known)}",
        )


def _find_misfits(settings: RuleSettings, rule: Rule, named: Sequence[Tool]) -> Iterator[RuleProblem]:
    """Yield a problem for each matcher that fits none of the tools that the rule names."""
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
        yield RuleProblem("warning" if any("*" in name for name in settings.tool) else "error", settings, key, text)
        return
    shown = ", ".join(tool.name for tool in fitting[:3])
    for key, can in CAPABILITY_CHECKS.items():
        if getattr(settings, key) and not any(map(can, fitting)):
            yield RuleProblem(
                "error", settings, key, f"{shown} {CAPABILITY_MESSAGES[key]}, so the rule can match nothing"
            )
    if rule.route is Route.SANDBOX and not any(tool.confinable for tool in fitting):
        yield RuleProblem("error", settings, "route", f"{shown} is not made to run in a sandbox")
    if rule.decision is Decision.ALLOW and rule.whole and any(map(_is_shell_tool, fitting)):
        yield RuleProblem(
            "warning",
            settings,
            "decision",
            "it allows every command that no floor holds; command or argv would narrow it",
        )


def _is_file_tool(tool: Tool) -> bool:
    return is_command_tool(tool) or any(effect.what in PATH_KINDS for effect in tool.effects)


def _is_network_tool(tool: Tool) -> bool:
    return is_command_tool(tool) or any(isinstance(effect, Send) for effect in tool.effects)


def _is_shell_tool(tool: Tool) -> bool:
    return any(isinstance(effect, Run) and effect.what == "shell" for effect in tool.effects)


CAPABILITY_CHECKS = {
    "command": is_command_tool,
    "argv": is_command_tool,
    "options": is_command_tool,
    "paths": _is_file_tool,
    "access": _is_file_tool,
    "hosts": _is_network_tool,
}
CAPABILITY_MESSAGES: Mapping[str, str] = {
    **dict.fromkeys(("command", "argv", "options"), "runs no commands"),
    **dict.fromkeys(("paths", "access"), "touches no files"),
    "hosts": "reaches no hosts",
}


def find_shadowed(rules: Sequence[Rule]) -> Iterator[tuple[Rule, Rule]]:
    """Yield rules that never decide, each with the rule that always precedes it.

    `rules` must be sorted by descending rank.
    """
    for at, rule in enumerate(rules):
        if not rule.tightening and (above := next((r for r in rules[:at] if _is_always_before(r, rule)), None)):
            yield rule, above


def _is_always_before(above: Rule, rule: Rule) -> bool:
    """Return True if the higher-ranked rule matches everything that the other one does."""
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
