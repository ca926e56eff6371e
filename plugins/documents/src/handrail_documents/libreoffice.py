"""LibreOffice without a display: one process per conversion.

Each process has its own folder and profile, is sandboxed, and ends with its call.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from handrail import Downstream
from handrail.workers.host_programs import START_FOLDER

if TYPE_CHECKING:
    from handrail.workers.host_programs import HostPrograms

PROGRAM_NAMES = ("soffice", "libreoffice")
USUAL_PATHS = ("/usr/lib/libreoffice/program/soffice", "/Applications/LibreOffice.app/Contents/MacOS/soffice")
# Where its folders are made: it writes its profile's name in ways of its own, and this one has only plain letters. Its pipe lies there anyway.
TEMP_ROOT = "/tmp"
# What it ends with when it wants to be started again, as it does once for a new profile.
RESTART_EXIT_CODE = 81
MAX_STARTS = 3
MAX_RESULT = 536_870_912
FLAGS = ("--headless", "--norestore", "--nolockcheck", "--nodefault", "--nofirststartwizard")
INHERITED_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ")
SETTING_TEMPLATE = (
    '<item oor:path="/org.openoffice.Office.{}"><prop oor:name="{}" oor:op="fuse"><value>{}</value></prop></item>'
)
# No macros, nothing that a document only points to.
PROFILE_SETTINGS = (
    ("Common/Security/Scripting", "MacroSecurityLevel", "3"),
    ("Common/Security/Scripting", "DisableMacrosExecution", "true"),
    ("Common/Security/Scripting", "BlockUntrustedRefererLinks", "true"),
    ("Calc/Content/Update", "Link", "2"),
    ("Writer/Content/Update", "Link", "0"),
)
PROFILE_XML = (
    '<?xml version="1.0" encoding="UTF-8"?>\n<oor:items xmlns:oor="http://openoffice.org/2001/registry">'
    + "".join(SETTING_TEMPLATE.format(*option) for option in PROFILE_SETTINGS)
    + "</oor:items>\n"
)


def find_libreoffice(programs: HostPrograms, places: Sequence[str] = USUAL_PATHS) -> str | None:
    """Return the program on PATH or in one of its usual places; None if it is not installed."""
    found = map(programs.find, PROGRAM_NAMES)
    there = next((name for name in (*found, *places) if name and os.path.isfile(name)), None)
    if there is None:
        return None
    # What `soffice` starts in the end; only its own exit says that it is to be started again.
    inner = Path(there).resolve().with_name("soffice.bin")
    return str(inner) if inner.is_file() else there


@dataclass(frozen=True, slots=True)
class LibreOfficeJob:
    """The program, and the folder for one conversion: `in.<suffix>` is read, what it makes lies in `out`."""

    program: str
    folder: Path
    environment: Mapping[str, str]

    async def convert(self, source: bytes, suffix: str, wanted: str, *, reading: str | None = None) -> dict[str, bytes]:
        """Convert a file, and return the files made, by name.

        `wanted` is a suffix, or `suffix:filter:options`; `reading` is the filter that reads the file. Raises
        `Downstream` if nothing is made. If canceled, it is killed with everything that it started.
        """
        given, out = self.folder / f"in{suffix}", self.folder / "out"
        shutil.rmtree(out, ignore_errors=True)
        out.mkdir()
        await anyio.to_thread.run_sync(given.write_bytes, source)
        filters = [f"--infilter={reading}"] if reading else []
        orders = [*filters, "--convert-to", wanted, "--outdir", str(out), str(given)]
        said = ""
        for _ in range(MAX_STARTS):
            code, said = await self._run(orders)
            if code != RESTART_EXIT_CODE:
                break
        made = await anyio.to_thread.run_sync(read_output_files, out)
        if not made:
            raise Downstream(f"LibreOffice made nothing of it{f': {said}' if said else ''}")
        return made

    async def _run(self, orders: Sequence[str]) -> tuple[int, str]:
        """Run it, and return its exit code and its error message, empty if there is none."""
        profile = (self.folder / "profile").as_uri()
        argv = [sys.executable, "-P", "-m", "handrail_documents.libreoffice_launcher", str(self.folder), self.program]
        with (self.folder / "said").open("w+b") as said:
            # Started as it stands: it is there in a millisecond.
            process = subprocess.Popen(  # noqa: ASYNC220
                [*argv, f"-env:UserInstallation={profile}", *FLAGS, *orders],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=self._variables(),
                cwd=START_FOLDER,
                start_new_session=True,
            )
            try:
                code = await anyio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
            finally:
                # Its own group, which nothing in it leaves.
                with suppress(ProcessLookupError, PermissionError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                _ipc_pipe_path(profile).unlink(missing_ok=True)
            said.seek(0)
            lines = [line for line in said.read(20_000).decode(errors="replace").splitlines() if line.strip()]
        return code, next((line[:300] for line in lines if line.startswith("Error")), "")

    def _variables(self) -> dict[str, str]:
        kept = {name: self.environment[name] for name in INHERITED_VARIABLES if name in self.environment}
        python = {name: self.environment[name] for name in ("PYTHONPATH", "VIRTUAL_ENV") if name in self.environment}
        own = {"HOME": str(self.folder), "TMPDIR": str(self.folder / "tmp"), "SAL_USE_VCLPLUGIN": "svp"}
        return {"LANG": "C.UTF-8", **kept, **python, **own}


@contextmanager
def open_workspace(program: str, environment: Mapping[str, str]) -> Generator[LibreOfficeJob, None, None]:
    """Yield a job with a folder for one conversion that other users cannot access, and remove it afterwards."""
    with tempfile.TemporaryDirectory(prefix="handrail-office-", dir=TEMP_ROOT, ignore_cleanup_errors=True) as name:
        folder = Path(name)
        (folder / "tmp").mkdir()
        settings = folder / "profile" / "user"
        settings.mkdir(parents=True)
        (settings / "registrymodifications.xcu").write_text(PROFILE_XML, encoding="utf-8")
        yield LibreOfficeJob(program, folder, environment)


def read_output_files(out: Path) -> dict[str, bytes]:
    """Return the regular files in the folder.

    They were made from an untrusted file, so their size is checked first. Raises `Downstream` for a file that is too
    large.
    """
    made: dict[str, bytes] = {}
    for entry in os.scandir(out):
        if entry.is_file(follow_symlinks=False):
            if (size := entry.stat(follow_symlinks=False).st_size) > MAX_RESULT:
                raise Downstream(f"LibreOffice made {size:,} bytes of it, and at most {MAX_RESULT:,} are taken")
            made[entry.name] = Path(entry.path).read_bytes()
    return made


def _ipc_pipe_path(profile: str) -> Path:
    """Return the path of its IPC socket, derived from its profile (desktop/source/app/officeipcthread.cxx).

    LibreOffice is sandboxed and cannot remove the socket itself.
    """
    digest = hashlib.md5(profile.encode("utf-16-le"), usedforsecurity=False).digest()
    return Path(f"/tmp/OSL_PIPE_{os.getuid()}_SingleOfficeIPC_{''.join(f'{byte:x}' for byte in digest)}")
