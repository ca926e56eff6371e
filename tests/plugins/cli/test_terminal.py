"""Commands in a terminal: `pty` of execute_cli, and the keys of write_process."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

import handrail
from handrail import Session, ToolResult
from handrail.api.approval import Answer, Approval, Choice, yes
from handrail_cli.process.terminal_screen import TerminalScreen

Run = Callable[..., Awaitable[ToolResult]]


async def test_a_command_has_a_terminal_of_the_size_that_was_asked_for(run: Run) -> None:
    result = await run("tty -s && stty size && echo $TERM", pty="100x33")
    assert result["stdout"] == "33 100\nxterm-256color\n"
    assert result["stderr"] == ""


async def test_without_one_there_is_none(run: Run) -> None:
    result = await run("tty")
    assert (result["stdout"], result["exit_code"]) == ("not a tty\n", 1)


async def test_colours_and_progress_are_shown_as_a_person_would_see_them(run: Run) -> None:
    command = r"""printf '\033[31mred\033[0m\n'; for n in 10 50 100; do printf '\r%s%%' $n; done; echo; ls --color=always -d /"""
    assert (await run(command, pty="80x24"))["stdout"] == "red\n100%\n/\n"


async def test_a_long_output_of_a_terminal_is_kept_whole_as_text(run: Run) -> None:
    result = await run(r"for n in {1..20000}; do printf '\033[1m%s\033[0m\n' $n; done", pty="80x24")
    assert result["truncated"]
    assert Path(result["artifact"]["path"]).read_text().startswith("1\n2\n3\n")
    assert result["stdout"].startswith("1\n2\n3\n")
    assert result["stdout"].endswith("19999\n20000\n")


async def test_folder_and_variables_are_kept_from_a_terminal_too(run: Run, folder: Path) -> None:
    await run("mkdir sub; cd sub; export KEPT=1", pty="80x24")
    assert (await run("echo $KEPT $PWD"))["stdout"] == f"1 {folder}/sub\n"


async def test_a_program_reads_what_is_typed(run: Run, session: Session) -> None:
    program = "import sys; print(input('Name? ').upper(), sys.stdin.isatty())"
    id = (await run(f'{sys.executable} -c "{program}"', background=True, pty="80x24"))["process_id"]
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert (state["stdout"], state["prompt"]["text"]) == ("Name? ", "Name?")
    await session.call("write_process", {"process_id": id, "text": "ada\n"})
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert state["stdout"] == "Name? ada\nADA True\n"
    assert state["exit_code"] == 0


async def test_a_key_interrupts_what_runs(run: Run, session: Session) -> None:
    id = (await run("trap 'echo caught' INT; echo ready; sleep 71; echo after", background=True, pty="80x24"))[
        "process_id"
    ]
    await _wrote(session, id, "ready")
    await session.call("write_process", {"process_id": id, "keys": ["ctrl-c"]})
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert "caught" in state["stdout"]
    assert state["running"] is False


async def test_without_a_terminal_ctrl_c_is_a_signal_and_other_keys_are_refused(run: Run, session: Session) -> None:
    id = (await run("echo ready; sleep 71", background=True))["process_id"]
    await _wrote(session, id, "ready")
    refused = await session.call("write_process", {"process_id": id, "keys": ["up"]})
    assert refused.error_code == "invalid_arguments"
    await session.call("write_process", {"process_id": id, "keys": ["ctrl-c"]})
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert (state["running"], state["exit_code"]) == (False, -2)


async def test_the_end_of_the_input_can_be_typed(run: Run, session: Session) -> None:
    id = (await run("cat; echo end", background=True, pty="80x24"))["process_id"]
    await session.call("write_process", {"process_id": id, "text": "x\n", "end": True})
    state = await session.call("read_process", {"process_id": id, "wait": 20})
    assert state["stdout"] == "x\nx\nend\n"


async def test_a_program_that_asks_where_the_cursor_is_gets_an_answer(run: Run) -> None:
    command = r"""echo; stty -echo -icanon; printf 'ab\033[6n'; IFS= read -rd R reply; stty echo icanon; printf '<%q>\n' "$reply" """
    assert r"\E[2;3>" in (await run(command, pty="80x24", timeout=20))["stdout"].replace("'", "")


async def test_a_question_in_the_foreground_ends_after_five_seconds(run: Run) -> None:
    began = time.monotonic()
    result = await run("read -rp 'Continue? [y/N] ' answer; echo \"<$answer>\"", pty="80x24", timeout=25)
    assert 5 <= time.monotonic() - began < 20
    assert result["stdout"].endswith("<>\n")
    assert result["prompt"]["text"] == "Continue? [y/N]"


async def test_stdin_and_a_terminal_exclude_each_other(run: Run) -> None:
    assert (await run("cat", pty="80x24", stdin="x")).error_code == "invalid_arguments"
    for size in ("80 by 24", "80", "x", "0x24", "80x24\n"):
        refused = await run("cat", pty=size)
        assert refused.error_code == "invalid_arguments"
        assert (
            f"{size!r} is no size of a terminal; give columns and rows, such as 120x40" in refused["error"]["message"]
        )


async def test_a_sandboxed_command_has_its_terminal_too(folder: Path) -> None:
    (folder / "size.sh").write_text("test -t 0 && stty size\n")
    async with handrail.open(cwd=folder, confirm=yes) as session:
        result = await session.call("execute_cli", {"command": "bash size.sh", "pty": "90x20"})
        assert (result["sandbox"], result["stdout"]) == ("bubblewrap", "20 90\n")


async def _wrote(session: Session, id: str, text: str) -> None:
    deadline = time.monotonic() + 20
    seen = ""
    while text not in seen and time.monotonic() < deadline:
        seen += (await session.call("read_process", {"process_id": id}))["stdout"]
        await asyncio.sleep(0.02)
    assert text in seen


@pytest.mark.parametrize(
    ("written", "rows"),
    [
        ("a\r\nb", ["a", "b"]),
        ("abcdef\rxy", ["xycdef"]),
        ("12345678901234567890x", ["12345678901234567890", "x"]),
        ("abc\x1b[2Dx\x1b[K", ["ax"]),
        ("one\r\ntwo\x1b[1;1Hnew\x1b[2;1H", ["new", "two"]),
        ("one\r\ntwo\x1b[2J\x1b[Hx", ["x"]),
        ("a\tb\x08c", ["a       c"]),
        ("漢字x\x1b[3GY", ["漢Yx"]),
        ("e\u0301!", ["e\u0301!"]),
        ("\x1b]0;title\x07\x1b[1;31mred\x1b[m\x1b(B\x1b=", ["red"]),
        ("main\x1b[?1049h\x1b[Hother\x1b[?1049l", ["main"]),
        ("ab\x1b[1G\x1b[@x\x1b[C\x1b[P", ["xa"]),
        ("1\r\n2\r\n3\x1b[1;1H\x1b[L0", ["0", "1", "2", "3"]),
        ("1\r\n2\r\n3\x1b[1;1H\x1b[M", ["2", "3"]),
        ("-\x1b[4b", ["-----"]),
    ],
)
def test_the_screen_shows_what_a_terminal_would(written: str, rows: list[str]) -> None:
    whole, parted = TerminalScreen(20, 6), TerminalScreen(20, 6)
    whole.feed(written)
    for letter in written:
        parted.feed(letter)
    assert [row.rstrip() for row in whole.rows()] == rows
    assert parted.rows() == whole.rows()


def test_lines_that_scroll_away_are_told() -> None:
    gone: list[str] = []
    screen = TerminalScreen(10, 3, gone=gone.append)
    screen.feed("".join(f"{n}\r\n" for n in range(6)))
    assert gone == ["0", "1", "2", "3"]


PIECES = st.one_of(
    st.text(max_size=12),
    st.sampled_from(
        ["\x1b[", "\x1b[2J", "\x1b[?1049h", "\x1b[?1049l", "\x1b[3;5r", "\x1b7", "\x1b8", "\x1bM", "漢", "\u0301"]
    ),
    st.builds(
        "\x1b[{};{}{}".format,
        st.integers(0, 99_999),
        st.integers(0, 99),
        st.sampled_from("ABCDEFGHJKLMPSTX@`abcdefnrsu"),
    ),
)


@given(st.lists(PIECES, max_size=30), st.integers(1, 9), st.integers(1, 5))
def test_nothing_that_is_written_breaks_the_screen(pieces: list[str], width: int, height: int) -> None:
    screen = TerminalScreen(width, height)
    for piece in pieces:
        screen.feed(piece)
        assert len(screen.rows()) <= height


async def test_what_a_command_waits_at_is_told_when_it_is_handed_back(run: Run) -> None:
    result = await run("read -rp 'Port: ' port", pty="80x24", timeout=1, on_timeout="background")
    assert (result["prompt"]["text"], result["stdout"]) == ("Port:", "Port: ")
    assert "process_id" in result


async def test_a_person_sees_the_keys_and_the_text_before_they_are_pressed(folder: Path) -> None:
    shown: list[str] = []

    async def look(approval: Approval) -> Answer:
        shown.append(repr(approval.confirmation))
        return Answer(Choice.ONCE)

    async with handrail.open(cwd=folder, confirm=look, sandbox={"use": ["none"]}) as session:
        started = await session.call("execute_cli", {"command": "cat", "background": True, "pty": "80x24"})
        args = {"process_id": started["process_id"], "text": "my words", "keys": ["ctrl-d"]}
        await session.call("write_process", args)
    assert "my words" in shown[-1]
    assert "ctrl-d" in shown[-1]
