"""Analysis of the commands of one line: the accesses and findings of each, including everything that it runs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePath

from handrail import Access, Decision, EvaluationContext, Reason, SubCommand, View
from handrail.api.verdict import OPAQUE_COMMAND
from handrail.fs.git_index import find_repository_above
from handrail.sandbox import repositories
from handrail.sandbox.toolchains import SYSTEM_PROGRAM_ROOTS
from handrail_cli.programs import InnerRun, NamedOperand, ProgramUse
from handrail_cli.programs.grammars.arg_matching import match_command_line
from handrail_cli.programs.grammars.code_runners import find_destructive_task
from handrail_cli.programs.values import CONTAINED_NEEDS, add_network_need
from handrail_cli.sandboxes.named_files import is_path_below
from handrail_cli.shell import bash_builtins
from handrail_cli.shell.argument_sources import fill_inner_code, fill_inner_words, find_picked_secrets, map_feeders
from handrail_cli.shell.bash.and_lists import find_dependent_commands
from handrail_cli.shell.bash.constant_output import NO_INPUT, StdinSource, compute_constant_output
from handrail_cli.shell.bash.line_parser import NestedCodeParser
from handrail_cli.shell.bash.portable_syntax import find_differing_part
from handrail_cli.shell.bash.syntax import (
    STARTS_JOB,
    ParsedLine,
    ShellRedirect,
    ShellWord,
    SimpleCommand,
    is_constant_word,
)
from handrail_cli.shell.bash.variable_rules import (
    EXECUTING_VARIABLE,
    is_harmless_value,
    is_tame_variable,
    strip_subscript,
)
from handrail_cli.shell.command_hosts import find_hosts_reached, find_local_repositories
from handrail_cli.shell.hidden_commands import find_code_argument, find_nested_commands
from handrail_cli.shell.host_env import HostEnvironment
from handrail_cli.shell.literal_lines import is_literal_line, is_unambiguous
from handrail_cli.shell.nested_shells import is_portable_shell, judge_shell_call
from handrail_cli.shell.operand_roles import ProgramOperand, judge_host, judge_operand
from handrail_cli.shell.path_effects import CommandEffects, Finding, PathAnalyzer
from handrail_cli.shell.program_wrappers import (
    INTERPRETER,
    SHELLS,
    find_inner_commands,
    find_script_interpreter,
    reads_code_from_input,
)
from handrail_cli.shell.repository_changes import RepositoryChanges
from handrail_cli.shell.sensitive_words import PRINTING_PROGRAMS, SensitiveWordScanner, find_handrail_calls

MAX_NESTING = 6
MAX_STEPS = 300
# Letters of code that a reason shows.
MAX_SHOWN = 60
ASKS_ELSEWHERE = "{!r} asks another machine, as your settings say: {}"
FOREIGN_PROGRAM = "{!r} is a program from outside the workspace"
# The first line of a script that bash runs.
BASH_SCRIPT = re.compile(r"#!\s*(?:/\S*/(?:env\s+)?)?bash\s*\n")
SYSTEM_FOLDERS = ("/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin")
# Of what the analysis did not follow, what runs nothing: a value that is taken apart. All the rest needs approval in every mode.
TAKEN_APART = frozenset(("expansion",))
# Programs that the shell has as builtins, which then starts none.
SHELL_ONLY = frozenset(("echo", "printf", "pwd", "test", "[", "[[", "type"))
# A program with one of these may open files that its words do not name.
FOLLOWING_NEEDS = frozenset(("loads_project", "reads_list"))
# Roles of files that a program changes and that its words name.
CHANGING_ROLES = frozenset(("delete", "delete_tree", "move", "change", "change_tree", "write", "append"))
# One of these may reach what its words do not name in the folder that it works in.
REACHING_NEEDS = FOLLOWING_NEEDS | {"repository", "code", "network", "session", "writes_unnamed"}
# Build tools that a project brings itself.
PROJECT_WRAPPERS = frozenset(("gradlew", "mvnw"))
# Programs that act with another's power or on another machine, whatever they run.
PRIVILEGE_PROGRAMS = frozenset(
    ("sudo", "doas", "su", "pkexec", "runuser", "run0", "runas", "ssh", "nsenter", "chroot", "sudoedit", "visudo")
)
# Programs that a file named like an option can make do little else: a pattern that picks by a part of the name is taken for its files.
PICKING = frozenset(
    ("rm", "cp", "mv", "touch", "ln", "file", "chmod", "cat", "wc", "head", "tail", "ls", "md5sum", "sha256sum", "jq")
)


class LineAnalyzer:
    """Weighs one line: `doubts`, `parts`, what an always-allow may be narrowed to, and whether it changes anything or needs the network."""

    def __init__(
        self,
        judging: EvaluationContext,
        cwds: Sequence[PurePath],
        around: HostEnvironment,
        variables: Mapping[str, str],
        codes: NestedCodeParser,
    ) -> None:
        self.judging = judging
        self.around = around
        self.places = PathAnalyzer(judging, cwds, around)
        self.variables = variables
        self.codes = codes
        self.steps = 0
        self.doubts: list[Finding] = []
        self.parts: list[SubCommand] = []
        self.narrowed: list[tuple[str, ...]] = []
        self.narrowable = True
        self.changes = False
        self.network = False
        # Resolved paths, or patterns of them, of which it may overwrite or delete what is there.
        self.losing: list[str] = []
        # As in `CommandEffects`, for all commands together.
        self.unconfined: list[Finding] = []
        self.renamed: list[str] = []
        # As in `CommandEffects`, for all commands together; `likely` are hosts that a command may connect to which is not known to need any.
        self.hosts: dict[str, None] = {}
        self.likely: dict[str, None] = {}
        self.by_host = True
        # Whether it uses files, or programs that may open some; any program; and the names of those that inspect the system.
        self.reads = False
        self.passes = False
        # Whether it tells or changes the folder or the variables of the session, which a program that inspects the system is run without.
        self.located = False
        # Whether the command at hand is given variables that programs may obey, and whether all that follow are.
        self.leads = False
        self.exports = False
        # Whether all files that it reads are named by plain words, and only by programs that open nothing else.
        self.names_files = True
        # Doubts about variables that programs may obey; they count where the line runs on the host.
        self.variable_doubts: list[Finding] = []
        # Whether it runs code of the workspace.
        self.runs_code = False
        # The repositories that git works on, and what it runs beside.
        self.histories = RepositoryChanges()
        self.inspecting: list[str] = []
        # Whether the line itself spells out all that it runs.
        self.spelled_out = True
        # Whether it can be read in one way only, and no lasting yes can be led to something else.
        self.unambiguous = True
        self.depth = 0
        # Whether the code at hand is for a shell that may not be bash.
        self.portable = False
        # Where the command stands whose own code is looked at, in the outermost text.
        self.at: tuple[int, int] | None = None
        self.alarms = SensitiveWordScanner(judging, self.places)
        # Links that the command at hand makes.
        self.linked: set[str] = set()
        # Code that is run later, where it stands, and the folders that it was looked at in.
        self.traps: list[tuple[str, tuple[int, int], Sequence[PurePath]]] = []
        # Variables that hold lists.
        self.lists: set[str] = set()
        # Whether it reads files that sandboxed commands may change, and whether something is piped or redirected to a program that may obey it.
        self.reads_changeable = False
        self.feeds_program = False
        # What the line has written to files, as far as it can be told.
        self.written: dict[str, str] = {}
        # Whether the line starts something in the background, which it may then wait for or end.
        self.starts_jobs = False
        # Whether the line names Handrail anywhere.
        self.named_here = False

    def line(self, analysis: ParsedLine) -> None:
        """Everything that the line may run."""
        self.named_here = self.named_here or "handrail" in analysis.text
        self.located = self.located or bool(analysis.assigned) or "PWD" in analysis.text
        self.spelled_out = self.spelled_out and is_literal_line(analysis)
        self.unambiguous = self.unambiguous and is_unambiguous(analysis)
        self.starts_jobs = self.starts_jobs or STARTS_JOB.search(analysis.text) is not None
        if analysis.opaque:
            for reason in analysis.opaque:
                self.doubt(Finding(reason, None if reason.code in TAKEN_APART else Decision.CONFIRM))
            self.narrowable = False
            self.parts.append(SubCommand(OPAQUE_COMMAND, span=self.at, folders=self.folders, varies=True))
        for name, word in analysis.assigned:
            if strip_subscript(name) in self.judging.environment or not is_harmless_value(
                strip_subscript(name), word.text
            ):
                self.assignment(name, word)
                self.set_variable(name, word, later=True)
            if word.start == "(":
                self.lists.add(name)
        feeders = map_feeders(analysis)
        # Folders that the shell is in again behind `cd build && …`: where the `cd` failed, nothing of that is run.
        elsewhere: list[PurePath] = []
        there = range(0)
        for number, command in enumerate(analysis.commands):
            if elsewhere and number not in there:
                self.places.enter(elsewhere)
                elsewhere = []
            self.places.entered = []
            self.command(command, self.feed(number, command, analysis, feeders))
            if (
                self.places.entered
                and command.guess[:1] == ("cd",)
                and (behind := find_dependent_commands(analysis, number))
            ):
                elsewhere += [folder for folder in self.places.cwds if folder not in self.places.entered]
                self.places.cwds, there = self.places.entered, behind
        if elsewhere:
            self.places.enter(elsewhere)
        if self.depth == 0:
            if self.traps:
                self.sprung()
            self.listed()

    def sprung(self) -> None:
        """Analyze the code of traps in the directories the shell was in before or after they were set."""
        for code, span, known in self.traps:
            self.places.cwds = [folder for folder in self.places.been if folder not in known]
            if self.places.cwds:
                self.code(code, span, CommandEffects())

    def listed(self) -> None:
        """Return the findings for folders with secrets, where the line also reads files whose names are not known."""
        if self.places.looked_through is not None and (word := self.places.unknown_read) is not None:
            folder, kept = self.places.looked_through
            told = f"it reads files that it finds, and looks through {folder!r}, where {kept!r} keeps secrets"
            self.unconfined.append(Finding(Reason("secret", told, word.span), Decision.CONFIRM))

    def doubt(self, doubt: Finding) -> None:
        if self.at is not None:
            doubt = Finding(Reason(doubt.reason.code, doubt.reason.text, self.at), doubt.floor)
        if doubt not in self.doubts:
            self.doubts.append(doubt)

    def take(self, effects: CommandEffects) -> None:
        for doubt in effects.doubts:
            self.doubt(doubt)
            self.narrowable = self.narrowable and doubt.floor is None
        self.changes = self.changes or effects.changes
        self.network = self.network or effects.network
        self.reads_changeable = self.reads_changeable or effects.reads_changeable
        self.losing += effects.losing
        self.unconfined += effects.unconfined
        self.renamed += effects.renamed
        (self.hosts if effects.network else self.likely).update(dict.fromkeys(effects.hosts))
        self.by_host = self.by_host and (effects.by_host or not effects.network)
        self.reads = self.reads or effects.files or (effects.program and not effects.inspects and not effects.filters)
        self.passes = self.passes or effects.program
        self.names_files = self.names_files and (effects.filters or not (effects.program or effects.files))

    @property
    def folders(self) -> tuple[str, ...]:
        """Directories that the current command may run in."""
        return tuple(map(str, self.places.cwds))

    @property
    def sends_files(self) -> bool:
        """Return True if the line uses the network and files of the workspace, which sandboxed commands may change before it runs again."""
        touches = (touch for part in self.parts for touch in part.touches)
        return self.network and any(touch.kind == "read" and self.places.within(touch.what) for touch in touches)

    @property
    def feeds_files(self) -> bool:
        """Return True if a program may be given what is in files that sandboxed commands may change, and may obey it."""
        return self.reads_changeable and self.feeds_program

    @property
    def lost(self) -> list[str]:
        """The existing files that may be lost; a file that is only renamed is not."""
        return [] if len(self.parts) == 1 and sorted(self.losing) == sorted(self.renamed) else self.losing

    @property
    def view(self) -> View:
        """The surroundings in which the line runs without approval."""
        if self.changes:
            return View.WORK
        if self.reads or (self.passes and not self.inspecting) or (self.inspecting and self.located):
            return View.READ
        if not self.spelled_out:
            # What it is taken for depends on values, and the host is no place to find out that they are others.
            return View.READ
        return View.SYSTEM if self.inspecting else View.SHELL

    def feed(
        self, number: int, command: SimpleCommand, analysis: ParsedLine, feeders: Mapping[int, tuple[int, ...]]
    ) -> StdinSource:
        if not command.redirects and number not in feeders:
            return NO_INPUT
        body: ShellWord | None = None
        for redirect in command.redirects:
            if redirect.fd in ("", "0"):
                if redirect.body is not None:
                    body = redirect.body
                elif redirect.operator in ("<", "<&", "<>", "<<<", "<<"):
                    return StdinSource(given=True)
        if body is not None:
            return StdinSource(body, given=True)
        before = feeders.get(number)
        return StdinSource(None, tuple(analysis.commands[n] for n in before), given=True) if before else NO_INPUT

    # One command

    def command(self, command: SimpleCommand, feed: StdinSource = NO_INPUT) -> None:
        """Analyze a simple command: its assignments, its redirections and its words."""
        for redirect in command.redirects:
            self.redirect(redirect, command)
        leads = self.leads
        for name, word in command.assignments:
            self.prefix(name, word, command)
            self.leads = self.leads or (bool(command.words) and not is_tame_variable(name, word.text))
        if self.named_here:
            for doubt in find_handrail_calls(command):
                self.doubt(doubt)
        if command.words:
            self.words(command.words, feed, command.span)
        if command.assignments:
            # What is exported stays for the commands behind.
            self.leads = leads or self.exports
        self.remember(command, feed)

    def remember(self, command: SimpleCommand, feed: StdinSource) -> None:
        """Record the text that redirections write into files, in case one of the files is run."""
        into = [r.target.text for r in command.redirects if r.target is not None and ">" in r.operator]
        if not into or (text := compute_constant_output((*feed.producers, command))) is None:
            return
        for found in [found for target in into if target is not None for found in self.places.resolved(target)]:
            self.written[found.real] = f"{self.written.get(found.real, '')}{text}\n"

    def prefix(self, name: str, word: ShellWord, command: SimpleCommand) -> None:
        """Analyze a variable set for one command."""
        tells = (
            command.program in PRINTING_PROGRAMS and name in ("GIT_DIR", "GIT_WORK_TREE") and command.program != "git"
        )
        splits = name == "IFS" and command.program == "read" and word.text is not None
        fine = tells or splits or is_harmless_value(name, word.text)
        tame = tells or splits or is_tame_variable(name, word.text)
        self.assignment(name, word, view=View.SHELL if fine else None, tame=tame)
        if not fine:
            self.set_variable(name, word)
        elif not tame:
            self.may_lead(name, word)

    def assignment(self, name: str, word: ShellWord, *, view: View | None = None, tame: bool = False) -> None:
        """Add an assignment as a separate subcommand.

        `tame`: no program obeys it, so it needs no approval beside others on the host.
        """
        self.parts.append(
            SubCommand(
                (f"{name}={word.guess}",),
                span=self.at or word.span,
                harmless=tame and self.spelled_out,
                view=view,
                folders=self.folders,
                # It may name a program or a file of the workspace.
                obeys_workspace=not tame and self.judging.sandbox is not None,
                varies=not is_constant_word(word),
            )
        )

    def doubts_on_host(self) -> Sequence[Finding]:
        """Return what else has to be approved where the line runs on the host, which hides no secrets and puts no files aside."""
        return (*self.places.secrets_searched(), *self.places.unknown_names, *self.variable_doubts)

    def may_lead(self, name: str, word: ShellWord) -> None:
        """Take down a variable that programs on the host may obey, for all that is known."""
        told = f"it sets {name}, which programs may obey"
        self.variable_doubts.append(Finding(Reason("variable", told, self.at or word.span)))

    def set_variable(self, name: str, word: ShellWord, *, later: bool = False) -> None:
        text = f"it sets {name}, which changes what {'later commands' if later else 'programs'} do"
        executes = EXECUTING_VARIABLE.fullmatch(strip_subscript(name)) is not None
        self.doubt(Finding(Reason("variable", text, word.span), Decision.CONFIRM if executes else None))
        self.narrowable = False

    def redirect(self, redirect: ShellRedirect, command: SimpleCommand) -> None:
        effects = CommandEffects()
        target = redirect.target
        if redirect.operator in ("<<", "<<<") or target is None:
            if redirect.body is None:
                effects.warn("redirect", "it redirects to something unknown", target)
        elif redirect.operator in (">&", "<&", ">&-", "<&-") and re.fullmatch(r"\d*-?", target.text or "x"):
            return
        elif redirect.operator == "<":
            if target.text is not None and target.text.startswith(("/dev/tcp/", "/dev/udp/")):
                self.connect(target, effects)
            else:
                self.places.read(target, effects)
        elif target.text is not None and target.text.startswith(("/dev/tcp/", "/dev/udp/")):
            self.connect(target, effects)
        else:
            if target.glob and target.text is not None:
                effects.warn("unknown_target", "it writes to whatever file fits a pattern", target)
            self.places.write(target, effects, loses=">>" not in redirect.operator)
        if redirect.operator == "<" and target is not None and target.text is not None and not target.glob:
            effects.filters = is_path_below(target.text)
        self.histories.touch(effects.touches)
        self.take(effects)
        if target is not None and target.text != "/dev/null":
            # What leads there may lead to a file by the time that the shell opens it.
            self.reads = True
            argv = redirect.operator, target.guess
            at = self.at or target.span
            harmless = effects.harmless and self.spelled_out
            varies = not is_constant_word(target)
            self.parts.append(
                SubCommand(argv, tuple(effects.touches), at, harmless, effects.view, self.folders, varies=varies)
            )

    @property
    def has_own_jobs(self) -> bool:
        """True if a signal can only be for what the line has started: in the sandbox it reaches nothing else."""
        return self.starts_jobs and self.judging.sandbox is not None and self.judging.sandbox.own_processes

    def connect(self, word: ShellWord, effects: CommandEffects) -> None:
        host = ":".join((word.text or "").split("/")[3:5])
        effects.touches.append(Access("network", host))
        effects.network = effects.changes = True
        effects.by_host = False
        effects.warn("sends_data", f"it opens a connection to {host}", word)

    def words(self, words: Sequence[ShellWord], feed: StdinSource, span: tuple[int, int]) -> None:
        """Analyze the words of a command: the program, its options, what they name, and the commands it runs."""
        effects = CommandEffects([], [])
        at, folders = len(self.parts), self.folders
        self.depth += 1
        self.steps += 1
        if self.depth > MAX_NESTING * 2:
            effects.warn("too_deep", "commands are nested too deeply", words[0])
        elif self.steps > MAX_STEPS:
            effects.warn("too_much", "it runs more commands than are analysed", words[0])
        else:
            self.program(words, feed, effects, span)
        self.depth -= 1
        if self.leads:
            effects.led()
        if effects.doubts or effects.changes or words[0].guess == "git":
            self.alarms.look(words, effects)
        effects.files = effects.files or any(word.glob for word in words)
        self.take(effects)
        argv = tuple([guess for word in words if (guess := word.guess)])
        touches = effects.touches
        if len(touches) > 1:
            touches = list(dict.fromkeys(touches))
        harmless = effects.harmless and self.spelled_out
        obeys = effects.obeys_workspace and self.judging.sandbox is not None
        # What builtins print starts nothing.
        constant = effects.view is View.SHELL or all(map(is_constant_word, words))
        varies = effects.varies or not (constant and self.unambiguous)
        part = SubCommand(
            argv,
            tuple(touches),
            self.at or span,
            harmless,
            effects.view,
            folders,
            effects.unlisted,
            obeys_workspace=obeys,
            varies=varies,
            changes=effects.changes,
        )
        self.parts.insert(at, part)
        if (effects.doubts or effects.changes) and any(word.text is None for word in words):
            self.parts.insert(at + 1, SubCommand(OPAQUE_COMMAND, span=self.at or span, folders=folders, varies=varies))

    def program(
        self, words: Sequence[ShellWord], feed: StdinSource, effects: CommandEffects, span: tuple[int, int]
    ) -> None:
        first = words[0]
        if first.text is None or first.glob:
            effects.warn("unknown_program", "what it runs depends on something unknown", first)
            effects.touches.append(Access("unknown"))
            return
        name = self.named_program(first, effects)
        if name is not None and _is_own_program_path(first.text):
            linked = [ShellWord(name, name, first.span), *words[1:]]
            name, words = (None, words) if _is_pip_module_call(words) else (name, linked)
        if name is None:
            if (at := find_destructive_task([word.text for word in words[1:]])) is not None:
                task = words[at + 1]
                effects.warn("destructive", f"{task.guess!r} destroys data", task)
            if first.guess.rpartition("/")[2] in PROJECT_WRAPPERS and (use := match_command_line(words)) is not None:
                self.apply(use._replace(unknown=None), words, feed, effects, first.guess, span)
            elif (installing := _normalize_installer(words)) is not None:
                use = match_command_line(installing)
                if use is not None and "network" in use.needs:
                    self.connects(use, installing, effects)
            return
        if (builtin := bash_builtins.BUILTINS.get(name)) is not None:
            builtin(self, words, effects)
            self.located = self.located or any(touch.kind == "session" for touch in effects.touches)
            return
        self.located = self.located or name == "pwd"
        effects.program = name not in SHELL_ONLY or "/" in first.text
        if name in SHELL_ONLY:
            # It prints names, which something else may take for files to read.
            for word in words[1:]:
                if word.glob or "/" in (word.text or ""):
                    self.places.look_through(word.text or "", glob=word.glob)
        if self.code_fed(words, feed, effects):
            return
        if name in SHELLS:
            judge_shell_call(self, words, effects)
            return
        use, words = self.use_of(name, words, effects)
        if use is None:
            self.unknown(words, name, feed, effects)
            return
        self.apply(use, words, feed, effects, name, span)

    def use_of(
        self, name: str, words: Sequence[ShellWord], effects: CommandEffects
    ) -> tuple[ProgramUse | None, Sequence[ShellWord]]:
        """Return what a program does by its row, and the words it was read from, without globs that may be options."""
        if name in PICKING and any(word.glob for word in words):
            words = [_prefix_glob(word) for word in words]
        found = next((word for word in words[1:] if _may_be_option(word)), None)
        if found is None or self.judging.sandbox is None or _has_subcommand_rows(name):
            return match_command_line(words), words
        if all(self.places.picks_no_options(word.text or "") for word in words[1:] if _may_be_option(word)):
            below = [_below(word) if _may_be_option(word) else word for word in words]
            use = match_command_line(below)
            if use is not None and use.unknown is None and _keeps_to_itself(use):
                told = f"{found.guess!r} is not known to be harmless for {name!r}"
                effects.unconfined.append(Finding(Reason("option", told, found.span)))
                effects.unlisted = True
                self.narrowable = False
                return use, below
        return match_command_line(words), words

    def unknown(self, words: Sequence[ShellWord], name: str, feed: StdinSource, effects: CommandEffects) -> None:
        """Analyze a program without a row: it requires approval, and what it seems to run is analyzed, too."""
        if name in PRIVILEGE_PROGRAMS:
            effects.warn("privilege", f"it acts through {name}", words[0])
        else:
            effects.ask("unknown_program", f"{name!r} is not a program that is known", words[0])
        self.histories.mixed = True
        # It may be a runner of tasks or tests as any other.
        effects.obeys_workspace = True
        effects.touches.append(Access("unknown", name))
        self.narrowable = False
        if self.depth > MAX_NESTING:
            return
        if (code := find_code_argument(words, feed)) is not None:
            effects.warn("code", f"what {name!r} makes of the code that it is given is not known", code)
        found = find_inner_commands([word.guess for word in words if word.guess])
        for part in found:
            if part.argv:
                self.words([ShellWord(text, text, words[0].span) for text in part.argv], NO_INPUT, words[0].span)
        if not found:
            effects.doubts += self.suspected(words)

    def suspected(self, words: Sequence[ShellWord]) -> list[Finding]:
        """Return what would require approval in every mode if an unknown program ran the command in its words."""
        apart = self.apart()
        commands, codes = find_nested_commands(words)
        for command in commands:
            apart.words(command, NO_INPUT, command[0].span)
        for code in codes:
            apart.code(code.guess, code.span, CommandEffects())
        self.steps = apart.steps
        return [doubt for doubt in (*apart.doubts, *apart.unconfined) if doubt.floor is not None]

    def apart(self) -> LineAnalyzer:
        """Return a separate analyzer with the same state for something that is only examined."""
        apart = LineAnalyzer(self.judging, self.places.cwds, self.around, self.variables, self.codes)
        apart.depth, apart.steps, apart.portable = self.depth + 1, self.steps, True
        return apart

    def named_program(self, first: ShellWord, effects: CommandEffects) -> str | None:
        """Return the name of the program; None if it is a separate file, which is then analyzed."""
        if (why := self.around.unsettled) is not None:
            effects.ask("environment", why, first)
        name = first.text or ""
        if "/" not in name:
            if self.around.own_programs and (own := self.around.own(name)) is not None:
                self.own_program(first, own, effects)
            return name
        folder, _, base = name.rpartition("/")
        if folder in SYSTEM_FOLDERS:
            return base
        if (linked := self.linked_program(name)) is not None:
            for found in self.places.resolved(name):
                # The link, too: a person's yes is for what it leads to now.
                effects.touches += [Access("execute", found.written), Access("execute", found.real)]
            effects.warn_on_host("foreign_program", FOREIGN_PROGRAM.format(name), first)
            effects.obeys_workspace = effects.changes = self.runs_code = self.histories.mixed = True
            return linked
        self.execute(first, name, effects)
        return None

    def linked_program(self, text: str) -> str | None:
        """Return the name of the program that a link in the workspace resolves to, such as `.venv/bin/python`.

        None if it is anything else, or not visible in the sandbox. Even if a sandboxed command changes the link in the
        meantime, it cannot resolve to anything that the sandbox does not show.
        """
        if self.judging.sandbox is None:
            return None
        shown = (*SYSTEM_PROGRAM_ROOTS, *map(str, self.judging.readable))
        found = self.places.resolved(text)
        if not all(
            one.refused is None
            and self.places.within(one.written)
            and not self.places.within(one.real)
            and any(one.real.startswith(f"{folder}/") for folder in shown)
            for one in found
        ):
            return None
        names = {one.real.rpartition("/")[2] for one in found}
        return names.pop() if len(names) == 1 and names.isdisjoint(bash_builtins.BUILTINS) else None

    def own_program(self, word: ShellWord, place: str, effects: CommandEffects) -> None:
        """Analyze a program that PATH finds in the workspace or among temporary files.

        In the sandbox, it is code of the project like any other.
        """
        if self.judging.sandbox is None or not self.places.within(place):
            effects.ask("own_program", f"{word.guess!r} is a program of the workspace", word)
            return
        effects.touches.append(Access("execute", place))
        effects.obeys_workspace = True
        effects.changes = self.runs_code = self.histories.mixed = True

    def execute(
        self,
        word: ShellWord,
        text: str | None,
        effects: CommandEffects,
        *,
        portable: bool | None = None,
        by: str | None = None,
    ) -> None:
        """Running a file: one of the workspace is code of the project.

        `portable` as for `code`; None where the file may say it itself. `by`: the program that is given the file; None where it is started
        itself, or a shell is given it whose `portable` is known.
        """
        if text is None or word.process:
            effects.warn("hidden_code", "which code it runs cannot be seen", word)
            return
        for found in self.places.resolved(text):
            effects.touches.append(Access("execute", found.real))
            effects.obeys_workspace = effects.obeys_workspace or self.places.within(found.real)
            effects.changes = self.runs_code = self.histories.mixed = True
            if (code := self.written.pop(found.real, None)) is not None:
                reader = None if by in SHELLS else by
                if portable is None and code.startswith("#!"):
                    portable = BASH_SCRIPT.match(code) is None
                    given = by is not None and (by in SHELLS or INTERPRETER.fullmatch(by) is not None)
                    reader = reader if given else find_script_interpreter(code)
                if reader is None:
                    self.code(code, word.span, effects, portable=portable)
                else:
                    self.script(code, reader, word, effects)
            if found.refused is not None:
                effects.ask(found.refused.code, found.refused.text, word)
            elif word.glob:
                effects.warn("unknown_program", "which file it runs depends on what is there", word)
            elif not self.places.within(found.real):
                effects.warn("foreign_program", FOREIGN_PROGRAM.format(text), word)
                return

    def script(self, code: str, reader: str, word: ShellWord, effects: CommandEffects) -> None:
        """Code for another program than a shell that the line has put into a file.

        In the sandbox it may do what every file of the workspace may; what it would do counts where the line runs on the host.
        """
        first = ShellWord(reader, reader, word.span)
        given = _create_code_words(reader, code, [first]) if INTERPRETER.fullmatch(reader) else None
        if given is None or self.depth > MAX_NESTING:
            effects.warn_on_host("code", f"what {reader!r} makes of {word.guess!r} is not analysed", word)
            return
        apart = self.apart()
        apart.words(given, NO_INPUT, word.span)
        self.steps = apart.steps
        for doubt in (*apart.doubts, *apart.unconfined):
            effects.unconfined.append(Finding(replace(doubt.reason, span=word.span), doubt.floor))

    def code_fed(self, words: Sequence[ShellWord], feed: StdinSource, effects: CommandEffects) -> bool:
        """Analyze code that a shell or interpreter reads from standard input; return False for other commands."""
        name = words[0].guess.rpartition("/")[2]
        if (name not in SHELLS and not INTERPRETER.fullmatch(name)) or not reads_code_from_input(
            [word.guess for word in words]
        ):
            return False
        code = feed.document.text if feed.document is not None else None
        if code is None:
            told = "it runs code that cannot be seen" if feed.given else "it starts a shell or interpreter of its own"
            effects.warn("hidden_code", told, words[0])
            return True
        if name in SHELLS:
            self.code(code, words[0].span, effects, portable=is_portable_shell(words))
            return True
        given = _create_code_words(name, code, words)
        use = match_command_line(given) if given is not None else None
        if given is None or use is None:
            effects.warn("code", f"code for {name!r} is not analysed here", words[0])
        else:
            self.apply(use, given, NO_INPUT, effects, name, words[0].span)
        return True

    # What a program does by its own grammar

    def apply(
        self,
        use: ProgramUse,
        words: Sequence[ShellWord],
        feed: StdinSource,
        effects: CommandEffects,
        name: str,
        span: tuple[int, int],
    ) -> None:
        if "engine" in use.needs:
            use = self.asking_engine(use, words, effects)
        if use.unknown is not None:
            word = words[min(use.unknown, len(words) - 1)]
            effects.unlisted = True
            if use.inline and self.judging.sandbox is not None and self.places.at_home():
                self.inline_code(name, word, effects)
            elif use.unread:
                effects.warn("code", f"what {name!r} runs by {word.guess!r} is not read", word)
            else:
                effects.ask("option", f"{word.guess!r} is not known to be harmless for {name!r}", word)
            self.narrowable = False
        if use.kind == "dangerous":
            reason = use.reason or Reason("dangerous", f"{name!r} may do harm")
            doubt = Finding(reason if reason.span else replace(reason, span=span), Decision.CONFIRM)
            (effects.unconfined if name == "kill" and self.has_own_jobs else effects.doubts).append(doubt)
        effects.changes = effects.changes or use.kind != "reads"
        folders = [named for named in use.named if named.role == "folder"]
        before = list(self.places.cwds) if folders else []
        if folders:
            self.places.entered = []
        for named in folders:
            self.folder(named, words[named.word_index], use, effects)
        if use.needs:
            self.needs(use, words, effects)
        self.works_outside(use, effects)
        for named in use.named:
            judge_operand(self, ProgramOperand(named, words, use), effects)
        self.obeys_files(use, words, feed, effects)
        if use.kind != "reads" and use.needs.isdisjoint(("network", "repository", "code")):
            effects.varies = effects.varies or effects.writes_unseen
        # Where it cannot enter the folder that it is told, it does nothing.
        self.histories.run(use, words, self.places.entered if folders else self.places.cwds, effects.touches)
        self.names_files = self.names_files and all(self.names_file(named, words) for named in use.named)
        if effects.inspects and all(_is_lookup_only(named, words) for named in use.named):
            effects.files = False
        if self.linked:
            self.places.links |= self.linked
            self.linked = set()
        leads = self.leads
        self.leads = leads or any(_sets_obeyed_variable(named, words) for named in use.named)
        for inner in use.inner:
            self.inner(inner, use, words, feed, effects)
        self.leads = leads or self.exports
        if folders:
            self.places.cwds = before
        if effects.doubts or use.kind != "reads":
            self.narrow(use, words, effects, name)

    def inline_code(self, name: str, word: ShellWord, effects: CommandEffects) -> None:
        """Code for an interpreter that is not understood: in the sandbox it may do what a file of the workspace may."""
        effects.warn_on_host("code", f"what {name!r} runs by {word.guess!r} is not read", word)
        effects.touches.append(Access("execute", name))
        effects.obeys_workspace = effects.varies = True
        effects.changes = self.runs_code = self.histories.mixed = True
        self.alarms.look_at_code(word, effects)

    def asking_engine(self, use: ProgramUse, words: Sequence[ShellWord], effects: CommandEffects) -> ProgramUse:
        """Return the use of a program that asks an engine; it needs the network if the engine is on another machine."""
        from handrail_cli.shell.remote_engines import find_remote_engine

        where = find_remote_engine(words[0].guess, self.judging)
        if where is None:
            return use
        effects.ask("remote", ASKS_ELSEWHERE.format(words[0].guess, where), words[0])
        return add_network_need(use)

    def works_outside(self, use: ProgramUse, effects: CommandEffects) -> None:
        """Take down folders outside the workspace that a command works in, and what it may do there."""
        if not use.needs.isdisjoint(CONTAINED_NEEDS):
            return
        # What a program that names all files which it changes does there is told by these.
        if use.needs.isdisjoint(REACHING_NEEDS) and any(named.role in CHANGING_ROLES for named in use.named):
            return
        for found in self.places.resolved("."):
            if not self.places.within(found.real):
                effects.touches.append(Access("read", found.real))
                if use.kind != "reads":
                    effects.touches.append(Access("write", found.real))
                # Its options and operands reach into a place of which nothing else was shown.
                self.narrowable = False

    def obeys_files(
        self, use: ProgramUse, words: Sequence[ShellWord], feed: StdinSource, effects: CommandEffects
    ) -> None:
        """Take down that what a command does may depend on what is in files that sandboxed commands may change."""
        if effects.filters:
            return
        opens_others = "reads_list" in use.needs and not _reads_named_folders_only(use, words, self.places)
        obeys = opens_others or "data" not in use.needs
        if self.judging.sandbox is not None and (opens_others or (obeys and effects.reads_changeable)):
            effects.varies = True
        if obeys and feed.given and not feed.constant and not effects.inspects:
            self.feeds_program = True

    def names_file(self, named: NamedOperand, words: Sequence[ShellWord]) -> bool:
        """Return True for a file to read that is named below the working directory or lies outside the workspace.

        Variables and other names count as well.
        """
        word = words[named.word_index]
        if named.role in ("variable", "name"):
            return True
        if named.role != "read" or named.value is not None or word.text is None or word.glob:
            return False
        found = self.places.resolved(word.text)
        ordinary = is_path_below(word.text) or not any(self.places.within(at.real) for at in found)
        return ordinary and all(os.path.isfile(at.real) for at in found)

    def needs(self, use: ProgramUse, words: Sequence[ShellWord], effects: CommandEffects) -> None:
        if "repository" in use.needs:
            # Its hooks are kept from sandboxed commands; what these run in their turn is not.
            obeys = "code" in use.needs and not all(_is_free_of_hooks(folder, self.judging) for folder in self.folders)
        else:
            obeys = not use.needs.isdisjoint(("code", "loads_project"))
        effects.obeys_workspace = effects.obeys_workspace or obeys
        if "network" in use.needs:
            self.connects(use, words, effects)
        elif use.reaches is not None:
            effects.hosts = find_hosts_reached(use, words, self.judging, self.places) or ()
        if "code" in use.needs:
            effects.changes = self.runs_code = True
            effects.touches.append(Access("execute", words[0].guess))
        if "repository" in use.needs and not self.places.at_home():
            effects.ask("foreign_repository", "a repository outside the workspace may run its own programs", words[0])
        elif "repository" in use.needs and (outer := self.places.outer_repository()) is not None:
            told = f"the repository is {outer!r}, outside the workspace; make that the workspace to work in it"
            effects.ask("foreign_repository", told, words[0])
        if "writes_unnamed" in use.needs:
            self.places.write_unnamed(words[0])
            effects.varies = True
        if "session" in use.needs:
            effects.touches.append(Access("session", words[0].guess))
            effects.ask("session", f"{words[0].guess!r} changes what later commands do", words[0])
        if "reads_list" in use.needs:
            self.places.unknown_read = words[0]
            if not _reads_named_folders_only(use, words, self.places):
                self.places.search_here(words[0])
        if "inspects" in use.needs:
            effects.inspects = True
            self.inspecting.append(words[0].guess)
        effects.filters = effects.filters or ("filters" in use.needs and use.needs.isdisjoint(FOLLOWING_NEEDS))
        if "input" in use.needs:
            effects.touches.append(Access("input", words[0].guess))
            effects.ask("input", "it acts on the desktop", words[0])
        if "code" in use.needs and not self.places.at_home():
            effects.warn("foreign_program", "it runs code of a folder outside the workspace", words[0])

    def connects(self, use: ProgramUse, words: Sequence[ShellWord], effects: CommandEffects) -> None:
        """Record the hosts that a command connects to, as far as they can be determined."""
        effects.changes = True
        if repositories := find_local_repositories(use, words, self.judging, self.places):
            for place in repositories:
                self.places.read(words[0], effects, text=place)
            return
        effects.network = True
        hosts = find_hosts_reached(use, words, self.judging, self.places)
        effects.by_host = hosts is not None
        effects.hosts = hosts or ()
        named = any(one.role in ("url", "host") for one in use.named)
        if hosts is None:
            effects.touches += [] if named else [Access("network")]
            return
        for host in hosts:
            # Those of addresses in the command are looked at where they stand.
            if use.reaches != "urls":
                judge_host(host, words[0], self.judging, effects)

    def folder(self, named: NamedOperand, word: ShellWord, use: ProgramUse, effects: CommandEffects) -> None:
        """Enter the directory that a program is instructed to work in."""
        effects.files = True
        text = word.text if named.value is None else named.value
        if text is None or word.glob:
            note = effects.warn if "code" in use.needs or use.inner else effects.ask
            note("unknown_path", "which folder it works in depends on something unknown", word)
            return
        self.places.look_through(text, glob=False)
        found = list(self.places.resolved(text))
        for one in found:
            if one.refused is not None or not (self.places.within(one.real) or self.places.passing(one.real)):
                effects.ask("read_outside", f"it works in {text!r}, outside the workspace", word)
                break
        self.places.enter([one.path for one in found])

    def narrow(self, use: ProgramUse, words: Sequence[ShellWord], effects: CommandEffects, name: str) -> None:
        """Record what an always-allow grant for this command may be narrowed to."""
        if use.kind == "dangerous" or use.unknown is not None:
            return
        if effects.network and not effects.by_host:
            # Its options may name other hosts and places than were shown.
            self.narrowable = False
            return
        argv = tuple(word.text or "" for word in words)
        if "" in argv:
            self.narrowable = False
        elif use.inner or "code" in use.needs or any(named.role == "execute" for named in use.named):
            self.narrowed.append(argv)
        elif use.leading > 1:
            self.narrowed.append(argv[: use.leading])
        elif not _has_subcommand_rows(name):
            self.narrowed.append(argv[:1])
        elif len(argv) > 1:
            self.narrowed.append(argv if argv[1].startswith("-") else argv[:2])
        else:
            # All its subcommands begin like that.
            self.narrowable = False

    # What it runs in its turn

    def inner(
        self, inner: InnerRun, use: ProgramUse, words: Sequence[ShellWord], feed: StdinSource, effects: CommandEffects
    ) -> None:
        if inner.where == "remote":
            return
        effects.varies = effects.varies or (inner.gets != "nothing" and not feed.constant)
        at_home = inner.gets == "input" and self.places.at_home()
        if inner.code is not None:
            if inner.language in ("bash", "sh", "shell"):
                span = words[min(inner.start, len(words) - 1)].span
                for code in fill_inner_code(inner, feed, at_home=at_home) if inner.gets == "input" else [inner.code]:
                    # Programs run code by `sh`, or by the shell that SHELL names.
                    self.code(code, span, effects, portable=True)
            return
        if inner.start >= inner.end:
            return
        if self.depth > MAX_NESTING:
            effects.warn("too_deep", "commands are nested too deeply", words[0])
            return
        if inner.gets == "found":
            for word in find_picked_secrets(words, words[inner.start : inner.end]):
                effects.warn("secret", f"{word.guess!r} fits names of secrets", word)
        for chosen in fill_inner_words(inner, use, words, feed, at_home=at_home):
            self.words(chosen, feed if inner.gets == "nothing" else NO_INPUT, words[0].span)

    def code(
        self,
        text: str,
        span: tuple[int, int],
        effects: CommandEffects,
        *,
        given: Mapping[str, str] | None = None,
        portable: bool | None = None,
    ) -> None:
        """Analyze code for a shell that the line contains. `given` are its parameters, by number.

        It is read as bash code. `portable`: the shell may be another one; None for the shell that runs the enclosing
        code.
        """
        if self.depth > MAX_NESTING:
            effects.warn("too_deep", "commands are nested too deeply", None)
            return
        outer, self.at = self.at, self.at or span
        around, self.portable = self.portable, self.portable if portable is None else portable
        variables = self.variables
        if self.places.cwds != [self.places.began]:
            variables = {name: value for name, value in variables.items() if name != "PWD"}
        inner = self.codes.analyse(text, {**variables, **given} if given else variables)
        # What was not read to its end needs approval as it is, and may be too much to be parsed.
        read = all(reason.code in TAKEN_APART for reason in inner.opaque)
        if self.portable and read and (part := find_differing_part(inner)) is not None:
            told = f"{part[:MAX_SHOWN]!r} is not the same for every shell, and which one reads it is not known"
            self.doubt(Finding(Reason("other_shell", told), Decision.CONFIRM))
            self.narrowable = False
            self.parts.append(SubCommand(OPAQUE_COMMAND, span=self.at, folders=self.folders, varies=True))
        self.depth += 1
        self.line(inner)
        self.depth -= 1
        self.at, self.portable = outer, around

    def trap(self, text: str, span: tuple[int, int], effects: CommandEffects) -> None:
        """Code for bash that is run at some later time."""
        self.traps.append((text, span, tuple(self.places.cwds)))
        self.code(text, span, effects)


def _is_own_program_path(text: str) -> bool:
    """Return True for the path of a program outside the system's directories."""
    folder, slash, _ = text.rpartition("/")
    return bool(slash) and folder not in SYSTEM_FOLDERS


def _is_pip_module_call(words: Sequence[ShellWord]) -> bool:
    """Return True for `.venv/bin/python -m pip …`."""
    return INTERPRETER.fullmatch(words[0].guess.rpartition("/")[2]) is not None and [
        word.text for word in words[1:3]
    ] == ["-m", "pip"]


def _normalize_installer(words: Sequence[ShellWord]) -> Sequence[ShellWord] | None:
    """Return the words of a package manager that is a program of the workspace: `.venv/bin/pip …`.

    Converts `.venv/bin/python -m pip …` to that form; None for any other program. Its row says whether it needs the
    network; in all other respects it is treated as a program of the workspace.
    """
    first = words[0]
    folder, _, base = (first.text or "").rpartition("/")
    if _is_pip_module_call(words):
        return [ShellWord(f"{folder}/pip", f"{folder}/pip", first.span), *words[3:]]
    return words if base.startswith(("pip", "uv")) else None


def _create_code_words(name: str, code: str, words: Sequence[ShellWord]) -> list[ShellWord] | None:
    """Return the words that give an interpreter the same code as an argument: `python -c CODE a` for `python - a`.

    Options are not read: a call with options yields None.
    """
    first, rest = words[0], words[1:]
    if rest and rest[0].text not in ("-", "/dev/stdin"):
        return None
    option = "-c" if name.startswith(("python", "pypy")) else "-r" if name.startswith("php") else "-e"
    return [first, ShellWord(option, option, first.span), ShellWord(code, code, first.span), *rest[1:]]


def _has_subcommand_rows(name: str) -> bool:
    from handrail_cli.programs import rows

    return any(len(block.names) > 1 for block in rows.find_program_blocks(name))


def _is_free_of_hooks(folder: str, judging: EvaluationContext) -> bool:
    """Return True if git runs no hooks for a directory's repository, and no program named in its settings."""
    git = find_repository_above(folder)
    settings = repositories.list_common_settings(judging.home, judging.environment)
    return git is None or repositories.is_without_hooks(Path(git), settings)


def _sets_obeyed_variable(named: NamedOperand, words: Sequence[ShellWord]) -> bool:
    """Return True for a variable that a program sets for another, which may obey it (`env NAME=VALUE …`)."""
    word = words[named.word_index]
    name, _, value = (named.value if named.value is not None else word.guess).partition("=")
    return named.role == "sets" and not is_tame_variable(name, value if word.text is not None else None)


def _is_lookup_only(named: NamedOperand, words: Sequence[ShellWord]) -> bool:
    """Return True if a word only names an absolute path to look up, which is the same from every directory."""
    text = named.value if named.value is not None else words[named.word_index].text
    return named.role in ("variable", "name") or (named.role == "list" and (text or "").startswith("/"))


def _reads_named_folders_only(use: ProgramUse, words: Sequence[ShellWord], places: PathAnalyzer) -> bool:
    """Return True if everything a program reads is below directories that its words name.

    False if it reads files that are listed in a file or found in the working directory.
    """
    texts = [words[one.word_index].text if one.value is None else one.value for one in use.named if one.role == "read"]
    return bool(texts) and all(
        text is not None and all(os.path.isdir(found.real) for found in places.resolved(text)) for text in texts
    )


def _prefix_glob(word: ShellWord) -> ShellWord:
    """Return `*.txt` as `./*.txt`, which cannot begin like an option; `*` alone is returned unchanged."""
    picks = word.glob and word.text is not None and word.text[:1] == "*" and any(map(str.isalnum, word.text))
    return _below(word) if picks else word


def _below(word: ShellWord) -> ShellWord:
    return ShellWord(f"./{word.text}", word.guess, word.span, True, word.inner)


def _may_be_option(word: ShellWord) -> bool:
    """Return True for a glob that a name beginning with `-` could match."""
    return word.glob and word.text is not None and word.text.startswith(("*", "?", "["))


def _keeps_to_itself(use: ProgramUse) -> bool:
    """Return True if a program runs only scripts that were read, and works only on the files that it is given."""
    return use.needs.isdisjoint(REACHING_NEEDS - FOLLOWING_NEEDS) and all(inner.code is not None for inner in use.inner)
