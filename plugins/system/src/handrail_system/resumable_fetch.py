"""One file from a server into a part: asked for from where it broke off, checked for being the same one, and not waited for without end."""

from __future__ import annotations

import errno
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from http import HTTPStatus
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, NoReturn

import anyio

from handrail import Downstream, TimedOut, __version__
from handrail.net import retry
from handrail.redaction import redact_text
from handrail_system.partial_downloads import PartFile, PartVersion

if TYPE_CHECKING:
    from handrail.net.web_client import WebClient, WebResponse
    from handrail_system.config import SystemConfig

# How often a download that broke off is gone on with, if more of it came each time.
MAX_RETRIES = 5
PAUSE_S = 0.5
CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
USER_AGENT = f"handrail/{__version__}"

# Is told the bytes that are there and, where it is known, the bytes of the whole.
ProgressCallback = Callable[[int, int | None], None]


class DownloadRefused(Downstream):
    """The server answered with something else than the file."""


class DownloadServerBusy(DownloadRefused):
    """The server may give the file another time."""

    retryable = True


class _PartMismatch(Exception):
    """Response that does not continue where the part ends."""


@dataclass(frozen=True, slots=True)
class FetchResult:
    """Outcome of a download.

    `url` is the final one after redirects; `resumed_from` counts the bytes present from an earlier call; `told` is True
    if the size was known.
    """

    url: str
    content_type: str | None
    resumed_from: int
    told: bool


@dataclass(slots=True)
class SpeedGuard:
    """Gives up on a server that sends less than `slowest` bytes a second over `window` seconds."""

    slowest: int
    window: float
    _since: float = field(default_factory=monotonic)
    _got: int = 0

    def add(self, count: int) -> None:
        """Count received bytes; `TimedOut` if the server sends too slowly."""
        self._got += count
        passed = monotonic() - self._since
        if passed < self.window:
            return
        if self._got < self.slowest * passed:
            raise TimedOut(
                f"the server sends fewer than {self.slowest:,} bytes a second",
                hint="call again to go on; plugins.system.download_slowest is the limit",
            )
        self._since, self._got = monotonic(), 0


async def fetch_into_part(
    web: WebClient, url: str, part: PartFile, target: Path, config: SystemConfig, tell: ProgressCallback
) -> FetchResult:
    """Fill the part with the file at `url`; `target` is where it will go, and must have room for it."""
    from handrail.net.web_client import ConnectionBroken

    found = part.size
    for attempt in range(MAX_RETRIES + 1):
        before = part.size
        try:
            done = await _attempt_fetch(web, url, part, target, config, tell)
            return FetchResult(done.url, done.content_type, found if done.resumed_from else 0, done.told)
        except _PartMismatch:
            found = 0
            part.begin(None)
        except ConnectionBroken as exc:
            if part.version is None or part.size <= before or attempt == MAX_RETRIES:
                raise _with_resume_hint(exc, part) from exc
            await anyio.sleep(PAUSE_S)
    raise DownloadRefused(f"{redact_text(url)!r} does not go on where it broke off", hint="call again")


async def _attempt_fetch(
    web: WebClient, url: str, part: PartFile, target: Path, config: SystemConfig, tell: ProgressCallback
) -> FetchResult:
    # As it lies on the server: only then can it be gone on with.
    headers = {"accept": "*/*", "accept-encoding": "identity", "user-agent": USER_AGENT}
    start = part.size if part.version is not None else 0
    if part.version is not None and start:
        headers |= {"range": f"bytes={start}-", "if-range": part.version.validator}
    async with web.request(url, headers=headers) as answer:
        total = _check_answer(answer, part, start)
        if answer.status != HTTPStatus.PARTIAL_CONTENT:
            part.begin(_derive_version(answer, total))
            start = 0
        _check_size_and_space(total, part, target, config)
        pace = SpeedGuard(config.download_slowest, config.download_silence)
        async for chunk in answer.chunks():
            if part.size + len(chunk) > config.download_max_bytes:
                _raise_too_large(None, part, config)
            _append_chunk(part, chunk)
            pace.add(len(chunk))
            tell(part.size, total)
        if total is not None and part.size != total:
            _raise_truncated(answer, part, total)
        return FetchResult(answer.url, answer.headers.get("content-type"), start, told=_is_size_known(answer))


def _check_answer(answer: WebResponse, part: PartFile, start: int) -> int | None:
    """Return the size in bytes of the complete file if known; raise an error for a response that is not the file.

    Raises `_PartMismatch` if it does not continue the part.
    """
    encoded = _is_encoded(answer.headers)
    if answer.status == HTTPStatus.PARTIAL_CONTENT:
        found = CONTENT_RANGE.fullmatch(answer.headers.get("content-range", "").strip())
        if not start:
            raise DownloadRefused(f"{redact_text(answer.url)!r} answered with a part, though the whole was asked for")
        if (
            found is None
            or encoded
            or int(found[1]) != start
            or not _is_same_version(answer.headers, part.version, found[3])
        ):
            raise _PartMismatch
        return None if found[3] == "*" else int(found[3])
    if answer.status == HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
        raise _PartMismatch
    if answer.status != HTTPStatus.OK:
        _raise_refusal(answer, part)
    length = answer.headers.get("content-length", "")
    return int(length) if length.isdecimal() and not encoded else None


def _is_same_version(headers: Mapping[str, str], version: PartVersion | None, total: str) -> bool:
    """Return True if a partial response is of the version that was begun; some servers send a part of any version."""
    if version is None or (version.total is not None and total not in ("*", str(version.total))):
        return False
    key = "etag" if version.validator.startswith('"') else "last-modified"
    return headers.get(key, version.validator) == version.validator


def _derive_version(answer: WebResponse, total: int | None) -> PartVersion | None:
    """Return the version of a file by RFC 9110 (8.8, 13.1.5); None if nothing identifies it reliably."""
    if _is_encoded(answer.headers) or "bytes" not in answer.headers.get("accept-ranges", "bytes"):
        return None
    etag, changed = answer.headers.get("etag", ""), answer.headers.get("last-modified", "")
    if re.fullmatch(r'"[^"]*"', etag):
        return PartVersion(etag, total)
    try:
        # Within one second, a file may have been changed again.
        settled = parsedate_to_datetime(answer.headers["date"]) - parsedate_to_datetime(changed)
    except (KeyError, ValueError, TypeError):
        return None
    return PartVersion(changed, total) if settled.total_seconds() >= 1 else None


def _is_encoded(headers: Mapping[str, str]) -> bool:
    return headers.get("content-encoding", "identity").strip().lower() not in ("", "identity")


def _is_size_known(answer: WebResponse) -> bool:
    return "content-length" in answer.headers or "chunked" in answer.headers.get("transfer-encoding", "").lower()


def _raise_refusal(answer: WebResponse, part: PartFile) -> NoReturn:
    details = {"http_status": answer.status, "url": redact_text(answer.url)}
    message = f"{redact_text(answer.url)!r} answered {retry.format_status(answer.status)}"
    if answer.status in retry.TRANSIENT_STATUSES:
        raise DownloadServerBusy(message, hint=retry.format_retry_hint(answer.headers), details=details)
    part.begin(None)
    raise DownloadRefused(message, details=details)


def _check_size_and_space(total: int | None, part: PartFile, target: Path, config: SystemConfig) -> None:
    if total is None:
        return
    if total > config.download_max_bytes:
        _raise_too_large(total, part, config)
    # Once in the cache, once in its place.
    needed = {part.folder: total - part.size, target.parent: total}
    for place, size in needed.items():
        together = sum(other for at, other in needed.items() if at.stat().st_dev == place.stat().st_dev)
        free = shutil.disk_usage(place).free
        if max(size, together) > free:
            part.begin(None)
            raise Downstream(
                f"there is no room for {total:,} bytes: the disk of {str(place)!r} has {free:,} bytes free",
                hint="it is needed twice for a moment: in Handrail's cache and in its place",
            )


def _raise_too_large(total: int | None, part: PartFile, config: SystemConfig) -> NoReturn:
    part.begin(None)
    size = f"has {total:,} bytes" if total is not None else "is larger than may be"
    raise Downstream(
        f"the file {size}; at most {config.download_max_bytes:,} are downloaded",
        hint="plugins.system.download_max_bytes is the limit",
    )


def _append_chunk(part: PartFile, chunk: bytes) -> None:
    try:
        part.add(chunk)
    except OSError as exc:
        full = exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        # What fills the disk is of no use to anybody.
        part.begin(None)
        why = "the disk is full" if full else exc.strerror
        raise Downstream(f"the file could not be kept in {str(part.folder)!r}: {why}") from exc


def _raise_truncated(answer: WebResponse, part: PartFile, total: int) -> NoReturn:
    from handrail.net.web_client import ConnectionBroken

    if part.size > total:
        part.begin(None)
        raise DownloadRefused(f"{redact_text(answer.url)!r} sent more than the {total:,} bytes that it said")
    raise ConnectionBroken(f"{redact_text(answer.url)!r} ended after {part.size:,} of {total:,} bytes")


def _with_resume_hint(exc: Downstream, part: PartFile) -> Downstream:
    """Add a hint on how to resume to the error of an interrupted download."""
    if part.version is not None and part.size:
        exc.hint = f"{part.size:,} bytes are kept; call again with the same arguments to go on"
    return exc
