"""What leads programs to a desktop, in the environment that commands run in."""

from __future__ import annotations

from handrail import Desktop

# What leads a program to a screen. A private desktop replaces all of it, so that nothing shows up on a person's own.
SCREEN_VARIABLES = frozenset((
    "DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "AT_SPI_BUS_ADDRESS",
    "SESSION_MANAGER", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "DESKTOP_STARTUP_ID", "XDG_ACTIVATION_TOKEN",
    "GDK_BACKEND", "QT_QPA_PLATFORM", "SDL_VIDEODRIVER", "MOZ_ENABLE_WAYLAND", "WINDOWID",
))  # fmt: skip


def on_desktop(environment: dict[str, str], desktop: Desktop | None) -> dict[str, str]:
    """The environment with what leads programs to `desktop`; None means that there is none to be shown on."""
    if desktop is None or desktop.private:
        for name in SCREEN_VARIABLES & environment.keys():
            del environment[name]
    if desktop is not None:
        environment.update(desktop.environment)
    return environment
