"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

    from handrail import Finding, Service, ServiceContext, Session, Tool
    from handrail.desktop.thread_worker import ThreadWorker
    from handrail_gui.act.focus_restore import FocusRestorer
    from handrail_gui.act.held_buttons import HeldButtons
    from handrail_gui.act.keyboard_target import KeyboardTargetTracker
    from handrail_gui.platforms.config import GuiConfig
    from handrail_gui.platforms.driver_clipboard import DriverClipboard
    from handrail_gui.platforms.native.input_driver import NativeInputDriver
    from handrail_gui.platforms.native.screen import NativeScreen
    from handrail_gui.platforms.protocol import NativeSystem
    from handrail_gui.platforms.wayland import WaylandClipboard
    from handrail_gui.platforms.x11.connection import X11Connection
    from handrail_gui.platforms.x11.device import DesktopDevice
    from handrail_gui.platforms.x11.input_driver import X11InputDriver
    from handrail_gui.platforms.x11.screen import X11Screen
    from handrail_gui.private.service import LocalDesktops


# Where a desktop is worked by the platform's own calls, and not by an X server's protocol.
NATIVE_PLATFORMS = frozenset(("win32", "darwin"))


def _explain_unavailability() -> str | None:
    if sys.platform == "linux":
        from handrail_gui.platforms.x11.client_check import find_overwritten_client

        return find_overwritten_client()
    return (
        None
        if sys.platform in NATIVE_PLATFORMS
        else f"desktops are worked on Linux with X11, Windows and macOS, and this is {sys.platform}"
    )


def _explain_missing_x11() -> str | None:
    return (
        _explain_unavailability()
        if sys.platform == "linux"
        else f"this is done on Linux with X11 only, and this is {sys.platform}"
    )


def _explain_not_native() -> str | None:
    return (
        None
        if sys.platform in NATIVE_PLATFORMS
        else f"this is done on Windows and macOS only, and this is {sys.platform}"
    )


def _explain_missing_desktops() -> str | None:
    if sys.platform in NATIVE_PLATFORMS:
        return None
    from handrail_gui.private.supervisor_client import describe_missing_programs

    return _explain_unavailability() or describe_missing_programs()


async def open_desktops(context: ServiceContext) -> LocalDesktops:
    """Open the desktops of this machine."""
    from handrail_gui.private.service import open_desktops

    return await open_desktops(context)


async def open_x11(context: ServiceContext) -> X11Connection:
    """Open the X connection of one desktop, shared by everything that operates it."""
    from handrail import DesktopError
    from handrail_gui.platforms.wayland import WAYLAND_LIMITATION, X11_HINT, is_wayland
    from handrail_gui.platforms.x11.connection import X11Connection

    if is_wayland(context.desktop):
        raise DesktopError(f"this is {WAYLAND_LIMITATION}", hint=X11_HINT)
    if context.desktop.display is None:
        raise DesktopError(
            f"the desktop {context.desktop.name!r} has no screen (DISPLAY is not set)",
            hint='use a private one: --desktop private, or desktop = "private" in the configuration',
        )
    return await X11Connection.open(context.desktop.display)


async def open_system(context: ServiceContext) -> ThreadWorker[NativeSystem]:
    """Start the thread that operates the user's own desktop through the platform's API."""
    from handrail_gui.platforms.native.platform_factory import open_system

    return await open_system(context)


async def open_screen(context: ServiceContext) -> X11Screen | NativeScreen:
    """Open the screen of one desktop: pictures, monitors and windows."""
    if sys.platform in NATIVE_PLATFORMS:
        from handrail_gui.platforms.native.screen import open_screen as natively

        return await natively(context)
    from handrail_gui.platforms.x11.screen import open_screen

    return await open_screen(context)


async def open_input_driver(context: ServiceContext) -> X11InputDriver | NativeInputDriver:
    """Pointer, keyboard, windows and clipboard of one desktop."""
    if sys.platform in NATIVE_PLATFORMS:
        from handrail_gui.platforms.native.input_driver import open_input_driver as natively

        return await natively(context)
    from handrail_gui.platforms.x11.input_driver import open_input_driver

    return await open_input_driver(context)


async def open_device(context: ServiceContext) -> DesktopDevice:
    """Open the device of one desktop: its lock, and keeping it awake."""
    from handrail_gui.platforms.x11.device import open_device

    return await open_device(context)


async def open_clipboard(context: ServiceContext) -> DriverClipboard | WaylandClipboard:
    """Open the clipboard of one desktop: Wayland's, or the one held by its input driver."""
    if sys.platform not in NATIVE_PLATFORMS:
        from handrail_gui.platforms.wayland import WaylandClipboard, is_wayland

        if is_wayland(context.desktop):
            return WaylandClipboard({**context.environment, **context.desktop.environment})
    from handrail_gui.platforms.driver_clipboard import DriverClipboard

    return DriverClipboard(await context.service("hands"))


async def diagnose_desktop(session: Session) -> Sequence[Finding]:
    """Report what a Wayland session or macOS permits a program to do."""
    if sys.platform == "darwin":
        from handrail_gui.platforms.macos.frameworks import load_frameworks
        from handrail_gui.platforms.macos.permissions import list_permission_findings

        return list_permission_findings(load_frameworks())
    if sys.platform in NATIVE_PLATFORMS:
        return ()
    from handrail_gui.platforms.wayland import diagnose_session

    return await diagnose_session(session)


async def open_held_buttons(context: ServiceContext) -> HeldButtons:
    """Open the service for the mouse buttons one session holds down."""
    from handrail_gui.act.held_buttons import open_held_buttons

    return await open_held_buttons(context)


async def open_focus_restorer(context: ServiceContext) -> FocusRestorer:
    """Open the service that borrows and restores the user's focus and pointer for one session."""
    from handrail_gui.act.focus_restore import open_focus_restorer

    return await open_focus_restorer(context)


async def open_keyboard_target(context: ServiceContext) -> KeyboardTargetTracker:
    """Open the keyboard-target service: the terminals of the desktop as one session knows them."""
    from handrail_gui.act.keyboard_target import open_keyboard_target

    return await open_keyboard_target(context)


@hookimpl
def handrail_register_tools() -> list[Tool]:
    """Return the tools that observe and act, and those for windows and clipboard."""
    from handrail_gui.tools import control_tools, screen_tools, window_tools

    return [
        screen_tools.observe_screen,
        screen_tools.execute_gui,
        screen_tools.maximize_active_window,
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
    """Return the desktop services and the services that operate each desktop."""
    from handrail import Service

    return [
        Service("desktops", open_desktops, "process", _explain_missing_desktops),
        Service("x11", open_x11, "desktop", _explain_missing_x11),
        Service("system", open_system, "desktop", _explain_not_native),
        Service("screen", open_screen, "desktop", _explain_unavailability),
        Service("hands", open_input_driver, "desktop", _explain_unavailability),
        Service("clipboard", open_clipboard, "desktop", _explain_unavailability, diagnose_desktop),
        Service("device", open_device, "desktop", _explain_missing_x11),
        Service("held_input", open_held_buttons, "session", _explain_unavailability),
        Service("lent", open_focus_restorer, "session", _explain_unavailability),
        Service("focus", open_keyboard_target, "session", _explain_unavailability),
    ]


@hookimpl
def handrail_register_config() -> type[GuiConfig]:
    """Return the schema of `[plugins.gui]`."""
    from handrail_gui.platforms.config import GuiConfig

    return GuiConfig


@hookimpl
def handrail_register_commands() -> list[click.Command]:
    """Return the commands `handrail desktop` and `handrail control`."""
    from handrail_gui.commands.control_command import control_desktop
    from handrail_gui.commands.desktop_command import desktop_group

    return [desktop_group, control_desktop]
