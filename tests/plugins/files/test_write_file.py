"""Writing whole files by `write_file`."""

from __future__ import annotations

import os
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail import Answer, Approval, Choice, EditConfirmation, Session, ToolResult
from handrail.approval.rendering import question

pytestmark = pytest.mark.usefixtures("without_undo")

Write = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def write(session: Session) -> Write:
    async def call(path: str, content: str, **args: Any) -> ToolResult:
        return await session.call("write_file", {"file_path": path, "content": content, **args})

    return call


async def test_a_new_file_is_written_and_told(write: Write, folder: Path) -> None:
    result = await write("a.txt", "one\ntwo\n")
    assert (folder / "a.txt").read_bytes() == b"one\ntwo\n"
    assert (result["path"], result["bytes"], result["created"]) == (str(folder / "a.txt"), 8, True)
    assert result["diff"] == "--- a.txt\n+++ a.txt\n@@ -0,0 +1,2 @@\n+one\n+two"


async def test_a_changed_file_is_told_by_its_diff(write: Write, folder: Path) -> None:
    (folder / "a").write_text("".join(f"{n}\n" for n in range(1, 21)))
    result = await write("a", "".join(f"{'ten' if n == 10 else n}\n" for n in range(1, 21)))
    assert result["diff"].split("\n")[2:] == ["@@ -7,7 +7,7 @@", " 7", " 8", " 9", "-10", "+ten", " 11", " 12", " 13"]
    assert not result["created"]


async def test_missing_folders_are_made_only_on_request(write: Write, folder: Path) -> None:
    refused = await write("x/y/a", "1")
    assert refused.error_code == "not_found"
    assert "create_dirs" in refused["error"]["message"]
    assert not (folder / "x").exists()
    assert (await write("x/y/a", "1", create_dirs=True)).ok
    assert (folder / "x/y/a").read_text() == "1"


async def test_a_file_that_is_there_is_kept_without_overwrite(write: Write, folder: Path) -> None:
    (folder / "a").write_text("old")
    assert (await write("a", "new", overwrite=False)).error_code == "downstream_error"
    assert (folder / "a").read_text() == "old"


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", "a\nb\nnew\nc\n", b"a\r\nb\nnew\r\nc\r\n"),
        (b"a\nb\n", "a\r\nb\r\n", b"a\r\nb\r\n"),
        (b"a\rb\r", "a\nc\n", b"a\rc\r"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        ("grün\n".encode("latin-1"), "blöd\n", "blöd\n".encode("latin-1")),
        ("grün\n".encode("utf-16"), "blöd\n", "blöd\n".encode("utf-16")),
        ("Привет, это русский текст\n".encode("koi8-r"), "и ещё\n", "и ещё\n".encode("koi8-r")),
        (b"\xfe\xff" + "grün\n".encode("utf-16-be"), "x\n", b"\xfe\xff" + "x\n".encode("utf-16-be")),
    ],
)
async def test_encoding_mark_and_line_ends_are_kept(
    write: Write, folder: Path, before: bytes, content: str, after: bytes
) -> None:
    (folder / "a").write_bytes(before)
    assert (await write("a", content)).ok
    assert (folder / "a").read_bytes() == after


async def test_what_the_encoding_lacks_is_refused(write: Write, folder: Path) -> None:
    (folder / "a").write_bytes("grün\n".encode("latin-1"))
    result = await write("a", "漢\n")
    assert "latin-1" in result["error"]["message"]
    assert (folder / "a").read_bytes() == "grün\n".encode("latin-1")


async def test_permissions_and_attributes_are_kept(write: Write, folder: Path) -> None:
    file = folder / "a"
    file.write_text("old")
    file.chmod(0o751)
    os.setxattr(file, "user.colour", b"green")
    assert (await write("a", "new")).ok
    assert stat.S_IMODE(file.stat().st_mode) == 0o751
    assert os.getxattr(file, "user.colour") == b"green"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
async def test_the_owner_is_kept(write: Write, folder: Path) -> None:
    (folder / "a").write_text("old")
    os.chown(folder / "a", 1234, 4321)
    assert (await write("a", "new")).ok
    status = (folder / "a").stat()
    assert (status.st_uid, status.st_gid) == (1234, 4321)


async def test_a_link_stays_and_its_target_is_written(write: Write, folder: Path) -> None:
    (folder / "real").write_text("old")
    (folder / "link").symlink_to("real")
    assert (await write("link", "new"))["path"] == str(folder / "real")
    assert (folder / "link").is_symlink()
    assert (folder / "real").read_text() == "new"


async def test_all_names_of_a_file_show_the_new_content(write: Write, folder: Path) -> None:
    (folder / "a").write_text("old and longer")
    os.link(folder / "a", folder / "b")
    result = await write("a", "new")
    assert (folder / "b").read_text() == "new"
    assert (folder / "a").samefile(folder / "b")
    assert "2 names" in result["note"]
    assert sorted(os.listdir(folder)) == ["a", "b"]


@pytest.mark.parametrize("tool", ["write_file", "edit_file"])
async def test_a_name_outside_the_workspace_keeps_the_old_content(
    session: Session, folder: Path, tmp_path: Path, tool: str
) -> None:
    cached, installed = tmp_path / "cached", folder / "installed"
    cached.write_text("old")
    cached.chmod(0o640)
    if hasattr(os, "setxattr"):
        os.setxattr(cached, "user.from", b"cache")
    for name in ("installed", "again"):
        os.link(cached, folder / name)
    texts = {"content": "new"} if tool == "write_file" else {"old_string": "old", "new_string": "new"}
    result = await session.call(tool, {"file_path": "installed", **texts})
    assert (installed.read_text(), cached.read_text(), (folder / "again").read_text()) == ("new", "old", "old")
    assert stat.S_IMODE(installed.stat().st_mode) == 0o640
    if hasattr(os, "getxattr"):
        assert os.getxattr(installed, "user.from") == b"cache"
    assert "3 names" in result["note"]
    assert "keep the old content" in result["note"]


async def test_a_file_that_changed_since_it_was_read_is_not_written_over(
    session: Session, write: Write, folder: Path
) -> None:
    (folder / "a").write_text("one\n")
    await session.call("read_file", {"file_path": "a"})
    (folder / "a").write_text("two\n")
    refused = await write("a", "three\n")
    assert refused["error"]["details"] == {"reason": "stale"}
    assert (folder / "a").read_text() == "two\n"
    await session.call("read_file", {"file_path": "a"})
    assert (await write("a", "three\n")).ok
    assert (await write("a", "four\n")).ok


async def test_a_file_that_became_a_link_to_one_never_read_is_not_written_over(
    session: Session, write: Write, folder: Path
) -> None:
    (folder / "a").write_text("one\n")
    (folder / "other").write_text("one\nand more\n")
    await session.call("read_file", {"file_path": "a"})
    (folder / "a").unlink()
    (folder / "a").symlink_to("other")
    assert (await write("a", "new\n"))["error"]["details"] == {"reason": "stale"}
    changed = {"file_path": "a", "old_string": "one", "new_string": "two"}
    assert (await session.call("edit_file", changed))["error"]["details"] == {"reason": "stale"}
    assert (folder / "other").read_text() == "one\nand more\n"
    await session.call("read_file", {"file_path": "a"})
    assert (await write("a", "new\n")).ok
    assert (folder / "other").read_text() == "new\n"


async def test_a_touched_file_is_not_a_changed_one(session: Session, write: Write, folder: Path) -> None:
    (folder / "a").write_text("one\n")
    await session.call("read_file", {"file_path": "a"})
    os.utime(folder / "a", (1, 1))
    assert (await write("a", "two\n")).ok


async def test_a_change_of_same_size_and_time_is_noticed(session: Session, write: Write, folder: Path) -> None:
    file = folder / "a"
    file.write_text("one\n")
    times = (file.stat().st_atime_ns, file.stat().st_mtime_ns)
    await session.call("read_file", {"file_path": "a"})
    with file.open("r+") as same:
        same.write("two\n")
    os.utime(file, ns=times)
    assert (await write("a", "new\n")).error_code == "downstream_error"


async def test_a_change_while_a_person_is_asked_is_noticed(folder: Path) -> None:
    (folder / "a").write_text("one\n")
    shown: list[Any] = []

    async def slow(approval: Approval) -> Answer:
        shown.append(approval.confirmation)
        (folder / "a").write_text("two\n")
        return Answer(Choice.ONCE)

    async with handrail.open(cwd=folder, confirm=slow) as session:
        result = await session.call("write_file", {"file_path": "a", "content": "new\n"})
    diff = "--- a\n+++ a\n@@ -1,1 +1,1 @@\n-one\n+new"
    assert shown == [EditConfirmation("Write a", str(folder / "a"), diff)]
    assert result["error"]["details"] == {"reason": "stale"}
    assert (folder / "a").read_text() == "two\n"


async def test_lines_that_stand_for_left_out_text_are_refused(write: Write, folder: Path) -> None:
    (folder / "a").write_text("// ... existing code ...\n")
    refused = await write("a", "def f():\n    pass\n# ... rest of the file unchanged\n")
    assert refused.error_code == "invalid_arguments"
    assert refused["error"]["details"] == {"line": 3}
    assert (await write("a", "new\n// ... existing code ...\n")).ok


async def test_a_secret_is_written_after_a_yes_and_its_old_content_is_not_told(write: Write, folder: Path) -> None:
    (folder / ".env").write_text("KEY=hunter2")
    result = await write(".env", "KEY=x")
    assert result.ok
    assert "hunter2" not in str(result)


async def test_nobody_there_means_no_change(folder: Path) -> None:
    async with handrail.open(cwd=folder) as alone:
        assert (await alone.call("write_file", {"file_path": "a", "content": ""})).error_code == "no_confirmer"
    async with handrail.open(cwd=folder, mode="accept_edits") as alone:
        assert (await alone.call("write_file", {"file_path": "a", "content": ""})).ok


@pytest.mark.parametrize(("name", "what"), [("fifo", "a pipe"), ("folder", "a folder"), ("new/", "a folder")])
async def test_only_ordinary_files_are_written(write: Write, folder: Path, name: str, what: str) -> None:
    os.mkfifo(folder / "fifo")
    (folder / "folder").mkdir()
    result = await write(name, "x")
    assert what in result["error"]["message"]
    assert not (folder / "new").exists()


async def test_a_binary_file_is_replaced_and_said(write: Write, folder: Path) -> None:
    (folder / "a").write_bytes(bytes(range(256)) * 4)
    assert "1024 bytes that are no text" in (await write("a", "text"))["diff"]


async def test_half_a_character_is_no_content(write: Write, folder: Path) -> None:
    assert (await write("a", "x\ud800")).error_code == "invalid_arguments"
    assert not (folder / "a").exists()


async def test_the_history_says_what_takes_a_change_back(write: Write, session: Session, folder: Path) -> None:
    await write("a", "1")
    await write("a", "2")
    await session.call("edit_file", {"file_path": "a", "old_string": "2", "new_string": "3"})
    await session.call("edit_file", {"file_path": "a", "old_string": "nowhere", "new_string": "3"})
    actions = (await session.call("get_action_history"))["actions"]
    assert [action.get("undo") for action in actions] == [
        f"remove {folder / 'a'}, which was not there before",
        f"take back in {folder / 'a'} what the diff of this call's result says",
        "take back in a what the diff of this call's result says",
        None,
    ]


@pytest.mark.parametrize(
    "content",
    [
        pytest.param('{"a":"' + " " * 700 + '","tasks":[{"command":"LAST"}]}', id="one-line"),
        pytest.param("line\n" * 3_000 + "LAST", id="many-lines"),
        pytest.param("x" * 1_000_000 + "LAST", id="more-than-is-asked"),
    ],
)
@pytest.mark.parametrize("before", [None, b"\0\1\2", b"old\n" * 3_000])
async def test_a_question_shows_the_end_of_what_is_written(folder: Path, content: str, before: bytes | None) -> None:
    shown: list[str] = []

    async def confirm(approval: Approval) -> Answer:
        shown.append(question(approval))
        return Answer(Choice.DENY)

    path = folder / ".vscode" / "tasks.json"
    path.parent.mkdir()
    if before is not None:
        path.write_bytes(before)
    async with handrail.open(cwd=folder, confirm=confirm) as session:
        await session.call("write_file", {"file_path": str(path), "content": content, "create_dirs": True})
    assert "LAST" in shown[0]
    assert len(shown[0]) < 20_000
