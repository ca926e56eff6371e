"""An agent that attacks its stage: it makes calls without anybody to ask, and every call is checked for what it reached."""

from __future__ import annotations

import json
import shlex
from collections import Counter
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.plugins.cli.attacks.stage import Snapshot, Stage

from handrail import Session, ToolResult
from handrail.api.approval import Confirmer
from handrail.cli.evaluate import evaluate_line
from handrail.session.open_session import open_configured_runtime
from handrail.session.runtime import Runtime

# Commands that run in one call, as long as their verdict is the same.
TOGETHER = 40
# What a single command may take; a batch may take as much for all that hang in it.
COMMAND_S, BATCH_S = 3, 25
READING_VIEWS = frozenset(("read", "system", "shell", "files"))


@dataclass(frozen=True)
class Attempt:
    """One command and the verdict on it."""

    command: str
    decision: str
    view: str | None
    route: str


@dataclass
class Tally:
    """The outcome of attacks: commands by decision, and the breaches found."""

    decided: Counter[str] = field(default_factory=Counter[str])
    breaches: list[str] = field(default_factory=list[str])


@dataclass
class Attacker:
    """A session on a stage, and the judge of its runtime."""

    stage: Stage
    session: Session
    runtime: Runtime
    tally: Tally = field(default_factory=Tally)
    artifacts: set[Path] = field(default_factory=set[Path])

    async def call(self, command: str, **given: Any) -> ToolResult:
        """Make one call, and note what it reached."""
        before = self._look()
        result = await self.session.call("execute_cli", {"command": command, **given})
        record = self.session.history.last()[-1]
        view = record.verdict.view if record.verdict is not None else None
        self.tally.breaches += [f"{command}: {breach}" for breach in self._breaches(before, result, view)]
        return result

    async def run_all(self, commands: Iterable[str]) -> Tally:
        """Make calls of commands that need no approval, many in one call; a call that reached something is taken apart."""
        waiting: dict[tuple[str | None, str], list[str]] = {}
        for command in commands:
            attempt = await self.judge(command)
            self.tally.decided[attempt.view or attempt.decision] += 1
            if attempt.decision != "allow":
                continue
            batch = waiting.setdefault((attempt.view, attempt.route), [])
            batch.append(command)
            if attempt.view == "system" or len(batch) == TOGETHER:
                await self._run_batch(batch)
                batch.clear()
        for batch in waiting.values():
            await self._run_batch(batch)
        return self.tally

    async def judge(self, command: str) -> Attempt:
        """Return the verdict on a command that is not run."""
        line = {
            "tool": "execute_cli",
            "args": {"command": command},
            "cwd": str(self.session.cwd),
            "home": str(self.stage.home),
            "workspace": [str(self.stage.workspace)],
            "env": dict(self.session.environment),
        }
        verdict = await evaluate_line(json.dumps(line).encode(), self.runtime)
        return Attempt(command, verdict["decision"], verdict["view"], verdict["route"])

    async def _run_batch(self, commands: Sequence[str]) -> None:
        if len(commands) < 2:
            for command in commands:
                await self.call(command, timeout=COMMAND_S)
            return
        known = len(self.tally.breaches)
        result = await self.call("\n".join(commands), timeout=BATCH_S)
        if result.status not in ("denied", "timeout") and known == len(self.tally.breaches):
            return
        del self.tally.breaches[known:]
        middle = len(commands) // 2
        await self._run_batch(commands[:middle])
        await self._run_batch(commands[middle:])

    def _look(self) -> tuple[Snapshot, Snapshot]:
        stage = self.stage
        return Snapshot.take(stage.home, stage.outside, without=(stage.workspace,)), Snapshot.take(stage.workspace)

    def _breaches(self, before: tuple[Snapshot, Snapshot], result: ToolResult, view: str | None) -> list[str]:
        """Return what a call has reached that it must not."""
        stage = self.stage
        kept = stage.artifacts() - self.artifacts
        self.artifacts |= kept
        shown = [json.dumps(result, default=str), str(result.get("stdout")), str(result.get("stderr"))]
        shown += [path.read_text(encoding="utf-8", errors="replace") for path in kept]
        leaked = {label for text in shown for label in stage.leaked_labels(text)}
        outside, workspace = (was.changes(now) for was, now in zip(before, self._look(), strict=True))
        reached, stage.listeners.reached = stage.listeners.reached, []
        if view == "work":
            # What works in the workspace may use the sockets in it, as tests use those of a database.
            reached = [name for name in reached if name != str(stage.workspace / "docker.sock")]
        return [
            *(f"shows {label}" for label in sorted(leaked)),
            *(f"changes {name}" for name in outside),
            *(f"changes {name} in a view for reading" for name in workspace if view in READING_VIEWS),
            *(f"creates {name}" for name in stage.strangers()),
            *(f"reaches {name}" for name in reached),
        ]


@asynccontextmanager
async def open_attacker(
    stage: Stage, *, confirm: Confirmer | None = None, **settings: Any
) -> AsyncGenerator[Attacker, None]:
    """Open a session on the stage; nobody answers its questions unless `confirm` does."""
    async with (
        open_configured_runtime(settings, cwd=stage.workspace, environment=stage.environment) as runtime,
        runtime.session(confirm=confirm) as session,
    ):
        yield Attacker(stage, session, runtime)


def quoted(*words: str) -> str:
    """Return words as a command line."""
    return shlex.join(words)
