"""`handrail replay`"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.cli._common import SessionOptions, open_runtime_for, parse_named_values, run_async, session_options
from handrail.text import make_visible

if TYPE_CHECKING:
    from handrail.api.approval import Confirmer
    from handrail.plans.replay import StepResult

# Where the eye finds the verdict: column widths of a line.
STEP_WIDTH, TOOL_WIDTH, VERDICT_WIDTH, STATUS_WIDTH, EFFECT_WIDTH = 46, 20, 9, 10, 11


@click.command("replay")
@click.argument("plan", type=click.Path(path_type=Path))
@session_options
@click.option("--yes", "answer", flag_value="yes", help="Say yes to ordinary confirmations.")
@click.option("--deny", "answer", flag_value="deny", help="Say no to every confirmation.")
@click.option(
    "--param", "params", metavar="NAME=VALUE", multiple=True, help="A parameter of the plan; may be repeated."
)
@click.option("--report", metavar="FILE", type=click.Path(path_type=Path), help="Write an HTML report to FILE.")
def command(
    plan: Path, choices: SessionOptions, answer: str | None, params: tuple[str, ...], report: Path | None
) -> None:
    """Run a plan: tool calls written in a YAML file.

    Each step goes through the full path of a call. The run stops at the first step that does not do what the plan
    expects.

    Example: handrail replay plan.yaml --desktop private --deny
    """
    if not run_async(
        lambda: _replay_plan(plan, choices, _choose_confirmer(answer), parse_named_values(params, "--param"), report)
    ):
        raise SystemExit(1)


def _choose_confirmer(answer: str | None) -> Confirmer | None:
    from handrail.api import approval
    from handrail.terminal.approval_prompt import create_terminal_confirmer

    return {"yes": approval.yes, "deny": approval.no}.get(answer or "") or create_terminal_confirmer()


async def _replay_plan(
    path: Path, choices: SessionOptions, confirmer: Confirmer | None, params: Mapping[str, str], report: Path | None
) -> bool:
    """Run the plan, telling each step as it ends; whether every step did what the plan expects."""
    from handrail.plans.plan_file import read_plan
    from handrail.plans.replay import run_plan

    plan = read_plan(path)
    plan.values(params)
    async with open_runtime_for(choices) as runtime, runtime.session(confirm=confirmer) as session:
        _print_line(
            f"{plan.name}: {plan.count} steps from {path}, a plan file. No model takes part, and no key is needed."
        )
        _print_line(f"Desktop {session.settings.desktop!r}, workspace {session.workspace[0]}.")
        _print_line("")
        _print_line(_format_columns("step", "tool", "verdict", "status", "effect", "time"))
        steps = await run_plan(plan, session, params=params, told=_print_step)
        if report is not None:
            from handrail.plans.html_report import write_report

            write_report(report.absolute(), plan, steps, session, beside=path.parent)
        kept = _save_failure_pictures(path, steps[-1], runtime.places.artifacts / session.id)
    good = len(steps) == plan.count and all(done.failure is None for done in steps)
    _print_line("")
    _print_line(f"{len(steps)} of {plan.count} steps run, {'all as expected' if good else 'the last not as expected'}.")
    for line in kept:
        _print_line(line)
    if report is not None:
        _print_line(str(report.absolute()))
    return good


def _save_failure_pictures(plan: Path, last: StepResult, folder: Path) -> list[str]:
    """Return where the pictures of a failed step are: the recorded one, and the screen as it is now."""
    from handrail.fs.app_dirs import ensure_private_folder
    from handrail.plans.html_report import read_before_and_now

    if last.failure is None or not last.step.tool:
        return []
    before, now = read_before_and_now(last, plan.parent)
    told: list[str] = []
    if last.step.picture:
        kept = str((plan.parent / last.step.picture).absolute())
        told.append(f"As recorded: {kept}" if before else f"As recorded: no picture is at {kept}")
    if now is not None:
        file = ensure_private_folder(folder) / f"step-{last.number}.jpg"
        file.write_bytes(now)
        told.append(f"Now: {file}")
    return told


def _print_step(done: StepResult) -> None:
    result: Mapping[str, Any] = done.result or {}
    _print_line(
        _format_columns(
            fit_column(f"{done.number:>2} {done.step.title}"),
            done.step.tool,
            done.verdict.decision if done.verdict else "skipped" if done.skipped else "none",
            result.get("status", ""),
            str(result.get("effect", "")),
            f"{done.seconds:.2f} s",
        )
    )
    if done.result is not None and "error" in done.result:
        _print_line(f"   {done.result['error']['message']}")
    if done.failure is not None:
        _print_line(f"   NOT AS EXPECTED: {done.failure}")


def fit_column(text: str) -> str:
    """Return the text cut to the width of its column."""
    return text if len(text) <= STEP_WIDTH else f"{text[: STEP_WIDTH - 1]}…"


def _format_columns(step: str, tool: str, verdict: str, status: str, effect: str, time: str) -> str:
    return f"{step:<{STEP_WIDTH}} {tool:<{TOOL_WIDTH}} {verdict:<{VERDICT_WIDTH}} {status:<{STATUS_WIDTH}} {effect:<{EFFECT_WIDTH}} {time:>8}"


def _print_line(line: str) -> None:
    """Print a line; text from a plan or a tool can neither move the cursor nor start a new line."""
    click.echo(make_visible(line.replace("\n", "⏎")))
