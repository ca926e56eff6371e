"""The environment that commands run in: the host's without credentials, the desktop's, and what earlier commands exported."""

from __future__ import annotations

import re
from collections.abc import Mapping

from handrail import Desktop

# Whole words of a name, between underscores. PWD and SSH_AUTH_SOCK are none of them.
CREDENTIAL_WORDS = frozenset((
    "TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "PASSWD", "PASSPHRASE", "PASS", "PASSWORDS", "KEY", "KEYS",
    "APIKEY", "CREDENTIAL", "CREDENTIALS", "CREDS", "CRED", "BEARER", "COOKIE", "PAT", "DSN", "PGPASSWORD",
    "AUTHTOKEN",
))  # fmt: skip
CREDENTIAL_VALUE = re.compile(
    r"""(?x)
      -----BEGIN\ [A-Z ]*PRIVATE\ KEY
    | [a-z][a-z0-9+.-]*://[^/\s:@]*:[^/\s@]+@                   # an address with a password in it
    | (?:^|[^A-Za-z0-9])(?:
          sk-[A-Za-z0-9_-]{16,} | sk_live_[A-Za-z0-9]{16,}
        | gh[pousr]_[A-Za-z0-9]{20,} | github_pat_[A-Za-z0-9_]{20,} | glpat-[A-Za-z0-9_-]{16,}
        | xox[abeprs]-[A-Za-z0-9-]{10,} | hf_[A-Za-z0-9]{20,} | npm_[A-Za-z0-9]{20,} | pypi-[A-Za-z0-9_-]{20,}
        | (?:AKIA|ASIA)[A-Z0-9]{16} | AIza[A-Za-z0-9_-]{30,} | ya29\.[A-Za-z0-9_-]{20,}
        | eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.
      )""",
    re.IGNORECASE,
)

# What leads a program to a screen. A private desktop replaces all of it, so that nothing shows up on a person's own.
SCREEN_VARIABLES = frozenset((
    "DISPLAY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "AT_SPI_BUS_ADDRESS",
    "SESSION_MANAGER", "XDG_SESSION_ID", "XDG_SESSION_TYPE", "DESKTOP_STARTUP_ID", "XDG_ACTIVATION_TOKEN",
    "GDK_BACKEND", "QT_QPA_PLATFORM", "SDL_VIDEODRIVER", "MOZ_ENABLE_WAYLAND", "WINDOWID",
))  # fmt: skip


def is_credential(name: str, value: str) -> bool:
    """Whether a variable holds a credential, by the words of its name or by the look of its value."""
    if not CREDENTIAL_WORDS.isdisjoint(name.upper().split("_")):
        return True
    return len(value) >= 12 and CREDENTIAL_VALUE.search(value) is not None


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
