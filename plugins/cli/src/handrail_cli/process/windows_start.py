"""Construction of command starts on Windows: Git's bash if installed, else cmd.exe; windowed programs directly.

This module accesses the system only through its parameters, which allows recorded machine layouts to replace it. It
determines the arguments of CreateProcess; the caller puts the process into a job object (`sandboxes.windows_job`)
before it runs.
"""

from __future__ import annotations

import ntpath
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from handrail_cli.process.bash_protocol import PLAIN_SCRIPT, create_windows_script

IsFile = Callable[[str], bool]

# winbase.h: a group of its own that ctrl-break reaches, no console window, and nothing run before it is in its job.
NEW_GROUP, NO_WINDOW, SUSPENDED, DETACHED = 0x200, 0x0800_0000, 0x4, 0x8
# Where Git for Windows is installed, below folders that the environment names.
USUAL_BASH_PATHS = (
    ("ProgramFiles", r"Git\bin\bash.exe"),
    ("ProgramW6432", r"Git\bin\bash.exe"),
    ("ProgramFiles(x86)", r"Git\bin\bash.exe"),
    ("LocalAppData", r"Programs\Git\bin\bash.exe"),
    ("SCOOP", r"apps\git\current\bin\bash.exe"),
    ("USERPROFILE", r"scoop\apps\git\current\bin\bash.exe"),
    ("ChocolateyInstall", r"lib\git.portable\tools\bin\bash.exe"),
)
# Of these folders bash.exe starts a Linux of its own (WSL), with other files and other programs.
WSL_FOLDERS = ("system32", "sysnative", "syswow64", "windowsapps")
# From Git's git.exe to its bash.exe: it lies in cmd, bin or mingw64\bin.
BESIDE_GIT = (r"..\bin\bash.exe", r"..\..\bin\bash.exe", r"..\usr\bin\bash.exe")
# Git's bash would turn what looks like a path in the words of a program into another: `/c` of `cmd /c`, and keys of the registry.
NO_CONVERSION = {"MSYS_NO_PATHCONV": "1", "MSYS2_ARG_CONV_EXCL": "*"}
# Of the header of a program: where the offset of its part for Windows stands, that part's mark, and where from there its subsystem stands.
# https://learn.microsoft.com/windows/win32/debug/pe-format
OFFSET_AT, PE_SIGNATURE, SUBSYSTEM_AT, WINDOWED_SUBSYSTEM = 0x3C, b"PE\0\0", 24 + 68, 2
HEADER_BYTES = 4_096
DEFAULT_EXTENSIONS = ".COM;.EXE;.BAT;.CMD"
PLAIN_WORD = re.compile(r'[\w:./+,=@-]+|"[\w:./+,=@ -]+"')
# What cmd.exe reads between quotation marks, too.
UNQUOTABLE_CHARACTER = re.compile(r'["%\r\n\0]')
PLAIN_COMMAND = re.compile(rf"(?:{PLAIN_WORD.pattern})(?: +(?:{PLAIN_WORD.pattern}))*")


@dataclass(frozen=True, slots=True)
class ProcessStart:
    """Arguments of CreateProcess: `words`, then `rest` of the line verbatim. `waited`: False for a windowed program."""

    words: tuple[str, ...]
    environment: Mapping[str, str]
    rest: str = ""
    flags: int = NEW_GROUP | NO_WINDOW | SUSPENDED
    waited: bool = True

    @property
    def line(self) -> str:
        """The command line."""
        return " ".join(filter(None, (subprocess.list2cmdline(self.words), self.rest)))


def find_git_bash(environment: Mapping[str, str], is_file: IsFile) -> str | None:
    """Return the path of Git's bash.exe, or None.

    Searched are its usual locations, the directory of the git.exe on the PATH, and the PATH; the bash.exe of WSL is
    never returned.
    """
    return next((place for place in _iter_bash_paths(environment, is_file) if is_file(place)), None)


def _iter_bash_paths(environment: Mapping[str, str], is_file: IsFile) -> Iterator[str]:
    given = {name.upper(): value for name, value in environment.items()}
    for name, below in USUAL_BASH_PATHS:
        if folder := given.get(name.upper()):
            yield ntpath.join(folder, below)
    folders = [folder.strip('"') for folder in given.get("PATH", "").split(";") if ntpath.isabs(folder.strip('"'))]
    for folder in folders:
        if is_file(ntpath.join(folder, "git.exe")):
            yield from (ntpath.normpath(ntpath.join(folder, way)) for way in BESIDE_GIT)
    yield from (ntpath.join(folder, "bash.exe") for folder in folders if not _is_wsl_folder(folder))


def _is_wsl_folder(folder: str) -> bool:
    return any(part in WSL_FOLDERS for part in ntpath.normpath(folder).lower().split("\\"))


def create_bash_start(
    bash: str, command: str, cwd: str, environment: Mapping[str, str], *, state: str | None = None
) -> ProcessStart:
    """Return the start of a command by Git's bash, which passes words to programs unchanged.

    With `state`, it writes the state it leaves to that file.
    """
    script = PLAIN_SCRIPT if state is None else create_windows_script(state)
    return ProcessStart((bash, "-c", script, "bash", command, cwd), {**environment, **NO_CONVERSION})


def create_cmd_start(command: str, environment: Mapping[str, str], *, leaving: str | None = None) -> ProcessStart:
    """Return the start of a command by cmd.exe, which takes the text between the outer quotation marks verbatim.

    `leaving` is a batch file to run after the command. Raises ValueError for more than one line: cmd.exe would run the
    first and silently ignore the others.
    """
    command = command.strip()
    if "\n" in command:
        raise ValueError("cmd.exe runs one line; install Git for Windows for more, or join the lines with &&")
    # Behind an open quotation mark, or a line that goes on, it would be a part of the command.
    if leaving is not None and command.count('"') % 2 == 0 and not command.endswith("^"):
        command = f'{command} & call "{leaving}"'
    given = {name.upper(): value for name, value in environment.items()}
    program = given.get("COMSPEC") or ntpath.join(given.get("SYSTEMROOT", r"C:\Windows"), "System32", "cmd.exe")
    return ProcessStart((program, "/d", "/s", "/v:off", "/c"), dict(environment), f'"{command}"')


def create_cmd_line(argv: Sequence[str]) -> str:
    """Return the command by which cmd.exe starts a program with these words.

    Raises ValueError for a word that cmd.exe would change.
    """
    for word in argv:
        if (sign := UNQUOTABLE_CHARACTER.search(word)) is not None:
            raise ValueError(f"cmd.exe would not give {word!r} to a program as it is: it has {sign[0]!r} in it")
    return " ".join(word if PLAIN_WORD.fullmatch(word) else _quote_word(word) for word in argv)


def _quote_word(word: str) -> str:
    # Between the marks cmd.exe takes every sign as it is; of backslashes before the last mark the program makes half as many.
    backslashes = len(word) - len(word.rstrip("\\"))
    return '"' + word + backslashes * "\\" + '"'


def create_cmd_state_script(state: str) -> str:
    """Return a batch script that writes the variables and working directory of cmd.exe to `state`, in UTF-16.

    It preserves the exit code of the preceding command.
    """
    lines = (
        "@echo off",
        "set __handrail_code=%errorlevel%",
        f'"%ComSpec%" /d /u /c set >"{state}"',
        f'"%ComSpec%" /d /u /c cd >>"{state}"',
        "exit /b %__handrail_code%",
    )
    return "\r\n".join((*lines, ""))


def create_windowed_start(
    command: str, environment: Mapping[str, str], *, is_file: IsFile, head: Callable[[str], bytes]
) -> ProcessStart | None:
    """Return the direct start of a command that is a windowed program; None for any other, which a shell must run.

    `head` returns the first bytes of a file. The program's header specifies its kind, which makes a list of names
    unnecessary.
    """
    words = split_plain_words(command)
    program = find_program_file(words[0], environment, is_file) if words else None
    if program is None or not has_window_subsystem(head(program)):
        return None
    return ProcessStart((program, *words[1:]), dict(environment), flags=DETACHED | NEW_GROUP | SUSPENDED, waited=False)


def split_plain_words(command: str) -> tuple[str, ...]:
    """Return the words of a command that bash and cmd.exe read identically.

    Empty for a command with any character that is special to either.
    """
    if PLAIN_COMMAND.fullmatch(command.strip()) is None:
        return ()
    return tuple(word.strip('"') for word in PLAIN_WORD.findall(command))


def find_program_file(name: str, environment: Mapping[str, str], is_file: IsFile) -> str | None:
    """Return the file that a program name refers to, or None.

    The name is tried as given or in the directories of the PATH, with the file extensions of programs.
    """
    given = {key.upper(): value for key, value in environment.items()}
    endings = ["", *given.get("PATHEXT", DEFAULT_EXTENSIONS).lower().split(";")]
    folders = [""] if ntpath.dirname(name) else given.get("PATH", "").split(";")
    tried = (ntpath.join(folder.strip('"'), name) + ending for folder in folders for ending in endings)
    return next(
        (place for place in tried if ntpath.isabs(place) and place[-4:].lower() in endings and is_file(place)), None
    )


def has_window_subsystem(header: bytes) -> bool:
    """Return True if the header of a program specifies windows and no console."""
    if header[:2] != b"MZ" or len(header) < OFFSET_AT + 4:
        return False
    at = int.from_bytes(header[OFFSET_AT : OFFSET_AT + 4], "little")
    if header[at : at + 4] != PE_SIGNATURE:
        return False
    return int.from_bytes(header[at + SUBSYSTEM_AT : at + SUBSYSTEM_AT + 2], "little") == WINDOWED_SUBSYSTEM
