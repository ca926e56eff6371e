"""`handrail run`"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.cli import (
    SessionOptions,
    handle_signals,
    json_option,
    open_runtime_for,
    print_error,
    run_async,
    session_options,
)
from handrail.errors import ConfigError

if TYPE_CHECKING:
    from handrail import Session
    from handrail_adk.budgets import RunBudget
    from handrail_adk.config import RunConfig
    from handrail_adk.progress_display import ProgressDisplay

# What commands that the agent runs must not learn.
KEY_VARIABLES = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
USAGE_EXIT_CODE = 2


@click.command("run")
@click.argument("task", required=False)
@click.option("--resume", metavar="ID", help="Go on with this run, which `handrail sessions list` shows.")
@click.option("--report", metavar="FILE", type=click.Path(path_type=Path), help="Write an HTML report to FILE.")
@click.option("--model", metavar="M", help="A model's name, or script:FILE [gemini-3-pro-preview].")
@click.option("--steps", type=click.IntRange(1), help="Answers of the model, at most [50].")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Seconds, at most [600].")
@click.option("--tokens", type=click.IntRange(1), help="Tokens, read and written, at most [2000000].")
@click.option("--dollars", type=click.FloatRange(0, min_open=True), help="Dollars, at most; needs the model's price.")
@click.option("--yes", is_flag=True, help="Say yes to ordinary questions, never to a catastrophic one.")
@session_options
@json_option
@click.pass_context
def run_command(
    context: click.Context,
    task: str | None,
    resume: str | None,
    report: Path | None,
    yes: bool,
    choices: SessionOptions,
    as_json: bool,
    **given: Any,
) -> None:
    """Have an agent carry out TASK with these tools.

    Models of Gemini need GEMINI_API_KEY; others, as in openai/gpt-5, the package litellm. script:FILE replays a recorded model. Ctrl-C stops
    the step and asks you how to go on; without a terminal it ends the run, as a second one does.

    Exit: 0 done, 1 failed or denied, 2 misused, 3 the model refused, 4 its answer was cut off; at the end of a budget 5 steps, 6 seconds,
    7 tokens, 8 dollars; 130 after Ctrl-C.

    Example: handrail run "rename the screenshots in this folder by date"
    """
    from handrail.terminal.stdio import take_over_stdio

    if resume is None and not (task or "").strip():
        raise click.UsageError("say what is to be done, or --resume a run")
    kept = RunRequest(task or "", resume, report)
    try:
        with take_over_stdio() as (_, stdout):
            code = run_async(lambda: _run_task(kept, given, choices, stdout, yes=yes, as_json=as_json))
    except ConfigError as exc:
        print_error(str(exc), hint=exc.hint)
        code = USAGE_EXIT_CODE
    context.exit(code)


@dataclass(frozen=True, slots=True)
class RunRequest:
    """Request for a run: the task, the run to resume, and the path of the report."""

    task: str
    resume: str | None
    report: Path | None


async def _run_task(
    asked: RunRequest, given: Mapping[str, Any], choices: SessionOptions, stdout: int, *, yes: bool, as_json: bool
) -> int:
    """Run the task, and return the exit code of the program."""
    from handrail.api import approval
    from handrail.terminal.approval_prompt import create_terminal_confirmer
    from handrail_adk.agent_run import RunJob, refuse_unattended
    from handrail_adk.budgets import EXIT_CODES, RunEnding, build_budget
    from handrail_adk.models import open_model
    from handrail_adk.run_output import JsonLines, TextLines
    from handrail_adk.run_report import ReportRecorder
    from handrail_adk.run_store import RESUME_MESSAGE, RunStore
    from handrail_adk.turns import RunTurns, ask_next_message

    environment = {name: value for name, value in os.environ.items() if name not in KEY_VARIABLES}
    person = create_terminal_confirmer()
    confirmer = approval.yes if yes else person or refuse_unattended
    async with (
        open_runtime_for(choices, environment=environment) as runtime,
        runtime.session(confirm=confirmer) as session,
    ):
        config = _build_config(session, given)
        budget = build_budget(config)
        shown = JsonLines(stdout) if as_json else _create_display(stdout, config, budget) or TextLines(stdout)
        stop_showing = session.bus.subscribe(shown.hear)
        turns = RunTurns(session, None if as_json or person is None else ask_next_message)
        runs, id, task = RunStore(runtime.places), asked.resume or session.id, asked.task or RESUME_MESSAGE
        pages = ReportRecorder(session) if asked.report is not None else None
        async with open_model(config, key=await _find_key(config, session)) as model, handle_signals(turns.stop):
            with runs.alone(id):
                await (
                    runs.begin(session, task, model.model)
                    if asked.resume is None
                    else runs.go_on(id, session, model.model)
                )
                ending = await turns.carry_out(RunJob(task, model, config, budget, runs.service, id), runs)
                await runs.ended(id, ending.value)
        stop_showing()
        if pages is not None and asked.report is not None:
            pages.write(asked.report.absolute(), task, model.model, ending.value)
    return 128 + turns.caught if turns.caught and ending is not RunEnding.DONE else EXIT_CODES[ending]


def _create_display(stdout: int, config: RunConfig, budget: RunBudget) -> ProgressDisplay | None:
    """Return the live display, or None without a terminal that can show it."""
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        return None
    from handrail.terminal.approval_prompt import TERMINAL_DEVICE
    from handrail_adk.progress_display import ProgressDisplay
    from handrail_adk.thumbnails import detect_protocol

    return ProgressDisplay(stdout, budget, way=detect_protocol(TERMINAL_DEVICE) if config.thumbnails else None)


def _build_config(session: Session, given: Mapping[str, Any]) -> RunConfig:
    """Return the configuration, overridden by the values given on the command line.

    Raises `ConfigError` for a value that does not fit.
    """
    from pydantic import ValidationError

    from handrail import validation_messages
    from handrail_adk.config import RunConfig

    config = session.runtime.plugin_config("adk")
    assert isinstance(config, RunConfig)
    chosen = {name: value for name, value in given.items() if value is not None}
    try:
        return RunConfig.model_validate({**dict(config), **chosen})
    except ValidationError as exc:
        raise ConfigError(
            f"--{validation_messages.describe_error(validation_messages.select_error(exc), RunConfig)}"
        ) from exc


async def _find_key(config: RunConfig, session: Session) -> str | None:
    """Return the key of the Gemini API, or None if there is none."""
    if config.key is not None:
        return await session.secrets.take(config.key.removeprefix("secret:"))
    return next((os.environ[name] for name in KEY_VARIABLES if os.environ.get(name)), None)
