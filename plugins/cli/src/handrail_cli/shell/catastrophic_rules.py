"""Rules for catastrophes, which must never happen without approval, no matter what else is allowed.

These are lost systems and homes, overwritten disks, foreign code and stolen credentials. The rules examine the
likeliest reading of a command, through wrappers and nested code. They need not be complete to be safe: a command that
is not proved to be harmless requires approval anyway. These are the effects that approval cannot undo.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from handrail import Reason
from handrail.fs import path_resolution
from handrail_cli.shell.bash.chunking import split_into_chunks
from handrail_cli.shell.bash.constant_output import compute_constant_output
from handrail_cli.shell.bash.deobfuscate import resolve_program_pattern, simplify_line
from handrail_cli.shell.bash.line_parser import NestedCodeParser, parse_with_grammar
from handrail_cli.shell.bash.syntax import ParsedLine, SimpleCommand, iter_substitutions
from handrail_cli.shell.bash.variable_rules import EXECUTING_VARIABLE
from handrail_cli.shell.code_snippets import CodeSnippet
from handrail_cli.shell.destructive_programs import (
    BLOCK_DEVICE,
    DESTRUCTIVE,
    MAX_NESTING,
    VITAL_FILE,
    PathContext,
    check_formatting,
    check_listing,
    unwrap_command,
)
from handrail_cli.shell.network_programs import (
    ANSWERERS,
    FETCH_PIPED_TO_SHELL,
    FETCHERS,
    LISTENERS,
    RUNNERS,
    SENDERS,
    fetches_from_network,
    is_socket_path,
    is_variable_fetched,
    list_fetched_files,
    list_read_redirects,
    runs_from_url,
    sends_to_network,
)
from handrail_cli.shell.program_wrappers import (
    INTERPRETER,
    SHELLS,
    SPECIAL,
    WRAPPERS,
    InnerCommand,
    find_inner_commands,
    find_script_interpreter,
    reads_code_from_input,
)

MAX_FRAGMENTS = 100
# Why the rest of a text was not looked at.
UNREAD_CODES = frozenset(("too_long", "too_much", "too_deep"))
MAX_CHUNKED = 500_000
# In long programs of other languages names and literals that have nothing to do with each other make a catastrophe.
MAX_PROGRAM = 10_000

FORK_BOMB = re.compile(r"([\w:.@-]{1,40})\s*\(\)\s*\{[^}]{0,200}?\1\s*\|\s*\1\s*&")


def find_catastrophes(
    analysis: ParsedLine, scene: PathContext, *, variables: Mapping[str, str], codes: NestedCodeParser, depth: int = 0
) -> Iterator[Reason]:
    """Yield every reason why the command line is a catastrophe, with its position in the outermost text."""
    if depth < MAX_NESTING:
        for text in simplify_line(analysis.text):
            inner = codes.analyse(text, variables)
            yield from find_catastrophes(inner, scene, variables=variables, codes=codes, depth=depth + 2)
    if not analysis.opaque and not analysis.functions and not any(map(_may_contribute, analysis.commands)):
        return
    if ("(" in analysis.text and FORK_BOMB.search(analysis.text)) or _has_fork_bomb(analysis):
        yield Reason("fork_bomb", "it starts copies of itself without end")
    if any(reason.code in UNREAD_CODES for reason in analysis.opaque) and depth < MAX_NESTING:
        yield from _find_in_chunks(analysis.text, scene, variables=variables, codes=codes, depth=depth)
    if any(reason.code in ("syntax", "word") for reason in analysis.opaque) and depth < MAX_NESTING:
        yield from _find_in_fragments(analysis.text, scene, variables=variables, codes=codes, depth=depth)
    judge = _CatastropheFinder(analysis, scene, variables, codes, depth)
    for number, command in enumerate(analysis.commands):
        for reason in judge.command(number, command):
            yield replace(reason, span=command.span)
    yield from judge.flows()
    if depth < MAX_NESTING:
        for text in analysis.hidden:
            inner = codes.analyse(text, variables)
            yield from find_catastrophes(inner, scene, variables=variables, codes=codes, depth=depth + 2)


class _CatastropheFinder:
    """Looks through the commands of one analysis in their order, following `cd`."""

    def __init__(
        self,
        analysis: ParsedLine,
        scene: PathContext,
        variables: Mapping[str, str],
        codes: NestedCodeParser,
        depth: int,
    ) -> None:
        self.analysis = analysis
        self.scene = scene
        self.variables = variables
        self.codes = codes
        self.depth = depth
        self.fetched: set[str] = set()
        # What the line has written to files, and files that hold credentials because of it.
        self.written: dict[str, str] = {}
        self.copies: set[str] = set()
        self.feeders = _map_feeders(analysis)
        # The commands whose output a variable holds.
        self.holders = {name: word.inner for name, word in analysis.assigned}
        # What stands behind plain wrappers, for each command.
        self.innermost = [unwrap_command(command.guess) for command in analysis.commands]
        self.names = [words[0].rpartition("/")[2] if words else "" for words in self.innermost]

    def command(self, number: int, command: SimpleCommand) -> Iterator[Reason]:
        for redirect in command.redirects:
            if redirect.target is not None and redirect.operator not in ("<", "<&"):
                yield from self.target(redirect.target.guess)
        for name, word in command.assignments:
            if word.guess and EXECUTING_VARIABLE.fullmatch(name):
                yield from self.part(InnerCommand(code=word.guess), command, self.depth + 1)
        if self.straight_from_network(number, command):
            yield Reason("network_code", "it runs code straight from the network")
        yield from self.words(command.guess, command, self.fed(number, command), self.depth)
        if command.guess[:1] in (("cd",), ("pushd",)):
            folders = [word for word in command.guess[1:] if not word.startswith("-")]
            self.scene = replace(self.scene, cwd=self.scene.place(folders[0] if folders else "~"))
        self.remember_fetched(command)
        self.remember_written(number, command)

    def words(self, argv: Sequence[str], command: SimpleCommand, fed: str | None, depth: int) -> Iterator[Reason]:
        """Yield the reasons against one command and against everything that it runs."""
        if not argv or depth > MAX_NESTING or self.codes.looks_left < 0:
            return
        self.codes.looks_left -= 1
        if self.codes.looks_left < 0:
            yield Reason("too_much", "it runs more commands inside commands than are analysed")
            return
        name = resolve_program_pattern(argv[0], RELEVANT_PROGRAMS).rpartition("/")[2]
        if name == "env" and (folder := _find_env_folder(argv)) is not None:
            self.scene = replace(self.scene, cwd=self.scene.place(folder))
        deadly = DESTRUCTIVE.get(name) or (check_formatting if name.startswith(("mkfs", "newfs")) else None)
        if deadly is not None and (reason := deadly(argv, self.scene)) is not None:
            yield reason
        if INTERPRETER.fullmatch(name) or name in AWKS:
            yield from self.program_text(argv, fed)
        yield from self.foreign(argv, command)
        found = find_inner_commands(argv, fed=fed)
        for part in found:
            yield from self.part(part, command, depth + 1)
        if not found and name in WRAPPERS:
            # An option that is not known: the command begins at one of the later words.
            for at in range(1, len(argv)):
                yield from self.words(argv[at:], command, fed, MAX_NESTING)

    def part(self, part: InnerCommand, command: SimpleCommand, depth: int) -> Iterator[Reason]:
        if part.code is not None and depth <= MAX_NESTING:
            inner = self.codes.analyse(part.code, self.variables)
            yield from find_catastrophes(inner, self.scene, variables=self.variables, codes=self.codes, depth=depth)
        if part.argv:
            yield from self.words(part.argv, command, None, depth)

    def straight_from_network(self, number: int, command: SimpleCommand) -> bool:
        """Return True if code is run straight from the network.

        This is `$(curl …)` as a command, `curl … > >(sh)`, `bash < <(curl …)`, or a variable that holds fetched data.
        """
        first = [n for n in iter_substitutions(command.words[:1]) if n < len(self.names)]
        if any(map(self.fetches, first)):
            return True
        if self.fetches(number) and any(
            _reads_code_from_input(self.innermost[n])
            for redirect in command.redirects
            if redirect.target is not None
            for n in redirect.target.inner
            if n < len(self.names)
        ):
            return True
        start, end = command.span
        if "(" in self.analysis.text and FETCH_PIPED_TO_SHELL.search(self.analysis.text[start : end + 200]):
            return True
        return self.obeys(number) and any(
            is_variable_fetched(self.analysis.text, variable)
            for variable in _find_variables(self.analysis.text, command)
        )

    def target(self, text: str) -> Iterator[Reason]:
        place = self.scene.place(text)
        if BLOCK_DEVICE.match(place):
            yield Reason("overwrites_device", f"it writes to the device {place}")
        elif VITAL_FILE.fullmatch(place):
            yield Reason("overwrites_system_file", f"it overwrites {place}")

    def foreign(self, argv: Sequence[str], command: SimpleCommand) -> Iterator[Reason]:
        """Code from the network that is run at once, by a substitution or from a file it was just fetched to."""
        name = argv[0].rpartition("/")[2]
        runs_shell = name in SHELLS or name in ("eval", "source", ".")
        runs = runs_shell or name == "exec" or bool(INTERPRETER.fullmatch(name))
        bodies = [word for r in command.redirects for word in (r.body, r.target) if word is not None]
        code = (*command.words, *bodies) if runs else command.words[:1]
        if any(self.fetches(n) for n in iter_substitutions(code) if n < len(self.names)):
            yield Reason("network_code", "it runs code straight from the network")
        if runs_from_url(argv):
            yield Reason("network_code", "it runs code straight from the network")
        scripts = [word for word in argv[1:] if not word.startswith("-")]
        files = scripts[: None if name in ("eval", "exec") else 1] if runs else argv[:1]
        if self.fetched and any(self.scene.place(word) in self.fetched for word in files if not word.startswith("-")):
            yield Reason("network_code", "it runs a file that it has just fetched from the network")
        if self.written and self.depth < MAX_NESTING:
            places = [self.scene.place(word) for word in files if not word.startswith("-")]
            for text in [self.written.pop(place) for place in places if place in self.written]:
                if (
                    reader := name if INTERPRETER.fullmatch(name) else find_script_interpreter(text)
                ) is not None and not runs_shell:
                    yield from self.program_text((reader, text), None)
                    continue
                inner = self.codes.analyse(text, self.variables)
                yield from find_catastrophes(
                    inner, self.scene, variables=self.variables, codes=self.codes, depth=self.depth + 2
                )

    def program_text(self, argv: Sequence[str], fed: str | None) -> Iterator[Reason]:
        """Code for an interpreter: looked at for what its literals would do."""
        text = "\n".join((*argv[1:], fed or ""))
        if len(text) >= MAX_PROGRAM:
            return
        snippet = CodeSnippet.of(text)
        yield from snippet.reasons()
        literals = snippet.literals
        if snippet.sends and any(map(self.secret, literals)):
            yield Reason("leaks_credentials", "it sends credentials to another machine")
        if snippet.removes and any(map(self.ruinous, literals)):
            yield Reason("deletes_system", "it deletes the system or a home")
        if not snippet.spawns:
            return
        for words in snippet.started():
            yield from self.words(words, SimpleCommand((), (), (), (0, 0)), None, MAX_NESTING - 1)
        for literal in literals if self.depth < MAX_NESTING else ():
            inner = self.codes.analyse(literal, self.variables)
            yield from find_catastrophes(
                inner, self.scene, variables=self.variables, codes=self.codes, depth=self.depth + 2
            )

    def ruinous(self, literal: str) -> bool:
        """Return True if a literal names something that must never be deleted."""
        named = literal.startswith(("/", "~"))
        return named and (self.scene.vital(literal) or VITAL_FILE.fullmatch(literal) is not None)

    def flows(self) -> Iterator[Reason]:
        """Yield the reasons against commands in combination: the data flow between them."""
        for stages in self.analysis.pipelines:
            flat = [[n for n in stage if n < len(self.names)] for stage in stages]
            fetched = False
            for stage in flat:
                if fetched and any(_reads_code_from_input(self.innermost[n]) or self.obeys(n) for n in stage):
                    yield Reason("network_code", "it runs code straight from the network")
                fetched = fetched or any(map(self.fetches, stage))
            together = [n for stage in flat for n in stage]
            yield from self.listed_away(together)
            listens = any(self.names[n] in LISTENERS for n in together)
            if listens and any(_reads_code_from_input(self.innermost[n]) for n in together):
                yield Reason("remote_shell", "it hands a shell to another machine")
        for number, command in enumerate(self.analysis.commands):
            yield from self.leaks(number, command)
        yield from self.sockets()

    def listed_away(self, together: Sequence[int]) -> Iterator[Reason]:
        """Yield the reasons against `find / | xargs rm`: names of everything in a place, passed to a deleter."""
        if len(together) < 2 or self.names[together[-1]] not in (
            "rm",
            "unlink",
            "shred",
            "srm",
            "mv",
            "chmod",
            "chown",
        ):
            return
        between = {self.names[n] for n in together[1:-1]}
        if self.analysis.commands[together[-1]].guess[0] in ("xargs", "parallel") and between <= {
            "sort",
            "uniq",
            "cat",
            "tr",
            "tee",
        }:
            reason = check_listing(self.innermost[together[0]], self.scene)
            if reason is not None:
                yield reason

    def obeys(self, number: int) -> bool:
        """Return True if a command runs unknown words, which may contain its input."""
        command, name, words = self.analysis.commands[number], self.names[number], self.innermost[number]
        if command.words and command.words[0].text is None:
            return True
        if command.guess[:1] in (("xargs",), ("parallel",)) and any(
            w.rpartition("/")[2] in SHELLS for w in command.guess
        ):
            return True
        if name in ("eval", "source", ".") or name in SHELLS:
            return "/proc/self/fd/0" in words or any(word.text is None for word in command.words)
        if (
            name in ("at", "batch", "parallel")
            or (name == "crontab" and "-" in words)
            or (name == "make" and "-" in words)
        ):
            return name != "parallel" or all(word.startswith("-") for word in words[1:])
        return False

    def fetches(self, number: int) -> bool:
        """Return True if the command gets data from the network."""
        return fetches_from_network(self.innermost[number], self.analysis.commands[number])

    def leaks(self, number: int, command: SimpleCommand) -> Iterator[Reason]:
        """Yield the reason against a credential that goes to a program that sends, as its operand or its input."""
        connected = any(r.target is not None and is_socket_path(r.target.guess) for r in command.redirects)
        if not connected and not sends_to_network(self.innermost[number]):
            return
        commands = self.analysis.commands
        held = [n for variable in _find_variables(self.analysis.text, command) for n in self.holders.get(variable, ())]
        near = (*self.feeders.get(number, ()), number, *iter_substitutions(command.words), *held)
        near = [n for n in near if n < len(commands)]
        words = [word for n in near for word in (*commands[n].guess, *list_read_redirects(commands[n]))]
        copied = any(self.scene.place(re.sub(r"^(\w+=)?@", "", word)) in self.copies for word in command.guess[1:])
        tells = any(SECRET_PRINTERS.match(" ".join(commands[n].guess)) for n in near if n != number)
        if copied or tells or any(self.secret(word) for word in words):
            yield Reason("leaks_credentials", "it sends credentials to another machine")

    def secret(self, word: str) -> bool:
        if "/" not in word and "." not in word:
            return False
        text = FILE_PREFIX.sub("", word)
        return ("/" in word or text.startswith(".")) and path_resolution.describe_secret(
            self.scene.place(text)
        ) is not None

    def sockets(self) -> Iterator[Reason]:
        """Yield the reasons against a shell whose input or output is a connection."""
        for name, command in zip(self.names, self.analysis.commands, strict=True):
            targets = [r.target.guess for r in command.redirects if r.target is not None]
            if (name in SHELLS or name == "exec") and any(map(is_socket_path, targets)):
                yield Reason("remote_shell", "it hands a shell to another machine")

    def fed(self, number: int, command: SimpleCommand) -> str | None:
        for redirect in command.redirects:
            if redirect.body is not None:
                return redirect.body.guess
        earlier = [self.analysis.commands[n] for n in self.feeders.get(number, ())]
        if (text := compute_constant_output(earlier) if earlier else None) is not None:
            return text
        # Of several whose output comes together (`(crontab -l; echo …)`), what can be told.
        told = [text for command in earlier if (text := compute_constant_output([command])) is not None]
        return "\n".join(told) if told else None

    def remember_written(self, number: int, command: SimpleCommand) -> None:
        """Record the text that redirections write into files, and copies of credentials."""
        places = [
            self.scene.place(r.target.guess) for r in command.redirects if r.target is not None and ">" in r.operator
        ]
        near = (*self.feeders.get(number, ()), number)
        if places and (text := compute_constant_output([self.analysis.commands[n] for n in near])) is not None:
            self.written |= dict.fromkeys(places, text)
        if any(self.secret(word) for n in near for word in _list_read_words(self.analysis.commands[n])):
            copied = [self.scene.place(word) for word in command.guess[1:] if not word.startswith("-")]
            self.copies.update(
                place for place in (*places, *copied) if place not in ("/", self.scene.cwd, self.scene.home)
            )

    def remember_fetched(self, command: SimpleCommand) -> None:
        words = unwrap_command(command.guess)
        if not words or words[0].rpartition("/")[2] not in FETCHERS:
            return
        into = [r.target.guess for r in command.redirects if r.target is not None and ">" in r.operator]
        self.fetched.update(map(self.scene.place, (*into, *list_fetched_files(words))))


SECRET_PRINTERS = re.compile(
    r"(env|printenv|export -p|declare -xp?)$|gpg2? .*--export-secret|kubectl .*get (\S+,)?secrets?\b"
    r"|gh auth token|gcloud auth print-|pass show|aws configure get"
)

# What stands before the name of a file in a word: an option, a setting, a mark that what follows is one.
FILE_PREFIX = re.compile(r"^(-{1,2}[\w-]+=|[\w.-]+=?[@<]|[\w.-]+=|@|file://|-[A-Za-z]@?)")


def _list_read_words(command: SimpleCommand) -> list[str]:
    return [*command.guess[1:], *list_read_redirects(command)]


def _find_variables(text: str, command: SimpleCommand) -> list[str]:
    """Return the variables that appear in a command."""
    start, end = command.span
    return re.findall(r"\$\{?([A-Za-z_]\w*)", text[start:end])


def _find_env_folder(argv: Sequence[str]) -> str | None:
    """Return the directory of `env -C FOLDER`, or None."""
    for at, word in enumerate(argv[:-1]):
        if word in ("-C", "--chdir"):
            return argv[at + 1]
        if word.startswith("--chdir="):
            return word.partition("=")[2]
    return None


def _may_contribute(command: SimpleCommand) -> bool:
    """Return True if a command may be part of a catastrophe, by its program or its redirections."""
    if command.redirects:
        return True
    if command.assignments and any(EXECUTING_VARIABLE.fullmatch(name) for name, _ in command.assignments):
        return True
    first = next((word.guess for word in command.words if word.guess), None)
    if first is None:
        return False
    name = first.rpartition("/")[2]
    return (
        name in RELEVANT_PROGRAMS
        or OTHER_PROGRAMS.match(name) is not None
        or ("/" in first and FOUND_BY_PATTERN.search(first) is not None)
    )


def _map_feeders(analysis: ParsedLine) -> Mapping[int, tuple[int, ...]]:
    """Return, for each command of a pipeline, the commands of the stages before its own."""
    feeders: dict[int, tuple[int, ...]] = {}
    for stages in analysis.pipelines:
        before: tuple[int, ...] = ()
        for stage in stages:
            for number in stage:
                feeders.setdefault(number, before)
            before += stage
    return feeders


def _has_fork_bomb(analysis: ParsedLine) -> bool:
    return any(
        re.search(rf"(?<![\w-]){re.escape(name)}\s*(\|\s*{re.escape(name)}\s*)?&", body)
        for name, body in analysis.functions.items()
    )


def _find_in_fragments(
    text: str, scene: PathContext, *, variables: Mapping[str, str], codes: NestedCodeParser, depth: int
) -> Iterator[Reason]:
    """Yield the reasons against a text that could not be parsed as one.

    It is judged in the fragments between separators, with braces expanded.
    """
    from handrail_cli.shell.bash.quoting import expand_braces

    fragments = dict.fromkeys(re.split(r"[;&|\n()`]+|\$\(", re.sub(r"\$IFS|\$\{IFS\}", " ", text)))
    for fragment in list(fragments)[:MAX_FRAGMENTS]:
        words = [part for word in fragment.split() for part in expand_braces(word) or [word]]
        words = [word.strip("\"'\\{}") or "" for word in words]
        plain = " ".join(word for word in words if word)
        if plain and plain != text:
            inner = codes.analyse(plain, variables)
            yield from find_catastrophes(inner, scene, variables=variables, codes=codes, depth=depth + 2)


def _find_in_chunks(
    text: str, scene: PathContext, *, variables: Mapping[str, str], codes: NestedCodeParser, depth: int
) -> Iterator[Reason]:
    """Yield the reasons against a text that was not read to its end.

    It is judged in pieces that are: no padding hides what must never run.
    """
    if len(text) > MAX_CHUNKED:
        yield Reason(
            "too_long", f"code of more than {MAX_CHUNKED} characters is not looked through; put it into a file"
        )
        return
    for piece in split_into_chunks(text):
        inner = parse_with_grammar(piece, variables=variables, most=len(piece))
        yield from find_catastrophes(inner, scene, variables=variables, codes=codes, depth=depth + 1)


def _reads_code_from_input(words: Sequence[str]) -> bool:
    if reads_code_from_input(words) or (bool(words) and words[0] in ("source", ".") and "/dev/stdin" in words):
        return True
    far = len(words) > 2 and words[0].rpartition("/")[2] in ("ssh", "docker", "podman", "kubectl")
    return far and words[-1].rpartition("/")[2] in SHELLS


# All programs that anything here speaks of.
AWKS = frozenset(("awk", "gawk", "mawk", "nawk"))
RELEVANT_PROGRAMS = frozenset((
    *DESTRUCTIVE, *WRAPPERS, *SPECIAL, *SHELLS, *SENDERS, *LISTENERS, *ANSWERERS, *RUNNERS, *AWKS,
    "exec", "eval", "source", ".", "cd", "pushd", "gh",
    "java",
))  # fmt: skip
# A program that is named by a pattern.
FOUND_BY_PATTERN = re.compile(r"/.*[*?\[]")
OTHER_PROGRAMS = re.compile(rf"(?:{INTERPRETER.pattern})$|mkfs|newfs")
