"""The process that reads pictures, from the outside: started when needed, kept, killed when an answer is not wanted any more."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import anyio

from handrail import BackendUnavailable
from handrail.workers.host_programs import START_FOLDER
from handrail_vision_ocr import worker_protocol
from handrail_vision_ocr.worker_protocol import FoundItem

# What Python needs to start and to find its packages; reading needs none of the rest.
INHERITED_VARIABLES = ("PATH", "HOME", "LANG", "LC_ALL", "PYTHONPATH", "VIRTUAL_ENV", "SYSTEMROOT")
# Of one answer, in bytes: a screen full of text is a tenth of it.
MAX_REPLY_BYTES = 8_000_000


class ReaderProcess:
    """One process; pictures are read one after another."""

    def __init__(self, environment: Mapping[str, str], *, threads: int, confidence: float) -> None:
        self._environment = {name: environment[name] for name in INHERITED_VARIABLES if name in environment}
        self._argv = [sys.executable, "-P", "-m", "handrail_vision_ocr.worker", str(threads), str(confidence)]
        self._process: asyncio.subprocess.Process | None = None
        self._turn = anyio.Lock()

    async def read(self, pixels: Any, *, place: list[int], controls: bool) -> list[FoundItem]:
        """Read the picture's content.

        `place` identifies the part of the screen: for a picture of the same place, only what changed is read again.
        """
        async with self._turn:
            head = worker_protocol.format_request(*pixels.shape[:2], place=place, controls=controls)
            return worker_protocol.parse_found(await self._ask(head, pixels.tobytes()))

    async def warm_up(self) -> None:
        """Start it and load the models."""
        async with self._turn:
            await self._ask(worker_protocol.format_message({"warm_up": True}))

    async def close(self) -> None:
        """End the process."""
        if (process := self._process) is not None:
            self._process = None
            await _end_process(process)

    async def _ask(self, head: bytes, pixels: bytes = b"") -> Mapping[str, Any]:
        process = self._process = self._process or await self._start()
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(head)
            process.stdin.write(pixels)
            await process.stdin.drain()
            answered = await process.stdout.readline()
            if not answered.endswith(b"\n"):
                raise BackendUnavailable(
                    "the process that reads pictures has ended", hint="ask again: it is started anew"
                )
            return json.loads(answered)
        except (OSError, ValueError) as exc:
            await self.close()
            raise BackendUnavailable(f"the process that reads pictures failed ({type(exc).__name__})") from exc
        except BaseException:
            # Half a question was asked, or its answer is still to come: nobody could use this process again.
            with anyio.CancelScope(shield=True):
                await self.close()
            raise

    async def _start(self) -> asyncio.subprocess.Process:
        return await asyncio.create_subprocess_exec(
            *self._argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=self._environment,
            cwd=START_FOLDER,
            limit=MAX_REPLY_BYTES,
            start_new_session=True,
        )


async def _end_process(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
    await process.wait()
    # The pipe's transport is closed by the loop only when it notices; until then its descriptors are open.
    transport = getattr(process, "_transport", None)
    if transport is not None:
        transport.close()
    assert process.stdin is not None
    # What it did not take any more is an error, which asyncio complains of when nobody asks for it.
    with suppress(OSError):
        await process.stdin.wait_closed()
