"""`handrail completion`"""

from __future__ import annotations

import click

SUPPORTED_SHELLS = ("bash", "fish", "zsh")


@click.command("completion")
@click.argument("shell", type=click.Choice(SUPPORTED_SHELLS), metavar=f"[{'|'.join(SUPPORTED_SHELLS)}]")
def command(shell: str) -> None:
    """Print what makes a shell complete commands and tools.

    Put its output where the shell reads it; docs/install.md names the file of each shell.

    Example: handrail completion bash > ~/.local/share/bash-completion/completions/handrail
    """
    from click.shell_completion import get_completion_class

    from handrail.cli import handrail_program

    kind = get_completion_class(shell)
    assert kind is not None, shell
    click.echo(kind(handrail_program, {}, "handrail", "_HANDRAIL_COMPLETE").source())
