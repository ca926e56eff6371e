"""Starts LibreOffice shut in: `python -m handrail_documents.libreoffice_launcher FOLDER PROGRAM ARGUMENT…`. Linux and macOS.

It writes in FOLDER only, reads the system's programs, libraries and fonts beside it, and reaches no network.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from handrail.workers import self_sandbox

MEMORY_LIMIT_BYTES = 4_294_967_296
CPU_LIMIT_S = 120
FILE_LIMIT_BYTES = 1_073_741_824
SYSTEM_PATHS = (
    *(
        "/usr",
        "/lib",
        "/lib64",
        "/etc/libreoffice",
        "/var/lib/libreoffice",
        "/var/spool/libreoffice",
        "/etc/alternatives",
    ),
    *("/etc/fonts", "/var/cache/fontconfig", "/etc/ld.so.cache", "/etc/localtime"),
    *(
        "/etc/passwd",
        "/etc/group",
        "/etc/nsswitch.conf",
        "/proc",
        "/sys/devices/system/cpu",
        "/dev/urandom",
        "/dev/random",
    ),
)


def exec_confined_program() -> None:
    """Become the program, limited."""
    folder, program, *arguments = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT_BYTES, FILE_LIMIT_BYTES))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    own = str(Path(program).resolve().parents[1])
    self_sandbox.confine_self(
        readable=(*SYSTEM_PATHS, own), writable=(folder, "/dev/null"), meeting=("/tmp",), programs=True
    )
    os.execv(program, [program, *arguments])


if __name__ == "__main__":
    exec_confined_program()
