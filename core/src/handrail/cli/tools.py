"""`handrail tools`"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

import click

from handrail.api.model_families import DEFAULT_FAMILY, description_for, family_of, schema_for
from handrail.cli._common import (
    SessionOptions,
    disable_audit,
    json_option,
    open_runtime_for,
    print_json,
    read_config,
    run_async,
    session_options,
)
from handrail.tools.declarations import DIALECTS, DialectName, declare

if TYPE_CHECKING:
    from handrail.config.loader import LoadedConfig
    from handrail.session.runtime import Runtime
    from handrail.tools.session_tools import ListedTool


@click.command("tools")
@session_options
@click.option("--model", metavar="NAME", help="What this model, or family of models, is told.")
@click.option("--dialect", type=click.Choice(list(DIALECTS)), help="Print the declarations for this API.")
@json_option
def command(choices: SessionOptions, model: str | None, dialect: DialectName | None, as_json: bool) -> None:
    """List the tools, and why one is not available.

    Example: handrail tools --backend accessibility --model gemini-3-pro

    With --dialect only those that are available, as they are declared to the model. A backend that plans actions takes the model as its own.
    """
    listed = run_async(lambda: _list_tools(choices, model))
    family = family_of(model)
    if dialect is not None:
        print_json([declare(each.tool, dialect=dialect, family=family) for each in listed if each.available])
    elif as_json:
        print_json([tool_wire(each, family) for each in listed])
    else:
        _print_tools(listed, family)


def tool_wire(listed: ListedTool, family: str = DEFAULT_FAMILY) -> dict[str, Any]:
    """Return a tool as the machine interface lists it, with the description for the model family."""
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


async def _list_tools(choices: SessionOptions, model: str | None) -> Sequence[ListedTool]:
    config = read_config(choices)
    flags = await _backend_model_flag(choices, config, model)
    return await _open_and_list_tools(choices, config if flags is None else read_config(choices, flags=flags))


async def _open_and_list_tools(choices: SessionOptions, config: LoadedConfig) -> Sequence[ListedTool]:
    async with _open_runtime(choices, config) as runtime, runtime.session() as session:
        if choices.desktop not in (None, "current", "private"):
            # A name that none was started under is a mistake.
            await session.desktop()
        return await session.all_tools()


async def _backend_model_flag(
    choices: SessionOptions, config: LoadedConfig, model: str | None
) -> dict[str, Any] | None:
    """Return the setting of the chosen backend's model if the backend itself plans actions, or None."""
    chosen = config.settings.backend
    if model is None or chosen is None:
        return None
    async with _open_runtime(choices, config) as runtime:
        backend = runtime.backends.get(chosen)
        plans = (
            backend is not None and "plan_actions" in backend.capabilities and "model" in backend.Config.model_fields
        )
        return {f"backends.{chosen}.model": model} if plans else None


def _open_runtime(choices: SessionOptions, config: LoadedConfig) -> AbstractAsyncContextManager[Runtime]:
    return open_runtime_for(choices, config=disable_audit(config), follow=False)


def _print_tools(listed: Sequence[ListedTool], family: str) -> None:
    width = max(len(each.tool.name) for each in listed)
    for each in sorted(listed, key=lambda each: not each.available):
        said = description_for(each.tool, family).split(". ")[0].split("\n")[0].rstrip(".")
        click.echo(f"{each.tool.name:<{width}}  {said if each.reason is None else f'not available: {each.reason}'}")
