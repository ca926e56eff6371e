"""`handrail plugins`"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import click

from handrail.cli._common import SessionOptions, json_option, open_runtime_for, print_json, read_config, run_async
from handrail.errors import PluginError

if TYPE_CHECKING:
    from handrail.plugins.loader import PluginRecord


@click.command("plugins")
@json_option
def command(as_json: bool) -> None:
    """List plugins: loaded, disabled, or broken and why.

    Exits with 1 if a plugin that the configuration requires did not load.
    """
    listed, unmet = run_async(_list_plugins)
    if as_json:
        print_json([asdict(plugin) for plugin in listed])
    else:
        _print_plugins(listed)
    if unmet is not None:
        raise unmet


async def _list_plugins() -> tuple[Sequence[PluginRecord], PluginError | None]:
    """Return every plugin, and the error for a required plugin that is not loaded, or None."""
    from handrail.plugins.loader import check_required_plugins

    config = read_config(SessionOptions())
    plugins = config.settings.plugins
    lenient = config.settings.model_copy(update={"plugins": plugins.model_copy(update={"require": ()})})
    async with open_runtime_for(SessionOptions(), config=replace(config, settings=lenient), follow=False) as runtime:
        try:
            check_required_plugins(runtime.plugins, plugins.require)
        except PluginError as exc:
            return runtime.plugins.listed, exc
        return runtime.plugins.listed, None


def _print_plugins(listed: Sequence[PluginRecord]) -> None:
    if not listed:
        click.echo("no plugins are installed; see `handrail install --help`", err=True)
        return
    width = max(len(plugin.name) for plugin in listed)
    for plugin in listed:
        click.echo(
            f"{plugin.name:<{width}}  {plugin.state:<8}  {plugin.distribution} {plugin.version}  {_describe_contents(plugin)}"
        )


def _describe_contents(plugin: PluginRecord) -> str:
    if plugin.state != "loaded":
        return plugin.reason
    parts = [
        _format_count(len(plugin.tools), "tool"),
        f"backends {', '.join(plugin.backends)}" if plugin.backends else "",
        f"{plugin.seconds * 1000:.0f} ms",
    ]
    return ", ".join(filter(None, parts))


def _format_count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}" if number else ""
