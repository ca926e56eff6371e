"""`handrail record`"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handrail.cli._common import (
    SessionOptions,
    disable_audit,
    open_runtime_for,
    read_config,
    run_async,
    session_options,
)
from handrail.errors import HandrailError

if TYPE_CHECKING:
    from handrail.audit.step_recorder import RecordedStep
    from handrail.fs.app_dirs import AppDirs
    from handrail.plans.plan_recorder import PlanRecording, RecordingOptions
    from handrail.session.session import Session


@click.command("record")
@click.argument("session")
@click.option(
    "-o", "--output", "file", metavar="FILE", required=True, type=click.Path(path_type=Path), help="The plan."
)
@click.option("--param", "params", metavar="NAME=VALUE", multiple=True, help="Make VALUE a parameter; repeatable.")
@click.option("--inputs", is_flag=True, help="Make a parameter of each text that was typed.")
@session_options
def command(session: str, file: Path, params: tuple[str, ...], inputs: bool, choices: SessionOptions) -> None:
    """Make a plan of what a session did.

    SESSION is the id of a past or running one, as `handrail history --json` shows it. Calls that failed are left out. Elements are named by
    what they are, secrets are not written. Run the plan with `handrail replay`.

    Example: handrail record 20260301-101500-a1b2c3 -o invoice.yaml --param customer=Ada
    """
    recording = run_async(lambda: _record_plan(session, file.stem, params, choices, inputs=inputs))
    print_recording_summary(recording, recording.write(file))


async def _record_plan(
    session: str, name: str, params: Sequence[str], choices: SessionOptions, *, inputs: bool
) -> PlanRecording:
    from handrail.cli._common import parse_named_values
    from handrail.fs.app_dirs import AppDirs
    from handrail.plans.plan_recorder import RecordingOptions

    made, workspace = read_session_calls(session, AppDirs.of(os.environ))
    wishes = RecordingOptions(name, workspace, parse_named_values(params, "--param"), inputs)
    config = disable_audit(read_config(choices))
    async with open_runtime_for(choices, config=config, follow=False) as runtime, runtime.session() as asking:
        return await build_recording(made, asking, wishes)


async def build_recording(made: Iterable[RecordedStep], session: Session, wishes: RecordingOptions) -> PlanRecording:
    """Build the plan of these calls, with the tools that a session knows."""
    from handrail.plans.plan_recorder import build_plan

    return build_plan(made, {listed.tool.name: listed.tool for listed in await session.all_tools()}, wishes)


def read_session_calls(session: str, places: AppDirs) -> tuple[Iterator[RecordedStep], str]:
    """Return the calls in a session's audit, and its first workspace root; empty if the audit does not name one."""
    from handrail.audit.query import read_lines
    from handrail.audit.writer import list_parts
    from handrail.plans.plan_recorder import iter_recorded_steps

    name = Path(session).name
    parts = list_parts(places.audit / f"{name}.jsonl")
    if not parts:
        raise HandrailError(f"there is no session {session!r}", hint="`handrail history --json` names those there are")
    lines = [line for part in parts for line in read_lines(part)]
    roots = next(
        (line["workspace"] for line in lines if line.get("event") == "session" and line.get("workspace")), [""]
    )
    return iter_recorded_steps(lines, places.artifacts / name), str(roots[0])


def print_recording_summary(recording: PlanRecording, file: Path) -> None:
    """Say what was written, and what was not."""
    for why in recording.left_out:
        click.echo(f"Note: left out: {why}", err=True)
    wanted = [name for name, each in _get_parameters(recording).items() if "default" not in each]
    if wanted:
        click.echo(f"Note: to be given on replay: {', '.join(wanted)}", err=True)
    click.echo(f"{recording.count} steps in {file}", err=True)


def _get_parameters(recording: PlanRecording) -> Mapping[str, Mapping[str, object]]:
    return recording.content.get("parameters", {})
