"""Shell commands: judged, run, and their output taken in."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

from benchmarks.measure import LEAD_IN, Absent, Contender, Effort, each, each_blocking, take_turns
from benchmarks.peers import Peer, peers
from benchmarks.report import Measurement, Row, compare
from benchmarks.sessions import session_with, succeed
from handrail import Bounds, Session

ECHOES = 10
# Reads before the sandbox of a session is ready, and the time that it may take between them.
WARMING, PREPARING_S = 5, 0.2
OUTPUT_BYTES = 40_000_000
READ_BYTES = 1 << 16
JUDGED = 4
# As many as take about the same time.
PARSED = 60
STEPS = (
    "grep -n {word} src/{word}.py",
    "head -{number} notes/{word}.txt",
    "wc -l '{word} {word}.md'",
    "ls -la {word}/{word}",
)


async def execute_cli(effort: Effort) -> Row:
    """Measure `execute_cli` of a short command, compared with plain bash."""
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:

        def turn(peer: Peer) -> Contender:
            async def contender() -> float:
                return each_blocking(peer.echo, [str(random.getrandbits(32)) for _ in range(ECHOES)])

            return contender

        async with session_with("cli") as session, peers(Path(folder), turn) as (others, absent):
            timings = await take_turns({**_echoes(session), **others}, rounds=effort.rounds(20))
    return compare("execute_cli echo hi", timings, limit="subprocess.run", goal=1.4, absent=absent)


def _echoes(session: Session) -> dict[str, Contender]:
    async def ours() -> float:
        commands = [f"echo hi {random.getrandbits(32)}" for _ in range(ECHOES)]
        began = perf_counter()
        for command in commands:
            await succeed(session, "execute_cli", {"command": command})
        return (perf_counter() - began) / ECHOES

    async def bash() -> float:
        commands = [f"echo hi {random.getrandbits(32)}" for _ in range(ECHOES)]
        return each_blocking(_bash, commands)

    return {"subprocess.run": bash, "handrail": ours}


async def confined_read(effort: Effort) -> Row:
    """Measure `execute_cli` of a reading command in the session's prepared sandbox.

    Compared with the same command in plain bash.
    """
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        Path(folder, "hi.txt").write_text("hi\n", encoding="utf-8")
        async with session_with("cli", cwd=Path(folder)) as session:
            for _ in range(WARMING):
                result = await succeed(session, "execute_cli", {"command": "cat hi.txt"})
                if "sandbox" not in result:
                    raise Absent("there is no sandbox here")
                await asyncio.sleep(PREPARING_S)

            async def ours() -> float:
                began = perf_counter()
                for _ in range(ECHOES):
                    await succeed(session, "execute_cli", {"command": _reading()})
                return (perf_counter() - began) / ECHOES

            async def bash() -> float:
                return each_blocking(lambda command: _bash(command, folder), [_reading() for _ in range(ECHOES)])

            timings = await take_turns({"subprocess.run": bash, "handrail": ours}, rounds=effort.rounds(20))
    return compare("execute_cli of a read, confined", timings, limit="subprocess.run", goal=2.5)


def _reading() -> str:
    return f"cat hi.txt; echo {random.getrandbits(32)}"


async def sandbox(effort: Effort) -> Row:
    """Measure a short command in bubblewrap as `execute_cli` runs it, compared with the unsandboxed command."""
    from handrail_cli.sandboxes.bubblewrap import BubblewrapSandbox

    if (lacks := BubblewrapSandbox.missing()) is not None:
        raise Absent(lacks)
    confiner = BubblewrapSandbox()
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        places = [Path(folder, name) for name in ("work", "private", "home")]
        for place in places:
            place.mkdir()
        bounds = Bounds(writable=(places[0],), temporary=places[1], home=places[2])

        def confined(command: str) -> None:
            words = ("/bin/bash", "-c", command)
            made = confiner.confine(words, cwd=places[0], environment={"PATH": os.defpath}, bounds=bounds)
            with subprocess.Popen(
                made.argv,
                env=dict(made.environment),
                pass_fds=made.pass_fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            ) as process:
                for fd in made.pass_fds:
                    os.close(fd)
                made.started(process.pid)
                process.communicate()
            if made.ended() is not None or process.returncode != 0:
                raise Absent("bubblewrap could not set a sandbox up")

        async def bare() -> float:
            return each_blocking(_bash, [f"echo hi {random.getrandbits(32)}" for _ in range(ECHOES)])

        async def boxed() -> float:
            return each_blocking(confined, [f"echo hi {random.getrandbits(32)}" for _ in range(ECHOES)])

        timings = await take_turns({"subprocess.run": bare, "handrail": boxed}, rounds=effort.rounds(15))
        await confiner.close()
    return compare("echo hi in bubblewrap", timings, limit="subprocess.run", goal=None)


def _bash(command: str, folder: str | None = None) -> None:
    subprocess.run(["bash", "-c", command], capture_output=True, stdin=subprocess.DEVNULL, check=True, cwd=folder)


async def output(effort: Effort) -> Row:
    """Measure 40 MB of output: head and tail are shown, all of it is kept in an artifact."""
    with tempfile.TemporaryDirectory(prefix="handrail-bench-") as folder:
        async with session_with("cli", cwd=Path(folder)) as session:
            grown: list[int] = []

            async def ours() -> float:
                name = _lines(Path(folder))
                before = _peak_memory(reset=True)
                began = perf_counter()
                result = await succeed(session, "execute_cli", {"command": f"cat {name}"})
                seconds = perf_counter() - began
                grown.append(_peak_memory() - before)
                if not result.get("truncated") or "artifact" not in result:
                    raise Absent("execute_cli did not say that it cut 40 MB, or kept no artifact of them")
                return seconds

            async def cat() -> float:
                name = _lines(Path(folder))
                began = perf_counter()
                _cat(Path(folder, name))
                return perf_counter() - began

            timings = await take_turns({"cat to a pipe": cat, "handrail": ours}, rounds=effort.rounds(7))
    note = f"memory grew by at most {max(grown) / 1e6:.1f} MB during a call"
    return compare("40 MB of output", timings, limit="cat to a pipe", goal=3, note=note)


def _cat(path: Path) -> None:
    with subprocess.Popen(["cat", path], stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        while process.stdout.read(READ_BYTES):
            pass


def _lines(folder: Path) -> str:
    """Write a new 40 MB text file in `folder`, replacing the last one and already cached; return its name."""
    for old in folder.glob("*.log"):
        old.unlink()
    name = f"{random.getrandbits(32)}.log"
    line = f"{random.getrandbits(256):064x} the build goes on and says what it does\n".encode()
    (folder / name).write_bytes(line * (OUTPUT_BYTES // len(line)))
    return name


def _peak_memory(*, reset: bool = False) -> int:
    """Return this process's peak memory since the last reset, in bytes (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) * 1024


def judging(characters: int) -> Measurement:
    """Return the row for judging commands of that length, none of them seen before."""

    async def row(effort: Effort) -> Row:
        async with session_with("cli") as session:
            runtime = session.runtime

            async def judge(command: str) -> None:
                await runtime.supposing.evaluate("execute_cli", {"command": command}, runtime.judging)

            async def ours() -> float:
                return await each(judge, [_command(characters) for _ in range(LEAD_IN + JUDGED)])

            timings = await take_turns(
                {"parse and walk": _parse(characters), "handrail": ours}, rounds=effort.rounds(60)
            )
        return compare(f"judging a command of {characters:,} characters", timings, limit="parse and walk", goal=15)

    return row


def _parse(characters: int) -> Contender:
    import tree_sitter_bash
    from tree_sitter import Language, Parser

    parser = Parser(Language(tree_sitter_bash.language()))

    def parse_and_walk(command: str) -> int:
        cursor = parser.parse(command.encode()).walk()
        return _visit(cursor)

    async def contender() -> float:
        commands = [_command(characters) for _ in range(LEAD_IN + PARSED)]
        each_blocking(parse_and_walk, commands[:LEAD_IN])
        return each_blocking(parse_and_walk, commands[LEAD_IN:])

    return contender


def _visit(cursor: Any) -> int:
    """Go to every node under the cursor; how many there are."""
    seen = 1
    while True:
        if cursor.goto_first_child():
            seen += 1
            continue
        while not cursor.goto_next_sibling():
            if not cursor.goto_parent():
                return seen
        seen += 1


def _command(characters: int) -> str:
    """Ordinary read-only commands with words of their own, joined until there are at least `characters` of them."""
    command = _step()
    while len(command) < characters:
        command += random.choice((" | ", " && ", "; ")) + _step()
    return command


def _step() -> str:
    word = "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=6))
    return random.choice(STEPS).format(word=word, number=random.randint(1, 999))


ROWS = {
    "execute_cli": execute_cli,
    "confined_read": confined_read,
    "sandbox": sandbox,
    "output": output,
    "judge-50": judging(50),
    "judge-2000": judging(2_000),
}
