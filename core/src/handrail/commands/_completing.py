"""What a shell is offered for the word under the cursor: names of tools, backends, modes, desktops and plugins.

A completion that fails says nothing: whatever is printed would land in the line that a person is typing.
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click
from click.shell_completion import CompletionItem

from handrail.commands._common import Choices, load_config, open_runtime_for, run, without_audit
from handrail.commands._stops import started

if TYPE_CHECKING:
    from handrail.runtime import Runtime

Complete = Callable[[click.Context, click.Parameter, str], Sequence[CompletionItem]]


def _quiet(offered: Callable[[Choices], Iterable[tuple[str, str]]]) -> Complete:
    """Offers names with their help, those that begin as the word does; nothing when they cannot be told."""

    @functools.wraps(offered)
    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> Sequence[CompletionItem]:
        logging.disable()
        try:
            names = list(offered(_choices(context)))
        # Plugins are loaded on the way, and a configuration may be broken: no reason to write into somebody's line.
        except (Exception, SystemExit):  # noqa: BLE001 # said by any command that is then run
            return []
        return [CompletionItem(name, help=said) for name, said in names if name.startswith(incomplete)]

    return complete


def _choices(context: click.Context) -> Choices:
    """The options that stand in the line so far."""
    given = context.params
    file = given.get("config")
    return Choices(
        given.get("desktop"),
        given.get("backend"),
        given.get("mode"),
        given.get("profile"),
        tuple(given.get("workspace") or ()),
        Path(file) if file else None,
    )


@_quiet
def tools(choices: Choices) -> Iterable[tuple[str, str]]:
    # Those of MCP servers are left out: a key that is pressed must not start a server.
    return _from_runtime(
        choices,
        lambda runtime: [(entry.tool.name, _first_sentence(entry.tool.description)) for entry in runtime.registry],
    )


@_quiet
def backends(choices: Choices) -> Iterable[tuple[str, str]]:
    return _from_runtime(
        choices,
        lambda runtime: [(name, _first_sentence(each.__doc__ or "")) for name, each in runtime.backends.items()],
    )


def _from_runtime(choices: Choices, named: Callable[[Runtime], list[tuple[str, str]]]) -> list[tuple[str, str]]:
    config = without_audit(load_config(choices))

    async def read() -> list[tuple[str, str]]:
        async with open_runtime_for(choices, config=config, follow=False) as runtime:
            return named(runtime)

    return run(read)


def _first_sentence(text: str) -> str:
    return text.partition("\n")[0].partition(". ")[0].rstrip(".")


@_quiet
def modes(choices: Choices) -> Iterable[tuple[str, str]]:
    from handrail.judging.verdicts import Mode

    return [(mode.value, "") for mode in Mode]


@_quiet
def desktops(choices: Choices) -> Iterable[tuple[str, str]]:
    return [("current", "the screen in front of you"), ("private", "a new virtual one"), *_told_started()]


@_quiet
def started_desktops(choices: Choices) -> Iterable[tuple[str, str]]:
    return _told_started()


def _told_started() -> list[tuple[str, str]]:
    return [(name, "started before") for name in started()]


@_quiet
def profiles(choices: Choices) -> Iterable[tuple[str, str]]:
    from handrail.config.settings import Profile

    return [(name, "") for name in get_args(Profile)]


@_quiet
def plugins(choices: Choices) -> Iterable[tuple[str, str]]:
    from handrail.plugins.loading import installed

    return [(plugin.name, plugin.distribution) for plugin in installed()]
