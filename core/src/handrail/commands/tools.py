"""`handrail tools`"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
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
from handrail.tools.declarations import DIALECTS, Named, declare
from handrail.tools.families import DEFAULT, description_for, family_of, schema_for

if TYPE_CHECKING:
    from handrail.config.loading import Config
    from handrail.runtime import Runtime
    from handrail.tools.listing import Listed


@click.command("tools")
@session_options
@click.option("--model", metavar="NAME", help="What this model, or family of models, is told.")
@click.option("--dialect", type=click.Choice(list(DIALECTS)), help="Print the declarations for this API.")
@json_option
def command(choices: Choices, model: str | None, dialect: Named | None, as_json: bool) -> None:
    """List the tools, and why one is not available.

    Example: handrail tools --backend accessibility --model gemini-3-pro

    With --dialect only those that are available, as they are declared to the model. A backend that plans actions takes the model as its own.
    """
    listed = run(lambda: _list(choices, model))
    family = family_of(model)
    if dialect is not None:
        print_json([declare(each.tool, dialect=dialect, family=family) for each in listed if each.available])
    elif as_json:
        print_json([tool_wire(each, family) for each in listed])
    else:
        _show(listed, family)


def tool_wire(listed: Listed, family: str = DEFAULT) -> dict[str, Any]:
    """A tool as the machine interface lists it, with what the model family is told."""
    return {
        "name": listed.tool.name,
        "description": description_for(listed.tool, family),
        "layer": listed.tool.layer,
        "plugin": listed.plugin,
        "source": listed.source,
        "input_schema": schema_for(listed.tool, family),
        "available": listed.available,
        "reason": listed.reason,
    }


async def _list(choices: Choices, model: str | None) -> Sequence[Listed]:
    config = read_config(choices)
    flags = await _own_model(choices, config, model)
    return await _listed(choices, config if flags is None else read_config(choices, flags=flags))


async def _listed(choices: Choices, config: Config) -> Sequence[Listed]:
    async with _runtime(choices, config) as runtime, runtime.session() as session:
        if choices.desktop not in (None, "current", "private"):
            # A name that none was started under is a mistake.
            await session.desktop()
        return await session.all_tools()


async def _own_model(choices: Choices, config: Config, model: str | None) -> dict[str, Any] | None:
    """The setting of the chosen backend that says its model, if that is the agent's: where the backend plans actions itself."""
    chosen = config.settings.backend
    if model is None or chosen is None:
        return None
    async with _runtime(choices, config) as runtime:
        backend = runtime.backends.get(chosen)
        plans = (
            backend is not None and "plan_actions" in backend.capabilities and "model" in backend.Config.model_fields
        )
        return {f"backends.{chosen}.model": model} if plans else None


def _runtime(choices: Choices, config: Config) -> AbstractAsyncContextManager[Runtime]:
    return open_runtime_for(choices, config=without_audit(config), follow=False)


def _show(listed: Sequence[Listed], family: str) -> None:
    width = max(len(each.tool.name) for each in listed)
    for each in sorted(listed, key=lambda each: not each.available):
        said = description_for(each.tool, family).split(". ")[0].split("\n")[0].rstrip(".")
        click.echo(f"{each.tool.name:<{width}}  {said if each.reason is None else f'not available: {each.reason}'}")
