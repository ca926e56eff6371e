"""`handrail mcp install`, `uninstall` and `clients`"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from handrail.cli import (
    SessionOptions,
    disable_audit,
    get_current_folder,
    json_option,
    open_runtime_for,
    parse_named_values,
    print_json,
    read_config,
    run_async,
    session_options,
)
from handrail.errors import HandrailError

if TYPE_CHECKING:
    from handrail import Trace
    from handrail.config.loader import LoadedConfig
    from handrail_mcp.setup.clients import ConfigScope, McpClient, ServerCommand, UserMachine
    from handrail_mcp.setup.config_edit import ConfigChange

DEFAULT_NAME = "handrail"


class ClientCommand(click.Command):
    """A command whose help names the clients there are."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        from handrail_mcp.setup.clients import CLIENTS

        with formatter.section("Clients"):
            formatter.write_dl([(client.name, client.title) for client in CLIENTS])


def _find_client(ctx: click.Context, param: click.Parameter, value: str | None) -> McpClient | None:
    """Return the client with that name; the clients are imported only when needed."""
    from handrail.text import format_suggestion
    from handrail_mcp.setup.clients import CLIENTS

    known = {client.name: client for client in CLIENTS}
    if value is not None and value not in known:
        raise click.BadParameter(f"there is no client {value!r}{format_suggestion(value, known)}", ctx, param)
    return None if value is None else known[value]


def _complete_client_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[str]:
    """Return the client names that start with `incomplete`, for shell completion."""
    from handrail_mcp.setup.clients import CLIENTS

    return [client.name for client in CLIENTS if client.name.startswith(incomplete)]


def _check_server_name(ctx: click.Context, param: click.Parameter, value: str) -> str:
    """Return a server name that every client accepts; `click.BadParameter` for any other."""
    import re

    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]{0,39}", value):
        raise click.BadParameter(
            f"{value!r} is no name for a server: a letter, then letters, digits, - and _", ctx, param
        )
    return value


def target_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that select the entry, and `--dry-run` and `--force`."""
    for option in (
        click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing."),
        click.option("--force", is_flag=True, help="Also where the entry of this name is not Handrail's."),
        click.option("--file", metavar="FILE", help="The client's file, where it is not the usual one."),
        click.option(
            "--name",
            metavar="NAME",
            callback=_check_server_name,
            default=DEFAULT_NAME,
            help=f"The server's name in the client [{DEFAULT_NAME}].",
        ),
        click.option("--scope", type=click.Choice(["user", "project"]), help="For you [user], or for this folder."),
    ):
        function = option(function)
    return function


@click.command("install", cls=ClientCommand)
@click.argument(
    "client", metavar="CLIENT", callback=_find_client, required=False, shell_complete=_complete_client_names
)
@click.option("--print", "only_print", is_flag=True, help="Print the entry, and touch no file.")
@click.option("--env", metavar="NAME=VALUE", multiple=True, help="A variable for the server; repeatable.")
@target_options
@session_options
def install_command(
    choices: SessionOptions,
    client: McpClient | None,
    only_print: bool,
    env: tuple[str, ...],
    scope: ConfigScope | None,
    name: str,
    file: str | None,
    force: bool,
    dry_run: bool,
) -> None:
    """Write Handrail into an MCP client's configuration.

    What else is in the file stays as it is, and a copy of it is kept. Done again, the entry is brought up to date. Without a client,
    --print prints the entry that most others take.

    Example: handrail mcp install gemini --desktop private
    """
    from handrail_mcp.setup.clients import GENERIC_CLIENT
    from handrail_mcp.setup.config_edit import format_entry, open_config_file, plan_install

    if client is None and not only_print:
        raise click.UsageError("name a client, or add --print for the entry that most others take")
    server = _build_server(choices, env)
    if client is None:
        click.echo(format_entry(GENERIC_CLIENT, name, server), nl=False)
        return
    path, scope = _locate_file(client, scope, file)
    if only_print:
        click.echo(format_entry(client, name, server), nl=False)
        click.echo(f"For {client.title} this goes into {path}", err=True)
        return
    change = plan_install(client, open_config_file(path), name, server, force=force)
    if change.done == "unchanged":
        click.echo(f"{client.title} has it already, as {name!r} in {path}")
        return
    secrets = _find_secret_variables(server.environment)
    _apply_change(client, change, f"{change.done} {name!r}", dry_run=dry_run, secret=bool(secrets))
    if not dry_run:
        if secrets:
            click.echo(
                f"Note: the value of {', '.join(secrets)} stands in {path} as it is; to keep it out, leave --env out and set it where "
                f"{client.title} is started.",
                err=True,
            )
        if scope == "project":
            click.echo("Note: the path in it is that of this machine; leave the file out of what others get.", err=True)
        click.echo(f"Next: {client.after}.", err=True)


@click.command("uninstall", cls=ClientCommand)
@click.argument("client", metavar="CLIENT", callback=_find_client, shell_complete=_complete_client_names)
@target_options
def uninstall_command(
    client: McpClient, scope: ConfigScope | None, name: str, file: str | None, force: bool, dry_run: bool
) -> None:
    """Take Handrail out of an MCP client's configuration.

    Example: handrail mcp uninstall gemini
    """
    from handrail_mcp.setup.config_edit import open_config_file, plan_uninstall

    path, _ = _locate_file(client, scope, file)
    change = plan_uninstall(client, open_config_file(path), name, force=force)
    if change.done == "absent":
        click.echo(f"{client.title} has no server {name!r} in {path}")
        return
    _apply_change(client, change, f"removed {name!r}", dry_run=dry_run)


@click.command("clients")
@json_option
def clients_command(as_json: bool) -> None:
    """Say which MCP clients have Handrail, and in which file.

    Example: handrail mcp clients
    """
    rows = [row for _, row in _iter_rows()]
    if as_json:
        print_json(rows)
        return
    width = max(len(row["client"]) for row in rows)
    for row in rows:
        click.echo(f"{row['client']:<{width}}  {row['scope']:<7}  {row['state']:<9}  {_describe_row(row)}")


def find_client_traces() -> Iterator[Trace]:
    """Yield Handrail's entries in the files of clients, with the commands that remove them."""
    import shlex

    from handrail import Trace

    for client, row in _iter_rows():
        if row["state"] == "broken":
            yield Trace(f"{client.title}: perhaps an entry; {row['problem']}", f"look into {row['file']}")
        elif "command" in row:
            words = ["handrail", "mcp", "uninstall", client.name]
            scope = ["--scope", row["scope"]] if row["scope"] != "user" else []
            name = ["--name", row["name"]] if row["name"] != DEFAULT_NAME else []
            what = f"{client.title}: the server {row['name']!r} in {row['file']}"
            yield Trace(what, shlex.join([*words, *scope, *name]))


def _iter_rows() -> Iterator[tuple[McpClient, dict[str, Any]]]:
    """Yield one or more rows for each client and scope."""
    from handrail_mcp.setup.clients import CLIENTS

    machine = _get_machine()
    for client in CLIENTS:
        for scope in client.scopes:
            for row in _build_rows(client, scope, machine):
                yield client, row


def _build_rows(client: McpClient, scope: ConfigScope, machine: UserMachine) -> Iterator[dict[str, Any]]:
    """Yield one row for each entry of Handrail in a file.

    Otherwise yield one row that says that there are none, or that the file is broken.
    """
    import shutil

    from handrail_mcp.setup.config_edit import find_servers, open_config_file

    path = machine.file(client, scope)
    row: dict[str, Any] = {"client": client.name, "scope": scope, "file": str(path)}
    try:
        opened = open_config_file(path)
        found = find_servers(client, opened)
    except HandrailError as exc:
        yield {**row, "state": "broken", "problem": str(exc)}
        return
    for name, server in found.items():
        state = "installed" if shutil.which(server.command) else "dangling"
        yield {**row, "state": state, "name": name, "command": server.command, "args": list(server.args)}
    if not found:
        yield {**row, "state": "no file" if opened.data is None else "none"}


def _describe_row(row: dict[str, Any]) -> str:
    if row["state"] == "broken":
        return row["problem"]
    if "command" not in row:
        return row["file"]
    gone = ", which is not there any more: install it again" if row["state"] == "dangling" else ""
    return f"{row['name']} in {row['file']}: {row['command']} {' '.join(row['args'])}{gone}"


def _find_secret_variables(environment: Mapping[str, str]) -> list[str]:
    """Return the names of the variables whose values are secrets."""
    from handrail.redaction import is_credential

    return sorted(name for name, value in environment.items() if is_credential(name, value))


async def _check_choices(choices: SessionOptions, config: LoadedConfig) -> None:
    """Check the options now, rather than when the client starts the server, by reading them as the server does."""
    off = disable_audit(config)
    async with open_runtime_for(choices, config=off, follow=False) as runtime, runtime.session() as session:
        if config.settings.desktop not in ("current", "private"):
            await session.desktop()


def _build_server(choices: SessionOptions, env: tuple[str, ...]) -> ServerCommand:
    from handrail_mcp.setup.server_entry import build_own_server

    config = read_config(choices)
    # Nothing that a plugin prints gets before the entry.
    with redirect_stdout(sys.stderr):
        run_async(lambda: _check_choices(choices, config))
    settings = config.settings
    return build_own_server(
        choices,
        environment=parse_named_values(env, "--env"),
        passed=() if settings.desktop == "private" else _screen_variables(),
    )


def _screen_variables() -> tuple[str, ...]:
    """Return the set environment variables that give a program access to the user's own screen; only on Linux."""
    from handrail.api.desktop import SCREEN_VARIABLES

    if sys.platform != "linux":
        return ()
    return tuple(sorted(name for name in (*SCREEN_VARIABLES, "XDG_RUNTIME_DIR") if os.environ.get(name)))


def _locate_file(client: McpClient, scope: ConfigScope | None, file: str | None) -> tuple[Path, ConfigScope | None]:
    """Return the client's configuration file, and its scope unless the file was named."""
    if file is not None:
        if scope is not None:
            raise click.UsageError("--file names the file; leave --scope out")
        return Path(file).absolute(), None
    chosen: ConfigScope = scope or "user"
    if chosen not in client.scopes:
        raise click.UsageError(f"{client.title} keeps no servers for a folder of its own; leave --scope out")
    return _get_machine().file(client, chosen), chosen


def _get_machine() -> UserMachine:
    from handrail_mcp.setup.clients import UserMachine

    return UserMachine.here(get_current_folder())


def _apply_change(client: McpClient, change: ConfigChange, said: str, *, dry_run: bool, secret: bool = False) -> None:
    from handrail.fs.app_dirs import AppDirs
    from handrail_mcp.setup.config_edit import write_change

    path = change.file.path
    if dry_run:
        click.echo(change.diff, nl=False)
        click.echo(f"{client.title}: nothing was changed; without --dry-run: {said} in {path}", err=True)
        return
    if change.file.data is None and not path.parent.is_dir():
        click.echo(f"Note: there was no {path.parent}; is {client.title} installed?", err=True)
    kept = write_change(change, AppDirs.of(os.environ).state / "clients", secret=secret)
    click.echo(f"{client.title}: {said} in {path}")
    if kept is not None:
        click.echo(f"The file as it was: {kept}", err=True)
