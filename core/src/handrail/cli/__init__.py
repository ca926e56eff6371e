"""The `handrail` program.

Each module here whose name has no leading underscore is one command, its `command`; plugins add theirs with
`handrail_register_commands`. Heavy imports happen when a command runs, which lets `--help` answer at once.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Mapping, Sequence
from typing import NoReturn

import click

import handrail
from handrail.cli import _plugin_commands
from handrail.cli._common import (
    STARTUP_GC_THRESHOLD,
    SessionOptions,
    SignalStopper,
    create_completion,
    describe_system_error,
    disable_audit,
    escape_for_terminal,
    get_current_folder,
    handle_signals,
    json_option,
    load_config,
    open_runtime_for,
    parse_named_values,
    print_error,
    print_json,
    read_config,
    register_process,
    run_async,
    session_options,
)
from handrail.errors import HandrailError
from handrail.text import format_suggestion

__all__ = [
    "SessionOptions",
    "SignalStopper",
    "create_completion",
    "disable_audit",
    "escape_for_terminal",
    "get_current_folder",
    "handle_signals",
    "handrail_program",
    "json_option",
    "main",
    "open_runtime_for",
    "parse_named_values",
    "print_error",
    "print_json",
    "read_config",
    "register_process",
    "run_async",
    "session_options",
]


class HandrailGroup(click.Group):
    """Core's commands and those of plugins."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted({*_list_own_commands(), *_find_plugin_commands(ctx)})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in _list_own_commands():
            return importlib.import_module(f"{__name__}.{cmd_name}").command
        offer = _find_plugin_commands(ctx).get(cmd_name)
        return offer.command if offer else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Format the list of commands as click does, without importing core's commands."""
        rows = {name: _read_summary(name) for name in _list_own_commands()}
        for name, offer in _find_plugin_commands(ctx).items():
            rows.setdefault(name, offer.command.get_short_help_str(60))
        with formatter.section("Commands"):
            formatter.write_dl(sorted(rows.items()))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does.

        The error for an unknown name suggests the nearest name; the error for a refused plugin's command gives the
        reason.
        """
        name = args[0]
        if name not in _list_own_commands() and not name.startswith("-") and not ctx.resilient_parsing:
            if (offer := _find_plugin_commands(ctx).get(name)) is None:
                raise _unknown_command_error(name, self.list_commands(ctx), ctx)
            if (
                reason := _plugin_commands.find_refusal_reason(
                    offer.plugin, load_config(SessionOptions()).settings.plugins.disabled
                )
            ) is not None:
                raise click.ClickException(
                    f"the command {name!r} is the plugin {offer.plugin!r}'s, which is not loaded: {reason}"
                )
        return super().resolve_command(ctx, args)


def _unknown_command_error(name: str, known: Sequence[str], ctx: click.Context) -> click.UsageError:
    """Return the error for a missing command: the plugin that would supply it, or the nearest name."""
    from handrail.plugins.missing_plugin import describe_missing_plugin

    if (why := describe_missing_plugin("commands", name)) is not None:
        said, hint = why
        return click.UsageError(f"there is no command {name!r}{said}\nHint: {hint}", ctx)
    return click.UsageError(f"there is no command {name!r}{format_suggestion(name, known)}", ctx)


def _list_own_commands() -> frozenset[str]:
    files = os.listdir(os.path.dirname(__file__))
    return frozenset(file[:-3] for file in files if file.endswith(".py") and not file.startswith("_"))


def _read_summary(name: str) -> str:
    """Read the first line of a command's docstring from its source."""
    with open(os.path.join(os.path.dirname(__file__), f"{name}.py"), encoding="utf-8") as file:
        _, _, function = file.read().partition("\ndef command(")
    return function.partition('"""')[2].partition("\n")[0].removesuffix('"""')


def _find_plugin_commands(ctx: click.Context) -> Mapping[str, _plugin_commands.PluginCommand]:
    """Return the commands that plugins offer, looked up once in each run of the program."""
    key = f"{__name__}.offered"
    if key not in ctx.meta:
        ctx.meta[key] = _plugin_commands.find_plugin_commands(os.environ)
    return ctx.meta[key]


@click.group(name="handrail", cls=HandrailGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(handrail.__version__, "--version", prog_name="handrail")
@click.option("--debug", is_flag=True, help="Show what is done, and the traceback of an error.")
def handrail_program(debug: bool) -> None:
    """Hands on a computer for an agent, with a rail.

    Results go to stdout, all else to stderr. Exit: 0 done, 1 failed or denied, 2 misused.
    """
    from handrail.cli._stderr_log import configure_stderr_logging

    configure_stderr_logging(debug=debug)


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Run the program and exit."""
    # Starting makes many objects and hardly any garbage: a less eager collector starts sooner.
    gc.set_threshold(STARTUP_GC_THRESHOLD)
    _open_standard_streams()
    given = list(sys.argv[1:] if args is None else args)
    try:
        code = handrail_program.main(given, prog_name="handrail", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as exc:
        exc.show()
        code = exc.exit_code
    except (click.Abort, KeyboardInterrupt):
        code = 130
    except HandrailError as exc:
        if "--debug" in given[:1]:
            raise
        print_error(str(exc), hint=exc.hint)
        code = 1
    except BrokenPipeError:
        # Whoever read our results has left; what is still buffered must not be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 1
    except OSError as exc:
        # A folder that is read-only or full is the person's business, not a fault of the program.
        if "--debug" in given[:1]:
            raise
        said, cure = describe_system_error(exc)
        print_error(said, hint=cure or "`handrail doctor` says more")
        code = 1
    sys.exit(code)


def _open_standard_streams() -> None:
    """Open those standard streams that were closed at startup; the next files opened would get their numbers."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))
