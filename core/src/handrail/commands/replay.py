"""`handrail replay`"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.commands._common import Choices, named_values, open_runtime_for, run, session_options
from handrail.words import visible

if TYPE_CHECKING:
    from handrail.asking.confirm import Confirmer
    from handrail.records.replaying import StepDone

# Where the eye finds the verdict: column widths of a line.
STEP, TOOL, VERDICT, STATUS, EFFECT = 46, 20, 9, 10, 11


@click.command("replay")
@click.argument("plan", type=click.Path(path_type=Path))
@session_options
@click.option("--yes", "answer", flag_value="yes", help="Say yes to ordinary confirmations.")
@click.option("--deny", "answer", flag_value="deny", help="Say no to every confirmation.")
@click.option(
    "--param", "params", metavar="NAME=VALUE", multiple=True, help="A parameter of the plan; may be repeated."
)
@click.option("--report", metavar="FILE", type=click.Path(path_type=Path), help="Write an HTML report to FILE.")
def command(plan: Path, choices: Choices, answer: str | None, params: tuple[str, ...], report: Path | None) -> None:
    """Run a plan: tool calls written in a YAML file.

    Each step goes the whole path of a call. The run stops at the first step that does not do what the plan expects.

    Example: handrail replay plan.yaml --desktop private --deny
    """
    if not run(lambda: _replay(plan, choices, _confirmer(answer), named_values(params, "--param"), report)):
        raise SystemExit(1)


def _confirmer(answer: str | None) -> Confirmer | None:
    from handrail.asking import confirm
    from handrail.commands._ask import at_terminal

    return {"yes": confirm.yes, "deny": confirm.no}.get(answer or "") or at_terminal()


async def _replay(
    path: Path, choices: Choices, confirmer: Confirmer | None, params: Mapping[str, str], report: Path | None
) -> bool:
    """Run the plan, telling each step as it ends; whether every step did what the plan expects."""
    from handrail.records.plans import read_plan
    from handrail.records.replaying import run_plan

    plan = read_plan(path)
    plan.values(params)
    async with open_runtime_for(choices) as runtime, runtime.session(confirm=confirmer) as session:
        _say(f"{plan.name}: {plan.count} steps from {path}, a plan file. No model takes part, and no key is needed.")
        _say(f"Desktop {session.settings.desktop!r}, workspace {session.workspace[0]}.")
        _say("")
        _say(_columns("step", "tool", "verdict", "status", "effect", "time"))
        steps = await run_plan(plan, session, params=params, told=_tell)
        if report is not None:
            from handrail.records.report import write_report

            write_report(report.absolute(), plan, steps, session, beside=path.parent)
        kept = _keep_picture(path, steps[-1], runtime.places.artifacts / session.id)
    good = len(steps) == plan.count and all(done.failure is None for done in steps)
    _say("")
    _say(f"{len(steps)} of {plan.count} steps run, {'all as expected' if good else 'the last not as expected'}.")
    for line in kept:
        _say(line)
    if report is not None:
        _say(str(report.absolute()))
    return good


def _keep_picture(plan: Path, last: StepDone, folder: Path) -> list[str]:
    """Of a step that failed, where the pictures are: the recorded one, and the screen's as it is now."""
    from handrail.config.places import private_folder
    from handrail.records.report import before_and_now

    if last.failure is None or not last.step.tool:
        return []
    before, now = before_and_now(last, plan.parent)
    told: list[str] = []
    if last.step.picture:
        kept = str((plan.parent / last.step.picture).absolute())
        told.append(f"As recorded: {kept}" if before else f"As recorded: no picture is at {kept}")
    if now is not None:
        file = private_folder(folder) / f"step-{last.number}.jpg"
        file.write_bytes(now)
        told.append(f"Now: {file}")
    return told


def _tell(done: StepDone) -> None:
    result: Mapping[str, Any] = done.result or {}
    _say(
        _columns(
            shortened(f"{done.number:>2} {done.step.title}"),
            done.step.tool,
            done.verdict.decision if done.verdict else "skipped" if done.skipped else "none",
            result.get("status", ""),
            str(result.get("effect", "")),
            f"{done.seconds:.2f} s",
        )
    )
    if done.result is not None and "error" in done.result:
        _say(f"   {done.result['error']['message']}")
    if done.failure is not None:
        _say(f"   NOT AS EXPECTED: {done.failure}")


def shortened(text: str) -> str:
    """The text cut to the width of its column."""
    return text if len(text) <= STEP else f"{text[: STEP - 1]}…"


def _columns(step: str, tool: str, verdict: str, status: str, effect: str, time: str) -> str:
    return f"{step:<{STEP}} {tool:<{TOOL}} {verdict:<{VERDICT}} {status:<{STATUS}} {effect:<{EFFECT}} {time:>8}"


def _say(line: str) -> None:
    """Print a line; what a plan or a tool put into it can neither move the cursor nor start a line of its own."""
    click.echo(visible(line.replace("\n", "⏎")))
