"""What programs do, as data: the kind of each command line, what it names, what it needs and what it runs in its turn."""

from __future__ import annotations

from collections.abc import Sequence

from handrail_cli.commandline import Word
from handrail_cli.programs.values import Inner, Kind, Named, Use

__all__ = ["Inner", "Kind", "Named", "Use", "use"]


def use(words: Sequence[Word], *, fed: str | None = None) -> Use | None:
    """What a command line does by the grammar of its program, before any path is looked at; None when the program is not known.

    `fed` is the text on its standard input, where that stands in the command line (a here-document or here-string), for what runs it.

    The first word is the program, with or without a folder: whose program it is, is for the caller to judge.
    """
    # It needs the values of this package, which are imported by then.
    from handrail_cli.programs.taking import taken

    return taken(words, fed)
