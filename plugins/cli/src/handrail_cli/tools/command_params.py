"""The parameters of `execute_cli`: what to run, and for how long."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

# What a person sees as the name of the tool.
TOOL_TITLE = "Run a command"
# Linux gives a program no longer argument (MAX_ARG_STRLEN, which counts the NUL at its end).
MAX_COMMAND_BYTES = 131_071
TERMINAL_SIZE = re.compile(r"^[1-9]\d{0,2}x[1-9]\d{0,2}$")
# The sizes that a terminal may have.
MOST_COLUMNS, MOST_ROWS = 1_000, 500


def _check_terminal_size(pty: str | None) -> str | None:
    if pty is not None and TERMINAL_SIZE.fullmatch(pty) is None:
        raise ValueError(f"{pty!r} is no size of a terminal; give columns and rows, such as 120x40")
    return pty


def _check_command_length(command: str) -> str:
    try:
        size = len(command.encode(errors="surrogateescape"))
    except UnicodeEncodeError as exc:
        raise ValueError(
            f"it holds {command[exc.start]!r} at {exc.start}, half of a surrogate pair, which no program can be given"
        ) from None
    if size > MAX_COMMAND_BYTES:
        raise ValueError(
            f"it has {size:,} bytes, and none of more than {MAX_COMMAND_BYTES:,} can be started; write it to a file and run that"
        )
    return command


def _check_encodable(stdin: str | None) -> str | None:
    try:
        (stdin or "").encode(errors="surrogateescape")
    except UnicodeEncodeError as exc:
        raise ValueError(f"it holds {exc.object[exc.start]!r} at {exc.start}, half of a surrogate pair") from None
    return stdin


class CommandParams(BaseModel):
    """A command with its input, folder, limits and mode of running."""

    model_config = ConfigDict(extra="forbid", defer_build=True)

    command: Annotated[
        str, AfterValidator(_check_command_length), Field(min_length=1, description="A command line for bash.")
    ]
    timeout: Annotated[float, Field(gt=0, le=86_400, description="Seconds it may take.")] = 30.0
    on_timeout: Annotated[
        Literal["stop", "background"],
        Field(description="At the time limit: stop it, or leave it running under a process_id."),
    ] = "stop"
    background: Annotated[
        bool,
        Field(description="Return at once with a process_id; for servers."),
    ] = False
    stdin: Annotated[
        str | None,
        AfterValidator(_check_encodable),
        Field(description="Its standard input, which is empty otherwise."),
    ] = None
    cwd: Annotated[str | None, Field(description="Folder for this call only.")] = None
    pty: Annotated[
        str | None,
        AfterValidator(_check_terminal_size),
        Field(
            json_schema_extra={"pattern": TERMINAL_SIZE.pattern},
            description="Columns and rows of a terminal for it, such as 120x40.",
        ),
    ] = None
