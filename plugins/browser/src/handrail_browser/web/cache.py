"""Pages that were fetched, kept in Handrail's own folder: asked for again only to hear whether they have changed."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path
from urllib.parse import urlsplit

from handrail.fs.app_dirs import ensure_private_folder

DAY_S = 86_400.0
MAX_AGE = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?(\d{1,9})")


@dataclass(frozen=True, slots=True)
class CachedPage:
    """Page as a server returned it.

    `fresh_until` is the Unix time in seconds until which it need not be revalidated.
    """

    content_type: str
    etag: str
    changed: str
    fresh_until: float
    data: bytes = b""

    @property
    def fresh(self) -> bool:
        return time.time() < self.fresh_until

    @property
    def conditions(self) -> Mapping[str, str]:
        """Headers that ask for it only where it has changed (RFC 9110, 13.1)."""
        told = {"if-none-match": self.etag, "if-modified-since": self.changed}
        return {name: value for name, value in told.items() if value}


def create_cached_page(url: str, headers: Mapping[str, str], data: bytes) -> CachedPage | None:
    """Return what may be cached of a response, by RFC 9111; None if nothing may."""
    control = headers.get("cache-control", "").lower()
    if "no-store" in control or headers.get("vary", "").strip() == "*" or urlsplit(url).username is not None:
        return None
    etag, changed = headers.get("etag", "")[:500], headers.get("last-modified", "")[:100]
    until = time.time() + (0.0 if "no-cache" in control else _compute_lifetime(control, headers))
    if not etag and not changed and until <= time.time():
        return None
    return CachedPage(headers.get("content-type", "")[:500], etag, changed, until, data)


def _compute_lifetime(control: str, headers: Mapping[str, str]) -> float:
    if (found := MAX_AGE.search(control)) is not None:
        age = headers.get("age", "0")
        return min(max(float(found[1]) - (float(age) if age.isdecimal() else 0.0), 0.0), DAY_S)
    try:
        passed = parsedate_to_datetime(headers["expires"]) - parsedate_to_datetime(headers["date"])
    except (KeyError, ValueError, TypeError):
        return 0.0
    return min(max(passed.total_seconds(), 0.0), DAY_S)


class PageCache:
    """The folder, with at most `most` bytes, none of them older than `days`."""

    def __init__(self, folder: Path, *, most: int, days: float) -> None:
        self._folder = folder
        self._most = most
        self._days = days

    def get(self, url: str) -> CachedPage | None:
        """Return the cached page for an address; None if there is none, or it is expired or unreadable."""
        try:
            with open(os.open(self._place(url), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                if time.time() - os.fstat(file.fileno()).st_mtime > self._days * DAY_S:
                    return None
                return CachedPage(**json.loads(file.readline()), data=file.read())
        except (OSError, ValueError, TypeError):
            return None

    def put(self, url: str, kept: CachedPage) -> None:
        """Store a page, and remove old and excess ones. A full disk raises no error."""
        if len(kept.data) > self._most:
            return
        told = {name: value for name, value in asdict(kept).items() if name != "data"}
        place = self._place(url)
        new = place.with_suffix(f".{os.getpid()}-{time.monotonic_ns()}.new")
        try:
            ensure_private_folder(self._folder)
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
                file.write(json.dumps(told).encode() + b"\n" + kept.data)
            os.replace(new, place)
            self._prune()
        except OSError:
            with suppress(OSError):
                new.unlink()

    def _place(self, url: str) -> Path:
        return self._folder / f"{hashlib.sha256(url.encode('utf-8', 'replace')).hexdigest()}.page"

    def _prune(self) -> None:
        found: list[tuple[float, int, Path]] = []
        for place in self._folder.iterdir():
            with suppress(OSError):
                known = place.stat(follow_symlinks=False)
                found.append((known.st_mtime, known.st_size, place))
        total = sum(size for _, size, _ in found)
        for at, size, place in sorted(found):
            if total <= self._most and time.time() - at <= self._days * DAY_S:
                break
            with suppress(OSError):
                place.unlink()
            total -= size
