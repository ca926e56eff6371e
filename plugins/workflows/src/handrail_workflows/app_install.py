"""The tool `install_app`."""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field

from handrail import Downstream, Run, ToolContext, ToolUnavailable, tool
from handrail_workflows.steps import WorkflowSteps

INSTALL_TIMEOUT_S = 900.0
InstallMethod = Literal["apt", "dnf", "pacman", "zypper", "brew", "winget", "flatpak", "snap"]


@dataclass(frozen=True, slots=True)
class PackageManager:
    """Package manager: its program, and its command lines to install a package and to check for one.

    `root`: installing needs root privileges.
    """

    program: str
    install: str
    check: str
    root: bool = True


PACKAGE_MANAGERS: Mapping[InstallMethod, PackageManager] = {
    "apt": PackageManager("apt-get", "apt-get install -y {}", "dpkg-query -W {}"),
    "dnf": PackageManager("dnf", "dnf install -y {}", "rpm -q {}"),
    "pacman": PackageManager("pacman", "pacman -S --noconfirm {}", "pacman -Q {}"),
    "zypper": PackageManager("zypper", "zypper --non-interactive install {}", "rpm -q {}"),
    "brew": PackageManager("brew", "brew install {}", "brew list {}", root=False),
    "winget": PackageManager("winget", "winget install --exact --silent {}", "winget list --exact {}", root=False),
    "flatpak": PackageManager("flatpak", "flatpak install -y --noninteractive {}", "flatpak info {}", root=False),
    "snap": PackageManager("snap", "snap install {}", "snap list {}"),
}


@tool(
    layer="workflow",
    title="Install a program",
    effects=[Run("steps")],
    timeout=INSTALL_TIMEOUT_S + 60,
    loadable=True,
    describe=lambda given: f"Install {given.app_name}",
)
async def install_app(
    app_name: Annotated[
        str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9.+_@/-]*$", description="The package's name, as its manager has it.")
    ],
    method: Annotated[InstallMethod | None, Field(description="Default: the first package manager there is.")] = None,
    preview: Annotated[bool, Field(description="Only say which command it would be.")] = False,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Install a program by the system's package manager. Returns command, method, installed and steps_taken; the command is judged as any other."""
    path = {**context.host_environment, **context.environment}.get("PATH")
    chosen: InstallMethod | None = method or next(
        (m for m, i in PACKAGE_MANAGERS.items() if shutil.which(i.program, path=path)), None
    )
    if chosen is None or not shutil.which(PACKAGE_MANAGERS[chosen].program, path=path):
        raise ToolUnavailable(f"{PACKAGE_MANAGERS[chosen].program if chosen else 'a package manager'} is not on PATH")
    installer = PACKAGE_MANAGERS[chosen]
    name = shlex.quote(app_name)
    command = installer.install.format(name)
    if installer.root and hasattr(os, "geteuid") and os.geteuid() != 0:
        command = f"sudo -n {command}"
    if preview:
        return {"command": command, "method": chosen, "installed": False, "steps_taken": []}
    steps = WorkflowSteps(context)
    with steps.told():
        await steps.take("execute_cli", command=command, timeout=INSTALL_TIMEOUT_S)
        if not (await steps.attempt("execute_cli", command=installer.check.format(name))).ok:
            raise Downstream(f"{command!r} ended well, but {app_name!r} is not installed")
    return {
        "command": command,
        "method": chosen,
        "installed": True,
        "effect": "confirmed",
        "steps_taken": steps.taken,
    }
