"""Programs that run other programs: what they run, taken out by their own option grammars."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
SHELLS = frozenset(("bash", "sh", "zsh", "dash", "ksh", "ash", "mksh", "fish", "rbash", "busybox-sh"))

Words = Sequence[str]


@dataclass(frozen=True, slots=True)
class Grammar:
    """How to find the inner command: options that take a value in the next word, and operands that stand before it."""

    valued: str = ""
    long_valued: frozenset[str] = frozenset()
    operands: int = 0
    assignments: bool = False


def _long(*names: str) -> frozenset[str]:
    return frozenset(f"--{name}" for name in names)


# Programs whose operands are a command, as words.
WRAPPERS: Mapping[str, Grammar] = {
    "env": Grammar("uCPS", _long("unset", "chdir", "split-string"), assignments=True),
    "sudo": Grammar("ugpCDRrtTUh", _long("user", "group", "prompt", "chdir", "chroot", "role", "type", "host"), assignments=True),
    "doas": Grammar("uC"),
    "pkexec": Grammar("", _long("user")),
    "run0": Grammar("ugDp", _long("user", "group", "chdir", "property", "unit")),
    "nohup": Grammar(),
    "setsid": Grammar(),
    "time": Grammar("fo", _long("format", "output")),
    "nice": Grammar("n", _long("adjustment")),
    "ionice": Grammar("cnpPu", _long("class", "classdata")),
    "chrt": Grammar("TPD", operands=1),
    "taskset": Grammar("", operands=1),
    "timeout": Grammar("ks", _long("kill-after", "signal"), operands=1),
    "stdbuf": Grammar("ioe", _long("input", "output", "error")),
    "command": Grammar(),
    "builtin": Grammar(),
    "exec": Grammar("a"),
    "chroot": Grammar("", _long("userspec", "groups"), operands=1),
    "unshare": Grammar("RwSG", _long("root", "wd", "setuid", "setgid")),
    "nsenter": Grammar("tSGrw", _long("target", "setuid", "setgid")),
    "strace": Grammar("oesEuaPbIOSX", _long("output", "trace")),
    "ltrace": Grammar("oesuanlx"),
    "xargs": Grammar("IEdLnPsa", _long("arg-file", "delimiter", "max-args", "max-procs", "max-chars", "max-lines", "replace")),
    "busybox": Grammar(),
    "toybox": Grammar(),
    "caffeinate": Grammar("tw"),
    "systemd-run": Grammar("puEM", _long("property", "unit", "setenv", "slice", "uid", "gid", "working-directory")),
    "systemd-inhibit": Grammar("", _long("what", "who", "why", "mode")),
    "dbus-run-session": Grammar("", _long("config-file", "dbus-daemon")),
    "xvfb-run": Grammar("efnps", _long("server-args", "server-num", "error-file", "auth-file", "xauth-protocol")),
    "prlimit": Grammar("p", _long("pid")),
    "torsocks": Grammar(),
    "proxychains": Grammar("f"),
    "proxychains4": Grammar("f"),
    "fakeroot": Grammar("lsib"),
    "catchsegv": Grammar(),
    "rlwrap": Grammar("abcCdDefFgHilmMnNoOpPqrsStTvwz"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Inside:
    """What a command runs in its turn: other words, or code for a shell."""

    argv: tuple[str, ...] = ()
    code: str | None = None


def inside(argv: Words, *, fed: str | None = None) -> list[Inside]:
    """What the command runs in its turn. `fed` is the text on its standard input, where that can be told."""
    if not argv:
        return []
    name = argv[0].rpartition("/")[2]
    if (special := SPECIAL.get(name)) is not None:
        return special(argv, fed)
    if name in SHELLS:
        return _shell(argv, fed)
    if (grammar := WRAPPERS.get(name)) is not None:
        rest = after_options(argv, grammar)
        return [Inside(tuple(rest))] if rest else []
    return []


def after_options(argv: Words, grammar: Grammar) -> Words:
    """The words behind the options, assignments and operands of a wrapper."""
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


def reads_code(argv: Words) -> bool:
    """Whether it is a shell or an interpreter that takes its code from standard input."""
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


def reader_of(code: str) -> str | None:
    """Return the name of the program that the first line of a script names; None for a shell."""
    match = SHEBANG.match(code)
    names = [(word or "").rpartition("/")[2] for word in match.groups()] if match is not None else [""]
    name = names[-1] if names[0] == "env" else names[0]
    return None if name in SHELLS or not name else name


INTERPRETER = re.compile(
    r"python[0-9.]*|pypy3?|perl[0-9.]*|ruby[0-9.]*|node|nodejs|deno|bun|php[0-9.]*|lua[0-9.]*|tclsh|osascript|guile|Rscript"
)


def _shell(argv: Words, fed: str | None) -> list[Inside]:
    for at, word in enumerate(argv[1:], 1):
        if not word.startswith(("-", "+")):
            break
        if re.fullmatch(r"-[A-Za-z]*c[A-Za-z]*", word):
            code = next((n for n in range(at + 1, len(argv)) if not re.fullmatch(r"[-+][A-Za-z]+", argv[n])), None)
            return [Inside(code=_with_parameters(argv[code:]))] if code is not None else []
    return [Inside(code=fed)] if fed is not None and reads_code(argv) else []


def _with_parameters(operands: Words) -> str:
    """Code with the words that follow it in place of `$@`, as bash puts them."""
    if len(operands) < 3 or not re.search(r"\$[@*]", operands[0]):
        return operands[0]
    joined = " ".join(map(shlex.quote, operands[2:]))
    return re.sub(r"\"?\$[@*]\"?", lambda _: joined, operands[0])


def _eval(argv: Words, fed: str | None) -> list[Inside]:
    words = argv[2:] if argv[1:2] == ("--",) or list(argv[1:2]) == ["--"] else argv[1:]
    return [Inside(code=" ".join(words))] if words else []


def _source(argv: Words, fed: str | None) -> list[Inside]:
    return [Inside(code=fed)] if fed is not None and argv[1:2] and argv[1] in ("/dev/stdin", "-") else []


def _trap(argv: Words, fed: str | None) -> list[Inside]:
    words = [word for word in argv[1:] if word != "--"]
    return [Inside(code=words[0])] if len(words) > 1 and not words[0].startswith("-") else []


def _command(argv: Words, fed: str | None) -> list[Inside]:
    if len(argv) > 1 and re.fullmatch(r"-p?[vV]p?", argv[1]):
        return []
    rest = after_options(argv, WRAPPERS["command"])
    return [Inside(tuple(rest))] if rest else []


def _alias(argv: Words, fed: str | None) -> list[Inside]:
    return [Inside(code=word.partition("=")[2]) for word in argv[1:] if "=" in word]


def _jobs(argv: Words, fed: str | None) -> list[Inside]:
    at = next((at for at, word in enumerate(argv) if re.fullmatch(r"-[a-z]*x[a-z]*", word)), len(argv))
    return [Inside(tuple(argv[at + 1 :]))] if argv[at + 1 :] else []


def _anywhere(argv: Words, fed: str | None) -> list[Inside]:
    """For options that take one value or several: the command begins at one of the words."""
    return [Inside(tuple(argv[at:])) for at in range(1, len(argv)) if not argv[at].startswith("-")]


def _with_callback(argv: Words, fed: str | None) -> list[Inside]:
    """`compgen -C CODE`, `complete -C CODE`, `mapfile -C CODE`."""
    found = (word[2:] or next(iter(argv[at + 1 : at + 2]), "") for at, word in enumerate(argv) if word.startswith("-C"))
    return [Inside(code=code) for code in found if code]


def _coproc(argv: Words, fed: str | None) -> list[Inside]:
    return [Inside(code=re.sub(r"^\w+\s+\{", "", " ".join(argv[1:])).strip("{} ;"))]


def _env(argv: Words, fed: str | None) -> list[Inside]:
    for at, word in enumerate(argv[1:], 1):
        if word in ("-S", "--split-string") and at + 1 < len(argv):
            return [Inside(code=" ".join(argv[at + 1 :]))]
        if word.startswith(("-S", "--split-string=")):
            return [Inside(code=" ".join((word.removeprefix("--split-string=").removeprefix("-S"), *argv[at + 1 :])))]
    rest = after_options([word if word != "-" else "-i" for word in argv], WRAPPERS["env"])
    return [Inside(tuple(rest))] if rest else []


def _with_code_option(*letters: str) -> Callable[[Words, str | None], list[Inside]]:
    """For programs that take code behind an option: `su -c CODE`, `script -qc CODE`, `flock FILE -c CODE`."""

    def found(argv: Words, fed: str | None) -> list[Inside]:
        for at, word in enumerate(argv[1:], 1):
            if word.startswith(("--command=", "--session-command=")):
                return [Inside(code=word.partition("=")[2])]
            short = word.startswith("-") and not word.startswith("--") and word[-1:] in letters
            if (short or word in ("--command", "--session-command")) and at + 1 < len(argv):
                return [Inside(code=argv[at + 1])]
        return []

    return found


def _flock(argv: Words, fed: str | None) -> list[Inside]:
    rest = after_options(argv, Grammar("wE", _long("timeout", "wait", "conflict-exit-code"), operands=1))
    if rest and rest[0] in ("-c", "--command"):
        return [Inside(code=rest[1])] if len(rest) > 1 else []
    return [Inside(tuple(rest))] if rest else []


def _watch(argv: Words, fed: str | None) -> list[Inside]:
    rest = after_options(argv, Grammar("nq", _long("interval", "equexit")))
    if any(re.fullmatch(r"-[a-z]*x[a-z]*|--exec", word) for word in argv[1 : len(argv) - len(rest)]):
        return [Inside(tuple(rest))] if rest else []
    return [Inside(code=" ".join(rest))] if rest else []


def _ssh(argv: Words, fed: str | None) -> list[Inside]:
    rest = after_options(argv, Grammar("BbcDEeFIiJLlmOopQRSWw", operands=1))
    if rest:
        return [Inside(code=" ".join(rest))]
    return [Inside(code=fed)] if fed is not None else []


def _xargs(argv: Words, fed: str | None) -> list[Inside]:
    words = tuple(after_options(argv, WRAPPERS["xargs"])) or ("echo",)
    mark = next((word[2:] or argv[at + 1] for at, word in enumerate(argv[:-1]) if word.startswith("-I")), None)
    mark = mark or next((word.partition("=")[2] or "{}" for word in argv if word.startswith(("--replace", "-i"))), None)
    text = fed or ""
    items = tuple(text.split())
    # As they may be put in one by one by its options: whole lines, or what NULs part.
    lines = tuple(line.strip() for line in re.split(r"[\n\0]", text) if line.strip())
    if mark is not None:
        each = dict.fromkeys((*lines[:8], *items[:8])) or ("",)
        return [Inside(tuple(word.replace(mark, item) for word in words)) for item in each]
    apart = [Inside((*words, line)) for line in lines[:8] if line not in items]
    return [Inside((*words, *items)), *apart]


def _parallel(argv: Words, fed: str | None) -> list[Inside]:
    rest = list(
        after_options(
            argv, Grammar("jaIMnNPSuC", _long("jobs", "arg-file", "max-args", "colsep", "delay", "timeout", "joblog"))
        )
    )
    at = next((i for i, word in enumerate(rest) if word in (":::", ":::+", "::::")), None)
    words = rest[:at] if at is not None else rest
    items = [word for word in rest[at:] if not word.startswith("::")] if at is not None else (fed or "").splitlines()
    if "--" in words:
        # Another program of that name: the words behind are put to the command, or are commands themselves.
        words, items = words[: words.index("--")], words[words.index("--") + 1 :]
    if not words:
        return [Inside(code=item) for item in items[:8]]
    template = " ".join(words)
    # Each is put as one word, or, by some options, as it stands.
    puts = list(dict.fromkeys(put for item in items[:8] for put in (shlex.quote(item), item)))
    if "{}" in template:
        return [Inside(code=template.replace("{}", put)) for put in puts] or [Inside(code=template)]
    return [Inside(code=f"{template} {put}") for put in puts] or [Inside(code=template)]


def _find(argv: Words, fed: str | None) -> list[Inside]:
    found: list[Inside] = []
    for at, word in enumerate(argv):
        if word in ("-exec", "-execdir", "-ok", "-okdir"):
            end = next((i for i in range(at + 1, len(argv)) if argv[i] in (";", "+", "\\;")), len(argv))
            found.append(Inside(tuple(argv[at + 1 : end])))
    return found


def _tar(argv: Words, fed: str | None) -> list[Inside]:
    option = re.compile(
        r"--(checkpoint-action=exec|to-command|use-compress-program|info-script|new-volume-script|rsh-command|rmt-command)=(.*)",
        re.DOTALL,
    )
    found = [Inside(code=match[2]) for word in argv if (match := option.fullmatch(word)) is not None]
    return found + [Inside(code=argv[at + 1]) for at, word in enumerate(argv[:-1]) if word in ("-I", "-F")]


# Settings of git that hold a command.
RUN_BY_GIT = re.compile(
    r"alias\..*|.*\.(pager|editor|cmd|helper|command|sshcommand|driver|textconv|clean|smudge|process)", re.IGNORECASE
)


def _git(argv: Words, fed: str | None) -> list[Inside]:
    values = [argv[at + 1].partition("=")[2] for at, word in enumerate(argv[:-1]) if word == "-c"]
    execs = [argv[at + 1] for at, word in enumerate(argv[:-1]) if word in ("-x", "--exec", "--tree-filter")]
    rest = [" ".join(argv[3:])] if argv[2:3] and argv[2] in ("foreach", "run") else []
    kept = [argv[-1]] if "config" in argv[1:4] and any(map(RUN_BY_GIT.fullmatch, argv[2:-1])) else []
    return [Inside(code=value.removeprefix("!")) for value in (*values, *execs, *rest, *kept) if " " in value]


def _editor(argv: Words, fed: str | None) -> list[Inside]:
    matches = [re.match(r"\+?:?\s*(?:silent!?\s*)?!(.+)", word, re.DOTALL) for word in argv[1:]]
    return [Inside(code=match[1]) for match in matches if match is not None]


def _sed(argv: Words, fed: str | None) -> list[Inside]:
    return [Inside(code=code) for word in argv[1:] for code in re.findall(r"(?:^|[;{}\n])[\s\d$,]*e\s+([^\n]+)", word)]


def _timed(argv: Words, fed: str | None) -> list[Inside]:
    fields = r"^\s*(@\w+|(\S+\s+){5})" if argv[0].endswith("crontab") else r"^$"
    return [Inside(code=re.sub(fields, "", line)) for line in (fed or "").splitlines()[:8]]


def _make(argv: Words, fed: str | None) -> list[Inside]:
    reads = any(word in ("-f-", "--file=-", "--makefile=-") for word in argv) or ("-f" in argv and "-" in argv)
    lines = (fed or "").splitlines()[:20] if reads else []
    # `all: ; recipe` has its recipe behind the names.
    recipes = [line if line.startswith("\t") else line.partition(";")[2] for line in lines]
    return [Inside(code=recipe.strip()) for recipe in recipes if recipe.strip()]


SPECIAL: Mapping[str, Callable[[Words, str | None], list[Inside]]] = {
    "eval": _eval,
    "source": _source,
    ".": _source,
    "trap": _trap,
    "command": _command,
    "coproc": _coproc,
    "alias": _alias,
    **dict.fromkeys(("bwrap", "firejail"), _anywhere),
    "jobs": _jobs,
    **dict.fromkeys(("compgen", "complete", "mapfile", "readarray"), _with_callback),
    "env": _env,
    "su": _with_code_option("c"),
    "runuser": _with_code_option("c"),
    "script": _with_code_option("c"),
    "flock": _flock,
    "watch": _watch,
    "ssh": _ssh,
    "xargs": _xargs,
    **dict.fromkeys(("parallel", "sem"), _parallel),
    "find": _find,
    "tar": _tar,
    "git": _git,
    **dict.fromkeys(("vim", "vi", "nvim", "view", "vimdiff", "ex", "rvim", "rview"), _editor),
    "sed": _sed,
    **dict.fromkeys(("crontab", "at", "batch"), _timed),
    "make": _make,
}
