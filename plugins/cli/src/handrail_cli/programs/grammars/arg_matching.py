"""Takes the words of a command line apart by the row of its program."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, cast

from handrail import Reason
from handrail_cli.programs import grammars, rows, scripts
from handrail_cli.programs.rows import REMAINDER_ROLES, SUBCOMMAND_OPERAND, ProgramRow, RowOperand, RowOption
from handrail_cli.programs.scripts.script_finding import is_alarming
from handrail_cli.programs.values import (
    CONTAINED_NEEDS,
    OPENING_NEEDS,
    InnerRun,
    NamedOperand,
    OperandRole,
    ProgramUse,
    UseKind,
    UseNeed,
    get_stricter_kind,
)
from handrail_cli.shell.bash.syntax import ShellWord

GLOB_START = ("*", "?", "[", "{")
ADDRESS = re.compile(r"[A-Za-z][\w+.-]*://")
KEYED_OPERAND = re.compile(r"([A-Za-z_][\w-]*)=(.*)", re.DOTALL)
HELP_OPTIONS = frozenset(("--help", "--version"))
# What stays of a call that only shows what it would do.
DRY_RUN_ROLES = {
    "folder": "folder",
    "read": "read",
    "execute": "execute",
    "host": "host",
    "url": "url",
    "send": "send",
    "variable": "variable",
    "name": "name",
}
# Reasons that a dry run takes away: what was dangerous is not done.
DRY_RUN_CODES = frozenset(("destructive", "writes", "system_change", "installs", "processes", "settings"))


class ArgumentMatch:
    """Arguments of one command line, as matched so far."""

    __slots__ = (
        "before", "ended", "fed", "harmless", "inline", "inner", "kind", "leading", "named", "needs", "operands", "options", "path", "reasons", "row",
        "runs_unread", "unknown", "words",
    )  # fmt: skip

    # Written out: one is made for each command, and default factories of a dataclass take as long as all the rest of that.
    def __init__(
        self, words: Sequence[ShellWord], row: ProgramRow, path: str, *, kind: UseKind, fed: str | None = None
    ) -> None:
        self.words = words
        self.row = row
        self.kind: UseKind = kind
        self.path = path
        self.fed = fed
        self.needs: set[UseNeed] = set()
        self.named: list[NamedOperand] = []
        self.inner: list[InnerRun] = []
        self.reasons: list[Reason] = []
        self.options: list[tuple[RowOption, int, str | None]] = []
        # The options that stand before the subcommand, which `options` has as well once all words are taken.
        self.before: Sequence[tuple[RowOption, int, str | None]] = ()
        self.operands: list[int] = []
        self.unknown: int | None = None
        self.runs_unread = False
        self.inline = False
        self.harmless = False
        self.ended = False
        self.leading = 1

    def given(self, *names: str) -> bool:
        """Return True if one of these options was given."""
        return any(option.name in names for option, _, _ in self.options)

    def value(self, *names: str) -> str | None:
        """Return the value of the first of these options that was given, or None if it is uncertain."""
        for option, at, value in self.options:
            if option.name in names:
                return value if value is not None else self.words[at].text
        return None

    def worsen(self, kind: UseKind, *, code: str | None = None, why: str = "", at: int | None = None) -> None:
        """Raise the kind to at least `kind`; for a dangerous kind with a code, record the reason."""
        if kind != self.kind:
            self.kind = get_stricter_kind(self.kind, kind)
        if kind == "dangerous" and code is not None:
            self.reasons.append(Reason(code, why, self.words[at].span if at is not None else None))

    def doubt(self, at: int) -> None:
        """Mark the word as unlisted, or as uncertain where certainty is required."""
        if self.unknown is None:
            self.unknown = at
        self.inline = False

    def unread(self, at: int, *, inline: bool = False) -> None:
        """Note that the program may run something that the word decides and that is not read; `inline` as in `ProgramUse`."""
        inline = inline and (self.unknown is None or self.inline)
        self.doubt(at)
        self.inline = inline
        self.runs_unread = True

    def name(self, role: OperandRole, at: int, value: str | None = None) -> None:
        """Note something that it names."""
        self.named.append(NamedOperand(role, at, value))

    def use(self) -> ProgramUse:
        """Return the use of the program that results from all arguments."""
        needs = frozenset(self.needs)
        if self.ended:
            return ProgramUse("reads", needs=needs & {"loads_project"})
        kind, named, reasons = self.kind, self.named, self.reasons
        if self.harmless and all(reason.code in DRY_RUN_CODES for reason in reasons):
            kind, reasons = "reads", []
            named = [
                NamedOperand(cast(OperandRole, DRY_RUN_ROLES.get(one.role, "list")), one.word_index, one.value)
                for one in named
            ]
        if kind == "reads" and "network" in needs:
            kind = "effect"
        return ProgramUse(
            kind,
            tuple(named),
            needs - CONTAINED_NEEDS if needs & OPENING_NEEDS else needs,
            reasons[0] if kind == "dangerous" and reasons else None,
            self.unknown,
            tuple(self.inner),
            self.runs_unread,
            self.inline,
            self.row.reaches,
            self.leading,
        )


def match_command_line(words: Sequence[ShellWord], *, fed: str | None = None) -> ProgramUse | None:
    """Return what a command line does by the grammar of its program, before any path is looked at; None if the program is not known.

    `fed` is the text on its standard input, where that stands in the command line (a here-document or here-string), for what runs it.

    The first word is the program, with or without a folder: whose program it is, is for the caller to judge.
    """
    if not words or words[0].text is None:
        return None
    name = words[0].text.rpartition("/")[2]
    blocks = rows.find_program_blocks(name)
    if not blocks:
        return None
    own = rows.parse_row(blocks[0])
    if is_help_request(words, own):
        return ProgramUse("reads", needs=own.needs & {"loads_project"})
    return match_arguments(words, own, path=(name,), start=1, outer=(), fed=fed).use()


def is_help_request(words: Sequence[ShellWord], row: ProgramRow) -> bool:
    """Return True if the command line asks only for the program's version or help."""
    asked = len(words) > 1 and words[1].text in HELP_OPTIONS and all(word.text == "--verbose" for word in words[2:])
    return asked and ("plain" not in row.flags or row.kind == "dangerous")


def match_arguments(
    words: Sequence[ShellWord],
    row: ProgramRow,
    *,
    path: tuple[str, ...],
    start: int,
    outer: Sequence[ProgramRow],
    fed: str | None = None,
    before: Sequence[tuple[RowOption, int, str | None]] = (),
) -> ArgumentMatch:
    """Match the words from `start` on against a row.

    `outer` are the rows of the programs it is a subcommand of; `before` are the options given to those programs.
    """
    taking = ArgumentMatch(words, row, " ".join(path), kind=row.kind, fed=fed)
    taking.before = before
    taking.needs |= row.needs
    # What a grammar in code takes for a subcommand, and what a program runs, stand among all its words.
    taking.leading = len(words) if row.runs or (row.by is not None and row.commands) else start
    if row.code is not None:
        taking.reasons.append(Reason(row.code, f"{taking.path}: {row.says}", words[0].span))
    if row.by is not None:
        grammars.load_grammar(row.by)(taking, start)
        return taking
    at = start
    only_operands = False
    stops = row.stops
    taken = taking.operands
    end = len(words)
    while at < end:
        word = words[at]
        text = word.text
        if only_operands or row.plain:
            taken.append(at)
        elif text is None and word.start.startswith("-") and _match_unknown_value(taking, at, outer):
            pass
        elif text is None or (word.glob and text.startswith(GLOB_START) and text != "{}"):
            if "tame" not in row.flags:
                taking.doubt(at)
                if text is None and word.start.startswith("-"):
                    _match_unlisted_option(taking, at, outer)
            taken.append(at)
        elif text == "--":
            only_operands = True
        elif text.startswith("-") and len(text) > 1:
            at += _match_option(taking, at, outer)
        elif (
            "=" in text
            and (keyed := KEYED_OPERAND.fullmatch(text)) is not None
            and (option := row.options.get(keyed[1])) is not None
        ):
            _note_option(taking, option, at, keyed[2])
        elif row.commands and not taken:
            sub = _find_subcommand_row(path, text)
            if sub is not None:
                return _match_subcommand(taking, sub, (*path, text), at, outer)
            if len(row.operands) == 1:
                taking.doubt(at)
                return taking
            taken.append(at)
        else:
            taken.append(at)
        at += 1
        if len(taken) >= stops:
            only_operands = True
    _finish_match(taking)
    return taking


def _find_subcommand_row(path: tuple[str, ...], text: str) -> ProgramRow | None:
    block = rows.find_subcommand_blocks(path[0]).get((*path[1:], text))
    return rows.parse_row(block) if block is not None else None


def _match_subcommand(
    taking: ArgumentMatch, sub: ProgramRow, path: tuple[str, ...], at: int, outer: Sequence[ProgramRow]
) -> ArgumentMatch:
    """Continue with the row of a subcommand, keeping the effects of the program's own options."""
    words = taking.words
    if (
        len(words) == at + 2
        and words[at + 1].text in ("--help", "-h")
        and sub.by is None
        and not sub.flags & {"plain", "first"}
    ):
        found = ArgumentMatch(words, sub, " ".join(path), kind="reads")
        found.ended = True
    else:
        outer = (*outer, taking.row) if "globals" in taking.row.flags else outer
        found = match_arguments(
            words, sub, path=path, start=at + 1, outer=outer, before=(*taking.before, *taking.options)
        )
    options = [option for option, _, _ in taking.options]
    for option in options:
        if option.makes in ("effect", "danger"):
            found.kind = get_stricter_kind(found.kind, "dangerous" if option.makes == "danger" else "effect")
    found.reasons[:0] = [
        reason for reason in taking.reasons if taking.row.code is None or reason is not taking.reasons[0]
    ]
    found.named[:0] = taking.named
    found.needs |= taking.row.needs & {"loads_project"}
    found.needs |= {need for option in options for need in option.needs}
    found.options[:0] = taking.options
    found.harmless |= taking.harmless
    found.ended = (found.ended and not found.reasons) or taking.ended
    if taking.unknown is not None:
        found.unknown = taking.unknown
    found.runs_unread |= taking.runs_unread
    return found


def _match_option(taking: ArgumentMatch, at: int, outer: Sequence[ProgramRow]) -> int:
    """Take an option; how many words further its value stands."""
    alone = taking.row.options.get(taking.words[at].text or "")
    if alone is not None and alone.value != "yes":
        _note_option(taking, alone, at, None)
        return 0
    for row in (taking.row, *reversed(outer)):
        found = _find_listed_options(taking, row, at)
        if found is not None:
            for option, index, value in found:
                _note_option(taking, option, index, value)
            return found[-1][1] - at
    if taking.row.runs:
        taking.unread(at)
    else:
        taking.doubt(at)
    return _match_unlisted_option(taking, at, outer)


def _match_unlisted_option(taking: ArgumentMatch, at: int, outer: Sequence[ProgramRow]) -> int:
    """Take an option that is not listed for all that it may abbreviate; return how many words further its value stands.

    Most programs accept `--har` for `--hard`. As the program may have an option of just that name, this only makes the call worse.
    """
    words = taking.words
    text = words[at].text
    name, equals, value = (words[at].start if text is None else text).partition("=")
    meant = _find_abbreviated((taking.row, *reversed(outer)), name, whole=bool(equals) or text is not None)
    meant = [option for option in meant if option.makes not in ("reads", "help")]
    behind: Sequence[ShellWord] = ()
    for option in meant:
        behind = (
            ()
            if equals or option.value != "yes" or text is None
            else words[at + 1 : at + 1 + _count_value_words(option)]
        )
        _note_option(taking, option, at + len(behind), value if equals and text is not None else None)
    return len(behind) if len(meant) == 1 and _has_no_globs(behind) else 0


def _find_abbreviated(rows: Sequence[ProgramRow], name: str, *, whole: bool) -> list[RowOption]:
    """Return the options that a name may abbreviate. `whole`: the name has no further letters."""
    exact = next((row.options[name] for row in rows if name in row.options), None) if whole else None
    if exact is not None:
        return [exact]
    found: list[RowOption] = []
    for row in rows:
        single = "single" in row.flags
        begins = name.removeprefix("-") if single and name.startswith("--") else name
        if single or begins.startswith("--"):
            found += [one for one in row.options.values() if begins.strip("-") and one.name.startswith(begins)]
        else:
            found += _iter_listed_letters(row, name)
    return found


def _iter_listed_letters(row: ProgramRow, text: str) -> Iterator[RowOption]:
    """Yield the listed options of a letter cluster, up to an unlisted letter or one with a value."""
    for letter in text[1:]:
        option = row.options.get(f"-{letter}")
        if option is None:
            return
        yield option
        if option.value != "no":
            return


# Last looks at what was taken that ask nothing of values that may be any text.
VALUE_BLIND_CHECKS = (None, "make", "awk")


def _match_unknown_value(taking: ArgumentMatch, at: int, outer: Sequence[ProgramRow]) -> bool:
    """Take an option whose value is not known, where any value is text: `--author="$(…)"`, `-j$(nproc)`."""
    word = taking.words[at]
    name, equals, _ = word.start.partition("=")
    if word.glob or taking.row.then not in VALUE_BLIND_CHECKS or not (len(name) == 2 or (equals and name[:2] == "--")):
        return False
    option = next((row.options[name] for row in (taking.row, *reversed(outer)) if name in row.options), None)
    if option is None or option.value == "no" or option.role not in (None, "text", "none"):
        return False
    _note_option(taking, option, at, None)
    return True


MatchedOptions = list[tuple[RowOption, int, str | None]]


def _find_listed_options(taking: ArgumentMatch, row: ProgramRow, at: int) -> MatchedOptions | None:
    """Return the options in a word, each with the word index and the text of its value; None if one is not listed."""
    words = taking.words
    text = words[at].text or ""
    name, equals, value = text.partition("=")
    if "single" in row.flags and name.startswith("--") and name not in row.options:
        name = name[1:]
    option = row.options.get(name)
    if option is not None and (equals or option.value != "yes"):
        if equals and option.value == "no":
            return None
        if name.startswith("--") or len(name) != 2 or not equals:
            return [(option, at, value if equals else None)]
    if option is not None and not equals:
        behind = words[at + 1 : at + 1 + _count_value_words(option)]
        return (
            [(option, at + len(behind), None)]
            if len(behind) == _count_value_words(option) and _has_no_globs(behind)
            else None
        )
    prefix = next((option for option in row.prefixes if text.startswith(option.name) and text != option.name), None)
    if prefix is not None:
        return [(prefix, at, text[len(prefix.name) :])]
    if text.startswith("--") or "single" in row.flags:
        return None
    return _split_letter_cluster(words, row, at, text)


def _count_value_words(option: RowOption) -> int:
    """Return the number of words an option's value takes: two for `--arg name value` of jq."""
    return 2 if option.role is not None and option.role.startswith("2") else 1


def _has_no_globs(words: Sequence[ShellWord]) -> bool:
    """Return True if each of these stays one word: file names may replace a glob."""
    return not any(word.glob for word in words)


def _split_letter_cluster(words: Sequence[ShellWord], row: ProgramRow, at: int, text: str) -> MatchedOptions | None:
    found: MatchedOptions = []
    for offset, letter in enumerate(text[1:], 1):
        option = row.options.get(f"-{letter}")
        if option is None:
            return None
        rest = text[offset + 1 :]
        if option.value == "no":
            found.append((option, at, None))
        elif option.value == "attached" or rest:
            return [*found, (option, at, rest or None)]
        elif at + 1 < len(words) and not words[at + 1].glob:
            return [*found, (option, at + 1, None)]
        else:
            return None
    return found


def _note_option(taking: ArgumentMatch, option: RowOption, at: int, value: str | None) -> None:
    """Note an option and what it makes of the call."""
    taking.options.append((option, at, value))
    taking.needs |= option.needs
    if option.makes is None:
        pass
    elif option.makes == "danger":
        taking.worsen("dangerous", code=option.code, why=f"{option.name} of {taking.path}: {option.why}", at=at)
    elif option.makes == "effect":
        taking.worsen("effect")
    elif option.makes == "reads":
        taking.harmless = True
    elif option.makes == "help":
        taking.ended = True
    if option.role is not None and option.value != "no" and (value is not None or option.value != "attached"):
        note_role(taking, option.role.removeprefix("2"), at, value)


def note_role(taking: ArgumentMatch, role: str, at: int, value: str | None = None) -> None:
    """Note what a word, or `value` in it, is to the program."""
    text = value if value is not None else taking.words[at].text
    if role in ("text", "none", "commands") or (role in CHANGING_ROLES and text in NULL_FILES):
        return
    if role.startswith("code/"):
        _note_code(taking, role.removeprefix("code/"), at, value)
    elif role == "shell":
        _note_code(taking, "bash", at, value)
    else:
        taking.name(cast(OperandRole, role), at, value)
        if role == "read" and text is not None and "://" in text and ADDRESS.match(text):
            # Many programs take an address where they take a file.
            taking.doubt(at)
        elif role == "execute" and text is not None and ADDRESS.match(text):
            taking.worsen("dangerous", code="foreign_source", why=f"it runs what it finds at {text!r}", at=at)
        elif role in CHANGING_ROLES:
            taking.worsen("effect")
        elif role == "send":
            taking.worsen("dangerous", code="sends_data", why=f"{taking.path} sends {text!r} away", at=at)
        elif role == "device":
            taking.worsen("dangerous", code="device", why=f"{taking.path} changes the device {text!r}", at=at)


CHANGING_ROLES = frozenset(
    ("write", "append", "create", "dest", "delete", "delete_tree", "change", "change_tree", "move", "execute")
)
NULL_FILES = frozenset(("/dev/null", "/dev/stdout", "/dev/stderr"))


def _note_code(taking: ArgumentMatch, language: str, at: int, value: str | None) -> None:
    text = value if value is not None else taking.words[at].text
    if text is None:
        taking.worsen("dangerous", code="hidden_code", why=f"what {taking.path} is to run cannot be seen", at=at)
        taking.doubt(at)
    else:
        _note_script(taking, language, text, at)


def _note_script(taking: ArgumentMatch, language: str, text: str, at: int) -> None:
    """Add what a script does to what is known of its command line."""
    taking.inner.append(InnerRun(at, at + 1, text, language))
    if "filters" in taking.needs and not scripts.is_simple_script(language, text):
        taking.needs.discard("filters")
    if language not in scripts.CHECKERS:
        return
    finding = scripts.load_checker(language)(text)
    taking.worsen(
        finding.kind, code=finding.code or "runs_program", why=f"the script of {taking.path} {finding.why}", at=at
    )
    taking.needs |= finding.needs
    for role, value in finding.named:
        taking.name(role, at, value)
    if finding.doubtful and language in scripts.HARMLESS_LANGUAGES:
        taking.doubt(at)
    elif finding.doubtful:
        inline = language in scripts.GENERAL and not (scripts.runs_commands(language, text) or is_alarming(text))
        taking.unread(at, inline=inline)


def _finish_match(taking: ArgumentMatch) -> None:
    """Give the operands their roles, and look a last time."""
    row = taking.row
    pattern = row.behind_commands
    if row.given and taking.options:
        given = {option.name for option, _, _ in taking.options}
        for names, operands in row.given:
            if not names.isdisjoint(given):
                pattern = operands[1:] if operands[:1] == (SUBCOMMAND_OPERAND,) else operands
    assign_operands(taking, pattern, taking.operands)
    if row.then is not None:
        grammars.load_check(row.then)(taking)


def assign_operands(taking: ArgumentMatch, pattern: Sequence[RowOperand], indices: Sequence[int]) -> None:
    """Assign operands to their pattern: those before `...` from the left, those after it from the right."""
    if not pattern or (pattern[0].role == "none" and len(pattern) == 1):
        if indices:
            taking.doubt(indices[0])
        return
    if len(pattern) == 1 and pattern[0].count == "...":
        _assign_remaining(taking, pattern[0].role, indices)
        return
    left = list(indices)
    many = 0
    while many < len(pattern) and pattern[many].count != "...":
        many += 1
    behind = [operand for operand in pattern[many + 1 :] if operand.count != "?" or len(left) > len(pattern) - 1]
    last = left[max(len(left) - len(behind), 0) :] if behind else []
    left = left[: len(left) - len(last)]
    last_glob: int | None = None
    for operand in pattern[:many]:
        if left:
            at = left.pop(0)
            last_glob = at if taking.words[at].glob else None
            note_role(taking, operand.role, at)
        elif last_glob is not None:
            # The second file that fits the pattern.
            note_role(taking, operand.role, last_glob)
    if many < len(pattern):
        _assign_remaining(taking, pattern[many].role, left)
    elif left:
        taking.doubt(left[0])
    for operand, at in zip(behind[len(behind) - len(last) :], last, strict=True):
        note_role(taking, operand.role, at)


def _assign_remaining(taking: ArgumentMatch, role: str, indices: Sequence[int]) -> None:
    if role not in REMAINDER_ROLES:
        for at in indices:
            note_role(taking, role, at)
    elif indices and role in ("command", "contained"):
        where: Literal["here", "container"] = "here" if role == "command" else "container"
        taking.inner.append(InnerRun(indices[0], len(taking.words), where=where))
    elif indices:
        texts = [taking.words[at].text for at in indices]
        code = None if None in texts else " ".join(text for text in texts if text is not None)
        if code is None:
            taking.doubt(next(at for at in indices if taking.words[at].text is None))
        taking.inner.append(
            InnerRun(indices[0], len(taking.words), code, "bash", "remote" if role == "remote" else "here")
        )
