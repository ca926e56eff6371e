"""The expressions of find (find(1), "EXPRESSION"): tests, actions, and the commands behind `-exec`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handrail_cli.programs.grammars.arg_matching import ArgumentMatch, note_role
from handrail_cli.programs.values import InnerRun

PLAIN_TESTS = frozenset((
    "-print", "-print0", "-ls", "-prune", "-quit", "-depth", "-d", "-mount", "-xdev", "-daystart", "-follow", "-empty", "-true", "-false",
    "-executable", "-readable", "-writable", "-nouser", "-nogroup", "-noleaf", "-not", "-a", "-and", "-o", "-or", "!", "(", ")", ",",
    "-ignore_readdir_race", "-noignore_readdir_race", "-warn", "-nowarn", "-x", "-s", "-X", "-E", "-nohidden",
))  # fmt: skip
LEADING_OPTION = re.compile(r"-[HLP]+|-O[0-3]|-[Exsd]")
VALUED_TESTS = frozenset((
    "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-regextype", "-lname", "-ilname",
    "-type", "-xtype",
    "-size", "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-inum", "-links", "-user", "-group", "-uid", "-gid", "-perm", "-fstype",
    "-maxdepth", "-mindepth", "-printf", "-used", "-context", "-newermt", "-newerat", "-newerct", "-newerBt", "-flags", "-exclude", "-bmin", "-btime",
))  # fmt: skip
COMPARING_TEST = re.compile(r"-(newer([aBcm][aBcm])?|anewer|cnewer|samefile)")
EXEC_ACTIONS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
WRITING_ACTIONS = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}
ACTIONS = frozenset(("-delete", "-print", "-print0", "-printf", "-ls", *EXEC_ACTIONS, *WRITING_ACTIONS))


def take_find(taking: ArgumentMatch, start: int) -> None:
    """Match `find [-HLP] [FOLDER…] [EXPRESSION]`."""
    words = taking.words
    at = start
    if len(words) == start + 1 and words[start].text in ("--help", "--version", "-help", "-version"):
        return
    while at < len(words) and LEADING_OPTION.fullmatch(words[at].text or ""):
        _note_link_following(taking, "L" in (words[at].text or ""))
        at += 1
    first = at
    while at < len(words) and not _is_expression_start(words[at].text):
        if words[at].text is None or (words[at].glob and (words[at].text or "").startswith(("*", "?", "["))):
            taking.doubt(at)
        note_role(taking, "list", at)
        at += 1
    if at == first:
        taking.name("list", 0, ".")
    while at < len(words):
        at = _take_term(taking, at, first)


def _note_link_following(taking: ArgumentMatch, follows: bool) -> None:
    """Note that it goes through links."""
    if follows:
        taking.needs.add("reads_list")


def _is_expression_start(text: str | None) -> bool:
    return text is not None and (text.startswith("-") or text in ("(", ")", "!", ","))


def _take_term(taking: ArgumentMatch, at: int, first: int) -> int:
    """Take one term of the expression; where the next begins."""
    words = taking.words
    text = words[at].text
    if text in PLAIN_TESTS:
        _note_link_following(taking, text == "-follow")
        return at + 1
    value = words[at + 1] if at + 1 < len(words) else None
    if text in VALUED_TESTS and value is not None:
        if value.text is None or (value.glob and not re.search(r"[\w.]$", value.text)):
            taking.doubt(at + 1)
        return at + 2
    if text is not None and COMPARING_TEST.fullmatch(text) and value is not None:
        note_role(taking, "list", at + 1)
        return at + 2
    if text == "-files0-from" and value is not None:
        note_role(taking, "read", at + 1)
        taking.needs.add("reads_list")
        return at + 2
    if text == "-delete":
        _note_deleted_starts(taking, first)
        return at + 1
    if text in EXEC_ACTIONS:
        return _take_exec(taking, at)
    if text in WRITING_ACTIONS and value is not None:
        note_role(taking, "write", at + 1)
        return at + 1 + WRITING_ACTIONS[text]
    taking.doubt(at)
    return at + 1


def _note_deleted_starts(taking: ArgumentMatch, first: int) -> None:
    """Note what `-delete` removes: everything, unless a test before it selects files."""
    words = taking.words
    filtered = is_search_narrowed([word.guess for word in words[first:]])
    taking.worsen("effect")
    starts = [one for one in taking.named if one.role == "list" and (one.word_index >= first or one.value == ".")]
    for one in starts:
        taking.name("delete" if filtered else "delete_tree", one.word_index, one.value)


# Tests that pick some of the files, and such of their values as pick all.
NARROWING_TEST = re.compile(
    r"-(i?l?name|i?path|i?wholename|i?regex|[acm](min|time)|newer.*|size|empty|user|group|perm|uid|gid|links|inum|samefile|nouser)"
)
MATCH_ALL = re.compile(r"[*?./]*\*[*?./]*")
OR_OPERATORS = frozenset(("-o", "-or", ","))
NOT_OPERATORS = frozenset(("!", "-not"))


def is_search_narrowed(texts: Sequence[str]) -> bool:
    """Return True if tests of `find` select some of the files before each action. `-name '*'` selects all, and so may `! -name x`."""
    ways = [False]
    negated_groups: list[bool] = []
    at = 0
    while at < len(texts):
        text = texts[at]
        negated = at > 0 and texts[at - 1] in NOT_OPERATORS
        if text == "(":
            negated_groups.append(negated)
        elif text == ")":
            del negated_groups[-1:]
        elif text in OR_OPERATORS:
            ways.append(False)
        elif text in ACTIONS:
            # A test behind an action does not limit it.
            if not ways[-1]:
                return False
            if text in EXEC_ACTIONS:
                at = next((n for n in range(at, len(texts)) if texts[n] in (";", "+")), len(texts))
        elif NARROWING_TEST.fullmatch(text) and not negated and not any(negated_groups):
            ways[-1] = ways[-1] or not any(map(MATCH_ALL.fullmatch, texts[at + 1 : at + 2]))
        at += 1
    return all(ways)


def _take_exec(taking: ArgumentMatch, at: int) -> int:
    words = taking.words
    end = next((n for n in range(at + 1, len(words)) if words[n].text in (";", "+")), None)
    if end is None or end == at + 1:
        taking.doubt(at)
        return len(words)
    if words[end].text == "+" and words[end - 1].text != "{}":
        end = next((n for n in range(end + 1, len(words)) if words[n].text == ";"), None)
        if end is None:
            taking.doubt(at)
            return len(words)
    if words[at].text in ("-execdir", "-okdir"):
        starts = [one.value or words[one.word_index].text or "/" for one in taking.named if one.role == "list"]
        if any(start[0] in "/~" or ".." in start.split("/") for start in starts):
            # It runs in the folders of what it finds, which are not below this one.
            taking.doubt(at)
    taking.inner.append(InnerRun(at + 1, end, gets="found", mark="{}"))
    return end + 1
