"""Microsoft Office on Windows: one process per conversion, which controls Word, Excel or PowerPoint by COM.

It ends with its call. It is used in the same way as `libreoffice.LibreOfficeJob`; the commands for the applications are
in `office_com_worker`.
"""

from __future__ import annotations

import codecs
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import anyio
import anyio.to_thread

from handrail import Downstream
from handrail.workers.host_programs import START_FOLDER
from handrail_documents.libreoffice import read_output_files
from handrail_documents.office_com_worker import PID_FILE, OfficeApplication, select_application


def find_application(suffix: str, to: str) -> OfficeApplication | None:
    """Return the application that converts a file with this suffix; None if Office is not installed or cannot."""
    found = select_application(suffix, to)
    return found if found is not None and _is_com_registered(found.program) else None


def _is_com_registered(program: str) -> bool:
    if sys.platform != "win32":
        return False
    import winreg

    try:
        winreg.CloseKey(winreg.OpenKey(winreg.HKEY_CLASSES_ROOT, rf"{program}\CLSID"))
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class ComOfficeJob:
    """An application, and the folder for one conversion: `in.<suffix>` is read, what it makes lies in `out`."""

    application: OfficeApplication
    folder: Path

    async def convert(self, source: bytes, suffix: str, wanted: str, *, reading: str | None = None) -> dict[str, bytes]:
        """Convert a file, and return the files made, by name.

        Of `wanted`, only the suffix is used; filters (`reading`) apply to LibreOffice only. Raises `Downstream` if
        nothing is made. If canceled, it is killed with its application.
        """
        given, out = self.folder / f"in{suffix}", self.folder / "out"
        out.mkdir(exist_ok=True)
        for old in out.iterdir():
            old.unlink()
        await anyio.to_thread.run_sync(given.write_bytes, source)
        code, said = await self._run(given, out, wanted.partition(":")[0])
        made = await anyio.to_thread.run_sync(read_output_files, out)
        if code or not made:
            raise Downstream(f"{self.application.program} made nothing of it{f': {said}' if said else ''}")
        return {name: data.removeprefix(codecs.BOM_UTF8) for name, data in made.items()}

    async def _run(self, given: Path, out: Path, to: str) -> tuple[int, str]:
        argv = [sys.executable, "-P", "-m", "handrail_documents.office_com_worker", self.application.program]
        with (self.folder / "said").open("w+b") as said:
            # Started as it stands: it is there in a millisecond.
            process = subprocess.Popen(  # noqa: ASYNC220
                [*argv, str(given), str(out / f"in.{to}"), to],
                cwd=START_FOLDER,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
            )
            try:
                code = await anyio.to_thread.run_sync(process.wait, abandon_on_cancel=True)
            finally:
                process.kill()
                process.wait()
                self._end_application()
            said.seek(0)
            return code, said.read(20_000).decode(errors="replace").strip().rpartition("\n")[2][:300]

    def _end_application(self) -> None:
        """End the application, which is not a child of the process that controls it."""
        with suppress(OSError, ValueError):
            os.kill(int((self.folder / PID_FILE).read_text()), signal.SIGTERM)


@contextmanager
def open_workspace(application: OfficeApplication) -> Generator[ComOfficeJob, None, None]:
    """Yield a job with a folder for one conversion, and remove the folder afterwards."""
    with tempfile.TemporaryDirectory(prefix="handrail-office-", ignore_cleanup_errors=True) as name:
        yield ComOfficeJob(application, Path(name))
