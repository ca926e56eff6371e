"""Reading, changing and finding files."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.measure import Absent, Contender, Effort, take_turns
from benchmarks.peers import Peer, peers
from benchmarks.report import Row, compare
from benchmarks.sessions import session_with, succeed
from handrail.workers.host_programs import find_own_programs
from handrail_files.find_tool import find_ripgrep

LINES = 1_000
FILE_BYTES = 5_000_000
EDITED_BYTES = 1_000_000
FILES = 20_000
# Different words in them.
WORDS = 20_000


async def read_file(effort: Effort) -> Row:
    """Measure reading 1,000 lines from anywhere in a file of 5 MB."""
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        path = Path(folder, "notes.txt")
        count = _write(path)
        offset = 0

        async with session_with("files", cwd=Path(folder)) as session:

            async def ours() -> float:
                args = {"file_path": path.name, "offset": offset, "limit": LINES}
                began = perf_counter()
                await succeed(session, "read_file", args)
                return perf_counter() - began

            async def slice_of_lines() -> float:
                nonlocal offset
                # Both read the same lines of a round: how far they are into the file decides the time.
                offset = random.randrange(count - LINES)
                began = perf_counter()
                _slice(path, offset)
                return perf_counter() - began

            timings = await take_turns({"islice": slice_of_lines, "handrail": ours}, rounds=effort.rounds(40))
    return compare("read_file of 1,000 lines of 5 MB", timings, limit="islice", goal=4)


async def read_head(effort: Effort) -> Row:
    """Measure reading the first 1,000 lines of a file of 5 MB, rewritten for each turn."""
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as name:
        folder = Path(name)
        path = folder / "notes.txt"

        async def slice_of_lines() -> float:
            _write(path)
            began = perf_counter()
            _slice(path, 0)
            return perf_counter() - began

        def turn(peer: Peer) -> Contender:
            async def contender() -> float:
                _write(path)
                began = perf_counter()
                peer.read_head(path, LINES)
                return perf_counter() - began

            return contender

        async with session_with("files", cwd=folder) as session, peers(folder, turn) as (others, absent):

            async def ours() -> float:
                _write(path)
                began = perf_counter()
                await succeed(session, "read_file", {"file_path": path.name, "limit": LINES})
                return perf_counter() - began

            contenders = {"islice": slice_of_lines, "handrail": ours, **others}
            timings = await take_turns(contenders, rounds=effort.rounds(20))
    return compare("read_file of the first 1,000 lines of 5 MB", timings, limit="islice", goal=4, absent=absent)


async def edit_file(effort: Effort) -> Row:
    """Measure changing one line of a 1 MB file, durably and atomically.

    Each contender changes its own file, because a file changed by another is left alone.
    """
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as name:
        folder = Path(name)
        path, other = folder / "notes.txt", folder / "other.txt"
        line = 1
        count = _write(path, size=EDITED_BYTES)
        shutil.copy(path, other)

        async def plain() -> float:
            nonlocal line
            line = random.randrange(1, count)
            began = perf_counter()
            _replace(other, f"\n{line} ", f"\n{line} old ")
            return perf_counter() - began

        def turn(peer: Peer) -> Contender:
            own = Path(shutil.copy(path, folder / f"{peer.name}.txt"))

            async def contender() -> float:
                began = perf_counter()
                peer.edit(own, f"\n{line} ", f"\n{line} new ")
                return perf_counter() - began

            return contender

        settings = {"cwd": folder, "mode": "accept_edits"}
        async with session_with("files", **settings) as session, peers(folder, turn) as (others, absent):

            async def ours() -> float:
                args = {"file_path": path.name, "old_string": f"\n{line} ", "new_string": f"\n{line} new "}
                began = perf_counter()
                await succeed(session, "edit_file", args)
                return perf_counter() - began

            contenders = {"replace": plain, "handrail": ours, **others}
            timings = await take_turns(contenders, rounds=effort.rounds(40))
    return compare("edit_file of one line of 1 MB", timings, limit="replace", goal=1.5, absent=absent)


def _replace(path: Path, old: str, new: str) -> None:
    """Read, replace, write beside it, and exchange; durable."""
    text = path.read_text(encoding="utf-8").replace(old, new, 1)
    beside = path.with_suffix(".new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    os.fsync(folder)
    os.close(folder)


@dataclass(frozen=True, slots=True)
class Searching:
    """A search among 20,000 files, for another thing in each round: what to look for, and how each is asked for it."""

    draw: Callable[[], str]
    arguments: Callable[[str], Mapping[str, Any]]
    flags: Callable[[str], Sequence[str]]
    ask: Callable[[Peer, Path, str], None]


async def find_text(effort: Effort) -> Row:
    """Measure finding a word that occurs in some of 20,000 files."""
    return await _find(effort, "find_files by text, 20,000 files", BY_TEXT, goal=1.15)


async def find_common(effort: Effort) -> Row:
    """Measure finding a word that occurs in more than half of 20,000 files.

    Each of them must be judged before it is reported.
    """
    return await _find(effort, "find_files by a text that most of 20,000 files hold", BY_COMMON_TEXT, goal=None)


async def find_names(effort: Effort) -> Row:
    """Measure finding files of one kind among 20,000."""
    return await _find(effort, "find_files by name, 20,000 files", BY_NAME, goal=1.5)


async def _find(effort: Effort, job: str, search: Searching, *, goal: float | None) -> Row:
    program = find_ripgrep(find_own_programs())
    if program is None:
        raise Absent("ripgrep is not installed")
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as name:
        folder = Path(name)
        _plant(folder)
        wanted = search.draw()

        async def limit() -> float:
            nonlocal wanted
            wanted = search.draw()
            command = [program, "--no-config", *search.flags(wanted)]
            began = perf_counter()
            subprocess.run(command, cwd=folder, capture_output=True, check=False)  # noqa: ASYNC221
            return perf_counter() - began

        def turn(peer: Peer) -> Contender:
            async def contender() -> float:
                began = perf_counter()
                search.ask(peer, folder, wanted)
                return perf_counter() - began

            return contender

        async with session_with("files", cwd=folder) as session, peers(folder, turn) as (others, absent):

            async def ours() -> float:
                began = perf_counter()
                await succeed(session, "find_files", search.arguments(wanted))
                return perf_counter() - began

            contenders = {"ripgrep": limit, "handrail": ours, **others}
            timings = await take_turns(contenders, rounds=effort.rounds(15))
    return compare(job, timings, limit="ripgrep", goal=goal, absent=absent)


def _plant(folder: Path) -> None:
    """Create 20,000 small files in 200 directories."""
    for number in range(FILES):
        place = folder / f"folder{number % 200}"
        if number < 200:
            place.mkdir()
        words = " ".join(f"word{random.randrange(WORDS)}" for _ in range(200))
        (place / f"file{number}.{'py' if number % 4 else 'txt'}").write_text(words.replace("7 ", "7\n"))


def _slice(path: Path, offset: int) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return list(islice(file, offset, offset + LINES))


def _write(path: Path, *, size: int = FILE_BYTES) -> int:
    """Fill the file with so many bytes in lines of different lengths; how many lines."""
    words = ("rail", "hand", "lever", "Brücke", "signal", "gauge", "漢字", "platform", "timetable", "—")
    lines: list[str] = []
    written = 0
    while written < size:
        lines.append(f"{len(lines)} {' '.join(random.choices(words, k=random.randint(2, 16)))}\n")
        written += len(lines[-1].encode())
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


def _by_text(draw: Callable[[], str]) -> Searching:
    return Searching(
        draw,
        arguments=lambda text: {"search_text": text},
        flags=lambda text: ("-n", "-F", "-e", text, "."),
        ask=lambda peer, folder, text: peer.find_text(folder, text),
    )


BY_TEXT = _by_text(lambda: f"word{random.randrange(WORDS)} ")
BY_COMMON_TEXT = _by_text(lambda: f"word{random.randrange(10, 100)}")
BY_NAME = Searching(
    lambda: f"{random.randrange(200)}.py",
    arguments=lambda ending: {"pattern": f"*{ending}"},
    flags=lambda ending: ("--files", "-g", f"*{ending}"),
    ask=lambda peer, folder, ending: peer.find_names(folder, ending),
)

ROWS = {
    "read_file": read_file,
    "read_head": read_head,
    "edit_file": edit_file,
    "find_text": find_text,
    "find_common": find_common,
    "find_names": find_names,
}
