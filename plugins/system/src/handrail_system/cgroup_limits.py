"""Resource limits of a container, a service or a user session.

They are the limits of Linux control groups, as far up the hierarchy as is visible.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

# A number this near to the largest of 64 bits stands for no limit in the old interface.
UNLIMITED = 1 << 60


@dataclass(frozen=True, slots=True)
class ResourceLimits:
    """Tightest limits that apply here; None for what is unlimited.

    `memory` and `memory_used` are bytes, `cpus` is a number of processors.
    """

    memory: int | None = None
    memory_used: int | None = None
    cpus: float | None = None
    processes: int | None = None


@dataclass(frozen=True, slots=True)
class _CgroupMount:
    """Mount of a control group hierarchy.

    `root` is the group that is visible at `at`; `controllers` is empty for version 2.
    """

    root: PurePosixPath
    at: Path
    controllers: frozenset[str]


def read_limits(root: Path = Path("/")) -> ResourceLimits:
    """Read the limits of this process, below `root`; all are None without control groups."""
    mounts = list(_iter_mounts(root))
    groups = dict(_iter_groups(root))
    new = list(_iter_group_folders(mounts, groups, ""))
    memory = list(_iter_group_folders(mounts, groups, "memory"))
    tight, used = (
        _find_tightest([*_iter_limit_pairs(new, "memory.max", "memory.current")])
        or _find_tightest([*_iter_limit_pairs(memory, "memory.limit_in_bytes", "memory.usage_in_bytes")])
        or (None, None)
    )
    return ResourceLimits(
        memory=tight,
        memory_used=used,
        cpus=_find_minimum(
            (*map(_read_cpu_quota, new), *map(_read_cpu_quota_v1, _iter_group_folders(mounts, groups, "cpu")))
        ),
        processes=_to_whole_number(
            _find_minimum(
                _read_number(each / "pids.max") for each in (*new, *_iter_group_folders(mounts, groups, "pids"))
            )
        ),
    )


def _iter_mounts(root: Path) -> Iterator[_CgroupMount]:
    """Yield the mounts in /proc/self/mountinfo, whose fields are described in proc_pid_mountinfo(5)."""
    with suppress(OSError):
        for line in (root / "proc/self/mountinfo").read_text().splitlines():
            fields, _, tail = line.partition(" - ")
            kind, _, options = tail.partition(" ")
            if kind not in ("cgroup", "cgroup2"):
                continue
            _, _, _, seen, at, *_ = fields.split()
            named = frozenset(options.split()[-1].split(",")) if kind == "cgroup" else frozenset[str]()
            yield _CgroupMount(PurePosixPath(seen), root / at.lstrip("/"), named)


def _iter_groups(root: Path) -> Iterator[tuple[str, PurePosixPath]]:
    """Yield each controller with this process's group; the empty controller is version 2. See cgroups(7)."""
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            for controller in controllers.split(","):
                yield controller, PurePosixPath(path)


def _iter_group_folders(
    mounts: Iterable[_CgroupMount], groups: dict[str, PurePosixPath], controller: str
) -> Iterator[Path]:
    """Yield the folders of the group and its ancestors, because the limits of a group apply to all groups below it."""
    if (group := groups.get(controller)) is None:
        return
    for mount in mounts:
        if (controller in mount.controllers) if controller else not mount.controllers:
            # A container may be shown its own group as the root, and its path as the machine's or as one that leads out.
            inner = group.relative_to(mount.root) if group.is_relative_to(mount.root) else PurePosixPath()
            folder = mount.at / inner if ".." not in inner.parts else mount.at
            while True:
                yield folder
                if folder == mount.at:
                    break
                folder = folder.parent


def _iter_limit_pairs(folders: Iterable[Path], limit: str, used: str) -> Iterator[tuple[int, int | None]]:
    for folder in folders:
        if (number := _to_whole_number(_read_number(folder / limit))) is not None:
            yield number, _subtract_cache(folder, _to_whole_number(_read_number(folder / used)))


def _subtract_cache(folder: Path, used: int | None) -> int | None:
    """Memory in use without what only caches files and can be dropped at once."""
    with suppress(OSError, ValueError):
        told = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        idle = int(told.get("total_inactive_file") or told.get("inactive_file") or 0)
        return None if used is None else max(used - idle, 0)
    return used


def _find_tightest(found: list[tuple[int, int | None]]) -> tuple[int, int | None] | None:
    return min(found, key=lambda pair: pair[0] - (pair[1] or 0), default=None)


def _read_number(file: Path) -> float | None:
    """Return the number in a file; None for 0, for `max` or an equivalent huge number, or if it is not readable."""
    with suppress(OSError, ValueError):
        number = float(file.read_text())
        return number if 0 < number < UNLIMITED else None
    return None


def _read_cpu_quota(folder: Path) -> float | None:
    with suppress(OSError, ValueError):
        quota, period = (folder / "cpu.max").read_text().split()
        return None if quota == "max" else int(quota) / int(period)
    return None


def _read_cpu_quota_v1(folder: Path) -> float | None:
    quota, period = _read_number(folder / "cpu.cfs_quota_us"), _read_number(folder / "cpu.cfs_period_us")
    return quota / period if quota and period else None


def _find_minimum(numbers: Iterable[float | None]) -> float | None:
    return min((number for number in numbers if number is not None), default=None)


def _to_whole_number(number: float | None) -> int | None:
    return None if number is None or math.isinf(number) else int(number)
