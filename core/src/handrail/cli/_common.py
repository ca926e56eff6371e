"""Code that commands share: session options, opening a runtime with them, ending and printing."""

from __future__ import annotations

import errno
import functools
import gc
import os
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import click

from handrail.errors import HandrailError

if TYPE_CHECKING:
    from pathlib import Path

    from click.shell_completion import CompletionItem

    from handrail.config.loader import LoadedConfig
    from handrail.session.runtime import Runtime
    from handrail.session.session import Session

T = TypeVar("T")

# New objects that may be there before the collector looks for garbage: while the program starts, which makes many that stay, and then.
# Python's own figure is 700.
STARTUP_GC_THRESHOLD = 300_000
RUNNING_GC_THRESHOLD = 50_000

ANOTHER_FOLDER = "name another folder for Handrail's own files by HANDRAIL_HOME"
MAKE_ROOM = f"make room there, or {ANOTHER_FOLDER}"
MAKE_WRITABLE = f"make it writable, or {ANOTHER_FOLDER}"
# What cures that the system keeps a folder from being written, by its number of the error.
ERROR_HINTS = {
    errno.ENOSPC: MAKE_ROOM,
    errno.EDQUOT: MAKE_ROOM,
    errno.EROFS: MAKE_WRITABLE,
    errno.EACCES: MAKE_WRITABLE,
    errno.EPERM: MAKE_WRITABLE,
}


@dataclass(frozen=True, slots=True)
class SessionOptions:
    """Values of a session's common options; None for each that was not given."""

    desktop: str | None = None
    backend: str | None = None
    mode: str | None = None
    profile: str | None = None
    workspace: tuple[str, ...] = ()
    config: Path | None = None

    @property
    def flags(self) -> dict[str, Any]:
        """The same as keys of the configuration."""
        return {
            "desktop": self.desktop,
            "backend": self.backend,
            "mode": self.mode,
            "tools.profile": self.profile,
            "workspace": self.workspace or None,
        }


def create_completion(kind: str) -> Callable[[click.Context, click.Parameter, str], Sequence[CompletionItem]]:
    """Return a completion function that calls the one for `kind` in `_shell_completion`, imported when a shell asks."""

    def complete(context: click.Context, parameter: click.Parameter, incomplete: str) -> Sequence[CompletionItem]:
        from handrail.cli import _shell_completion

        return getattr(_shell_completion, f"complete_{kind}")(context, parameter, incomplete)

    return complete


SESSION_OPTION_DECORATORS = (
    click.option(
        "--desktop",
        metavar="NAME",
        help="current, private (a new virtual one), or a started one's name.",
        shell_complete=create_completion("desktops"),
    ),
    click.option(
        "--backend",
        metavar="NAME",
        help="What reads the screen (see `handrail plugins`).",
        shell_complete=create_completion("backends"),
    ),
    click.option(
        "--mode",
        metavar="MODE",
        help="default, accept_edits, plan, permissive or headless.",
        shell_complete=create_completion("modes"),
    ),
    click.option(
        "--profile",
        metavar="NAME",
        help="What is declared: files, shell, browser, desktop or all.",
        shell_complete=create_completion("profiles"),
    ),
    click.option(
        "--workspace",
        metavar="FOLDER",
        multiple=True,
        type=click.Path(),
        help="A folder that may be written; repeatable.",
    ),
    click.option("--config", metavar="FILE", type=click.Path(), help="Use FILE for handrail.toml."),
)


def session_options(function: Callable[..., T]) -> Callable[..., T]:
    """Add --desktop, --backend, --mode, --profile, --workspace and --config to a command; it is given `choices: SessionOptions`."""

    @functools.wraps(function)
    def wrapped(
        *,
        desktop: str | None,
        backend: str | None,
        mode: str | None,
        profile: str | None,
        workspace: tuple[str, ...],
        config: str | None,
        **others: Any,
    ) -> T:
        return function(
            choices=SessionOptions(desktop, backend, mode, profile, workspace, _parse_path(config)), **others
        )

    for option in reversed(SESSION_OPTION_DECORATORS):
        wrapped = option(wrapped)
    return wrapped


def _parse_path(name: str | None) -> Path | None:
    from pathlib import Path

    return Path(name) if name else None


def parse_named_values(given: Sequence[str], option: str) -> dict[str, str]:
    """Parse NAME=VALUE options into a mapping; raises UsageError for one without a value."""
    for each in given:
        if "=" not in each:
            raise click.UsageError(f"{option} {each!r} names no value; write NAME=VALUE")
    return dict(each.split("=", 1) for each in given)


json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


def get_current_folder() -> Path:
    """Return the directory that the program was started in; raises `HandrailError` if it no longer exists."""
    from pathlib import Path

    try:
        return Path.cwd()
    except OSError as exc:
        raise HandrailError("the current folder is gone", hint="change to one that exists") from exc


def read_config(choices: SessionOptions, *, flags: Mapping[str, Any] | None = None) -> LoadedConfig:
    """Load the configuration for these options; what it ignores is reported on stderr."""
    config = load_config(choices, flags)
    for sentence in config.ignored:
        click.echo(f"Note: {sentence}", err=True)
    return config


def disable_audit(config: LoadedConfig) -> LoadedConfig:
    """Return a copy without audit, for sessions that make no calls and leave nothing behind."""
    off = config.settings.audit.model_copy(update={"enabled": False})
    return replace(config, settings=config.settings.model_copy(update={"audit": off}))


@asynccontextmanager
async def open_runtime_for(
    choices: SessionOptions,
    *,
    config: LoadedConfig | None = None,
    follow: bool = True,
    environment: Mapping[str, str] | None = None,
) -> AsyncGenerator[Runtime]:
    """Open a runtime with these options, for `async with`, and register this process as running meanwhile.

    It follows changes of the configuration files unless `follow` is False. `environment` is passed to tools and their
    child processes; None means the program's own.
    """
    from handrail.session.runtime import open_runtime

    context = click.get_current_context(silent=True)
    config = config or read_config(choices)
    reload = functools.partial(load_config, choices) if follow else None
    environment = os.environ if environment is None else environment
    program = context.command_path if context else "handrail"
    roots = [str(get_current_folder() / os.path.expanduser(name)) for name in config.settings.workspace]
    with register_process(f"{program} in {', '.join(map(repr, roots))}" if roots else program):
        async with open_runtime(config, environment=environment, cwd=get_current_folder(), reload=reload) as runtime:
            # What starting has made is there to stay.
            gc.freeze()
            gc.set_threshold(RUNNING_GC_THRESHOLD)
            yield runtime


def register_process(what: str) -> AbstractContextManager[None]:
    """Register this process as running, which lets other commands find and end it."""
    from handrail.fs.app_dirs import AppDirs
    from handrail.workers.registry import ProcessRegistry, RunningProgram

    pid = os.getpid()
    return ProcessRegistry(AppDirs.of(os.environ).state).kept(RunningProgram.of("program", str(pid), what, pid=pid))


def load_config(choices: SessionOptions, flags: Mapping[str, Any] | None = None) -> LoadedConfig:
    """Load the configuration for these options without reporting what it ignores."""
    from handrail.config import loader as config
    from handrail.fs.app_dirs import AppDirs

    return config.load_config(
        places=AppDirs.of(os.environ),
        folder=get_current_folder(),
        environment=os.environ,
        flags={**choices.flags, **(flags or {})},
        file=choices.config,
    )


def run_async(main: Callable[[], Awaitable[T]]) -> T:
    """Run an async function to its end; an error comes out as itself, not in the group of the tasks it went through."""
    import anyio

    try:
        return anyio.run(main)
    except BaseExceptionGroup as group:
        raise _select_main_error(group) from None


def _select_main_error(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return the error to report: one for the user, before any other."""
    leaves = list(_iter_leaf_errors(group))
    return next((leaf for leaf in leaves if isinstance(leaf, HandrailError)), leaves[0])


def _iter_leaf_errors(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for exc in group.exceptions:
        if isinstance(exc, BaseExceptionGroup):
            yield from _iter_leaf_errors(cast("BaseExceptionGroup[BaseException]", exc))
        else:
            yield exc


class SignalStopper:
    """Ends what a session does: at the first signal its calls, in order, or where none runs what is inside `step`; at the second all that is
    inside `scope`.

    `caught` is the number of the first signal; 0 as long as there was none.
    """

    def __init__(self, session: Session) -> None:
        import anyio

        self.caught = 0
        self.step = anyio.CancelScope()
        self.scope = anyio.CancelScope()
        self._session = session

    def stop(self, number: int) -> None:
        if self.caught:
            self.scope.cancel()
        elif not self._session.cancel():
            self.step.cancel()
        self.caught = self.caught or number


@asynccontextmanager
async def handle_signals(act: Callable[[int], None]) -> AsyncGenerator[None]:
    """Inside, SIGINT, SIGTERM and SIGHUP call `act` with their number and do nothing else."""
    import signal

    import anyio

    async def watch(*, task_status: anyio.abc.TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        with anyio.open_signal_receiver(signal.SIGINT, signal.SIGTERM, signal.SIGHUP) as signals:
            task_status.started()
            async for number in signals:
                act(number)

    async with anyio.create_task_group() as group:
        await group.start(watch)
        yield
        group.cancel_scope.cancel()


def print_json(value: Any) -> None:
    """Print a value as JSON on stdout, in UTF-8 under any locale."""
    sys.stdout.flush()
    from handrail.terminal.json_lines import encode_json_line

    sys.stdout.buffer.write(encode_json_line(value).encode() + b"\n")
    sys.stdout.buffer.flush()


def escape_for_terminal(text: str, *, err: bool = False) -> str:
    """Return the text as it may be written to this stream.

    On a terminal, nothing in it can move the cursor, hide text or change its color.
    """
    if not (sys.stderr if err else sys.stdout).isatty():
        return text
    from handrail.text import make_visible

    return "\t".join(make_visible(part) for part in text.split("\t"))


def describe_system_error(exc: OSError) -> tuple[str, str | None]:
    """Return the system's message with its file, and a remedy if the error concerns our own directories, else None."""
    where = f"{exc.filename!r}: " if exc.filename else ""
    return f"{where}{exc.strerror or exc}", ERROR_HINTS.get(exc.errno or 0)


def print_error(message: str, *, hint: str | None = None) -> None:
    """`Error: …` and `Hint: …` on stderr."""
    click.echo(f"Error: {message}", err=True)
    if hint:
        click.echo(f"Hint: {hint}", err=True)
