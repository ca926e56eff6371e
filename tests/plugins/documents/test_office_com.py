"""What Office is told, by the calls that reach it; the applications themselves are on Windows only."""

from __future__ import annotations

from typing import Any

import pytest

from handrail_documents.office_com import find_application
from handrail_documents.office_com_worker import APPLICATIONS, MACROS_DISABLED, drive_application, select_application


class Recorded:
    """An object of COM: every member is there, and what is called or set is written down."""

    def __init__(self, calls: Any, name: str = "") -> None:
        vars(self).update(_calls=calls, _name=name)

    def __getattr__(self, name: str) -> Recorded:
        return Recorded(self._calls, f"{self._name}.{name}")

    def __setattr__(self, name: str, value: Any) -> None:
        self._calls.append((f"{self._name}.{name}", (value,), {}))

    def __call__(self, *args: Any, **named: Any) -> Recorded:
        self._calls.append((self._name, args, named))
        if self._name.endswith((".SaveAs", ".SaveAs2", ".ExportAsFixedFormat")) and "broken" in args:
            raise OSError("it cannot be saved")
        return Recorded(self._calls, f"{self._name}()")


@pytest.mark.parametrize(
    ("suffix", "to", "program"),
    [
        (".docx", "pdf", "Word.Application"),
        (".rtf", "png", "Word.Application"),
        (".xls", "xlsx", "Excel.Application"),
        (".xlsx", "csv", "Excel.Application"),
        (".pptx", "jpg", "PowerPoint.Application"),
        (".pptx", "html", None),
        # A CSV's formulas are to stay text.
        (".csv", "pdf", None),
        (".html", "pdf", None),
    ],
)
def test_each_file_has_its_application(suffix: str, to: str, program: str | None) -> None:
    found = select_application(suffix, to)
    assert (found and found.program) == program


def test_where_there_is_no_office_there_is_no_application() -> None:
    assert find_application(".docx", "pdf") is None


@pytest.mark.parametrize("made", ["out", "broken"])
@pytest.mark.parametrize("number", range(len(APPLICATIONS)))
def test_nothing_of_a_document_runs_and_the_application_ends(number: int, made: str) -> None:
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
    used = APPLICATIONS[number]
    program: Any = Recorded(calls)
    if made == "broken":
        with pytest.raises(OSError, match="cannot be saved"):
            drive_application(used, program, "in", made, "pdf")
    else:
        drive_application(used, program, "in", made, "pdf")
    names = [name for name, _, _ in calls]
    opening = next(at for at, name in enumerate(names) if name.endswith(".Open"))
    assert (".AutomationSecurity", (MACROS_DISABLED,), {}) in calls[:opening]
    assert calls[opening][2]["ReadOnly"]
    assert any(name.endswith(".Close") for name in names[opening:])
    assert names[-1] == ".Quit"
