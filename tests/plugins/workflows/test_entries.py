"""Programs found by their desktop entries, of whichever package system, and started as those say."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from handrail_workflows.desktop_entries import DesktopEntry, find_entries, read_all_entries

from .conftest import Agent

# Says how it was started, and then is a program with a window.
STUB = """#!{python}
import json, os, sys
with open({log!r}, "a") as log:
    log.write(json.dumps(sys.argv) + "\\n")
os.execvp("galculator", ["galculator"])
"""
GIMP = """[Desktop Entry]
Type=Application
Name[de]=Bildbearbeitung
Name=GNU Image Manipulation Program
Exec=/usr/bin/env flatpak run --branch=stable --arch=x86_64 --command=gimp-2.10 --file-forwarding org.gimp.GIMP @@u %U @@
Icon=org.gimp.GIMP
MimeType=image/x-xcf;
X-Flatpak=org.gimp.GIMP
"""
SNAP = """[Desktop Entry]
Type=Application
Name=Notes
Exec=env BAMF_DESKTOP_FILE_HINT=/var/lib/snapd/desktop/applications/notes_notes.desktop {runner} %U
X-SnapInstanceName=notes
"""

Write = Callable[..., list[DesktopEntry]]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Folders of entries that hold only what a test writes."""
    return {
        "HOME": str(tmp_path / "home"),
        "XDG_DATA_HOME": str(tmp_path / "data"),
        "XDG_DATA_DIRS": str(tmp_path / "shared"),
        "XDG_CURRENT_DESKTOP": "XFCE",
        "LANG": "de_AT.UTF-8",
        "PATH": os.environ["PATH"],
    }


@pytest.fixture
def write(tmp_path: Path, environment: dict[str, str]) -> Write:
    """Writes one entry and gives those that are found."""

    def put(text: str, id: str = "one", folder: str = "shared/applications") -> list[DesktopEntry]:
        path = tmp_path / folder / f"{id}.desktop"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if text.startswith("[") else f"[Desktop Entry]\nType=Application\nName=One\n{text}\n")
        return read_all_entries(environment)

    return put


@pytest.mark.parametrize(
    ("command", "args", "argv"),
    [
        pytest.param("edit %F", ["a b", "c"], ["edit", "a b", "c"], id="files"),
        pytest.param("edit", ["a"], ["edit", "a"], id="no-place"),
        pytest.param("edit --file=%f --new", ["a"], ["edit", "--file=a", "--new"], id="within-a-word"),
        pytest.param("edit --file=%f --new", [], ["edit", "--new"], id="within-a-word-and-nothing-to-put"),
        pytest.param(
            "edit %i --title %c %k", [], ["edit", "--icon", "pen", "--title", "Eins", "{path}"], id="of-itself"
        ),
        pytest.param("edit %d %m --width=100%%", [], ["edit", "--width=100%"], id="old-codes-and-percent"),
        pytest.param(r'sh -c "echo \\$HOME \\"a b\\""', [], ["sh", "-c", 'echo $HOME "a b"'], id="quotes"),
        pytest.param(r'edit "C:\\\\a\\sb" c\sd', [], ["edit", r"C:\a\sb", "c", "d"], id="backslashes"),
    ],
)
def test_a_command_is_expanded_as_the_standard_says(
    write: Write, tmp_path: Path, command: str, args: Sequence[str], argv: Sequence[str]
) -> None:
    (entry,) = write(f"Name[de]=Eins\nIcon=pen\nExec={command}")
    path = str(tmp_path / "shared/applications/one.desktop")
    assert entry.command.argv(args) == [word.format(path=path) if "{" in word else word for word in argv]


def test_a_sandbox_is_told_which_words_are_files(write: Write, tmp_path: Path) -> None:
    (entry,) = write(GIMP, "org.gimp.GIMP", "data/flatpak/exports/share/applications")
    picture = tmp_path / "a b.xcf"
    picture.touch()
    start = entry.command.argv()
    assert start[-1] == "org.gimp.GIMP"
    assert entry.command.argv(["--no-splash", str(picture)]) == [
        *start,
        "--no-splash",
        "@@u",
        f"file://{tmp_path}/a%20b.xcf",
        "@@",
    ]


@pytest.mark.parametrize(
    "name", ["org.gimp.GIMP", "gimp", "GNU image manipulation program", "bildbearbeitung", "gimp-2.10"]
)
def test_a_sandboxed_program_has_the_name_of_what_runs_inside(write: Write, name: str) -> None:
    found = write(GIMP, "org.gimp.GIMP", "data/flatpak/exports/share/applications")
    assert [entry.id for entry in find_entries(found, name)] == ["org.gimp.GIMP"]
    assert find_entries(found, "flatpak") == []


def test_what_is_hidden_or_for_another_desktop_is_found_by_its_whole_name_only(write: Write) -> None:
    write("Exec=true\nHidden=true", "gone", "data/applications")
    write("Exec=true", "gone")
    write("Exec=true\nNoDisplay=true\nName=Secret Settings", "secret")
    write("Exec=true\nOnlyShowIn=GNOME;\nName=Settings", "gnome-settings")
    found = write("Exec=true\nOnlyShowIn=GNOME;XFCE;\nName=Settings", "xfce-settings")
    assert find_entries(found, "gone") == []
    assert [entry.id for entry in find_entries(found, "settings")] == ["xfce-settings"]
    assert find_entries(found, "secret sett") == []
    assert [entry.id for entry in find_entries(found, "secret settings")] == ["secret"]
    assert [entry.id for entry in find_entries(found, "gnome-settings")] == ["gnome-settings"]


def test_of_two_that_fit_the_one_that_can_be_started_is_taken(write: Write) -> None:
    write("Exec=true\nTryExec=no-such-program", "old")
    found = write("Exec=true", "new")
    assert [entry.id for entry in find_entries(found, "one")] == ["new"]


def test_a_program_that_only_the_bus_starts_is_started_by_it(write: Write) -> None:
    (entry,) = write("DBusActivatable=true", "org.example.Clocks")
    assert entry.command.argv(["a"]) == ["gapplication", "launch", "org.example.Clocks", "a"]
    assert entry.program == "Clocks"


@pytest.mark.parametrize("command", ["A=1", "A=1 B=2", "="])
def test_what_sets_variables_and_starts_nothing_is_no_program(write: Write, command: str) -> None:
    assert write(f"Exec={command}") == []


def test_a_pipe_and_what_is_too_long_are_no_entries(write: Write, tmp_path: Path) -> None:
    folder = tmp_path / "shared/applications"
    folder.mkdir(parents=True)
    os.mkfifo(folder / "pipe.desktop")
    write("Exec=edit " + "a " * 2**17, "long")
    assert [entry.id for entry in write("Exec=edit")] == ["one"]


def test_actions_are_found_by_their_names(write: Write) -> None:
    action = "[Desktop Action private]\nName=New Private Window\nName[tr]=Gizli Pencere Aç\nExec=browser --private %u\n"
    found = write(f"[Desktop Entry]\nType=Application\nName=Browser\nExec=browser\nActions=private;gone;\n{action}")
    for name in ("new private window", "GİZLİ PENCERE AÇ", "one:private"):
        assert [entry.command.argv() for entry in find_entries(found, name)] == [["browser", "--private"]]
    assert [entry.command.argv() for entry in find_entries(found, "browser")] == [["browser"]]


async def export(agent: Agent, **variables: str) -> None:
    said = " ".join(f"{name}={shlex.quote(value)}" for name, value in variables.items())
    await agent("execute_cli", command=f"export {said}")


async def test_a_flatpak_and_a_snap_are_started_by_their_runners_or_these_are_said_to_be_missing(
    agent: Agent, tmp_path: Path
) -> None:
    """The programs are outside the workspace: what is inside it runs in the sandbox."""
    exported, snaps = tmp_path / "data/flatpak/exports/share/applications", tmp_path / "snapd"
    programs = tmp_path / "bin"
    for place in (exported, snaps / "applications", programs):
        place.mkdir(parents=True)
    log, picture = tmp_path / "log", tmp_path / "bild.xcf"
    picture.touch()
    (exported / "org.gimp.GIMP.desktop").write_text(GIMP)
    (snaps / "applications/notes_notes.desktop").write_text(SNAP.format(runner=programs / "notes"))
    folders = {"XDG_DATA_HOME": str(tmp_path / "data"), "XDG_DATA_DIRS": f"/usr/share:{snaps}"}
    await export(agent, PATH=str(programs), **folders)
    error = await agent.fails("launch_app", app_name="gimp")
    assert "'flatpak', which is not installed" in error["message"]
    assert "notes'" in (await agent.fails("launch_app", app_name="notes"))["message"]
    for name in ("flatpak", "notes"):
        (programs / name).write_text(STUB.format(python=sys.executable, log=str(log)))
        (programs / name).chmod(0o755)
    await export(agent, PATH=f"{programs}:{os.environ['PATH']}")
    started = await agent("launch_app", app_name="Bildbearbeitung", args=[str(picture)])
    assert (started["found_as"], started["window_title"]) == ("org.gimp.GIMP", "galculator")
    assert (await agent("close_app", app_name=started["window_id"]))["how"] == "asked"
    assert (await agent("launch_app", app_name="notes"))["found_as"] == "notes_notes"
    flatpak, snap = map(json.loads, log.read_text().splitlines())
    assert flatpak[1:] == [
        *("run", "--branch=stable", "--arch=x86_64", "--command=gimp-2.10", "--file-forwarding", "org.gimp.GIMP"),
        *("@@u", picture.as_uri(), "@@"),
    ]
    assert snap == [str(programs / "notes")]
