"""Reading, changing and finding files."""

from __future__ import annotations

import os
import random
import subprocess
import tempfile
from itertools import islice
from pathlib import Path
from time import perf_counter

from benchmarks.measure import Absent, Effort, take_turns
from benchmarks.report import Row, compare
from benchmarks.sessions import session_with, succeed
from handrail_files.find import ripgrep

LINES = 1_000
FILE_BYTES = 5_000_000
EDITED_BYTES = 1_000_000
FILES = 20_000


async def read_file(effort: Effort) -> Row:
    """1,000 lines from anywhere in a file of 5 MB."""
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


async def edit_file(effort: Effort) -> Row:
    """One line of a file of 1 MB, changed durably and as a whole."""
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        path = Path(folder, "notes.txt")
        line = 1
        count = _write(path, size=EDITED_BYTES)
        # Each changes a file of its own: one that another has changed is not written over.
        other = Path(folder, "other.txt")
        other.write_bytes(path.read_bytes())

        async with session_with("files", cwd=Path(folder), mode="accept_edits") as session:

            async def ours() -> float:
                args = {"file_path": path.name, "old_string": f"\n{line} ", "new_string": f"\n{line} new "}
                began = perf_counter()
                await succeed(session, "edit_file", args)
                return perf_counter() - began

            async def plain() -> float:
                nonlocal line
                line = random.randrange(1, count)
                began = perf_counter()
                _replace(other, f"\n{line} ", f"\n{line} old ")
                return perf_counter() - began

            timings = await take_turns({"replace": plain, "handrail": ours}, rounds=effort.rounds(40))
    return compare("edit_file of one line of 1 MB", timings, limit="replace", goal=1.5)


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


async def find_text(effort: Effort) -> Row:
    """A word that stands in some of 20,000 files."""
    return await _find(effort, "find_files by text, 20,000 files", goal=1.15, by_text=True)


async def find_names(effort: Effort) -> Row:
    """Files of one kind among 20,000."""
    return await _find(effort, "find_files by name, 20,000 files", goal=1.5, by_text=False)


async def _find(effort: Effort, job: str, *, goal: float, by_text: bool) -> Row:
    program = ripgrep()
    if program is None:
        raise Absent("ripgrep is not installed")
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        _plant(Path(folder))
        wanted = "word0 " if by_text else "0.py"
        async with session_with("files", cwd=Path(folder)) as session:

            async def ours() -> float:
                args = {"search_text": wanted} if by_text else {"pattern": f"*{wanted}"}
                began = perf_counter()
                await succeed(session, "find_files", args)
                return perf_counter() - began

            async def limit() -> float:
                nonlocal wanted
                wanted = f"word{random.randrange(20_000)} " if by_text else f"{random.randrange(200)}.py"
                flags = ["-n", "-F", "-e", wanted, "."] if by_text else ["--files", "-g", f"*{wanted}"]
                began = perf_counter()
                subprocess.run([program, "--no-config", *flags], cwd=folder, capture_output=True, check=False)  # noqa: ASYNC221
                return perf_counter() - began

            timings = await take_turns({"ripgrep": limit, "handrail": ours}, rounds=effort.rounds(20))
    return compare(job, timings, limit="ripgrep", goal=goal)


def _plant(folder: Path) -> None:
    """20,000 small files in 200 folders."""
    for number in range(FILES):
        place = folder / f"folder{number % 200}"
        if number < 200:
            place.mkdir()
        words = " ".join(f"word{random.randrange(20_000)}" for _ in range(200))
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


ROWS = {"read_file": read_file, "edit_file": edit_file, "find_text": find_text, "find_names": find_names}
