"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Evaluator, Sandbox, Service, ServiceContext, Tool
    from handrail_cli.process.config import CliConfig
    from handrail_cli.tools.session_processes import SessionProcesses


@hookimpl
def handrail_register_tools() -> Iterable[Tool]:
    """Return `execute_cli` and the tools for commands that keep running in the background."""
    from handrail_cli.tools.execute import execute_cli
    from handrail_cli.tools.process_tools import list_processes, read_process, stop_process, write_process

    return [execute_cli, read_process, write_process, stop_process, list_processes]


@hookimpl
def handrail_register_config() -> type[CliConfig]:
    """Return the configuration model of `[plugins.cli]`."""
    from handrail_cli.process.config import CliConfig

    return CliConfig


@hookimpl
def handrail_register_evaluators() -> Iterable[Evaluator]:
    """Return the evaluator of shell commands."""
    from handrail_cli.evaluator import ShellEvaluator

    return [ShellEvaluator()]


@hookimpl
def handrail_register_sandboxes() -> Iterable[type[Sandbox]]:
    """Return the sandboxes for commands that may run without prompting the user."""
    from handrail_cli.sandboxes.bubblewrap import BubblewrapSandbox
    from handrail_cli.sandboxes.docker import DockerSandbox
    from handrail_cli.sandboxes.seatbelt import SeatbeltSandbox
    from handrail_cli.sandboxes.windows_job import WindowsJobSandbox

    return [BubblewrapSandbox, SeatbeltSandbox, DockerSandbox, WindowsJobSandbox]


@hookimpl
def handrail_register_services() -> Iterable[Service]:
    """Return the service that manages a session's running commands."""
    from handrail import Service

    return [Service("shell", _open_processes, scope="session")]


async def _open_processes(context: ServiceContext) -> SessionProcesses:
    from handrail_cli.tools.session_processes import SessionProcesses

    return await SessionProcesses.open(context)
