"""Attribution of changes to calls, across sessions, processes and crashes."""

from __future__ import annotations

import asyncio
import json
import os
import random
import sqlite3
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from handrail import Session, ToolCall
from handrail.config.settings import UndoSettings
from handrail.undo.keeper import CallScope, UndoKeeper
from handrail.undo.path_states import PathKind, are_states_alike
from handrail.undo.store import CallRecord

from .workspace import OpenSession, seen

NEVER = threading.Event()
ROOT = str(Path(__file__).parents[3])


async def test_calls_that_run_together_are_undone_one_by_one(session: Session, work: Path) -> None:
    calls = [ToolCall("put", {"path": f"p{number}.txt", "text": str(number)}, f"call-{number}") for number in range(12)]
    assert all(result["undo"] == {"kept": True} for result in await session.batch(calls))
    assert (await session.undo("call-7")).ok
    assert sorted(path.name for path in work.glob("p*.txt")) == sorted(f"p{n}.txt" for n in range(12) if n != 7)


async def test_a_call_that_works_by_others_is_undone_whole(session: Session, work: Path) -> None:
    before = seen(work)
    result = await session.call("both", {})
    assert result["undo"] == {"kept": True}
    (plan,) = await session.undo_plans()
    assert (plan.call, [Path(path.path).name for path in plan.paths]) == (f"{session.id}/c1", ["one.txt", "two.txt"])
    assert (await session.undo("c1")).ok
    assert seen(work) == before


async def test_a_call_that_fails_is_undone_too(session: Session, work: Path) -> None:
    result = await session.call("act", {"code": "import os; os.remove('one.txt'); raise SystemExit(3)"})
    assert result.status == "error"
    assert (await session.undo("c1")).ok
    assert (work / "one.txt").read_text() == "one"


async def test_a_call_that_is_cancelled_is_undone_too(session: Session, work: Path) -> None:
    async def cancel_soon() -> None:
        while (work / "one.txt").exists():
            await asyncio.sleep(0.01)
        session.cancel()

    soon = asyncio.create_task(cancel_soon())
    result = await session.call("act", {"code": "import os, time; os.remove('one.txt'); time.sleep(2)"})
    await soon
    assert result.status == "cancelled"
    assert (await session.undo("c1")).ok
    assert (work / "one.txt").read_text() == "one"


async def test_what_a_person_changes_between_calls_is_nobody_elses(session: Session, work: Path) -> None:
    await session.call("act", {"code": "open('one.txt', 'w').write('1')"})
    (work / "two.txt").write_text("by hand")
    (work / "mine.txt").write_text("by hand")
    await session.call("act", {"code": "open('one.txt', 'w').write('2')"})
    plans = await session.undo_plans()
    assert [[Path(path.path).name for path in plan.paths] for plan in plans] == [["one.txt"], ["one.txt"]]
    await session.undo()
    assert ((work / "one.txt").read_text(), (work / "two.txt").read_text()) == ("1", "by hand")


async def test_the_same_contents_again_are_no_change(session: Session, work: Path) -> None:
    await session.call("put", {"path": "one.txt", "text": "one"})
    assert await session.undo_plans() == []
    (work / "one.txt").touch()
    await session.call("put", {"path": "one.txt", "text": "1"})
    (work / "one.txt").write_text("1")
    assert (await session.undo()).ok


async def test_undo_of_undo_of_undo(session: Session, work: Path) -> None:
    await session.call("put", {"path": "one.txt", "text": "1"})
    for number, text in enumerate(("one", "1", "one", "1"), start=1):
        assert (await session.undo(f"c{number}")).ok
        assert (work / "one.txt").read_text() == text
    # The call stands, and can be undone.
    assert (await session.undo()).ok
    assert (work / "one.txt").read_text() == "one"


async def test_a_call_id_of_two_sessions_has_to_be_said_whole(opened: OpenSession, work: Path) -> None:
    async with opened() as one, opened() as other:
        await one.call("put", {"path": "one.txt", "text": "1"})
        await other.call("put", {"path": "two.txt", "text": "2"})
        refused = await other.undo("c1")
        assert (refused.error_code, f"{one.id}/c1" in refused["error"]["message"]) == ("not_found", True)
        assert (await other.undo(f"{one.id}/c1")).ok
        assert (await other.undo("c9")).error_code == "not_found"


async def test_a_workspace_lists_its_own_calls(opened: OpenSession, tmp_path: Path, work: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    async with opened() as session:
        await session.call("put", {"path": "one.txt", "text": "1"})
        async with session.runtime.session(cwd=tmp_path / "elsewhere") as other:
            assert await other.undo_plans() == []
            assert (await other.undo()).error_code == "not_found"
            assert len(await other.undo_plans(everywhere=True)) == 1


KILLED = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from handrail.testing import open_test_session
from handrail.api.approval import yes
from tests.core.undo.workspace import TOOLS

async def main():
    async with open_test_session(tools=TOOLS, confirm=yes, folder=Path({folder!r}), settings={{"undo": {{"enabled": True}}}}) as session:
        await session.call({tool!r}, {args!r})

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("tool", "args"),
    [
        pytest.param("act", {"code": "import time; open('one.txt', 'w').write('half'); time.sleep(60)"}, id="anywhere"),
        pytest.param("put_and_wait", {"path": "one.txt"}, id="named"),
    ],
)
async def test_a_call_whose_process_is_killed_is_undone(
    opened: OpenSession, work: Path, tmp_path: Path, tool: str, args: dict[str, str]
) -> None:
    before = seen(work)
    process = _started(KILLED.format(root=ROOT, folder=str(tmp_path), tool=tool, args=args))
    deadline = time.monotonic() + 60
    while (work / "one.txt").read_text() != "half" and time.monotonic() < deadline:
        await asyncio.sleep(0.02)
    process.kill()
    process.wait()
    async with opened() as session:
        (plan,) = await session.undo_plans()
        assert "its process was killed" in plan.wire()["notes"][0]
        assert (await session.undo()).ok
    assert seen(work) == before


def _started(script: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", script, *words], start_new_session=True)


MANY = """
import asyncio, random, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from handrail.testing import open_test_session
from handrail.api.approval import yes
from tests.core.undo.workspace import TOOLS

async def main(number):
    async with open_test_session(tools=TOOLS, confirm=yes, folder=Path({folder!r}), settings={{"undo": {{"enabled": True}}}}) as session:
        for step in range(15):
            code = f"open('p{{number}}-{{step}}', 'w').write('x')"
            tool, args = random.choice([("act", {{"code": code}}), ("put", {{"path": f"p{{number}}-{{step}}", "text": "x"}})])
            result = await session.call(tool, args)
            assert result["undo"]["kept"], result

asyncio.run(main(int(sys.argv[1])))
"""


async def test_processes_that_work_in_one_workspace_keep_everything(
    opened: OpenSession, work: Path, tmp_path: Path
) -> None:
    before = seen(work)
    started = [_started(MANY.format(root=ROOT, folder=str(tmp_path)), str(number)) for number in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
    async with opened() as session:
        plans = await session.undo_plans(most=100)
        assert len(plans) == 45
        for plan in plans:
            # What ran beside another call may be due to either: then the other one undoes it, or has done so already.
            result = await session.undo(plan.call, skip_changed=True)
            told = "" if result.ok else result["error"]["message"]
            assert result.ok or "as they were before" in told or "it was changed since by" in told, result
    assert seen(work) == before


# What the kernel tells is what there is


@pytest.mark.parametrize("named", [True, False])
@pytest.mark.parametrize("seed", range(6))
def test_looking_where_the_kernel_points_finds_all_that_looking_everywhere_finds(
    tmp_path: Path, seed: int, named: bool
) -> None:
    work = tmp_path / "work"
    work.mkdir()
    keeper = UndoKeeper(tmp_path / "undo", UndoSettings(), ())
    scope = CallScope((str(work),), anywhere=True, confined=True, named=named)
    rng = random.Random(seed)
    for number in range(40):
        record = CallRecord(0, "s", f"c{number}", f"c{number}", "t", "w", time.time())
        id = keeper.begin(record, scope, NEVER).id
        before = seen(work)
        for _ in range(rng.randint(1, 6)):
            _change(work, rng)
        after = seen(work)
        keeper.end(id, NEVER)
        with keeper.step() as store:
            told = {change.path for _, change in store.changes_of([id])}
            known = {os.path.relpath(path, work): state for path, state in keeper.manifest.below(str(work))}
        changed = {str(work / path) for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
        assert told == changed, number
        assert known.keys() == after.keys(), number
        assert all(state.digest or state.kind is not PathKind.FILE for state in known.values())
    keeper.close()
    # Another process knows the same.
    other = UndoKeeper(tmp_path / "undo", UndoSettings(), ())
    with other.step():
        other.look_at_roots([str(work)], NEVER)
        again = {os.path.relpath(path, work): state for path, state in other.manifest.below(str(work))}
    assert again.keys() == known.keys()
    assert all(are_states_alike(state, known[path]) for path, state in again.items())
    other.close()


def _change(work: Path, rng: random.Random) -> None:
    """One change at random: of a file, a folder, a link or a mode."""
    everything = sorted(work.rglob("*"))
    folders = [work, *(path for path in everything if path.is_dir() and not path.is_symlink())]
    files = [path for path in everything if path.is_file() and not path.is_symlink()]
    new = rng.choice(folders) / f"n{rng.randint(0, 30)}"
    match rng.randint(0, 9):
        case 0 | 1 if not new.exists() and not new.is_symlink():
            new.write_text(str(rng.random()))
        case 2 if not new.exists() and not new.is_symlink():
            new.mkdir()
        case 3 if files:
            rng.choice(files).write_text(str(rng.random()))
        case 4 if files:
            rng.choice(files).unlink()
        case 5 if len(folders) > 1:
            subprocess.run(["rm", "-rf", str(rng.choice(folders[1:]))], check=True)
        case 6 if everything and not new.exists() and not new.is_symlink():
            moved = rng.choice(everything)
            if not f"{new}/".startswith(f"{moved}/"):
                moved.rename(new)
        case 7 if not new.exists() and not new.is_symlink():
            new.symlink_to(rng.choice(["a", "..", "/etc"]))
        case 8 if everything and not (chosen := rng.choice(everything)).is_symlink():
            chosen.chmod(rng.choice([0o700, 0o755, 0o750]))
        case 9 if files and not new.exists() and not new.is_symlink():
            os.link(rng.choice(files), new)
        case _:
            pass


def test_a_write_through_a_memory_map_is_found_when_the_command_is_over(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "mapped").write_bytes(b"a" * 10_000)
    (work / "other").write_bytes(b"b")
    keeper = UndoKeeper(tmp_path / "undo", UndoSettings(), ())
    scope = CallScope((str(work),), anywhere=True, confined=True)
    for number in range(3):
        id = keeper.begin(CallRecord(0, "s", f"c{number}", f"c{number}", "t", "w", time.time()), scope, NEVER).id
        code = (
            "import mmap, os, time\n"
            "fd = os.open('mapped', os.O_RDWR)\n"
            "view = mmap.mmap(fd, 0)\n"
            "os.close(fd)\n"
            f"time.sleep(0.05); view[0] = {65 + number}\n"
        )
        subprocess.run([sys.executable, "-c", code], cwd=work, check=True)
        assert keeper.end(id, NEVER).changed == 1
    keeper.close()


async def test_the_audit_names_what_was_undone(opened: OpenSession, work: Path) -> None:
    async with opened() as session:
        await session.call("put", {"path": "one.txt", "text": "1"})
        await session.undo()
        audit = session.runtime.places.audit / f"{session.id}.jsonl"
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    (call,) = [line for line in lines if line["event"] == "call" and line["tool"] == "undo_call"]
    assert (call["args"]["call"], call["args"]["writes"]) == (f"{session.id}/c1", [str(work / "one.txt")])


UNDONE = """
import asyncio, sys
from pathlib import Path
sys.path.insert(0, {root!r})
from handrail.testing import open_test_session
from handrail.api.approval import yes

async def main():
    async with open_test_session(confirm=yes, folder=Path({folder!r}), settings={{"undo": {{"enabled": True}}}}) as session:
        print(await session.undo({call!r}), flush=True)

asyncio.run(main())
"""


async def test_an_undo_that_was_killed_is_finished_by_the_next_one(
    opened: OpenSession, work: Path, tmp_path: Path
) -> None:
    for number in range(2_000):
        folder = work / f"many/d{number % 50}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}").write_text(str(number))
    (work / "many/d7").chmod(0o750)
    (work / "many/d8").chmod(0o555)
    before = seen(work)
    async with opened() as session:
        await session.call("act", {"code": "import shutil; shutil.rmtree('many')"})
        call = f"{session.id}/c1"
    process = _started(UNDONE.format(root=ROOT, folder=str(tmp_path), call=call))
    deadline = time.monotonic() + 60
    while sum(1 for _ in work.glob("many/*/f*")) < 100 and time.monotonic() < deadline:
        await asyncio.sleep(0.005)
    process.kill()
    process.wait()
    assert seen(work) != before
    async with opened() as session:
        done = await session.undo()
        assert (done.ok, done["call"]) == (True, call), done
        assert done["finished"].endswith("/c1")
        assert seen(work) == before
        # It is done.
        assert (await session.undo()).error_code == "not_found"


async def test_what_was_put_back_counts_as_undone_though_it_could_not_be_recorded_whole(
    session: Session, work: Path
) -> None:
    await session.call("put", {"path": "one.txt", "text": "changed"})
    database = session.runtime.places.undo / "undo.sqlite3"
    with sqlite3.connect(database) as other:
        # What undo changes itself cannot be written down.
        other.execute("CREATE TRIGGER full BEFORE INSERT ON changes BEGIN SELECT RAISE(ABORT, 'full'); END")
    result = await session.undo()
    assert ((work / "one.txt").read_text(), result.status, result["effect"]) == ("one", "success", "unverified")
    with sqlite3.connect(database) as other:
        other.execute("DROP TRIGGER full")
    assert [plan.undone for plan in await session.undo_plans() if plan.records[0].tool == "put"] == [True]


async def test_an_undo_that_fails_is_no_unfinished_one(session: Session, work: Path) -> None:
    await session.call("take", {"path": "sub/three.txt"})
    (work / "sub").rmdir()
    (work / "sub").write_text("a file by now")
    assert not (await session.undo()).ok
    (plan,) = await session.undo_plans()
    assert (plan.undone, plan.unfinished) == (False, None)
