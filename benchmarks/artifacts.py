"""Keeping a long result, and searching in it."""

from __future__ import annotations

import random
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

from benchmarks.measure import Absent, Effort, take_turns
from benchmarks.report import Row, compare
from handrail.artifacts.line_search import LinePattern, iter_matches
from handrail.artifacts.store import ArtifactStore, TextArtifact
from handrail.workers.host_programs import find_own_programs
from handrail_files.find_tool import find_ripgrep

LINES = 400_000


async def store(effort: Effort) -> Row:
    """Ten MB of text kept as an artifact, with its kind found."""
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        artifacts = ArtifactStore(Path(folder) / "session")
        made = 0

        async def ours() -> float:
            data = _text(100_000)
            began = perf_counter()
            artifacts.keep(data)
            return perf_counter() - began

        async def plain() -> float:
            nonlocal made
            made += 1
            data = _text(100_000)
            began = perf_counter()
            (Path(folder) / f"plain{made}").write_bytes(data)
            return perf_counter() - began

        timings = await take_turns({"write": plain, "handrail": ours}, rounds=effort.rounds(20))
        artifacts.close()
    return compare("an artifact of 10 MB is kept", timings, limit="write", goal=2)


async def grep(effort: Effort) -> Row:
    """Measure a search for a pattern that matches few of 400,000 lines."""
    program = find_ripgrep(find_own_programs())
    if program is None:
        raise Absent("ripgrep is not installed")
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        path = Path(folder) / "text"
        path.write_bytes(_text(LINES))
        artifact = TextArtifact("a1", path, limit=51_200)
        pattern = "word"

        async def ours() -> float:
            began = perf_counter()
            with artifact.open() as file:
                list(iter_matches(file, LinePattern(pattern), artifact))
            return perf_counter() - began

        async def limit() -> float:
            nonlocal pattern
            pattern = f"word{random.randrange(20_000)} [a-z]+{random.randrange(20_000)}$"
            began = perf_counter()
            subprocess.run([program, "--no-config", "-n", "-e", pattern, path], capture_output=True, check=False)  # noqa: ASYNC221
            return perf_counter() - began

        timings = await take_turns({"ripgrep": limit, "handrail": ours}, rounds=effort.rounds(20))
    return compare("artifact_grep in 40 MB", timings, limit="ripgrep", goal=None)


def _text(lines: int) -> bytes:
    words = [f"word{number}" for number in range(20_000)]
    return "".join(f"{' '.join(random.choices(words, k=11))}\n" for _ in range(lines)).encode()


ROWS = {"artifact-store": store, "artifact-grep": grep}
