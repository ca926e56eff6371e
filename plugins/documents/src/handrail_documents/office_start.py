"""Starts LibreOffice shut in: `python -m handrail_documents.office_start FOLDER PROGRAM ARGUMENT…`. Linux and macOS.

It writes in FOLDER only, reads the system's programs, libraries and fonts beside it, and reaches no network.
"""

from __future__ import annotations

import os
import resource
import sys
from pathlib import Path

from handrail.parsing import caging

MEMORY_BYTES = 4_294_967_296
PROCESSOR_S = 120
FILE_BYTES = 1_073_741_824
SYSTEM = (
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


def main() -> None:
    """Become the program, limited."""
    folder, program, *arguments = sys.argv[1:]
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (PROCESSOR_S, PROCESSOR_S))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, FILE_BYTES))
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    own = str(Path(program).resolve().parents[1])
    caging.shut(readable=(*SYSTEM, own), writable=(folder, "/dev/null"), meeting=("/tmp",), programs=True)
    os.execv(program, [program, *arguments])


if __name__ == "__main__":
    main()
