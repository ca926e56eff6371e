"""Windows: a job object, so that what a command starts ends with it and uses no more than it may.

It confines processes and nothing else: files are read and written, and the network is used, as the person may. So it is never offered for
what would otherwise be asked about. As a program (`python -m handrail_cli.sandboxes.windows_job LIMITS -- COMMAND`) it starts the command in a job.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handrail import Bounds, Confined, Limits, NoSandbox, Sandbox

# <winnt.h>: JOBOBJECT_EXTENDED_LIMIT_INFORMATION and its flags.
EXTENDED_LIMITS = 9
ACTIVE_PROCESSES, JOB_MEMORY, DIE_ON_EXCEPTION, KILL_ON_CLOSE, PROCESS_TIME = 0x8, 0x200, 0x400, 0x2000, 0x2
CREATE_SUSPENDED = 0x4
TICKS_A_SECOND = 10_000_000


class WindowsJob(Sandbox):
    """Ends with the command all that it started, and limits what it uses."""

    name = "windows_job"
    confines = frozenset(("process",))

    @classmethod
    def missing(cls) -> str | None:
        """Another system."""
        return None if sys.platform == "win32" else f"it works on Windows, and this is {sys.platform}"

    def confine(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], bounds: Bounds) -> Confined:
        """The words that start this module, which starts the command in a job."""
        if bounds.masked or bounds.kept:
            raise NoSandbox("a job object hides no file and keeps none as it is")
        words = (sys.executable, "-I", "-m", "handrail_cli.sandboxes.windows_job", packed(bounds.limits), "--", *argv)
        return Confined(words, dict(environment))


def packed(limits: Limits) -> str:
    """Limits as one word."""
    return json.dumps({"memory": limits.memory, "processes": limits.processes, "cpu_seconds": limits.cpu_seconds})


def flags(limits: Mapping[str, int | None]) -> int:
    """The flags of a job with these limits."""
    given = {"memory": JOB_MEMORY, "processes": ACTIVE_PROCESSES, "cpu_seconds": PROCESS_TIME}
    return KILL_ON_CLOSE | DIE_ON_EXCEPTION | sum(flag for name, flag in given.items() if limits.get(name) is not None)


def main(words: Sequence[str]) -> int:
    """Start the command in a job, wait for it, and give its exit code."""
    limits: dict[str, int | None] = json.loads(words[0])
    job = _job(limits)
    # Suspended, so that it starts nothing before it is in the job.
    process = subprocess.Popen(list(words[2:]), creationflags=CREATE_SUSPENDED)
    _put_in(job, process)
    return process.wait()


def _job(limits: Mapping[str, int | None]) -> Any:
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

    kernel = _library("kernel32")
    kernel.CreateJobObjectW.restype = wintypes.HANDLE
    job = kernel.CreateJobObjectW(None, None)
    wanted = Extended()
    wanted.Basic.LimitFlags = flags(limits)
    wanted.Basic.ActiveProcessLimit = limits.get("processes") or 0
    wanted.Basic.PerProcessUserTimeLimit = (limits.get("cpu_seconds") or 0) * TICKS_A_SECOND
    wanted.JobMemoryLimit = limits.get("memory") or 0
    if not job or not kernel.SetInformationJobObject(
        wintypes.HANDLE(job), EXTENDED_LIMITS, ctypes.byref(wanted), ctypes.sizeof(wanted)
    ):
        raise OSError("the job object could not be made")
    return job


def _put_in(job: Any, process: subprocess.Popen[bytes]) -> None:
    from ctypes import wintypes

    kernel = _library("kernel32")
    native = _library("ntdll")
    handle = wintypes.HANDLE(int(vars(process)["_handle"]))
    if not kernel.AssignProcessToJobObject(wintypes.HANDLE(job), handle):
        process.kill()
        raise OSError("the command could not be put into its job, and was not run")
    native.NtResumeProcess(handle)


def _library(name: str) -> Any:
    """A library of Windows; elsewhere there is none."""
    import ctypes

    load: Any = vars(ctypes)["WinDLL"]
    return load(name, use_last_error=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
