"""The tool `system_info`."""

from __future__ import annotations

import os
import platform
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread

from handrail import HandrailError, Read, Screen, ToolContext, tool
from handrail_system.cgroup_limits import ResourceLimits, read_limits
from handrail_system.graphics import list_graphics
from handrail_system.namespaces import is_isolated

# A private desktop may have to be started to be looked at.
DISPLAY_DEADLINE_S = 20.0
CPU_INTERVAL_S = 0.2


@tool(layer="system", title="Look at this machine", effects=[Read("system"), Read("monitors")], timeout=30)
async def system_info(*, context: ToolContext) -> Mapping[str, Any]:
    """What this machine is and has: os, cpu, memory, disk, displays, and gpu where there is one.

    Sizes are bytes; `limit_bytes` and `usable`: what may be used.
    """
    home = context.host_environment.get("HOME")
    places = [str(context.cwd), *map(str, context.workspace), *([home] if home else []), tempfile.gettempdir()]
    machine = await anyio.to_thread.run_sync(_describe_machine, places, abandon_on_cancel=True)
    displays, why_none = await _list_displays(context)
    result: dict[str, Any] = {**machine, "displays": displays}
    if gpus := await list_graphics(context.programs):
        result["gpu"] = gpus
    return {**result, "note": why_none} if why_none else result


async def _list_displays(context: ToolContext) -> tuple[list[dict[str, Any]], str | None]:
    """Return the monitors of the session's desktop, the primary one first, and the reason if there are none."""
    try:
        with anyio.fail_after(DISPLAY_DEADLINE_S):
            screen: Screen = await context.service("screen")
            monitors = await screen.monitors()
    except HandrailError as exc:
        return [], f"no displays: {exc}"
    except TimeoutError:
        return [], f"no displays: the desktop did not answer within {DISPLAY_DEADLINE_S:g} s"
    shown = [
        {"x": each.x, "y": each.y, "width": each.width, "height": each.height, "main": index == 0}
        for index, each in enumerate(monitors)
    ]
    return shown, None


def _describe_machine(places: Iterable[str]) -> dict[str, Any]:
    held = read_limits()
    return {
        "os": describe_system(),
        "cpu": describe_processors(held),
        "memory": describe_memory(held),
        "disk": describe_disks(places),
    }


def describe_system(root: Path = Path("/")) -> dict[str, Any]:
    """Describe the system: name, kernel, architecture, hostname, uptime_seconds, and container if inside one."""
    import psutil

    told = platform.uname()
    found: dict[str, Any] = {
        "name": _read_system_name(root) or f"{told.system} {told.release}",
        "kernel": f"{told.system} {told.release}",
        "architecture": told.machine,
        "hostname": told.node,
        "uptime_seconds": round(time.time() - psutil.boot_time()),
    }
    if (kind := detect_container(root)) is not None:
        found["container"] = kind
    return found


def _read_system_name(root: Path) -> str | None:
    if sys.platform == "darwin":
        return f"macOS {platform.mac_ver()[0]}"
    if sys.platform == "win32":
        return f"Windows {platform.release()} ({platform.version()})"
    for file in ("etc/os-release", "usr/lib/os-release"):
        with suppress(OSError):
            lines = (root / file).read_text(errors="replace").splitlines()
            told = dict(line.split("=", 1) for line in lines if "=" in line)
            if name := told.get("PRETTY_NAME", "").strip("\"'"):
                return name
    return None


def detect_container(root: Path = Path("/")) -> str | None:
    """Return the container type (docker, podman, lxc, systemd-nspawn, wsl …); None if none is detected."""
    with suppress(OSError):
        if named := (root / "run/systemd/container").read_text().strip():
            return named
    if (root / "run/.containerenv").exists():
        return "podman"
    # A machine that was made from a container's image has the file, too.
    if (root / ".dockerenv").exists() and is_isolated(root):
        return "docker"
    with suppress(OSError):
        groups = (root / "proc/1/cgroup").read_text()
        if kind := next((kind for kind in ("kubepods", "docker", "libpod", "lxc") if f"/{kind}" in groups), None):
            return {"kubepods": "kubernetes", "libpod": "podman"}.get(kind, kind)
    with suppress(OSError):
        if "microsoft" in (root / "proc/sys/kernel/osrelease").read_text().lower():
            return "wsl"
    return None


def describe_processors(held: ResourceLimits) -> dict[str, Any]:
    """Describe the processors.

    Keys: model, logical and physical count, usable (by this process), percent in use, and load over the last minute.
    """
    import psutil

    logical = psutil.cpu_count() or 1
    allowed = len(os.sched_getaffinity(0)) if sys.platform == "linux" else logical
    usable = float(allowed) if held.cpus is None else min(held.cpus, float(allowed))
    found: dict[str, Any] = {
        "model": _read_processor_model(),
        "logical": logical,
        "physical": psutil.cpu_count(logical=False),
        "usable": round(usable, 2),
        "percent": psutil.cpu_percent(interval=CPU_INTERVAL_S),
        "load": round(psutil.getloadavg()[0], 2),
    }
    return {key: value for key, value in found.items() if value is not None}


def _read_processor_model(root: Path = Path("/")) -> str | None:
    with suppress(OSError):
        for line in (root / "proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() in ("model name", "Model", "Hardware") and value.strip():
                return value.strip()
    return platform.processor() or None


def describe_memory(held: ResourceLimits) -> dict[str, int]:
    """Memory in bytes: of the machine, available without swapping, swap; limit_bytes and what is available below it where one holds."""
    import psutil

    main, swap = psutil.virtual_memory(), psutil.swap_memory()
    found = {"total_bytes": main.total, "available_bytes": main.available}
    if held.memory is not None and held.memory < main.total:
        left = max(held.memory - (held.memory_used or 0), 0)
        found |= {"limit_bytes": held.memory, "available_bytes": min(left, main.available)}
    return {**found, "swap_bytes": swap.total, "swap_free_bytes": swap.free}


def describe_disks(places: Iterable[str]) -> list[dict[str, Any]]:
    """Describe the disks that hold these folders, each once: path, total_bytes, and free_bytes (free for this user)."""
    import psutil

    found: dict[int, dict[str, Any]] = {}
    for place in places:
        with suppress(OSError):
            device = os.stat(place).st_dev
            if device not in found:
                used = psutil.disk_usage(place)
                found[device] = {"path": place, "total_bytes": used.total, "free_bytes": used.free}
    return list(found.values())
