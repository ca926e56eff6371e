"""Starting a Chromium of our own: its program, its profile, and the switches it is run with."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from handrail import Downstream, ToolUnavailable
from handrail_browser.chromium.cdp import CdpConnection, PipeChannel
from handrail_browser.chromium.reaper_process import ReaperProcess, start_reaper

if TYPE_CHECKING:
    from handrail.workers.host_programs import HostPrograms

PROGRAM_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome-stable",
    "google-chrome",
    "microsoft-edge-stable",
    "brave-browser",
)
MACOS_PATHS = (
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
)
CHROMIUM_HINT = "install Chromium (on Debian: apt install chromium), or name a browser in plugins.browser.executable"
PROFILE_PREFIX = "handrail-browser-"
START_S = 30.0
# What a browser needs of the environment; no proxy and no key is among it.
INHERITED_VARIABLES = (
    "PATH",
    "LANG",
    "LC_ALL",
    "TZ",
    "DISPLAY",
    "XAUTHORITY",
    "WAYLAND_DISPLAY",
    "XDG_RUNTIME_DIR",
    "FONTCONFIG_FILE",
    "FONTCONFIG_PATH",
)
# Nothing that calls home, asks a person, or reaches the network past the proxy: for every browser of ours, whoever starts it.
CONFINING_SWITCHES = (
    "--proxy-bypass-list=<-loopback>", "--disable-quic", "--dns-prefetch-disable", "--no-pings", "--disable-component-update",
    "--disable-domain-reliability", "--force-webrtc-ip-handling-policy=disable_non_proxied_udp",
    "--webrtc-ip-handling-policy=disable_non_proxied_udp", "--deny-permission-prompts", "--disable-notifications", "--no-first-run",
)  # fmt: skip
SWITCHES = (
    *CONFINING_SWITCHES,
    "--remote-debugging-pipe", "--no-default-browser-check", "--disable-background-networking", "--disable-default-apps", "--disable-extensions",
    "--disable-sync", "--disable-client-side-phishing-detection", "--disable-breakpad", "--disable-crash-reporter", "--metrics-recording-only",
    "--no-service-autorun", "--password-store=basic", "--use-mock-keychain", "--disable-search-engine-choice-screen", "--disable-infobars",
    "--disable-prompt-on-repost", "--mute-audio", "--disable-background-timer-throttling", "--disable-backgrounding-occluded-windows",
    "--disable-renderer-backgrounding", "--disable-ipc-flooding-protection", "--force-color-profile=srgb", "--hide-scrollbars",
    "--disable-dev-shm-usage",
    # Names are for the proxy to look up: nothing that passes it by gets anywhere.
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
    "--disable-features=Translate,OptimizationHints,MediaRouter,DialMediaRouteProvider,InterestFeedContentSuggestions,CertificateTransparencyComponentUpdater,"
    "AutofillServerCommunication,HttpsUpgrades,HttpsFirstBalancedModeAutoEnable,PaintHolding,LensOverlay,AcceptCHFrame,GlobalMediaControls",
)  # fmt: skip


@dataclass(slots=True)
class RunningBrowser:
    """A browser of our own, and what ends it: its keeper's standard input."""

    connection: CdpConnection
    profile: Path
    keeper: ReaperProcess

    async def end(self) -> None:
        """End the browser; when this returns, no process of it is left, nor its profile if it was ours."""
        await self.keeper.end(self.connection.close)


def find_chromium(named: Path | None, programs: HostPrograms) -> str | None:
    """Return the browser to run: the configured one, else the first that is installed; None if there is none."""
    if named is not None:
        return str(named) if os.access(named, os.X_OK) else None
    found = map(programs.find, PROGRAM_NAMES)
    on_macos = (path for path in MACOS_PATHS if sys.platform == "darwin" and os.access(path, os.X_OK))
    return next((each for each in (*found, *on_macos) if each is not None), None)


def explain_missing_browser(named: Path | None, programs: HostPrograms) -> str | None:
    """Explain why no browser of our own can be started here, with a remedy; None if one can."""
    if os.name != "posix":
        return (
            "a browser of Handrail's own is started on Linux and macOS only; connect_cdp reaches one that you started"
        )
    if find_chromium(named, programs) is None:
        return (
            f"{str(named)!r} is no program; {CHROMIUM_HINT}"
            if named is not None
            else f"there is no Chromium on this machine; {CHROMIUM_HINT}"
        )
    return None


async def launch_chromium(
    executable: str,
    *,
    proxy: str,
    environment: Mapping[str, str],
    profile: Path | None,
    headless: bool,
    window: tuple[int, int],
) -> RunningBrowser:
    """Start a browser that makes every connection through `proxy`.

    Without a `profile` of the user's own, it gets an empty one that is removed with it.
    """
    folder = _check_profile_unused(profile) if profile is not None else Path(tempfile.mkdtemp(prefix=PROFILE_PREFIX))
    argv = [
        executable,
        *SWITCHES,
        f"--proxy-server={proxy}",
        f"--user-data-dir={folder}",
        f"--window-size={window[0]},{window[1]}",
    ]
    argv += ["--headless=new"] if headless else []
    # Chromium's own sandbox refuses to run as root.
    argv += ["--no-sandbox"] if os.geteuid() == 0 else []
    # The profile stands in for a home, so that nothing of the person's is read or written.
    around = {name: environment[name] for name in INHERITED_VARIABLES if name in environment} | {"HOME": str(folder)}
    return await _start_process([*argv, "about:blank"], folder, keep=profile is not None, environment=around)


async def _start_process(
    argv: Sequence[str], profile: Path, *, keep: bool, environment: Mapping[str, str]
) -> RunningBrowser:
    to_browser, ours = os.pipe()
    answers, from_browser = os.pipe()
    try:
        keeper = start_reaper(
            ["keep" if keep else "remove", str(to_browser), str(from_browser), "--", *argv], profile, environment
        )
    finally:
        os.close(to_browser)
        os.close(from_browser)
    running = RunningBrowser(CdpConnection(await PipeChannel.over(answers, ours)), profile, keeper)
    try:
        await running.connection.send("Browser.getVersion", seconds=START_S)
    except BaseException as exc:  # being cancelled, too: no browser is left
        await running.end()
        if isinstance(exc, Downstream):
            raise ToolUnavailable(
                f"{argv[0]!r} ended as it was started", hint=_start_failure_hint(profile, keep=keep)
            ) from exc
        raise
    return running


def _start_failure_hint(profile: Path, *, keep: bool) -> str:
    return (
        f"another browser may use the profile {str(profile)!r}" if keep else "run it by hand once to see what it says"
    )


def _check_profile_unused(profile: Path) -> Path:
    """Return the user's own profile. Raises `Downstream` if a browser is using it."""
    lock = profile / "SingletonLock"
    with suppress(OSError, ValueError):
        pid = int(os.readlink(lock).rpartition("-")[2])
        os.kill(pid, 0)
        raise Downstream(
            f"the profile {str(profile)!r} is in use by a browser (process {pid})",
            hint="close that browser, or leave plugins.browser.profile unset for a profile of its own",
        )
    return profile
