"""What a person sees of a run at a terminal."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pytest
from PIL import Image
from tests.gemini_server import KEY, Gemini, call, say, serving
from tests.plugins.adk.terminals import run_at_terminal
from tests.terminals import Terminal

from handrail_adk.thumbnails import TERMINAL_QUERIES, GraphicsProtocol, parse_protocol, render_thumbnail

pytestmark = pytest.mark.usefixtures("without_undo")

HIDES, SHOWS = "\x1b[?25l", "\x1b[?25h"
WRITE = [
    {"text": "I write.", "calls": [{"tool": "write_file", "args": {"file_path": "notes.txt", "content": "hello\n"}}]},
    {"text": "It is written."},
]


def test_what_goes_on_moves_below_what_is_over_and_rests_while_a_person_is_asked(tmp_path: Path) -> None:
    with run_at_terminal(tmp_path, WRITE) as terminal:
        before = terminal.wait_for("[N]o: ")
        terminal.type("y\n")
        after = terminal.wait_for("It is written.")
        code, rest = terminal.end()
    assert before.index("I write.") < before.index("may write_file")
    # The display has begun, and given the terminal back.
    assert HIDES in before
    assert before.rindex(SHOWS) > before.rindex(HIDES)
    assert "write_file: success" in after
    assert "of 600 s" in after
    assert (code, (tmp_path / "notes.txt").read_text()) == (0, "hello\n")
    assert SHOWS in rest


def test_what_the_model_says_goes_to_stdout_where_that_is_no_terminal(tmp_path: Path) -> None:
    with (
        (tmp_path / "said.txt").open("w") as file,
        run_at_terminal(tmp_path, WRITE, "--yes", stdout=file.fileno()) as terminal,
    ):
        code, shown = terminal.end()
    assert (code, (tmp_path / "said.txt").read_text()) == (0, "I write.\nIt is written.\n")
    assert "write_file: success" in shown


ASKED = "What now? An empty line, or Ctrl-C, ends the run: "
WAITS = {"tool": "wait", "args": {"seconds": 50}}


@pytest.fixture
def gemini(tmp_path: Path) -> Iterator[Gemini]:
    with serving() as server:
        config = f'[plugins.adk]\nmodel = "gemini-x"\nurl = "{server.url}"\nkey = "secret:word"\n'
        (tmp_path / "config.toml").write_text(config)
        yield server


def asks(gemini: Gemini, folder: Path) -> Terminal:
    words = ("--model", "gemini-x", "--config", str(folder / "config.toml"))
    return run_at_terminal(folder, [], *words, HANDRAIL_SECRET_WORD=KEY)


def test_ctrl_c_while_the_model_thinks_leads_to_the_person_and_the_run_goes_on_with_what_they_say(
    tmp_path: Path, gemini: Gemini
) -> None:
    gemini.hold = threading.Event()
    gemini.answers = [[say("Never heard.")], [say("It is said.")]]
    with asks(gemini, tmp_path) as terminal:
        assert gemini.held.wait(60)
        terminal.type("\x03")
        terminal.wait_for(ASKED)
        gemini.hold.set()
        terminal.type("say it instead\n")
        said = terminal.wait_for("It is said.")
        code, rest = terminal.end()
    assert code == 0, rest
    assert "Never heard" not in said
    assert gemini.faults == []
    first, second = gemini.requests
    assert "say it instead" not in str(first.contents)
    assert all(words in str(second.contents) for words in ("do it", "say it instead"))


def test_ctrl_c_stops_the_calls_of_a_step_and_the_model_learns_it_with_what_the_person_says(
    tmp_path: Path, gemini: Gemini
) -> None:
    gemini.answers = [[call("wait", seconds=50), call("wait", seconds=51)], [say("It is left.")]]
    with asks(gemini, tmp_path) as terminal:
        terminal.wait_for("seconds=50")
        terminal.wait_for("(0 s)")
        terminal.type("\x03")
        terminal.answer(ASKED, "leave it")
        terminal.wait_for("It is left.")
        code, rest = terminal.end()
    assert code == 0, rest
    assert gemini.faults == []
    _, second = gemini.requests
    answers = [part.function_response for content in second.contents for part in content.parts or []]
    assert [(each.response or {})["status"] for each in answers if each] == ["cancelled", "cancelled"]
    assert "leave it" in str(second.contents)


@pytest.mark.parametrize("typed", ["\n", "\x03"], ids=["nothing", "ctrl-c"])
def test_who_says_nothing_after_ctrl_c_has_ended_the_run(tmp_path: Path, typed: str) -> None:
    with run_at_terminal(tmp_path, [{"calls": [WAITS]}, {"text": "Went on."}]) as terminal:
        terminal.wait_for("seconds=50")
        terminal.wait_for("(0 s)")
        terminal.type("\x03")
        before = terminal.wait_for(ASKED)
        terminal.type(typed)
        code, rest = terminal.end()
    assert code == 130, rest
    assert "cancelled in" in before
    assert "the task is not done (stopped)" in before
    assert SHOWS in before
    assert "Went on." not in rest


def test_what_a_file_is_called_cannot_move_the_cursor(tmp_path: Path) -> None:
    steps = [{"text": "a\x1b[2Jb", "calls": [{"tool": "read_file", "args": {"file_path": "x\x1b[2Jy"}}]}]
    with run_at_terminal(tmp_path, steps) as terminal:
        _, shown = terminal.end()
    assert "a\\x1b[2Jb" in shown
    assert "\x1b[2J" not in shown


@pytest.fixture
def picture(tmp_path: Path) -> Path:
    file = tmp_path / "picture.png"
    Image.new("RGB", (600, 300), "red").save(file)
    return file


@pytest.mark.parametrize(
    ("kind", "begins"),
    [
        pytest.param(b"\x1b_Gi=31;OK\x1b\\\x1b[?62;22c", "\x1b_Gf=100,a=T", id="kitty"),
        pytest.param(b"\x1b[?62;22c", None, id="none"),
    ],
)
def test_pictures_of_results_are_shown_where_the_terminal_says_it_can(
    tmp_path: Path, picture: Path, kind: bytes, begins: str | None
) -> None:
    steps = [{"calls": [{"tool": "read_file", "args": {"file_path": picture.name}}]}]
    with run_at_terminal(tmp_path, steps, kind=kind) as terminal:
        code, shown = terminal.end()
    assert code == 0, shown
    shown = shown.replace(TERMINAL_QUERIES.decode(), "")
    assert (begins in shown) if begins else ("\x1b_G" not in shown)


@pytest.mark.parametrize(
    ("answer", "way"),
    [
        (b"\x1b_Gi=31;OK\x1b\\\x1b[?62;c", "kitty"),
        (b"\x1b]1337;ReportCellSize=16.0;8.0;2.0\x1b\\\x1b[?62;4c", "iterm"),
        (b"\x1b[?62;4;22c", "sixel"),
        (b"\x1b[?64;22;42c", None),
        (b"\x1b_Gi=31;ENOTSUPPORTED:no\x1b\\\x1b[?6c", None),
        (b"", None),
    ],
)
def test_a_terminal_says_itself_what_it_can_show(answer: bytes, way: GraphicsProtocol | None) -> None:
    assert parse_protocol(answer) == way


def test_each_way_sends_the_picture_small() -> None:
    file = BytesIO()
    Image.radial_gradient("L").resize((960, 720)).convert("RGB").save(file, "PNG")
    kitty, iterm, sixel = (render_thumbnail(file.getvalue(), way) for way in ("kitty", "iterm", "sixel"))
    pieces = re.findall(rb"\x1b_G([^;]*);([^\x1b]*)\x1b\\", kitty)
    assert [keys[-3:] for keys, _ in pieces] == [b"m=1"] * (len(pieces) - 1) + [b"m=0"]
    assert all(len(text) <= 4096 for _, text in pieces)
    assert iterm.startswith(b"\x1b]1337;File=inline=1;")
    assert sixel.startswith(b'\x1bPq"1;1;240;180#0;2;')


def test_sixels_are_the_pixels() -> None:
    file = BytesIO()
    picture = Image.new("RGB", (4, 7), (255, 0, 0))
    picture.putpixel((1, 6), (0, 0, 255))
    picture.save(file, "PNG")
    data = render_thumbnail(file.getvalue(), "sixel").decode()
    colours = dict(re.findall(r"#(\d+);2;(\d+;\d+;\d+)", data))
    first, second = re.sub(r"#\d+;2;\d+;\d+;\d+", "", data).split("7#", 1)[1].split("-")[:2]
    red, blue = (next(n for n, rgb in colours.items() if rgb == want) for want in ("100;0;0", "0;0;100"))
    # Six rows of red; then one in which the second is blue.
    assert f"#{first}" == f"#{red}~~~~$"
    assert set(second.rstrip("$").split("$")) == {f"#{red}@?@@", f"#{blue}?@??"}


def test_what_is_no_picture_is_not_shown() -> None:
    with pytest.raises(OSError, match="cannot identify"):
        render_thumbnail(os.urandom(50), "kitty")
