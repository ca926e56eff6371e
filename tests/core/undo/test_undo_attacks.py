"""Undo in workspaces that somebody arranges against it."""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from handrail import Session
from handrail.approval.rendering import question
from handrail.config.settings import UndoSettings
from handrail.errors import HandrailError
from handrail.testing import ScriptedConfirmer
from handrail.undo.file_contents import keep_file
from handrail.undo.keeper import UndoKeeper
from handrail.undo.path_states import ABSENT_STATE, PathKind, PathState, build_state
from handrail.undo.plans import PathPlan
from handrail.undo.restore import PathRestorer
from handrail.undo.selection import find_undo_plan
from handrail.undo.store import UndoStore

from .workspace import OpenSession, seen


async def test_a_folder_that_became_a_link_is_not_written_through(session: Session, work: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    await session.call(
        "act", {"code": "open('sub/three.txt', 'w').write('changed'); open('sub/new.txt', 'w').write('new')"}
    )
    (work / "sub").rename(tmp_path / "elsewhere")
    # What lies there is as the call left it, so that only the way to it tells that it is not the same.
    for name in ("three.txt", "new.txt"):
        (outside / name).write_bytes((tmp_path / "elsewhere" / name).read_bytes())
    (work / "sub").symlink_to(outside)
    before = seen(outside)
    for force, skip_changed in ((False, False), (True, False), (False, True)):
        await session.undo("c1", force=force, skip_changed=skip_changed)
        assert seen(outside) == before
        assert os.readlink(work / "sub") == str(outside)


async def test_a_link_that_a_call_made_is_taken_away_and_what_it_leads_to_is_not(
    session: Session, work: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("kept")
    before = seen(work)
    code = f"import shutil, os; shutil.rmtree('sub'); os.symlink({str(outside)!r}, 'sub'); os.remove('sub/kept.txt')"
    (outside / "kept.txt").write_text("kept")
    await session.call("act", {"code": code.rpartition(";")[0]})
    assert (await session.undo()).ok
    assert seen(work) == before
    assert (outside / "kept.txt").read_text() == "kept"


async def test_a_file_that_became_a_link_is_not_written_through(session: Session, work: Path, tmp_path: Path) -> None:
    target = tmp_path / "victim.txt"
    target.write_text("changed")
    await session.call("put", {"path": "one.txt", "text": "changed"})
    (work / "one.txt").unlink()
    (work / "one.txt").symlink_to(target)
    assert (await session.undo()).status != "success"
    assert (await session.undo("c1", force=True)).ok
    assert ((work / "one.txt").is_symlink(), (work / "one.txt").read_text(), target.read_text()) == (
        False,
        "one",
        "changed",
    )


async def test_a_folder_with_other_work_in_the_place_of_a_file_stays_and_is_told_of(
    session: Session, work: Path
) -> None:
    await session.call("put", {"path": "new.txt", "text": "new"})
    (work / "new.txt").unlink()
    (work / "new.txt").mkdir()
    (work / "new.txt" / "own").write_text("own work")
    result = await session.undo("c1", force=True)
    assert (result["effect"], result["count"], result["left"]) == ("none", 0, [str(work / "new.txt")])
    assert (work / "new.txt" / "own").read_text() == "own work"


async def test_another_name_of_a_file_outside_is_not_written_through(
    session: Session, work: Path, tmp_path: Path
) -> None:
    target = tmp_path / "victim.txt"
    target.write_text("changed")
    await session.call("put", {"path": "one.txt", "text": "changed"})
    (work / "one.txt").unlink()
    os.link(target, work / "one.txt")
    await session.undo("c1", force=True)
    assert ((work / "one.txt").read_text(), target.read_text()) == ("one", "changed")


@pytest.mark.parametrize("at", range(6))
def test_a_folder_that_is_exchanged_while_undo_works_is_not_written_through(tmp_path: Path, at: int) -> None:
    """Somebody exchanges a folder for a link after so many steps: nothing outside changes, and inside all is as before or all is undone."""
    work, outside = tmp_path / "work", tmp_path / "outside"
    for folder in (work, outside):
        (folder / "d").mkdir(parents=True)
    for name in ("a", "b"):
        (work / "d" / name).write_text("now")
        (outside / name).write_text("now")
    store = UndoStore(tmp_path / "undo", UndoSettings())
    plans = _restoring(store, [work / "d/a", work / "d/b"])
    steps = 0

    def exchange() -> None:
        nonlocal steps
        if steps == at:
            (work / "d").rename(work / "moved")
            (work / "d").symlink_to(outside)
        steps += 1

    before = seen(outside)
    with store.turn(), store.written(), contextlib.suppress(HandrailError):
        PathRestorer(store, {}).apply(plans, check=exchange)
    store.close()
    assert seen(outside) == before


def test_what_fails_half_way_is_taken_back(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    for name in ("a", "b", "c"):
        (work / name).write_text("now")
        (work / name).chmod(0o640)
    (work / "made").mkdir()
    (work / "made/x").write_text("x")
    before = seen(work)
    store = UndoStore(tmp_path / "undo", UndoSettings())
    plans = _restoring(store, [work / "a", work / "b", work / "c"])
    plans += [
        PathPlan(str(path), "delete", _state(store, path), ABSENT_STATE) for path in (work / "made", work / "made/x")
    ]
    for last in range(2 * len(plans)):
        steps = iter(range(last))

        def check(steps: Iterator[int] = steps) -> None:
            if next(steps, None) is None:
                raise KeyError("enough")

        fresh = [PathPlan(p.path, p.step, _state(store, Path(p.path)), p.wanted) for p in plans]
        with store.turn(), store.written(), pytest.raises(KeyError):
            PathRestorer(store, {}).apply(fresh, check=check)
        assert seen(work) == before, last
    store.close()


async def test_files_that_are_written_all_the_time_are_told_of(session: Session, work: Path) -> None:
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            (work / "busy.log").write_text(str(number) * 20_000)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        for _ in range(5):
            result = await session.call("act", {"code": "import os; os.path.exists('one.txt')"})
            assert result.ok
    finally:
        stop.set()
        thread.join()
    await session.call("take", {"path": "one.txt"})
    assert (await session.undo()).ok
    assert (work / "one.txt").read_text() == "one"


async def test_many_links_in_a_circle_and_deep_folders_do_no_harm(session: Session, work: Path) -> None:
    (work / "loop").symlink_to(".")
    (work / "self").symlink_to("self")
    deep = work
    for _ in range(150):
        deep = deep / "d"
        deep.mkdir()
    (deep / "far").touch()
    await session.call("act", {"code": "import os; os.remove('loop'); os.remove('one.txt')"})
    assert (await session.undo()).ok
    assert (os.readlink(work / "loop"), (work / "one.txt").read_text()) == (".", "one")


async def test_names_of_a_file_are_names_of_one_file_again(session: Session, work: Path) -> None:
    os.link(work / "one.txt", work / "other.txt")
    os.link(work / "one.txt", work / "third.txt")
    await session.call("act", {"code": "import os; os.remove('other.txt'); open('one.txt', 'a').write('!')"})
    assert (work / "third.txt").read_text() == "one!"
    assert (await session.undo()).ok
    assert {(work / name).read_text() for name in ("one.txt", "other.txt", "third.txt")} == {"one"}
    assert len({(work / name).stat().st_ino for name in ("one.txt", "other.txt", "third.txt")}) == 1


async def test_one_name_that_was_deleted_is_the_same_file_again(session: Session, work: Path) -> None:
    os.link(work / "one.txt", work / "other.txt")
    await session.call("take", {"path": "other.txt"})
    assert (await session.undo()).ok
    assert (work / "one.txt").stat().st_ino == (work / "other.txt").stat().st_ino


async def test_a_folder_that_has_vanished_is_made_again_around_what_is_put_back(session: Session, work: Path) -> None:
    await session.call("take", {"path": "sub/three.txt"})
    (work / "sub").rmdir()
    assert (await session.undo()).ok
    assert (work / "sub/three.txt").read_text() == "three"


async def test_damaged_contents_are_not_put_back(opened: OpenSession, work: Path) -> None:
    (work / "big.bin").write_bytes(os.urandom(300_000))
    async with opened() as session:
        await session.call("act", {"code": "import os; os.remove('big.bin'); os.remove('one.txt')"})
        (kept,) = [file for file in (session.runtime.places.undo / "contents").rglob("*") if file.is_file()]
        kept.write_bytes(b"other")
        result = await session.undo()
        assert "damaged" in result["error"]["message"]
        assert not (work / "one.txt").exists()


async def test_undo_that_is_cancelled_has_undone_nothing_or_all(session: Session, work: Path) -> None:
    for number in range(300):
        (work / f"f{number}").write_text(str(number))
    before = seen(work)
    await session.call("act", {"code": "import glob, os; [os.remove(f) for f in glob.glob('f*')]"})
    after = seen(work)
    for delay in (0.0, 0.01, 0.03, 0.06, 0.1):
        with anyio.move_on_after(delay):
            await session.undo("c1")
        await session.runtime.undo.run(lambda keeper: None)
        assert seen(work) in (before, after)
        if seen(work) == before:
            break


def _restoring(store: UndoStore, paths: list[Path]) -> list[PathPlan]:
    """Plans that put `before` into files."""
    data = b"before"
    digest = hashlib.sha256(data).digest()
    with store.turn(), store.written():
        store.put(digest, data)
    wanted = PathState(PathKind.FILE, mode=0o600, size=len(data), digest=digest)
    return [PathPlan(str(path), "restore", _state(store, path), wanted) for path in paths]


def _state(store: UndoStore, path: Path) -> PathState:
    """Return the state of a path, kept in the store."""
    if path.is_dir():
        return build_state(path.lstat(), now=0)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        with store.turn(), store.written():
            state = keep_file(store, folder, path.name, now=0)
    finally:
        os.close(folder)
    assert state is not None
    return state


def test_a_plan_of_nothing_says_so(tmp_path: Path) -> None:
    keeper = UndoKeeper(tmp_path / "undo", UndoSettings(), ())
    with pytest.raises(HandrailError, match="there is nothing left to undo"):
        find_undo_plan(keeper, None, [str(tmp_path)], stop=threading.Event())
    keeper.close()


@pytest.mark.parametrize("outside", [False, True])
async def test_all_names_of_a_file_show_what_was_restored(
    session: Session, work: Path, tmp_path: Path, outside: bool
) -> None:
    other = (tmp_path if outside else work) / "other.txt"
    os.link(work / "one.txt", other)
    (work / "one.txt").chmod(0o444)
    inode = other.stat().st_ino
    for tool, args in (
        ("put", {"path": "one.txt", "text": "longer than it was"}),
        ("act", {"code": "open('one.txt', 'w').write('longer than it was')"}),
    ):
        assert (await session.call(tool, args)).ok
        done = await session.undo()
        names = "1 name elsewhere" if outside else str(other)
        assert done["also"][0] == {"path": str(work / "one.txt"), "names": names}
        assert {(work / "one.txt").read_text(), other.read_text()} == {"one"}
        assert (other.stat().st_ino, (work / "one.txt").stat().st_ino) == (inode, inode)
        assert stat.S_IMODE(other.stat().st_mode) == 0o444


async def test_a_name_that_was_deleted_joins_the_file_that_was_edited(
    session: Session, work: Path, tmp_path: Path
) -> None:
    for name in (work / "a", work / "z", tmp_path / "outside"):
        os.link(work / "one.txt", name)
    await session.call("act", {"code": "import os; os.remove('a'); open('one.txt', 'w').write('new')"})
    assert (await session.undo()).ok
    names = (work / "a", work / "one.txt", work / "z", tmp_path / "outside")
    assert {(path.stat().st_ino, path.read_text()) for path in names} == {((work / "z").stat().st_ino, "one")}


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a\u202etxt.sh", "a\\u202etxt.sh"),
        ("zero\u200bwidth", "zero\\u200bwidth"),
        ("..%2fx", "..\\x252fx"),
        ("..\u2044x", "..\\u2044x"),
        ("%00\u202e\n\udcff", "\\x2500\\u202e\\n\\udcff"),
    ],
)
@pytest.mark.parametrize("folder", [False, True])
async def test_a_deceptive_name_that_a_call_made_is_undone_with_the_rest(
    opened: OpenSession, work: Path, name: str, shown: str, folder: bool
) -> None:
    before = seen(work)
    made = f"{name}/in" if folder else name
    # As text that a call may hold, whatever the name is.
    code = f"import os; m = {made!a}; os.makedirs(os.path.dirname(m) or '.', exist_ok=True); open(m, 'w').write('x')"
    confirmer = ScriptedConfirmer("once", "once", "once")
    rules = {"rules": [{"tool": "undo_call", "decision": "confirm"}]}
    async with opened(confirm=confirmer, settings={"policy": rules}) as session:
        assert (await session.call("act", {"code": f"{code}; open('one.txt', 'w').write('ruined')"})).ok
        done = await session.undo()
        assert done.ok, done
        assert seen(work) == before
        assert shown in question(confirmer.asked[1]).replace("\\\\", "\\")
        again = await session.undo(confirmer.asked[1].call_id)
        assert again.ok, again
        assert (work / made).read_text() == "x"
