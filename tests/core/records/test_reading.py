"""Large audits are read from their end, a page at a time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from handrail.audit.query import read_calls, read_outline, read_page
from handrail.audit.writer import AuditWriter, list_parts

SESSION = "20260101-000000-abcdef"


def call(audit: AuditWriter, id: str, *, filler: str = "") -> None:
    audit.write("call", {"call_id": id, "tool": "write_file", "args": {"content": filler, "event": "call"}})


def result(audit: AuditWriter, id: str, status: str = "success", **more: Any) -> None:
    told = {"call_id": id, "tool": "write_file", "status": status, "result": {"status": status}}
    audit.write("result", {**told, **more})


def written(folder: Path, count: int, *, most: int = 2**24) -> Path:
    """An audit of so many calls, each of which ends after the next one has begun, and of one that ends last."""
    audit = AuditWriter(folder / f"{SESSION}.jsonl", session=SESSION, most=most, workspace=[folder])
    call(audit, "whole")
    for number in range(count):
        call(audit, f"c{number}", filler="x" * 500)
        if number:
            result(audit, f"c{number - 1}")
    result(audit, f"c{count - 1}")
    result(audit, "whole")
    audit.close()
    return folder / f"{SESSION}.jsonl"


def pages(file: Path, count: int) -> list[list[dict[str, Any]]]:
    """All pages, the newest first."""
    found, before = list[list[dict[str, Any]]](), None
    while True:
        page = read_page(file, count=count, before=before)
        found.append(page.calls)
        if (before := page.before) is None:
            return found


@pytest.mark.parametrize("most", [2**24, 50_000], ids=["one-file", "several-files"])
def test_pages_hold_each_call_once_with_its_result(tmp_path: Path, most: int) -> None:
    file = written(tmp_path, 1_000, most=most)
    assert (len(list_parts(file)) > 1) is (most == 50_000)
    found = pages(file, 64)
    assert all(len(page) <= 64 for page in found)
    assert len(found[0]) <= 64
    calls = [each for page in reversed(found) for each in page]
    assert [each["call_id"] for each in calls] == ["whole", *(f"c{number}" for number in range(1_000))]
    assert {each["status"] for each in calls} == {"success"}


def test_a_call_that_never_began_is_on_its_page(tmp_path: Path) -> None:
    audit = AuditWriter(tmp_path / f"{SESSION}.jsonl", session=SESSION)
    for number in range(50):
        call(audit, f"c{number}")
        result(audit, f"c{number}")
    result(audit, "unknown", "error", args={})
    result(audit, "stopped", "cancelled")
    audit.close()
    page = read_page(audit.path, count=5)
    assert [(each["call_id"], each["status"]) for each in page.calls[-2:]] == [
        ("unknown", "error"),
        ("stopped", "cancelled"),
    ]


@pytest.mark.parametrize("before", ["", "1", "1:x", "x:1", "1:-5", "0:5", "1:2:3"])
def test_what_is_no_place_in_an_audit_is_refused(tmp_path: Path, before: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        read_page(written(tmp_path, 3), count=5, before=before)


def test_a_torn_end_and_an_empty_audit_are_read(tmp_path: Path) -> None:
    file = written(tmp_path, 3)
    file.write_bytes(file.read_bytes() + b'{"event":"call","call_id":"torn"')
    assert [each["call_id"] for each in read_page(file, count=5).calls] == ["whole", "c0", "c1", "c2"]
    file.write_bytes(b"")
    assert read_page(file, count=5).calls == []
    assert read_outline(file).calls == 0


@pytest.mark.parametrize(("count", "exact"), [(3, True), (1_000, False)])
def test_an_outline_says_whose_audit_it_is_and_about_how_much_it_holds(tmp_path: Path, count: int, exact: bool) -> None:
    outline = read_outline(written(tmp_path, count))
    assert outline.about["workspace"] == [str(tmp_path)]
    assert (outline.exact, outline.tools) == (exact, ("write_file",))
    assert abs(outline.calls - count) <= 2


@pytest.mark.parametrize(
    "damaged",
    [
        '{"event":"call","call_id":"b","at":"x"}',
        '{"event":"call","call_id":"b","at":1e30}',
        '{"event":"call","call_id":"b","at":null}',
        '{"event":"result","call_id":"c1","result":[1]}',
        '{"event":"end","n":"x"}',
        pytest.param("[" * 30_000, id="deep"),
    ],
)
def test_a_damaged_line_hides_no_other_call(tmp_path: Path, damaged: str) -> None:
    file = written(tmp_path, 100)
    file.write_bytes(file.read_bytes() + damaged.encode() + b"\n")
    assert "c1" in [each["call_id"] for each in read_page(file, count=200).calls]
    assert "c99" in [each["call_id"] for each in read_calls(file, 200)]
    assert read_outline(file).tools == ("write_file",) or "call" in damaged
