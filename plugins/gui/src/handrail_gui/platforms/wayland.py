"""Wayland sessions: clipboard access through wl-clipboard, and diagnosis of what a program may not do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shutil import which
from subprocess import DEVNULL, PIPE

import anyio

from handrail import Desktop, Downstream, Finding, Session
from handrail.workers.host_programs import START_FOLDER
from handrail_gui.platforms.input_driver import ClipboardSelection

# Seconds for one answer of the program that owns the clipboard.
OWNER_TIMEOUT_S = 3.0
MAX_CLIPBOARD_BYTES = 64 * 1024 * 1024
TEXT_TYPES = ("text/plain;charset=utf-8", "UTF8_STRING", "text/plain", "STRING")

PORTAL_NAMES = ("Clipboard", "RemoteDesktop", "ScreenCast", "Screenshot")
INSTALL_HINT = "on Debian: apt install wl-clipboard"
X11_HINT = "log in to an X11 session, or use a private desktop: --desktop private"
WAYLAND_LIMITATION = "a Wayland session, where neither other programs' windows nor input to them are open to a program"


def is_wayland(desktop: Desktop) -> bool:
    """Return True if the desktop is the user's Wayland session."""
    return bool(desktop.environment.get("WAYLAND_DISPLAY")) and not desktop.private


@dataclass(frozen=True, slots=True)
class WaylandClipboard:
    """Clipboard of a Wayland session. Written text stays available because wl-copy keeps offering it."""

    environment: Mapping[str, str]

    async def clipboard_text(self, selection: ClipboardSelection = "clipboard") -> str | None:
        """Return the text, or None without any."""
        offered = await self.clipboard_formats(selection)
        name = next((name for name in TEXT_TYPES if name in offered), None)
        if name is None:
            return None
        data = await self._run("wl-paste", "--no-newline", "--type", name, *_selection_flags(selection))
        return data.decode("utf-8", "replace")

    async def clipboard_formats(self, selection: ClipboardSelection = "clipboard") -> list[str]:
        """Return the available formats as media types; empty if the clipboard is empty."""
        told = await self._run("wl-paste", "--list-types", *_selection_flags(selection), empty=(1,))
        return told.decode("utf-8", "replace").split("\n")[:-1] if told else []

    async def write_clipboard(self, text: str, selection: ClipboardSelection = "clipboard") -> None:
        """Put a text into it."""
        await self._run(
            "wl-copy", "--type", "text/plain;charset=utf-8", *_selection_flags(selection), given=text.encode()
        )

    async def _run(self, *argv: str, given: bytes | None = None, empty: Sequence[int] = ()) -> bytes:
        """Return the program's output; empty for an exit code in `empty`. The program is ended if it takes too long."""
        # wl-copy stays in the background with the streams that it was given.
        reads = given is None
        try:
            process = await anyio.open_process(
                argv,
                stdin=DEVNULL if reads else PIPE,
                stdout=PIPE if reads else DEVNULL,
                stderr=DEVNULL,
                env=dict(self.environment),
                cwd=START_FOLDER,
            )
        except FileNotFoundError as exc:
            raise Downstream(f"{argv[0]} is not installed", hint=INSTALL_HINT) from exc
        try:
            with anyio.fail_after(OWNER_TIMEOUT_S):
                return await self._talk(process, given, empty)
        except TimeoutError as exc:
            raise Downstream("the program that owns the clipboard does not answer") from exc
        finally:
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                await process.aclose()

    async def _talk(self, process: anyio.abc.Process, given: bytes | None, empty: Sequence[int]) -> bytes:
        if given is not None:
            assert process.stdin is not None
            await process.stdin.send(given)
            await process.stdin.aclose()
        data = bytearray()
        if process.stdout is not None:
            async for piece in process.stdout:
                data += piece
                if len(data) > MAX_CLIPBOARD_BYTES:
                    raise Downstream(f"what is in the clipboard has more than {MAX_CLIPBOARD_BYTES} bytes")
        code = await process.wait()
        if code in empty:
            return b""
        if code:
            raise Downstream(
                f"the compositor does not give its clipboard to programs (exit code {code})", hint=X11_HINT
            )
        return bytes(data)

    async def close(self) -> None:
        """Do nothing; there is nothing to release."""


def _selection_flags(selection: ClipboardSelection) -> list[str]:
    return ["--primary"] if selection == "primary" else []


async def diagnose_session(session: Session) -> Sequence[Finding]:
    """Report what works in the selected Wayland session and what does not; nothing for other desktops."""
    desktop = await session.desktop()
    if not is_wayland(desktop):
        return ()
    environment = {**session.runtime.programs.environment, **desktop.environment}
    windows = Finding("Wayland: windows, pointer, keys, pictures", False, f"this is {WAYLAND_LIMITATION}", X11_HINT)
    return [windows, await _diagnose_clipboard(environment), await _diagnose_portals(environment)]


async def _diagnose_clipboard(environment: Mapping[str, str]) -> Finding:
    name = "Wayland: clipboard"
    absent = [program for program in ("wl-copy", "wl-paste") if which(program, path=environment.get("PATH")) is None]
    if absent:
        return Finding(name, False, f"{', '.join(absent)} is not installed", INSTALL_HINT)
    try:
        formats = await WaylandClipboard(environment).clipboard_formats()
    except Downstream as exc:
        return Finding(name, False, str(exc), exc.hint or "")
    return Finding(name, True, f"by wl-clipboard; it has {len(formats)} formats now")


async def _diagnose_portals(environment: Mapping[str, str]) -> Finding:
    """Report the portals offered by the desktop's session bus.

    None of them is used; the report shows the user what would be available.
    """
    name = "Wayland: portals"
    told = await _introspect_portals(environment)
    there = [portal for portal in PORTAL_NAMES if f'org.freedesktop.portal.{portal}"' in told]
    return Finding(name, True, f"{', '.join(there) or 'none'}; Handrail uses none of them")


async def _introspect_portals(environment: Mapping[str, str]) -> str:
    argv = ["dbus-send", "--session", "--print-reply", "--reply-timeout=2000", "--dest=org.freedesktop.portal.Desktop"]
    call = ["/org/freedesktop/portal/desktop", "org.freedesktop.DBus.Introspectable.Introspect"]
    try:
        done = await anyio.run_process(
            [*argv, *call], env=dict(environment), cwd=START_FOLDER, check=False, stderr=DEVNULL
        )
    except FileNotFoundError:
        return ""
    return done.stdout.decode("utf-8", "replace")
