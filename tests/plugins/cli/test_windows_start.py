"""How commands are started on Windows, told from layouts of machines."""

from __future__ import annotations

import struct
from collections.abc import Mapping

import pytest

from handrail_cli.process.windows_start import (
    DETACHED,
    SUSPENDED,
    create_bash_start,
    create_cmd_line,
    create_cmd_start,
    create_windowed_start,
    find_git_bash,
    find_program_file,
    has_window_subsystem,
)

SYSTEM = r"C:\Windows\System32"
# A usual machine: the variables that count here, as its own `set` prints them.
MACHINE = {
    "ProgramFiles": r"C:\Program Files",
    "ProgramFiles(x86)": r"C:\Program Files (x86)",
    "LOCALAPPDATA": r"C:\Users\ada\AppData\Local",
    "USERPROFILE": r"C:\Users\ada",
    "ComSpec": rf"{SYSTEM}\cmd.exe",
    "PATHEXT": ".COM;.EXE;.BAT;.CMD",
    "Path": rf"{SYSTEM};C:\Windows;C:\Users\ada\AppData\Local\Microsoft\WindowsApps",
}
WSL = (rf"{SYSTEM}\bash.exe", r"C:\Users\ada\AppData\Local\Microsoft\WindowsApps\bash.exe")


class Machine(frozenset[str]):
    """Files that are there, by names that differ in nothing but case."""

    def is_file(self, path: str) -> bool:
        return path.lower() in {file.lower() for file in self}


def on_path(*folders: str) -> Mapping[str, str]:
    return {**MACHINE, "Path": ";".join([MACHINE["Path"], *folders])}


@pytest.mark.parametrize(
    ("files", "environment", "found"),
    [
        pytest.param(
            {r"C:\Program Files\Git\bin\bash.exe"}, MACHINE, r"C:\Program Files\Git\bin\bash.exe", id="installer"
        ),
        pytest.param(
            {r"C:\Users\ada\AppData\Local\Programs\Git\bin\bash.exe"},
            MACHINE,
            r"C:\Users\ada\AppData\Local\Programs\Git\bin\bash.exe",
            id="for one user",
        ),
        pytest.param(
            {r"C:\Users\ada\scoop\apps\git\current\bin\bash.exe"},
            MACHINE,
            r"C:\Users\ada\scoop\apps\git\current\bin\bash.exe",
            id="scoop",
        ),
        pytest.param(
            {r"D:\tools\Git\cmd\git.exe", r"D:\tools\Git\bin\bash.exe"},
            on_path(r"D:\tools\Git\cmd"),
            r"D:\tools\Git\bin\bash.exe",
            id="beside git on the path",
        ),
        pytest.param(
            {r"D:\tools\Git\mingw64\bin\git.exe", r"D:\tools\Git\bin\bash.exe"},
            on_path(r"D:\tools\Git\mingw64\bin"),
            r"D:\tools\Git\bin\bash.exe",
            id="beside git's own folder",
        ),
        pytest.param(
            {r"D:\msys64\usr\bin\bash.exe"}, on_path(r'"D:\msys64\usr\bin"'), r"D:\msys64\usr\bin\bash.exe", id="quoted"
        ),
        pytest.param(set(), MACHINE, None, id="only the one of WSL"),
        pytest.param({r"bin\bash.exe"}, on_path("bin", "."), None, id="a folder that depends on where one is"),
    ],
)
def test_gits_bash_is_found_and_never_the_one_that_starts_a_linux(
    files: set[str], environment: Mapping[str, str], found: str | None
) -> None:
    assert find_git_bash(environment, Machine({*files, *WSL}).is_file) == found


def test_a_command_reaches_bash_as_one_word_and_programs_get_their_paths_as_they_are() -> None:
    start = create_bash_start(r"C:\Git\bin\bash.exe", 'echo "a b" /c', r"C:\work", {"A": "b"})
    assert start.line.endswith(r'bash "echo \"a b\" /c" C:\work')
    assert start.environment == {"A": "b", "MSYS_NO_PATHCONV": "1", "MSYS2_ARG_CONV_EXCL": "*"}
    assert start.flags & SUSPENDED


def test_cmd_gets_the_rest_of_its_line_as_it_stands() -> None:
    start = create_cmd_start('dir "C:\\Program Files" & echo 100%', MACHINE)
    assert start.line == rf'{SYSTEM}\cmd.exe /d /s /v:off /c "dir "C:\Program Files" & echo 100%"'


@pytest.mark.parametrize(
    ("command", "told"),
    [("cd sub", True), ('echo "a', False), ("echo a ^", False), ('set A="b" & set C=""', True)],
)
def test_cmd_tells_what_it_leaves_only_where_that_is_no_part_of_the_command(command: str, told: bool) -> None:
    start = create_cmd_start(command, MACHINE, leaving=r"C:\Temp\x y\leave.cmd")
    assert start.rest == (rf'"{command} & call "C:\Temp\x y\leave.cmd""' if told else f'"{command}"')


def test_cmd_is_given_no_line_that_it_would_leave_out() -> None:
    with pytest.raises(ValueError, match="one line"):
        create_cmd_start("echo a\necho b", MACHINE)


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        ([r"C:\Windows\py.exe", "-m", "x"], r'"C:\Windows\py.exe" -m x'),
        ([r"C:\My Programs\a.exe", "a&b|c>d^e"], r'"C:\My Programs\a.exe" "a&b|c>d^e"'),
        (["a", "", "b c\\"], 'a "" "b c\\\\"'),
        (["a", "'"], """a "'\""""),
    ],
)
def test_the_words_of_a_program_reach_it_through_cmd_as_they_are(argv: list[str], line: str) -> None:
    assert create_cmd_line(argv) == line


@pytest.mark.parametrize("word", ["100%", 'a"b', "a\nb", "a\0"])
def test_words_that_cmd_would_change_are_refused(word: str) -> None:
    with pytest.raises(ValueError, match="as it is"):
        create_cmd_line(["a", word])


def program(subsystem: int) -> bytes:
    """The beginning of a program: a header for DOS, at 0x80 the one for Windows with its subsystem."""
    dos = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x80)
    optional = struct.pack("<H", 0x20B).ljust(68, b"\0") + struct.pack("<H", subsystem)
    return dos.ljust(0x80, b"\0") + b"PE\0\0" + b"\0" * 20 + optional + b"\0" * 40


@pytest.mark.parametrize(
    ("header", "windows"),
    [
        (program(2), True),
        (program(3), False),
        (b"MZ", False),
        (b"#!/bin/sh\n", False),
        (program(2)[:0x90], False),
        (b"", False),
    ],
)
def test_a_program_with_windows_is_told_by_its_header(header: bytes, windows: bool) -> None:
    assert has_window_subsystem(header) is windows


def test_a_program_with_windows_is_left_to_itself_and_any_other_is_waited_for() -> None:
    machine = Machine({rf"{SYSTEM}\notepad.exe", rf"{SYSTEM}\sort.exe"})
    heads = {rf"{SYSTEM}\notepad.exe": program(2), rf"{SYSTEM}\sort.exe": program(3)}
    start = create_windowed_start('notepad "my notes.txt"', MACHINE, is_file=machine.is_file, head=heads.__getitem__)
    assert start is not None
    assert (start.waited, start.flags & DETACHED) == (False, DETACHED)
    assert start.line == rf'{SYSTEM}\notepad.exe "my notes.txt"'
    assert create_windowed_start("sort", MACHINE, is_file=machine.is_file, head=heads.__getitem__) is None
    for shells in (
        "notepad & dir",
        "notepad %FILE%",
        "notepad $HOME",
        "notepad 'a'",
        "notepad a\nnotepad",
        "(notepad)",
    ):
        assert create_windowed_start(shells, MACHINE, is_file=machine.is_file, head=heads.__getitem__) is None
    assert create_windowed_start("nothing", MACHINE, is_file=machine.is_file, head=heads.__getitem__) is None


def test_programs_are_found_by_the_endings_that_the_machine_has() -> None:
    machine = Machine({rf"{SYSTEM}\where.exe", r"C:\tools\run.cmd"})
    assert find_program_file("where", MACHINE, machine.is_file) == rf"{SYSTEM}\where.exe"
    assert find_program_file(r"C:\tools\run", MACHINE, machine.is_file) == r"C:\tools\run.cmd"
    assert find_program_file("run", MACHINE, machine.is_file) is None
