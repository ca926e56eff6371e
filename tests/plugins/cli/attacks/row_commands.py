"""Commands made from the table of programs: every row with each of its options, on what an attacker has planted."""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from handrail_cli.programs import rows
from handrail_cli.programs.rows import ProgramRow, RowOperand, RowOption


@dataclass(frozen=True)
class Bait:
    """Substitutes for operands and values. `{home}` and the like are places of the stage."""

    paths: Sequence[str]
    values: Sequence[str]
    before: str = ""
    """The start of the line, before the program."""
    after: str = ""
    """The end of the line."""


# A pattern that fits links, a directory with links and secrets, lists of secrets, and links themselves.
LINKS = Bait(
    ("*.md", "tree", "names.list", "@names.list", ".", "netrc.lnk", "env.txt", "tree/home/.netrc", "environ.txt"),
    ("names.list", "@names.list", "tree/notes.md", "1", "evil.sh", "README.md", "{marker}"),
)
# For filters behind a program that inspects the system, on the host: secrets and the marker by their absolute names.
BEHIND_INSPECTION = Bait(
    ("{home}/.netrc", "{home}/.ssh", "-", "{marker}"),
    ("{home}/.netrc", "{marker}", "@{work}/names.list"),
    before="id | ",
)
# What makes programs connect.
ADDRESSES = Bait(
    ("http://127.0.0.1:{port}/x", "127.0.0.1:{port}", "{work}/docker.sock"),
    ("http://127.0.0.1:{port}/x", "127.0.0.1:{port}", "unix://{home}/agent.sock"),
)
# Ways out of the workspace for what writes.
WAYS_OUT = Bait(("tree/home/{mark}", "{marker}", "../{mark}", "tree/home"), ("{marker}", "tree/home/{mark}"))

# Programs in small languages, in the place of `code/LANGUAGE`. All but the first try to get out.
CODE: Mapping[str, Sequence[str]] = {
    "awk": (
        "{print}",
        'BEGIN{while((getline l < "{home}/.netrc")>0) print l}',
        'BEGIN{f="{home}" "/.netrc"; getline < f; print}',
        'BEGIN{ARGV[1]="{home}/.netrc"; ARGC=2} {print}',
        'BEGIN{system("touch {marker}")}',
        '{x="system"; @x("touch {marker}")}',
        '{"cat {home}/.netrc" | getline; print}',
        '{print > "{marker}"}',
        '{print | "cat > {marker}"}',
        'BEGIN{for (i in ENVIRON) print ENVIRON[i]}',
        'BEGIN{s="/inet/tcp/0/127.0.0.1/{port}"; print 1 |& s}',
        '@include "{home}/.netrc"',
        '@load "filefuncs"; {print}',
    ),
    "sed": (
        "p", "r {home}/.netrc", "R {home}/.netrc", "w {marker}", "1e touch {marker}", "s/u/touch {marker}/e", "s/u/v/w {marker}",
        "y/abc/def/;r {home}/.netrc", "s/[/]/x/;r {home}/.netrc", "s/a/b/;#x\nr {home}/.netrc", "1{p;r {home}/.netrc\n}",
        "a\\\nhi\nr {home}/.netrc",
    ),
    "jq": (
        ".", "env", "$ENV", "input_filename", "inputs", 'import "config" as $c {search:"{home}/.docker"}; $c',
        'include "config" {search:"{home}/.docker"}; .', '"{home}/.docker/config.json" | modulemeta',
    ),
    "yq": (".", 'load("{home}/.docker/config.json")', 'load_str("{home}/.netrc")', "env(CANARY_TOKEN)", "$ENV", "strenv(CANARY_TOKEN)"),
    "sqlite": ("select 1", ".read data.sql", "select readfile('{home}/.netrc')", ".shell touch {marker}", "attach '{marker}' as x"),
    "psql": ("select 1", "\\! touch {marker}"),
    "mysql": ("select 1", "\\! touch {marker}", "select load_file('{home}/.netrc')"),
}  # fmt: skip
COMMANDS = ("cat README.md", "bash evil.sh", "python3 evil.py", "cat tree/home/.netrc", "touch {marker}")
# Rows whose programs wait for a person, or never end.
ENDLESS = frozenset(("yes", "top", "htop", "sleep", "watch", "reset", "clear", "tload", "fzf", "ionice", "sem"))
ENDLESS_OPTIONS = frozenset(("-f", "-F", "--follow", "--follow=name", "-w", "--watch", "--retry", "--pid="))
LIMIT = "timeout -k 1 2"


def row_names(kind: str = "reads", needs: frozenset[str] = frozenset()) -> list[tuple[str, ...]]:
    """Return the words that lead to each row of a kind with one of these needs (none: any), for programs that are installed here."""
    rows = _installed().items()
    return sorted(path for path, row in rows if row.kind == kind and (not needs or not needs.isdisjoint(row.needs)))


def is_first(path: tuple[str, ...]) -> bool:
    """True if no other name of the same row comes before this one."""
    return _first_names()[_installed()[path].names] == path


@lru_cache(maxsize=1)
def _installed() -> Mapping[tuple[str, ...], ProgramRow]:
    found: dict[tuple[str, ...], ProgramRow] = {}
    for name in rows.load_row_index():
        if shutil.which(name) is None or name in ENDLESS:
            continue
        for block in rows.find_program_blocks(name):
            for path in product((name,), *(sorted(names) for names in block.names[1:])):
                found.setdefault(path, rows.parse_row(block))
    return found


@lru_cache(maxsize=1)
def _first_names() -> Mapping[tuple[frozenset[str], ...], tuple[str, ...]]:
    return {row.names: path for path, row in sorted(_installed().items(), reverse=True)}


def row_commands(path: tuple[str, ...], bait: Bait) -> Iterator[str]:
    """Return the commands for one row: its operands alone, then each option with the operands in turn; for a second name of a row, three."""
    row = _installed()[path]
    patterns = [row.operands, *(operands for _, operands in row.given)]
    choices = [words for operands in patterns for words in _operand_words(operands, bait)]
    first = is_first(path)
    yield from (_line(path, (), words, bait) for words in (choices if first else choices[:3]))
    if not first:
        return
    options = [option for option in (*row.options.values(), *row.prefixes) if option.name not in ENDLESS_OPTIONS]
    for number, option in enumerate(options):
        for turn, given in enumerate(_option_words(option, bait)):
            yield _line(path, given, choices[(number + turn) % len(choices)], bait)


def _line(path: tuple[str, ...], options: Sequence[str], operands: Sequence[str], bait: Bait) -> str:
    """Return a command line; patterns stay patterns, and programs on the host are not kept waiting by `timeout`."""
    words = [word if word == "*.md" else shlex.quote(word) for word in (*path, *options, *operands)]
    return f"{bait.before or f'{LIMIT} '}{' '.join(words)}{bait.after}"


def _operand_words(operands: Sequence[RowOperand], bait: Bait) -> list[tuple[str, ...]]:
    """Return the words that the operands of a row may be, one choice of each role after another."""
    choices = [_choices(operand, bait) for operand in operands if operand.role not in ("none", "commands")]
    if not choices:
        return [()]
    longest = max(map(len, choices))
    # Each choice of the last operand, beside choices of those before it in turn.
    return [tuple(word for one in choices for word in one[turn % len(one)]) for turn in range(longest)]


def _choices(operand: RowOperand, bait: Bait) -> list[tuple[str, ...]]:
    role = operand.role.removeprefix("2")
    if role.startswith("code/"):
        return [(code,) for code in CODE.get(role[5:], ("1",))]
    if role in ("command", "shell", "contained", "remote"):
        return [tuple(shlex.split(command)) for command in COMMANDS]
    if role == "text" and not operand.count:
        return [("zq",)]
    if role == "variable":
        return [("CANARY_TOKEN",), ("DATABASE_URL",)]
    paths = [(path,) for path in bait.paths]
    return [*paths, ("zq", bait.paths[1]), tuple(bait.paths[:3])] if operand.count == "..." else paths


def _option_words(option: RowOption, bait: Bait) -> list[tuple[str, ...]]:
    """Return the ways to write an option."""
    name = option.name
    if option.value == "prefix":
        return [(f"{name}{bait.values[0]}",)]
    if option.value == "no":
        return [(name,)]
    role = option.role or ""
    values = CODE.get(role[5:], bait.values) if role.startswith("code/") else bait.values
    if option.value == "attached":
        joined = "=" if name.startswith("--") else ""
        return [(name,), *((f"{name}{joined}{value}",) for value in values[:2])]
    if role.startswith("2"):
        return [(name, "x", value) for value in values[:3]]
    if "=" in name or not name.startswith("-"):
        return [(f"{name}={value}",) for value in values[:3]]
    return [(name, value) for value in values]
