"""`handrail run`"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from handrail.commands import Choices, open_runtime_for, run, session_options
from handrail.commands._common import json_option, on_signal
from handrail.errors import ConfigError

if TYPE_CHECKING:
    from google.adk.models.base_llm import BaseLlm

    from handrail_adk.running import Outcome

MODEL = "gemini-3-pro-preview"
STEPS, SECONDS = 50, 600
# What commands that the agent runs must not learn.
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")


@click.command("run")
@click.argument("task")
@click.option("--model", default=MODEL, metavar="M", help=f"A model's name, or script:FILE [{MODEL}].")
@click.option("--steps", type=click.IntRange(1), default=STEPS, help=f"Steps of the model, at most [{STEPS}].")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), default=SECONDS, help=f"In all [{SECONDS}].")
@click.option("--yes", is_flag=True, help="Say yes to ordinary questions, never to a catastrophic one.")
@session_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    task: str,
    model: str,
    steps: int,
    seconds: float,
    yes: bool,
    choices: Choices,
    as_json: bool,
) -> None:
    """Have an agent carry out TASK with these tools.

    Models of Gemini need GEMINI_API_KEY; others, as in openai/gpt-5, the package litellm. script:FILE replays a recorded model. Ctrl-C stops
    the calls of the step, a second one the run. Exits with 0 when the task is done, 1 when it failed, was denied or used up its budget, 2 when
    misused, 130 after Ctrl-C.

    Example: handrail run "rename the screenshots in this folder by date"
    """
    from handrail.commands._stdio import own_stdio
    from handrail_adk.models import model_of

    try:
        made = model_of(model)
    except ConfigError as exc:
        told = f"{exc}; {exc.hint}" if exc.hint else str(exc)
        raise click.BadParameter(told, param_hint="--model") from exc
    with own_stdio() as (_, stdout):
        outcome, caught = run(lambda: _run(task, made, choices, steps, seconds, stdout, yes=yes, as_json=as_json))
    context.exit(128 + caught if caught and not outcome.done else 0 if outcome.done else 1)


async def _run(
    task: str,
    model: str | BaseLlm,
    choices: Choices,
    steps: int,
    seconds: float,
    stdout: int,
    *,
    yes: bool,
    as_json: bool,
) -> tuple[Outcome, int]:
    """What became of it, and the number of the signal that ended it, or 0."""
    import anyio

    from handrail.asking import confirm
    from handrail.commands._ask import at_terminal
    from handrail_adk.running import STOPPED, Budget, carry_out, nobody
    from handrail_adk.showing import JsonLines, Lines

    environment = {name: value for name, value in os.environ.items() if name not in KEYS}
    confirmer = confirm.yes if yes else at_terminal() or nobody
    shown = JsonLines(stdout) if as_json else Lines(stdout)
    outcome, caught = STOPPED, 0
    async with (
        open_runtime_for(choices, environment=environment) as runtime,
        runtime.session(confirm=confirmer) as session,
    ):
        stop_showing = session.bus.subscribe(shown.event)

        def stop(number: int) -> None:
            nonlocal caught
            # The first signal ends the calls of the step; where none runs, or at the second, the run.
            if caught or not session.cancel():
                scope.cancel()
            caught = caught or number

        async with on_signal(stop):
            with anyio.CancelScope() as scope:
                outcome = await carry_out(task, model, session, Budget(steps, seconds), shown.text)
        stop_showing()
    shown.ended(outcome)
    return outcome, caught
