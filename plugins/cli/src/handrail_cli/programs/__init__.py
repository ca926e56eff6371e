"""What programs do, as data: the kind of each command line, what it names, what it needs and what it runs in its turn."""

from __future__ import annotations

from collections.abc import Sequence

from handrail_cli.programs.values import InnerRun, NamedOperand, ProgramUse, UseKind
from handrail_cli.shell.bash.syntax import ShellWord

__all__ = ["InnerRun", "NamedOperand", "ProgramUse", "UseKind", "find_program_use"]


def find_program_use(words: Sequence[ShellWord], *, fed: str | None = None) -> ProgramUse | None:
    """What a command line does by the grammar of its program, before any path is looked at; None when the program is not known.

    `fed` is the text on its standard input, where that stands in the command line (a here-document or here-string), for what runs it.

    The first word is the program, with or without a folder: whose program it is, is for the caller to judge.
    """
    # It needs the values of this package, which are imported by then.
    from handrail_cli.programs.arg_matching import match_command_line

    return match_command_line(words, fed)
