"""The audit: what it promises, and what it notices."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from handrail import HandrailError, Write, tool
from handrail.audit.writer import AuditWriter, list_parts, verify_audit
from handrail.testing import open_test_session


@tool()
async def echo(text: str = "", password: str = "") -> dict[str, Any]:
    """Return the text."""
    return {"text": text}


@tool(effects=[Write("settings")])
async def change() -> None:
    """Change."""


async def written(folder: Path, *calls: tuple[str, dict[str, Any]]) -> Path:
    async with open_test_session(tools=[echo, change], folder=folder) as session:
        for name, args in calls:
            await session.call(name, args)
    return session.runtime.places.audit / f"{session.id}.jsonl"


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """An audit file of a few lines, whole."""
    path = tmp_path / "a.jsonl"
    audit = AuditWriter(path, session="s")
    for number in range(4):
        audit.write("call", {"call_id": f"c{number}", "tool": "echo", "args": {"n": number}})
        audit.write("result", {"call_id": f"c{number}", "tool": "echo", "status": "success"})
    audit.close()
    return path


async def test_a_session_leaves_a_line_before_and_after_each_call(tmp_path: Path) -> None:
    path = await written(tmp_path, ("echo", {"text": "hello"}), ("change", {}), ("nobody", {"x": 1}))
    found = verify_audit(path)
    assert found.ok
    assert found.ended
    assert not found.notes
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [line["event"] for line in lines] == ["session", "call", "result", "call", "result", "result", "end"]
    assert (lines[1]["tool"], lines[1]["args"], lines[1]["decision"]) == ("echo", {"text": "hello"}, "allow")
    assert (lines[3]["decision"], lines[4]["status"]) == ("deny", "denied")
    assert (lines[5]["status"], lines[5]["args"]) == ("error", {"x": 1})


async def test_the_file_is_its_owners_alone(tmp_path: Path) -> None:
    path = await written(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_it_can_be_turned_off(tmp_path: Path) -> None:
    async with open_test_session(tools=[echo], settings={"audit": {"enabled": False}}, folder=tmp_path) as session:
        assert (await session.call("echo")).ok
    assert not list(tmp_path.rglob("*.jsonl"))


async def test_secrets_are_redacted_wherever_they_stand(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2" * 9
    path = await written(tmp_path, ("echo", {"text": f"use {token} now", "password": "hunter2"}))
    text = path.read_text()
    assert token not in text
    assert "hunter2" not in text
    assert "[redacted]" in text
    assert verify_audit(path).ok


async def test_long_texts_are_cut(tmp_path: Path) -> None:
    path = await written(tmp_path, ("echo", {"text": "x" * 1_000_000}))
    assert path.stat().st_size < 20_000


def damaged(path: Path, change: Any) -> list[str]:
    lines = path.read_text().splitlines(keepends=True)
    changed = change(lines)
    path.write_text("".join(changed if changed is not None else lines))
    return verify_audit(path).problems


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param(
            lambda lines: [*lines[:3], lines[3].replace('"n":1', '"n":7'), *lines[4:]], "line 4", id="changed"
        ),
        pytest.param(lambda lines: [*lines[:3], *lines[4:]], "line 4", id="cut-out"),
        pytest.param(lambda lines: lines[1:], "line 1", id="first-cut"),
        pytest.param(lambda lines: [*lines[:3], lines[2], *lines[3:]], "line 4", id="doubled"),
        pytest.param(lambda lines: [*lines[:2], lines[3], lines[2], *lines[4:]], "line 3", id="reordered"),
        pytest.param(lambda lines: [*lines[:4], "garbage\n", *lines[4:]], "line 5", id="garbage"),
        pytest.param(lambda lines: [*lines[:4], "\n", *lines[4:]], "line 5", id="empty-line"),
        pytest.param(lambda lines: [*lines[:4], "{}\n", *lines[4:]], "line 5", id="bare-object"),
        pytest.param(lambda lines: [*lines[:4], lines[4][:40] + "\n", *lines[5:]], "line 5", id="torn-in-the-middle"),
        pytest.param(lambda lines: [*lines, lines[-1]], "line 11", id="after-the-end"),
    ],
)
def test_a_change_is_noticed_and_its_line_named(change: Any, told: str, kept: Path) -> None:
    assert verify_audit(kept).ok
    problems = damaged(kept, change)
    assert problems
    assert told in problems[0]


def forged(previous: str, number: int, **fields: Any) -> str:
    """A line that is right in itself."""
    import hashlib

    body = json.dumps({"n": number, "at": 1.0, **fields, "prev": previous}, separators=(",", ":"))
    digest = hashlib.sha256(body.encode()).hexdigest()
    return f'{body[:-1]},"hash":"{digest}"}}\n'


def test_a_well_formed_line_that_is_put_in_breaks_the_chain(kept: Path) -> None:
    def put_in(lines: list[str]) -> list[str]:
        previous = json.loads(lines[2])["hash"]
        return [*lines[:3], forged(previous, 3, event="call", call_id="x", tool="echo"), *lines[3:]]

    assert "line 5" in damaged(kept, put_in)[0]


@pytest.mark.parametrize("fields", [{"event": "call"}, {"event": 3}, {}, {"event": "result", "call_id": ["x"]}])
def test_a_line_of_another_shape_with_a_right_hash_is_a_problem_and_no_crash(
    fields: dict[str, Any], kept: Path
) -> None:
    def put_in(lines: list[str]) -> list[str]:
        return [lines[0], forged(json.loads(lines[0])["hash"], 1, **fields)]

    assert "line 2" in damaged(kept, put_in)[0]


def test_a_torn_last_line_is_told_as_torn_and_breaks_no_trust(kept: Path) -> None:
    data = kept.read_bytes()
    kept.write_bytes(data[: data.rindex(b"\n", 0, -1) + 30])
    found = verify_audit(kept)
    assert found.ok
    assert not found.ended
    assert any("torn" in note for note in found.notes)


def test_a_missing_end_is_told(kept: Path) -> None:
    lines = kept.read_bytes().splitlines(keepends=True)
    kept.write_bytes(b"".join(lines[:-1]))
    found = verify_audit(kept)
    assert found.ok
    assert any("end line is missing" in note for note in found.notes)


def test_an_open_call_is_named(kept: Path) -> None:
    lines = kept.read_bytes().splitlines(keepends=True)
    kept.write_bytes(b"".join(lines[:4]))
    found = verify_audit(kept)
    assert [call["call_id"] for call in found.unfinished] == ["c1"]
    assert any("c1" in note and "echo" in note for note in found.notes)


@pytest.mark.parametrize("content", [b"", b"\xff\xfe\x00garbage\n", b"\n", b"{", b"null\n"])
def test_a_file_that_is_none_is_a_finding_and_no_crash(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    path.write_bytes(content)
    found = verify_audit(path)
    assert found.problems or found.notes


def test_a_file_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(HandrailError, match="cannot be read"):
        verify_audit(tmp_path / "absent.jsonl")


def test_an_audit_is_never_written_over(kept: Path) -> None:
    with pytest.raises(FileExistsError):
        AuditWriter(kept, session="again")


@given(cut=st.integers(min_value=0))
def test_wherever_it_is_cut_it_says_so_and_nothing_breaks(tmp_path_factory: pytest.TempPathFactory, cut: int) -> None:
    path = tmp_path_factory.mktemp("audit") / "a.jsonl"
    audit = AuditWriter(path, session="s")
    audit.write("call", {"call_id": "c", "tool": "echo", "args": {"text": "ünïcode ✓"}})
    audit.close()
    data = path.read_bytes()
    path.write_bytes(data[: cut % len(data)])
    found = verify_audit(path)
    assert found.ok
    assert found.notes


@given(at=st.integers(min_value=0), to=st.integers(min_value=0, max_value=255))
def test_whatever_byte_is_changed_it_is_noticed(tmp_path_factory: pytest.TempPathFactory, at: int, to: int) -> None:
    path = tmp_path_factory.mktemp("audit") / "a.jsonl"
    audit = AuditWriter(path, session="s")
    audit.write("call", {"call_id": "c", "tool": "echo", "args": {"text": "x"}})
    audit.write("result", {"call_id": "c", "tool": "echo", "status": "success"})
    audit.close()
    data = bytearray(path.read_bytes())
    at %= len(data)
    if data[at] == to:
        return
    data[at] = to
    path.write_bytes(data)
    found = verify_audit(path)
    assert found.problems or found.notes


KILLED = """
import asyncio, os, sys
from pathlib import Path
import anyio
from handrail import tool, Write
from handrail.api.approval import yes
from handrail.testing import open_test_session

@tool()
async def quick() -> None:
    "Be quick."

@tool(effects=[Write("settings")])
async def hang() -> None:
    "Never end."
    print("running", flush=True)
    await anyio.sleep(600)

async def main():
    async with open_test_session(tools=[quick, hang], confirm=yes, folder=Path(sys.argv[1])) as session:
        await session.call("quick")
        await session.call("hang", call_id="the-one")

asyncio.run(main())
"""


def test_after_kill_9_it_verifies_and_says_what_is_missing(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path)],
        stdout=subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
    )
    assert process.stdout is not None
    try:
        assert process.stdout.readline() == b"running\n"
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait(30)
        process.stdout.close()
    (path,) = tmp_path.rglob("*.jsonl")
    found = verify_audit(path)
    assert found.ok
    assert not found.ended
    assert [(call["call_id"], call["tool"]) for call in found.unfinished] == [("the-one", "hang")]
    assert any("end line is missing" in note for note in found.notes)
    assert any("the-one" in note for note in found.notes)


async def test_a_call_that_cannot_be_audited_is_not_made(tmp_path: Path) -> None:
    ran: list[int] = []

    @tool()
    async def act() -> None:
        """Act."""
        ran.append(1)

    async with open_test_session(tools=[act], folder=tmp_path) as session:
        path = session.runtime.places.audit / f"{session.id}.jsonl"
        (descriptor,) = [int(fd) for fd in os.listdir("/proc/self/fd") if _points_to(fd, path)]
        full = os.open("/dev/full", os.O_WRONLY)
        saved = os.dup(descriptor)
        os.dup2(full, descriptor)
        try:
            result = await session.call("act")
        finally:
            os.dup2(saved, descriptor)
            os.close(saved)
            os.close(full)
    assert result.error_code == "downstream_error"
    assert "audit" in result["error"]["message"]
    assert not ran


def _points_to(descriptor: str, path: Path) -> bool:
    try:
        return os.path.samefile(f"/proc/self/fd/{descriptor}", path)
    except OSError:
        return False


# Several files


@pytest.fixture
def parted(tmp_path: Path) -> list[Path]:
    """An audit in several files, whose last call was open when the second began."""
    audit = AuditWriter(tmp_path / "s.jsonl", session="s", most=2_000)
    audit.write("call", {"call_id": "long", "tool": "wait", "args": {}})
    while len(list_parts(tmp_path / "s.jsonl")) < 3:
        audit.write("call", {"call_id": "c", "tool": "echo", "args": {"text": "x" * 200}})
        audit.write("result", {"call_id": "c", "tool": "echo", "status": "success"})
    audit.write("result", {"call_id": "long", "tool": "wait", "status": "success"})
    audit.close()
    return list_parts(tmp_path / "s.jsonl")


def test_a_large_audit_goes_on_in_other_files_with_one_chain(parted: list[Path]) -> None:
    assert [path.name for path in parted] == ["s.jsonl", "s.2.jsonl", "s.3.jsonl"]
    found = [verify_audit(path) for path in parted]
    assert [(each.ok, each.ended, each.notes) for each in found] == [(True, True, [])] * 3
    numbers = [json.loads(line)["n"] for path in parted for line in path.read_text().splitlines()]
    assert numbers == list(range(len(numbers)))
    assert all(path.stat().st_size < 3_000 for path in parted)


def test_a_part_that_was_taken_out_or_changed_is_noticed(parted: list[Path]) -> None:
    first, second, third = parted
    lines = first.read_text().splitlines(keepends=True)
    first.write_text("".join(lines[:-2]) + lines[-1])
    assert not verify_audit(first).ok
    second.unlink()
    assert verify_audit(first).problems[-1:] != []
    found = verify_audit(third)
    assert (found.ok, found.notes) == (True, ["the part before it, s.2.jsonl, is not here any more"])


def test_a_part_of_another_audit_does_not_follow(parted: list[Path], tmp_path: Path) -> None:
    other = AuditWriter(tmp_path / "other" / "s.jsonl", session="s", most=2_000)
    while not (tmp_path / "other" / "s.2.jsonl").exists():
        other.write("call", {"call_id": "c", "tool": "echo", "args": {"text": "y" * 200}})
    other.close()
    (tmp_path / "other" / "s.2.jsonl").replace(parted[1])
    assert not verify_audit(parted[1]).ok


def test_without_room_for_another_file_the_audit_goes_on_in_this_one(tmp_path: Path) -> None:
    (tmp_path / "s.2.jsonl").write_text("in the way")
    audit = AuditWriter(tmp_path / "s.jsonl", session="s", most=500)
    for _ in range(9):
        audit.write("result", {"call_id": "c", "tool": "echo", "status": "success"})
    audit.close()
    found = verify_audit(tmp_path / "s.jsonl")
    assert (found.ok, found.ended, found.lines) == (True, True, 11)
