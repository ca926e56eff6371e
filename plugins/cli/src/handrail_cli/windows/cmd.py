"""Judges command lines of cmd.exe: walks all that may run and notes what each command does."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from handrail_cli.windows import cmd_parser as parser
from handrail_cli.windows.calls import MAX_NESTING, Call, Stdin, Word
from handrail_cli.windows.cmd_parser import (
    HIDDEN,
    Command,
    For,
    Group,
    If,
    Item,
    Redirection,
    Text,
    Unread,
    modified,
    parse,
    plain,
)
from handrail_cli.windows.findings import Case, Exhausted, Grade, Span
from handrail_cli.windows.places import deletes, reads, resolved, secret_variable, writes
from handrail_cli.windows.programs import program

MAX_ROUNDS = 6
MAX_STEPS = 2_000
BUILTIN = re.compile(
    r"(assoc|break|call|cd|chdir|cls|color|copy|date|del|dir|dpath|echo|endlocal|erase|exit|ftype|goto|keys|md|mkdir|mklink|move|path|pause|popd|"
    r"prompt|pushd|rd|rem|ren|rename|rmdir|set|setlocal|shift|start|time|title|type|ver|verify|vol)(?=[\s.,;:=+/\\(\[\]\"]|\Z)",
    re.IGNORECASE,
)
FORK = re.compile(r"%~?(f|dp|n|nx|s)?0|%0", re.IGNORECASE)


@dataclass(slots=True)
class Line:
    """One cmd.exe while it is followed. `set` are the variables that it sets itself; one set twice, or to something unseen, is None."""

    case: Case
    delayed: bool = False
    set: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    labels: list[str] = field(default_factory=list[str])
    started: bool = False
    steps: int = 0

    # -- texts

    def judge(self, text: str) -> None:
        """Judge a whole text, line for line."""
        source = plain(text)
        if re.search(r"enabledelayedexpansion", text, re.IGNORECASE):
            self.delayed = True
        if re.search(
            r"(?:^|[&|(\n])\s*(?:start\s+(?:\"\"\s+)?)?%~?\w*0\"?\s*[|&]+\s*(?:start\s+(?:\"\"\s+)?)?\"?%~?\w*0",
            text,
            re.IGNORECASE,
        ):
            self.case.add(Grade.CATASTROPHIC, "fork_bomb", "it starts copies of itself without end")
        if re.search(r"(?:^|\n)\s*:(\w+)\b.*\bstart\b.*\bgoto\s+:?\1\b", text, re.IGNORECASE | re.DOTALL):
            self.case.add(Grade.CATASTROPHIC, "fork_bomb", "it starts programs without end")
        self.collect(text)
        self.run(source)

    def collect(self, text: str) -> None:
        """The variables that the text sets anywhere: a line is filled in before it runs, and may be filled in once more by `call`."""
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
            return (HIDDEN, False) if (lowered.isdigit() and lowered != "0") or lowered == "*" else None
        if lowered in self.set:
            value = self.set[lowered]
            changed = modified(value, modifier) if value is not None else None
            return (changed if changed is not None else HIDDEN, True)
        known = self.environment().get(lowered)
        if known is not None:
            changed = modified(known, modifier)
            return (changed if changed is not None else HIDDEN, bool(modifier))
        if lowered in ("date", "time", "random", "errorlevel", "cmdcmdline", "cmdextversion", "number_of_processors", "processor_architecture",
                       "computername", "userdomain", "logonserver", "path", "pathext", "prompt", "processor_identifier", "sessionname"):  # fmt: skip
            return (HIDDEN, False)
        if secret_variable(name):
            self.case.add(Grade.DANGEROUS, "secret", f"the variable {name!r} may hold a secret")
        else:
            # Its value becomes part of the command itself, signs and all.
            self.case.add(Grade.UNKNOWN, "variable", f"the variable {name!r} is not known and may bring in commands")
        return (HIDDEN, False)

    def environment(self) -> Mapping[str, str]:
        from handrail_cli.windows.powershell import known_environment

        return {**known_environment(self.case), "cd": str(self.case.cwd or HIDDEN)}

    def run(self, source: Text) -> None:
        self.item(parse(self.filled(source)))

    def filled(self, source: Text) -> Text:
        """The text with its variables filled in, as often as `call` and delayed expansion could."""
        for _ in range(MAX_ROUNDS):
            if "%" not in source.text and not (self.delayed and "!" in source.text):
                return source
            before = source.text
            source = parser.expanded(source, self.value, delayed=False)
            if self.delayed:
                source = parser.expanded(source, self.value, delayed=True)
            if len(source.text) > 40_000:
                raise Exhausted("too_much", "its variables make more of it than is analysed")
            if source.text == before or not any(source.given):
                return source
        return source

    # -- structure

    def item(self, item: Item, stdin: Stdin | None = None) -> Stdin:
        """Judge a part of a line; what it prints."""
        self.steps += 1
        if self.steps > MAX_STEPS:
            raise Exhausted("too_much", "it has more parts than are analysed")
        match item:
            case Command():
                return self.command(item, stdin)
            case Group():
                printed = self.item(item.body, stdin)
                self.redirect(item.redirections, None, printed)
                return printed
            case If():
                return self.branch(item, stdin)
            case For():
                return self.loop(item, stdin)
            case parser.Sequence():
                return self.sequence(item, stdin)

    def sequence(self, item: parser.Sequence, stdin: Stdin | None) -> Stdin:
        if item.piped:
            for part in item.items:
                stdin = self.item(part, stdin)
            return stdin if stdin is not None else Stdin(None)
        printed = [self.item(part, stdin) for part in item.items]
        marks = frozenset[str]().union(*(part.marks for part in printed))
        known = all(part.text is not None for part in printed)
        return Stdin("\n".join(part.text or "" for part in printed) if known else None, marks)

    @contextmanager
    def uncertain(self) -> Generator[None]:
        """While it may or may not run: where it has gone to is not known afterwards."""
        cwd = self.case.cwd
        yield
        if self.case.cwd != cwd:
            self.case.cwd = None

    def branch(self, item: If, stdin: Stdin | None) -> Stdin:
        match = re.search(r"\bexist\s+(\"[^\"]*\"|\S+)", item.condition, re.IGNORECASE)
        if match:
            text = match[1].replace('"', "")
            if text.startswith("\\\\") and not text.startswith("\\\\."):
                reads(self.case, text, listing=True)
        printed: list[Stdin] = []
        for body in item.bodies:
            with self.uncertain():
                printed.append(self.item(body, stdin))
        return Stdin(None, frozenset[str]().union(*(part.marks for part in printed)))

    def loop(self, item: For, stdin: Stdin | None) -> Stdin:
        options = item.options.lower()
        marks: set[str] = set()
        for value in self.loop_values(item, options, marks):
            with self.uncertain():
                body = re.sub(
                    rf"%{{1,2}}(~[fdpnxsatz$:\w]*)?{re.escape(item.variable)}",
                    lambda match, value=value: value if match[1] is None or match[1] == "~" else _part_of(value),
                    item.body.text,
                )
                source = item.body if body == item.body.text else _moved(body, item.body.span[0])
                # What the variable stands for came from outside the text where it is not known.
                printed = self.item(parse(self.filled(source)), stdin)
                marks |= printed.marks
        return Stdin(None, frozenset(marks))

    def loop_values(self, item: For, options: str, marks: set[str]) -> Sequence[str]:
        over = item.over.strip()
        if re.search(r"/l\b", options):
            numbers = re.split(r"[,\s]+", over)
            if (
                len(numbers) == 3
                and numbers[1] == "0"
                and re.search(r"\b(start|call)\b", item.body.text, re.IGNORECASE)
            ):
                self.case.add(Grade.CATASTROPHIC, "fork_bomb", "it starts programs without end")
            return ("1",)
        if re.search(r"/f\b", options):
            return self.loop_over_text(item, over, marks)
        folder = re.search(r"/r\s+(\"[^\"]*\"|[^\s/%]+)", item.options, re.IGNORECASE)
        within = f"{folder[1].strip(chr(34))}\\" if folder else ".\\" if re.search(r"/r\b", options) else ""
        values = parser.words(over, builtin=True)[:8]
        if len(parser.words(over, builtin=True)) > 8:
            values.append(HIDDEN)
        return [f"{within}{value}" for value in values] or [HIDDEN]

    def loop_over_text(self, item: For, over: str, marks: set[str]) -> Sequence[str]:
        mark = '"' if "usebackq" not in item.options.lower() else "'"
        runs = "'" if mark == '"' else "`"
        if over[:1] == runs and over[-1:] == runs and len(over) > 1:
            from handrail_cli.windows.calls import nested

            before = len(self.case.parts)
            nested(self.case, "cmd", re.sub(r"\^(.)", r"\1", over[1:-1]), delayed=self.delayed)
            if any(touch.kind == "network" for part in self.case.parts[before:] for touch in part.touches):
                marks.add("network")
                if _runs_variable(item):
                    self.case.add(Grade.CATASTROPHIC, "network_code", "it runs code straight from the network")
        elif over[:1] != mark:
            for text in parser.words(over, builtin=True):
                reads(self.case, text)
        elif not re.search(r"\s|[,;]", over[1:-1]):
            return (over[1:-1],)
        if _runs_variable(item):
            self.case.executes = True
            self.case.add(Grade.DANGEROUS, "opaque_code", "it runs text that is not known before")
        return (HIDDEN,)

    # -- commands

    def redirect(self, redirections: Sequence[Redirection], span: Span | None, printed: Stdin) -> None:
        for redirection in redirections:
            if not redirection.target:
                continue
            before = len(self.case.touches)
            if "<" in redirection.operator:
                reads(self.case, redirection.target, span)
            elif HIDDEN in redirection.target:
                self.case.add(Grade.DANGEROUS, "unresolved", "it is not known where its output goes", span)
                self.case.touch("write", "")
            else:
                writes(self.case, redirection.target, span, fetched="network" in printed.marks)
            if self.case.touches[before:]:
                self.case.part((redirection.operator, redirection.target.replace(HIDDEN, "")), span, before)

    def command(self, item: Command, stdin: Stdin | None) -> Stdin:
        source = [r for r in item.redirections if "<" in r.operator]
        if source:
            stdin = Stdin(None, frozenset(("file",)))
        printed = self.simple(item, stdin)
        self.redirect(item.redirections, item.span, printed)
        return printed

    def simple(self, item: Command, stdin: Stdin | None) -> Stdin:
        text = item.text
        if not text:
            return Stdin("")
        if item.dynamic:
            self.case.executes = True
            self.case.add(
                Grade.DANGEROUS, "dynamic", "which command it runs is put together in the line itself", item.span
            )
        match = BUILTIN.match(text)
        if match:
            return self.builtin(match[1].lower(), text[match.end() :], item, stdin)
        return self.external(text, item, stdin)

    def external(self, text: str, item: Command, stdin: Stdin | None, *, started: bool = False) -> Stdin:
        """A program or script: its name ends at a space or a slash, unless quoted."""
        match = re.match(r'(?:"([^"]*)"?|[^\s,;=/"]|(?<=\S)/(?=[^\s]*[.\\]))+', text)
        name = (match[0] if match else text).replace('"', "")
        rest = text[len(match[0]) :] if match else ""
        if HIDDEN in name:
            self.case.executes = True
            self.case.add(Grade.DANGEROUS, "dynamic", "which command it runs is not known before", item.span)
            self.case.part(("?",), item.span)
            return Stdin(None)
        if FORK.fullmatch(name):
            self.case.add(Grade.DANGEROUS, "opaque_code", "it runs itself again", item.span)
            self.case.part(("?",), item.span)
            return Stdin(None)
        if name.lower().rstrip(":") and re.fullmatch(r"[a-z]:", name, re.IGNORECASE) and not rest.strip():
            self.case.cwd = None
            self.case.part((name,), item.span)
            return Stdin("")
        if BUILTIN.fullmatch(name):
            return self.builtin(name.lower(), rest, item, stdin)
        words = tuple(_word(word, item.span) for word in parser.words(rest, builtin=False))
        marks = program(self.case, Call(name, words, stdin, item.span, raw=rest.strip(), started=started))
        return Stdin(None, marks)

    def builtin(self, name: str, rest: str, item: Command, stdin: Stdin | None) -> Stdin:
        before = len(self.case.touches)
        if re.fullmatch(r"\s*/\?\s*", rest):
            self.case.part((name, "/?"), item.span, before)
            return Stdin(None)
        words = [_word(word, item.span) for word in parser.words(rest, builtin=True)]
        # `call call …` and `start start …` run themselves again.
        self.case.nesting += 1
        if self.case.nesting > MAX_NESTING:
            raise Exhausted("too_deep", "it is nested deeper than is analysed")
        printed = BUILTINS[name](self, name, rest, words, item)
        self.case.nesting -= 1
        if name not in TRANSPARENT:
            self.case.part((name, *(word.guess for word in words)), item.span, before)
            self.case.narrowed.append((name,))
        return printed if printed is not None else Stdin(None)


def _word(text: str, span: Span | None) -> Word:
    return Word(None if HIDDEN in text else text, text.replace(HIDDEN, ""), span)


def _moved(text: str, place: int) -> Text:
    return Text(text, (place,) * len(text), (False,) * len(text))


def _part_of(value: str) -> str:
    """A part of a path that `%~nxi` names: of a known one only that it lies where it lies."""
    return value if HIDDEN not in value else HIDDEN


def _runs_variable(item: For) -> bool:
    """Whether the variable of a `for` is the name of a command in its body."""
    variable = rf"%{{1,2}}(~\w*)?{re.escape(item.variable)}"
    return (
        re.search(
            rf"(?:^|[&|(]|\bcall\b|\bstart\b|\bcmd\b.*/c|powershell\b.*)\s*\"?{variable}", item.body.text, re.IGNORECASE
        )
        is not None
    )


# -- commands of cmd itself


def _options(words: Sequence[Word]) -> set[str]:
    """The letters of options, in lower case, without their values."""
    return {word.guess.lower()[1:].partition(":")[0].lstrip("-") for word in words if word.guess.startswith("/")}


def _loose(words: Sequence[Word]) -> list[Word]:
    return [word for word in words if not word.guess.startswith("/")]


def _harmless(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    return Stdin("" if name == "rem" else None)


def _echo(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    text = rest[1:] if rest[:1] in (" ", ".", ":", "(", ",", ";", "=", "+", "/", "[", "]", "\\") else rest
    return Stdin(text if HIDDEN not in text else None)


def _apart(words: Sequence[Word]) -> list[Word]:
    """The words, and those with a slash in them once more as a place with options behind it: cmd may read them so."""
    found = list(words)
    for word in words:
        place, *options = word.guess.split("/")
        if place and options and word.text is not None:
            found.extend([Word(place, place, word.span), *(Word(f"/{text}", f"/{text}") for text in options if text)])
    return found


def _delete(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    """Del and erase: files by pattern, with `/s` in all folders below."""
    words = _apart(words)
    options = _options(words)
    _check(line, name, options, {"p", "f", "s", "q", "a"}, item)
    for word in _loose(words):
        # `del folder` deletes the files in it; with `/s` those below it too.
        deletes(line.case, word.text, item.span, guess=word.guess, recursive="s" in options)
    if not _loose(words):
        line.case.add(Grade.UNKNOWN, "unresolved", "it is not known what it deletes", item.span)


def _remove_folder(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    words = _apart(words)
    options = _options(words)
    _check(line, name, options, {"s", "q"}, item)
    for word in _loose(words):
        deletes(line.case, word.text, item.span, guess=word.guess, recursive="s" in options)


def _check(line: Line, name: str, options: set[str], known: set[str], item: Command) -> None:
    if odd := {option for option in options if not any(option.startswith(good) for good in known)}:
        line.case.add(
            Grade.UNKNOWN, "unknown_option", f"{name} has an option that is not known: {min(odd)!r}", item.span
        )


def _read(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    marks = {"file"}
    known = (
        {"a", "b", "c", "d", "l", "n", "o", "p", "q", "r", "s", "t", "w", "x", "4", "-"}
        if name == "dir"
        else set[str]()
    )
    _check(line, name, _options(words), known, item)
    for word in _loose(words):
        if word.text is None:
            line.case.add(Grade.UNKNOWN, "unresolved", "it is not known what it reads", item.span)
            continue
        before = len(line.case.found)
        reads(line.case, word.text, item.span, listing=name == "dir")
        if any(reason.code == "secret" for _, reason in list(line.case.found)[before:]):
            marks.add("secret")
    return Stdin(None, frozenset(marks))


def _write(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    """md: its words are folders that it makes."""
    for word in _loose(words):
        _written(line, word, item)


def _written(line: Line, word: Word, item: Command) -> None:
    if word.text is None:
        line.case.add(Grade.DANGEROUS, "unresolved", "it is not known what it writes", item.span)
        line.case.touch("write", "")
    else:
        writes(line.case, word.text, item.span)


def _copy(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    """copy, move, ren: from the first words to the last."""
    _check(line, name, _options(words), {"a", "b", "d", "v", "n", "y", "-y", "z", "l"}, item)
    loose = [word for text in _loose(words) for word in _pieces(text)]
    if not loose:
        return
    sources, target = (loose[:-1], loose[-1]) if len(loose) > 1 else (loose, None)
    for word in sources:
        if name in ("move", "ren", "rename"):
            _moved_away(line, word, item)
        elif word.text is None:
            line.case.add(Grade.UNKNOWN, "unresolved", "it is not known what it reads", item.span)
        else:
            reads(line.case, word.text, item.span)
    if target is None:
        target = Word(".", ".")
    if name in ("ren", "rename") and sources and target.text is not None and sources[0].text is not None:
        folder = re.sub(r"[^\\/]*$", "", sources[0].text)
        target = Word(f"{folder}{target.text}", f"{folder}{target.text}")
    _written(line, target, item)


def _pieces(word: Word) -> list[Word]:
    """`a+b` of copy."""
    if "+" not in word.guess or word.text is None:
        return [word]
    return [Word(text, text, word.span) for text in word.text.split("+") if text]


def _moved_away(line: Line, word: Word, item: Command) -> None:
    deletes(line.case, word.text, item.span, guess=word.guess, recursive=True)


def _link(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    from handrail_cli.windows import rules

    rules.judge(line.case, Call("mklink", tuple(words), span=item.span))


def _go(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    """Cd and pushd: later paths start elsewhere."""
    text = re.sub(r"^\s*/d\b\s*", "", rest, flags=re.IGNORECASE).strip().strip('"')
    if not text:
        return Stdin(None)
    if HIDDEN in text:
        line.case.cwd = None
        return Stdin(None)
    found = resolved(line.case, text)
    line.case.touch("session", found.real if found is not None else "")
    if found is not None and (found.refused or found.doubtful):
        reads(line.case, text, item.span, listing=True)
    other = found is not None and line.case.cwd is not None and found.path.drive.lower() != line.case.cwd.drive.lower()
    stays = other and name != "pushd" and not re.match(r"\s*/d\b", rest, re.IGNORECASE)
    line.case.cwd = None if found is None or found.refused is not None or stays else found.path
    return Stdin(None)


def _pop(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    line.case.cwd = None


def _set(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    """set: `name=value`, `/a` arithmetic, `/p` a question, or without `=` a list of variables."""
    text = rest.strip()
    option = re.match(r"/([ap])\b\s*", text, re.IGNORECASE)
    body = (text[option.end() :] if option else text).strip()
    if body.startswith('"'):
        body = body[1 : body.rfind('"')] if body.rfind('"') > 0 else body[1:]
    variable, equals, value = body.partition("=")
    if not equals:
        if option is None and (not variable or secret_variable(variable) or len(variable) < 3):
            line.case.add(Grade.DANGEROUS, "secret", "it shows variables that may hold secrets", item.span)
        return Stdin(None)
    line.case.touch("session", variable.strip())
    if option is not None or HIDDEN in value:
        line.set[variable.strip().lower()] = None
    if variable.strip().lower() in OBEYED:
        line.case.add(
            Grade.DANGEROUS, "variable", f"it sets the variable {variable.strip()!r}, which programs obey", item.span
        )
    return Stdin("")


OBEYED = frozenset((
    "path", "pathext", "comspec", "psmodulepath", "git_ssh_command", "git_ssh", "git_editor", "git_pager", "git_askpass", "git_external_diff",
    "git_proxy_command",
    "git_exec_path", "git_config_global", "git_config_count", "git_dir", "pager", "editor", "visual", "browser", "node_options", "pythonpath",
    "pythonstartup", "pythonhome",
    "perl5opt", "perl5lib", "rubyopt", "rubylib", "java_tool_options", "_java_options", "classpath", "systemroot", "windir", "http_proxy",
    "https_proxy", "all_proxy",
    "npm_config_script_shell", "cor_profiler", "cor_profiler_path", "cor_enable_profiling", "coreclr_profiler", "dotnet_startup_hooks",
    "rustc_wrapper",
    "ld_preload", "ld_library_path", "home", "userprofile", "appdata", "temp", "tmp", "docker_host", "kubeconfig", "lessopen", "manpager",
    "bash_env", "env",
))  # fmt: skip


def _call(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    """call: a label, or a command that is filled in once more."""
    text = rest.strip()
    if text.startswith(":"):
        return Stdin(None)
    if not text:
        return Stdin("")
    return line.simple(Command(text, (), item.span, item.dynamic or _own_name(line, text)), None)


def _own_name(line: Line, text: str) -> bool:
    """Whether the first word was a variable that the line sets."""
    first = text.split(maxsplit=1)[0].lower() if text.split() else ""
    return any(value is not None and first and value.strip().lower().startswith(first) for value in line.set.values())


def _start(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    """start: a title in quotes, options, then a program and its words."""
    text = re.sub(r'^\s*"[^"]*"\s*(?=\S)', "", rest).strip()
    while match := re.match(r"/(?:d\s*(\"[^\"]*\"|\S+)|(?:node|affinity|machine)\s+\S+|(\w+))\s*", text, re.IGNORECASE):
        if (
            (match[2] or "").lower()
            in (
                "b",
                "i",
                "min",
                "max",
                "wait",
                "low",
                "normal",
                "high",
                "realtime",
                "abovenormal",
                "belownormal",
                "separate",
                "shared",
                "w",
            )
            or match[1]
            or match[2] is None
        ):
            text = text[match.end() :]
            text = re.sub(r'^"[^"]*"\s+(?=\S)', "", text) if not match[1] else text
            continue
        line.case.add(
            Grade.UNKNOWN, "unknown_option", f"start has an option that is not known: {match[0].strip()!r}", item.span
        )
        text = text[match.end() :]
    if not text:
        line.case.executes = True
        line.case.add(Grade.DANGEROUS, "starts_shell", "it starts a shell", item.span)
        line.case.part(("?",), item.span)
        return Stdin(None)
    if re.match(r'"?[a-z][a-z0-9+.-]+:(//|\w)', text, re.IGNORECASE) and not re.match(r'"?[a-z]:', text, re.IGNORECASE):
        line.case.add(Grade.DANGEROUS, "opens", "it has an address opened by whatever program is set for it", item.span)
        line.case.part(("start", text.replace(HIDDEN, "")), item.span)
        return Stdin(None)
    match = BUILTIN.match(text)
    command = Command(text, (), item.span, item.dynamic)
    if match:
        return line.builtin(match[1].lower(), text[match.end() :], command, None)
    return line.external(text, command, None, started=True)


def _associates(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    if "=" in rest:
        line.case.add(Grade.DANGEROUS, "persistence", "it changes which program opens a file", item.span)


def _clock(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    if _options(words) != {"t"}:
        line.case.add(
            Grade.DANGEROUS if words else Grade.UNKNOWN,
            "system",
            "it changes the clock, or waits for a person",
            item.span,
        )


def _path(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    if rest.strip():
        line.case.add(Grade.DANGEROUS, "variable", "it changes where programs are looked for", item.span)


TRANSPARENT = frozenset(("call", "start"))
Builtin = Callable[[Line, str, str, Sequence[Word], Command], "Stdin | None"]
BUILTINS: Mapping[str, Builtin] = {
    **dict.fromkeys(
        (
            "rem",
            "break",
            "cls",
            "color",
            "endlocal",
            "setlocal",
            "exit",
            "shift",
            "ver",
            "verify",
            "vol",
            "title",
            "pause",
            "goto",
            "prompt",
        ),
        _harmless,
    ),
    "echo": _echo,
    **dict.fromkeys(("del", "erase"), _delete),
    **dict.fromkeys(("rd", "rmdir"), _remove_folder),
    **dict.fromkeys(("dir", "type"), _read),
    **dict.fromkeys(("md", "mkdir"), _write),
    **dict.fromkeys(("copy", "move", "ren", "rename"), _copy),
    "mklink": _link,
    **dict.fromkeys(("cd", "chdir", "pushd"), _go),
    "popd": _pop,
    "set": _set,
    "call": _call,
    "start": _start,
    **dict.fromkeys(("assoc", "ftype"), _associates),
    **dict.fromkeys(("date", "time"), _clock),
    **dict.fromkeys(("path", "dpath", "keys"), _path),
}


def judge_text(case: Case, text: str, *, delayed: bool = False) -> None:
    """Judge a text of cmd in a process of its own; a text that is not read to its end must be seen."""
    try:
        Line(case, delayed).judge(text)
    except Unread as exc:
        case.add(Grade.DANGEROUS, exc.code, str(exc))
        case.part(("?",), None)
