"""Observers that are commands (`[[observers]]`): a JSON object on stdin, one on stdout, and an exit code.

Exit 0 with JSON is honored, exit 0 with other text is a note, exit 2 blocks regardless of the output, and any other
exit is a failure.
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

from handrail import validation_messages
from handrail.api.call import CANONICAL_ENCODER, Invocation
from handrail.api.observer import Change, Observer, Remark
from handrail.errors import Downstream
from handrail.glob_match import is_glob_match
from handrail.json_types import BASE64_KEYS, is_mapping, is_object, is_sequence
from handrail.redaction import remove_credentials
from handrail.workers.host_programs import resolve_start_place

if TYPE_CHECKING:
    from handrail.api.tool import Tool
    from handrail.api.verdict import Verdict
    from handrail.config.settings import ObserverSettings
    from handrail.pipeline.call_session import CallSession
    from handrail.workers.host_programs import HostPrograms

BLOCK_EXIT_CODE = 2
# Bytes that a command may write to each of stdout and stderr.
MAX_OUTPUT_BYTES = 1_000_000
# Seconds between two looks at how much it has written.
EXIT_POLL_S = 0.05
# Characters of one text of a result that it is given.
MAX_TEXT_CHARS = 1_000_000
# A line that begins as a JSON object does, or a text that holds one.
JSON_OBJECT_START = re.compile(r'^\s*"?\{', re.MULTILINE)
# Characters that are kept of what a command says to people.
MAX_NOTE_CHARS = 500


class CommandAnswer(BaseModel):
    """Answer of a command on stdout.

    After a call, `block` withholds the result, and `result` has new values for its keys.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    decision: Literal["block", "confirm", "none"] = "none"
    reason: str = ""
    args: dict[str, Any] | None = None
    context: str = ""
    result: dict[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class CommandReply:
    """Reply of a command: its answer, and a note if the output was not JSON."""

    said: CommandAnswer
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
class CommandExit:
    """Exit of a command with its output; a negative code is the signal that ended it."""

    code: int
    out: str
    err: str


class CommandObserver(Observer):
    """A program of the person's own that looks at calls of one session."""

    def __init__(self, settings: ObserverSettings, session: CallSession) -> None:
        self.name = settings.called
        self.security = settings.security
        self._settings = settings
        self._session = session

    def applies(self, tool: Tool) -> bool:
        wanted = self._settings
        return (
            any(is_glob_match(tool.name, pattern) for pattern in wanted.tools)
            and (wanted.layer is None or tool.layer in wanted.layer)
            and (wanted.kind is None or tool.kind in wanted.kind)
        )

    async def before(self, invocation: Invocation) -> Change | None:
        if "before" not in self._settings.when:
            return None
        heard = await self._ask(invocation, "before", {"verdict": _describe_opinions(invocation)})
        if heard.said.result is not None:
            raise Downstream("it gave a `result` before the call")
        said = heard.said
        return Change(block=heard.blocks, confirm=heard.confirms, args=said.args, context=said.context, note=heard.note)

    async def after(self, invocation: Invocation, verdict: Verdict, result: Mapping[str, Any]) -> Remark | None:
        if "after" not in self._settings.when:
            return None
        told = {"decision": verdict.decision, "rule": verdict.rule, "reasons": [r.text for r in verdict.reasons]}
        heard = await self._ask(invocation, "after", {"verdict": told, "result": _shorten_result(result)})
        said = heard.said
        if said.decision == "confirm" or said.args is not None:
            raise Downstream("it would confirm or change a call that has run already")
        return Remark(withhold=heard.blocks, replace=said.result, context=said.context, note=heard.note)

    async def _ask(self, invocation: Invocation, event: str, more: Mapping[str, Any]) -> CommandReply:
        """Run the command and return its reply. Raises `Downstream` if it failed."""
        told = {
            "session_id": self._session.id,
            "event": event,
            "cwd": str(self._session.cwd),
            **_describe_call(invocation),
        }
        text = CANONICAL_ENCODER.encode({**told, **more})
        environment = remove_credentials(self._session.runtime.environment)
        (program, *arguments), folder = resolve_start_place(
            self._settings.command, self._settings.cwd, self._session.runtime.cwd
        )
        ran = await _run_command(
            [_find_program(program, self._session.runtime.programs), *arguments],
            text.encode("utf-8", "surrogatepass"),
            cwd=folder,
            environment=environment,
            seconds=self._settings.timeout,
        )
        return _parse_reply(ran)


def _find_program(program: str, programs: HostPrograms) -> str:
    """Return the path of a program named without a folder.

    Folders that depend on the working directory, or that agents may write, are not searched. Raises `Downstream` if it
    is not found.
    """
    if "/" in program or os.sep in program:
        return program
    found = programs.find(program)
    if found is None:
        raise Downstream(f"{program!r} is in no folder of PATH outside the workspace: name it by its whole path")
    return found


def _parse_reply(ran: CommandExit) -> CommandReply:
    if ran.code == BLOCK_EXIT_CODE:
        return CommandReply(CommandAnswer(decision="block", reason=_block_reason(ran)))
    if ran.code != 0:
        how = f"exit code {ran.code}" if ran.code > 0 else f"signal {-ran.code}"
        said = ran.err.strip() or ran.out.strip()
        raise Downstream(f"it ended with {how}" + (f": {said[:MAX_NOTE_CHARS]}" if said else ""))
    value = _parse_json_object(ran.out)
    if value is None:
        # What was meant for an answer and cannot be read may have been a no.
        if JSON_OBJECT_START.search(ran.out):
            raise Downstream("it wrote something like a JSON object, and that is not all, or cannot be read")
        return CommandReply(CommandAnswer(), ran.out.strip()[:MAX_NOTE_CHARS])
    try:
        return CommandReply(CommandAnswer.model_validate(value))
    except ValidationError as exc:
        raise Downstream(
            f"its answer does not fit: {validation_messages.describe_error(validation_messages.select_error(exc), CommandAnswer)}"
        ) from exc


def _describe_call(invocation: Invocation) -> dict[str, Any]:
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


def _describe_opinions(invocation: Invocation) -> dict[str, Any]:
    """Return the opinions of the observers before this one; the call is judged after them."""
    opinions = invocation.seen.opinions if invocation.seen is not None else ()
    reasons = [reason.text for opinion in opinions for reason in opinion.reasons]
    return {
        "decision": "confirm" if opinions else None,
        "rule": opinions[0].rule if opinions else "",
        "reasons": reasons,
    }


def _shorten_result(value: Any, name: str = "") -> Any:
    """Return a result for a program: base64 data replaced by its length, texts truncated."""
    if isinstance(value, str):
        return f"[{len(value)} characters]" if name in BASE64_KEYS else value[:MAX_TEXT_CHARS]
    if is_mapping(value):
        return {str(key): _shorten_result(item, str(key)) for key, item in value.items()}
    if is_sequence(value):
        return [_shorten_result(item, name) for item in value]
    return value


def _parse_json_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that a command wrote, possibly encoded as a JSON string; None for anything else."""
    value: Any = text.removeprefix("\ufeff")
    for _ in range(2):
        if not isinstance(value, str):
            break
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None
    return value if is_object(value) else None


def _block_reason(ran: CommandExit) -> str:
    said = _parse_json_object(ran.out)
    given = said.get("reason") if said is not None else None
    return str(given or ran.err.strip() or (ran.out.strip() if said is None else "") or "it ended with exit code 2")


async def _run_command(
    command: Sequence[str], given: bytes, *, cwd: str, environment: Mapping[str, str], seconds: float
) -> CommandExit:
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
                code = await _wait_for_exit(process, out, err)
        except TimeoutError:
            raise Downstream(f"it took longer than {seconds:g} s") from None
        finally:
            _kill_group(process)
            # It is dead, and nobody else collects it.
            with anyio.CancelScope(shield=True):
                await process.wait()
        return CommandExit(code, _read_text(out), _read_text(err))


async def _wait_for_exit(process: asyncio.subprocess.Process, *written: IO[bytes]) -> int:
    while True:
        with contextlib.suppress(TimeoutError):
            return await asyncio.wait_for(process.wait(), EXIT_POLL_S)
        if any(os.fstat(file.fileno()).st_size > MAX_OUTPUT_BYTES for file in written):
            raise Downstream(f"it wrote more than {MAX_OUTPUT_BYTES:,} bytes")


def _kill_group(process: asyncio.subprocess.Process) -> None:
    """End the command and what it started in its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if sys.platform == "win32":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL)


def _read_text(file: IO[bytes]) -> str:
    file.seek(0)
    data = file.read(MAX_OUTPUT_BYTES + 1)
    if len(data) > MAX_OUTPUT_BYTES:
        raise Downstream(f"it wrote more than {MAX_OUTPUT_BYTES:,} bytes")
    return data.decode("utf-8", "replace")
