"""`handrail tools`"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from handrail.commands._common import (
    Choices,
    json_option,
    open_runtime_for,
    print_json,
    read_config,
    run,
    session_options,
    without_audit,
)

if TYPE_CHECKING:
    from handrail.config import Config
    from handrail.session import Listed


@click.command("tools")
@session_options
@click.option("--model", metavar="NAME", help="The model of the chosen backend, where it takes one.")
@json_option
def command(choices: Choices, model: str | None, as_json: bool) -> None:
    """List the tools, and why one is not available.

    Example: handrail tools --backend accessibility
    """
    listed = run(lambda: _list(choices, model))
    if as_json:
        print_json([tool_wire(tool) for tool in listed])
    else:
        _show(listed)


def tool_wire(listed: Listed) -> dict[str, Any]:
    """A tool as the machine interface lists it."""
    return {
        "name": listed.tool.name,
        "description": listed.tool.description,
        "layer": listed.tool.layer,
        "plugin": listed.plugin,
        "source": listed.source,
        "input_schema": listed.tool.input_schema,
        "available": listed.available,
        "reason": listed.reason,
    }


async def _list(choices: Choices, model: str | None) -> Sequence[Listed]:
    config = without_audit(_for_model(choices, model))
    async with open_runtime_for(choices, config=config, follow=False) as runtime, runtime.session() as session:
        return await session.all_tools()


def _for_model(choices: Choices, model: str | None) -> Config:
    config = read_config(choices)
    if model is None:
        return config
    if config.settings.backend is None:
        raise click.UsageError("--model needs a backend: add --backend NAME")
    return read_config(choices, flags={f"backends.{config.settings.backend}.model": model})


def _show(listed: Sequence[Listed]) -> None:
    width = max(len(each.tool.name) for each in listed)
    for each in sorted(listed, key=lambda each: not each.available):
        said = each.tool.description.split(". ")[0].split("\n")[0].rstrip(".")
        click.echo(f"{each.tool.name:<{width}}  {said if each.reason is None else f'not available: {each.reason}'}")
