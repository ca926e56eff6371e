"""Job object of Windows, which ends everything a command starts with the command and limits its resources.

It confines only processes: files and the network are available as they are to the user. It is therefore never offered
for commands that otherwise require approval. Run as a program
(`python -m handrail_cli.sandboxes.windows_job LIMITS -- COMMAND`), this module starts the command in a job.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from handrail import Bounds, Confined, Limits, NoSandbox, Sandbox

# <winnt.h>: JOBOBJECT_EXTENDED_LIMIT_INFORMATION and its flags, JOBOBJECT_BASIC_ACCOUNTING_INFORMATION.
EXTENDED_LIMITS, ACCOUNTING = 9, 1
ACTIVE_PROCESSES, JOB_MEMORY, DIE_ON_EXCEPTION, KILL_ON_CLOSE, PROCESS_TIME = 0x8, 0x200, 0x400, 0x2000, 0x2
CREATE_SUSPENDED = 0x4
# The exit code of what was ended.
ENDED_EXIT_CODE = 1
TICKS_A_SECOND = 10_000_000


class WindowsJobSandbox(Sandbox):
    """Ends with the command all that it started, and limits what it uses."""

    name = "windows_job"
    confines = frozenset(("process",))

    @classmethod
    def missing(cls) -> str | None:
        """Another system."""
        return None if sys.platform == "win32" else f"it works on Windows, and this is {sys.platform}"

    def confine(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], bounds: Bounds) -> Confined:
        """Return the command line of this module, which starts the command in a job."""
        if bounds.masked or bounds.kept:
            raise NoSandbox("a job object hides no file and keeps none as it is")
        words = (
            sys.executable,
            "-I",
            "-m",
            "handrail_cli.sandboxes.windows_job",
            encode_limits(bounds.limits),
            "--",
            *argv,
        )
        return Confined(words, dict(environment))


def encode_limits(limits: Limits) -> str:
    """Encode limits as one word."""
    return json.dumps({"memory": limits.memory, "processes": limits.processes, "cpu_seconds": limits.cpu_seconds})


def compute_limit_flags(limits: Mapping[str, int | None]) -> int:
    """Return the flags of a job with these limits."""
    given = {"memory": JOB_MEMORY, "processes": ACTIVE_PROCESSES, "cpu_seconds": PROCESS_TIME}
    return KILL_ON_CLOSE | DIE_ON_EXCEPTION | sum(flag for name, flag in given.items() if limits.get(name) is not None)


def main(words: Sequence[str]) -> int:
    """Start the command in a job, wait for it, and give its exit code."""
    limits: dict[str, int | None] = json.loads(words[0])
    # Suspended, so that it starts nothing before it is in the job.
    process = subprocess.Popen(list(words[2:]), creationflags=CREATE_SUSPENDED)
    with JobObject(limits) as job:
        job.take_in(process)
        return process.wait()


class JobObject:
    """A job object with these limits. What is in it ends when it is closed."""

    def __init__(self, limits: Mapping[str, int | None]) -> None:
        from ctypes import byref, sizeof, wintypes

        self._kernel = _load_library("kernel32")
        self._kernel.CreateJobObjectW.restype = wintypes.HANDLE
        self._handle = wintypes.HANDLE(self._kernel.CreateJobObjectW(None, None))
        wanted = _create_limit_info(limits)
        if not self._handle or not self._kernel.SetInformationJobObject(
            self._handle, EXTENDED_LIMITS, byref(wanted), sizeof(wanted)
        ):
            raise OSError("the job object could not be made")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def take_in(self, process: subprocess.Popen[bytes]) -> None:
        """Put in what was started suspended, and let it run; it is ended when that fails."""
        from ctypes import wintypes

        handle = wintypes.HANDLE(int(vars(process)["_handle"]))
        if not self._kernel.AssignProcessToJobObject(self._handle, handle):
            process.kill()
            raise OSError("the command could not be put into its job, and was not run")
        _load_library("ntdll").NtResumeProcess(handle)

    def active(self) -> int:
        """Return the number of its processes that are running."""
        from ctypes import byref, sizeof

        counts = _create_accounting_info()
        if not self._handle or not self._kernel.QueryInformationJobObject(
            self._handle, ACCOUNTING, byref(counts), sizeof(counts), None
        ):
            return 0
        return int(counts.ActiveProcesses)

    def end(self) -> None:
        """End all of its processes."""
        if self._handle:
            self._kernel.TerminateJobObject(self._handle, ENDED_EXIT_CODE)

    def close(self) -> None:
        """Close the job object, which ends the processes still in it."""
        if self._handle:
            self._kernel.CloseHandle(self._handle)
            self._handle.value = None


def _create_limit_info(limits: Mapping[str, int | None]) -> Any:
    import ctypes
    from ctypes import wintypes

    class Basic(ctypes.Structure):
        _fields_ = (
            ("PerProcessUserTimeLimit", ctypes.c_int64), ("PerJobUserTimeLimit", ctypes.c_int64), ("LimitFlags", wintypes.DWORD),
            ("MinimumWorkingSetSize", ctypes.c_size_t), ("MaximumWorkingSetSize", ctypes.c_size_t), ("ActiveProcessLimit", wintypes.DWORD),
            ("Affinity", ctypes.c_size_t), ("PriorityClass", wintypes.DWORD), ("SchedulingClass", wintypes.DWORD),
        )  # fmt: skip

    class Extended(ctypes.Structure):
        _fields_ = (
            ("Basic", Basic), ("IoInfo", ctypes.c_uint64 * 6), ("ProcessMemoryLimit", ctypes.c_size_t), ("JobMemoryLimit", ctypes.c_size_t),
            ("PeakProcessMemoryUsed", ctypes.c_size_t), ("PeakJobMemoryUsed", ctypes.c_size_t),
        )  # fmt: skip

    wanted = Extended()
    wanted.Basic.LimitFlags = compute_limit_flags(limits)
    wanted.Basic.ActiveProcessLimit = limits.get("processes") or 0
    wanted.Basic.PerProcessUserTimeLimit = (limits.get("cpu_seconds") or 0) * TICKS_A_SECOND
    wanted.JobMemoryLimit = limits.get("memory") or 0
    return wanted


def _create_accounting_info() -> Any:
    import ctypes
    from ctypes import wintypes

    class Counts(ctypes.Structure):
        _fields_ = (
            ("TotalUserTime", ctypes.c_int64), ("TotalKernelTime", ctypes.c_int64), ("ThisPeriodTotalUserTime", ctypes.c_int64),
            ("ThisPeriodTotalKernelTime", ctypes.c_int64), ("TotalPageFaultCount", wintypes.DWORD), ("TotalProcesses", wintypes.DWORD),
            ("ActiveProcesses", wintypes.DWORD), ("TotalTerminatedProcesses", wintypes.DWORD),
        )  # fmt: skip

    return Counts()


def _load_library(name: str) -> Any:
    """Load a Windows library; unavailable on other systems."""
    import ctypes

    load: Any = vars(ctypes)["WinDLL"]
    return load(name, use_last_error=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
