"""The program of PinchTab: which file of which release, and how it comes into the data folder."""

from __future__ import annotations

import hashlib
import os
import platform
import sys
import tempfile
import tomllib
from collections.abc import Mapping
from http import HTTPStatus
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

import anyio.to_thread
from pydantic import BaseModel, ConfigDict, Field

from handrail import Downstream, ToolUnavailable

if TYPE_CHECKING:
    from handrail.net.web_client import WebClient

PINCHTAB_HINT = (
    "install PinchTab by hand and name it in plugins.browser.pinchtab.executable, or use the driver chromium"
)
ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64"}
BLOCK_BYTES = 1_048_576


class ReleaseFile(BaseModel):
    """One platform's file, and its SHA-256."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class PinchTabRelease(BaseModel):
    """A release whose files are known."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: str
    base: str = Field(pattern="^https?://.*/$")
    files: Mapping[str, ReleaseFile]

    def file(self, place: str) -> ReleaseFile:
        """Return the file for a platform. Raises `ToolUnavailable` if no checksum is known for it."""
        if (found := self.files.get(place)) is None:
            raise ToolUnavailable(
                f"no checksum of PinchTab {self.version} is known for {place!r} (known: {', '.join(self.files)})",
                hint=PINCHTAB_HINT,
            )
        return found

    def path(self, folder: Path, place: str) -> Path:
        """Return the path of the program once it has been fetched. It contains the version of the release."""
        return folder / "pinchtab" / self.version / self.file(place).name


def load_pinned_release() -> PinchTabRelease:
    """Load the release that is pinned in this plugin."""
    return PinchTabRelease.model_validate(
        tomllib.loads(files("handrail_browser.pinchtab").joinpath("release.toml").read_text("utf-8"))
    )


def get_platform_name() -> str:
    """Return the name of this platform in releases."""
    machine = platform.machine().lower()
    system = "windows" if sys.platform == "win32" else sys.platform
    return f"{system}-{ARCHITECTURES.get(machine, machine)}"


def is_program_intact(path: Path, file: ReleaseFile) -> bool:
    """Return True if the program exists and still has the checksum that was verified."""
    try:
        return os.access(path, os.X_OK) and _compute_sha256(path) == file.sha256
    except OSError:
        return False


async def fetch_program(web: WebClient, release: PinchTabRelease, folder: Path, place: str) -> Path:
    """Download the program, check it, and install it completely or not at all."""
    file, target = release.file(place), release.path(folder, place)
    async with web, web.request(release.base + file.name, headers={"accept-encoding": "identity"}) as answer:
        if answer.status != HTTPStatus.OK:
            raise Downstream(f"{release.base + file.name!r} answered {answer.status}", hint=PINCHTAB_HINT)
        length = answer.headers.get("content-length", "")
        data = bytearray()
        async for chunk in answer.chunks():
            data += chunk
        if length.isdecimal() and len(data) != int(length):
            raise Downstream(f"PinchTab's program ended after {len(data):,} of {length} bytes", hint="try again")
    found = hashlib.sha256(data).hexdigest()
    if found != file.sha256:
        raise Downstream(
            f"{file.name!r} has the checksum {found}, not {file.sha256}; nothing was kept of it", hint=PINCHTAB_HINT
        )
    await anyio.to_thread.run_sync(_install_program, target, bytes(data))
    return target


def _install_program(target: Path, data: bytes) -> None:
    partial: str | None = None
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(prefix=".", dir=target.parent)
        with open(handle, "wb") as file:
            file.write(data)
            os.fchmod(handle, 0o700)
            os.fsync(handle)
        os.replace(partial, target)
    except OSError as exc:
        if partial is not None:
            Path(partial).unlink(missing_ok=True)
        raise Downstream(f"PinchTab could not be put into {str(target.parent)!r}: {exc.strerror}") from exc


def _compute_sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(BLOCK_BYTES):
            digest.update(block)
    return digest.hexdigest()
