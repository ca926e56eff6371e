"""Graphics processors: from the maker's own program where there is one, else from what the kernel lists."""

from __future__ import annotations

import csv
import os
import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from handrail.workers.host_programs import START_FOLDER

if TYPE_CHECKING:
    from handrail.workers.host_programs import HostPrograms

NVIDIA_PROGRAM = "nvidia-smi"
NVIDIA_QUERY = ("--query-gpu=name,memory.total,memory.used,driver_version", "--format=csv,noheader,nounits")
PROGRAM_TIMEOUT_S = 3.0
MIB = 1_048_576

# From https://pci-ids.ucw.cz, those that make graphics processors or stand in for them.
VENDOR_NAMES: Mapping[str, str] = {
    "0x1002": "AMD",
    "0x10de": "NVIDIA",
    "0x1234": "QEMU",
    "0x1414": "Microsoft Hyper-V",
    "0x15ad": "VMware",
    "0x1a03": "ASPEED",
    "0x1af4": "virtio",
    "0x1b36": "QXL",
    "0x8086": "Intel",
    "0x80ee": "VirtualBox",
}


async def list_graphics(
    programs: HostPrograms, *, root: Path = Path("/"), seconds: float = PROGRAM_TIMEOUT_S
) -> list[dict[str, Any]]:
    """Return the graphics processors: name, and memory_bytes, memory_used_bytes and driver if they are known.

    `seconds` limits the time of the vendor's program.
    """
    found = await _query_nvidia(programs, seconds)
    # What the maker's program tells says more than the kernel's list.
    others = [gpu for gpu in list_kernel_gpus(root) if not (found and gpu["name"].startswith("NVIDIA"))]
    return [*found, *others]


async def _query_nvidia(programs: HostPrograms, seconds: float) -> list[dict[str, Any]]:
    program = programs.find(NVIDIA_PROGRAM)
    if program is None:
        return []
    with suppress(OSError, TimeoutError):
        with anyio.fail_after(seconds):
            done = await anyio.run_process(
                [program, *NVIDIA_QUERY],
                stdin=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=programs.environment,
                cwd=START_FOLDER,
                check=False,
            )
        return list(parse_nvidia_output(done.stdout.decode("utf-8", "replace"))) if done.returncode == 0 else []
    return []


def parse_nvidia_output(text: str) -> Iterator[dict[str, Any]]:
    """Parse the output of nvidia-smi; its columns are name, total MiB, used MiB and driver."""
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) != 4:
            continue
        name, total, used, driver = row
        gpu = {"name": name if name.startswith("NVIDIA") else f"NVIDIA {name}", "driver": driver}
        # "[N/A]" stands for what the card does not tell.
        gpu |= {
            key: int(told) * MIB
            for key, told in (("memory_bytes", total), ("memory_used_bytes", used))
            if told.isdigit()
        }
        yield gpu


def list_kernel_gpus(root: Path) -> Iterator[dict[str, Any]]:
    """Yield the graphics processors for which the kernel has a driver."""
    cards = sorted((root / "sys/class/drm").glob("card*"))
    for card in cards:
        # Their outputs are listed beside them, as card0-HDMI-A-1.
        if not re.fullmatch(r"card\d+", card.name):
            continue
        vendor, device = _read_text(card / "device/vendor"), _read_text(card / "device/device")
        driver = _read_driver(card)
        if vendor is None and driver is None:
            continue
        maker = VENDOR_NAMES.get(vendor or "", vendor or "")
        gpu: dict[str, Any] = {"name": " ".join(word for word in (maker, device) if word) or driver}
        if driver is not None:
            gpu["driver"] = driver
        for key, file in (("memory_bytes", "mem_info_vram_total"), ("memory_used_bytes", "mem_info_vram_used")):
            if (told := _read_text(card / "device" / file)) is not None and told.isdigit():
                gpu[key] = int(told)
        yield gpu


def _read_driver(card: Path) -> str | None:
    try:
        return Path(os.readlink(card / "device/driver")).name
    except OSError:
        return None


def _read_text(file: Path) -> str | None:
    try:
        return file.read_text().strip() or None
    except OSError:
        return None
