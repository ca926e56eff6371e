"""The environment that commands run in: the host's without credentials, the desktop's, and what earlier commands exported."""

from __future__ import annotations

from collections.abc import Mapping

from handrail import Desktop
from handrail.redaction import is_credential

# What leads a program to a screen. A private desktop replaces all of it, so that nothing shows up on a person's own.
SCREEN_VARIABLES = frozenset((
    "DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "AT_SPI_BUS_ADDRESS",
    "SESSION_MANAGER", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "DESKTOP_STARTUP_ID", "XDG_ACTIVATION_TOKEN",
    "GDK_BACKEND", "QT_QPA_PLATFORM", "SDL_VIDEODRIVER", "MOZ_ENABLE_WAYLAND", "WINDOWID",
))  # fmt: skip


def without_credentials(environment: Mapping[str, str]) -> dict[str, str]:
    """The host's environment as commands may see it."""
    kept = {name: value for name, value in environment.items() if not is_credential(name, value)}
    if folders := kept.get("LD_LIBRARY_PATH"):
        # An empty item means the working directory, where anybody may have put a library.
        kept["LD_LIBRARY_PATH"] = ":".join(filter(None, folders.split(":")))
    return kept


def on_desktop(environment: dict[str, str], desktop: Desktop | None) -> dict[str, str]:
    """The environment with what leads programs to `desktop`; None means that there is none to be shown on."""
    if desktop is None or desktop.private:
        for name in SCREEN_VARIABLES & environment.keys():
            del environment[name]
    if desktop is not None:
        environment.update(desktop.environment)
    return environment
