"""Undo of what real tools do to real files: the shell in bubblewrap, the file and the document tools."""

from __future__ import annotations

import asyncio
import os
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterable
from pathlib import Path
from typing import Any

import pytest

import handrail
from handrail import Session, ToolResult
from handrail.api.approval import yes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")

State = dict[str, tuple[Any, ...]]


def seen(folder: Path, *, without: Iterable[str] = ()) -> State:
    """All that is in a folder: kind, mode and contents by path; git's own data left out."""
    found: State = {}
    for path in sorted(folder.rglob("*")):
        name = str(path.relative_to(folder))
        if ".git" in path.parts or name.startswith(tuple(without)):
            continue
        status = path.lstat()
        if stat.S_ISLNK(status.st_mode):
            found[name] = ("link", os.readlink(path))
        elif stat.S_ISDIR(status.st_mode):
            found[name] = ("folder", stat.S_IMODE(status.st_mode))
        else:
            found[name] = ("file", stat.S_IMODE(status.st_mode), path.read_bytes())
    return found


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    (work / "src/deep").mkdir(parents=True)
    (work / "a.txt").write_text("one\ntwo\n")
    (work / "src/b.py").write_text("print('b')\n")
    (work / "src/deep/c.bin").write_bytes(bytes(range(256)) * 2_000)
    (work / "notes.local").write_text("mine")
    (work / "run.sh").write_text("#!/bin/sh\n")
    (work / "run.sh").chmod(0o755)
    (work / "link").symlink_to("a.txt")
    (work / "read-only").write_text("r")
    (work / "read-only").chmod(0o444)
    return work


@pytest.fixture
async def session(work: Path) -> AsyncGenerator[Session]:
    async with handrail.open(cwd=work, confirm=yes) as opened:
        yield opened


async def run(session: Session, command: str, **more: Any) -> ToolResult:
    result = await session.call("execute_cli", {"command": command, **more})
    assert result.ok, result
    return result


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("sed -i s/one/1/ a.txt", id="sed"),
        pytest.param("rm -rf src", id="a-folder-deleted"),
        pytest.param("rm notes.local", id="a-file-deleted"),
        pytest.param("mv src elsewhere", id="a-folder-moved"),
        pytest.param("mv a.txt b.txt && mv notes.local a.txt", id="files-moved-onto-each-other"),
        pytest.param("chmod 600 run.sh a.txt", id="modes"),
        pytest.param("chmod 700 src", id="the-mode-of-a-folder"),
        pytest.param("ln -s src/b.py new-link", id="a-link"),
        pytest.param("ln -sfn src/b.py link", id="another-target"),
        pytest.param("rm link && cp a.txt link", id="a-link-becomes-a-file"),
        pytest.param("rm a.txt && ln -s run.sh a.txt", id="a-file-becomes-a-link"),
        pytest.param("rm a.txt && mkdir a.txt && touch a.txt/x", id="a-file-becomes-a-folder"),
        pytest.param("rm -r src && echo x > src", id="a-folder-becomes-a-file"),
        pytest.param("rm -r src && ln -s /usr src", id="a-folder-becomes-a-link"),
        pytest.param("mkdir -p x/y/z && echo hi > x/y/z/f && touch x/empty", id="a-tree-is-made"),
        pytest.param("cp -r src copy && truncate -s 0 a.txt", id="copied-and-emptied"),
        pytest.param("echo more >> read-only || chmod u+w read-only && echo more >> read-only", id="a-read-only-file"),
        pytest.param("touch x && chmod 555 src && rm -f notes.local", id="a-folder-that-cannot-be-written"),
        pytest.param("tar cf t.tar src && rm -r src && tar xf t.tar && echo z > src/z", id="an-archive"),
        pytest.param("find . -name '*.py' -delete", id="found-and-deleted"),
        pytest.param("mkdir e && rmdir e", id="nothing-is-left"),
        pytest.param(r"printf x > $'\xff\xfe' && printf y > $'a\nb'", id="names-that-are-no-text"),
    ],
)
async def test_what_a_command_changes_is_undone_and_done_again(session: Session, work: Path, command: str) -> None:
    before = seen(work)
    result = await run(session, command)
    after = seen(work)
    if before == after:
        assert "undo" not in result
        return
    assert result["undo"]["kept"] is True
    assert (await session.undo("c1")).ok
    assert seen(work) == before
    # What undid it is a call like any other.
    assert (await session.undo("c2")).ok
    assert seen(work) == after


async def test_a_script_that_writes_is_undone(session: Session, work: Path) -> None:
    (work / "change.py").write_text(
        "import pathlib, os\n"
        "for path in pathlib.Path('src').rglob('*'):\n"
        "    if path.is_file():\n"
        "        path.write_text('gone')\n"
        "os.rename('a.txt', 'z.txt')\n"
        "pathlib.Path('out').mkdir()\n"
        "for number in range(200):\n"
        "    pathlib.Path(f'out/{number}').write_text(str(number))\n"
    )
    before = seen(work)
    await run(session, "python3 change.py")
    assert seen(work) != before
    done = await session.undo()
    assert (done.ok, done["effect"]) == (True, "confirmed")
    assert seen(work) == before


async def test_a_checkout_of_a_file_is_undone_and_git_itself_is_left_alone(session: Session, work: Path) -> None:
    def git(*words: str) -> str:
        given = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", *words]
        return subprocess.run(given, cwd=work, check=True, capture_output=True, text=True).stdout

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "first")
    (work / "a.txt").write_text("not committed\n")
    head = git("rev-parse", "HEAD")
    await run(session, "git checkout -- a.txt")
    assert (work / "a.txt").read_text() == "one\ntwo\n"
    assert (await session.undo()).ok
    assert (work / "a.txt").read_text() == "not committed\n"
    assert git("rev-parse", "HEAD") == head


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        pytest.param("write_file", {"file_path": "a.txt", "content": "x", "overwrite": True}, id="a-file-is-replaced"),
        pytest.param("write_file", {"file_path": "n/e/w.txt", "content": "x", "create_dirs": True}, id="with-folders"),
        pytest.param("edit_file", {"file_path": "src/b.py", "old_string": "'b'", "new_string": "1"}, id="edit_file"),
        pytest.param(
            "find_and_replace_in_files",
            {"pattern": "*.txt", "find": "two", "replace": "2", "dry_run": False},
            id="a-workflow",
        ),
        pytest.param("write_excel", {"path": "t.xlsx", "data": [[1, 2], [3, 4]]}, id="write_excel"),
    ],
)
async def test_what_a_tool_changes_is_undone_and_done_again(
    session: Session, work: Path, tool: str, args: dict[str, Any]
) -> None:
    await session.load_tools([tool], source="test")
    before = seen(work)
    result = await session.call(tool, args)
    assert result.ok, result
    after = seen(work)
    assert after != before
    assert (await session.undo("c1")).ok
    assert seen(work) == before
    assert (await session.undo("c2")).ok
    assert seen(work) == after


async def test_reading_keeps_nothing(session: Session, work: Path) -> None:
    for command in ("ls -la", "cat a.txt | wc -l", "echo hi"):
        assert "undo" not in await run(session, command)
    assert "undo" not in await session.call("read_file", {"file_path": "a.txt"})
    assert await session.undo_plans() == []


async def test_calls_are_undone_newest_first(session: Session, work: Path) -> None:
    before = seen(work)
    await run(session, "sed -i s/one/1/ a.txt")
    await session.call("edit_file", {"file_path": "a.txt", "old_string": "two", "new_string": "2"})
    await run(session, "rm -r src")
    plans = await session.undo_plans()
    assert [plan.records[-1].tool for plan in plans] == ["execute_cli", "edit_file", "execute_cli"]
    for _ in plans:
        assert (await session.undo()).ok
    assert seen(work) == before
    assert (await session.undo()).error_code == "not_found"


async def test_nothing_is_undone_where_a_file_was_changed_since_unless_it_is_said_what_to_do(
    session: Session, work: Path
) -> None:
    await run(session, "sed -i s/one/1/ a.txt && echo x > new.txt")
    (work / "a.txt").write_text("by hand\n")
    refused = await session.undo("c1")
    assert refused.status == "error"
    assert "a.txt: it was changed since" in refused["error"]["message"]
    assert (work / "new.txt").exists()
    done = await session.undo("c1", skip_changed=True)
    assert (done.ok, [each["path"] for each in done["not_undone"]]) == (True, [str(work / "a.txt")])
    assert ((work / "a.txt").read_text(), (work / "new.txt").exists()) == ("by hand\n", False)
    assert (await session.undo("c1", force=True)).ok
    assert (work / "a.txt").read_text() == "one\ntwo\n"
    # What was forced is kept, too.
    assert (await session.undo("c3")).ok
    assert (work / "a.txt").read_text() == "by hand\n"


async def test_who_changed_it_since_is_named(session: Session, work: Path) -> None:
    await run(session, "sed -i s/one/1/ a.txt")
    await session.call("edit_file", {"file_path": "a.txt", "old_string": "two", "new_string": "2"})
    refused = await session.undo("c1")
    assert f"{session.id}/c2 (edit_file)" in refused["error"]["message"]


async def test_what_a_background_command_changes_is_undone(session: Session, work: Path) -> None:
    before = seen(work)
    started = await session.call(
        "execute_cli", {"command": "echo 1 > one; read line; echo 2 > two; rm a.txt", "background": True}
    )
    assert started["undo"] == {"kept": True}
    # What another call changes meanwhile is that call's.
    await session.call("edit_file", {"file_path": "src/b.py", "old_string": "'b'", "new_string": "1"})
    edited = seen(work)["src/b.py"]
    await session.call("write_process", {"process_id": started["process_id"], "text": "go\n"})
    await session.call("read_process", {"process_id": started["process_id"], "wait": 10})
    assert ((work / "two").exists(), (work / "a.txt").exists()) == (True, False)
    assert (await session.undo("c1")).ok
    assert seen(work) == {**before, "src/b.py": edited}
    assert (await session.undo("c2")).ok
    assert seen(work) == before


async def test_other_sessions_undo_it(work: Path) -> None:
    before = seen(work)
    async with handrail.open(cwd=work, confirm=yes) as first:
        await run(first, "rm -r src")
    async with handrail.open(cwd=work, confirm=yes) as second:
        assert (await second.undo(f"{first.id}/c1")).ok
    assert seen(work) == before


async def test_two_sessions_in_one_workspace_keep_their_changes_apart(work: Path) -> None:
    async with handrail.open(cwd=work, confirm=yes) as one, handrail.open(cwd=work, confirm=yes) as other:
        await run(one, "echo 1 > one")
        await run(other, "echo 2 > two")
        await run(one, "rm a.txt")
        plans = await other.undo_plans()
        assert [[Path(path.path).name for path in plan.paths] for plan in plans] == [["a.txt"], ["two"], ["one"]]
        assert (await other.undo(f"{one.id}/c1")).ok
        assert not (work / "one").exists()
        assert (work / "two").exists()


async def test_undo_asks_as_writing_does(work: Path) -> None:
    asked: list[str] = []

    async def no(approval: handrail.Approval) -> handrail.Answer:
        asked.append(approval.confirmation.title)
        return handrail.Answer(handrail.Choice.DENY)

    async with handrail.open(cwd=work, confirm=yes) as session:
        await session.call("write_file", {"file_path": "a.txt", "content": "x", "overwrite": True})
        session.confirmer = no
        # Where writing needs no approval, undo needs none either.
        written = await session.call("write_file", {"file_path": "a.txt", "content": "y", "overwrite": True})
        undone = await session.undo("c1", force=True)
        assert (written.status == "denied") == (undone.status == "denied")
        assert len(asked) in (0, 2)


async def test_no_agent_can_undo(session: Session) -> None:
    assert "undo_call" not in {tool.name for tool in await session.tools()}
    assert (await session.call("undo_call", {"call": "c1"})).error_code == "tool_unavailable"
    await run(session, "rm a.txt")
    await session.undo()
    assert (await session.call("undo_call", {"call": "c1"})).error_code == "tool_unavailable"


async def test_undo_is_recorded_as_a_call(session: Session) -> None:
    await run(session, "rm a.txt")
    await session.undo()
    assert [record.call.name for record in session.history.last()] == ["execute_cli", "undo_call"]


async def test_no_tool_reads_or_writes_what_is_kept(session: Session, work: Path) -> None:
    await run(session, "rm a.txt")
    store = session.runtime.places.undo
    assert (
        stat.S_IMODE(store.stat().st_mode),
        {stat.S_IMODE(f.stat().st_mode) for f in store.iterdir() if f.is_file()},
    ) == (
        0o700,
        {0o600},
    )
    for name in ("read_file", "write_file"):
        args = {
            "file_path": str(store / "undo.sqlite3"),
            **({"content": "", "overwrite": True} if name == "write_file" else {}),
        }
        assert (await session.call(name, args)).status == "denied"
    (work / "look.py").write_text(f"import os\nopen('made', 'w')\nprint(os.path.exists({str(store)!r}))\n")
    shown = await run(session, "python3 look.py")
    assert (shown["sandbox"], shown["stdout"].strip()) == ("bubblewrap", "False")


# Without approval, where what is lost can be put back


@pytest.fixture
def large(work: Path) -> Path:
    """A repository with a file that undo does not keep, and generated files."""
    subprocess.run(["git", "init", "-q"], cwd=work, check=True)
    (work / "data").mkdir()
    with (work / "data/large.bin").open("wb") as file:
        file.truncate(100_000_000)
    (work / "build").mkdir()
    (work / "build/x.o").write_text("made")
    (work / ".gitignore").write_text("build/\n")
    (work / "src/x.tmp").write_text("x")
    (work / "shortcut").symlink_to("data")
    return work


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("rm -rf src", id="a-folder-deleted"),
        pytest.param("rm -f src/*.tmp", id="by-a-pattern"),
        pytest.param("rm -f *.txt", id="by-a-pattern-beside-it"),
        pytest.param("cp a.txt data/", id="copied-beside-it"),
        pytest.param("echo x > data/new", id="a-new-file-beside-it"),
        pytest.param("rm build/x.o", id="in-a-generated-folder"),
        pytest.param("rm -rf build", id="a-generated-folder"),
        pytest.param("mv data/large.bin data/other.bin", id="it-gets-another-name"),
        pytest.param("mkdir data/deep && cat data/large.bin > /dev/null", id="it-is-read"),
        pytest.param("find src -name '*.tmp' -delete", id="found"),
        pytest.param("python3 -c \"open('a.txt', 'w').write('x')\"", id="by-code"),
    ],
)
async def test_a_command_that_loses_what_undo_keeps_runs_without_a_question(large: Path, command: str) -> None:
    async with handrail.open(cwd=large) as session:
        await run(session, command)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("rm data/large.bin", id="deleted"),
        pytest.param("rm -rf data", id="with-its-folder"),
        pytest.param("rm -f data/*", id="by-a-pattern"),
        pytest.param("rm -f short*/large.bin", id="by-a-pattern-through-a-link"),
        pytest.param("mv a.txt data/large.bin", id="overwritten"),
        pytest.param("find . -name '*.bin' -delete", id="found"),
        pytest.param("cp -r src/. data", id="perhaps-overwritten"),
        pytest.param("make -n; rm -rf data", id="beside-others"),
    ],
)
async def test_a_command_that_loses_what_undo_does_not_keep_asks(large: Path, command: str) -> None:
    before = seen(large, without=["data/large"])
    async with handrail.open(cwd=large) as session:
        refused = await session.call("execute_cli", {"command": command})
        assert (refused.status, refused.error_code) == ("denied", "not_undoable")
        assert "data" in refused["error"]["message"]
        assert seen(large, without=["data/large"]) == before
    asked: list[str] = []

    async def person(approval: handrail.Approval) -> handrail.Answer:
        asked.append(str(approval))
        return await yes(approval)

    async with handrail.open(cwd=large, confirm=person) as session:
        assert (await session.call("execute_cli", {"command": command})).status == "success"
    assert len(asked) == 1
    assert "could not be undone" in asked[0]


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("python3 evil.py", id="code"),
        pytest.param("python3 evil.py & wait", id="in-the-background"),
        pytest.param("zip -qm x.zip data/large.bin", id="packed-and-deleted"),
        pytest.param("objcopy a.txt data/large.bin", id="works-on-compiled-code"),
        pytest.param("echo x >> data/large.bin", id="added-to"),
        pytest.param("chmod 600 data/large.bin", id="another-mode"),
    ],
)
async def test_no_unapproved_program_changes_what_undo_does_not_keep(large: Path, command: str) -> None:
    (large / "evil.py").write_text(
        "import os, shutil\n"
        "for act in (os.remove, lambda p: os.truncate(p, 0), lambda p: os.rename(p, 'x'), lambda p: os.rename('a.txt', p),\n"
        "            lambda p: os.rename('data', 'x'), lambda p: shutil.rmtree('data'), lambda p: open(p, 'wb')):\n"
        "    try: act('data/large.bin')\n"
        "    except OSError as exc: print(exc)\n"
    )
    before = (large / "data/large.bin").stat()
    async with handrail.open(cwd=large) as session:
        result = await session.call("execute_cli", {"command": command})
        named = "It could not change what undo does not keep" in result.get("note", "")
        assert named == (result.error_code == "sandbox_denied")
    after = (large / "data/large.bin").stat()
    assert (after.st_ino, after.st_size, after.st_mode, after.st_mtime) == (
        before.st_ino,
        before.st_size,
        before.st_mode,
        before.st_mtime,
    )


async def test_a_refused_change_of_what_undo_does_not_keep_can_be_approved(large: Path) -> None:
    async with handrail.open(cwd=large, confirm=yes) as session:
        assert (await session.call("execute_cli", {"command": "chmod 600 data/large.bin"})).ok
    assert stat.S_IMODE((large / "data/large.bin").stat().st_mode) == 0o600


async def test_code_is_asked_about_once_calls_have_made_too_many_files_for_undo(work: Path, tmp_path: Path) -> None:
    (work / "notes").mkdir()
    (work / "notes/n.txt").write_text("mine")
    (work / "flood.py").write_text("for number in range(120): open(f'{number}', 'w')\n")
    (work / "wipe.py").write_text("import shutil; shutil.rmtree('notes')\n")
    config = tmp_path / "handrail.toml"
    config.write_text("[undo]\nmax_files = 100\n")
    async with handrail.open(cwd=work, config=config) as session:
        flooded = await run(session, "python3 flood.py")
        assert flooded["undo"]["kept"] is False
        refused = await session.call("execute_cli", {"command": "python3 wipe.py"})
        assert (refused.status, refused.error_code) == ("denied", "not_undoable")
    # A later session knows of it, too.
    async with handrail.open(cwd=work, config=config) as session:
        assert (await session.call("execute_cli", {"command": "python3 wipe.py"})).error_code == "not_undoable"
        for path in work.glob("[0-9]*"):
            path.unlink()
        await run(session, "python3 wipe.py")
        session.confirmer = yes
        assert (await session.undo()).ok
    assert (work / "notes/n.txt").read_text() == "mine"


async def test_a_script_that_makes_too_many_files_and_deletes_others_is_undone_by_a_later_session(
    work: Path, tmp_path: Path
) -> None:
    (work / "notes").mkdir()
    (work / "notes/n.txt").write_text("mine")
    (work / "plain.txt").write_text("mine, too")
    code = "import shutil\nfor number in range(120): open(f'{number}', 'w')\n"
    (work / "flood.py").write_text(f"{code}shutil.rmtree('notes')\nopen('plain.txt', 'w').write('gone')\n")
    before = seen(work)
    config = tmp_path / "handrail.toml"
    config.write_text("[undo]\nmax_files = 100\n")
    async with handrail.open(cwd=work, config=config) as session:
        await run(session, "touch first; rm first")
        flooded = await run(session, "python3 flood.py")
        assert (flooded["undo"]["kept"], "files that it made are not covered" in flooded["note"]) == (True, True)
        assert (await session.call("execute_cli", {"command": "python3 flood.py"})).error_code == "not_undoable"
    async with handrail.open(cwd=work, config=config, confirm=yes) as session:
        (plan, *_) = await session.undo_plans()
        assert any("files that it made are not covered" in note for note in plan.wire()["notes"])
        assert (await session.undo()).ok
    assert {path: state for path, state in seen(work).items() if not path.isdecimal()} == before


async def test_code_is_asked_about_once_calls_have_made_too_many_large_files(work: Path, tmp_path: Path) -> None:
    (work / "make.py").write_text(
        "import os\nfor n in range(210): os.mkdir(f'd{n}'); open(f'd{n}/x', 'w').write('x' * 3_000)\n"
    )
    config = tmp_path / "handrail.toml"
    config.write_text("[undo]\nmax_file_bytes = 2_000\n")
    async with handrail.open(cwd=work, config=config) as session:
        await run(session, "python3 make.py")
        refused = await session.call("execute_cli", {"command": "python3 -V; make -n"})
        assert (refused.status, refused.error_code) == ("denied", "not_undoable")
    # A workspace that was like that from the start is worked in.
    async with handrail.open(cwd=work, config=config) as session:
        await run(session, "rm -f a.txt; touch new")


async def test_a_workspace_that_was_too_large_from_the_start_is_worked_in(work: Path, tmp_path: Path) -> None:
    for number in range(120):
        (work / str(number)).touch()
    config = tmp_path / "handrail.toml"
    config.write_text("[undo]\nmax_files = 100\n")
    async with handrail.open(cwd=work, config=config) as session:
        (work / "make.py").write_text("open('made', 'w')\n")
        assert "undo.max_files" in (await run(session, "python3 make.py"))["undo"]["why"]


async def test_what_other_calls_change_beside_a_background_command_is_theirs(session: Session, work: Path) -> None:
    before = seen(work)
    started = await session.call("execute_cli", {"command": "read line; echo 1 > background", "background": True})
    await run(session, "echo 1 > same")
    async with handrail.open(cwd=work, confirm=yes) as other:
        await run(other, "echo 1 > other")
        beside = f"{other.id}/c1"
    await session.call("write_process", {"process_id": started["process_id"], "text": "go\n"})
    await session.call("read_process", {"process_id": started["process_id"], "wait": 10})
    plans = {plan.call: plan for plan in await session.undo_plans()}
    assert [Path(path.path).name for path in plans[f"{session.id}/c1"].paths] == ["background"]
    assert f"ran beside {session.id}/c1: may hold its changes" in plans[beside].wire()["notes"]
    assert (await session.undo(f"{session.id}/c1")).ok
    assert {*seen(work)} - {*before} == {"same", "other"}


async def test_commands_that_ran_beside_each_other_both_say_so(work: Path) -> None:
    async with handrail.open(cwd=work, confirm=yes) as one, handrail.open(cwd=work, confirm=yes) as other:
        # Each ends after the other has begun.
        script = "touch begun{0}; until [ -e begun{1} ]; do sleep 0.05; done; sleep 0.3"
        await asyncio.gather(*(run(s, script.format(*n)) for s, n in ((one, (1, 2)), (other, (2, 1)))))
        for session, beside in ((one, other), (other, one)):
            plan, _ = await session.undo_plan(f"{session.id}/c1")
            assert f"ran beside {beside.id}/c1: may hold its changes" in plan.wire()["notes"]
