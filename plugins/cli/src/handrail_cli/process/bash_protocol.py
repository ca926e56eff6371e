"""Protocol for passing a command to bash and reading the shell's working directory and variables back as data."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from handrail import Bounds
from handrail_cli.process.process_tree import MARK_VARIABLE
from handrail_cli.shell.bash import variable_rules

if TYPE_CHECKING:
    from handrail_cli.process.config import HostLimits

# A command and its folder are arguments and not part of the text, so that nothing in them (an open quote, a here-document) can reach these
# lines. All on one line, so that the shell counts the command's own lines.
PLAIN_LINES = (
    'builtin cd -- "$2" || exit 126',
    "__handrail_command=$1",
    "builtin unset OLDPWD",
    "shift 2",
    'builtin eval "$__handrail_command"',
)
# With an EXIT trap bash catches signals that end it, and a job that has just been started does so, too, until it becomes its program: it would lose
# the signal of `kill $!`. What they were is known only to a shell that has trapped them before.
RESET_TRAP_LINES = ("builtin trap : HUP ALRM TERM USR1 USR2", "builtin trap - HUP ALRM TERM USR1 USR2")
# On the way out, whatever the way, the shell says what it exports and where it is. Only builtins: nothing is started for it.
LEAVING_LINES = (
    "__handrail_leave() { local status=$?",
    "set +xv",
    '[[ $BASHPID != "$$" || ${__handrail_left-} ]] && return $status',
    "__handrail_left=1",
    r"{ builtin declare -px; builtin printf '\0'; builtin pwd; } >&STATE",
    "return $status; }",
    *RESET_TRAP_LINES,
    "builtin trap '{ __handrail_leave; } 2>/dev/null' EXIT",
    *RESET_TRAP_LINES,
)
# Where the shell writes what it leaves: a number that no script uses.
STATE_DESCRIPTOR = 250
# What is kept of a shell, in bytes: with more, the system would start no program for the session any more (128 KiB a variable, 2 MiB in all).
MAX_STATE, MAX_VALUE = 500_000, 100_000
PLAIN_SCRIPT = "; ".join(PLAIN_LINES)
# What the command starts is not given the descriptor: bash keeps it aside, closed to programs, and has it back on the way out.
CLOSED_STATE_LINES = (*PLAIN_LINES[:-1], f"{{ {PLAIN_LINES[-1]}; }} STATE>&-")
KEEPING_SCRIPT = "; ".join((*LEAVING_LINES, *CLOSED_STATE_LINES, "{ __handrail_leave; } 2>/dev/null")).replace(
    "STATE", str(STATE_DESCRIPTOR)
)
# In a sandbox with processes of its own all that is left ends with the shell: before it says anything else, it says how many processes it sees
# beside itself, what has started it, and the first one. Those that have ended and wait to be taken notice of do not count.
COUNTING_LINES = (
    "set +f; local __handrail_process __handrail_stat; local -i __handrail_running=0",
    "for __handrail_process in /proc/[0-9]*; do "
    '[[ ${__handrail_process##*/} == 1 || ${__handrail_process##*/} == "$$" || ${__handrail_process##*/} == "$PPID" ]] && continue; '
    '{ builtin read -r __handrail_stat <"$__handrail_process/stat"; } 2>/dev/null || continue; '
    "[[ ${__handrail_stat##*) } == [ZX]* ]] || __handrail_running+=1; done",
    r"""builtin printf '%d\0' "$__handrail_running" >&STATE""",
)
COUNTING_SCRIPT = KEEPING_SCRIPT.replace(
    LEAVING_LINES[3], "; ".join((LEAVING_LINES[3], *COUNTING_LINES)).replace("STATE", str(STATE_DESCRIPTOR))
)

# What the shell sets itself. It is not something that a command exported.
OWN_VARIABLES = frozenset(("_", "SHLVL", "PWD", "OLDPWD", "BASHOPTS", "SHELLOPTS", MARK_VARIABLE))
# What cmd.exe shows of its own; the first is ours.
OWN_BY_CMD = frozenset(("__handrail_code", "PROMPT", "ERRORLEVEL"))
# Git's bash has these in its own form, and gives them to other programs in theirs.
CONVERTED_VARIABLES = frozenset(("PATH", "HOME", "TMP", "TEMP", "TMPDIR"))
DRIVE_PATH = re.compile(r"/([A-Za-z])(/.*)?")
# What a sandboxed command exports under these names stays in the sandbox: later programs on the host would load or run what it says.
STAYS_INSIDE = re.compile(
    r"""(?x)
      PATH | HOME | SHELL | TMPDIR | LD_.* | DYLD_.* | BASH_.* | ENV | IFS | CDPATH | GLOBIGNORE | PS[0-4] | PROMPT_.*
    | .*PAGER | .*EDITOR | VISUAL | BROWSER | LESS.* | GIT_.* | SSH_.* | PYTHON.* | PIP_.* | UV_.* | NODE_.* | NPM_.* | npm_.*
    | PERL.* | RUBY.* | LUA_.* | PHP.* | R_.* | .*JAVA_.*OPTIONS | JAVA_HOME | .*_OPTS | MAKEFLAGS | MAKEFILES | CC | CXX | LD | AR
    | .*_WRAPPER | CARGO_.* | RUST.* | GO.* | CMAKE_.* | GCONV_PATH | LOCPATH | NLSPATH | HOSTALIASES | .*_PROXY | .*_proxy
    | XDG_.* | DOCKER_.* | KUBE.* | AWS_.* | VIRTUAL_ENV.* | CONDA.* | HANDRAIL_.* | TERMINFO.* | .*HOOKS?
    | .*(?:INIT|ASKPASS|RSH|SHELL|EXEC|PROG|PROGRAM|PLUGINS?|MODULES?|DRIVERS?|DOTDIR|PATHS) | (?:DOTNET|CORECLR|COR|COMPLUS|BUNDLE|GEM|COMPOSER|JULIA
    | ERL|ELIXIR|GST|GIO|GDK|GCC|MAGICK|NIX|SYSTEMD|VIM|NVIM|EMACS|TMUX|SCREEN|COMPILER|ELECTRON|VSCODE|CLAUDE|GEMINI|ANTHROPIC|OPENAI)_?.*
    """
)
DECLARATION = re.compile(
    rb"""declare -x[a-zA-Z]* ([A-Za-z_][A-Za-z0-9_]*)(?:="((?:[^"\\]|\\.)*)"|=\$'((?:[^'\\]|\\.)*)')?\n""", re.DOTALL
)
BACKSLASHED = re.compile(rb"\\(.)", re.DOTALL)
ESCAPE = re.compile(rb"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
ANSI = {
    b"a": b"\a",
    b"b": b"\b",
    b"e": b"\x1b",
    b"E": b"\x1b",
    b"f": b"\f",
    b"n": b"\n",
    b"r": b"\r",
    b"t": b"\t",
    b"v": b"\v",
}


def create_windows_script(state: str) -> str:
    """Return the script for Git's bash on Windows, which writes its state to the file `state`.

    No descriptors can be passed to it, hence the file. The variables it was given are written first.
    """
    file = "'" + state.replace("\\", "/").replace("'", "'\\''") + "'"
    before = rf"{{ builtin declare -px; builtin printf '\0'; }} >{file}"
    leaving = (
        line.replace("builtin pwd;", "builtin pwd -W;").replace(">&STATE", f">>{file}") for line in LEAVING_LINES
    )
    return "; ".join((before, *leaving, *PLAIN_LINES, "{ __handrail_leave; } 2>/dev/null"))


@dataclass(frozen=True, slots=True)
class ShellState:
    """State that a shell left behind: its folder, what it exports, and what it was given and exports no more.

    `dropped` are variables that it changed and that hold for its command only. `running`: processes that it left, where they end with it.
    """

    cwd: Path
    changed: Mapping[str, str]
    unset: frozenset[str]
    dropped: Mapping[str, str] = field(default_factory=dict[str, str])
    running: int = 0


def create_bash_arguments(
    command: str, cwd: Path, *, keeps: bool, limits: HostLimits | None = None, confined: bool = False
) -> list[str]:
    """Return the words that bash is started with to run a command in a folder and, if it `keeps`, to write its state to the descriptor STATE."""
    return ["bash", "-c", create_bash_script(keeps=keeps, limits=limits, confined=confined), "bash", command, str(cwd)]


def create_bash_script(*, keeps: bool, limits: HostLimits | None = None, confined: bool = False) -> str:
    """Return the lines that run a command and a folder, the shell's arguments."""
    script = (COUNTING_SCRIPT if confined else KEEPING_SCRIPT) if keeps else PLAIN_SCRIPT
    if limits is not None and (first := create_limit_commands(limits)):
        return f"{first}; {script}"
    return script


def create_limit_commands(limits: HostLimits) -> str:
    """Return the `ulimit` commands that limit a shell and everything it starts.

    If a limit cannot be set, the shell exits before it runs anything.
    """
    wanted = (
        ("v", limits.memory and limits.memory * 1024),
        # At the first one it is told which limit it was, and ended by the second.
        ("St", limits.cpu_seconds),
        ("Ht", limits.cpu_seconds and limits.cpu_seconds + 1),
        ("u", limits.processes),
        # In blocks of 1,024 bytes.
        ("f", limits.file_size and limits.file_size * 1024),
    )
    given = [f"builtin ulimit -{letters} {value} || exit 126" for letters, value in wanted if value is not None]
    return "; ".join(given)


def read_shell_state(state: int) -> bytes | None:
    """Return the bytes a shell has written to the descriptor `state`, or None if they exceed `MAX_STATE`."""
    written = os.pread(state, MAX_STATE + 1, 0)
    return written if len(written) <= MAX_STATE else None


def parse_bash_state(written: bytes, *, given: Mapping[str, str]) -> ShellState | None:
    """Return the state left by a shell that was started with the variables `given`, or None.

    None means the written state is incomplete (the shell was replaced or killed) or too large. The caller must check
    that the working directory still exists.
    """
    told, separator, folder = written.rpartition(b"\0")
    if not separator or not folder.endswith(b"\n"):
        return None
    running, _, dump = told.rpartition(b"\0")
    exported = _parse_declarations(dump)
    if exported is None or any(len(value) > MAX_VALUE for value in exported.values()):
        return None
    cwd = Path(os.fsdecode(folder[:-1]))
    if not cwd.is_absolute():
        return None
    changed = {
        name: value for name, value in exported.items() if given.get(name) != value and name not in OWN_VARIABLES
    }
    unset = frozenset(given.keys() - exported.keys() - OWN_VARIABLES)
    return ShellState(cwd, changed, unset, running=int(running) if running.isdigit() else 0)


def parse_git_bash_state(written: bytes, *, root: str, temporary: str) -> ShellState | None:
    """Return the state left by the Git bash installed under `root`, or None if it is incomplete or too large.

    Git's bash represents some variables in its own form, so the written state starts with the variables it was given.
    """
    given, _, rest = written.partition(b"\0")
    dump, separator, folder = rest.rpartition(b"\0")
    before, exported = _parse_declarations(given), _parse_declarations(dump)
    if not separator or not folder.endswith(b"\n") or before is None or exported is None:
        return None
    if any(len(value) > MAX_VALUE for value in exported.values()):
        return None
    changed = {
        name: _convert_variable(name, value, root=root, temporary=temporary)
        for name, value in exported.items()
        if before.get(name) != value and name not in OWN_VARIABLES
    }
    return ShellState(
        Path(os.fsdecode(folder[:-1])), changed, frozenset(before.keys() - exported.keys() - OWN_VARIABLES)
    )


def parse_cmd_state(written: bytes, *, given: Mapping[str, str]) -> ShellState | None:
    """Return the state left by cmd.exe, or None if it is incomplete or too large.

    It consists of one variable per line, followed by the working directory on the last line.
    """
    *lines, folder = written.decode("utf-16-le", "replace").splitlines() or [""]
    exported = dict(line.split("=", 1) for line in lines if "=" in line[1:])
    own = OWN_BY_CMD | OWN_VARIABLES
    if not lines or not folder or any(len(value) > MAX_VALUE for value in exported.values()):
        return None
    before = {name.upper(): value for name, value in given.items()}
    changed = {name: value for name, value in exported.items() if before.get(name.upper()) != value and name not in own}
    gone = before.keys() - {name.upper() for name in exported} - own
    return ShellState(Path(folder), changed, frozenset(name for name in given if name.upper() in gone))


def _convert_variable(name: str, value: str, *, root: str, temporary: str) -> str:
    """Return a variable of Git's bash in the form that other programs expect.

    Only the few variables that Git's bash itself converts contain paths in its own form.
    """
    if name not in CONVERTED_VARIABLES:
        return value
    separated = value.split(":") if name == "PATH" else [value]
    return ";".join(_convert_path(path, root=root, temporary=temporary) for path in separated)


def _convert_path(path: str, *, root: str, temporary: str) -> str:
    if (drive := DRIVE_PATH.fullmatch(path)) is not None:
        return f"{drive[1].upper()}:{(drive[2] or '/')}".replace("/", "\\")
    if path == "/tmp" or path.startswith("/tmp/"):
        return temporary + path[4:].replace("/", "\\")
    if path == "/bin" or path.startswith("/bin/"):
        path = f"/usr{path}"
    return root + path.replace("/", "\\") if path.startswith("/") else path


def filter_confined_state(left: ShellState, started_in: Path, bounds: Bounds, *, own: Container[str]) -> ShellState:
    """Return the part of a state that may leave the sandbox: a folder that is there on the host and shown inside, variables that no program obeys.

    `own`: the names of the user's own variables, whose values no sandboxed command changes.
    """
    real = os.path.realpath(left.cwd)
    shown = (*bounds.writable, *bounds.readable, Path("/usr"), Path("/tmp"), Path("/var/tmp"))
    there = left.cwd.is_dir() and any(Path(real).is_relative_to(root) for root in shown)
    changed = {
        name: value for name, value in left.changed.items() if name not in own and _is_allowed_outside(name, value)
    }
    unset = frozenset(name for name in left.unset if name not in own and not STAYS_INSIDE.fullmatch(name))
    # What every command inside is given counts as changed by none.
    given = {("HOME", str(bounds.home)), ("TMPDIR", "/tmp")}
    dropped = dict(left.changed.items() - changed.items() - given)
    return replace(
        left,
        cwd=left.cwd if there or real == "/" else started_in,
        changed=changed,
        unset=unset,
        dropped=dict(sorted((dropped | dict.fromkeys(left.unset - unset, "")).items())),
    )


def _is_allowed_outside(name: str, value: str) -> bool:
    return not STAYS_INSIDE.fullmatch(name) and variable_rules.is_harmless_value(name, value)


def _parse_declarations(dump: bytes) -> dict[str, str] | None:
    """Return the variables in the output of bash's `declare -px`; None if the output has any other form."""
    exported: dict[str, str] = {}
    at = 0
    for match in DECLARATION.finditer(dump):
        if match.start() != at:
            return None
        at = match.end()
        name, double, ansi = match.groups()
        if double is not None:
            exported[name.decode()] = os.fsdecode(BACKSLASHED.sub(rb"\1", double) if b"\\" in double else double)
        elif ansi is not None:
            exported[name.decode()] = os.fsdecode(ESCAPE.sub(_replace_escape, ansi))
    return exported if at == len(dump) else None


def _replace_escape(match: re.Match[bytes]) -> bytes:
    if match[1] is not None:
        return bytes((int(match[1], 8) & 0xFF,))
    if match[2] is not None:
        return bytes((int(match[2], 16),))
    return ANSI.get(match[3], match[3])
