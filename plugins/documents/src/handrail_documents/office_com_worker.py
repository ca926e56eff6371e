"""Drives an application of Office by COM: `python -m handrail_documents.office_com_worker PROGRAM INPUT OUTPUT FORMAT`. Windows.

No macros, no links, no questions, nothing written but OUTPUT. The constants are those of the object models:
https://learn.microsoft.com/office/vba/api/overview/
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

# Beside the input lies a file with the number of the application's process.
PID_FILE = "pid"
# msoAutomationSecurityForceDisable.
MACROS_DISABLED = 3
# Asked for a password, the applications show a window; given a wrong one, they fail.
NO_PASSWORD = "\x01"


class OfficeProgram(Protocol):
    """Interface that Word, Excel and PowerPoint have in common."""

    AutomationSecurity: int
    DisplayAlerts: int

    # As Office spells it.
    def Quit(self) -> None: ...  # noqa: N802


class WordProgram(OfficeProgram, Protocol):
    """Word.Application, as far as it is used."""

    Documents: Any


class ExcelProgram(OfficeProgram, Protocol):
    """Excel.Application, as far as it is used."""

    Workbooks: Any
    AskToUpdateLinks: bool
    EnableEvents: bool
    Hwnd: int


class PowerPointProgram(OfficeProgram, Protocol):
    """PowerPoint.Application, as far as it is used."""

    Presentations: Any
    HWND: int


@dataclass(frozen=True, slots=True)
class OfficeApplication:
    """One of them: its name for COM, what it reads, and its numbers for what it writes."""

    program: str
    suffixes: tuple[str, ...]
    formats: Mapping[str, int]
    convert: Callable[[Any, str, str, int], None]


def convert_with_word(word: WordProgram, given: str, made: str, number: int) -> None:
    """Open a document and save it as another kind."""
    document = word.Documents.Open(
        given, ConfirmConversions=False, ReadOnly=True, AddToRecentFiles=False, PasswordDocument=NO_PASSWORD,
        Visible=False, OpenAndRepair=False, NoEncodingDialog=True,
    )  # fmt: skip
    try:
        document.SaveAs2(made, FileFormat=number, AddToRecentFiles=False)
    finally:
        document.Close(SaveChanges=0)


def convert_with_excel(excel: ExcelProgram, given: str, made: str, number: int) -> None:
    """Open a workbook and save the sheet in front, or all that are shown, as another kind."""
    excel.AskToUpdateLinks = False
    excel.EnableEvents = False
    workbook = excel.Workbooks.Open(
        given, UpdateLinks=0, ReadOnly=True, Password=NO_PASSWORD, IgnoreReadOnlyRecommended=True, AddToMru=False
    )
    try:
        if number == EXCEL_PDF:
            workbook.ExportAsFixedFormat(0, made)
        else:
            workbook.SaveAs(made, FileFormat=number)
    finally:
        workbook.Close(SaveChanges=False)


def convert_with_powerpoint(powerpoint: PowerPointProgram, given: str, made: str, number: int) -> None:
    """Open slides and save them as another kind."""
    slides = powerpoint.Presentations.Open(given, ReadOnly=-1, Untitled=0, WithWindow=0)
    try:
        slides.SaveAs(made, number)
    finally:
        slides.Close()


# Excel has no number for it, but a method.
EXCEL_PDF = -1
APPLICATIONS = (
    OfficeApplication(
        "Word.Application", (".docx", ".doc", ".odt", ".rtf", ".txt"), {"pdf": 17, "html": 10}, convert_with_word
    ),
    OfficeApplication(
        "Excel.Application",
        (".xlsx", ".xlsm", ".xls", ".ods"),
        {"pdf": EXCEL_PDF, "csv": 62, "html": 44, "xlsx": 51},
        convert_with_excel,
    ),
    OfficeApplication("PowerPoint.Application", (".pptx", ".ppt", ".odp"), {"pdf": 32}, convert_with_powerpoint),
)


def select_application(suffix: str, to: str) -> OfficeApplication | None:
    """Return the application that reads and writes these formats, or None; png and jpg are made from a PDF."""
    to = "pdf" if to in ("png", "jpg") else to
    return next((each for each in APPLICATIONS if suffix in each.suffixes and to in each.formats), None)


def drive_application(application: OfficeApplication, program: OfficeProgram, given: str, made: str, to: str) -> None:
    """Have a running application make one file of another, and end it."""
    program.AutomationSecurity = MACROS_DISABLED
    program.DisplayAlerts = 0
    try:
        application.convert(program, given, made, application.formats[to])
    finally:
        program.Quit()


def run_conversion() -> None:
    """Start a separate instance of an application and control it."""
    name, given, made, to = sys.argv[1:]
    application = next(each for each in APPLICATIONS if each.program == name)
    # It is there on Windows only.
    client: Any = import_module("comtypes.client")
    program: Any = client.CreateObject(name, dynamic=True)
    if (number := _find_process_id(program)) is not None:
        Path(given).with_name(PID_FILE).write_text(str(number))
    drive_application(application, program, given, made, to)


def _find_process_id(program: Any) -> int | None:
    """Return the id of the application's process, found by its window; None if it has no window.

    Word reports none before a document is open.
    """
    import ctypes

    window = getattr(program, "Hwnd", None) or getattr(program, "HWND", None)
    if not window:
        return None
    user: Any = vars(ctypes)["WinDLL"]("user32")
    number = ctypes.c_ulong()
    user.GetWindowThreadProcessId(ctypes.c_void_p(window), ctypes.byref(number))
    return number.value or None


if __name__ == "__main__":
    run_conversion()
