"""Judges command lines of cmd.exe: walks all that may run and notes what each command does."""

from __future__ import annotations

import re
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from handrail_cli.shell.cmd import parser
from handrail_cli.shell.cmd.parser import (
    UNKNOWN_MARK,
    CmdCommand,
    CmdGroup,
    CmdItem,
    CmdRedirection,
    ForStatement,
    IfStatement,
    SourceText,
    UnparsableText,
    apply_modifier,
    create_source_text,
    parse_cmd,
)
from handrail_cli.shell.windows import cmd_builtins
from handrail_cli.shell.windows.cmd_builtins import BUILTIN_NAME
from handrail_cli.shell.windows.environment import known_environment
from handrail_cli.shell.windows.findings import AnalysisExhausted, FindingGrade, LineEvaluation, Span
from handrail_cli.shell.windows.path_effects import is_secret_variable, note_read, note_write
from handrail_cli.shell.windows.program_analyzer import judge_program
from handrail_cli.shell.windows.program_call import MAX_NESTING, CallWord, ProgramCall, StdinContent

MAX_ROUNDS = 6
MAX_STEPS = 2_000
SELF_CALL = re.compile(r"%~?(f|dp|n|nx|s)?0|%0", re.IGNORECASE)


@dataclass(slots=True)
class CmdAnalyzer:
    """State of one cmd.exe while its text is analyzed.

    `set` are the variables that it sets itself; the value is None if set twice or to something unknown.
    """

    case: LineEvaluation
    delayed: bool = False
    set: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    labels: list[str] = field(default_factory=list[str])
    started: bool = False
    steps: int = 0

    # -- texts

    def judge(self, text: str) -> None:
        """Judge an entire text, line by line."""
        source = create_source_text(text)
        if re.search(r"enabledelayedexpansion", text, re.IGNORECASE):
            self.delayed = True
        if re.search(
            r"(?:^|[&|(\n])\s*(?:start\s+(?:\"\"\s+)?)?%~?\w*0\"?\s*[|&]+\s*(?:start\s+(?:\"\"\s+)?)?\"?%~?\w*0",
            text,
            re.IGNORECASE,
        ):
            self.case.add(FindingGrade.CATASTROPHIC, "fork_bomb", "it starts copies of itself without end")
        if re.search(r"(?:^|\n)\s*:(\w+)\b.*\bstart\b.*\bgoto\s+:?\1\b", text, re.IGNORECASE | re.DOTALL):
            self.case.add(FindingGrade.CATASTROPHIC, "fork_bomb", "it starts programs without end")
        self.collect(text)
        self.run(source)

    def collect(self, text: str) -> None:
        """Collect the variables that the text sets anywhere.

        A line's variables are expanded before it runs, and may be expanded once more by `call`.
        """
        for match in re.finditer(
            r"(?:^|[&|(\s@])s\^?e\^?t\s+(?!/)(?:\"([^=\"&]+)=([^\"]*)\"|([^=\"&|<>\s][^=\"&|<>]*)=([^&|<>\r\n]*))",
            text,
            re.IGNORECASE,
        ):
            name, value = (match[1], match[2]) if match[1] is not None else (match[3], match[4])
            name = name.strip().lower()
            clean = re.sub(r"\^(.)", r"\1", value)
            self.set[name] = clean if name not in self.set or self.set[name] == clean else None

    def value(self, name: str, modifier: str, whole: bool) -> tuple[str, bool] | None:
        lowered = name.lower()
        if not whole:
            # `%i` is a variable of `for`, or text; `%1` an argument of a script.
            return (UNKNOWN_MARK, False) if (lowered.isdigit() and lowered != "0") or lowered == "*" else None
        if lowered in self.set:
            value = self.set[lowered]
            changed = apply_modifier(value, modifier) if value is not None else None
            return (changed if changed is not None else UNKNOWN_MARK, True)
        known = self.environment().get(lowered)
        if known is not None:
            changed = apply_modifier(known, modifier)
            return (changed if changed is not None else UNKNOWN_MARK, bool(modifier))
        if lowered in ("date", "time", "random", "errorlevel", "cmdcmdline", "cmdextversion", "number_of_processors", "processor_architecture",
                       "computername", "userdomain", "logonserver", "path", "pathext", "prompt", "processor_identifier", "sessionname"):  # fmt: skip
            return (UNKNOWN_MARK, False)
        if is_secret_variable(name):
            self.case.add(FindingGrade.DANGEROUS, "secret", f"the variable {name!r} may hold a secret")
        else:
            # Its value becomes part of the command itself, signs and all.
            self.case.add(
                FindingGrade.UNKNOWN, "variable", f"the variable {name!r} is not known and may bring in commands"
            )
        return (UNKNOWN_MARK, False)

    def environment(self) -> Mapping[str, str]:
        return {**known_environment(self.case), "cd": str(self.case.cwd or UNKNOWN_MARK)}

    def run(self, source: SourceText) -> None:
        self.item(parse_cmd(self.filled(source)))

    def filled(self, source: SourceText) -> SourceText:
        """Return the text with its variables expanded, as often as `call` and delayed expansion could."""
        for _ in range(MAX_ROUNDS):
            if "%" not in source.text and not (self.delayed and "!" in source.text):
                return source
            before = source.text
            source = parser.expand_variables(source, self.value, delayed=False)
            if self.delayed:
                source = parser.expand_variables(source, self.value, delayed=True)
            if len(source.text) > 40_000:
                raise AnalysisExhausted("too_much", "its variables make more of it than is analysed")
            if source.text == before or not any(source.given):
                return source
        return source

    # -- structure

    def item(self, item: CmdItem, stdin: StdinContent | None = None) -> StdinContent:
        """Judge a part of a line; what it prints."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise AnalysisExhausted("too_much", "it has more parts than are analysed")
        match item:
            case CmdCommand():
                return self.command(item, stdin)
            case CmdGroup():
                printed = self.item(item.body, stdin)
                self.redirect(item.redirections, None, printed)
                return printed
            case IfStatement():
                return self.branch(item, stdin)
            case ForStatement():
                return self.loop(item, stdin)
            case parser.CmdSequence():
                return self.sequence(item, stdin)

    def sequence(self, item: parser.CmdSequence, stdin: StdinContent | None) -> StdinContent:
        if item.piped:
            for part in item.items:
                stdin = self.item(part, stdin)
            return stdin if stdin is not None else StdinContent(None)
        printed = [self.item(part, stdin) for part in item.items]
        marks = frozenset[str]().union(*(part.marks for part in printed))
        known = all(part.text is not None for part in printed)
        return StdinContent("\n".join(part.text or "" for part in printed) if known else None, marks)

    @contextmanager
    def uncertain(self) -> Generator[None]:
        """While it may or may not run: where it has gone to is not known afterwards."""
        cwd = self.case.cwd
        yield
        if self.case.cwd != cwd:
            self.case.cwd = None

    def branch(self, item: IfStatement, stdin: StdinContent | None) -> StdinContent:
        match = re.search(r"\bexist\s+(\"[^\"]*\"|\S+)", item.condition, re.IGNORECASE)
        if match:
            text = match[1].replace('"', "")
            if text.startswith("\\\\") and not text.startswith("\\\\."):
                note_read(self.case, text, listing=True)
        printed: list[StdinContent] = []
        for body in item.bodies:
            with self.uncertain():
                printed.append(self.item(body, stdin))
        return StdinContent(None, frozenset[str]().union(*(part.marks for part in printed)))

    def loop(self, item: ForStatement, stdin: StdinContent | None) -> StdinContent:
        options = item.options.lower()
        marks: set[str] = set()
        for value in self.loop_values(item, options, marks):
            with self.uncertain():
                body = re.sub(
                    rf"%{{1,2}}(~[fdpnxsatz$:\w]*)?{re.escape(item.variable)}",
                    lambda match, value=value: value if match[1] is None or match[1] == "~" else _take_path_part(value),
                    item.body.text,
                )
                source = item.body if body == item.body.text else _place_text(body, item.body.span[0])
                # What the variable stands for came from outside the text where it is not known.
                printed = self.item(parse_cmd(self.filled(source)), stdin)
                marks |= printed.marks
        return StdinContent(None, frozenset(marks))

    def loop_values(self, item: ForStatement, options: str, marks: set[str]) -> Sequence[str]:
        over = item.over.strip()
        if re.search(r"/l\b", options):
            numbers = re.split(r"[,\s]+", over)
            if (
                len(numbers) == 3
                and numbers[1] == "0"
                and re.search(r"\b(start|call)\b", item.body.text, re.IGNORECASE)
            ):
                self.case.add(FindingGrade.CATASTROPHIC, "fork_bomb", "it starts programs without end")
            return ("1",)
        if re.search(r"/f\b", options):
            return self.loop_over_text(item, over, marks)
        folder = re.search(r"/r\s+(\"[^\"]*\"|[^\s/%]+)", item.options, re.IGNORECASE)
        # In each folder below.
        within = f"{folder[1].strip(chr(34))}\\*\\" if folder else ".\\*\\" if re.search(r"/r\b", options) else ""
        values = parser.split_words(over, builtin=True)[:8]
        if len(parser.split_words(over, builtin=True)) > 8:
            values.append(UNKNOWN_MARK)
        return [f"{within}{value}" for value in values] or [UNKNOWN_MARK]

    def loop_over_text(self, item: ForStatement, over: str, marks: set[str]) -> Sequence[str]:
        mark = '"' if "usebackq" not in item.options.lower() else "'"
        runs = "'" if mark == '"' else "`"
        if over[:1] == runs and over[-1:] == runs and len(over) > 1:
            from handrail_cli.shell.windows.program_call import judge_nested_text

            before = len(self.case.parts)
            judge_nested_text(self.case, "cmd", re.sub(r"\^(.)", r"\1", over[1:-1]), delayed=self.delayed)
            if any(touch.kind == "network" for part in self.case.parts[before:] for touch in part.touches):
                marks.add("network")
                if _is_variable_run(item):
                    self.case.add(FindingGrade.CATASTROPHIC, "network_code", "it runs code straight from the network")
        elif over[:1] != mark:
            for text in parser.split_words(over, builtin=True):
                note_read(self.case, text)
        elif not re.search(r"\s|[,;]", over[1:-1]):
            return (over[1:-1],)
        if _is_variable_run(item):
            self.case.executes = True
            self.case.add(FindingGrade.DANGEROUS, "opaque_code", "it runs text that is not known before")
        return (UNKNOWN_MARK,)

    # -- commands

    def redirect(self, redirections: Sequence[CmdRedirection], span: Span | None, printed: StdinContent) -> None:
        for redirection in redirections:
            if not redirection.target:
                continue
            before = len(self.case.touches)
            if "<" in redirection.operator:
                note_read(self.case, redirection.target, span)
            elif UNKNOWN_MARK in redirection.target:
                self.case.add(FindingGrade.DANGEROUS, "unresolved", "it is not known where its output goes", span)
                self.case.touch("write", "")
            else:
                note_write(self.case, redirection.target, span, fetched="network" in printed.marks)
            if self.case.touches[before:]:
                self.case.part((redirection.operator, redirection.target.replace(UNKNOWN_MARK, "")), span, before)

    def command(self, item: CmdCommand, stdin: StdinContent | None) -> StdinContent:
        source = [r for r in item.redirections if "<" in r.operator]
        if source:
            stdin = StdinContent(None, frozenset(("file",)))
        printed = self.simple(item, stdin)
        self.redirect(item.redirections, item.span, printed)
        return printed

    def simple(self, item: CmdCommand, stdin: StdinContent | None) -> StdinContent:
        text = item.text
        if not text:
            return StdinContent("")
        if item.dynamic:
            self.case.executes = True
            self.case.add(
                FindingGrade.DANGEROUS, "dynamic", "which command it runs is put together in the line itself", item.span
            )
        match = BUILTIN_NAME.match(text)
        if match:
            return self.builtin(match[1].lower(), text[match.end() :], item, stdin)
        return self.external(text, item, stdin)

    def external(
        self, text: str, item: CmdCommand, stdin: StdinContent | None, *, started: bool = False
    ) -> StdinContent:
        """Judge a program or script, whose name ends at a space or a slash, unless quoted."""
        match = re.match(r'(?:"([^"]*)"?|[^\s,;=/"]|(?<=\S)/(?=[^\s]*[.\\]))+', text)
        name = (match[0] if match else text).replace('"', "")
        rest = text[len(match[0]) :] if match else ""
        if UNKNOWN_MARK in name:
            self.case.executes = True
            self.case.add(FindingGrade.DANGEROUS, "dynamic", "which command it runs is not known before", item.span)
            self.case.part(("?",), item.span)
            return StdinContent(None)
        if SELF_CALL.fullmatch(name):
            self.case.add(FindingGrade.DANGEROUS, "opaque_code", "it runs itself again", item.span)
            self.case.part(("?",), item.span)
            return StdinContent(None)
        if name.lower().rstrip(":") and re.fullmatch(r"[a-z]:", name, re.IGNORECASE) and not rest.strip():
            self.case.cwd = None
            self.case.part((name,), item.span)
            return StdinContent("")
        if BUILTIN_NAME.fullmatch(name):
            return self.builtin(name.lower(), rest, item, stdin)
        words = tuple(_create_word(word, item.span) for word in parser.split_words(rest, builtin=False))
        marks = judge_program(self.case, ProgramCall(name, words, stdin, item.span, raw=rest.strip(), started=started))
        return StdinContent(None, marks)

    def builtin(self, name: str, rest: str, item: CmdCommand, stdin: StdinContent | None) -> StdinContent:
        before = len(self.case.touches)
        if re.fullmatch(r"\s*/\?\s*", rest):
            self.case.part((name, "/?"), item.span, before)
            return StdinContent(None)
        words = [_create_word(word, item.span) for word in parser.split_words(rest, builtin=True)]
        # `call call …` and `start start …` run themselves again.
        self.case.nesting += 1
        if self.case.nesting > MAX_NESTING:
            raise AnalysisExhausted("too_deep", "it is nested deeper than is analysed")
        printed = cmd_builtins.BUILTINS[name](self, name, rest, words, item)
        self.case.nesting -= 1
        if name not in cmd_builtins.TRANSPARENT_COMMANDS:
            varies = any(word.text is None for word in words)
            self.case.part((name, *(word.guess for word in words)), item.span, before, varies=varies)
            self.case.narrowed.append((name,))
        return printed if printed is not None else StdinContent(None)


def _create_word(text: str, span: Span | None) -> CallWord:
    return CallWord(None if UNKNOWN_MARK in text else text, text.replace(UNKNOWN_MARK, ""), span)


def _place_text(text: str, place: int) -> SourceText:
    return SourceText(text, (place,) * len(text), (False,) * len(text))


def _take_path_part(value: str) -> str:
    """Return a substitute for the part of a path that `%~nxi` names: a known path itself, else the unknown mark."""
    return value if UNKNOWN_MARK not in value else UNKNOWN_MARK


def _is_variable_run(item: ForStatement) -> bool:
    """Return True if the variable of a `for` is the name of a command in its body."""
    variable = rf"%{{1,2}}(~\w*)?{re.escape(item.variable)}"
    return (
        re.search(
            rf"(?:^|[&|(]|\bcall\b|\bstart\b|\bcmd\b.*/c|powershell\b.*)\s*\"?{variable}", item.body.text, re.IGNORECASE
        )
        is not None
    )


def judge_cmd_text(case: LineEvaluation, text: str, *, delayed: bool = False) -> None:
    """Judge a text of cmd in a separate process; a text that is not read to its end requires approval."""
    try:
        CmdAnalyzer(case, delayed).judge(text)
    except UnparsableText as exc:
        case.add(FindingGrade.DANGEROUS, exc.code, str(exc))
        case.part(("?",), None)
