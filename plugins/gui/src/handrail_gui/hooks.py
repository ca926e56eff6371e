"""What this plugin registers. Light: it is imported at every start."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from handrail import Finding, Service, ServiceContext, Session, Tool
    from handrail.desktops.worker import Worker
    from handrail_gui.clipboards import HandsClipboard
    from handrail_gui.config import GuiConfig
    from handrail_gui.device import Device
    from handrail_gui.focusing import Focusing
    from handrail_gui.held import HeldInput
    from handrail_gui.lending import Lent
    from handrail_gui.native.hands import NativeHands
    from handrail_gui.native.screen import NativeScreen
    from handrail_gui.native.system import System
    from handrail_gui.private.service import LocalDesktops
    from handrail_gui.wayland import WaylandClipboard
    from handrail_gui.x11.connection import Connection
    from handrail_gui.x11.hands import X11Hands
    from handrail_gui.x11.screen import X11Screen


# Where a desktop is worked by the platform's own calls, and not by an X server's protocol.
NATIVE = frozenset(("win32", "darwin"))


def _not_here() -> str | None:
    if sys.platform == "linux":
        from handrail_gui.x11.client_check import overwritten_client

        return overwritten_client()
    return (
        None
        if sys.platform in NATIVE
        else f"desktops are worked on Linux with X11, Windows and macOS, and this is {sys.platform}"
    )


def _not_x11() -> str | None:
    return (
        _not_here() if sys.platform == "linux" else f"this is done on Linux with X11 only, and this is {sys.platform}"
    )


def _not_native() -> str | None:
    return None if sys.platform in NATIVE else f"this is done on Windows and macOS only, and this is {sys.platform}"


def _no_desktop() -> str | None:
    if sys.platform in NATIVE:
        return None
    from handrail_gui.private.client import missing

    return _not_here() or missing()


async def open_desktops(context: ServiceContext) -> LocalDesktops:
    """The desktops of this machine."""
    from handrail_gui.private.service import open_desktops

    return await open_desktops(context)


async def open_x11(context: ServiceContext) -> Connection:
    """The X connection of one desktop, shared by everything that works it."""
    from handrail import DesktopError
    from handrail_gui.wayland import CLOSED, CURE, is_wayland
    from handrail_gui.x11.connection import Connection

    if is_wayland(context.desktop):
        raise DesktopError(f"this is {CLOSED}", hint=CURE)
    if context.desktop.display is None:
        raise DesktopError(
            f"the desktop {context.desktop.name!r} has no screen (DISPLAY is not set)",
            hint='use a private one: --desktop private, or desktop = "private" in the configuration',
        )
    return await Connection.open(context.desktop.display)


async def open_system(context: ServiceContext) -> Worker[System]:
    """The thread that works the person's own desktop by the platform's calls."""
    from handrail_gui.native.opening import open_system

    return await open_system(context)


async def open_screen(context: ServiceContext) -> X11Screen | NativeScreen:
    """Pictures, monitors and windows of one desktop."""
    if sys.platform in NATIVE:
        from handrail_gui.native.screen import open_screen as natively

        return await natively(context)
    from handrail_gui.x11.screen import open_screen

    return await open_screen(context)


async def open_hands(context: ServiceContext) -> X11Hands | NativeHands:
    """Pointer, keyboard, windows and clipboard of one desktop."""
    if sys.platform in NATIVE:
        from handrail_gui.native.hands import open_hands as natively

        return await natively(context)
    from handrail_gui.x11.hands import open_hands

    return await open_hands(context)


async def open_device(context: ServiceContext) -> Device:
    """The lock of one desktop, and keeping it awake."""
    from handrail_gui.device import open_device

    return await open_device(context)


async def open_clipboard(context: ServiceContext) -> HandsClipboard | WaylandClipboard:
    """The clipboard of one desktop: Wayland's, or the one that its hands hold."""
    if sys.platform not in NATIVE:
        from handrail_gui.wayland import WaylandClipboard, is_wayland

        if is_wayland(context.desktop):
            return WaylandClipboard({**context.environment, **context.desktop.environment})
    from handrail_gui.clipboards import HandsClipboard

    return HandsClipboard(await context.service("hands"))


async def examine_desktop(session: Session) -> Sequence[Finding]:
    """What a Wayland session or macOS lets a program do."""
    if sys.platform == "darwin":
        from handrail_gui.macos.frameworks import frameworks
        from handrail_gui.macos.permissions import findings

        return findings(frameworks())
    if sys.platform in NATIVE:
        return ()
    from handrail_gui.wayland import examine

    return await examine(session)


async def open_held(context: ServiceContext) -> HeldInput:
    """The mouse buttons that one session holds down."""
    from handrail_gui.held import open_held

    return await open_held(context)


async def open_lent(context: ServiceContext) -> Lent:
    """The focus and the pointer that one session has of a person's desktop."""
    from handrail_gui.lending import open_lent

    return await open_lent(context)


async def open_focusing(context: ServiceContext) -> Focusing:
    """The terminals of the desktop as one session knows them."""
    from handrail_gui.focusing import open_focusing

    return await open_focusing(context)


@hookimpl
def handrail_register_tools() -> list[Tool]:
    """The tools that see and act, and those for windows and clipboard."""
    from handrail_gui import control_tools, tools, window_tools

    return [
        tools.observe_screen,
        tools.execute_gui,
        tools.maximize_active_window,
        window_tools.window_list,
        window_tools.window_focus,
        window_tools.window_close,
        window_tools.resize_window,
        window_tools.clipboard_read,
        window_tools.clipboard_write,
        control_tools.device_control,
        control_tools.manual_control,
    ]


@hookimpl
def handrail_register_services() -> list[Service]:
    """Desktops, and what is done on each."""
    from handrail import Service

    return [
        Service("desktops", open_desktops, "process", _no_desktop),
        Service("x11", open_x11, "desktop", _not_x11),
        Service("system", open_system, "desktop", _not_native),
        Service("screen", open_screen, "desktop", _not_here),
        Service("hands", open_hands, "desktop", _not_here),
        Service("clipboard", open_clipboard, "desktop", _not_here, examine_desktop),
        Service("device", open_device, "desktop", _not_x11),
        Service("held_input", open_held, "session", _not_here),
        Service("lent", open_lent, "session", _not_here),
        Service("focus", open_focusing, "session", _not_here),
    ]


@hookimpl
def handrail_register_config() -> type[GuiConfig]:
    """`[plugins.gui]`."""
    from handrail_gui.config import GuiConfig

    return GuiConfig


@hookimpl
def handrail_register_commands() -> list[click.Command]:
    """`handrail desktop` and `handrail control`."""
    from handrail_gui.commands import desktop
    from handrail_gui.control_command import control

    return [desktop, control]
