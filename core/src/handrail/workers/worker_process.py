"""The process in which files are parsed: `python -m handrail.workers.worker_process FD JOBS`.

It does one job after another, each on a file that comes open with the request. `JOBS` is a module of the plugin, in which `JOBS` names the
module of each job. It has a limit of memory and, for each job, of processor time,
opens no file but Python's own, writes none, starts no program, reaches no network, and ends when the plugin's side of the channel is gone.
"""

from __future__ import annotations

import importlib
import os
import select
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

from handrail.workers import self_sandbox, wire_protocol
from handrail.workers.parse_refusal import ParseRefused

ParserJob = Callable[[int | None, Mapping[str, Any]], tuple[dict[str, Any], bytes]]

MEMORY_BYTES = 2_147_483_648
CPU_LIMIT_S = 60

# Where Python's own modules, the libraries under them and fonts lie, beside what is on its path.
SYSTEM_PATHS = (
    "/usr/lib",
    "/usr/lib64",
    "/usr/local/lib",
    "/lib",
    "/lib64",
    "/usr/share/zoneinfo",
    "/usr/share/fonts",
    "/usr/local/share/fonts",
)
SETTING_PATHS = ("/etc/ld.so.cache", "/etc/localtime", "/dev/urandom", "/dev/null")


def run_worker() -> None:
    """Serve until the other side is gone."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    jobs: Mapping[str, str] = importlib.import_module(sys.argv[2]).JOBS
    _limit_process()
    threading.Thread(target=_exit_on_hangup, args=(channel.fileno(),), daemon=True).start()
    while True:
        try:
            request, _, fd = wire_protocol.receive_message(channel)
        except EOFError:
            return
        _limit_job()
        try:
            answer, data = _run_job(jobs, request["job"], request["args"], fd)
        finally:
            if fd is not None:
                os.close(fd)
        wire_protocol.send_message(channel, answer, data)


def _run_job(
    jobs: Mapping[str, str], job: str, args: Mapping[str, Any], fd: int | None
) -> tuple[dict[str, Any], bytes]:
    try:
        run: ParserJob = getattr(importlib.import_module(jobs[job]), job)
        result, data = run(fd, args)
    except ParseRefused as exc:
        return {"refused": {"kind": exc.kind, "message": str(exc), "hint": exc.hint}}, b""
    except MemoryError:
        return _format_refusal("limit", f"it takes more than {MEMORY_BYTES // 1_048_576:,} MB of memory to read"), b""
    except RecursionError:
        return _format_refusal("limit", "it is nested too deep to be read"), b""
    # Whatever a parser stumbles over in a hostile file.
    except Exception as exc:  # noqa: BLE001
        return _format_refusal(
            "unreadable", f"it is damaged or not what its name says ({type(exc).__name__}: {exc})"[:500]
        ), b""
    return {"result": result}, data


def _format_refusal(kind: str, message: str) -> dict[str, Any]:
    return {"refused": {"kind": kind, "message": message, "hint": None}}


def _limit_process() -> None:
    if sys.platform == "win32":
        return
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    self_sandbox.confine_self(
        readable=(*SYSTEM_PATHS, *SETTING_PATHS, sys.prefix, sys.base_prefix, *filter(None, sys.path))
    )


def _limit_job() -> None:
    if sys.platform == "win32":
        return
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + CPU_LIMIT_S, resource.RLIM_INFINITY))


def _exit_on_hangup(fd: int) -> None:
    """Exit in the middle of a job once the other side has hung up."""
    gone = select.poll()
    gone.register(fd, 0)
    gone.poll()
    os._exit(0)


if __name__ == "__main__":
    run_worker()
