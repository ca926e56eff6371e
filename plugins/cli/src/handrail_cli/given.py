"""What commands are given by others of the line: the names that a program lists, put in place of a mark."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise, takewhile

from handrail_cli.commandline import Analysis, Word
from handrail_cli.producing import Feed

# What narrows the files that `find` finds.
NARROWING = re.compile(
    r"-(i?l?name|i?path|i?wholename|i?regex|[acm](min|time)|newer.*|size|empty|user|group|perm|uid|gid|links|inum|samefile|nouser)"
)
# Programs that print names of files below where they work.
LISTERS = frozenset(("find", "fd", "fdfind", "ls", "grep", "rg"))
PASSING = frozenset(("sort", "uniq", "head", "tail", "grep"))
LISTING_GIT = frozenset(("ls-files", "diff", "grep"))


def feeders_of(analysis: Analysis) -> Mapping[int, tuple[int, ...]]:
    """For each command of a pipeline, the commands of the stage before its own."""
    feeders: dict[int, tuple[int, ...]] = {}
    if not analysis.pipelines:
        return feeders
    for stages in analysis.pipelines:
        for before, stage in pairwise(stages):
            for number in stage:
                feeders[number] = (*feeders.get(before[0], ()), *before) if before else ()
    return feeders


def names_listed(feed: Feed) -> str | None:
    """What stands for the names that are fed, when all are names of files below where it works: one of them, or, where nothing narrows
    them, the folder with all that is in it. None when they may be anything.
    """
    argv = feed.producers[0].argv if feed.producers else None
    if not argv or not all(later.program in PASSING and later.argv for later in feed.producers[1:]):
        return None
    words = feed.producers[0].words[1:]
    narrowed = any(later.program in ("grep", "head", "tail") for later in feed.producers[1:])
    narrowed = narrowed or any(word.glob for word in words) or narrows([word.guess for word in words])
    operands = (
        list(takewhile(_begins_no_test, argv[1:])) if argv[0] == "find" else list(filter(_begins_no_test, argv[1:]))
    )
    if argv[0] == "git":
        if argv[1:2] != ("ls-files",) and not ("--name-only" in argv and argv[1] in LISTING_GIT):
            return None
        return "./file" if narrowed or len(operands) > 1 or argv[1] != "ls-files" else "."
    if any(word.startswith(("/", "~", "..")) or "/.." in word for word in argv[1:]):
        return None
    if argv[0] in ("grep", "rg"):
        return "./file" if any(re.fullmatch(r"-[A-Za-z]*[lL]|--files.*", word) for word in argv[1:]) else None
    if argv[0] not in LISTERS or any(word.startswith(("-printf", "-exec", "-l")) for word in argv[1:]):
        return None
    return "./file" if narrowed or operands[:1] not in ([], ["."], ["./"]) else "."


def narrows(texts: Sequence[str]) -> bool:
    """Whether tests of `find` pick some of the files; `-name '*'` picks all."""
    return any(NARROWING.fullmatch(text) and set(texts[at + 1 : at + 2]) != {"*"} for at, text in enumerate(texts))


def put_in(word: Word, mark: str | None, item: Word, *, whole: bool = True) -> Word:
    """A word with `item` in place of a mark. Inside a longer word it stays unknown where it is only one of many."""
    if mark is None or mark not in word.guess:
        return word
    if word.guess == mark:
        return Word(item.text, item.guess, word.span, item.glob)
    guess = word.guess.replace(mark, item.guess)
    known = word.text is not None and item.text is not None and (not whole or " " not in word.guess)
    return Word(guess if known else None, guess, word.span, word.glob)


def _begins_no_test(word: str) -> bool:
    return not word.startswith(("-", "(", "!"))
