"""`handrail policy`"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from handrail.cli._common import (
    SessionOptions,
    disable_audit,
    escape_for_terminal,
    json_option,
    open_runtime_for,
    print_json,
    run_async,
    session_options,
)
from handrail.json_types import is_object

if TYPE_CHECKING:
    from handrail.api.verdict import Opinion, SubCommand, Verdict
    from handrail.config.rule_settings import RuleSettings
    from handrail.policy.engine import RuleMatch
    from handrail.policy.explain import VerdictExplanation
    from handrail.policy.rule_lint import RuleLocations
    from handrail.policy.rules import Rule
    from handrail.session.runtime import Runtime

TITLE_WIDTH = 10
# The surroundings that a command gets without approval, by `UrlView`.
VIEW_DESCRIPTIONS: Mapping[str, str] = {
    "shell": "builtins of the shell, on the host",
    "system": "on the host, in an empty directory with a clean environment",
    "files": "on the host, with the named files opened for it",
    "read": "in the sandbox, with the workspace read-only",
    "work": "in the sandbox, with the workspace writable",
}


@click.group("policy")
def command() -> None:
    """Show, explain and check the rules for calls."""


@command.command("list")
@session_options
@json_option
def list_policy_command(choices: SessionOptions, as_json: bool) -> None:
    """Print the rules in force, with the source of each.

    The higher a rule is in the list, the earlier it applies.

    Example: handrail policy list
    """
    run_async(lambda: _print_rules(choices, as_json))


async def _print_rules(choices: SessionOptions, as_json: bool) -> None:
    from handrail.policy.rule_lint import RuleLocations

    async with _open_runtime(choices) as runtime:
        lines = RuleLocations()
        if as_json:
            print_json([_rule_wire(rule, lines) for rule in runtime.rules.ranked])
            return
        for rule in runtime.rules.ranked:
            click.echo(
                escape_for_terminal(
                    f"{_format_rank(rule)}  {_format_matchers(rule)}{_format_rule_name(rule)}  # {_describe_origin(rule, lines)}"
                )
            )
        if not runtime.rules.ranked:
            click.echo("there are no rules; the evaluators decide", err=True)


@command.command("check")
@click.argument("file", required=False, type=click.Path())
@session_options
@json_option
@click.pass_context
def check_command(context: click.Context, file: str | None, choices: SessionOptions, as_json: bool) -> None:
    """Look for mistakes in rules.

    FILE is a configuration file; by default all that count here are read. Errors, which keep a file from being used, make the exit code 1.

    Example: handrail policy check handrail.toml
    """
    found = run_async(lambda: _check_rules(file, choices))
    if as_json:
        print_json(found)
    else:
        for problem in found:
            click.echo(escape_for_terminal(f"{problem['severity']}: {problem['where']}: {problem['text']}"))
        if not found:
            click.echo("nothing is wrong", err=True)
    context.exit(1 if any(problem["severity"] == "error" for problem in found) else 0)


async def _check_rules(file: str | None, choices: SessionOptions) -> list[dict[str, str]]:
    from handrail.cli._common import load_config
    from handrail.config.loader import remove_rules
    from handrail.errors import ConfigError

    found: list[dict[str, str]] = []
    rules: Sequence[RuleSettings] = ()
    if file is not None:
        from pathlib import Path

        from handrail.config.loader import read_rules

        rules, wrong = read_rules(Path(file))
        found += map(_error_wire, wrong)
    try:
        config = load_config(choices)
    except ConfigError as exc:
        # What the file was asked about comes first; without this one nobody knows which tools its rules could name.
        return [*found, _error_wire(exc)]
    if file is None:
        rules = config.settings.policy.rules
    # What is looked for are mistakes in rules: with them, no runtime would start.
    async with open_runtime_for(choices, config=disable_audit(remove_rules(config)), follow=False) as runtime:
        return found + list(_iter_problems(rules, runtime))


def _iter_problems(settings: Any, runtime: Runtime) -> Iterator[dict[str, str]]:
    from handrail.policy.rule_lint import RuleLocations, find_problems, find_shadowed
    from handrail.policy.rules import RuleSet, build_rule

    lines = RuleLocations()
    for problem in find_problems(settings, runtime):
        yield {"severity": problem.severity, "where": problem.where(lines), "text": problem.text}
    for rule, above in find_shadowed(RuleSet(map(build_rule, settings)).ranked):
        text = f"it never answers: {_describe_origin(above, lines)} ({above.called!r}) always does before it"
        yield {"severity": "warning", "where": _describe_origin(rule, lines), "text": text}


def _error_wire(exc: Exception) -> dict[str, str]:
    where, _, text = str(exc).partition(": ")
    return {"severity": "error", "where": where, "text": text}


@command.command("explain")
@click.argument("call")
@session_options
@json_option
def explain_command(call: str, choices: SessionOptions, as_json: bool) -> None:
    """Show how a call is judged, and why.

    CALL is a shell command, or JSON as for `handrail evaluate`. Nothing is run. It is judged as for a user at a
    terminal.

    Example: handrail policy explain 'git push --force'
    """
    run_async(lambda: _explain_call(call, choices, as_json))


async def _explain_call(call: str, choices: SessionOptions, as_json: bool) -> None:
    from handrail.api.verdict import Mode
    from handrail.cli.evaluate import build_context, check_call
    from handrail.terminal.json_lines import InvalidLine

    async with _open_runtime(choices) as runtime:
        try:
            given = _parse_call(call, runtime)
            check_call(given)
            judging = build_context(given, runtime)
        except InvalidLine as exc:
            raise click.UsageError(str(exc)) from exc
        asked = judging.mode is not Mode.HEADLESS
        judging = replace(judging, interactive=asked, at_terminal=asked)
        explained = await runtime.supposing.explain(given["tool"], given.get("args", {}), judging)
    if as_json:
        print_json(_explanation_wire(explained))
        return
    for line in _iter_explanation_lines(explained):
        click.echo(escape_for_terminal(line))


def _parse_call(call: str, runtime: Runtime) -> dict[str, Any]:
    """Parse a call as `handrail evaluate` accepts it: JSON, or a command for the tool that runs commands."""
    from handrail.api.tool import Run

    if call.lstrip().startswith("{"):
        try:
            given: Any = json.loads(call)
        except (ValueError, RecursionError):
            # `{ ls; }` is a command.
            given = None
        if is_object(given):
            return given
    for entry in runtime.registry:
        for effect in entry.tool.effects:
            if isinstance(effect, Run) and effect.what == "shell" and effect.arg:
                return {"tool": entry.tool.name, "args": {effect.arg: call}}
    raise click.UsageError('no tool here runs commands; write the call as JSON: {"tool": …, "args": {…}}')


def _open_runtime(choices: SessionOptions) -> Any:
    from handrail.cli._common import read_config

    return open_runtime_for(choices, config=disable_audit(read_config(choices)), follow=False)


# --- in words ------------------------------------------------------------------------------------------------------------------------------


def _iter_explanation_lines(explained: VerdictExplanation) -> Iterator[str]:
    judging, verdict = explained.judging, explained.verdict
    yield _format_row("call", f"{explained.invocation.tool.name}: {explained.invocation.describe()}")
    yield _format_row(
        "mode", f"{judging.mode} in {judging.cwd}; sandbox: {judging.sandbox.name if judging.sandbox else 'none'}"
    )
    for at, part in enumerate(verdict.parts, start=1):
        yield _format_row("parts" if at == 1 else "", f"{at}. {_describe_sub_command(part)}")
    for at, opinion in enumerate(explained.opinions):
        yield _format_row("opinions" if at == 0 else "", f"{opinion.rule}: {_describe_opinion(opinion)}")
        yield from (_format_row("", f"  {reason.text}") for reason in opinion.reasons)
    if not explained.opinions:
        yield _format_row("opinions", "none")
    for at, text in enumerate(_describe_floors(explained)):
        yield _format_row("floors" if at == 0 else "", text)
    for at, text in enumerate(_describe_matches(explained)):
        yield _format_row("rules" if at == 0 else "", text)
    if explained.hidden is not None:
        yield _format_row("listed", f"no: {explained.hidden}")
    where = "in the sandbox" if verdict.route == "sandbox" else "on the host"
    yield _format_row("decision", f"{verdict.decision} {where} by {verdict.rule}")
    if verdict.view is not None:
        yield _format_row("view", f"{verdict.view}: {VIEW_DESCRIPTIONS[verdict.view]}")
    if verdict.relies_on_undo:
        yield _format_row("undo", "it runs only if undo can keep what it overwrites or deletes")
    if verdict.hosts:
        yield _format_row("network", f"to {', '.join(verdict.hosts)} and no other host")
    yield from (_format_row("", f"because {reason.text}") for reason in verdict.reasons)


def _format_row(title: str, text: str) -> str:
    return f"{title:<{TITLE_WIDTH}}{text}"


def _describe_sub_command(part: SubCommand) -> str:
    import shlex

    touches = ", ".join(f"{touch.kind} {touch.what or '?'}" for touch in part.touches)
    words = shlex.join(part.argv) if part.argv else "the whole call"
    place = f"letters {part.span[0]} to {part.span[1]}" if part.span else ""
    more = [text for text in (touches, "harmless" if part.harmless else "", place) if text]
    return f"{words}  [{'; '.join(more)}]" if more else words


def _describe_opinion(opinion: Opinion) -> str:
    said = [f"suggests {opinion.suggestion}" if opinion.suggestion else "suggests nothing"]
    if opinion.suggestion and opinion.route == "sandbox":
        said[0] += " in the sandbox"
    if opinion.floor:
        said.append(f"floor {opinion.floor}")
    if opinion.catastrophic:
        said.append("catastrophic")
    if not opinion.trusted:
        said.append("may only tighten")
    return ", ".join(said)


def _describe_floors(explained: VerdictExplanation) -> Iterator[str]:
    for opinion in explained.opinions:
        if opinion.catastrophic:
            yield f'deny by {opinion.rule}: catastrophic, asked about only under a rule with lifts = ["catastrophic"]'
        elif opinion.floor:
            yield f"{opinion.floor} by {opinion.rule}; a rule of yours lifts it with lifts = {json.dumps([opinion.rule])}"


def _describe_matches(explained: VerdictExplanation) -> Iterator[str]:
    from handrail.policy.rule_lint import RuleLocations
    from handrail.policy.rules import Rule

    lines = RuleLocations()
    for step in explained.steps:
        if isinstance(step.said_by, Rule):
            rule = step.said_by
            yield f"{_describe_fit(step)}: {_format_rank(rule)}  {_format_matchers(rule)}  # {_describe_origin(rule, lines)}"
        else:
            yield f"{_describe_fit(step)}: grant {step.said_by.id}  {step.said_by.option.label}, {step.said_by.told}"
    if not explained.steps:
        yield "none"


def _describe_fit(step: RuleMatch) -> str:
    fits = [str(at) for at, fit in enumerate(step.fits, start=1) if fit.yes]
    if not fits:
        return f"no ({step.fits[0].key} does not fit)"
    doubt = " (doubtful)" if any(fit.doubtful for fit in step.fits) else ""
    return "yes" + doubt if len(fits) == len(step.fits) else f"part {', '.join(fits)}{doubt}"


def _format_rank(rule: Rule) -> str:
    tier = f"{rule.tier} (may only tighten)" if rule.tightening else rule.tier
    return f"{tier} {rule.priority}  {rule.decision}{f' in the {rule.route}' if rule.route else ''}"


def _format_matchers(rule: Rule) -> str:
    return "  ".join(f"{key} = {_format_toml_value(value)}" for key, value in _get_set_matchers(rule).items())


def _format_rule_name(rule: Rule) -> str:
    lifts = f"  lifts = {_format_toml_value(rule.lifts)}" if rule.lifts else ""
    return f"{lifts}  {rule.name!r}" if rule.name else lifts


def _format_toml_value(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _get_set_matchers(rule: Rule) -> dict[str, Any]:
    """Return the matchers that a rule sets, under their names in a configuration file."""
    from handrail.policy.rule_lint import MATCHERS

    named = {"layers": "layer", "kinds": "kind"}
    given = {named.get(key, key): getattr(rule, key) for key in MATCHERS}
    return {"tool": rule.tools, **{key: value for key, value in given.items() if value not in ((), None)}}


def _describe_origin(rule: Rule, lines: RuleLocations) -> str:
    return lines.of(rule) or "given by the host"


# --- as data -------------------------------------------------------------------------------------------------------------------------------


def _rule_wire(rule: Rule, lines: RuleLocations) -> dict[str, Any]:
    return {
        "tier": rule.tier,
        "priority": rule.priority,
        "decision": rule.decision,
        "route": rule.route,
        "name": rule.name,
        "matchers": _get_set_matchers(rule),
        "reason": rule.reason,
        "lifts": rule.lifts,
        "tightening": rule.tightening,
        "source": _describe_origin(rule, lines),
    }


def _explanation_wire(explained: VerdictExplanation) -> Mapping[str, Any]:
    from handrail.policy.rule_lint import RuleLocations
    from handrail.policy.rules import Rule

    lines = RuleLocations()
    return {
        "call": {"tool": explained.invocation.tool.name, "args": explained.invocation.args},
        "mode": explained.judging.mode,
        "cwd": str(explained.judging.cwd),
        "workspace": [str(root) for root in explained.judging.workspace],
        "sandbox": asdict(explained.judging.sandbox) if explained.judging.sandbox else None,
        "parts": [asdict(part) for part in explained.verdict.parts],
        "opinions": [asdict(opinion) for opinion in explained.opinions],
        "rules": [
            {**_rule_wire(step.said_by, lines), "fits": [asdict(fit) for fit in step.fits]}
            for step in explained.steps
            if isinstance(step.said_by, Rule)
        ],
        "grants": [
            {"id": step.said_by.id, "label": step.said_by.option.label, "fits": [asdict(fit) for fit in step.fits]}
            for step in explained.steps
            if not isinstance(step.said_by, Rule)
        ],
        "hidden": explained.hidden,
        "verdict": _verdict_wire(explained.verdict),
    }


def _verdict_wire(verdict: Verdict) -> dict[str, Any]:
    return {
        "decision": verdict.decision,
        "route": verdict.route,
        "view": verdict.view,
        "relies_on_undo": verdict.relies_on_undo,
        "hosts": list(verdict.hosts),
        "rule": verdict.rule,
        "reasons": [asdict(reason) for reason in verdict.reasons],
        "catastrophic": verdict.catastrophic,
        "grantable": verdict.grantable,
        "narrowed": verdict.narrowed,
        "grants": verdict.grants,
    }
