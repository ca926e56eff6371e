"""Files that undo does not keep, and the notes that say so."""

from __future__ import annotations

import os
import shutil
import socket
import sqlite3
import time
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Answer, Approval, Decision, EvaluationContext, Opinion, Run, Session, ToolContext, tool
from handrail.api.approval import yes
from handrail.errors import Downstream
from handrail.testing import Always
from handrail.undo.keeper import UndoKeeper

from .workspace import OpenSession, make_repository, seen


@tool(effects=[Run("shell", arg="path")])
async def change(path: str, *, context: ToolContext) -> None:
    """Change a file that only the test's own judge speaks of."""
    (context.cwd / path).write_text("changed")


RELYING = Opinion("test:undoable", suggestion=Decision.ALLOW, relies_on_undo=True)


async def test_a_file_above_the_bound_is_told_of_and_the_rest_is_undone(opened: OpenSession, work: Path) -> None:
    (work / "large.bin").write_bytes(os.urandom(3_000))
    async with opened(settings={"undo": {"max_file_bytes": 2_000}}) as session:
        result = await session.call("act", {"code": "import os; os.remove('large.bin'); os.remove('one.txt')"})
        assert result["undo"]["kept"] is True
        assert "large.bin: it is larger than undo.max_file_bytes" in result["undo"]["not_kept"]
        assert "Undo cannot put back" in result["note"]
        refused = await session.undo()
        assert "large.bin: it is larger than undo.max_file_bytes" in refused["error"]["message"]
        done = await session.undo(skip_changed=True)
        assert (done.ok, [Path(each["path"]).name for each in done["not_undone"]]) == (True, ["large.bin"])
        assert ((work / "one.txt").read_text(), (work / "large.bin").exists()) == ("one", False)


async def test_a_call_of_which_nothing_is_kept_says_so(opened: OpenSession, work: Path) -> None:
    (work / "large.bin").write_bytes(os.urandom(3_000))
    async with opened(settings={"undo": {"max_file_bytes": 2_000}}) as session:
        result = await session.call("put", {"path": "large.bin", "text": "x"})
        assert result["undo"]["kept"] is False
        assert "It cannot be undone" in result["note"]


async def test_a_call_that_makes_a_file_above_the_bound_says_so_once(opened: OpenSession, work: Path) -> None:
    async with opened(settings={"undo": {"max_file_bytes": 2_000}}) as session:
        making = "import os; f = open('large.bin', 'wb'); f.write(os.urandom(3_000)); f.close()"
        result = await session.call("act", {"code": making})
        assert f"From now on undo does not keep {work}/large.bin: it is larger" in result["note"]
        result = await session.call("act", {"code": "import os; os.rename('large.bin', 'l.bin')"})
        assert "does not keep" not in result.get("note", "")


async def test_the_oldest_go_first_when_the_store_is_full(
    opened: OpenSession, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handrail.undo.store.SPARED_S", 0)
    async with opened(settings={"undo": {"max_bytes": 1_000_000}}) as session:
        for number in range(12):
            (work / "big.bin").write_bytes(os.urandom(200_000))
            assert (await session.call("put", {"path": "big.bin", "text": str(number)}))["undo"]["kept"] is True
        plans = await session.undo_plans(most=50)
        assert 1 <= len(plans) < 12
        store = session.runtime.places.undo
        assert (
            sum(file.stat().st_size for file in store.rglob("*") if file.parent.parent.name == "contents") <= 1_000_000
        )
        assert (await session.undo()).ok


async def test_what_a_call_makes_takes_no_room_from_what_was_there_before(opened: OpenSession, work: Path) -> None:
    crowd = "import os; [open(f'new{n}', 'wb').write(os.urandom(90_000)) for n in range(30)]"
    async with opened(settings={"undo": {"max_bytes": 1_000_000}}) as session:
        assert (await session.call("take", {"path": "sub"}))["undo"] == {"kept": True}
        for _ in range(3):
            await session.call("act", {"code": crowd})
        assert (await session.undo("c1")).ok
    assert (work / "sub/three.txt").read_text() == "three"


async def test_what_calls_made_goes_before_what_was_there_when_the_store_is_full(
    opened: OpenSession, work: Path
) -> None:
    kept = os.urandom(150_000)
    (work / "big.bin").write_bytes(kept)
    change = "import os; open('big.bin', 'wb').write(os.urandom(150_000))"
    async with opened(settings={"undo": {"max_bytes": 1_000_000}}) as session:
        for _ in range(30):
            assert (await session.call("act", {"code": change}))["undo"] == {"kept": True, "covers": "workspace"}
        assert len(await session.undo_plans(most=50)) < 30
        assert (await session.undo()).ok
        assert (await session.undo("c1", force=True)).ok
    assert (work / "big.bin").read_bytes() == kept


async def test_a_workspace_in_use_is_not_given_up_for_its_own_new_files(
    opened: OpenSession, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = os.urandom(500_000)
    (work / "kept.bin").write_bytes(kept)
    monkeypatch.setattr("handrail.undo.store.RECENT_USE_S", 0.2)
    # So that the time of change is told from the look.
    await anyio.sleep(0.1)
    async with opened(settings={"undo": {"max_bytes": 1_000_000}}) as session:
        await session.call("act", {"code": "pass"})
        await anyio.sleep(0.3)
        (work / "new.bin").write_bytes(os.urandom(700_000))
        await session.call("act", {"code": "import os; os.remove('kept.bin')"})
        assert (await session.undo()).ok
    assert (work / "kept.bin").read_bytes() == kept


async def test_small_files_are_kept_before_large_ones(opened: OpenSession, work: Path) -> None:
    for number in range(8):
        (work / f"big{number}").write_bytes(os.urandom(200_000))
    (work / "sub/zz.txt").write_text("small")
    async with opened(settings={"undo": {"max_bytes": 1_000_000}}) as session:
        result = await session.call("act", {"code": "import shutil, os; shutil.rmtree('sub'); os.remove('one.txt')"})
        assert (result["undo"], "undo.max_bytes is reached" in result["note"]) == (
            {"kept": True, "covers": "workspace"},
            True,
        )
        assert (await session.undo()).ok
        assert (work / "sub/zz.txt").read_text() == "small"


async def test_of_too_many_files_those_are_kept_that_a_call_names(opened: OpenSession, work: Path) -> None:
    (work / "many").mkdir()
    for number in range(60):
        (work / f"many/{number}").touch()
    async with opened(settings={"undo": {"max_files": 50}}) as session:
        told = await session.call("act", {"code": "import os; os.remove('one.txt')"})
        assert "more files than undo.max_files" in told["undo"]["why"]
        assert (await session.call("put", {"path": "two.txt", "text": "x"}))["undo"] == {"kept": True}
        assert (await session.call("take", {"path": "sub"}))["undo"] == {"kept": True}
        assert (await session.undo()).ok
        assert (await session.undo()).ok
        assert ((work / "two.txt").read_text(), (work / "sub/three.txt").read_text()) == ("two", "three")
        lost = await session.call("take", {"path": "many"})
        assert lost["undo"]["kept"] is False


async def test_generated_folders_are_left_out_and_told_of(opened: OpenSession, work: Path) -> None:
    make_repository(work)
    (work / ".gitignore").write_text("build/\nnotes.local\nhand/\n")
    for path in ("build/out.o", "hand/written.txt", "node_modules/x/index.js", "venv/lib/a.py", "notes.local"):
        (work / path).parent.mkdir(parents=True, exist_ok=True)
        (work / path).write_text("x")
    (work / "venv/pyvenv.cfg").touch()
    async with opened() as session:
        code = "import shutil, os; [shutil.rmtree(f) for f in ('build', 'hand', 'node_modules', 'venv')]; os.remove('notes.local')"
        result = await session.call("act", {"code": code})
        # Nothing says that this one is generated: git does not ignore it, and no tool has left its mark.
        assert "node_modules" not in result["undo"]["not_kept"]
        assert f"{work}/build: generated, and git ignores it" in result["undo"]["not_kept"]
        assert f"{work}/venv: generated" in result["undo"]["not_kept"]
        (plan,) = await session.undo_plans()
        assert {Path(path.path).name for path in plan.lost} == {"build", "venv"}
        assert (await session.undo(skip_changed=True)).ok
    for path in ("hand/written.txt", "node_modules/x/index.js", "notes.local"):
        assert (work / path).read_text() == "x"
    assert not (work / "build").exists()


async def test_what_was_kept_once_stays_kept_whatever_git_is_told_to_ignore(opened: OpenSession, work: Path) -> None:
    make_repository(work)
    (work / "build").mkdir()
    (work / "build/by-hand.txt").write_text("mine")
    async with opened() as session:
        await session.call("act", {"code": "open('.gitignore', 'w').write('build/\\n')"})
        await session.call("act", {"code": "import shutil; shutil.rmtree('build')"})
        assert (await session.undo()).ok
    assert (work / "build/by-hand.txt").read_text() == "mine"


async def test_a_folder_that_comes_with_its_ignore_rule_is_undone(opened: OpenSession, work: Path) -> None:
    make_repository(work)
    async with opened() as session:
        code = "import shutil; shutil.copytree('sub', 'target/sub'); open('.gitignore', 'w').write('target/\\n')"
        assert (await session.call("act", {"code": code}))["undo"]["kept"] is True
        undone = await session.undo()
        assert (undone.ok, undone["effect"]) == (True, "confirmed")
        assert not (work / "target").exists()
        assert not (work / ".gitignore").exists()


async def test_a_folder_that_was_left_out_is_not_taken_for_new_when_rules_change(
    opened: OpenSession, work: Path
) -> None:
    make_repository(work)
    (work / ".gitignore").write_text("target/\n")
    (work / "target").mkdir()
    (work / "target/out.o").write_text("mine")
    async with opened() as session:
        code = "open('.gitignore', 'a').write('dist/\\n'); open('target/new.o', 'w').write('x')"
        await session.call("act", {"code": code})
        assert (await session.undo(skip_changed=True)).ok
    assert (work / ".gitignore").read_text() == "target/\n"
    assert (work / "target/out.o").read_text() == "mine"


MARKS = [
    pytest.param("build/pyvenv.cfg", "home = /usr", id="a-file-of-a-tool"),
    pytest.param("build/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55", id="a-tag"),
    pytest.param(".gitignore", "build/\n", id="what-git-ignores"),
]


@pytest.mark.parametrize("max_files", [50_000, 50])
@pytest.mark.parametrize(("mark", "text"), MARKS)
async def test_no_call_makes_a_persons_files_count_as_generated(
    opened: OpenSession, work: Path, mark: str, text: str, max_files: int
) -> None:
    make_repository(work)
    for path in ("build/by-hand.txt", *(f"many/{number}" for number in range(60))):
        (work / path).parent.mkdir(exist_ok=True)
        (work / path).write_text("mine")
    async with opened(settings={"undo": {"max_files": max_files}}) as session:
        await session.call("put", {"path": mark, "text": text})
        assert (await session.call("take", {"path": "build"}))["undo"] == {"kept": True}
        assert (await session.undo()).ok
    assert (work / "build/by-hand.txt").read_text() == "mine"


async def test_what_a_person_makes_meanwhile_is_kept_before_a_call_marks_it(opened: OpenSession, work: Path) -> None:
    async with opened() as session:
        await session.call("put", {"path": "one.txt", "text": "x"})
        (work / "build").mkdir()
        (work / "build/by-hand.txt").write_text("mine")
        await session.call("put", {"path": "build/pyvenv.cfg", "text": ""})
        await session.call("take", {"path": "build"})
        assert (await session.undo()).ok
    assert (work / "build/by-hand.txt").read_text() == "mine"


async def test_a_call_that_makes_too_many_files_says_that_it_cannot_be_undone(opened: OpenSession) -> None:
    async with opened(settings={"undo": {"max_files": 50}}) as session:
        result = await session.call("act", {"code": "[open(f'{n}', 'w') for n in range(60)]"})
        why = "the workspace holds more files than undo.max_files: files that it made are not covered"
        assert result["undo"] == {"kept": False, "why": why}


# Calls that pass a bound while they run

CROWDS = "[open(f'new{n}', 'w').close() for n in range(60)]"


async def test_what_was_kept_before_is_put_back_after_a_call_that_makes_too_many_files(
    opened: OpenSession, work: Path
) -> None:
    (work / "link").symlink_to("one.txt")
    (work / "box/deep").mkdir(parents=True)
    (work / "box/deep/four.txt").write_text("four")
    (work / "other").mkdir()
    (work / "other/five.txt").write_text("five")
    (work / "gone.txt").write_text("gone")
    before = seen(work)
    code = (
        "import os, shutil; open('one.txt', 'w').write('x'); os.chmod('two.txt', 0o600); shutil.rmtree('sub');"
        "os.remove('link'); os.symlink('two.txt', 'link'); os.remove('gone.txt');"
        "shutil.rmtree('box'); os.rename('other', 'box'); [open(f'box/{n}', 'w').close() for n in range(60)]"
    )
    async with opened(settings={"undo": {"max_files": 50}}) as session:
        await session.call("act", {"code": "pass"})
        result = await session.call("act", {"code": code})
        why = "the workspace holds more files than undo.max_files: files that it made are not covered"
        assert result["undo"] == {"kept": True, "why": why, "covers": "workspace"}
        assert f"Undo covers it in part: {why}." in result["note"]
        (plan,) = await session.undo_plans()
        assert why in plan.wire()["notes"]
        assert (await session.undo()).ok
        made = {f"box/{n}" for n in range(60)} | {"box/five.txt"}
        assert {path: state for path, state in seen(work).items() if path not in made} == before
        assert (work / "box/59").exists()


async def test_a_folder_with_new_files_in_the_place_of_a_file_keeps_nothing_else_from_being_put_back(
    opened: OpenSession, work: Path
) -> None:
    code = f"import os, shutil; shutil.rmtree('sub'); os.remove('one.txt'); os.mkdir('one.txt'); open('one.txt/new', 'w'); {CROWDS}"
    async with opened(settings={"undo": {"max_files": 50}}) as session:
        await session.call("act", {"code": "pass"})
        await session.call("act", {"code": code})
        assert "one.txt: a folder is there, and undo does not cover what is in it" in str((await session.undo()).wire())
        assert (await session.undo("c2", skip_changed=True)).ok
        assert (work / "sub/three.txt").read_text() == "three"
        shutil.rmtree(work / "one.txt")
        assert (await session.undo("c2", force=True)).ok
    assert (work / "one.txt").read_text() == "one"


async def test_a_link_in_the_place_of_a_folder_is_not_followed(opened: OpenSession, work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "three.txt").write_text("elsewhere")
    async with opened(settings={"undo": {"max_files": 50}}) as session:
        await session.call("act", {"code": "pass"})
        code = f"import os, shutil; shutil.rmtree('sub'); os.symlink({str(outside)!r}, 'sub'); {CROWDS}"
        await session.call("act", {"code": code})
        assert (await session.undo()).ok
    assert ((work / "sub/three.txt").read_text(), (work / "sub").is_symlink()) == ("three", False)
    assert (outside / "three.txt").read_text() == "elsewhere"


async def test_the_new_files_of_a_call_that_made_too_many_are_put_down_to_no_later_one(
    opened: OpenSession, work: Path
) -> None:
    async with opened(settings={"undo": {"max_files": 50}}) as session:
        await session.call("act", {"code": "pass"})
        await session.call("act", {"code": f"open('one.txt', 'w').write('x'); {CROWDS}"})
        for number in range(30):
            (work / f"new{number}").unlink()
        await session.call("act", {"code": "open('two.txt', 'w').write('y')"})
        assert (await session.undo("c3")).ok
        assert (await session.undo("c2")).ok
    assert ((work / "one.txt").read_text(), (work / "two.txt").read_text()) == ("one", "two")
    assert (work / "new59").exists()


async def test_what_was_kept_before_is_put_back_after_a_call_that_fills_the_store(
    opened: OpenSession, work: Path
) -> None:
    code = (
        "import os, shutil; shutil.rmtree('sub'); os.remove('two.txt'); open('one.txt', 'wb').write(os.urandom(90_000));"
        "[open(f'new{n}', 'wb').write(os.urandom(90_000)) for n in range(30)]"
    )
    before = seen(work)
    async with opened(settings={"undo": {"max_bytes": 1_000_000}}) as session:
        await session.call("act", {"code": "pass"})
        assert (await session.call("act", {"code": code}))["undo"]["kept"] is True
        assert (await session.undo(force=True)).ok
    assert seen(work) == before


# Files that are not kept


@pytest.mark.parametrize("name", ["large2.bin", "scratch.iso"])
async def test_a_file_that_is_not_kept_gets_its_name_again(opened: OpenSession, work: Path, name: str) -> None:
    data = os.urandom(3_000)
    (work / "large.bin").write_bytes(data)
    (work / "large.bin").chmod(0o640)
    before = seen(work)
    async with opened(settings={"undo": {"max_file_bytes": 2_000, "leave_out": ["*.iso"]}}) as session:
        renamed = await session.call(
            "act", {"code": f"import os; os.rename('large.bin', '{name}'); os.remove('one.txt')"}
        )
        assert (renamed["undo"]["kept"], "not_kept" in renamed["undo"]) == (True, False)
        after = seen(work)
        assert (await session.undo("c1")).ok
        assert seen(work) == before
        assert (await session.undo("c2")).ok
        assert seen(work) == after


async def test_a_file_of_the_same_name_is_not_taken_for_one_that_was_renamed(opened: OpenSession, work: Path) -> None:
    (work / "large.bin").write_bytes(os.urandom(3_000))
    async with opened(settings={"undo": {"max_file_bytes": 2_000}}) as session:
        code = "import os; os.rename('large.bin', 'l.bin'); f = open('l.bin', 'ab'); f.write(b'more'); f.close()"
        told = await session.call("act", {"code": code})
        assert "large.bin: it is larger than undo.max_file_bytes" in told["undo"]["not_kept"]
        assert not (await session.undo()).ok


async def test_an_error_that_is_not_the_stores_leaves_undo_on(opened: OpenSession, work: Path) -> None:
    def fails(keeper: UndoKeeper) -> None:
        with keeper.step():
            os.lstat(work / "missing")

    async with opened() as session:
        await session.call("put", {"path": "one.txt", "text": "x"})
        with pytest.raises(Downstream, match="missing"):
            await session.runtime.undo.run(fails)
        assert session.changes.undoable is True


async def test_a_setting_leaves_out_more(opened: OpenSession, work: Path) -> None:
    (work / "data/raw").mkdir(parents=True)
    (work / "data/raw/a").write_text("a")
    (work / "x.log").write_text("x")
    async with opened(settings={"undo": {"leave_out": ["data/raw", "*.log"]}}) as session:
        result = await session.call("act", {"code": "import shutil, os; shutil.rmtree('data'); os.remove('x.log')"})
        assert (
            result["undo"]["not_kept"].count("listed in undo.leave_out"),
            (await session.undo(skip_changed=True)).ok,
        ) == (2, True)
    assert ((work / "data").is_dir(), (work / "data/raw").exists(), (work / "x.log").exists()) == (True, False, False)


async def test_data_of_git_is_neither_kept_nor_put_back(opened: OpenSession, work: Path) -> None:
    make_repository(work / "sub")
    async with opened() as session:
        result = await session.call("act", {"code": "import shutil; shutil.rmtree('sub')"})
        assert f"{work}/sub/.git: data of version control" in result["undo"]["not_kept"]
        assert (await session.undo(skip_changed=True)).ok
        assert ((work / "sub/three.txt").read_text(), (work / "sub/.git").exists()) == ("three", False)
        # What a call makes of it stays, too.
        await session.call(
            "act", {"code": "import subprocess; subprocess.run(['git', 'init', '-q', 'new'], check=True)"}
        )
        done = await session.undo()
        assert done["left"] == [str(work / "new")]
        assert (work / "new/.git/HEAD").exists()


async def test_a_call_that_damages_a_repository_says_so(opened: OpenSession, work: Path) -> None:
    make_repository(work)
    async with opened() as session:
        await session.call("put", {"path": "two.txt", "text": "x"})
        result = await session.call("act", {"code": "import shutil; shutil.rmtree('.git/refs')"})
        assert (result["undo"]["kept"], result["undo"]["not_kept"]) == (False, f"{work}/.git: data of version control")
        again = await session.call("act", {"code": "open('.git/x', 'w')"})
        assert "refs" not in str(again.wire())


@pytest.mark.parametrize("force", [True, False])
async def test_files_come_back_into_a_generated_folder_that_is_gone(
    opened: OpenSession, work: Path, *, force: bool
) -> None:
    tag = {"path": "target/CACHEDIR.TAG", "text": "Signature: 8a477f597d28d172789f06886806bc55"}
    async with opened() as session:
        await session.call("act", {"code": "import os; os.mkdir('target')"})
        await session.call("put", tag)
        await session.call("act", {"code": "import os; os.rename('sub', 'target/sub')"})
        await session.call("act", {"code": "import shutil; shutil.rmtree('target')"})
        await session.undo(force=force, skip_changed=not force)
        assert (await session.undo(force=force, skip_changed=not force)).ok
    assert (work / "sub/three.txt").read_text() == "three"


async def test_pipes_and_sockets_are_neither_read_nor_made(session: Session, work: Path) -> None:
    os.mkfifo(work / "pipe")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(work / "sock"))
        result = await session.call(
            "act", {"code": "import os; os.remove('pipe'); os.remove('sock'); os.mkfifo('new')"}
        )
    assert "pipe" in result["undo"]["not_kept"]
    assert (await session.undo(skip_changed=True)).ok
    assert [(work / name).exists() for name in ("pipe", "sock", "new")] == [False, False, False]


async def test_a_sparse_file_takes_no_more_room_than_it_has(session: Session, work: Path) -> None:
    with (work / "sparse").open("wb") as file:
        file.truncate(50_000_000)
        file.seek(20_000_000)
        file.write(b"here")
    await session.call("act", {"code": "import os; os.remove('sparse')"})
    kept = sum(f.stat().st_blocks * 512 for f in (session.runtime.places.undo / "contents").rglob("*") if f.is_file())
    assert kept < 2_000_000
    assert (await session.undo()).ok
    data = (work / "sparse").read_bytes()
    assert (len(data), data[20_000_000:20_000_004], data.count(0)) == (50_000_000, b"here", 49_999_996)


async def test_old_calls_are_forgotten_with_their_contents(opened: OpenSession, work: Path, tmp_path: Path) -> None:
    (work / "big.bin").write_bytes(os.urandom(500_000))
    async with opened() as session:
        await session.call("take", {"path": "big.bin"})
        store = session.runtime.places.undo
        long_ago = time.time() - 40 * 86_400

        await session.runtime.undo.run(lambda keeper: None)
        with sqlite3.connect(store / "undo.sqlite3") as database:
            database.execute("UPDATE calls SET ended = ?", (long_ago,))
        database.close()
        assert [f for f in (store / "contents").rglob("*") if f.is_file()]
        await session.runtime.undo.run(lambda keeper: keeper.prune(now=True))
        assert await session.undo_plans() == []
        assert not [f for f in (store / "contents").rglob("*") if f.is_file()]


# What is allowed because it can be undone


async def test_a_call_that_relies_on_undo_runs_where_it_can_be_undone(opened: OpenSession, work: Path) -> None:
    async with opened(confirm=None, evaluators=[Always(RELYING)], trusted=True, tools=[change]) as session:
        assert (await session.call("change", {"path": "one.txt"}))["undo"]["kept"] is True


@pytest.mark.parametrize(
    "settings",
    [
        pytest.param({"max_file_bytes": 1_000}, id="too-large"),
        pytest.param({"enabled": False}, id="undo-is-off"),
    ],
)
async def test_a_call_that_relies_on_undo_does_not_run_where_it_cannot_be(
    opened: OpenSession, work: Path, settings: dict[str, object]
) -> None:
    (work / "one.txt").write_bytes(b"x" * 2_000)
    before = seen(work)
    given = {"evaluators": [Always(RELYING)], "trusted": True, "tools": [change], "settings": {"undo": settings}}
    async with opened(confirm=None, **given) as session:
        refused = await session.call("change", {"path": "one.txt"})
        assert (refused.status, refused.error_code) == ("denied", "not_undoable")
        assert seen(work) == before
    asked: list[str] = []

    async def person(approval: Approval) -> Answer:
        asked.append(str(approval))
        return await yes(approval)

    async with opened(confirm=person, **given) as session:
        assert (await session.call("change", {"path": "one.txt"})).ok
    assert len(asked) == 1
    assert "could not be undone" in asked[0]


async def test_a_call_that_relies_on_undo_does_not_run_where_the_store_is_damaged(
    opened: OpenSession, work: Path
) -> None:
    before = seen(work)
    given = {"evaluators": [Always(RELYING)], "trusted": True, "tools": [change], "confirm": None}
    async with opened(**given) as session:
        folder = session.runtime.places.undo
        folder.mkdir(parents=True)
        (folder / "undo.sqlite3").write_bytes(b"this is no database" * 1_000)
        assert (await session.call("change", {"path": "one.txt"})).error_code == "not_undoable"
        assert seen(work) == before
        assert session.court.judging.undoable is False


async def test_judges_are_told_whether_calls_can_be_undone(opened: OpenSession) -> None:
    heard: list[bool] = []

    class Hears(Always):
        async def opinion(self, invocation: object, judging: EvaluationContext) -> Opinion | None:
            heard.append(judging.undoable)
            return None

    for enabled in (True, False):
        async with opened(evaluators=[Hears(None)], settings={"undo": {"enabled": enabled}}) as session:
            await session.call("put", {"path": "one.txt", "text": "x"})
    assert (heard[0], heard[-1]) == (True, False)


async def test_a_call_of_which_nothing_can_be_put_back_is_passed_over(opened: OpenSession, work: Path) -> None:
    make_repository(work)
    (work / ".gitignore").write_text("node_modules\n")
    (work / "node_modules/x").mkdir(parents=True)
    (work / "node_modules/x/i.js").write_text("x")
    (work / "large.bin").write_bytes(os.urandom(3_000))
    async with opened(settings={"undo": {"max_file_bytes": 2_000}}) as session:
        await session.call("put", {"path": "one.txt", "text": "2"})
        await session.call("act", {"code": "import shutil; shutil.rmtree('node_modules')"})
        await session.call("act", {"code": "import os; os.remove('large.bin')"})
        for force, skip_changed in ((False, False), (True, False), (False, True)):
            refused = (await session.undo("c2", force=force, skip_changed=skip_changed))["error"]
            assert f"not kept: {work}/node_modules: generated, and git ignores it" in refused["message"]
            assert "--" not in refused["message"]
        plans = await session.undo_plans()
        assert [plan.hopeless for plan in plans] == [True, True, False]
        done = await session.undo()
        assert ((work / "one.txt").read_text(), len(done["passed_over"])) == ("one", 2)
        assert f"{session.id}/c2 was passed over: nothing of it can be put back" in done["passed_over"][1]
        assert "c2 was passed over" in (await session.undo())["error"]["message"]


async def test_the_rest_of_a_folder_with_a_pipe_is_undone(opened: OpenSession, work: Path) -> None:
    os.mkfifo(work / "sub/pipe")
    async with opened() as session:
        await session.call("act", {"code": "import shutil; shutil.rmtree('sub')"})
        refused = (await session.undo())["error"]
        assert f"not kept: {work}/sub/pipe: a pipe, socket or device" in refused["message"]
        assert refused["message"].endswith("; --skip-changed undoes the rest")
        assert (await session.undo(skip_changed=True)).ok
    assert (work / "sub/three.txt").read_text() == "three"


@pytest.mark.parametrize(
    ("given", "gone"),
    [
        pytest.param({}, None, id="refused"),
        pytest.param({"skip_changed": True}, False, id="left"),
        pytest.param({"force": True}, True, id="forced"),
        pytest.param({"final": True}, True, id="approved"),
    ],
)
async def test_a_new_file_that_redo_could_not_bring_back_is_not_deleted_unasked(
    opened: OpenSession, work: Path, given: dict[str, Any], gone: bool | None
) -> None:
    before = seen(work)
    async with opened(settings={"undo": {"max_file_bytes": 2_000}}) as session:
        await session.call("act", {"code": "open('huge', 'w').write('x' * 3000); open('one.txt', 'w').write('1')"})
        (plan,) = await session.undo_plans()
        assert [Path(path.path).name for path in plan.final] == ["huge"]
        done = await session.undo(**given)
        if gone is None:
            assert f"cannot be brought back by redo: {work}/huge: it is larger" in done["error"]["message"]
            assert "--force" in done["error"]["message"]
            assert (work / "one.txt").read_text() == "1"
        else:
            assert (done.ok, (work / "one.txt").read_text(), (work / "huge").exists()) == (True, "one", not gone)
            assert not gone or seen(work) == before
