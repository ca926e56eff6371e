"""Observers that are commands (`[[observers]]`): a JSON object on stdin, one on stdout, and an exit code that counts.

Exit 0 with JSON is honoured, exit 0 with other text is a note, exit 2 blocks whatever else it says, and any other exit is a failure.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from tempfile import TemporaryFile
from typing import IO, TYPE_CHECKING, Any, Literal

import anyio
from pydantic import BaseModel, ConfigDict, ValidationError

from handrail.calls.invocation import CANONICAL, Invocation
from handrail.errors import Downstream
from handrail.name_shapes import fits_shape
from handrail.plain import is_mapping, is_object, is_sequence
from handrail.records.redaction import without_credentials
from handrail.results.values import BASE64
from handrail.running.programs import start_place
from handrail.tools import mistakes
from handrail.watching.observers import Change, Observer, Remark

if TYPE_CHECKING:
    from handrail.config.settings import ObserverSettings
    from handrail.judging.verdicts import Verdict
    from handrail.running.programs import HostPrograms
    from handrail.session import Session
    from handrail.tools.contract import Tool

BLOCKED = 2
# Bytes that a command may write to each of stdout and stderr.
MOST = 1_000_000
# Seconds between two looks at how much it has written.
LOOK_S = 0.05
# Characters of one text of a result that it is given.
TEXT = 1_000_000
# A line that begins as a JSON object does, or a text that holds one.
OBJECT = re.compile(r'^\s*"?\{', re.MULTILINE)
# Characters that are kept of what a command says to people.
NOTE = 500


class Said(BaseModel):
    """What a command writes to stdout. After a call, `block` withholds the result, and `result` holds values for keys of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    decision: Literal["block", "confirm", "none"] = "none"
    reason: str = ""
    args: dict[str, Any] | None = None
    context: str = ""
    result: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Heard:
    """What came from a command: what it said, and its note where that was no JSON."""

    said: Said
    note: str = ""

    @property
    def blocks(self) -> str | None:
        return self._why("block")

    @property
    def confirms(self) -> str | None:
        return self._why("confirm")

    def _why(self, decision: str) -> str | None:
        return self.said.reason or "it gave no reason" if self.said.decision == decision else None


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended; a negative code is the signal that ended it."""

    code: int
    out: str
    err: str


class CommandObserver(Observer):
    """A program of the person's own that looks at calls of one session."""

    def __init__(self, settings: ObserverSettings, session: Session) -> None:
        self.name = settings.called
        self.security = settings.security
        self._settings = settings
        self._session = session

    def applies(self, tool: Tool) -> bool:
        wanted = self._settings
        return (
            any(fits_shape(tool.name, pattern) for pattern in wanted.tools)
            and (wanted.layer is None or tool.layer in wanted.layer)
            and (wanted.kind is None or tool.kind in wanted.kind)
        )

    async def before(self, invocation: Invocation) -> Change | None:
        if "before" not in self._settings.when:
            return None
        heard = await self._ask(invocation, "before", {"verdict": _so_far(invocation)})
        if heard.said.result is not None:
            raise Downstream("it gave a `result` before the call")
        said = heard.said
        return Change(block=heard.blocks, confirm=heard.confirms, args=said.args, context=said.context, note=heard.note)

    async def after(self, invocation: Invocation, verdict: Verdict, result: Mapping[str, Any]) -> Remark | None:
        if "after" not in self._settings.when:
            return None
        told = {"decision": verdict.decision, "rule": verdict.rule, "reasons": [r.text for r in verdict.reasons]}
        heard = await self._ask(invocation, "after", {"verdict": told, "result": _shown(result)})
        said = heard.said
        if said.decision == "confirm" or said.args is not None:
            raise Downstream("it would confirm or change a call that has run already")
        return Remark(withhold=heard.blocks, replace=said.result, context=said.context, note=heard.note)

    async def _ask(self, invocation: Invocation, event: str, more: Mapping[str, Any]) -> Heard:
        """What the command says; `Downstream` when it failed."""
        told = {"session_id": self._session.id, "event": event, "cwd": str(self._session.cwd), **_call(invocation)}
        text = CANONICAL.encode({**told, **more})
        environment = without_credentials(self._session.runtime.environment)
        (program, *arguments), folder = start_place(
            self._settings.command, self._settings.cwd, self._session.runtime.cwd
        )
        ran = await _run(
            [_found(program, self._session.runtime.programs), *arguments],
            text.encode("utf-8", "surrogatepass"),
            cwd=folder,
            environment=environment,
            seconds=self._settings.timeout,
        )
        return _heard(ran)


def _found(program: str, programs: HostPrograms) -> str:
    """Where a program is that is named without a folder: in none that depends on where we are, or that agents write."""
    if "/" in program or os.sep in program:
        return program
    found = programs.find(program)
    if found is None:
        raise Downstream(f"{program!r} is in no folder of PATH outside the workspace: name it by its whole path")
    return found


def _heard(ran: Ran) -> Heard:
    if ran.code == BLOCKED:
        return Heard(Said(decision="block", reason=_reason(ran)))
    if ran.code != 0:
        how = f"exit code {ran.code}" if ran.code > 0 else f"signal {-ran.code}"
        said = ran.err.strip() or ran.out.strip()
        raise Downstream(f"it ended with {how}" + (f": {said[:NOTE]}" if said else ""))
    value = _value(ran.out)
    if value is None:
        # What was meant for an answer and cannot be read may have been a no.
        if OBJECT.search(ran.out):
            raise Downstream("it wrote something like a JSON object, and that is not all, or cannot be read")
        return Heard(Said(), ran.out.strip()[:NOTE])
    try:
        return Heard(Said.model_validate(value))
    except ValidationError as exc:
        raise Downstream(f"its answer does not fit: {mistakes.told(mistakes.first(exc), Said)}") from exc


def _call(invocation: Invocation) -> dict[str, Any]:
    tool = invocation.tool
    return {
        "call_id": invocation.call_id,
        "call_hash": invocation.call_hash,
        "parent": invocation.parent.call_id if invocation.parent is not None else None,
        "tool": tool.name,
        "layer": tool.layer,
        "kind": tool.kind,
        "args": invocation.args,
        "description": invocation.describe(),
        "effects": [{"effect": type(e).__name__.lower(), "what": e.what, "arg": e.arg} for e in tool.effects],
        "locations": [asdict(location) for location in invocation.locations()],
    }


def _so_far(invocation: Invocation) -> dict[str, Any]:
    """What the observers before this one say; the call is judged after them."""
    opinions = invocation.seen.opinions if invocation.seen is not None else ()
    reasons = [reason.text for opinion in opinions for reason in opinion.reasons]
    return {
        "decision": "confirm" if opinions else None,
        "rule": opinions[0].rule if opinions else "",
        "reasons": reasons,
    }


def _shown(value: Any, name: str = "") -> Any:
    """A result for a program: pictures by their size, texts to a length."""
    if isinstance(value, str):
        return f"[{len(value)} characters]" if name in BASE64 else value[:TEXT]
    if is_mapping(value):
        return {str(key): _shown(item, str(key)) for key, item in value.items()}
    if is_sequence(value):
        return [_shown(item, name) for item in value]
    return value


def _value(text: str) -> dict[str, Any] | None:
    """The JSON object that a command wrote, once more in a JSON text or not; None for anything else."""
    value: Any = text.removeprefix("\ufeff")
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if is_object(value) else None


def _reason(ran: Ran) -> str:
    said = _value(ran.out)
    given = said.get("reason") if said is not None else None
    return str(given or ran.err.strip() or (ran.out.strip() if said is None else "") or "it ended with exit code 2")


async def _run(
    command: Sequence[str], given: bytes, *, cwd: str, environment: Mapping[str, str], seconds: float
) -> Ran:
    """Run a command to its end. It and all that stays in its group is gone afterwards, however it went; `Downstream` says what failed."""
    # Files and no pipes: what the command leaves behind may hold a pipe open, and a full one would hold up the command.
    with TemporaryFile() as stdin, TemporaryFile() as out, TemporaryFile() as err:
        stdin.write(given)
        stdin.seek(0)
        try:
            process = await asyncio.create_subprocess_exec(
                *command, stdin=stdin, stdout=out, stderr=err, cwd=cwd, env=environment, start_new_session=True
            )
        except (OSError, ValueError, subprocess.SubprocessError) as exc:
            why = (exc.strerror if isinstance(exc, OSError) else None) or exc
            cure = "; make it executable (chmod +x)" if isinstance(exc, PermissionError) else ""
            raise Downstream(f"{command[0]!r} cannot be started: {why}{cure}") from exc
        try:
            async with asyncio.timeout(seconds):
                code = await _ended(process, out, err)
        except TimeoutError:
            raise Downstream(f"it took longer than {seconds:g} s") from None
        finally:
            _kill(process)
            # It is dead, and nobody else collects it.
            with anyio.CancelScope(shield=True):
                await process.wait()
        return Ran(code, _text(out), _text(err))


async def _ended(process: asyncio.subprocess.Process, *written: IO[bytes]) -> int:
    while True:
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(process.wait(), LOOK_S)
        if any(os.fstat(file.fileno()).st_size > MOST for file in written):
            raise Downstream(f"it wrote more than {MOST:,} bytes")


def _kill(process: asyncio.subprocess.Process) -> None:
    """End the command and what it started in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _text(file: IO[bytes]) -> str:
    file.seek(0)
    data = file.read(MOST + 1)
    if len(data) > MOST:
        raise Downstream(f"it wrote more than {MOST:,} bytes")
    return data.decode("utf-8", "replace")
