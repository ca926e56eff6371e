"""Reading files."""

from __future__ import annotations

import random
import tempfile
from itertools import islice
from pathlib import Path
from time import perf_counter

from benchmarks.measure import Effort, take_turns
from benchmarks.report import Row, compare
from benchmarks.sessions import session_with, succeed

LINES = 1_000
FILE_BYTES = 5_000_000


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


def _slice(path: Path, offset: int) -> list[str]:
    with path.open(encoding="utf-8") as file:
        return list(islice(file, offset, offset + LINES))


def _write(path: Path) -> int:
    """Fill the file with lines of different lengths; how many."""
    words = ("rail", "hand", "lever", "Brücke", "signal", "gauge", "漢字", "platform", "timetable", "—")
    lines: list[str] = []
    size = 0
    while size < FILE_BYTES:
        lines.append(f"{len(lines)} {' '.join(random.choices(words, k=random.randint(2, 16)))}\n")
        size += len(lines[-1].encode())
    path.write_text("".join(lines), encoding="utf-8")
    return len(lines)


ROWS = {"read_file": read_file}
