"""`handrail run`"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from handrail.commands import Choices, open_runtime_for, run, session_options
from handrail.commands._common import complain, json_option, on_signal
from handrail.errors import ConfigError

if TYPE_CHECKING:
    from handrail import Session
    from handrail_adk.config import RunConfig

# What commands that the agent runs must not learn.
KEYS = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
MISUSED = 2


@click.command("run")
@click.argument("task")
@click.option("--model", metavar="M", help="A model's name, or script:FILE [gemini-3-pro-preview].")
@click.option("--steps", type=click.IntRange(1), help="Answers of the model, at most [50].")
@click.option("--seconds", type=click.FloatRange(0, min_open=True), help="Seconds, at most [600].")
@click.option("--tokens", type=click.IntRange(1), help="Tokens, read and written, at most [2000000].")
@click.option("--dollars", type=click.FloatRange(0, min_open=True), help="Dollars, at most; needs the model's price.")
@click.option("--yes", is_flag=True, help="Say yes to ordinary questions, never to a catastrophic one.")
@session_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    task: str,
    yes: bool,
    choices: Choices,
    as_json: bool,
    **given: Any,
) -> None:
    """Have an agent carry out TASK with these tools.

    Models of Gemini need GEMINI_API_KEY; others, as in openai/gpt-5, the package litellm. script:FILE replays a recorded model. Ctrl-C stops
    the calls of the step, a second one the run.

    Exit: 0 done, 1 failed or denied, 2 misused, 3 the model refused, 4 its answer was cut off; at the end of a budget 5 steps, 6 seconds,
    7 tokens, 8 dollars; 130 after Ctrl-C.

    Example: handrail run "rename the screenshots in this folder by date"
    """
    from handrail.commands._stdio import own_stdio

    try:
        with own_stdio() as (_, stdout):
            code = run(lambda: _run(task, given, choices, stdout, yes=yes, as_json=as_json))
    except ConfigError as exc:
        complain(str(exc), hint=exc.hint)
        code = MISUSED
    context.exit(code)


async def _run(task: str, given: Mapping[str, Any], choices: Choices, stdout: int, *, yes: bool, as_json: bool) -> int:
    """What the program exits with."""
    import anyio

    from handrail.asking import confirm
    from handrail.commands._ask import at_terminal
    from handrail_adk.budgets import EXIT_CODES, Ending, budget_of
    from handrail_adk.models import open_model
    from handrail_adk.running import Job, carry_out, nobody
    from handrail_adk.showing import JsonLines, Lines

    environment = {name: value for name, value in os.environ.items() if name not in KEYS}
    confirmer = confirm.yes if yes else at_terminal() or nobody
    shown = JsonLines(stdout) if as_json else Lines(stdout)
    ending, caught = Ending.STOPPED, 0
    async with (
        open_runtime_for(choices, environment=environment) as runtime,
        runtime.session(confirm=confirmer) as session,
    ):
        config = _configured(session, given)
        budget = budget_of(config)
        stop_showing = session.bus.subscribe(shown.hear)

        def stop(number: int) -> None:
            nonlocal caught
            # The first signal ends the calls of the step; where none runs, or at the second, the run.
            if caught or not session.cancel():
                scope.cancel()
            caught = caught or number

        async with open_model(config, key=await _key(config, session)) as model, on_signal(stop):
            with anyio.CancelScope() as scope:
                ending = Ending((await carry_out(Job(task, model, config, budget), session)).ending)
        stop_showing()
    return 128 + caught if caught and ending is not Ending.DONE else EXIT_CODES[ending]


def _configured(session: Session, given: Mapping[str, Any]) -> RunConfig:
    """The configuration, and what a person has given in its place."""
    from handrail_adk.config import RunConfig

    config = session.runtime.plugin_config("adk")
    assert isinstance(config, RunConfig)
    return config.model_copy(update={name: value for name, value in given.items() if value is not None})


async def _key(config: RunConfig, session: Session) -> str | None:
    """The key of the Gemini API; None where there is none."""
    if config.key is not None:
        return await session.secrets.take(config.key.removeprefix("secret:"))
    return next((os.environ[name] for name in KEYS if os.environ.get(name)), None)
