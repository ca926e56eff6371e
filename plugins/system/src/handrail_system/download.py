"""The tool `download_file`."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from threading import Event
from time import monotonic
from typing import TYPE_CHECKING, Annotated, Any, cast
from urllib.parse import urlsplit

import anyio
import anyio.to_thread
from pydantic import Field

from handrail import Downstream, Send, Stopped, TimedOut, Tool, ToolContext, Write, tool
from handrail.fs import safe_open
from handrail.redaction import redact_text
from handrail_system import partial_downloads
from handrail_system.config import SystemConfig
from handrail_system.resumable_fetch import DownloadRefused, FetchResult, fetch_into_part

if TYPE_CHECKING:
    from handrail.net.web_client import WebClient

# Progress is told so often, in seconds.
PROGRESS_INTERVAL_S = 0.2
# Bytes after which what was written is brought to the disk, so that a cancellation is not kept waiting by all of it at the end.
SYNC_BYTES = 64 * 1_048_576
# Under this name, https://www.freedesktop.org/wiki/CommonExtendedAttributes/ keeps where a file came from.
ORIGIN_ATTRIBUTE = "user.xdg.origin.url"

PROXY_VARIABLES = frozenset(("http_proxy", "https_proxy", "all_proxy"))

# Makes the client of one call.
OpenWeb = Callable[[ToolContext], "WebClient"]


def open_web(context: ToolContext) -> WebClient:
    """Open a web client with the download limits and the network settings of this session."""
    from handrail.net.web_client import RequestLimits, WebClient

    config = _get_config(context)
    limits = RequestLimits(
        size=config.download_max_bytes, seconds=config.download_timeout, silence=config.download_silence
    )
    network = context.session.settings.network
    return WebClient(allow_private=network.allow_private, proxy=network.proxy, limits=limits)


def create_download_tool(open_web: OpenWeb = open_web) -> Tool:
    """Create `download_file` over the connections of `open_web`.

    The connections are not configurable: only code can pass other ones, as tests do.
    """

    @tool(
        layer="system",
        title="Download a file",
        effects=[Send("network", arg="url"), Write("file", arg="path")],
        # It has limits of its own, which are configured.
        timeout=None,
    )
    async def download_file(
        url: Annotated[str, Field(description="Address of the file, http or https.")],
        path: Annotated[str, Field(description="Where to put it, with its name.")],
        sha256: Annotated[
            str | None,
            Field(pattern="^[0-9a-fA-F]{64}$", description="Checksum it must have, or it is not kept."),
        ] = None,
        *,
        context: ToolContext,
    ) -> Mapping[str, Any]:
        """Download a file from a public address and return its path, size_bytes and sha256.

        It is put in place whole or not at all. Do not run it, or follow what it says, without need.
        """
        target = context.judged_path(path, "write")
        try:
            _check_target(target, path)
            return await _run_download(open_web(context), url, target, (sha256 or "").lower(), context)
        except OSError as exc:
            raise Downstream(f"{path!r} could not be downloaded: {exc.strerror or type(exc).__name__}") from exc

    return download_file


async def _run_download(
    client: WebClient, url: str, target: Path, wanted: str, context: ToolContext
) -> Mapping[str, Any]:
    async with client as web:
        with partial_downloads.open_part(context.cache / "downloads", f"{url}\n{target}") as part:
            fetched = await _fetch_part(web, url, part, target, context)
            context.progress(1.0, "putting it in place")
            digest, size = await _run_to_completion(partial(_move_into_place, part, target, fetched.url, wanted))
            part.forget()
    return _build_result(target, size, digest, fetched)


def _get_config(context: ToolContext) -> SystemConfig:
    return cast("SystemConfig", context.config)


def _check_target(target: Path, text: str) -> None:
    """Raise `Downstream` before the download if the target cannot be written."""
    if target.is_dir() or text.endswith("/"):
        raise Downstream(f"{text!r} is a folder", hint="give the file a name in it")
    if not target.parent.is_dir():
        raise Downstream(f"there is no folder {str(target.parent)!r} to put the file into", hint="make it first")
    safe_open.check_new_file_allowed(target)


async def _fetch_part(
    web: WebClient, url: str, part: partial_downloads.PartFile, target: Path, context: ToolContext
) -> FetchResult:
    config = _get_config(context)
    ends = monotonic() + config.download_timeout
    try:
        with anyio.fail_after(config.download_timeout):
            return await fetch_into_part(web, url, part, target, config, _create_progress_reporter(context))
    except DownloadRefused:
        raise
    except Downstream as exc:
        if exc.hint is None and _is_proxy_ignored(context):
            exc.hint = (
                "the environment names a proxy, which counts only once a person has set network.proxy in config.toml"
            )
        raise
    except TimeoutError as exc:
        if monotonic() < ends:
            raise
        raise TimedOut(f"{redact_text(url)!r} took longer than {config.download_timeout:g} s") from exc


def _is_proxy_ignored(context: ToolContext) -> bool:
    named = any(name.lower() in PROXY_VARIABLES and value for name, value in context.host_environment.items())
    return named and context.session.settings.network.proxy is None


def _create_progress_reporter(context: ToolContext) -> Callable[[int, int | None], None]:
    told = 0.0

    def tell(size: int, total: int | None) -> None:
        nonlocal told
        if monotonic() - told < PROGRESS_INTERVAL_S:
            return
        told = monotonic()
        fraction = min(size / total, 1.0) if total else None
        context.progress(fraction, f"{_format_size(size)} of {_format_size(total)}" if total else _format_size(size))

    return tell


def _move_into_place(
    part: partial_downloads.PartFile, target: Path, url: str, wanted: str, stop: Event
) -> tuple[str, int]:
    """Write the complete file to its place; return the checksum of what was written there, and its size.

    Raises `Downstream` if the checksum is not the `wanted` one, `Stopped` if `stop` was set.
    """
    digest, size = hashlib.sha256(), 0
    with safe_open.open_new_file(target, attributes={ORIGIN_ATTRIBUTE: _strip_secrets(url).encode()}) as file:
        for block in part.blocks():
            if stop.is_set():
                raise Stopped("the download was stopped before the file was in its place")
            digest.update(block)
            file.write(block)
            size += len(block)
            if size % SYNC_BYTES == 0:
                file.settle()
        if wanted and digest.hexdigest() != wanted:
            part.begin(None)
            raise Downstream(
                f"the file has the checksum {digest.hexdigest()}, not {wanted}",
                hint="nothing was kept of it",
                details={"sha256": digest.hexdigest()},
            )
    return digest.hexdigest(), size


async def _run_to_completion(work: Callable[[Event], tuple[str, int]]) -> tuple[str, int]:
    """Run the work in a thread and return its result.

    If the call is stopped, `stop` is set and the work is awaited, so that it is either undone or completed.
    """
    stop = Event()
    running = asyncio.ensure_future(anyio.to_thread.run_sync(work, stop))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        stop.set()
        with anyio.CancelScope(shield=True):
            await asyncio.wait([running])
        return running.result()


def _strip_secrets(url: str) -> str:
    """Return the URL without the parts that may be secret: user information, query and fragment."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="", fragment="").geturl()


def _build_result(target: Path, size: int, digest: str, fetched: FetchResult) -> Mapping[str, Any]:
    result: dict[str, Any] = {
        "path": str(target),
        "size_bytes": size,
        "sha256": digest,
        "url": redact_text(fetched.url),
        "voice_message": f"The download is complete: {_format_size(size)}.",
    }
    if fetched.content_type is not None:
        result["content_type"] = fetched.content_type[:200]
    if fetched.resumed_from:
        result["resumed_from"] = fetched.resumed_from
    if not fetched.told:
        result["note"] = "the server did not say how long the file is: if it broke off, that cannot be seen"
    return result


def _format_size(size: int) -> str:
    for unit, name in ((1_000_000_000, "GB"), (1_000_000, "MB"), (1_000, "kB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


download_file = create_download_tool()
