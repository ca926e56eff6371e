"""Programs that run other programs: what they run, taken out by their own option grammars."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "ash", "mksh", "fish", "rbash", "busybox-sh"))

WordSequence = Sequence[str]


@dataclass(frozen=True, slots=True)
class WrapperGrammar:
    """Grammar that locates the inner command: options with a value in the next word, and operands before it."""

    valued: str = ""
    long_valued: frozenset[str] = frozenset()
    operands: int = 0
    assignments: bool = False


def _list_long_options(*names: str) -> frozenset[str]:
    return frozenset(f"--{name}" for name in names)


# Programs whose operands are a command, as words.
WRAPPERS: Mapping[str, WrapperGrammar] = {
    "env": WrapperGrammar("uCPS", _list_long_options("unset", "chdir", "split-string"), assignments=True),
    "sudo": WrapperGrammar("ugpCDRrtTUh", _list_long_options("user", "group", "prompt", "chdir", "chroot", "role", "type", "host"), assignments=True),
    "doas": WrapperGrammar("uC"),
    "pkexec": WrapperGrammar("", _list_long_options("user")),
    "run0": WrapperGrammar("ugDp", _list_long_options("user", "group", "chdir", "property", "unit")),
    "nohup": WrapperGrammar(),
    "setsid": WrapperGrammar(),
    "time": WrapperGrammar("fo", _list_long_options("format", "output")),
    "nice": WrapperGrammar("n", _list_long_options("adjustment")),
    "ionice": WrapperGrammar("cnpPu", _list_long_options("class", "classdata")),
    "chrt": WrapperGrammar("TPD", operands=1),
    "taskset": WrapperGrammar("", operands=1),
    "timeout": WrapperGrammar("ks", _list_long_options("kill-after", "signal"), operands=1),
    "stdbuf": WrapperGrammar("ioe", _list_long_options("input", "output", "error")),
    "command": WrapperGrammar(),
    "builtin": WrapperGrammar(),
    "exec": WrapperGrammar("a"),
    "chroot": WrapperGrammar("", _list_long_options("userspec", "groups"), operands=1),
    "unshare": WrapperGrammar("RwSG", _list_long_options("root", "wd", "setuid", "setgid")),
    "nsenter": WrapperGrammar("tSGrw", _list_long_options("target", "setuid", "setgid")),
    "strace": WrapperGrammar("oesEuaPbIOSX", _list_long_options("output", "trace")),
    "ltrace": WrapperGrammar("oesuanlx"),
    "xargs": WrapperGrammar("IEdLnPsa", _list_long_options("arg-file", "delimiter", "max-args", "max-procs", "max-chars", "max-lines", "replace")),
    "busybox": WrapperGrammar(),
    "toybox": WrapperGrammar(),
    "caffeinate": WrapperGrammar("tw"),
    "systemd-run": WrapperGrammar("puEM", _list_long_options("property", "unit", "setenv", "slice", "uid", "gid", "working-directory")),
    "systemd-inhibit": WrapperGrammar("", _list_long_options("what", "who", "why", "mode")),
    "dbus-run-session": WrapperGrammar("", _list_long_options("config-file", "dbus-daemon")),
    "xvfb-run": WrapperGrammar("efnps", _list_long_options("server-args", "server-num", "error-file", "auth-file", "xauth-protocol")),
    "prlimit": WrapperGrammar("p", _list_long_options("pid")),
    "torsocks": WrapperGrammar(),
    "proxychains": WrapperGrammar("f"),
    "proxychains4": WrapperGrammar("f"),
    "fakeroot": WrapperGrammar("lsib"),
    "catchsegv": WrapperGrammar(),
    "rlwrap": WrapperGrammar("abcCdDefFgHilmMnNoOpPqrsStTvwz"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class InnerCommand:
    """Command that another one runs: other words, or code for a shell."""

    argv: tuple[str, ...] = ()
    code: str | None = None


def find_inner_commands(argv: WordSequence, *, fed: str | None = None) -> list[InnerCommand]:
    """Return what the command runs. `fed` is the text on its standard input, if it can be determined."""
    if not argv:
        return []
    name = argv[0].rpartition("/")[2]
    if (special := SPECIAL.get(name)) is not None:
        return special(argv, fed)
    if name in SHELLS:
        return _unwrap_shell(argv, fed)
    if (grammar := WRAPPERS.get(name)) is not None:
        rest = skip_options(argv, grammar)
        return [InnerCommand(tuple(rest))] if rest else []
    return []


def skip_options(argv: WordSequence, grammar: WrapperGrammar) -> WordSequence:
    """Return the words after the options, assignments and operands of a wrapper."""
    at = 1
    while at < len(argv) and argv[at].startswith("-") and argv[at] != "--":
        word = argv[at]
        at += 1
        if word.startswith("--"):
            at += word in grammar.long_valued
            continue
        letters = word[1:]
        valued = next((i for i, letter in enumerate(letters) if letter in grammar.valued), None)
        at += valued is not None and valued == len(letters) - 1
    if at < len(argv) and argv[at] == "--":
        at += 1
    while grammar.assignments and at < len(argv) and ASSIGNMENT.match(argv[at]):
        at += 1
    return argv[at + grammar.operands :]


def reads_code_from_input(argv: WordSequence) -> bool:
    """Return True for a shell or interpreter that reads its code from standard input."""
    if not argv:
        return False
    name = argv[0].rpartition("/")[2]
    rest = list(argv[1:])
    if rest and rest[0] in ("--version", "--help", "-V"):
        return False
    if name in SHELLS:
        at = 0
        while at < len(rest) and (rest[at].startswith(("-", "+"))):
            if rest[at].startswith("-") and not rest[at].startswith("--") and "c" in rest[at]:
                return False
            if rest[at] == "-" or (not rest[at].startswith("--") and "s" in rest[at]):
                return True
            at += 2 if rest[at] in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file") else 1
        return at >= len(rest) or rest[at] in ("/dev/stdin", "/proc/self/fd/0", "/dev/fd/0")
    if INTERPRETER.fullmatch(name):
        operands = [word for word in rest if not word.startswith("-") or word == "-"]
        code = any(word.startswith(("-c", "-e", "-m", "-r", "-p", "-E", "--eval", "--print")) for word in rest)
        return not code and (not operands or operands[0] in ("-", "/dev/stdin"))
    return False


# The program, and its first argument, in the first line of a script.
SHEBANG = re.compile(r"#!\s*(\S+)(?:\s+(?:-S\s*)?(\S+))?")


def find_script_interpreter(code: str) -> str | None:
    """Return the name of the program that the first line of a script names; None for a shell."""
    match = SHEBANG.match(code)
    names = [(word or "").rpartition("/")[2] for word in match.groups()] if match is not None else [""]
    name = names[-1] if names[0] == "env" else names[0]
    return None if name in SHELLS or not name else name


INTERPRETER = re.compile(
    r"python[0-9.]*|pypy3?|perl[0-9.]*|ruby[0-9.]*|node|nodejs|deno|bun|php[0-9.]*|lua[0-9.]*|tclsh|osascript|guile|Rscript"
)


def _unwrap_shell(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    for at, word in enumerate(argv[1:], 1):
        if not word.startswith(("-", "+")):
            break
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word):
            code = next((n for n in range(at + 1, len(argv)) if not re.fullmatch(r"[-+][A-Za-z]+", argv[n])), None)
            return [InnerCommand(code=_insert_parameters(argv[code:]))] if code is not None else []
    return [InnerCommand(code=fed)] if fed is not None and reads_code_from_input(argv) else []


def _insert_parameters(operands: WordSequence) -> str:
    """Code with the words that follow it in place of `$@`, as bash puts them."""
    if len(operands) < 3 or not re.search(r"\$[@*]", operands[0]):
        return operands[0]
    joined = " ".join(map(shlex.quote, operands[2:]))
    return re.sub(r"\"?\$[@*]\"?", lambda _: joined, operands[0])


def _unwrap_eval(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    words = argv[2:] if argv[1:2] == ("--",) or list(argv[1:2]) == ["--"] else argv[1:]
    return [InnerCommand(code=" ".join(words))] if words else []


def _unwrap_source(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    return [InnerCommand(code=fed)] if fed is not None and argv[1:2] and argv[1] in ("/dev/stdin", "-") else []


def _unwrap_trap(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    words = [word for word in argv[1:] if word != "--"]
    return [InnerCommand(code=words[0])] if len(words) > 1 and not words[0].startswith("-") else []


def _unwrap_command(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    if len(argv) > 1 and re.fullmatch(r"-p?[vV]p?", argv[1]):
        return []
    rest = skip_options(argv, WRAPPERS["command"])
    return [InnerCommand(tuple(rest))] if rest else []


def _unwrap_alias(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    return [InnerCommand(code=word.partition("=")[2]) for word in argv[1:] if "=" in word]


def _unwrap_jobs(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    at = next((at for at, word in enumerate(argv) if re.fullmatch(r"-[a-z]*x[a-z]*", word)), len(argv))
    return [InnerCommand(tuple(argv[at + 1 :]))] if argv[at + 1 :] else []


def _unwrap_anywhere(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    """Return each possible inner command for options that take one value or several: it may begin at any word."""
    return [InnerCommand(tuple(argv[at:])) for at in range(1, len(argv)) if not argv[at].startswith("-")]


def _unwrap_callback(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    """Return the code of `compgen -C CODE`, `complete -C CODE`, `mapfile -C CODE`."""
    found = (word[2:] or next(iter(argv[at + 1 : at + 2]), "") for at, word in enumerate(argv) if word.startswith("-C"))
    return [InnerCommand(code=code) for code in found if code]


def _unwrap_coproc(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    return [InnerCommand(code=re.sub(r"^\w+\s+\{", "", " ".join(argv[1:])).strip("{} ;"))]


def _unwrap_env(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    for at, word in enumerate(argv[1:], 1):
        if word in ("-S", "--split-string") and at + 1 < len(argv):
            return [InnerCommand(code=" ".join(argv[at + 1 :]))]
        if word.startswith(("-S", "--split-string=")):
            return [
                InnerCommand(code=" ".join((word.removeprefix("--split-string=").removeprefix("-S"), *argv[at + 1 :])))
            ]
    rest = skip_options([word if word != "-" else "-i" for word in argv], WRAPPERS["env"])
    return [InnerCommand(tuple(rest))] if rest else []


def _create_code_option_unwrapper(*letters: str) -> Callable[[WordSequence, str | None], list[InnerCommand]]:
    """Return an unwrapper for programs that take code after an option.

    Examples are `su -c CODE`, `script -qc CODE` and `flock FILE -c CODE`.
    """

    def found(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
        for at, word in enumerate(argv[1:], 1):
            if word.startswith(("--command=", "--session-command=")):
                return [InnerCommand(code=word.partition("=")[2])]
            short = word.startswith("-") and not word.startswith("--") and word[-1:] in letters
            if (short or word in ("--command", "--session-command")) and at + 1 < len(argv):
                return [InnerCommand(code=argv[at + 1])]
        return []

    return found


def _unwrap_flock(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    rest = skip_options(
        argv, WrapperGrammar("wE", _list_long_options("timeout", "wait", "conflict-exit-code"), operands=1)
    )
    if rest and rest[0] in ("-c", "--command"):
        return [InnerCommand(code=rest[1])] if len(rest) > 1 else []
    return [InnerCommand(tuple(rest))] if rest else []


def _unwrap_watch(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    rest = skip_options(argv, WrapperGrammar("nq", _list_long_options("interval", "equexit")))
    if any(re.fullmatch(r"-[a-z]*x[a-z]*|--exec", word) for word in argv[1 : len(argv) - len(rest)]):
        return [InnerCommand(tuple(rest))] if rest else []
    return [InnerCommand(code=" ".join(rest))] if rest else []


def _unwrap_ssh(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    rest = skip_options(argv, WrapperGrammar("BbcDEeFIiJLlmOopQRSWw", operands=1))
    if rest:
        return [InnerCommand(code=" ".join(rest))]
    return [InnerCommand(code=fed)] if fed is not None else []


def _unwrap_xargs(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    words = tuple(skip_options(argv, WRAPPERS["xargs"])) or ("echo",)
    mark = next((word[2:] or argv[at + 1] for at, word in enumerate(argv[:-1]) if word.startswith("-I")), None)
    mark = mark or next((word.partition("=")[2] or "{}" for word in argv if word.startswith(("--replace", "-i"))), None)
    text = fed or ""
    items = tuple(text.split())
    # As they may be put in one by one by its options: whole lines, or what NULs part.
    lines = tuple(line.strip() for line in re.split(r"[\n\0]", text) if line.strip())
    if mark is not None:
        each = dict.fromkeys((*lines[:8], *items[:8])) or ("",)
        return [InnerCommand(tuple(word.replace(mark, item) for word in words)) for item in each]
    apart = [InnerCommand((*words, line)) for line in lines[:8] if line not in items]
    return [InnerCommand((*words, *items)), *apart]


def _unwrap_parallel(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    rest = list(
        skip_options(
            argv,
            WrapperGrammar(
                "jaIMnNPSuC", _list_long_options("jobs", "arg-file", "max-args", "colsep", "delay", "timeout", "joblog")
            ),
        )
    )
    at = next((i for i, word in enumerate(rest) if word in (":::", ":::+", "::::")), None)
    words = rest[:at] if at is not None else rest
    items = [word for word in rest[at:] if not word.startswith("::")] if at is not None else (fed or "").splitlines()
    if "--" in words:
        # Another program of that name: the words behind are put to the command, or are commands themselves.
        words, items = words[: words.index("--")], words[words.index("--") + 1 :]
    if not words:
        return [InnerCommand(code=item) for item in items[:8]]
    template = " ".join(words)
    # Each is put as one word, or, by some options, as it stands.
    puts = list(dict.fromkeys(put for item in items[:8] for put in (shlex.quote(item), item)))
    if "{}" in template:
        return [InnerCommand(code=template.replace("{}", put)) for put in puts] or [InnerCommand(code=template)]
    return [InnerCommand(code=f"{template} {put}") for put in puts] or [InnerCommand(code=template)]


def _unwrap_find(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    found: list[InnerCommand] = []
    end = 0
    for at, word in enumerate(argv):
        # Up to its end, all words are the command's, also those of another `find`.
        if at >= end and word in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((i for i in range(at + 1, len(argv)) if argv[i] in (";", "+", "\\;")), len(argv))
            found.append(InnerCommand(tuple(argv[at + 1 : end])))
    return found


def _unwrap_tar(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    option = re.compile(
        r"--(checkpoint-action=exec|to-command|use-compress-program|info-script|new-volume-script|rsh-command|rmt-command)=(.*)",
        re.DOTALL,
    )
    found = [InnerCommand(code=match[2]) for word in argv if (match := option.fullmatch(word)) is not None]
    return found + [InnerCommand(code=argv[at + 1]) for at, word in enumerate(argv[:-1]) if word in ("-I", "-F")]


# Settings of git that hold a command.
RUN_BY_GIT = re.compile(
    r"alias\..*|.*\.(pager|editor|cmd|helper|command|sshcommand|driver|textconv|clean|smudge|process)", re.IGNORECASE
)


def _unwrap_git(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    values = [argv[at + 1].partition("=")[2] for at, word in enumerate(argv[:-1]) if word == "-c"]
    execs = [argv[at + 1] for at, word in enumerate(argv[:-1]) if word in ("-x", "--exec", "--tree-filter")]
    rest = [" ".join(argv[3:])] if argv[2:3] and argv[2] in ("foreach", "run") else []
    kept = [argv[-1]] if "config" in argv[1:4] and any(map(RUN_BY_GIT.fullmatch, argv[2:-1])) else []
    return [InnerCommand(code=value.removeprefix("!")) for value in (*values, *execs, *rest, *kept) if " " in value]


def _unwrap_editor(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    matches = [re.match(r"\+?:?\s*(?:silent!?\s*)?!(.+)", word, re.DOTALL) for word in argv[1:]]
    return [InnerCommand(code=match[1]) for match in matches if match is not None]


def _unwrap_sed(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    return [
        InnerCommand(code=code) for word in argv[1:] for code in re.findall(r"(?:^|[;{}\n])[\s\d$,]*e\s+([^\n]+)", word)
    ]


def _unwrap_scheduled(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    fields = r"^\s*(@\w+|(\S+\s+){5})" if argv[0].endswith("crontab") else r"^$"
    return [InnerCommand(code=re.sub(fields, "", line)) for line in (fed or "").splitlines()[:8]]


def _unwrap_make(argv: WordSequence, fed: str | None) -> list[InnerCommand]:
    reads = any(word in ("-f-", "--file=-", "--makefile=-") for word in argv) or ("-f" in argv and "-" in argv)
    lines = (fed or "").splitlines()[:20] if reads else []
    # `all: ; recipe` has its recipe behind the names.
    recipes = [line if line.startswith("\t") else line.partition(";")[2] for line in lines]
    return [InnerCommand(code=recipe.strip()) for recipe in recipes if recipe.strip()]


SPECIAL: Mapping[str, Callable[[WordSequence, str | None], list[InnerCommand]]] = {
    "eval": _unwrap_eval,
    "source": _unwrap_source,
    ".": _unwrap_source,
    "trap": _unwrap_trap,
    "command": _unwrap_command,
    "coproc": _unwrap_coproc,
    "alias": _unwrap_alias,
    **dict.fromkeys(("bwrap", "firejail"), _unwrap_anywhere),
    "jobs": _unwrap_jobs,
    **dict.fromkeys(("compgen", "complete", "mapfile", "readarray"), _unwrap_callback),
    "env": _unwrap_env,
    "su": _create_code_option_unwrapper("c"),
    "runuser": _create_code_option_unwrapper("c"),
    "script": _create_code_option_unwrapper("c"),
    "flock": _unwrap_flock,
    "watch": _unwrap_watch,
    "ssh": _unwrap_ssh,
    "xargs": _unwrap_xargs,
    **dict.fromkeys(("parallel", "sem"), _unwrap_parallel),
    "find": _unwrap_find,
    "tar": _unwrap_tar,
    "git": _unwrap_git,
    **dict.fromkeys(("vim", "vi", "nvim", "view", "vimdiff", "ex", "rvim", "rview"), _unwrap_editor),
    "sed": _unwrap_sed,
    **dict.fromkeys(("crontab", "at", "batch"), _unwrap_scheduled),
    "make": _unwrap_make,
}
