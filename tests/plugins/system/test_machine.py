"""What `system_info` tells of a machine: of this one, and of others by their files."""

from __future__ import annotations

import os
import platform
import stat
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import psutil
import pytest

import handrail_system.hooks
from handrail import Rect, Tool
from handrail.testing import FakeScreen, ToolContract, fake_service, open_test_session
from handrail.workers.host_programs import HostPrograms
from handrail_system.cgroup_limits import ResourceLimits, read_limits
from handrail_system.graphics import list_graphics, list_kernel_gpus, parse_nvidia_output
from handrail_system.machine_info import (
    describe_memory,
    describe_processors,
    describe_system,
    detect_container,
    system_info,
)

PLUGINS = {"system": handrail_system.hooks}


class TestSystemInfo(ToolContract):
    @pytest.fixture
    def tool(self) -> Tool:
        return system_info

    @pytest.fixture
    def good_args(self) -> Mapping[str, Any]:
        return {}


def placed(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


async def told(**given: Any) -> Mapping[str, Any]:
    async with open_test_session(plugins=PLUGINS, **given) as session:
        result = await session.call("system_info", {})
    assert result["status"] == "success", result
    return result


async def test_this_machine_is_told() -> None:
    found = await told()
    assert found["os"]["architecture"] == platform.machine()
    assert found["os"]["hostname"] == platform.node()
    assert 0 < found["cpu"]["usable"] <= found["cpu"]["logical"] == psutil.cpu_count()
    assert found["memory"]["total_bytes"] == psutil.virtual_memory().total
    assert 0 < found["memory"]["available_bytes"] <= found["memory"]["total_bytes"]
    assert all(0 <= disk["free_bytes"] <= disk["total_bytes"] for disk in found["disk"])


async def test_one_disk_is_told_once() -> None:
    found = await told()
    devices = [os.stat(disk["path"]).st_dev for disk in found["disk"] if Path(disk["path"]).exists()]
    assert len(devices) == len(set(devices))


async def test_displays_are_those_of_the_sessions_desktop() -> None:
    class Two(FakeScreen):
        async def monitors(self) -> list[Rect]:
            return [Rect(0, 0, 1280, 800), Rect(1280, 0, 1920, 1080)]

    found = await told(services=[fake_service("screen", Two(), scope="desktop")])
    assert found["displays"] == [
        {"x": 0, "y": 0, "width": 1280, "height": 800, "main": True},
        {"x": 1280, "y": 0, "width": 1920, "height": 1080, "main": False},
    ]
    assert "note" not in found


async def test_without_a_screen_all_else_is_told_and_why_there_is_none() -> None:
    found = await told(settings={"desktop": "current"})
    assert found["displays"] == []
    assert "no displays: " in found["note"]
    assert found["cpu"]


# Control groups

NEW = {"proc/self/mountinfo": "30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"}
OLD = {
    "proc/self/mountinfo": "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
    "39 31 0:36 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n",
    "proc/self/cgroup": "8:pids:/\n4:memory:/user/one\n2:cpu,cpuacct:/docker/1\n0::/\n",
}


def test_the_limits_of_a_container_hold() -> None:
    assert describe_processors(ResourceLimits(cpus=0.5))["usable"] == 0.5
    found = describe_memory(ResourceLimits(memory=512_000_000, memory_used=500_000_000))
    assert (found["limit_bytes"], found["available_bytes"]) == (512_000_000, 12_000_000)


def test_a_limit_above_the_machine_is_none() -> None:
    assert "limit_bytes" not in describe_memory(ResourceLimits(memory=psutil.virtual_memory().total * 2))


def test_limits_are_read_of_the_new_groups_and_the_tightest_above_counts(tmp_path: Path) -> None:
    groups = "sys/fs/cgroup/a.slice"
    root = placed(
        tmp_path,
        {
            **NEW,
            "proc/self/cgroup": "0::/a.slice/b.scope\n",
            f"{groups}/memory.max": "1000000",
            f"{groups}/memory.current": "900000",
            f"{groups}/memory.stat": "anon 1\ninactive_file 300000\n",
            f"{groups}/cpu.max": "max 100000",
            f"{groups}/b.scope/memory.max": "max",
            f"{groups}/b.scope/cpu.max": "150000 100000",
            f"{groups}/b.scope/pids.max": "64",
        },
    )
    assert read_limits(root) == ResourceLimits(memory=1_000_000, memory_used=600_000, cpus=1.5, processes=64)


def test_limits_are_read_of_the_old_groups(tmp_path: Path) -> None:
    groups = "sys/fs/cgroup"
    root = placed(
        tmp_path,
        {
            **OLD,
            f"{groups}/memory/memory.limit_in_bytes": "9223372036854771712",
            f"{groups}/memory/user/one/memory.limit_in_bytes": "2000000",
            f"{groups}/memory/user/one/memory.usage_in_bytes": "1500000",
            f"{groups}/memory/user/one/memory.stat": "total_inactive_file 500000\n",
            f"{groups}/cpu,cpuacct/docker/1/cpu.cfs_quota_us": "50000",
            f"{groups}/cpu,cpuacct/docker/1/cpu.cfs_period_us": "100000",
            f"{groups}/pids/pids.max": "max",
        },
    )
    assert read_limits(root) == ResourceLimits(memory=2_000_000, memory_used=1_000_000, cpus=0.5)


@pytest.mark.parametrize(
    ("root_group", "own"), [("/docker/1", "/docker/1"), ("/docker/1", "/"), ("/", "/../../other"), ("/", "/not/here")]
)
def test_a_container_that_sees_its_own_group_as_the_root_finds_its_limits(
    tmp_path: Path, root_group: str, own: str
) -> None:
    root = placed(
        tmp_path,
        {
            "proc/self/mountinfo": f"30 23 0:26 {root_group} /sys/fs/cgroup ro - cgroup2 cgroup rw\n",
            "proc/self/cgroup": f"0::{own}\n",
            "sys/fs/cgroup/memory.max": "4096",
        },
    )
    assert read_limits(root).memory == 4096


def test_where_there_are_no_groups_there_are_no_limits(tmp_path: Path) -> None:
    assert read_limits(tmp_path) == ResourceLimits()


@pytest.mark.parametrize("text", ["", "max", "-1", "0", "many", "9223372036854771712"])
def test_a_limit_that_is_none_is_none(tmp_path: Path, text: str) -> None:
    root = placed(tmp_path, {**NEW, "proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": text})
    assert read_limits(root).memory is None


# The system and containers


def test_the_system_has_the_name_that_it_gives_itself(tmp_path: Path) -> None:
    root = placed(tmp_path, {"etc/os-release": 'NAME="Plan"\nPRETTY_NAME="Plan 9 (fourth)"\n\nbroken\n'})
    assert describe_system(root)["name"] == "Plan 9 (fourth)"


@pytest.mark.parametrize(
    ("files", "kind"),
    [
        ({}, None),
        ({"run/systemd/container": "systemd-nspawn\n"}, "systemd-nspawn"),
        ({"run/.containerenv": ""}, "podman"),
        ({"proc/1/cgroup": "0::/kubepods/pod1/2\n"}, "kubernetes"),
        ({"proc/1/cgroup": "1:cpu:/docker/1\n"}, "docker"),
        ({"proc/sys/kernel/osrelease": "5.15.1-microsoft-standard-WSL2\n"}, "wsl"),
    ],
)
def test_containers_are_known_by_what_they_leave(tmp_path: Path, files: Mapping[str, str], kind: str | None) -> None:
    assert detect_container(placed(tmp_path, files)) == kind


@pytest.mark.parametrize(("namespace", "kind"), [("4026532301", "docker"), ("4026531836", None)])
def test_a_machine_made_from_a_containers_image_is_no_container(
    tmp_path: Path, namespace: str, kind: str | None
) -> None:
    root = placed(tmp_path, {".dockerenv": "", "proc/self/ns/x": ""})
    (root / "proc/self/ns/pid").symlink_to(f"pid:[{namespace}]")
    assert detect_container(root) == kind


# Graphics

SMI = "NVIDIA GeForce RTX 4090, 24564, 1024, 550.54.14\nTesla T4, [N/A], [N/A], 550.54.14\n"


def test_what_nvidias_program_prints_is_read() -> None:
    assert list(parse_nvidia_output(SMI)) == [
        {
            "name": "NVIDIA GeForce RTX 4090",
            "driver": "550.54.14",
            "memory_bytes": 24564 * 1_048_576,
            "memory_used_bytes": 1024 * 1_048_576,
        },
        {"name": "NVIDIA Tesla T4", "driver": "550.54.14"},
    ]


@pytest.mark.parametrize(
    ("body", "count"), [(f"echo '{SMI}'", 2), ("exit 9", 0), ("echo broken", 0), ("exec sleep 60", 0)]
)
async def test_nvidias_program_is_asked_and_one_that_hangs_is_not_waited_for(
    tmp_path: Path, body: str, count: int
) -> None:
    program = tmp_path / "nvidia-smi"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    programs = HostPrograms({"PATH": f".:{tmp_path}:{os.environ['PATH']}"})
    found = await list_graphics(programs, root=tmp_path, seconds=0.5 if "sleep" in body else 10)
    assert len(found) == count


def test_the_kernels_list_is_read_where_there_is_no_program(tmp_path: Path) -> None:
    card = "sys/class/drm/card0"
    root = placed(
        tmp_path,
        {
            f"{card}/device/vendor": "0x1002\n",
            f"{card}/device/device": "0x73bf\n",
            f"{card}/device/mem_info_vram_total": "17163091968\n",
            "sys/class/drm/card0-HDMI-A-1/status": "connected\n",
        },
    )
    (root / card / "device/driver").symlink_to("../../bus/pci/drivers/amdgpu")
    assert list(list_kernel_gpus(root)) == [{"name": "AMD 0x73bf", "driver": "amdgpu", "memory_bytes": 17_163_091_968}]


def test_where_there_is_none_none_is_told(tmp_path: Path) -> None:
    assert list(list_kernel_gpus(tmp_path)) == []


OLD_GROUPS = Path("/sys/fs/cgroup/memory")


@pytest.fixture
def small_group() -> Iterator[Path]:
    """A control group of this machine with 300 MB."""
    folder = OLD_GROUPS / f"handrail-test-{os.getpid()}"
    try:
        folder.mkdir()
        (folder / "memory.limit_in_bytes").write_text("300000000")
    except OSError:
        pytest.skip("making a control group takes root, and groups of version 1")
    yield folder
    folder.rmdir()


def test_a_limit_of_this_machines_own_groups_is_told(small_group: Path) -> None:
    code = "from handrail_system.cgroup_limits import read_limits; print(read_limits().memory)"
    command = ["sh", "-c", f'echo $$ > {small_group}/cgroup.procs && exec "$0" -c "{code}"', sys.executable]
    told = int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert 299_000_000 < told <= 300_000_000
