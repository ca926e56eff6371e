"""Shell completion: names of tools, backends, modes, desktops and plugins for the word under the cursor.

A completion that fails prints nothing: any output would appear in the line that the user is typing.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
from click.shell_completion import CompletionItem

from handrail.cli._common import SessionOptions, disable_audit, load_config, open_runtime_for, run_async
from handrail.cli._stop_switches import list_started_desktops

if TYPE_CHECKING:
    from handrail.session.runtime import Runtime

CompletionFunction = Callable[[click.Context, click.Parameter, str], Sequence[CompletionItem]]


def _quiet_completion(offered: Callable[[SessionOptions], Iterable[tuple[str, str]]]) -> CompletionFunction:
    """Make a completion function that offers names with their help.

    It offers those that start with the typed word, and nothing if the names cannot be determined.
    """

    @functools.wraps(offered)
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> Sequence[CompletionItem]:
        logging.disable()
        try:
            names = list(offered(_parse_session_options(context)))
        # Plugins are loaded on the way, and a configuration may be broken: no reason to write into somebody's line.
        except (Exception, SystemExit):  # noqa: BLE001 # said by any command that is then run
            return []
        return [CompletionItem(name, help=said) for name, said in names if name.startswith(incomplete)]

    return complete


def _parse_session_options(context: click.Context) -> SessionOptions:
    """Return the session options that are in the line so far."""
    given = context.params
    file = given.get("config")
    return SessionOptions(
        given.get("desktop"),
        given.get("backend"),
        given.get("mode"),
        given.get("profile"),
        tuple(given.get("workspace") or ()),
        Path(file) if file else None,
    )


@_quiet_completion
def complete_tools(choices: SessionOptions) -> Iterable[tuple[str, str]]:
    # Those of MCP servers are left out: a key that is pressed must not start a server.
    return _list_from_runtime(
        choices,
        lambda runtime: [(entry.tool.name, _first_sentence(entry.tool.description)) for entry in runtime.registry],
    )


@_quiet_completion
def complete_backends(choices: SessionOptions) -> Iterable[tuple[str, str]]:
    return _list_from_runtime(
        choices,
        lambda runtime: [(name, _first_sentence(each.__doc__ or "")) for name, each in runtime.backends.items()],
    )


def _list_from_runtime(
    choices: SessionOptions, named: Callable[[Runtime], list[tuple[str, str]]]
) -> list[tuple[str, str]]:
    config = disable_audit(load_config(choices))

    async def read() -> list[tuple[str, str]]:
        async with open_runtime_for(choices, config=config, follow=False) as runtime:
            return named(runtime)

    return run_async(read)


def _first_sentence(text: str) -> str:
    return text.partition("\n")[0].partition(". ")[0].rstrip(".")


@_quiet_completion
def complete_modes(choices: SessionOptions) -> Iterable[tuple[str, str]]:
    from handrail.api.verdict import Mode

    return [(mode.value, "") for mode in Mode]


@_quiet_completion
def complete_desktops(choices: SessionOptions) -> Iterable[tuple[str, str]]:
    return [("current", "the screen in front of you"), ("private", "a new virtual one"), *_list_started_desktops()]


@_quiet_completion
def complete_started_desktops(choices: SessionOptions) -> Iterable[tuple[str, str]]:
    return _list_started_desktops()


def _list_started_desktops() -> list[tuple[str, str]]:
    return [(name, "started before") for name in list_started_desktops()]


@_quiet_completion
def complete_profiles(choices: SessionOptions) -> Iterable[tuple[str, str]]:
    from handrail.config.settings import ToolProfile

    return [(name, "") for name in get_args(ToolProfile)]


@_quiet_completion
def complete_plugins(choices: SessionOptions) -> Iterable[tuple[str, str]]:
    from handrail.plugins.loader import find_installed_plugins

    return [(plugin.name, plugin.distribution) for plugin in find_installed_plugins()]
