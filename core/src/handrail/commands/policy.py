"""`handrail policy`"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Any

import click

from handrail.commands._common import (
    Choices,
    for_terminal,
    json_option,
    open_runtime_for,
    print_json,
    run,
    session_options,
    without_audit,
)
from handrail.plain import is_object

if TYPE_CHECKING:
    from handrail.config.rule_settings import RuleSettings
    from handrail.judging.explaining import Explained
    from handrail.judging.policy import Step
    from handrail.judging.rulecheck import Lines
    from handrail.judging.rules import Rule
    from handrail.judging.verdicts import Opinion, Part, Verdict
    from handrail.runtime import Runtime

WIDTH = 10
# The surroundings that a command gets without approval, by `View`.
VIEWS: Mapping[str, str] = {
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
def listing(choices: Choices, as_json: bool) -> None:
    """Print the rules that hold, with where each stands.

    The higher a rule stands in the list, the earlier it answers.

    Example: handrail policy list
    """
    run(lambda: _list(choices, as_json))


async def _list(choices: Choices, as_json: bool) -> None:
    from handrail.judging.rulecheck import Lines

    async with _runtime(choices) as runtime:
        lines = Lines()
        if as_json:
            print_json([_rule_wire(rule, lines) for rule in runtime.rules.ranked])
            return
        for rule in runtime.rules.ranked:
            click.echo(for_terminal(f"{_ranked(rule)}  {_matchers(rule)}{_said(rule)}  # {_origin(rule, lines)}"))
        if not runtime.rules.ranked:
            click.echo("there are no rules; the evaluators decide", err=True)


@command.command("check")
@click.argument("file", required=False, type=click.Path())
@session_options
@json_option
@click.pass_context
def check(context: click.Context, file: str | None, choices: Choices, as_json: bool) -> None:
    """Look for mistakes in rules.

    FILE is a configuration file; by default all that count here are read. Errors, which keep a file from being used, make the exit code 1.

    Example: handrail policy check handrail.toml
    """
    found = run(lambda: _check(file, choices))
    if as_json:
        print_json(found)
    else:
        for problem in found:
            click.echo(for_terminal(f"{problem['severity']}: {problem['where']}: {problem['text']}"))
        if not found:
            click.echo("nothing is wrong", err=True)
    context.exit(1 if any(problem["severity"] == "error" for problem in found) else 0)


async def _check(file: str | None, choices: Choices) -> list[dict[str, str]]:
    from handrail.commands._common import load_config
    from handrail.config.loading import without_rules
    from handrail.errors import ConfigError

    found: list[dict[str, str]] = []
    rules: Sequence[RuleSettings] = ()
    if file is not None:
        from pathlib import Path

        from handrail.config.loading import rules_of

        rules, wrong = rules_of(Path(file))
        found += map(_error, wrong)
    try:
        config = load_config(choices)
    except ConfigError as exc:
        # What the file was asked about comes first; without this one nobody knows which tools its rules could name.
        return [*found, _error(exc)]
    if file is None:
        rules = config.settings.policy.rules
    # What is looked for are mistakes in rules: with them, no runtime would start.
    async with open_runtime_for(choices, config=without_audit(without_rules(config)), follow=False) as runtime:
        return found + list(_problems(rules, runtime))


def _problems(settings: Any, runtime: Runtime) -> Iterator[dict[str, str]]:
    from handrail.judging.rulecheck import Lines, problems, shadowed
    from handrail.judging.rules import Rules, rule_of

    lines = Lines()
    for problem in problems(settings, runtime):
        yield {"severity": problem.severity, "where": problem.where(lines), "text": problem.text}
    for rule, above in shadowed(Rules(map(rule_of, settings)).ranked):
        text = f"it never answers: {_origin(above, lines)} ({above.called!r}) always does before it"
        yield {"severity": "warning", "where": _origin(rule, lines), "text": text}


def _error(exc: Exception) -> dict[str, str]:
    where, _, text = str(exc).partition(": ")
    return {"severity": "error", "where": where, "text": text}


@command.command("explain")
@click.argument("call")
@session_options
@json_option
def explain(call: str, choices: Choices, as_json: bool) -> None:
    """Show how a call is judged, and why.

    CALL is a shell command, or JSON as for `handrail evaluate`. Nothing is run. It is judged as for a person at a terminal.

    Example: handrail policy explain 'git push --force'
    """
    run(lambda: _explain(call, choices, as_json))


async def _explain(call: str, choices: Choices, as_json: bool) -> None:
    from handrail.commands._lines import BadLine
    from handrail.commands.evaluate import check_call, circumstances
    from handrail.judging.verdicts import Mode

    async with _runtime(choices) as runtime:
        try:
            given = _given(call, runtime)
            check_call(given)
            judging = circumstances(given, runtime)
        except BadLine as exc:
            raise click.UsageError(str(exc)) from exc
        asked = judging.mode is not Mode.HEADLESS
        judging = replace(judging, interactive=asked, at_terminal=asked)
        explained = await runtime.supposing.explain(given["tool"], given.get("args", {}), judging)
    if as_json:
        print_json(_wire(explained))
        return
    for line in _lines(explained):
        click.echo(for_terminal(line))


def _given(call: str, runtime: Runtime) -> dict[str, Any]:
    """The call as `handrail evaluate` takes it: JSON, or a command for the tool that runs some."""
    from handrail.tools.contract import Run

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


def _runtime(choices: Choices) -> Any:
    from handrail.commands._common import read_config

    return open_runtime_for(choices, config=without_audit(read_config(choices)), follow=False)


# --- in words ------------------------------------------------------------------------------------------------------------------------------


def _lines(explained: Explained) -> Iterator[str]:
    judging, verdict = explained.judging, explained.verdict
    yield _line("call", f"{explained.invocation.tool.name}: {explained.invocation.describe()}")
    yield _line(
        "mode", f"{judging.mode} in {judging.cwd}; sandbox: {judging.sandbox.name if judging.sandbox else 'none'}"
    )
    for at, part in enumerate(verdict.parts, start=1):
        yield _line("parts" if at == 1 else "", f"{at}. {_part(part)}")
    for at, opinion in enumerate(explained.opinions):
        yield _line("opinions" if at == 0 else "", f"{opinion.rule}: {_opinion(opinion)}")
        yield from (_line("", f"  {reason.text}") for reason in opinion.reasons)
    if not explained.opinions:
        yield _line("opinions", "none")
    for at, text in enumerate(_floors(explained)):
        yield _line("floors" if at == 0 else "", text)
    for at, text in enumerate(_steps(explained)):
        yield _line("rules" if at == 0 else "", text)
    if explained.hidden is not None:
        yield _line("listed", f"no: {explained.hidden}")
    where = "in the sandbox" if verdict.route == "sandbox" else "on the host"
    yield _line("decision", f"{verdict.decision} {where} by {verdict.rule}")
    if verdict.view is not None:
        yield _line("view", f"{verdict.view}: {VIEWS[verdict.view]}")
    if verdict.relies_on_undo:
        yield _line("undo", "it runs only if undo can keep what it overwrites or deletes")
    if verdict.hosts:
        yield _line("network", f"to {', '.join(verdict.hosts)} and no other host")
    yield from (_line("", f"because {reason.text}") for reason in verdict.reasons)


def _line(title: str, text: str) -> str:
    return f"{title:<{WIDTH}}{text}"


def _part(part: Part) -> str:
    import shlex

    touches = ", ".join(f"{touch.kind} {touch.what or '?'}" for touch in part.touches)
    words = shlex.join(part.argv) if part.argv else "the whole call"
    place = f"letters {part.span[0]} to {part.span[1]}" if part.span else ""
    more = [text for text in (touches, "harmless" if part.harmless else "", place) if text]
    return f"{words}  [{'; '.join(more)}]" if more else words


def _opinion(opinion: Opinion) -> str:
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


def _floors(explained: Explained) -> Iterator[str]:
    for opinion in explained.opinions:
        if opinion.catastrophic:
            yield f'deny by {opinion.rule}: catastrophic, asked about only under a rule with lifts = ["catastrophic"]'
        elif opinion.floor:
            yield f"{opinion.floor} by {opinion.rule}; a rule of yours lifts it with lifts = {json.dumps([opinion.rule])}"


def _steps(explained: Explained) -> Iterator[str]:
    from handrail.judging.rulecheck import Lines
    from handrail.judging.rules import Rule

    lines = Lines()
    for step in explained.steps:
        if isinstance(step.said_by, Rule):
            rule = step.said_by
            yield f"{_fit(step)}: {_ranked(rule)}  {_matchers(rule)}  # {_origin(rule, lines)}"
        else:
            yield f"{_fit(step)}: grant {step.said_by.id}  {step.said_by.option.label}, {step.said_by.told}"
    if not explained.steps:
        yield "none"


def _fit(step: Step) -> str:
    fits = [str(at) for at, fit in enumerate(step.fits, start=1) if fit.yes]
    if not fits:
        return f"no ({step.fits[0].key} does not fit)"
    doubt = " (doubtful)" if any(fit.doubtful for fit in step.fits) else ""
    return "yes" + doubt if len(fits) == len(step.fits) else f"part {', '.join(fits)}{doubt}"


def _ranked(rule: Rule) -> str:
    tier = f"{rule.tier} (may only tighten)" if rule.tightening else rule.tier
    return f"{tier} {rule.priority}  {rule.decision}{f' in the {rule.route}' if rule.route else ''}"


def _matchers(rule: Rule) -> str:
    return "  ".join(f"{key} = {_toml(value)}" for key, value in _set(rule).items())


def _said(rule: Rule) -> str:
    lifts = f"  lifts = {_toml(rule.lifts)}" if rule.lifts else ""
    return f"{lifts}  {rule.name!r}" if rule.name else lifts


def _toml(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _set(rule: Rule) -> dict[str, Any]:
    """The matchers that are given, under their names in a file."""
    from handrail.judging.rulecheck import MATCHERS

    named = {"layers": "layer", "kinds": "kind"}
    given = {named.get(key, key): getattr(rule, key) for key in MATCHERS}
    return {"tool": rule.tools, **{key: value for key, value in given.items() if value not in ((), None)}}


def _origin(rule: Rule, lines: Lines) -> str:
    return lines.of(rule) or "given by the host"


# --- as data -------------------------------------------------------------------------------------------------------------------------------


def _rule_wire(rule: Rule, lines: Lines) -> dict[str, Any]:
    return {
        "tier": rule.tier,
        "priority": rule.priority,
        "decision": rule.decision,
        "route": rule.route,
        "name": rule.name,
        "matchers": _set(rule),
        "reason": rule.reason,
        "lifts": rule.lifts,
        "tightening": rule.tightening,
        "source": _origin(rule, lines),
    }


def _wire(explained: Explained) -> Mapping[str, Any]:
    from handrail.judging.rulecheck import Lines
    from handrail.judging.rules import Rule

    lines = Lines()
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
