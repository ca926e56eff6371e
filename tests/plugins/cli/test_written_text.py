"""Text for a running command is judged with all text that the command was given before: by each write alone, a floor could be passed in pieces."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail import Session, ToolResult
from handrail.testing import ScriptedConfirmer

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="bash -i on a pipe or terminal of Unix")
KEY = "zq4471-in-netrc"


@asynccontextmanager
async def permissive_shell(root: Path, *, yes: int = 0, **started: Any) -> AsyncGenerator[tuple[Session, str]]:
    """A session in permissive mode with an interactive bash on the host, which a person approved; that many more questions are answered with yes."""
    home, work = root / "home", root / "home" / "work"
    work.mkdir(parents=True)
    (home / ".netrc").write_text(f"machine example.org password {KEY}\n")
    person = ScriptedConfirmer(*["once"] * (1 + yes))
    environment = {**os.environ, "HOME": str(home)}
    async with handrail.open(cwd=work, confirm=person, mode="permissive", environment=environment) as session:
        command = {"command": "bash --norc -i", "background": True, **started}
        id = (await session.call("execute_cli", command))["process_id"]
        await session.call("read_process", {"process_id": id, "wait": 10})
        yield session, id


async def write(session: Session, id: str, *texts: str) -> list[ToolResult]:
    """The results of writing these texts, one call after the other."""
    return [await session.call("write_process", {"process_id": id, "text": text}) for text in texts]


async def press(session: Session, id: str, *keys: str) -> ToolResult:
    return await session.call("write_process", {"process_id": id, "keys": list(keys)})


async def shown_by(session: Session, id: str) -> str:
    # What must not come cannot be waited for.
    await asyncio.sleep(0.5)
    state = await session.call("read_process", {"process_id": id})
    return state["stdout"] + state["stderr"]


@pytest.mark.parametrize(
    ("texts", "yes"),
    [
        (("cat ~/.ne", "trc\n"), 0),
        (("x=~/.ne", "trc\n", "cat $x\n"), 0),
        (("cd ~\n", "cat .netrc\n"), 0),
        (("read x\n: '\ncat ~/.netrc # '\n",), 0),
        (("read x\n", ": ../.netrc\n", "cat ${x#: }\n"), 0),
        # The first of these is asked about, as it is no whole command.
        (("cat ~/.ne\\\n", "trc\n"), 1),
        (('cat "$HOME/', '.netrc"\n'), 1),
        (("cat <<E >/dev/null\n", "E\ncat ~/.netrc\n"), 1),
    ],
)
@pytest.mark.parametrize("started", [{}, {"pty": "80x24"}], ids=["pipe", "terminal"])
async def test_a_command_that_is_written_in_pieces_meets_the_floor_of_the_whole(
    texts: Sequence[str], yes: int, started: dict[str, Any], tmp_path: Path
) -> None:
    async with permissive_shell(tmp_path, yes=yes, **started) as (session, id):
        *begun, ended = await write(session, id, *texts)
        assert all(result.ok for result in begun)
        assert ended["status"] == "denied"
        assert KEY not in await shown_by(session, id)


async def test_a_catastrophe_in_pieces_is_denied_whatever_anybody_says(tmp_path: Path) -> None:
    async with permissive_shell(tmp_path, yes=5) as (session, id):
        begun, ended = await write(session, id, "rm -r", "f ~\n")
        assert begun.ok
        assert ended["status"] == "denied"
        assert (tmp_path / "home" / ".netrc").exists()


async def test_standard_input_that_a_command_was_started_with_is_judged_with_what_follows(tmp_path: Path) -> None:
    async with permissive_shell(tmp_path, stdin="cat ~/.ne") as (session, id):
        (result,) = await write(session, id, "trc\n")
        assert not result.ok
        assert KEY not in await shown_by(session, id)


async def test_two_writes_at_once_are_not_judged_as_if_each_were_alone(tmp_path: Path) -> None:
    async with permissive_shell(tmp_path) as (session, id):
        calls = [{"process_id": id, "text": text} for text in ("cat ~/.ne", "trc\n")]
        results = await asyncio.gather(*(session.call("write_process", call) for call in calls))
        assert not all(result.ok for result in results)
        assert KEY not in await shown_by(session, id)


@pytest.mark.parametrize("key", ["backspace", "left", "up", "ctrl-r", "ctrl-w", "ctrl-u", "ctrl-a", "tab", "ctrl-v"])
async def test_a_key_that_edits_or_recalls_is_asked_about_and_so_is_everything_after_it(
    key: str, tmp_path: Path
) -> None:
    async with permissive_shell(tmp_path, yes=1, pty="80x24") as (session, id):
        assert (await press(session, id, key)).ok
        for text in ("\n", "echo a\n"):
            (result,) = await write(session, id, text)
            assert result["status"] == "denied"
            assert "keys or control characters" in result["error"]["message"]


@pytest.mark.parametrize("text", ["\t", "\x12", "\x1b[A", "caf\u00e9", "!cat\n", "^a^b^\n"])
async def test_text_that_a_shell_takes_for_keys_or_history_is_asked_about(text: str, tmp_path: Path) -> None:
    async with permissive_shell(tmp_path) as (session, id):
        (result,) = await write(session, id, text)
        assert result["status"] == "denied"


@pytest.mark.parametrize("text", ["histchars=@^\n", "printf -v histchars @^\n", "read histchars\n"])
async def test_what_changes_how_later_lines_are_read_is_asked_about(text: str, tmp_path: Path) -> None:
    async with permissive_shell(tmp_path) as (session, id):
        (result,) = await write(session, id, text)
        assert result["status"] == "denied"


@pytest.mark.parametrize("text", ["bash run.sh\n", ". ./run.sh\n", "make\n"])
async def test_code_that_would_run_in_no_sandbox_is_asked_about(text: str, tmp_path: Path) -> None:
    async with permissive_shell(tmp_path) as (session, id):
        (tmp_path / "home" / "work" / "run.sh").write_text("cat ~/.netrc\n")
        (result,) = await write(session, id, text)
        assert result["status"] == "denied"
        assert KEY not in await shown_by(session, id)


async def test_an_interrupt_is_a_new_line_only_where_no_quote_is_open(tmp_path: Path) -> None:
    async with permissive_shell(tmp_path, yes=1, pty="80x24") as (session, id):
        assert (await press(session, id, "ctrl-c")).ok
        assert all(result.ok for result in await write(session, id, "echo a\n", ": '\n"))
        assert not (await press(session, id, "ctrl-c")).ok


async def test_ordinary_lines_and_answers_go_on_unasked(tmp_path: Path) -> None:
    texts = ("echo a\n", "y\n", "ls", "\n", "x=1; echo $x\n", "touch made\n", "Ada Lovelace\n")
    async with permissive_shell(tmp_path) as (session, id):
        assert all(result.ok for result in await write(session, id, *texts))
        assert (await press(session, id, "enter")).ok


async def test_beyond_what_is_judged_together_everything_is_asked_about(tmp_path: Path) -> None:
    async with permissive_shell(tmp_path) as (session, id):
        assert all(result.ok for result in await write(session, id, *[f"echo {'a' * 3_000}\n"] * 3))
        long, short = await write(session, id, f"echo {'a' * 3_000}\n", "echo a\n")
        assert not long.ok
        # What was not written does not count.
        assert short.ok
