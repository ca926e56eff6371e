"""Undo of what commands and tools do to files through other names of them (hard links), which the kernel tells of in no folder but their own."""

from __future__ import annotations

import os
import random
import stat
import sys
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

import handrail
from handrail import Session
from handrail.api.approval import yes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")

GENERATED = "node_modules"
SHORT_LIVED = """python3 - <<'END'
import os
os.link('notes/n.txt', 'short')
open('short', 'w').write('evil')
os.unlink('short')
END"""
Call = tuple[str, dict[str, str]]


def run(command: str) -> Call:
    return "execute_cli", {"command": command}


def write(path: str, content: str = "evil") -> Call:
    return "write_file", {"file_path": path, "content": content}


def edit(path: str) -> Call:
    return "edit_file", {"file_path": path, "old_string": "precious", "new_string": "evil"}


def kept(work: Path) -> dict[str, tuple[int, bytes]]:
    """The files that undo keeps: mode and contents by path. Folders have no contents."""
    found = {str(path.relative_to(work)): path for path in sorted(work.rglob("*"))}
    return {
        name: (stat.S_IMODE(path.lstat().st_mode), path.read_bytes() if path.is_file() else b"")
        for name, path in found.items()
        if name.partition("/")[0] not in (GENERATED, ".git")
    }


@pytest.fixture
def work(tmp_path: Path) -> Path:
    work = tmp_path / "work"
    for folder in ("notes", "other", f"{GENERATED}/x"):
        (work / folder).mkdir(parents=True)
    (work / GENERATED / ".package-lock.json").write_text("{}")
    (work / "notes/n.txt").write_text("precious\n")
    for number in range(3):
        (work / f"notes/f{number}").write_text(f"one {number}\n")
        (work / f"f{number}").write_text(f"two {number}\n")
    return work


@pytest.fixture
async def session(work: Path) -> AsyncGenerator[Session]:
    async with handrail.open(cwd=work, confirm=yes) as opened:
        yield opened


async def undo_all(session: Session) -> None:
    for _ in range(100):
        done = await session.undo()
        if done.error_code == "not_found":
            return
        assert done.ok, done
        assert done["effect"] == "confirmed", done
    raise AssertionError("there is no end of it")


@pytest.mark.parametrize(
    ("linked", "calls"),
    [
        pytest.param("", [run(SHORT_LIVED)], id="a-short-lived-name-in-a-script"),
        pytest.param("", [run("mkdir made"), run(SHORT_LIVED)], id="a-short-lived-name-in-a-later-script"),
        pytest.param("", [run("ln notes/n.txt q; echo evil > q; rm q")], id="a-short-lived-name-in-a-line"),
        pytest.param("", [run("ln notes/n.txt q; echo evil > q; mv -f f0 q")], id="a-name-that-became-another-file"),
        pytest.param(
            "",
            [run("cp -l notes/n.txt q; sed -i s/x/y/ f1; tee q < f1; cp -f --remove-destination f2 q")],
            id="a-copy-that-is-a-link",
        ),
        pytest.param("", [run("cp -rl notes d; tee d/n.txt < f1; rm -r d")], id="a-tree-of-links"),
        pytest.param("", [run("mkdir t; ln notes/n.txt t/q; echo evil > t/q; rm -r t")], id="a-short-lived-folder"),
        pytest.param(f"{GENERATED}/h", [write(f"{GENERATED}/h"), run("mv notes moved")], id="written-then-moved"),
        pytest.param(f"{GENERATED}/h", [edit(f"{GENERATED}/h"), run("rm -rf notes")], id="edited-then-deleted"),
        pytest.param("other/h", [edit("other/h"), run("rm notes/n.txt other/h")], id="both-names-deleted"),
        *(
            pytest.param(
                before,
                [*([] if before else [run(f"ln notes/n.txt {other}")]), run(f"echo evil > {other}"), run(tail)],
                id=f"{'was' if before else 'ln'}-{other}-{tail.replace('/', '-').replace(' ', '-')}",
            )
            for other in (f"{GENERATED}/h", "other/h")
            for before in ("", other)
            for tail in ("rm notes/n.txt", "mv notes moved", "mv notes/n.txt notes/m.txt")
        ),
    ],
)
async def test_what_is_changed_through_another_name_is_undone(
    session: Session, work: Path, linked: str, calls: Sequence[Call]
) -> None:
    if linked:
        os.link(work / "notes/n.txt", work / linked)
    before = kept(work)
    for tool, args in calls:
        result = await session.call(tool, args)
        assert result.ok, result
        assert result["undo"]["kept"]
    assert kept(work) != before
    await undo_all(session)
    assert kept(work) == before


async def test_a_name_that_a_person_gave_between_calls_is_found(session: Session, work: Path) -> None:
    assert (await session.call(*run("mkdir first"))).ok
    os.link(work / "notes/n.txt", work / GENERATED / "h")
    before = kept(work)
    assert (await session.call(*run(f"echo evil > {GENERATED}/h")))["undo"]["kept"]
    assert kept(work) != before
    assert (await session.undo()).ok
    assert kept(work) == before


@pytest.mark.parametrize("seed", [*range(5), 8, 50, 53])
async def test_all_calls_undone_give_back_what_was_there(session: Session, work: Path, seed: int) -> None:
    os.link(work / "f0", work / "other/l0")
    os.link(work / "notes/f0", work / GENERATED / "x/l1")
    before, rng = kept(work), random.Random(seed)
    calls: list[Call] = []
    for number in range(10):
        calls.append(_some_call(work, rng, number))
        await session.call(*calls[-1])
    await undo_all(session)
    assert kept(work) == before, calls


def _some_call(work: Path, rng: random.Random, number: int) -> Call:
    """A call at random that gives files names, changes them through one of these, or takes them away.

    In a generated folder undo keeps what is named, so that scripts change only other files.
    """
    names = [str(path.relative_to(work)) for path in sorted(work.rglob("*")) if path.is_file()]
    names = [name for name in names if not name.endswith(".json")]
    one, inside = rng.choice(names), rng.choice([name for name in names if not name.startswith(GENERATED)])
    new = rng.choice(("", "notes/", "other/", f"{GENERATED}/", f"{GENERATED}/x/")) + f"n{rng.randint(0, 12)}"
    text = f"o {number}"
    script = f"import os; os.link('{inside}', '{{0}}'); open('{{0}}', 'w').write('{text}'); os.unlink('{{1}}')"
    return rng.choice((
        run(f"ln {one} {new}"),
        run(f"ln {inside} {GENERATED}/x/l{number}"),
        run(f"echo {text} > {one}"),
        run(f"echo {text} >> {one}"),
        run(f"mv {one} {new}"),
        run(f"mv {inside} other/"),
        run(f"rm {one}"),
        run(f"sed -i s/o/u/ {one}"),
        run(f"ln {inside} short; echo {text} > short; rm short"),
        run(f'python3 -c "{script.format("short", "short")}"'),
        run(f'python3 -c "{script.format(f"other/s{number}", inside)}"'),
        run(f"chmod 600 {one}"),
        write(one, text),
    ))  # fmt: skip
