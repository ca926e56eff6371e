"""Whether a simple command, as it stands, does nothing but read what anybody may see."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import PurePath, PurePosixPath

from handrail import Judging, Reason, paths
from handrail.redaction import is_credential
from handrail_cli import readers
from handrail_cli.commandline import Command, Redirect, Word
from handrail_cli.globs import GLOB, fitting_secret

# Programs that show names and sizes, not what is in a file.
LISTING = frozenset((
    "ls", "dir", "vdir", "stat", "du", "df", "tree", "realpath", "readlink", "find", "test", "[", "[[",
))  # fmt: skip
SYSTEM_PROGRAMS = ("/bin/", "/usr/bin/", "/usr/local/bin/", "/sbin/", "/usr/sbin/")
# Variables that only change how things look, for any program.
COSMETIC = re.compile(
    r"LC_[A-Z]+|LANG|LANGUAGE|TZ|COLUMNS|LINES|TERM|NO_COLOR|CLICOLOR(_FORCE)?|FORCE_COLOR|GREP_COLORS?"
)
# Variables that nothing but the command line itself makes anything of.
OWN_VARIABLE = re.compile(r"(?!histchars$|auto_resume$|.*_proxy$)[a-z]\w*", re.ASCII)
# What anybody may read, outside the workspace.
PUBLIC = re.compile(
    r"""(?x) /(usr|bin|sbin|lib\w*)(/.*)?
    | /etc/(hosts|hostname|passwd|group|issue(\.net)?|motd|timezone|localtime|shells|services|protocols|networks|fstab|mtab|host\.conf
      |resolv\.conf|nsswitch\.conf|manpath\.config|mime\.types|debian_version|locale\.(conf|gen|alias)|(\w+-)?(os|lsb|system|redhat|fedora)-release
      |ld\.so\.conf(\.d/[\w.-]+)?)
    | /proc/(cpuinfo|meminfo|version|uptime|loadavg|stat|mounts|filesystems|partitions|swaps|devices|modules|interrupts|diskstats|vmstat)
    | /proc/(self/(status|stat|mounts|mountinfo|limits|cgroup)|sys/(kernel|vm|fs)/[\w/.-]+|net/(dev|route|arp|tcp|udp))
    | /sys/(class|block|bus|devices)/.*"""
)
# Over whatever files `find` may find: programs that tell names, sizes and sums, not what is in them.
NAMING = frozenset(("ls", "stat", "du", "file", "wc", "basename", "dirname", "realpath", "readlink", "echo", "test"))
# Programs that a file named like an option can make do nothing but look different.
UNHARMED = frozenset(
    ("cat", "ls", "dir", "vdir", "wc", "head", "tail", "nl", "tac", "stat", "du", "grep", "egrep", "fgrep", "echo")
)
MAX_FOLDERS = 8
MAX_NAME = 400
PLAIN_PAGERS = frozenset(("", "cat", "less", "more", "most", "less -R", "less -FRX", "less -FRSX"))
RISKY_VARIABLE = re.compile(
    r"BASH_ENV|ENV|LD_.*|DYLD_.*|GIT_.*|.*PAGER|LESSOPEN|LESSCLOSE|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|PS4|CDPATH|GLOBIGNORE|BASH_XTRACEFD|EXECIGNORE"
    r"|RIPGREP_CONFIG_PATH|LOCPATH|TERMINFO|TIMEFORMAT"
)
HARMLESS_VARIABLE = re.compile(
    r"GIT_(SSL_\w+|HTTP_\w+|TERMINAL_PROMPT|OPTIONAL_LOCKS|ASKPASS|EDITOR|SEQUENCE_EDITOR|(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE))"
)
LESSPIPE = re.compile(r"\|\|?-? ?/usr/bin/(lesspipe|lesspipe\.sh|lessopen)( %s)?( %s)?|(/usr/bin/lesspipe %s %s)")
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")

FIND_PLAIN = frozenset((
    "-print", "-print0", "-ls", "-prune", "-quit", "-depth", "-d", "-mount", "-xdev", "-daystart", "-follow",
    "-empty", "-true", "-false", "-executable", "-readable", "-writable", "-nouser", "-nogroup", "-noleaf", "-not",
    "-a", "-and", "-o", "-or", "!", "(", ")", ",", "-ignore_readdir_race", "-warn", "-nowarn", "-H", "-L", "-P", "-E",
    "-x",
))  # fmt: skip
FIND_VALUED = frozenset((
    "-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex", "-regextype", "-lname",
    "-ilname", "-type", "-xtype", "-size", "-mtime", "-atime", "-ctime", "-mmin", "-amin", "-cmin", "-newer",
    "-anewer", "-cnewer", "-samefile", "-inum", "-links", "-user", "-group", "-uid", "-gid", "-perm", "-fstype",
    "-maxdepth", "-mindepth", "-printf", "-used", "-newermt", "-context",
))  # fmt: skip
SED_COMMAND = re.compile(
    r"""(?x) \s*
    (?: (?:\d+|\$|/(?:[^/\\\n]|\\.)*/I?) (?:~\d+)? (?:\s*,\s*(?:[+~]?\d+|\$|/(?:[^/\\\n]|\\.)*/I?))? \s*!?\s* )?
    (?: [pdqQ=lDhHgGxNnP] \d*
      | s(?P<mark>[/|\#,:@!%_]) (?:(?!(?P=mark))[^\\\n]|\\.)* (?P=mark) (?:(?!(?P=mark))[^\\\n]|\\.)* (?P=mark) [gpiIM0-9]*
      | y/(?:[^/\\\n]|\\.)*/(?:[^/\\\n]|\\.)*/
    )? \s* (?:;|\n|$)"""
)
AWK_SETS = re.compile(r"[A-Za-z_]\w*=", re.ASCII)
AWK_TERM = r"""(?:\$?(?:\d+|NF|NR|FNR)|\$\(NF(?:-\d+)?\)|"(?:[^"\\\n]|\\[nt"\\])*")"""
AWK_TEST = rf"""(?:{AWK_TERM}\s*(?:==|!=|>=|<=|>|<)\s*{AWK_TERM}|(?:{AWK_TERM}\s*!?~\s*)?!?/(?:[^/\\\n]|\\.)*/|\d+)"""
AWK_PLAIN = re.compile(
    rf"""\s*(?:{AWK_TEST}(?:\s*(?:&&|\|\|)\s*{AWK_TEST})*)?\s*(?:\{{\s*print(?:\s*,?\s*{AWK_TERM})*\s*;?\s*\}})?\s*"""
)
JQ_RISKY = re.compile(
    r"\$ENV|\$__|(?<![\w.\"'])(env|inputs?|debug|stderr|halt_error|get_search_list|modulemeta)\b|input_(filename|line)|\b(import|include|eval)\b|load|strenv|envsubst"
)


@dataclass(frozen=True, slots=True)
class View:
    """Why a command is not plainly reading; `floor` when a person has to see it whatever else is allowed."""

    reason: Reason
    floor: bool = False


@dataclass(frozen=True, slots=True)
class Around:
    """What a line runs in: why no program is sure to be itself (None: each is), and the folders of PATH that lie in the workspace."""

    unsettled: str | None
    own_programs: tuple[str, ...]


class Reading:
    """Judges commands of one line, in the folders that its `cd`s lead to."""

    def __init__(self, judging: Judging, *cwds: PurePath) -> None:
        self.judging = judging
        # Every folder that the shell may be in by now.
        self.cwds: list[PurePath] = list(cwds)
        # What was found about words, so that a long line does not ask again.
        self.secrets: dict[str, str | None] = {}
        self.seen: paths.Seen = {}

    def command(self, command: Command) -> View | None:
        """Why the command, with its redirections and variables, is not plainly reading; None when it is."""
        for redirect in command.redirects:
            if (view := self.redirect(redirect)) is not None:
                return view
        for name, word in command.assignments:
            if not COSMETIC.fullmatch(name):
                return _no("variable", f"it sets {name} for a program", word)
        return self.words(command.words) if command.words else None

    def assigned(self, name: str, word: Word) -> View | None:
        """Why a variable set for the shell may change what later commands do."""
        if name in self.judging.environment or not OWN_VARIABLE.fullmatch(name):
            return _no("variable", f"it sets {name}, which changes what later commands do", word)
        return None

    def words(self, words: Sequence[Word]) -> View | None:
        """The same of the words alone: the program, its options, the files it reads."""
        first = words[0]
        if (view := self.surroundings(first)) is not None:
            return view
        if first.text is None or first.glob:
            return _no("unknown_program", "what it runs depends on something unknown", first, floor=True)
        name = first.text
        if "/" in name:
            folder, _, name = name.rpartition("/")
            if f"{folder}/" not in SYSTEM_PROGRAMS:
                return _no("own_program", f"{first.text!r} is not a program of the system", first)
        if (special := SPECIAL.get(name)) is not None:
            return special(self, words)
        reader = readers.readers().get(name)
        if reader is None:
            return self.help(name, words)
        return self.reader(name, reader, words)

    def protects(self, word: Word, *, holding: bool) -> bool:
        """Whether a word names one of Handrail's own files; with `holding`, or a folder that holds one."""
        text = word.guess.partition("=")[2] if re.match(r"-|\w+=", word.guess) else word.guess
        if not text or len(text) > MAX_NAME:
            return False
        for cwd in self.cwds:
            found = paths.resolve(text, cwd=cwd, home=self.judging.home, seen=self.seen)
            for place in (found.path, found.named):
                if holding and paths.protected(place, self.judging.protected):
                    return True
                if paths.inside(place, self.judging.protected, seen=self.seen):
                    return True
        return False

    def words_of_shell(self, command: Command) -> View | None:
        """Why starting a shell is not plain here, whatever it runs."""
        return self.surroundings(command.words[0])

    def surroundings(self, first: Word) -> View | None:
        """Why even a plain program may do something else here: by variables that an earlier command, or whoever started it, has set."""
        if (unsettled := self.around.unsettled) is not None:
            return _no("environment", unsettled, first)
        program = (first.text or "").rpartition("/")[2]
        if any(os.path.lexists(os.path.join(entry, program)) for entry in self.around.own_programs):
            return _no("own_program", f"{program!r} is a program of the workspace", first)
        return None

    @cached_property
    def around(self) -> Around:
        """The same for every command of the line, found once."""
        path = self.judging.environment.get("PATH", "/usr/bin").split(":")
        unsettled = next(self._unsettled(path), None)
        own = [entry for entry in path if paths.inside(entry, self.judging.workspace, seen=self.seen)]
        return Around(unsettled, tuple(own))

    def _unsettled(self, path: Sequence[str]) -> Iterator[str]:
        for name, value in self.judging.environment.items():
            if not RISKY_VARIABLE.fullmatch(name) or HARMLESS_VARIABLE.fullmatch(name) or _tame(name, value):
                continue
            if name != "LD_LIBRARY_PATH" or not all(self.settled(entry) for entry in value.split(":")):
                yield f"{name} is set, which may change what programs do"
        for entry in path:
            if not entry.startswith("/") or paths.inside(entry, map(PurePath, TEMPORARY), seen=self.seen):
                yield f"programs are looked for in {entry!r}"

    def settled(self, folder: str) -> bool:
        """Whether a folder is neither the working directory nor one that a command of this session may fill."""
        roots = (*map(PurePath, TEMPORARY), *self.judging.workspace)
        return folder.startswith("/") and not paths.inside(folder, roots, seen=self.seen)

    def help(self, name: str, words: Sequence[Word]) -> View | None:
        if name in readers.ASKED_FOR_HELP and len(words) == 2 and words[1].text in readers.HELP_WORDS:
            return None
        return _no("not_known_to_read", f"{name!r} is not known to only read", words[0])

    def reader(self, name: str, reader: readers.Reader, words: Sequence[Word], *, start: int = 1) -> View | None:
        if len(words) == start + 1 and words[start].text in readers.HELP_WORDS:
            return None
        call = readers.sort_words(reader, [word.text for word in words], start=start)
        if call.unknown is not None:
            return _no(
                "option", f"{words[call.unknown].guess!r} is not known to be harmless for {name!r}", words[call.unknown]
            )
        if reader.operands != "text" and (view := _dashed(words[start:])) is not None:
            return view
        if (view := _like_options(name, reader, words[start:])) is not None:
            return view
        for number in call.paths:
            if (view := self.read(words[number], listing=name in LISTING)) is not None:
                return view
        for number, value in call.attached:
            if (view := self.read(replace(words[number], text=value, glob=words[number].glob))) is not None:
                return view
        if _recurses(name, words) and (view := self.below(words, call)) is not None:
            return view
        checker = CHECKS.get(name)
        return checker(words, call) if checker is not None else None

    def below(self, words: Sequence[Word], call: readers.Call) -> View | None:
        """Why reading all that is below its folders is not plain."""
        for cwd in self.cwds:
            for text in [words[number].text or "." for number in call.paths] or ["."]:
                found = paths.resolve(text, cwd=cwd, home=self.judging.home, platform="linux", seen=self.seen)
                if text != "-" and not paths.inside(found.real, self.judging.workspace, seen=self.seen):
                    return _no("read_outside", f"it reads all below {text!r}, outside the workspace", words[0])
        return None

    def read(self, word: Word, *, listing: bool = False) -> View | None:
        """Why reading the file that a word names is not plain."""
        if word.text is None:
            return _no("unknown_path", "which file it reads depends on something unknown", word)
        if word.text == "-" or word.process:
            return None
        for cwd in self.cwds:
            if (view := self.path(word.text, cwd, word, listing=listing)) is not None:
                return view
        return None

    def path(self, text: str, cwd: PurePath, word: Word, *, listing: bool) -> View | None:
        if word.glob and (view := _glob(text, word, listing=listing)) is not None:
            return view
        home = self.judging.home
        found = paths.resolve(text, cwd=cwd, home=home, platform="linux", seen=self.seen)
        if found.refused is not None:
            return _no(found.refused.code, found.refused.text, word)
        what = paths.secret(found.real)
        if what is None and found.linked:
            what = paths.secret(found.written)
        if what is not None:
            return _no("secret", f"{text!r} keeps {what}", word, floor=True)
        if paths.device(found.real, seen=self.seen) is not None:
            return _no("device", f"{text!r} is a device", word)
        if listing or paths.inside(found.real, self.judging.workspace, seen=self.seen):
            return None
        if word.glob or not PUBLIC.fullmatch(found.real):
            return _no("read_outside", f"{text!r} is outside the workspace", word)
        return None

    def redirect(self, redirect: Redirect) -> View | None:
        target = redirect.target
        if redirect.operator in ("<<", "<<<") or target is None:
            return None if redirect.body is not None else _no("redirect", "it redirects to something unknown", target)
        if redirect.operator in (">&", "<&", ">&-", "<&-") and re.fullmatch(r"\d*-?", target.text or "x"):
            return None
        if redirect.operator == "<":
            return self.read(target)
        if target.text == "/dev/null":
            return None
        return _no("writes_file", f"it writes to {target.guess!r}", target)

    def cd(self, words: Sequence[Word]) -> View | None:
        rest = [word for word in words[1:] if word.text not in ("-P", "-L", "--")]
        if len(rest) > 1:
            return _no("option", "cd takes one folder", rest[1])
        if not rest:
            return self.enter([self.judging.home], words[0])
        if rest[0].text == "-":
            return _no("unknown_path", "which folder it goes back to is not known", rest[0])
        if rest[0].text is None or rest[0].glob:
            return _no("unknown_path", "which folder it goes to depends on something unknown", rest[0])
        if (view := self.read(rest[0], listing=True)) is not None:
            return view
        # Without following links, too: `cd link/..` is where it was.
        found = [
            paths.resolve(rest[0].text, cwd=cwd, home=self.judging.home, platform="linux", seen=self.seen)
            for cwd in self.cwds
        ]
        return self.enter([place for one in found for place in (one.path, one.named)], rest[0])

    def enter(self, folders: Sequence[PurePath], word: Word) -> View | None:
        """From here on, relative paths may start in these folders, too: a `cd` may fail."""
        self.secrets.clear()
        self.cwds += [folder for folder in dict.fromkeys(folders) if folder not in self.cwds]
        if len(self.cwds) > MAX_FOLDERS:
            del self.cwds[MAX_FOLDERS:]
            return _no("unknown_path", "it goes through more folders than are followed", word)
        return None

    def git(self, words: Sequence[Word]) -> View | None:
        at = 1
        while at < len(words) and (text := words[at].text) is not None and text.startswith("-"):
            if text in ("--version", "-v", "--help", "-h") and len(words) == 2:
                return None
            if text in ("--no-pager", "--no-optional-locks", "--literal-pathspecs"):
                at += 1
            elif text == "-C" and at + 1 < len(words):
                if (view := self.repository(words[at + 1], words[at + 1].text)) is not None:
                    return view
                at += 2
            elif text.startswith("-C"):
                if (view := self.repository(words[at], text[2:])) is not None:
                    return view
                at += 1
            else:
                return _no("option", f"the option {text!r} of git is not known to be harmless", words[at])
        if not all(paths.inside(cwd, self.judging.workspace, seen=self.seen) for cwd in self.cwds):
            return _no("foreign_repository", "a repository outside the workspace may run its own programs", words[0])
        if at >= len(words) or (name := words[at].text) is None:
            return _no("unknown_program", "which command of git it is, is not known", words[0])
        if name in readers.GIT_FORMS:
            return _git_form(name, words[at:])
        reader = readers.git_readers().get(name)
        if reader is None:
            return _no("not_known_to_read", f"'git {name}' is not known to only read", words[at])
        for word in words[at + 1 :]:
            if (word.text or "").count(":") and (view := self.path_in_commit(word)) is not None:
                return view
        return self.reader(f"git {name}", reader, words, start=at + 1)

    def repository(self, word: Word, text: str | None) -> View | None:
        if text is None:
            return _no("unknown_path", "which repository it is depends on something unknown", word)
        found = paths.resolve(text, cwd=self.cwds[-1], home=self.judging.home, platform="linux", seen=self.seen)
        if found.refused is None and paths.inside(found.real, self.judging.workspace, seen=self.seen):
            return None
        return _no("foreign_repository", "a repository outside the workspace may run its own programs", word)

    def path_in_commit(self, word: Word) -> View | None:
        """`HEAD:.env`: a file as it once was."""
        inner = (word.text or "").partition(":")[2]
        what = paths.secret(PurePosixPath("/") / inner) if inner else None
        return None if what is None else _no("secret", f"{inner!r} keeps {what}", word, floor=True)

    def find(self, words: Sequence[Word]) -> View | None:
        at = 1
        while at < len(words) and not (words[at].text or "").startswith(("-", "(", "!")):
            if (view := self.read(words[at], listing=True)) is not None:
                return view
            at += 1
        if (view := _like_options("find", None, words[1:])) is not None:
            return view
        starts = words[1:at]
        while at < len(words):
            text = words[at].text
            if text == "-exec":
                end = next((i for i in range(at + 1, len(words)) if words[i].text in (";", "+")), None)
                if end is None or end == at + 1:
                    return _no("option", "the command behind -exec does not end", words[at])
                if (view := self.over_found(words[at + 1 : end], starts)) is not None:
                    return view
                at = end + 1
            elif text in FIND_VALUED and at + 1 < len(words):
                at += 2
            elif text in FIND_PLAIN or (text or "").startswith("-newer"):
                at += 1 if text in FIND_PLAIN else 2
            else:
                return _no("option", f"{words[at].guess!r} is not known to be harmless for find", words[at])
        return None

    def over_found(self, words: Sequence[Word], starts: Sequence[Word]) -> View | None:
        """A command over files that are only known when it runs: those below `starts`."""
        name = words[0].text if words else None
        if name not in NAMING or not all(map(self.within, starts)):
            return _no("unknown_path", "what it does with the files it finds is not known", words[0] if words else None)
        put = [Word("./file" if word.text == "{}" else word.text, word.guess, word.span) for word in words]
        if any(word.text is not None and "{}" in word.text for word in put[1:]):
            return _no("unknown_path", "what it does with the files it finds is not known", words[0])
        return self.words(put)

    def within(self, word: Word) -> bool:
        """Whether a path is inside the workspace from wherever the shell is."""
        home = self.judging.home
        real = [paths.resolve(word.text or "/", cwd=cwd, home=home, seen=self.seen).real for cwd in self.cwds]
        return word.text is not None and all(paths.inside(at, self.judging.workspace, seen=self.seen) for at in real)

    def sed(self, words: Sequence[Word]) -> View | None:
        if (view := _like_options("sed", None, words[1:])) is not None:
            return view
        scripts: list[Word] = []
        files: list[Word] = []
        at = 1
        while at < len(words):
            text = words[at].text
            if text is None:
                return _no("unknown_path", "what it edits depends on something unknown", words[at])
            if text in ("-e", "--expression") and at + 1 < len(words):
                scripts.append(words[at + 1])
                at += 1
            elif text.startswith("--expression="):
                return _no("option", "its script is given in an unusual way", words[at])
            elif re.fullmatch(
                r"-[nErsuz]+|--quiet|--silent|--regexp-extended|--null-data|--unbuffered|--separate|--posix|--debug",
                text,
            ):
                pass
            elif text.startswith("-") and text != "-":
                return _no("option", f"{text!r} is not known to be harmless for sed", words[at])
            else:
                files.append(words[at])
            at += 1
        if not scripts and files:
            scripts, files = files[:1], files[1:]
        for script in scripts:
            if script.text is None or not _harmless_sed(script.text):
                return _no("script", "its script is not known to only print", script)
        return next((view for word in files if (view := self.read(word)) is not None), None)

    def awk(self, words: Sequence[Word]) -> View | None:
        if (view := _like_options("awk", None, words[1:])) is not None:
            return view
        at = 1
        while at < len(words) and (text := words[at].text) is not None and text.startswith("-") and text != "-":
            if text in ("-F", "-v"):
                at += 1
            elif not re.fullmatch(r"-F.+|-v[A-Za-z_]\w*=.*", text, re.DOTALL):
                return _no("option", f"{text!r} is not known to be harmless for awk", words[at])
            at += 1
        if at >= len(words) or (program := words[at].text) is None or not AWK_PLAIN.fullmatch(program):
            return _no("script", "its program is not known to only print", words[min(at, len(words) - 1)])
        return next(
            (
                view
                for word in words[at + 1 :]
                if not AWK_SETS.match(word.text or "") and (view := self.read(word)) is not None
            ),
            None,
        )

    def inner(self, words: Sequence[Word]) -> View | None:
        """Wrappers without options that change anything: `command`, `time`, `nice`, `timeout 5`, `env`."""
        name = (words[0].text or "").rpartition("/")[2]
        rest = list(words[1:])
        if name == "command" and len(rest) == 2 and rest[0].text in ("-v", "-V"):
            return None
        if name == "time" and rest and rest[0].text == "-p":
            rest = rest[1:]
        if name == "timeout":
            if not rest or not re.fullmatch(r"\d+(\.\d+)?[smhd]?", rest[0].text or ""):
                return _no("option", "how timeout is used here is not known to be harmless", words[0])
            rest = rest[1:]
        if not rest:
            return (
                None
                if name in ("time", "nice", "command")
                else _no("not_known_to_read", f"{name!r} alone shows its variables", words[0])
            )
        if (rest[0].text or "-").startswith("-") or "=" in (rest[0].text or ""):
            return _no("option", f"how {name!r} is used here is not known to be harmless", rest[0])
        return self.words(rest)

    def xargs(self, words: Sequence[Word]) -> View | None:
        """Files that are only known when it runs: fine for programs that take any words as text."""
        at = 1
        while at < len(words) and (text := words[at].text) is not None and text.startswith("-"):
            if text in ("-n", "-L", "-P", "-d", "-I", "-s"):
                at += 1
            elif not re.fullmatch(r"-[0rt]+|-[nLP]\d+|-I.+|-d.+|--null|--no-run-if-empty", text):
                return _no("option", f"{text!r} is not known to be harmless for xargs", words[at])
            at += 1
        name = words[at].text if at < len(words) else "echo"
        if name in ("echo", "basename", "dirname"):
            return None
        return _no("unknown_path", "what it does to what it is given is not known", words[min(at, len(words) - 1)])


def _no(code: str, text: str, word: Word | None, *, floor: bool = False) -> View:
    return View(Reason(code, text, word.span if word is not None else None), floor)


def _dashed(words: Sequence[Word]) -> View | None:
    """Words whose first letter is not known could turn out to be options."""
    wrong = next((word for word in words if word.text is None), None)
    return None if wrong is None else _no("unknown_word", "one of its words could turn out to be an option", wrong)


def _like_options(name: str, reader: readers.Reader | None, words: Sequence[Word]) -> View | None:
    """Patterns that could fit a file named like an option, or more files than the program only reads."""
    for word in words:
        if word.text == "--":
            return None
        if word.text == "{}":
            continue
        if word.glob and word.text is not None and name not in UNHARMED and word.text[:1] in ("*", "?", "[", "{"):
            return _no("unknown_word", "a file named like an option could fit the pattern", word)
        if word.glob and reader is not None and reader.operands == "path?":
            return _no("unknown_word", f"{name!r} writes to the second file that fits the pattern", word)
    return None


def _glob(text: str, word: Word, *, listing: bool) -> View | None:
    """A pattern that could fit a secret, or that looks into folders that are not named."""
    folder, _, name = text.rpartition("/")
    if GLOB.search(folder) and (folder.startswith(("/", "~", ".")) or "/." in folder):
        return _no("pattern", "the pattern looks into folders that are not named", word)
    if listing and not name.startswith((".", "[", "{")) and not GLOB.search(folder):
        return None
    if (fits := fitting_secret(text)) is not None:
        return _no(
            "secret", f"the pattern {text!r} fits names of secrets such as {fits!r}", word, floor=name[:1] != "*"
        )
    return None


def _recurses(name: str, words: Sequence[Word]) -> bool:
    """Whether it reads all files below a folder."""
    if name not in ("grep", "egrep", "fgrep", "diff"):
        return name == "rg"
    return any(re.match(r"-[A-Za-z]*[rRd]|--(dereference-)?rec|--dir", word.guess) for word in words[1:])


def _tame(name: str, value: str) -> bool:
    """Whether a variable that could name a program names one that only shows."""
    if name.endswith("PAGER"):
        return value in PLAIN_PAGERS
    if name == "PS4":
        return not re.search(r"[$`]", value)
    return not value or (name in ("LESSOPEN", "LESSCLOSE") and LESSPIPE.fullmatch(value) is not None)


def _harmless_sed(script: str) -> bool:
    at = 0
    while at < len(script):
        match = SED_COMMAND.match(script, at)
        if match is None or match.end() == at:
            return False
        at = match.end()
    return True


SECRET_SETTING = re.compile(r"(?i)token|passw|secret|cred|auth|header|key|url|proxy|cookie")


def _git_form(name: str, words: Sequence[Word]) -> View | None:
    forms = readers.GIT_FORMS[name]
    rest = words[1:]
    texts = [word.text for word in rest]
    naming = bool(texts) and texts[0] in readers.GIT_NAMING
    if name == "config" and any(SECRET_SETTING.search(word.guess) for word in rest):
        return _no("secret", "such a setting may hold a credential", words[0])
    bare = not texts and name in ("branch", "remote", "tag", "reflog", "submodule", "notes")
    for word in rest:
        if word.text in forms or (naming and word.text is not None and not word.text.startswith("-")):
            continue
        return _no("option", f"'git {name}' is not known to only read with {word.guess!r}", word)
    return (
        None
        if (texts and texts[0] in forms) or bare
        else _no("not_known_to_read", f"'git {name}' changes things", words[0])
    )


def _date(words: Sequence[Word], call: readers.Call) -> View | None:
    wrong = next((words[n] for n in call.texts if not (words[n].text or "").startswith("+")), None)
    return None if wrong is None else _no("option", "date could set the clock", wrong)


def _ps(words: Sequence[Word], call: readers.Call) -> View | None:
    at = 1
    while at < len(words):
        text = words[at].text or "?"
        if re.fullmatch(r"-[AaNdeflFjlyLTwHMcm]*[oO]|[auxwfjlmTrsvh]*o|--format", text):
            at += 1
            known = at < len(words) and PS_COLUMNS.fullmatch(words[at].text or "?")
        elif re.fullmatch(r"-[pCGgstUu]|--(pid|ppid|user|sort)", text):
            at += 1
            known = at < len(words) and words[at].text is not None
        else:
            known = PS_WORD.fullmatch(text) or (
                text.startswith(("-o", "--format="))
                and PS_COLUMNS.fullmatch(re.sub(r"-o|--format=", "", text, count=1))
            )
        if not known:
            return _no("option", "ps could show variables of other programs", words[min(at, len(words) - 1)])
        at += 1
    return None


PS_WORD = re.compile(
    r"-[AaNdeflFjlyLTwHMcmux]+|[auxwfjlmTrsvh]+|[\d,]+|-[pCGgstUu][\w,.-]+|--(pid|ppid|user|sort|cols|columns|width)=[\w,%+-]+"
    r"|--(no-headers|headers|forest)"
)
PS_COLUMN = (
    r"(pid|ppid|pgid|sid|tgid|tid|lwp|nlwp|thcount|uid|user|ruser|euser|gid|group|comm|args|cmd|command|ucmd|fname|%cpu|pcpu|%mem|pmem|rss|rsz|vsz|vsize"
    r"|sz|size|stat|state|s|time|cputime|times|etime|etimes|start|start_time|lstart|stime|tty|tt|tname|ni|nice|pri|psr|wchan|cls|rtprio|unit|label)"
)
PS_COLUMNS = re.compile(rf"{PS_COLUMN}(:\d+)?=?(,{PS_COLUMN}(:\d+)?=?)*")
UNARY = re.compile(r"-[abcdefghknprstuwxzGLNOS]")
COMPARES = re.compile(r"=|==|!=|-nt|-ot|-ef|=~")
NUMBER = re.compile(r"-(eq|ne|lt|le|gt|ge)")


def _test(words: Sequence[Word], call: readers.Call) -> View | None:
    """Tests compute with variables by their value, and look into them by name."""
    guesses = [word.guess for word in words]
    if any(guess in ("-v", "-R", "-o", "-t") for guess in guesses[1:]):
        return _no("arithmetic", "it looks into a variable by a name that could hold commands", words[0])
    for at, guess in enumerate(guesses):
        sides = [words[n].text or "?" for n in (at - 1, at + 1) if 0 < n < len(words)]
        if NUMBER.fullmatch(guess) and not all(re.fullmatch(r"[+-]?\d+", side) for side in sides):
            return _no("arithmetic", "it computes with something that is not a number", words[at])
    if guesses[0] == "[[":
        return None
    inner = [word for word in words[1:] if word.guess != "]"]
    if inner[:1] and inner[0].text == "!":
        inner = inner[1:]
    unknown = [n for n, word in enumerate(inner) if word.text is None]
    operator = inner[0].text if len(inner) == 2 else inner[1].text if len(inner) == 3 else None
    plain = len(inner) <= 1 or (operator is not None and (UNARY if len(inner) == 2 else COMPARES).fullmatch(operator))
    if unknown and (not plain or any(inner[n].glob for n in unknown)):
        return _no("arithmetic", "what it tests depends on something unknown", words[0])
    return None


def _printenv(words: Sequence[Word], call: readers.Call) -> View | None:
    names = [words[n].text for n in range(1, len(words)) if not (words[n].text or "").startswith("-")]
    if not names or any(name is None or is_credential(name, "") or SECRET_SETTING.search(name) for name in names):
        return _no("secret", "it shows variables that may be credentials", words[0], floor=True)
    return None


def _program_of_jq(words: Sequence[Word], call: readers.Call) -> View | None:
    programs = [words[n] for n in call.texts]
    wrong = next((word for word in programs if word.text is None or JQ_RISKY.search(word.text)), None)
    return None if wrong is None else _no("script", "its program may show variables or other files", wrong)


CHECKS: Mapping[str, Callable[[Sequence[Word], readers.Call], View | None]] = {
    "date": _date,
    "ps": _ps,
    "test": _test,
    "[": _test,
    "[[": _test,
    "printenv": _printenv,
    "jq": _program_of_jq,
    "yq": _program_of_jq,
}
SPECIAL: Mapping[str, Callable[[Reading, Sequence[Word]], View | None]] = {
    "cd": Reading.cd,
    "git": Reading.git,
    "find": Reading.find,
    "sed": Reading.sed,
    "awk": Reading.awk,
    "gawk": Reading.awk,
    "mawk": Reading.awk,
    "command": Reading.inner,
    "time": Reading.inner,
    "nice": Reading.inner,
    "timeout": Reading.inner,
    "env": Reading.inner,
    "xargs": Reading.xargs,
}
