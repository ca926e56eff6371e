"""Arguments that commands get from others: names a program lists or finds, passed to the command it runs.

They take the place of a mark or are appended.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, takewhile
from pathlib import PurePosixPath

from handrail.fs import path_resolution
from handrail.undo.path_patterns import SOME_BELOW
from handrail_cli.programs import InnerRun, ProgramUse
from handrail_cli.programs.grammars.find_expression import is_search_narrowed
from handrail_cli.shell.bash.constant_output import StdinSource
from handrail_cli.shell.bash.syntax import ParsedLine, ShellWord
from handrail_cli.shell.glob_match import GLOB_CHARACTER, find_matching_secret
from handrail_cli.shell.program_wrappers import INTERPRETER, SHELLS

# More items than these, and longer texts, are not put in one by one.
MAX_ITEMS = 8
MAX_FED = 2_000
# Delimiters of `xargs -d`.
DELIMITER_ESCAPES = {"\\n": "\n", "\\0": "\0", "\\t": "\t"}
SOME_FILE = f"./{SOME_BELOW}"

# Over whatever files `find` may find: programs that tell names, sizes and sums, not what is in them.
NAME_ONLY_PROGRAMS = frozenset((
    "ls", "stat", "du", "file", "wc", "basename", "dirname", "realpath", "readlink", "echo", "test", "rm", "chmod", "touch",
))  # fmt: skip
# Programs that print names of files below where they work.
LISTING_PROGRAMS = frozenset(("find", "fd", "fdfind", "ls", "grep", "rg"))
# Options by which programs that search print nothing but names of files, also among other letters, and those that take the next word as their value.
NAMES_ONLY_OPTIONS = {
    "grep": (re.compile(r"-[^\WABCDdefm]*[lL]\w*|--files-with.*"), re.compile(r"-\w*[ABCDdefm]|--[a-z-]+")),
    "rg": (re.compile(r"-[^\WABCEMTdefgjmrt]*l\w*|--files(-with.*)?"), re.compile(r"-\w*[ABCEMTdefgjmrt]|--[a-z-]+")),
}
FILTER_PROGRAMS = frozenset(("sort", "uniq", "head", "tail", "grep"))
LISTING_GIT_COMMANDS = frozenset(("ls-files", "diff", "grep"))


def map_feeders(analysis: ParsedLine) -> Mapping[int, tuple[int, ...]]:
    """Return, for each command of a pipeline, the commands of the preceding stage."""
    feeders: dict[int, tuple[int, ...]] = {}
    if not analysis.pipelines:
        return feeders
    for stages in analysis.pipelines:
        for before, stage in pairwise(stages):
            for number in stage:
                feeders[number] = (*feeders.get(before[0], ()), *before) if before else ()
    return feeders


def find_listed_name(feed: StdinSource) -> str | None:
    """Return a substitute for the names that are fed, if all are names of files below the working directory.

    It is one of them or, if nothing narrows them, the directory with everything in it. None if they may be anything.
    """
    argv = feed.producers[0].argv if feed.producers else None
    if not argv or not all(later.program in FILTER_PROGRAMS and later.argv for later in feed.producers[1:]):
        return None
    words = feed.producers[0].words[1:]
    narrowed = any(later.program in ("grep", "head", "tail") for later in feed.producers[1:])
    narrowed = narrowed or any(word.glob for word in words) or is_search_narrowed([word.guess for word in words])
    operands = (
        list(takewhile(_is_no_find_test, argv[1:])) if argv[0] == "find" else list(filter(_is_no_find_test, argv[1:]))
    )
    if argv[0] == "git":
        if argv[1:2] != ("ls-files",) and not ("--name-only" in argv and argv[1] in LISTING_GIT_COMMANDS):
            return None
        return SOME_FILE if narrowed or len(operands) > 1 or argv[1] != "ls-files" else "."
    if any(word.startswith(("/", "~", "..")) or "/.." in word for word in argv[1:]):
        return None
    if argv[0] in NAMES_ONLY_OPTIONS:
        names_only, takes_word = NAMES_ONLY_OPTIONS[argv[0]]
        options = pairwise(takewhile("--".__ne__, argv))
        told = any(names_only.fullmatch(word) and not takes_word.fullmatch(before) for before, word in options)
        return SOME_FILE if told else None
    if argv[0] not in LISTING_PROGRAMS or any(word.startswith(("-printf", "-exec", "-l")) for word in argv[1:]):
        return None
    return SOME_FILE if narrowed or operands[:1] not in ([], ["."], ["./"]) else "."


def fill_inner_words(
    inner: InnerRun, use: ProgramUse, words: Sequence[ShellWord], feed: StdinSource, *, at_home: bool
) -> Iterator[Sequence[ShellWord]]:
    """Yield the words of an inner command with its input inserted.

    `at_home`: the names that a program lists are those of the workspace.
    """
    own = list(words[inner.start : inner.end])
    if inner.gets == "nothing":
        yield own
    elif inner.gets == "found":
        for start in _iter_search_starts(use, words):
            yield [substitute_mark(word, "{}", start) for word in own]
    else:
        yield from _fill_from_feed(inner, own, feed, _split_items(feed, words[: inner.start]), at_home=at_home)


def fill_inner_code(inner: InnerRun, feed: StdinSource, *, at_home: bool) -> Iterator[str]:
    """Yield the code with its input inserted and quoted; an unknown value becomes an unknown variable."""
    items = None if feed.text is None else _limit_items(feed.text.splitlines(), feed)
    if items is not None and any(_is_possible_pattern(item, feed) for item in items):
        items = None
    elif items is None:
        listed = find_listed_name(feed) if at_home else None
        items = [listed] if listed is not None else None
    code = inner.code or ""
    for put in map(shlex.quote, items) if items is not None else ['"$1"']:
        yield code.replace(inner.mark, put) if inner.mark else f"{code} {put}"


def find_picked_secrets(words: Sequence[ShellWord], own: Sequence[ShellWord]) -> Iterator[ShellWord]:
    """Yield the names of secrets by which `find` (`words`) selects files for a command (`own`).

    Only commands that reveal more than the names of the files are considered.
    """
    if not own or own[0].guess.rpartition("/")[2] in NAME_ONLY_PROGRAMS:
        return
    for option, word in pairwise(words):
        if re.fullmatch(r"-i?(name|path|wholename)", option.guess):
            plain = GLOB_CHARACTER.search(word.guess) is None
            if (
                path_resolution.describe_secret(PurePosixPath(word.guess))
                if plain
                else find_matching_secret(word.guess)
            ):
                yield word


def _iter_search_starts(use: ProgramUse, words: Sequence[ShellWord]) -> Iterator[ShellWord]:
    """Yield substitutes for the files found: something below each starting point.

    If nothing narrows the search, these are the starting points themselves.
    """
    narrowed = is_search_narrowed([word.guess for word in words])
    starts = [words[named.word_index] for named in use.named if named.role in ("list", "read") and named.value is None]
    for start in starts or [ShellWord(".", ".", words[0].span)]:
        below = f"{start.text.rstrip('/')}/{SOME_BELOW}" if narrowed and start.text is not None else start.text
        yield ShellWord(below, below or "", start.span, start.glob)


def _fill_from_feed(
    inner: InnerRun, own: list[ShellWord], feed: StdinSource, items: list[str] | None, *, at_home: bool
) -> Iterator[Sequence[ShellWord]]:
    """Yield the words of a command with its input: inserted one by one, or as one substitute for all."""
    span = own[0].span
    if items is None:
        runs = own[0].guess.rpartition("/")[2]
        runs_names = runs in SHELLS or runs in ("eval", "env") or INTERPRETER.fullmatch(runs) is not None
        text = find_listed_name(feed) if not runs_names and at_home else None
        item = ShellWord(text, text or "", span, text is None)
        yield [substitute_mark(word, inner.mark, item) for word in own] if inner.mark else [*own, item]
    elif inner.mark:
        for text in items or [""]:
            item = _create_item_word(text, span, feed)
            yield [substitute_mark(word, inner.mark, item, whole=False) for word in own]
    else:
        yield [*own, *(_create_item_word(text, span, feed) for text in items)]
        if own[0].guess.rpartition("/")[2] in SHELLS and len(items) > 1:
            # Options may have them put in one by one, and then each is code.
            yield from ([*own, _create_item_word(text, span, feed)] for text in items)


def _create_item_word(text: str, span: tuple[int, int], feed: StdinSource) -> ShellWord:
    """Return a word of the input; if it looks like a glob, matching names may have replaced it when it was printed."""
    return ShellWord(text, text, span, _is_possible_pattern(text, feed))


def _is_possible_pattern(text: str, feed: StdinSource) -> bool:
    fitted = any(word.glob for producer in feed.producers for word in producer.words)
    return fitted and GLOB_CHARACTER.search(text) is not None


def _split_items(feed: StdinSource, options: Sequence[ShellWord]) -> list[str] | None:
    """Return the items that `xargs` with these words before its command makes of its input.

    None if they are unknown, too many or too long.
    """
    text = feed.text
    if text is None:
        return None
    given = [word.guess for word in options[1:]]
    if (at := next((n for n, word in enumerate(given) if re.match(r"-\w*d|--delimiter", word)), None)) is not None:
        parted = re.fullmatch(r"-d(.+)|--delimiter=(.+)", given[at], re.DOTALL)
        by = (parted[1] or parted[2]) if parted else given[at + 1] if at + 1 < len(given) else ""
        by = DELIMITER_ESCAPES.get(by, by)
        return _limit_items([item for item in text.split(by) if item.strip()], feed) if len(by) == 1 else None
    if any(re.fullmatch(r"-[0rtx]*0[0rtx]*|--null", word) for word in given):
        return _limit_items([item.strip("\n") for item in text.split("\0") if item], feed)
    if any(re.match(r"-[IiLl]|--(replace|max-lines)", word) for word in given):
        return _limit_items([line.strip() for line in text.splitlines() if line.strip()], feed)
    try:
        return _limit_items(shlex.split(text), feed)
    except ValueError:
        return None


def _limit_items(items: list[str], feed: StdinSource) -> list[str] | None:
    """Return the items; None if they are too many or too long to insert one by one."""
    return items if len(items) <= MAX_ITEMS and len(feed.text or "") < MAX_FED else None


def substitute_mark(word: ShellWord, mark: str | None, item: ShellWord, *, whole: bool = True) -> ShellWord:
    """Return a word with `item` in place of a mark.

    If `whole`, a text of several words that contains the mark becomes unknown.
    """
    if mark is None or mark not in word.guess:
        return word
    if word.guess == mark:
        return ShellWord(item.text, item.guess, word.span, item.glob)
    guess = word.guess.replace(mark, item.guess)
    known = word.text is not None and item.text is not None and (not whole or " " not in word.guess)
    return ShellWord(guess if known else None, guess, word.span, word.glob)


def _is_no_find_test(word: str) -> bool:
    return not word.startswith(("-", "(", "!"))
