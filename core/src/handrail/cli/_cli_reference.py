"""The text of docs/cli.md, with all plugins installed."""

from __future__ import annotations

from collections.abc import Iterator

import click

from handrail.cli import handrail_program

PAGE_INTRODUCTION = """\
# The command line

Made from the code by `make docs`; `handrail COMMAND --help` shows the same for what is installed here.

Results go to stdout, everything else to stderr. Exit codes: 0 done, 1 failed or denied, 2 misused, 130 after Ctrl-C. An error is a line
`Error: …` and, where there is a cure, a line `Hint: …`; `handrail --debug COMMAND` shows the traceback as well.
"""
PAGE_WIDTH = 100


def render_reference_page() -> str:
    """Return the complete page."""
    return "\n".join([PAGE_INTRODUCTION, *(section for _, section in iter_sections())])


def iter_sections() -> Iterator[tuple[str, str]]:
    """Yield the words of each command with its section of the page."""
    context = click.Context(
        handrail_program, info_name="handrail", terminal_width=PAGE_WIDTH, max_content_width=PAGE_WIDTH
    )
    yield from _iter_command_sections(handrail_program, context, omit=True)


def _iter_command_sections(
    command: click.Command, context: click.Context, *, omit: bool = False
) -> Iterator[tuple[str, str]]:
    if not omit:
        yield context.command_path, f"## {context.command_path}\n\n```\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            assert below is not None
            inner = click.Context(below, info_name=name, parent=context, help_option_names=["-h", "--help"])
            yield from _iter_command_sections(below, inner)
