"""`handrail sanitize`"""

from __future__ import annotations

from typing import Any

import click

from handrail.cli._common import SessionOptions, read_config, run_async, session_options
from handrail.json_types import is_object
from handrail.terminal.json_lines import InvalidLine, OversizedLine, check_known_keys, error_wire, parse_json_line

LINE_FIELDS = frozenset(("text",))
# Output of a command may be long; what is shown of it is not.
MAX_LINE_BYTES = 256_000_000


@click.command("sanitize")
@click.option("--jsonl", is_flag=True, required=True, help="Read a text a line, write what is shown of it.")
@session_options
def command(jsonl: bool, choices: SessionOptions) -> None:
    """Show text as an agent is shown untrusted output.

    Each line of stdin is {"text"}. Each gives a line {"text", "removed"}, in order: the text without what steers terminals or hides, within
    its size, and between two lines that it cannot have known; `removed` says what was taken out or made visible, and how often. A bad line
    gives {"error"}.

    Example: echo '{"text": "\\u001b[8mhidden"}' | handrail sanitize --jsonl
    """
    limit = read_config(choices).settings.output.max_bytes
    run_async(lambda: _sanitize_lines(limit))


async def _sanitize_lines(limit: int) -> None:
    import anyio

    from handrail.terminal.stdio import LineWriter, read_lines, take_over_stdio

    with take_over_stdio() as (stdin, stdout):
        writer = LineWriter(stdout)
        async with anyio.create_task_group() as group:
            group.start_soon(writer.run)
            async for line in read_lines(stdin, longest=MAX_LINE_BYTES):
                if not isinstance(line, bytes) or line.strip():
                    writer.write(sanitize_line(line, limit=limit))
                    await writer.room()
            writer.close()


def sanitize_line(line: bytes | OversizedLine, *, limit: int) -> dict[str, Any]:
    """Return what is shown of the text on one line, or the error in the line."""
    from handrail.api.result import TextSource
    from handrail.sanitize.envelope import clean_and_truncate, wrap_untrusted

    try:
        asked = parse_json_line(line)
        if not is_object(asked):
            raise InvalidLine(f"a line is an object, not {type(asked).__name__}")
        check_known_keys(asked, LINE_FIELDS)
        text = asked.get("text")
        if not isinstance(text, str):
            raise InvalidLine("the key 'text' is missing" if text is None else f"text is {str(text)[:80]!r}")
    except InvalidLine as exc:
        return {"error": error_wire("bad_line", str(exc))}
    cleaned = clean_and_truncate(text, limit=limit)
    return {"text": wrap_untrusted(cleaned.text, source=TextSource()).text, "removed": cleaned.removed}
