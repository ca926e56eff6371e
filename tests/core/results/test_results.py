"""What becomes of a tool's result before anybody is shown it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from handrail import Media, Read, Send, Tool, ToolResult, tool
from handrail.api.events import Output
from handrail.audit.writer import verify_audit
from handrail.errors import HandrailError
from handrail.testing import open_test_session

LINK = "[x](https://a.example/?d=1)"


async def given(value: Any, settings: Mapping[str, Any] | None = None, **declared: Any) -> ToolResult:
    @tool(name="give", description="Give it.", **declared)
    async def give() -> Any:
        return value

    async with open_test_session(tools=[give], settings=settings) as session:
        result = await session.call("give")
        assert session.history.last()[-1].result.get("content") == result.get("content")
        return result


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param("\x1b[31mred", {"content": "red", "removed": {"ansi": 1}}, id="text"),
        pytest.param({"a": [{"b": ("x\u200by",)}]}, {"a": [{"b": ["xy"]}], "removed": {"zero_width": 1}}, id="nested"),
        pytest.param({"a": {"k\x1bc": 1}}, {"a": {"k": 1}, "removed": {"ansi": 1}}, id="keys"),
        pytest.param({"removed": ["a.txt"], "b": "\x07"}, {"removed": ["a.txt"], "b": ""}, id="a-key-of-the-tools-own"),
        pytest.param({"image_b64": "\x1bAAAA"}, {"image_b64": "\x1bAAAA"}, id="pictures-stay"),
        pytest.param(
            {"n": 1, "ok": True, "x": None, "f": 0.5}, {"n": 1, "ok": True, "x": None, "f": 0.5}, id="numbers"
        ),
    ],
)
async def test_every_text_is_cleaned_wherever_it_stands(value: Any, expected: Mapping[str, Any]) -> None:
    result = await given(value)
    assert {**result, "duration_ms": 0} == {"status": "success", "duration_ms": 0, **expected}


async def test_clean_values_are_the_very_same() -> None:
    value = {"rows": [{"name": "a"}, {"name": "é"}]}
    assert (await given(value))["rows"] is value["rows"]


async def test_media_keep_their_bytes_and_their_text_is_cleaned() -> None:
    (media,) = (await given(Media("image", "image/png", b"\x1b\x00", text="a\u202eb")))["media"]
    assert (media.data, media.text) == (b"\x1b\x00", "a⟦U+202E⟧b")


async def test_trusted_tools_are_taken_at_their_word() -> None:
    assert (await given("\x1b[31mred", trusted=True))["content"] == "\x1b[31mred"


async def test_links_are_made_inert_in_what_a_third_party_wrote_only() -> None:
    allow = {"policy": {"rules": [{"tool": "give", "decision": "allow"}]}}
    assert (await given(LINK, allow, effects=[Send("network")]))["content"] == LINK.replace("](", "] (")
    assert (await given(LINK, effects=[Read("screen")]))["content"] == LINK.replace("](", "] (")
    assert (await given(LINK, effects=[Read("session")]))["content"] == LINK


async def test_errors_are_cleaned_too() -> None:
    @tool(name="fail", description="Fail.")
    async def fail() -> Any:
        return {"status": "error", "note": "\x1b]0;x\x07no"}

    async with open_test_session(tools=[fail]) as session:
        result = await session.call("fail")
    assert result["error"]["message"] == "no"


async def test_a_long_text_is_shown_as_head_and_tail_and_kept_whole() -> None:
    @tool(name="long", description="Long.")
    async def long() -> str:
        return "é" * 1_000_000

    async with open_test_session(tools=[long], settings={"output": {"max_bytes": 2_048}}) as session:
        result = await session.call("long")
        assert len(result["content"].encode()) <= 2_048 + 256
        assert result["removed"]["truncated"] > 1_900_000
        assert result["artifact"]["bytes"] == 2_000_000


async def test_a_text_that_its_tool_has_measured_may_be_longer() -> None:
    assert "removed" not in await given({"stdout": "x" * 150_000, "truncated": False})
    assert (await given({"stdout": "x" * 250_000, "truncated": True}))["removed"]["truncated"]


async def test_a_value_that_holds_itself_is_shown_as_far_as_it_goes() -> None:
    value: dict[str, Any] = {"a": "\x1b[1mb"}
    value["self"] = [value, value]
    result = await given(value)
    assert result["a"] == "b"
    assert result["self"][0]["self"] == "[left out: nested too deep]"


async def test_output_on_the_way_is_cleaned() -> None:
    from handrail import ToolContext

    @tool(name="tell", description="Tell.")
    async def tell(context: ToolContext) -> None:
        context.output("stdout", "\x1b[31mred\x1b]0;")

    heard: list[str] = []
    async with open_test_session(tools=[tell]) as session:
        session.bus.subscribe(lambda event: heard.append(event.text) if isinstance(event, Output) else None)
        await session.call("tell")
    assert heard == ["red"]


async def test_history_and_audit_hold_what_was_shown(tmp_path: Any) -> None:
    @tool(name="give", description="Give it.")
    async def give() -> str:
        return "a\x1b[8mhidden\x1b[0mb"

    async with open_test_session(tools=[give], folder=tmp_path) as session:
        await session.call("give")
        path = session.runtime.places.audit / f"{session.id}.jsonl"
        assert "hidden" not in session.history.last()[-1].summary
    assert "hidden" not in path.read_text()
    assert verify_audit(path).ok


def holding(many: Any) -> Tool:
    @tool()
    async def give() -> dict[str, Any]:
        """Give many values."""
        return {"first": "x", "many": many, "last": 1}

    return give


@pytest.mark.parametrize(
    "many",
    [
        pytest.param([{"name": f"file {at}", "size": at} for at in range(100_000)], id="a-list"),
        pytest.param({f"file {at}": at for at in range(100_000)}, id="a-mapping"),
        pytest.param([["x"] * 1_000] * 200, id="lists-of-lists"),
        pytest.param([{"deep": [None] * 300_000}], id="nothing-many-times"),
    ],
)
async def test_a_result_of_many_short_values_has_an_end_and_is_kept_whole(many: Any) -> None:
    async with open_test_session(tools=[holding(many)]) as session:
        result = await session.call("give")
        shown = json.dumps(result.wire())
        kept = json.loads(Path(result["artifact"]["path"]).read_text(encoding="utf-8"))
    assert (result.status, result["first"]) == ("success", "x")
    assert len(shown) < 20 * 51_200
    assert "values are left out" in result["note"]
    assert (kept["many"], result["artifact"]["kind"]) == (many, "json")


async def test_many_keys_of_a_result_have_an_end_too() -> None:
    @tool()
    async def give() -> dict[str, Any]:
        """Give many keys."""
        return {f"key {at}": "x" * 40 for at in range(100_000)}

    async with open_test_session(tools=[give]) as session:
        result = await session.call("give")
    assert (result.ok, "key 1" in result, len(result) < 20_000) == (True, True, True)


def every(kind: type[HandrailError]) -> Iterator[type[HandrailError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from every(below)


def test_the_page_names_every_code_under_its_status_and_whether_to_try_again() -> None:
    page = (Path(__file__).parents[3] / "docs" / "results.md").read_text().split("## Failures")[1].split("\n## ")[0]
    told: set[tuple[str, str, bool]] = set()
    status = ""
    for row in re.findall(r"^\| (?:`(\w+)` )?\| (`.+?) \| .+ \|(?: (yes) )? ?\|$", page, re.MULTILINE):
        status = row[0] or status
        told |= {(status, code, bool(row[2])) for code in re.findall(r"`(\w+)`", row[1])}
    ours = [kind for kind in every(HandrailError) if kind.__module__ == "handrail.errors"]
    assert told == {(kind.status, kind.code, kind.retryable) for kind in ours}
