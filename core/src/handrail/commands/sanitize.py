"""`handrail sanitize`"""

from __future__ import annotations

from typing import Any

import click

from handrail.commands._common import Choices, read_config, run, session_options
from handrail.commands._lines import BadLine, TooLong, check_keys, error_wire, parsed
from handrail.plain import is_object

FIELDS = frozenset(("text",))
# Output of a command may be long; what is shown of it is not.
LONGEST = 256_000_000


@click.command("sanitize")
@click.option("--jsonl", is_flag=True, required=True, help="Read a text a line, write what is shown of it.")
@session_options
def command(jsonl: bool, choices: Choices) -> None:
    """Show text as an agent is shown untrusted output.

    Each line of stdin is {"text"}. Each gives a line {"text", "removed"}, in order: the text without what steers terminals or hides, within
    its size, and between two lines that it cannot have known; `removed` says what was taken out or made visible, and how often. A bad line
    gives {"error"}.

    Example: echo '{"text": "\\u001b[8mhidden"}' | handrail sanitize --jsonl
    """
    limit = read_config(choices).settings.output.max_bytes
    run(lambda: _sanitize(limit))


async def _sanitize(limit: int) -> None:
    import anyio

    from handrail.commands._stdio import Writer, lines, own_stdio

    with own_stdio() as (stdin, stdout):
        writer = Writer(stdout)
        async with anyio.create_task_group() as group:
            group.start_soon(writer.run)
            async for line in lines(stdin, longest=LONGEST):
                if not isinstance(line, bytes) or line.strip():
                    writer.write(sanitized(line, limit=limit))
                    await writer.room()
            writer.close()


def sanitized(line: bytes | TooLong, *, limit: int) -> dict[str, Any]:
    """What is shown of the text on one line, or the error that the line is."""
    from handrail.results.values import Source
    from handrail.untrusted.envelope import envelope, shown

    try:
        asked = parsed(line)
        if not is_object(asked):
            raise BadLine(f"a line is an object, not {type(asked).__name__}")
        check_keys(asked, FIELDS)
        text = asked.get("text")
        if not isinstance(text, str):
            raise BadLine("the key 'text' is missing" if text is None else f"text is {str(text)[:80]!r}")
    except BadLine as exc:
        return {"error": error_wire("bad_line", str(exc))}
    cleaned = shown(text, limit=limit)
    return {"text": envelope(cleaned.text, source=Source()).text, "removed": cleaned.removed}
