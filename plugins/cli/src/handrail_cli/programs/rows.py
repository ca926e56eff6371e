"""Language of the rows, and the families of programs written in it (`families/*.rows`).

    NAME[|NAME] [SUBCOMMAND[|SUBCOMMAND]…] = KIND [CODE] [NEED…] [FLAG…]: OPERANDS ; what it does
        OPTION…
        reads|help OPTION…                          these make it harmless (`--dry-run`), or end it at once (`--help`)
        effect [NEED…] OPTION… [; why]              these make it more than reading
        danger CODE OPTION… ; why                   these make it dangerous
        needs NEED… OPTION…                         these change nothing, but have the call need more
        with OPTION…: OPERANDS                      given one of these, its operands are others
        reaches FAMILY                              whose hosts it connects to, by HTTP and through a proxy (see `values`)
        like NAME [SUBCOMMAND]                      it has the options of that row, too

KIND is `reads`, `effect` or `dangerous` (then CODE is the reason's). Options are listed and everything else requires
approval; an abbreviation of listed options requires approval too, and is as bad as the worst of them. In a list, `-abc`
are letters without a value, `-n:` has a value, `-o:write` has a value with a role, and `-i[]` may have one, only in the
same word; `--name`, `--name=`, `--name=write`, `--name[=]` likewise. `--arg=2text` has two words, the second with the
role; `of=write` is an operand of the form key=value; `-W*` is any word that begins with `-W`.

NEEDS (see `values`): `code` and `repository` imply `loads_project`, which a program's row passes on to the rows of its
subcommands. A call that needs `loads_project` or `reads_list` neither `inspects` nor `filters`, regardless of its row.

FLAGS: `first` options end at the first operand · `single` options are words with one dash (`-name`) · `globals` its
options may also follow its subcommands · `plain` has no options, all words are operands · `tame` no option makes it do
more · `by/NAME` a grammar in code matches the words · `then/NAME` a check in code follows.

OPERANDS: roles (see `values`), `text` (nothing to examine), `name`; `?` is optional, `...` is any number; `command...`
(words of another command), `shell...` (joined into one command for bash), `code/LANGUAGE`; `commands` (one of its
subcommands), `none`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import product
from pathlib import Path
from typing import cast, get_args

from handrail_cli.programs.values import KINDS, OperandRole, RegistryFamily, UseKind, UseNeed

ROW_HEADER = re.compile(r"(?P<names>\S.*?) = (?P<what>[^:]*?): (?P<operands>.*?) ; (?P<says>.+)")
OPTION_TOKEN = re.compile(r"(?P<name>-{0,2}[\w.+@?#%,-]+?)(?P<value>\*|\[=?[\w/]*\]|[:=][\w/]*|)", re.ASCII)
REASON_CODES = frozenset((
    "runs_program", "destructive", "privilege", "system_change", "persistence", "sends_data", "secret", "processes", "remote",
    "shell", "hidden_code", "writes", "serves", "listens", "settings", "installs", "foreign_source", "device",
))  # fmt: skip
ROW_FLAGS = frozenset(("first", "single", "globals", "plain", "tame"))
NEEDS: frozenset[str] = frozenset(get_args(UseNeed))
LOADING_NEEDS: frozenset[UseNeed] = frozenset(("loads_project",))
ROLES: frozenset[str] = frozenset(get_args(OperandRole))
REACHED_FAMILIES: frozenset[str] = frozenset(get_args(RegistryFamily))
SPECIAL_ROLES = frozenset(("text", "command", "shell", "remote", "contained", "commands", "none"))


class RowError(ValueError):
    """A row that does not follow the language."""


@dataclass(frozen=True, slots=True)
class RowOption:
    """One option: whether it takes a value (`no`, `yes`, `attached` only in the same word), the value's role, what it makes of the call."""

    name: str
    value: str = "no"
    role: str | None = None
    makes: str | None = None
    code: str | None = None
    why: str | None = None
    needs: frozenset[UseNeed] = frozenset()


@dataclass(frozen=True, slots=True)
class RowOperand:
    """Operand at one position of a row."""

    role: str
    count: str = ""


SUBCOMMAND_OPERAND = RowOperand("commands")
# Roles of operands that take all words from there on.
REMAINDER_ROLES = frozenset(("command", "shell", "remote", "contained"))


@dataclass(frozen=True)
class ProgramRow:
    """Behavior of one program or subcommand."""

    names: tuple[frozenset[str], ...]
    kind: UseKind
    says: str
    code: str | None
    needs: frozenset[UseNeed]
    flags: frozenset[str]
    operands: tuple[RowOperand, ...]
    by: str | None = None
    then: str | None = None
    reaches: RegistryFamily | None = None
    options: Mapping[str, RowOption] = field(default_factory=dict[str, RowOption])
    prefixes: tuple[RowOption, ...] = ()
    given: tuple[tuple[frozenset[str], tuple[RowOperand, ...]], ...] = ()

    # Found once for a row, and asked for with each command.

    @cached_property
    def plain(self) -> bool:
        """True if all words are operands."""
        return "plain" in self.flags

    @cached_property
    def commands(self) -> bool:
        """True if the first operand is one of its subcommands."""
        return self.operands[:1] == (SUBCOMMAND_OPERAND,)

    @cached_property
    def runs(self) -> bool:
        """True if its operands are a command or code, which an option that is not listed may change."""
        return any(one.role in REMAINDER_ROLES or one.role.startswith("code/") for one in self.operands)

    @cached_property
    def behind_commands(self) -> tuple[RowOperand, ...]:
        """The operands, without the subcommand."""
        return self.operands[1:] if self.commands else self.operands

    @cached_property
    def stops(self) -> float:
        """Number of operands after which words are not recognized as options."""
        if "first" in self.flags:
            return 1
        return next((max(at, 1) for at, one in enumerate(self.operands) if one.role in REMAINDER_ROLES), float("inf"))


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """The unread text of a row: its names, and header and body as they stand. Each is made once, and equal to itself alone."""

    names: tuple[frozenset[str], ...]
    header: str
    body: tuple[str, ...]


@lru_cache(maxsize=1)
def load_row_index() -> Mapping[str, tuple[str, ...]]:
    """Return the rows of every program as text, found by a quick scan; the program's own row is the first."""
    found: dict[str, list[str]] = {}
    for family in sorted(Path(__file__).with_name("families").glob("*.rows")):
        for text in split_row_blocks(family.read_text(encoding="utf-8")):
            for name in text.split(" ", 1)[0].split("|"):
                found.setdefault(name, []).append(text)
    return {name: tuple(texts) for name, texts in found.items()}


def split_row_blocks(text: str) -> Iterator[str]:
    """Yield the rows of a family, each with its indented lines."""
    yield from re.split(r"\n(?=[^\s#])", f"\n{text}")[1:]


@lru_cache(maxsize=512)
def find_program_blocks(name: str) -> tuple[RowBlock, ...]:
    """Return the rows of a program with only the names parsed."""
    return tuple(map(_parse_block, load_row_index().get(name, ())))


@lru_cache(maxsize=512)
def find_subcommand_blocks(name: str) -> Mapping[tuple[str, ...], RowBlock]:
    """Return the rows of a program's subcommands by every combination of names that selects each."""
    found: dict[tuple[str, ...], RowBlock] = {}
    for block in find_program_blocks(name):
        if len(block.names) > 1:
            for path in product(*block.names[1:]):
                found.setdefault(path, block)
    return found


@lru_cache(maxsize=2048)
def parse_row(block: RowBlock) -> ProgramRow:
    """Parse the row in a block."""
    match = ROW_HEADER.fullmatch(block.header)
    if match is None:
        raise RowError(f"{block.header!r} is not `names = kind: operands ; what it does`")
    kind, *words = match["what"].split()
    if kind not in KINDS:
        raise RowError(f"{kind!r} in {block.header!r} is no kind")
    body = tuple(_iter_row_lines(block))
    options = [option for options, _ in body for option in options]
    table: dict[str, RowOption] = {}
    for option in options:
        key = f"{option.name}*" if option.value == "prefix" else option.name
        if table.setdefault(key, option) != option:
            raise RowError(f"{key!r} stands twice in {block.header!r}")
    return ProgramRow(
        names=block.names,
        kind=kind,
        says=match["says"],
        code=_find_reason_code(kind, words, block),
        needs=add_implied_needs(frozenset(cast(UseNeed, word) for word in words if word in NEEDS)),
        flags=frozenset(word for word in words if word in ROW_FLAGS),
        operands=parse_operands(match["operands"]),
        by=next((word[3:] for word in words if word.startswith("by/")), None),
        then=next((word[5:] for word in words if word.startswith("then/")), None),
        reaches=next(_iter_reached_families(block), None),
        options={name: option for name, option in table.items() if option.value != "prefix"},
        prefixes=tuple(option for option in table.values() if option.value == "prefix"),
        given=tuple(given for _, given in body if given is not None),
    )


def parse_operands(text: str) -> tuple[RowOperand, ...]:
    """Parse the operands in a text."""
    return tuple(_parse_operand(word) for word in text.split())


def add_implied_needs(needs: frozenset[UseNeed]) -> frozenset[UseNeed]:
    """Return the needs together with those they imply."""
    return needs | LOADING_NEEDS if needs & {"code", "repository"} else needs


def _parse_block(text: str) -> RowBlock:
    header, *lines = text.splitlines()
    names = header.partition(" = ")[0].split()
    return RowBlock(
        tuple(frozenset(name.split("|")) for name in names),
        header,
        tuple(line.strip() for line in lines if line.strip() and not line.strip().startswith("#")),
    )


def _find_reason_code(kind: UseKind, words: list[str], block: RowBlock) -> str | None:
    codes = [word for word in words if word in REASON_CODES]
    known = (*codes, *(word for word in words if word in NEEDS | ROW_FLAGS or word.startswith(("by/", "then/"))))
    if len(known) != len(words) or len(codes) != (kind == "dangerous"):
        raise RowError(f"what stands before the operands in {block.header!r} is not understood")
    return codes[0] if codes else None


def _parse_operand(word: str) -> RowOperand:
    role = word.removesuffix("...").removesuffix("?")
    _check_role(role, word)
    return RowOperand(role, word[len(role) :])


def _check_role(role: str, where: str) -> None:
    role = role.removeprefix("2")
    if role not in ROLES | SPECIAL_ROLES and not role.startswith("code/"):
        raise RowError(f"{role!r} in {where!r} is no role")


def _iter_reached_families(block: RowBlock) -> Iterator[RegistryFamily]:
    for line in block.body:
        first, *families = line.split()
        if first == "reaches":
            if len(families) != 1 or families[0] not in REACHED_FAMILIES:
                raise RowError(f"{line!r} names no family")
            yield cast(RegistryFamily, families[0])


ConditionalOperands = tuple[frozenset[str], tuple[RowOperand, ...]]


def _iter_row_lines(block: RowBlock) -> Iterator[tuple[list[RowOption], ConditionalOperands | None]]:
    """Yield the parsed lines of a row in order."""
    single = "single" in block.header.split(":")[0].split()
    for line in block.body:
        listed, _, why = line.partition(" ; ")
        first, *rest = listed.split()
        if first == "like":
            name, *path = rest
            yield from (([option], None) for option in _iter_referenced_options(name, path, line))
        elif first == "reaches":
            continue
        elif first == "with":
            names, _, pattern = listed.removeprefix("with ").partition(": ")
            given = frozenset(option.name for token in names.split() for option in _parse_options(token, single))
            yield [], (given, parse_operands(pattern))
        elif first in ("reads", "help", "effect", "danger", "needs"):
            yield (
                [_apply_effect(option, first, rest, why) for token in rest for option in _parse_token(token, single)],
                None,
            )
        else:
            yield [option for token in (first, *rest) for option in _parse_options(token, single)], None


def _iter_referenced_options(name: str, path: list[str], line: str) -> Iterator[RowOption]:
    block = next((block for block in find_program_blocks(name) if _is_row_of(block, (name, *path))), None)
    if block is None:
        raise RowError(f"there is no row for {line!r}")
    other = parse_row(block)
    yield from other.options.values()
    yield from other.prefixes


def _is_row_of(block: RowBlock, path: tuple[str, ...]) -> bool:
    return len(block.names) == len(path) and all(part in names for part, names in zip(path, block.names, strict=True))


def _parse_token(token: str, single: bool) -> list[RowOption]:
    return [] if token in REASON_CODES or token in NEEDS else _parse_options(token, single)


def _apply_effect(option: RowOption, makes: str, words: list[str], why: str) -> RowOption:
    codes = [word for word in words if word in REASON_CODES]
    if makes == "danger" and (len(codes) != 1 or not why):
        raise RowError(f"{option.name!r} is dangerous, but the line does not say why")
    needs: frozenset[UseNeed] = frozenset(cast(UseNeed, word) for word in words if word in NEEDS)
    if makes == "needs" and not needs:
        raise RowError(f"the line of {option.name!r} names no need")
    code = codes[0] if codes else None
    kind = None if makes == "needs" else makes
    return RowOption(option.name, option.value, option.role, kind, code, why.strip() or None, add_implied_needs(needs))


@lru_cache(maxsize=8192)
def _parse_options(token: str, single: bool) -> list[RowOption]:
    """Return the options listed by a token: one per letter, of which the last has the value."""
    match = OPTION_TOKEN.fullmatch(token)
    if match is None:
        raise RowError(f"{token!r} is no option")
    name, mark = match["name"], match["value"]
    role = mark.strip("[]=:") or None
    if role == "*":
        return [RowOption(name, "prefix")]
    if role is not None:
        _check_role(role, token)
    value = "no" if not mark else "attached" if mark.startswith("[") else "yes"
    letters = not single and not name.startswith("--") and name.startswith("-") and not mark.startswith(("=", "[="))
    if not letters or len(name) == 2:
        return [RowOption(name, value, role)]
    return [*(RowOption(f"-{letter}") for letter in name[1:-1]), RowOption(f"-{name[-1]}", value, role)]
