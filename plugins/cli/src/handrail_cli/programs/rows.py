"""The language of the rows, and the families of programs that are written in it (`families/*.rows`).

    NAME[|NAME] [SUBCOMMAND[|SUBCOMMAND]…] = KIND [CODE] [NEED…] [FLAG…]: OPERANDS ; what it does
        OPTION…
        reads|help OPTION…                          these make it harmless (`--dry-run`), or end it at once (`--help`)
        effect [NEED…] OPTION… [; why]              these make it more than reading
        danger CODE OPTION… ; why                   these make it dangerous
        needs NEED… OPTION…                         these change nothing, but have the call need more
        with OPTION…: OPERANDS                      given one of these, its operands are others
        reaches FAMILY                              whose hosts it connects to, by HTTP and through a proxy (see `values`)
        like NAME [SUBCOMMAND]                      it has the options of that row, too

KIND is `reads`, `effect` or `dangerous` (then CODE is the reason's). Options are listed and everything else is asked about; an abbreviation of
listed options is asked about too, and is as bad as the worst of them. In a list
`-abc` are letters without a value, `-n:` has a value, `-o:write` one with a role, `-i[]` may have one and only in the same word;
`--name`, `--name=`, `--name=write`, `--name[=]` likewise,
`--arg=2text` has two words of which the second has the role; `of=write` is an operand of the form key=value; `-W*` is any word that begins so.

NEEDS (see `values`): `code` and `repository` imply `loads_project`, which a program's row hands on to the rows of its subcommands. A call that
needs `loads_project` or `reads_list` neither `inspects` nor `filters`, whatever its row says.
FLAGS: `first` options end at the first operand · `single` options are words with one dash (`-name`) · `globals` its options may follow its
subcommands, too · `plain` has no options, all words are operands · `tame` no option whatever makes it do more · `by/NAME` a grammar in
code takes the words · `then/NAME` a check in code follows.
OPERANDS: roles (see `values`), `text` (nothing to look at), `name`; `?` may be missing, `...` any number; `command...` (words of another command),
`shell...` (joined to one for bash), `code/LANGUAGE`; `commands` (one of its subcommands), `none`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import cast, get_args

from handrail_cli.programs.values import KINDS, Family, Kind, Need, Role

HEADER = re.compile(r"(?P<names>\S.*?) = (?P<what>[^:]*?): (?P<operands>.*?) ; (?P<says>.+)")
TOKEN = re.compile(r"(?P<name>-{0,2}[\w.+@?#%,-]+?)(?P<value>\*|\[=?[\w/]*\]|[:=][\w/]*|)", re.ASCII)
CODES = frozenset((
    "runs_program", "destructive", "privilege", "system_change", "persistence", "sends_data", "secret", "processes", "remote",
    "shell", "hidden_code", "writes", "serves", "listens", "settings", "installs", "foreign_source", "device",
))  # fmt: skip
FLAGS = frozenset(("first", "single", "globals", "plain", "tame"))
NEEDS: frozenset[str] = frozenset(get_args(Need))
LOADING: frozenset[Need] = frozenset(("loads_project",))
ROLES: frozenset[str] = frozenset(get_args(Role))
REACHED: frozenset[str] = frozenset(get_args(Family))
SPECIAL_ROLES = frozenset(("text", "command", "shell", "remote", "contained", "commands", "none"))


class RowError(ValueError):
    """A row that does not follow the language."""


@dataclass(frozen=True, slots=True)
class Option:
    """One option: whether it takes a value (`no`, `yes`, `attached` only in the same word), the value's role, what it makes of the call."""

    name: str
    value: str = "no"
    role: str | None = None
    makes: str | None = None
    code: str | None = None
    why: str | None = None
    needs: frozenset[Need] = frozenset()


@dataclass(frozen=True, slots=True)
class Operand:
    """What stands at a place among the operands."""

    role: str
    count: str = ""


COMMANDS = Operand("commands")
# Roles of operands that take all words from there on.
TAKING_ALL = frozenset(("command", "shell", "remote", "contained"))


@dataclass(frozen=True)
class Row:
    """What one program or subcommand does."""

    names: tuple[frozenset[str], ...]
    kind: Kind
    says: str
    code: str | None
    needs: frozenset[Need]
    flags: frozenset[str]
    operands: tuple[Operand, ...]
    by: str | None = None
    then: str | None = None
    reaches: Family | None = None
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])
    prefixes: tuple[Option, ...] = ()
    given: tuple[tuple[frozenset[str], tuple[Operand, ...]], ...] = ()

    # Found once for a row, and asked for with each command.

    @cached_property
    def plain(self) -> bool:
        """Whether all words are operands."""
        return "plain" in self.flags

    @cached_property
    def commands(self) -> bool:
        """Whether the first operand is one of its subcommands."""
        return self.operands[:1] == (COMMANDS,)

    @cached_property
    def runs(self) -> bool:
        """True if its operands are a command or code, which an option that is not listed may change."""
        return any(one.role in TAKING_ALL or one.role.startswith("code/") for one in self.operands)

    @cached_property
    def behind_commands(self) -> tuple[Operand, ...]:
        """The operands, without the subcommand."""
        return self.operands[1:] if self.commands else self.operands

    @cached_property
    def stops(self) -> float:
        """After how many operands there are no options any more."""
        if "first" in self.flags:
            return 1
        return next((max(at, 1) for at, one in enumerate(self.operands) if one.role in TAKING_ALL), float("inf"))


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """The unread text of a row: its names, and header and body as they stand. Each is made once, and equal to itself alone."""

    names: tuple[frozenset[str], ...]
    header: str
    body: tuple[str, ...]


@lru_cache(maxsize=1)
def index() -> Mapping[str, tuple[str, ...]]:
    """The rows of every program, as text, found by a light scan: the first is the program's own."""
    found: dict[str, list[str]] = {}
    for family in sorted(Path(__file__).with_name("families").glob("*.rows")):
        for text in blocks(family.read_text(encoding="utf-8")):
            for name in text.split(" ", 1)[0].split("|"):
                found.setdefault(name, []).append(text)
    return {name: tuple(texts) for name, texts in found.items()}


def blocks(text: str) -> Iterator[str]:
    """The rows of a family, each with its indented lines."""
    yield from re.split(r"\n(?=[^\s#])", f"\n{text}")[1:]


@lru_cache(maxsize=512)
def program(name: str) -> tuple[Block, ...]:
    """The rows of a program, names only."""
    return tuple(map(_block, index().get(name, ())))


@lru_cache(maxsize=512)
def below(name: str) -> Mapping[tuple[str, ...], Block]:
    """The rows of a program's subcommands, by all the names that lead to each."""
    found: dict[tuple[str, ...], Block] = {}
    for block in program(name):
        if len(block.names) > 1:
            for path in product(*block.names[1:]):
                found.setdefault(path, block)
    return found


@lru_cache(maxsize=2048)
def row(block: Block) -> Row:
    """The row that a block says."""
    match = HEADER.fullmatch(block.header)
    if match is None:
        raise RowError(f"{block.header!r} is not `names = kind: operands ; what it does`")
    kind, *words = match["what"].split()
    if kind not in KINDS:
        raise RowError(f"{kind!r} in {block.header!r} is no kind")
    body = tuple(_body(block))
    options = [option for options, _ in body for option in options]
    table: dict[str, Option] = {}
    for option in options:
        key = f"{option.name}*" if option.value == "prefix" else option.name
        if table.setdefault(key, option) != option:
            raise RowError(f"{key!r} stands twice in {block.header!r}")
    return Row(
        names=block.names,
        kind=kind,
        says=match["says"],
        code=_code(kind, words, block),
        needs=implied(frozenset(cast(Need, word) for word in words if word in NEEDS)),
        flags=frozenset(word for word in words if word in FLAGS),
        operands=operands(match["operands"]),
        by=next((word[3:] for word in words if word.startswith("by/")), None),
        then=next((word[5:] for word in words if word.startswith("then/")), None),
        reaches=next(_reaches(block), None),
        options={name: option for name, option in table.items() if option.value != "prefix"},
        prefixes=tuple(option for option in table.values() if option.value == "prefix"),
        given=tuple(given for _, given in body if given is not None),
    )


def operands(text: str) -> tuple[Operand, ...]:
    """The operands that a text says."""
    return tuple(_operand(word) for word in text.split())


def implied(needs: frozenset[Need]) -> frozenset[Need]:
    """Add what other needs bring along."""
    return needs | LOADING if needs & {"code", "repository"} else needs


def _block(text: str) -> Block:
    header, *lines = text.splitlines()
    names = header.partition(" = ")[0].split()
    return Block(
        tuple(frozenset(name.split("|")) for name in names),
        header,
        tuple(line.strip() for line in lines if line.strip() and not line.strip().startswith("#")),
    )


def _code(kind: Kind, words: list[str], block: Block) -> str | None:
    codes = [word for word in words if word in CODES]
    known = (*codes, *(word for word in words if word in NEEDS | FLAGS or word.startswith(("by/", "then/"))))
    if len(known) != len(words) or len(codes) != (kind == "dangerous"):
        raise RowError(f"what stands before the operands in {block.header!r} is not understood")
    return codes[0] if codes else None


def _operand(word: str) -> Operand:
    role = word.removesuffix("...").removesuffix("?")
    _check_role(role, word)
    return Operand(role, word[len(role) :])


def _check_role(role: str, where: str) -> None:
    role = role.removeprefix("2")
    if role not in ROLES | SPECIAL_ROLES and not role.startswith("code/"):
        raise RowError(f"{role!r} in {where!r} is no role")


def _reaches(block: Block) -> Iterator[Family]:
    for line in block.body:
        first, *families = line.split()
        if first == "reaches":
            if len(families) != 1 or families[0] not in REACHED:
                raise RowError(f"{line!r} names no family")
            yield cast(Family, families[0])


Given = tuple[frozenset[str], tuple[Operand, ...]]


def _body(block: Block) -> Iterator[tuple[list[Option], Given | None]]:
    """The lines of a row, one after another."""
    single = "single" in block.header.split(":")[0].split()
    for line in block.body:
        listed, _, why = line.partition(" ; ")
        first, *rest = listed.split()
        if first == "like":
            name, *path = rest
            yield from (([option], None) for option in _like(name, path, line))
        elif first == "reaches":
            continue
        elif first == "with":
            names, _, pattern = listed.removeprefix("with ").partition(": ")
            given = frozenset(option.name for token in names.split() for option in _options(token, single))
            yield [], (given, operands(pattern))
        elif first in ("reads", "help", "effect", "danger", "needs"):
            yield [_made(option, first, rest, why) for token in rest for option in _tokens(token, single)], None
        else:
            yield [option for token in (first, *rest) for option in _options(token, single)], None


def _like(name: str, path: list[str], line: str) -> Iterator[Option]:
    block = next((block for block in program(name) if _fits(block, (name, *path))), None)
    if block is None:
        raise RowError(f"there is no row for {line!r}")
    other = row(block)
    yield from other.options.values()
    yield from other.prefixes


def _fits(block: Block, path: tuple[str, ...]) -> bool:
    return len(block.names) == len(path) and all(part in names for part, names in zip(path, block.names, strict=True))


def _tokens(token: str, single: bool) -> list[Option]:
    return [] if token in CODES or token in NEEDS else _options(token, single)


def _made(option: Option, makes: str, words: list[str], why: str) -> Option:
    codes = [word for word in words if word in CODES]
    if makes == "danger" and (len(codes) != 1 or not why):
        raise RowError(f"{option.name!r} is dangerous, but the line does not say why")
    needs: frozenset[Need] = frozenset(cast(Need, word) for word in words if word in NEEDS)
    if makes == "needs" and not needs:
        raise RowError(f"the line of {option.name!r} names no need")
    code = codes[0] if codes else None
    kind = None if makes == "needs" else makes
    return Option(option.name, option.value, option.role, kind, code, why.strip() or None, implied(needs))


@lru_cache(maxsize=8192)
def _options(token: str, single: bool) -> list[Option]:
    """The options that a token lists: letters are one each, save the last, which has the value."""
    match = TOKEN.fullmatch(token)
    if match is None:
        raise RowError(f"{token!r} is no option")
    name, mark = match["name"], match["value"]
    role = mark.strip("[]=:") or None
    if role == "*":
        return [Option(name, "prefix")]
    if role is not None:
        _check_role(role, token)
    value = "no" if not mark else "attached" if mark.startswith("[") else "yes"
    letters = not single and not name.startswith("--") and name.startswith("-") and not mark.startswith(("=", "[="))
    if not letters or len(name) == 2:
        return [Option(name, value, role)]
    return [*(Option(f"-{letter}") for letter in name[1:-1]), Option(f"-{name[-1]}", value, role)]
