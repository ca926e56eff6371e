"""`handrail serve`"""

from __future__ import annotations

import gc
import sys

import click

from handrail.commands import Choices, open_runtime_for, print_json, run, session_options


@click.command("serve")
@session_options
@click.option("--print-entry", is_flag=True, help="Print the entry for a client's configuration, and exit.")
def command(choices: Choices, print_entry: bool) -> None:
    """Offer the tools to an MCP client on stdio.

    One process is one session. It ends when the client leaves, with everything it started.

    Example: handrail serve --desktop private
    """
    if print_entry:
        _print_entry(choices)
        return
    from handrail_mcp.wire import claim

    if sys.stdin.isatty():
        click.echo(
            "Note: this speaks to MCP clients on stdin and stdout; --print-entry shows how they start it.", err=True
        )
    # Before plugins are loaded: whatever prints from now on prints to stderr.
    wire = claim()
    # What starting makes stays for good; to look for garbage in it over and over would be a sixth of the time to the first answer.
    gc.disable()
    run(lambda: _serve(choices, wire))


async def _serve(choices: Choices, wire: tuple[int, int] | None) -> None:
    from handrail_mcp.serving import serve

    async with open_runtime_for(choices) as runtime, runtime.session() as session:
        gc.freeze()
        gc.enable()
        await serve(session, wire)


def _print_entry(choices: Choices) -> None:
    from handrail_mcp.entry import client_entry

    entry = client_entry(
        desktop=choices.desktop,
        backend=choices.backend,
        mode=choices.mode,
        workspace=choices.workspace,
        config=choices.config,
    )
    print_json(entry)
