"""`handrail record`"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from handrail.commands._common import Choices, open_runtime_for, read_config, run, session_options, without_audit
from handrail.errors import HandrailError

if TYPE_CHECKING:
    from handrail.config.places import Places
    from handrail.records.recording import Made, Recording, Wishes
    from handrail.session import Session


@click.command("record")
@click.argument("session")
@click.option(
    "-o", "--output", "file", metavar="FILE", required=True, type=click.Path(path_type=Path), help="The plan."
)
@click.option("--param", "params", metavar="NAME=VALUE", multiple=True, help="Make VALUE a parameter; repeatable.")
@click.option("--inputs", is_flag=True, help="Make a parameter of each text that was typed.")
@session_options
def command(session: str, file: Path, params: tuple[str, ...], inputs: bool, choices: Choices) -> None:
    """Make a plan of what a session did.

    SESSION is the id of a past or running one, as `handrail history --json` shows it. Calls that failed are left out. Elements are named by
    what they are, secrets are not written. Run the plan with `handrail replay`.

    Example: handrail record 20260301-101500-a1b2c3 -o invoice.yaml --param customer=Ada
    """
    recording = run(lambda: _record(session, file.stem, params, choices, inputs=inputs))
    tell(recording, recording.write(file))


async def _record(session: str, name: str, params: Sequence[str], choices: Choices, *, inputs: bool) -> Recording:
    from handrail.commands._common import named_values
    from handrail.config.places import Places
    from handrail.records.recording import Wishes

    made, workspace = calls_of(session, Places.of(os.environ))
    wishes = Wishes(name, workspace, named_values(params, "--param"), inputs)
    config = without_audit(read_config(choices))
    async with open_runtime_for(choices, config=config, follow=False) as runtime, runtime.session() as asking:
        return await recorded(made, asking, wishes)


async def recorded(made: Iterable[Made], session: Session, wishes: Wishes) -> Recording:
    """The plan of these calls, by the tools that a session knows."""
    from handrail.records.recording import plan_of

    return plan_of(made, {listed.tool.name: listed.tool for listed in await session.all_tools()}, wishes)


def calls_of(session: str, places: Places) -> tuple[Iterator[Made], str]:
    """The calls that a session's audit holds, and its first workspace; empty where the audit does not say."""
    from handrail.records.audit import parts_of
    from handrail.records.reading import read_lines
    from handrail.records.recording import made_in

    name = Path(session).name
    parts = parts_of(places.audit / f"{name}.jsonl")
    if not parts:
        raise HandrailError(f"there is no session {session!r}", hint="`handrail history --json` names those there are")
    lines = [line for part in parts for line in read_lines(part)]
    roots = next(
        (line["workspace"] for line in lines if line.get("event") == "session" and line.get("workspace")), [""]
    )
    return made_in(lines, places.artifacts / name), str(roots[0])


def tell(recording: Recording, file: Path) -> None:
    """Say what was written, and what was not."""
    for why in recording.left_out:
        click.echo(f"Note: left out: {why}", err=True)
    wanted = [name for name, each in _parameters(recording).items() if "default" not in each]
    if wanted:
        click.echo(f"Note: to be given on replay: {', '.join(wanted)}", err=True)
    click.echo(f"{recording.count} steps in {file}", err=True)


def _parameters(recording: Recording) -> Mapping[str, Mapping[str, object]]:
    return recording.content.get("parameters", {})
