"""Starting a PinchTab of our own: its configuration, its port, and the proof that its browser keeps to our proxy."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

import anyio

from handrail import Downstream, TimedOut, ToolUnavailable
from handrail_browser.chromium.launcher import CONFINING_SWITCHES, INHERITED_VARIABLES, PROFILE_PREFIX
from handrail_browser.chromium.reaper_process import ReaperProcess, start_reaper
from handrail_browser.pinchtab.client import PinchTabClient

if TYPE_CHECKING:
    from handrail_browser.chromium.proxy import JudgingProxy

START_S = 40.0
START_POLL_S = 0.05
# An address for examples (RFC 5737), which the rail refuses: a browser that asks our proxy for it keeps to the proxy.
TEST_ADDRESS = "192.0.2.1"


@dataclass(slots=True)
class OwnPinchTab:
    """A PinchTab of our own, and what ends it: its keeper's standard input. `uploads` is where files for pages have to lie."""

    client: PinchTabClient
    folder: Path
    keeper: ReaperProcess

    @property
    def uploads(self) -> Path:
        return self.folder / "state" / "uploads"

    async def end(self) -> None:
        """End it; when this returns, no process of it is left, nor anything that it wrote."""
        try:
            await self.keeper.end(self.client.close)
        finally:
            # Where the keeper could not: it was killed, or never began.
            with anyio.CancelScope(shield=True):
                await asyncio.to_thread(shutil.rmtree, self.folder, ignore_errors=True)


async def start_pinchtab(
    executable: Path, chromium: str, *, proxy: JudgingProxy, environment: Mapping[str, str], headless: bool
) -> OwnPinchTab:
    """Start a PinchTab that controls `chromium` and makes every connection through `proxy`."""
    folder = Path(tempfile.mkdtemp(prefix=PROFILE_PREFIX))
    token = secrets.token_hex(32)
    for name in ("state/uploads", "profiles", "tmp"):
        (folder / name).mkdir(parents=True, mode=0o700)
    config = folder / "config.json"
    config.write_text(json.dumps(build_configuration(folder, chromium, proxy.url, headless=headless)))
    # It clears up after browsers of its own that it finds in the folder for temporary files: it gets one of ours.
    around = {name: environment[name] for name in INHERITED_VARIABLES if name in environment} | {
        "HOME": str(folder), "TMPDIR": str(folder / "tmp"), "PINCHTAB_CONFIG": str(config), "PINCHTAB_TOKEN": token,
        "PINCHTAB_RATE_LIMIT_MAX": "3000",
    }  # fmt: skip
    nothing = [os.open(os.devnull, os.O_RDWR) for _ in range(2)]
    try:
        keeper = start_reaper(["remove", *map(str, nothing), "--", str(executable), "bridge"], folder, around)
    finally:
        for each in nothing:
            os.close(each)
    own = OwnPinchTab(PinchTabClient("http://127.0.0.1:0", None), folder, keeper)
    try:
        with anyio.fail_after(START_S):
            port = await _wait_for_port(keeper)
            own.client = PinchTabClient(f"http://127.0.0.1:{port}", f"Bearer {token}")
            await _check_token_required(own, port)
            await _check_proxy_used(own, proxy)
    except BaseException as exc:  # being cancelled, too: no process is left
        await own.end()
        if isinstance(exc, TimeoutError):
            raise ToolUnavailable(f"{str(executable)!r} was not ready within {START_S:g} s") from exc
        raise
    return own


def build_configuration(folder: Path, chromium: str, proxy: str, *, headless: bool) -> Mapping[str, Any]:
    """Return its config.json.

    Its own rules are off because they are enforced here, and so are its features that this plugin does not use. It
    splits `extraFlags` at spaces.
    """
    return {
        "server": {"bind": "127.0.0.1", "port": "0", "stateDir": str(folder / "state")},
        "browser": {"binary": chromium, "extraFlags": " ".join((f"--proxy-server={proxy}", *CONFINING_SWITCHES))},
        "browsers": {"default": "chrome"},
        "instanceDefaults": {"mode": "headless" if headless else "headed", "noRestore": True, "maxTabs": 30},
        "profiles": {"baseDir": str(folder / "profiles")},
        "security": {
            "allowEvaluate": False, "allowMacro": False, "allowScreencast": False, "allowDownload": False, "allowUpload": True,
            "attach": {"enabled": False}, "allowedDomains": ["*"], "idpi": {"enabled": False},
        },
        "timeouts": {"actionSec": 30, "navigateSec": 60},
        "observability": {"activity": {"enabled": False}},
    }  # fmt: skip


async def _wait_for_port(keeper: ReaperProcess) -> int:
    """Return the port on which it listens.

    The system chose the port, and it is read from the process itself, so no other process can answer on it.
    """
    while True:
        if keeper.gone():
            raise ToolUnavailable("PinchTab ended as it was started", hint="run it by hand once to see what it says")
        if ports := await asyncio.to_thread(_find_listening_ports, keeper.pid):
            return ports[0]
        await anyio.sleep(START_POLL_S)


def _find_listening_ports(pid: int) -> Sequence[int]:
    import psutil

    found: list[int] = []
    # It may end at any moment.
    with suppress(psutil.Error):
        for child in psutil.Process(pid).children():
            found += [
                each.laddr.port
                for each in child.net_connections(kind="tcp")
                if each.status == psutil.CONN_LISTEN and each.laddr.ip == "127.0.0.1"
            ]
    return found


async def _check_token_required(own: OwnPinchTab, port: int) -> None:
    """Check that it requires our token, accepts it, and has a browser."""
    stranger = PinchTabClient(f"http://127.0.0.1:{port}", None)
    try:
        await stranger.get("/health", seconds=START_S)
    except Downstream as exc:
        if exc.details.get("http_status") != 401:
            raise
    else:
        raise ToolUnavailable("this PinchTab answers without its token; it is not used")
    finally:
        await stranger.close()
    ends = monotonic() + START_S
    while True:
        try:
            told = await own.client.get("/health", seconds=START_S)
            break
        except (Downstream, TimedOut):
            if own.keeper.gone() or monotonic() > ends:
                raise
            await anyio.sleep(START_POLL_S)
    if told.get("status") != "ok":
        raise ToolUnavailable("PinchTab says that it is not well")


async def _check_proxy_used(own: OwnPinchTab, proxy: JudgingProxy) -> None:
    """Check that its browser uses our proxy. Raises `ToolUnavailable` if it does not."""
    proxy.taken()
    with suppress(Downstream, TimedOut):
        await own.client.post("/navigate", {"url": f"http://{TEST_ADDRESS}/{secrets.token_hex(8)}"}, seconds=20)
    if not any(TEST_ADDRESS in each.place for each in proxy.taken()):
        raise ToolUnavailable(
            "PinchTab's browser does not keep to Handrail's proxy, so nothing would hold it to the rules",
            hint="use the driver chromium, or leave plugins.browser.pinchtab.executable unset",
        )
