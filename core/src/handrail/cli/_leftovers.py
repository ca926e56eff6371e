"""Inventory of Handrail besides its packages: running processes, entries in other programs' files, and directories."""

from __future__ import annotations

import logging
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from handrail.config.settings import Settings
from handrail.errors import HandrailError
from handrail.fs.app_dirs import AppDirs
from handrail.plugins.loader import load_plugins_from_environment
from handrail.plugins.registration import register_plugins
from handrail.workers.external_traces import Trace
from handrail.workers.registry import ProcessRegistry, RunningProgram
from handrail.workers.shutdown import end_running_processes, format_processes, list_own_ancestors

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class InstallationLeftovers:
    """All of it. `others` run from another environment of the same user, and are not ended."""

    running: Sequence[RunningProgram]
    others: Sequence[RunningProgram]
    traces: Sequence[Trace]
    folders: Sequence[Path]


def report_and_end_leftovers(*, ask: bool, dry: bool) -> None:
    """Say what there is, end what runs, and say what is left to do."""
    from handrail.cli._package_manager import format_removal_command

    places = AppDirs.of(os.environ)
    ledger = ProcessRegistry(places.state)
    left = _find_leftovers(places, ledger)
    _show_running(left)
    if left.running and not dry:
        _end_running(left.running, ledger, ask=ask)
    for trace in left.traces:
        click.echo(f"stays    {trace.what}\n         remove: {trace.removal}")
    for folder in left.folders:
        click.echo(f"stays    {folder}  {_format_folder_size(folder)}\n         delete it when nobody needs it")
    click.echo(f"stays    the program\n         remove: {format_removal_command()}")


def _find_leftovers(places: AppDirs, ledger: ProcessRegistry) -> InstallationLeftovers:
    callers = list_own_ancestors()
    running = [each for each in ledger.all() if each.pid not in callers]
    ours = [each for each in running if each.prefix == sys.prefix]
    others = [each for each in running if each.prefix != sys.prefix]
    return InstallationLeftovers(
        ours, others, list(_iter_traces()), [folder for folder in places.all if folder.is_dir()]
    )


def _iter_traces() -> Iterator[Trace]:
    """Yield the traces known to every plugin that loads; a broken configuration does not prevent this."""
    plugins = load_plugins_from_environment(os.environ, disabled=())
    for traces, plugin in register_plugins(plugins, Settings()).traces:
        try:
            yield from traces()
        # Plugin code: the rest is to be told all the same.
        except Exception:
            log.exception("the plugin %s could not say what it wrote", plugin)


def _show_running(left: InstallationLeftovers) -> None:
    for each in left.running:
        click.echo(f"runs     {_describe_running(each)}")
    for each in left.others:
        click.echo(f"runs     {_describe_running(each)}; from {each.prefix}, which stays")
    if not left.running:
        click.echo("nothing that was started from here runs")


def _describe_running(running: RunningProgram) -> str:
    """Return a description of a running program, with its remaining processes."""
    return f"{running.what}: {format_processes(running.members())}"


def _end_running(running: Sequence[RunningProgram], ledger: ProcessRegistry, *, ask: bool) -> None:
    if ask:
        if not sys.stdin.isatty():
            raise HandrailError(
                "nothing was ended: nobody is here to be asked", hint="--yes ends what runs, --dry-run only names it"
            )
        click.confirm("End what runs?", abort=True, err=True)
    ended = [_describe_running(each) for each in running]
    if alive := end_running_processes(running, ledger):
        raise HandrailError(f"these did not end: {format_processes(alive)}", hint="end them yourself, and repeat this")
    for each in ended:
        click.echo(f"ended    {each}")


def _format_folder_size(folder: Path) -> str:
    """Return the size of a directory's content in readable form."""
    size = 0.0
    for file in folder.rglob("*"):
        # What has just ended may take its files away meanwhile.
        with suppress(OSError):
            found = file.lstat()
            size += 0 if stat.S_ISDIR(found.st_mode) else found.st_size
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"
