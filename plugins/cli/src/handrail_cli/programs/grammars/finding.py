"""The expressions of find (find(1), "EXPRESSION"): tests, actions, and the commands behind `-exec`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handrail_cli.programs.taking import Taking, role_of
from handrail_cli.programs.values import Inner

PLAIN = frozenset((
    "-print", "-print0", "-ls", "-prune", "-quit", "-depth", "-d", "-mount", "-xdev", "-daystart", "-follow", "-empty", "-true", "-false",
    "-executable", "-readable", "-writable", "-nouser", "-nogroup", "-noleaf", "-not", "-a", "-and", "-o", "-or", "!", "(", ")", ",",
    "-ignore_readdir_race", "-noignore_readdir_race", "-warn", "-nowarn", "-x", "-s", "-X", "-E", "-nohidden",
))  # fmt: skip
BEFORE = re.compile(r"-[HLP]+|-O[0-3]|-[Exsd]")
VALUED = frozenset((
    "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-regextype", "-lname", "-ilname",
    "-type", "-xtype",
    "-size", "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-inum", "-links", "-user", "-group", "-uid", "-gid", "-perm", "-fstype",
    "-maxdepth", "-mindepth", "-printf", "-used", "-context", "-newermt", "-newerat", "-newerct", "-newerBt", "-flags", "-exclude", "-bmin", "-btime",
))  # fmt: skip
COMPARED = re.compile(r"-(newer([aBcm][aBcm])?|anewer|cnewer|samefile)")
EXECS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))
WRITES = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}


def find(taking: Taking, start: int) -> None:
    """`find [-HLP] [FOLDER…] [EXPRESSION]`."""
    words = taking.words
    at = start
    if len(words) == start + 1 and words[start].text in ("--help", "--version", "-help", "-version"):
        return
    while at < len(words) and BEFORE.fullmatch(words[at].text or ""):
        _follows(taking, "L" in (words[at].text or ""))
        at += 1
    first = at
    while at < len(words) and not _begins(words[at].text):
        if words[at].text is None or (words[at].glob and (words[at].text or "").startswith(("*", "?", "["))):
            taking.doubt(at)
        role_of(taking, "list", at)
        at += 1
    if at == first:
        taking.name("list", 0, ".")
    while at < len(words):
        at = _term(taking, at, first)


def _follows(taking: Taking, follows: bool) -> None:
    """Note that it goes through links."""
    if follows:
        taking.needs.add("reads_list")


def _begins(text: str | None) -> bool:
    return text is not None and (text.startswith("-") or text in ("(", ")", "!", ","))


def _term(taking: Taking, at: int, first: int) -> int:
    """Take one term of the expression; where the next begins."""
    words = taking.words
    text = words[at].text
    if text in PLAIN:
        _follows(taking, text == "-follow")
        return at + 1
    value = words[at + 1] if at + 1 < len(words) else None
    if text in VALUED and value is not None:
        if value.text is None or (value.glob and not re.search(r"[\w.]$", value.text)):
            taking.doubt(at + 1)
        return at + 2
    if text is not None and COMPARED.fullmatch(text) and value is not None:
        role_of(taking, "list", at + 1)
        return at + 2
    if text == "-files0-from" and value is not None:
        role_of(taking, "read", at + 1)
        taking.needs.add("reads_list")
        return at + 2
    if text == "-delete":
        _starts(taking, first)
        return at + 1
    if text in EXECS:
        return _exec(taking, at)
    if text in WRITES and value is not None:
        role_of(taking, "write", at + 1)
        return at + 1 + WRITES[text]
    taking.doubt(at)
    return at + 1


def _starts(taking: Taking, first: int) -> None:
    """What `-delete` goes through: everything, unless a test before it names what to take."""
    words = taking.words
    filtered = narrows([word.guess for word in words[first:]])
    taking.worsen("effect")
    starts = [one for one in taking.named if one.role == "list" and (one.word_index >= first or one.value == ".")]
    for one in starts:
        taking.name("delete" if filtered else "delete_tree", one.word_index, one.value)


# Tests that pick some of the files, and such of their values as pick all.
NARROWING = re.compile(
    r"-(i?l?name|i?path|i?wholename|i?regex|[acm](min|time)|newer.*|size|empty|user|group|perm|uid|gid|links|inum|samefile|nouser)"
)
ALL = re.compile(r"[*?./]*\*[*?./]*")
EITHER = frozenset(("-o", "-or", ","))
NOT = frozenset(("!", "-not"))


def narrows(texts: Sequence[str]) -> bool:
    """Whether tests of `find` pick some of the files on every way to what is done with them. `-name '*'` picks all, and so may `! -name x`."""
    ways = [False]
    at = 0
    while at < len(texts):
        text = texts[at]
        if text in EXECS:
            at = next((n for n in range(at, len(texts)) if texts[n] in (";", "+")), len(texts))
        elif text in EITHER:
            ways.append(False)
        elif NARROWING.fullmatch(text) and not (at and texts[at - 1] in NOT):
            ways[-1] = ways[-1] or not any(map(ALL.fullmatch, texts[at + 1 : at + 2]))
        at += 1
    return all(ways)


def _exec(taking: Taking, at: int) -> int:
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
    taking.inner.append(Inner(at + 1, end, gets="found", mark="{}"))
    return end + 1
