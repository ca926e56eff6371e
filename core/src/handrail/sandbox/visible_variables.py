"""Environment variables that commands see if the user has not approved them.

They apply in the sandbox, and to a line of builtins on the host.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from handrail.redaction import is_credential

__all__ = ["select_visible_variables"]

# Variables of the host that programs need and that keep no secret. What a session has set itself is given beside them.
NEEDED_VARIABLES = re.compile(
    r"""(?x)
      PATH | HOME | USER | LOGNAME | SHELL | LANG | LANGUAGE | LC_[A-Z]+ | TERM | COLORTERM | TZ | COLUMNS | LINES | NO_COLOR | FORCE_COLOR | CI
    | VIRTUAL_ENV | CONDA_[A-Z_]+ | PYTHON[A-Z]+ | PIP_[A-Z_]+ | UV_[A-Z_]+ | NODE_[A-Z_]+ | NVM_[A-Z]+ | npm_config_[a-z_]+ | JAVA_HOME
    | GO[A-Z]{2,12} | CARGO_[A-Z_]+ | RUSTUP_[A-Z_]+ | RUST[A-Z_]+ | PYENV_[A-Z_]+ | CC | CXX | LD | AR | [A-Z]*FLAGS | MAKE[A-Z_]* | CMAKE_[A-Z_]+
    | PKG_CONFIG_[A-Z]+ | LD_LIBRARY_PATH | LIBRARY_PATH | CPATH | C_INCLUDE_PATH | SOURCE_DATE_EPOCH | OMP_[A-Z_]+
    | GIT_(?:AUTHOR|COMMITTER)_(?:NAME|EMAIL|DATE) | DEBIAN_FRONTEND | PAGER | GIT_PAGER | LESS | HANDRAIL_MARK_PROCESS
    | TMPDIR | TEMP | TMP
    | SYSTEMROOT | SYSTEMDRIVE | WINDIR | COMSPEC | PATHEXT | USERNAME | USERPROFILE | HOMEDRIVE | HOMEPATH
    """
)
# What leads to the person's keys, screen and other programs, whoever has set it.
HIDDEN_VARIABLES = re.compile(
    r"""(?x)
      SSH_.* | GPG_.* | DBUS_.* | DISPLAY | WAYLAND_.* | XAUTHORITY | XDG_RUNTIME_DIR | XDG_SESSION_.* | AT_SPI_.* | SESSION_MANAGER | TMUX.*
    | STY | DOCKER_.* | KUBECONFIG | KUBERNETES_.* | AWS_.* | AZURE_.* | GOOGLE_APPLICATION_.* | VAULT_.* | BASH_ENV | ENV | LD_PRELOAD | LD_AUDIT
    | ICEAUTHORITY | PULSE_.* | INVOCATION_ID | NOTIFY_SOCKET | SUDO_.* | .*_SOCKET
    """
)


def select_visible_variables(environment: Mapping[str, str], host: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of `environment` that such a command sees: of the `host`'s what programs need, and what the session has set."""
    return {
        name: value
        for name, value in environment.items()
        if not HIDDEN_VARIABLES.fullmatch(name)
        and (NEEDED_VARIABLES.fullmatch(name) or host.get(name) != value)
        and not is_credential(name, value)
    }
