"""`handrail call`"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

import click

from handrail.cli._common import (
    SessionOptions,
    SignalStopper,
    create_completion,
    escape_for_terminal,
    handle_signals,
    json_option,
    open_runtime_for,
    print_error,
    print_json,
    run_async,
    session_options,
)
from handrail.json_types import is_object

if TYPE_CHECKING:
    from handrail.api.events import Event
    from handrail.api.result import ToolResult
    from handrail.session.session import Session

# Said once a call has taken longer.
PROGRESS_DELAY_S = 1.0
# Keys that are shown by themselves, or say nothing to a person.
SEPARATELY_SHOWN_KEYS = frozenset({"status", "stdout", "stderr", "content", "error", "voice_message", "duration_ms"})
MAX_VALUE_CHARS = 1_000
ARGUMENTS_HINT = """a tool's arguments are one object, as in --args '{"seconds": 1}'"""


def _reject_extra_words(context: click.Context, argument: click.Parameter, words: Sequence[str]) -> Sequence[str]:
    """Raise UsageError for extra words: a tool's arguments are a single object."""
    if words:
        raise click.UsageError(f"{words[0]!r} is too much: {ARGUMENTS_HINT}", context)
    return words


@click.command("call")
@click.argument("name", shell_complete=create_completion("tools"))
@click.argument("loose", nargs=-1, metavar="", callback=_reject_extra_words)
@click.option("--args", "given", metavar="JSON", default="{}", help="An object; @FILE reads a file, - stdin.")
@click.option("--yes", is_flag=True, help="Say yes to ordinary questions, never to a catastrophic one.")
@session_options
@json_option
@click.pass_context
def command(
    context: click.Context,
    name: str,
    loose: Sequence[str],
    given: str,
    yes: bool,
    choices: SessionOptions,
    as_json: bool,
) -> None:
    """Call one tool in its own session.

    What it leaves running ends with the session, and the result says so. Exits with 0 on success, 1 on an error or a
    denial, 2 when misused, 130 after Ctrl-C.

    Example: handrail call execute_cli --args '{"command": "ls"}'
    """
    from handrail.errors import InvalidArguments, NoConfirmer
    from handrail.terminal.stdio import take_over_stdio

    args = _parse_arguments(given)
    with take_over_stdio():
        result, caught = run_async(lambda: _run_call(name, args, choices, yes=yes))
    if as_json:
        print_json(result.wire())
    else:
        _print_result(result)
        if result.error_code == NoConfirmer.code and not yes:
            click.echo("Hint: run it at a terminal to be asked, or add --yes", err=True)
        elif result.error_code == InvalidArguments.code and not args:
            click.echo(f"Hint: {ARGUMENTS_HINT}; `handrail tools --json` tells those of each tool", err=True)
    context.exit(128 + caught if caught else 0 if result.ok else 1)


def _parse_arguments(given: str) -> Mapping[str, Any]:
    import json

    try:
        text = _read_argument_text(given)
        args = json.loads(text)
    except OSError as exc:
        raise click.BadParameter(f"{given[1:]!r} cannot be read: {exc.strerror}", param_hint="--args") from exc
    except (ValueError, RecursionError) as exc:
        raise click.BadParameter(
            f"""this is not JSON: {exc}; an object is written as in '{{"seconds": 1}}'""", param_hint="--args"
        ) from exc
    if not is_object(args):
        raise click.BadParameter(f"arguments are an object, not {type(args).__name__}", param_hint="--args")
    return args


def _read_argument_text(given: str) -> str:
    if given == "-":
        return sys.stdin.buffer.read().decode()
    if given.startswith("@"):
        with open(given[1:], encoding="utf-8-sig") as file:
            return file.read()
    return given


async def _run_call(
    name: str, args: Mapping[str, Any], choices: SessionOptions, *, yes: bool
) -> tuple[ToolResult, int]:
    """Return the result, and the number of the signal that ended the call, or 0."""
    from handrail.api import approval
    from handrail.errors import NotFound
    from handrail.terminal.approval_prompt import create_terminal_confirmer

    confirmer = approval.yes if yes else create_terminal_confirmer()
    async with open_runtime_for(choices) as runtime, runtime.session(confirm=confirmer) as session:
        # Whoever names a tool wants it, also one that agents have after a skill.
        with suppress(NotFound):
            await session.load_tools([name], source="call")
        result, caught = await _call_until_signal(session, name, args)
    return (_mark_ended_processes(result, session.ended, name) if result.ok and session.ended else result), caught


def _mark_ended_processes(result: ToolResult, ended: Sequence[str], name: str) -> ToolResult:
    """Return the result of a call that left something running, which has now ended with its session."""
    from handrail.api.result import ToolResult
    from handrail.errors import Stopped

    error = Stopped(
        f"{', '.join(ended)} ended with the session of this one call",
        hint="`handrail session --jsonl` keeps a session open for more calls; what `nohup` starts outside a sandbox stays without one",
    )
    # What the tool noted of how it goes on does not hold any more.
    given = {key: value for key, value in result.items() if key != "note"}
    return ToolResult({**given, **ToolResult.failure(error, title=name)})


async def _call_until_signal(session: Session, name: str, args: Mapping[str, Any]) -> tuple[ToolResult, int]:
    from handrail.api.result import ToolResult
    from handrail.errors import Stopped

    result = ToolResult.failure(Stopped("the call was cancelled"), title=name)
    stopping = SignalStopper(session)
    async with handle_signals(stopping.stop), _print_progress(session, name):
        with stopping.scope, stopping.step:
            result = await session.call(name, args)
    return result, stopping.caught


@asynccontextmanager
async def _print_progress(session: Session, name: str) -> AsyncGenerator[None]:
    """Report on stderr, while the block runs, that a call takes long, and its progress."""
    import anyio

    from handrail.api.events import Progress, Started

    started = anyio.Event()

    def hear(event: Event) -> None:
        if isinstance(event, Started):
            started.set()
        elif isinstance(event, Progress) and event.message:
            share = "" if event.fraction is None else f"{event.fraction:.0%} "
            click.echo(f"{name}: {share}{event.message}", err=True)

    async def tell() -> None:
        await started.wait()
        await anyio.sleep(PROGRESS_DELAY_S)
        click.echo(f"{name} is running; Ctrl-C stops it", err=True)

    stop_hearing = session.bus.subscribe(hear)
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(tell)
            yield
            group.cancel_scope.cancel()
    finally:
        stop_hearing()


def _print_result(result: ToolResult) -> None:
    """Print a result for people: a program's output unchanged, text as text, everything else one line per key."""
    wire = result.wire()
    for key, stream in (("content", False), ("stdout", False), ("stderr", True)):
        if text := wire.get(key):
            click.echo(escape_for_terminal(str(text), err=stream), err=stream, nl=not str(text).endswith("\n"))
    for key, value in wire.items():
        if key not in SEPARATELY_SHOWN_KEYS:
            click.echo(escape_for_terminal(f"{key}: {_format_value(value)}"))
    if result.ok:
        if not wire.keys() - {"status", "duration_ms"}:
            click.echo("done")
    else:
        print_error(wire.get("error", {}).get("message", result.status))


def _format_value(value: Any) -> str:
    import json

    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=2)
    return text if len(text) <= MAX_VALUE_CHARS else f"{text[:200]}… [{len(text)} characters; --json prints all]"
