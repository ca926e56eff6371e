"""The ways to a server, as its table in the configuration names them."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from handrail import Downstream
from handrail.api.secret_refs import SECRET_REF
from handrail.config.settings import ServerSettings
from handrail.redaction import remove_credentials
from handrail.workers.host_programs import START_FOLDER, HostPrograms, resolve_start_place
from handrail_mcp.client.bounds import BoundedMessages, is_too_large
from handrail_mcp.client.server_process import MAX_MESSAGE, MessageStreams, run_server_program

# Seconds for one step of HTTP: connecting, sending, and the first word of an answer.
STEP_S = 30.0
# Seconds that an open stream may be silent.
SILENCE_S = 3_600.0

TransportFactory = Callable[[], AbstractAsyncContextManager[MessageStreams]]


@dataclass(frozen=True, slots=True)
class ServerEnvironment:
    """Part of the session that a server uses."""

    environment: Mapping[str, str]
    # Those that may be started: a server runs before anybody is asked about its tools.
    programs: HostPrograms
    # Where relative paths of the configuration start.
    cwd: Path
    workspace: tuple[Path, ...]
    # The value of a secret by its name; an error for one that there is not.
    secret: Callable[[str], Awaitable[str]]


async def list_transports(
    settings: ServerSettings, around: ServerEnvironment, ended: Callable[[str], None]
) -> Sequence[TransportFactory]:
    """Return the transports to the server, in the order to try them.

    `ended` is called with the reason when a program ends.
    """
    if settings.command:
        own = {name: await _fill_secrets(value, around) for name, value in settings.env.items()}
        environment = {**remove_credentials(around.environment), **own}
        words, cwd = resolve_start_place(settings.command, settings.cwd, around.cwd)
        command = _resolve_program(words, around.programs)
        return [lambda: run_server_program(command, environment=environment, cwd=cwd, ended=ended)]
    headers = {name: await _fill_secrets(value, around) for name, value in settings.headers.items()}
    url = settings.url or ""
    http: TransportFactory = lambda: _connect_http(url, headers)  # noqa: E731
    sse: TransportFactory = lambda: _sse(url, headers)  # noqa: E731
    match settings.transport:
        case "http":
            return [http]
        case "sse":
            return [sse]
        case _:
            return [http, sse]


def build_path_hint(settings: ServerSettings, folder: Path) -> str:
    """Return what to do about an argument that names a file of the session's folder, which a server does not find where it runs; or nothing."""
    if settings.cwd is not None:
        return ""
    missed = [
        word for word in settings.command[1:] if not word.startswith((".", "/", "-")) and os.path.isfile(folder / word)
    ]
    return f" (it runs in {START_FOLDER}: write './{missed[0]}', or name a cwd)" if missed else ""


def _resolve_program(command: Sequence[str], programs: HostPrograms) -> Sequence[str]:
    """Return the command with the absolute path of its program if that is named without a folder.

    Raises `Downstream` if the program is not available.
    """
    name, *arguments = command
    if "/" in name or os.sep in name:
        return command
    found = programs.find(name)
    if found is None:
        raise Downstream(f"{programs.why_missing(name)}, nor named by its whole path")
    return (found, *arguments)


async def _fill_secrets(text: str, around: ServerEnvironment) -> str:
    """Return the text with the values of the secrets that it refers to."""
    values = {name: await around.secret(name) for name in SECRET_REF.findall(text)}
    return SECRET_REF.sub(lambda found: values[found[1]], text)


@asynccontextmanager
async def _connect_http(url: str, headers: dict[str, str]) -> AsyncGenerator[MessageStreams, None]:
    async with (
        _create_http_client(headers, httpx2.Timeout(STEP_S, read=SILENCE_S)) as client,
        streamable_http_client(url, http_client=client, max_sse_event_size=MAX_MESSAGE) as streams,
    ):
        yield BoundedMessages(streams[0]), streams[1]


@asynccontextmanager
async def _sse(url: str, headers: dict[str, str]) -> AsyncGenerator[MessageStreams, None]:
    async with sse_client(url, headers, STEP_S, SILENCE_S, _create_http_client) as streams:
        yield BoundedMessages(streams[0]), streams[1]


def _create_http_client(
    headers: dict[str, Any] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
) -> httpx2.AsyncClient:
    # What is packed may be a thousand times as large as what arrives.
    plain = {name: value for name, value in (headers or {}).items() if name.lower() != "accept-encoding"}
    headers = {**plain, "accept-encoding": "identity"}
    return httpx2.AsyncClient(headers=headers, timeout=timeout, auth=auth, event_hooks={"response": [_limit_response]})


async def _limit_response(response: httpx2.Response) -> None:
    """Limit a response to the size of a message and reject compressed content.

    A stream of events is limited per event instead.
    """
    if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
        raise httpx2.ReadError("an answer is packed, which was not asked for", request=response.request)
    if not response.headers.get("content-type", "").startswith("text/event-stream"):
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _LimitedStream(response.stream, response.request)


class _LimitedStream(httpx2.AsyncByteStream):
    def __init__(self, stream: httpx2.AsyncByteStream, request: httpx2.Request) -> None:
        self._stream = stream
        self._request = request

    async def __aiter__(self) -> AsyncIterator[bytes]:
        text = bytearray()
        async for chunk in self._stream:
            text += chunk
            if len(text) > MAX_MESSAGE:
                raise httpx2.ReadError(f"an answer has more than {MAX_MESSAGE // 2**20} MB", request=self._request)
        if is_too_large(whole := bytes(text)):
            raise httpx2.ReadError("an answer holds too many values", request=self._request)
        yield whole

    async def aclose(self) -> None:
        await self._stream.aclose()
