"""Where long results are kept, and what is in them."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import BaseModel

from handrail import Media, PluginError, Tool, ToolContext, tool
from handrail.api.result import ToolResult
from handrail.artifacts.kind_detection import detect_kind
from handrail.artifacts.queries import ArtifactQuery, artifact_query
from handrail.artifacts.store import Artifact, ArtifactStore, TextArtifact
from handrail.testing import open_test_session

LONG = "".join(f"{n}\n" for n in range(20_000))


def returning(value: Any, **declared: Any) -> Tool:
    @tool(name="give", description="Give it.", **declared)
    async def give() -> Any:
        return value

    return give


async def given(value: Any, **declared: Any) -> tuple[ToolResult, bytes | None]:
    """The result, and what its artifact holds."""
    async with open_test_session(tools=[returning(value, **declared)]) as session:
        result = await session.call("give")
        path = result.get("artifact", {}).get("path")
        return result, Path(path).read_bytes() if path else None


class Row(BaseModel):
    """A row."""

    n: int
    name: str


# What handlers return


async def test_a_model_gives_its_keys() -> None:
    result, kept = await given(Row(n=1, name="a"))
    assert (result["n"], result["name"], kept) == (1, "a", None)


async def test_short_bytes_that_are_text_are_shown_as_text() -> None:
    result, kept = await given("zwölf".encode())
    assert (result["content"], kept) == ("zwölf", None)


async def test_bytes_that_are_no_text_are_an_artifact_of_their_own_kind() -> None:
    result, kept = await given(b"\x89PNG\x00\xff")
    assert ("content" in result, result["artifact"]["kind"], kept) == (False, "binary", b"\x89PNG\x00\xff")


@pytest.mark.parametrize(
    ("value", "declared"),
    [
        pytest.param(LONG, {}, id="text"),
        pytest.param(LONG.encode(), {}, id="bytes"),
        pytest.param({"content": LONG}, {}, id="mapping"),
        pytest.param({"rows": [{"deep": LONG}]}, {}, id="nested"),
    ],
)
async def test_what_is_too_long_is_kept_whole_and_shown_as_head_and_tail(value: Any, declared: Any) -> None:
    result, kept = await given(value, **declared)
    assert kept == LONG.encode()
    wire = {key: result["artifact"][key] for key in ("id", "kind", "bytes", "lines")}
    assert wire == {"id": "a1", "kind": "text", "bytes": len(LONG), "lines": 20_000}
    shown = result["content"] if "content" in result else result["rows"][0]["deep"]
    assert shown.startswith("0\n1\n")
    assert "bytes left out" in shown
    assert shown.rstrip().endswith("19999")
    assert len(shown) < 52_000


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        pytest.param("[1]", b"[1]", id="text"),
        pytest.param(b"[1]", b"[1]", id="bytes"),
        pytest.param({"content": "[1]", "more": 1}, b"[1]", id="content-of-a-mapping"),
        pytest.param({"n": 1}, b'{"n": 1}', id="mapping"),
        pytest.param(Row(n=1, name="a"), b'{"n": 1, "name": "a"}', id="model"),
    ],
)
async def test_a_tool_that_declares_a_kind_always_yields_an_artifact(value: Any, kept: bytes) -> None:
    result, held = await given(value, artifact="json")
    assert (result["artifact"]["kind"], held) == ("json", kept)


async def test_media_pass_through_whatever_kind_is_declared() -> None:
    picture = Media("image", "image/png", data=b"x")
    result, kept = await given([picture], artifact="json")
    assert (result["media"], kept) == ([picture], None)


async def test_a_failure_is_no_artifact() -> None:
    result, kept = await given({"status": "error", "note": "no"}, artifact="json")
    assert (result.status, kept) == ("error", None)


async def test_without_room_the_result_still_shows_head_and_tail() -> None:
    async with open_test_session(tools=[returning(LONG)]) as session:
        folder = session.runtime.places.artifacts
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.symlink_to("/dev/full")
        result = await session.call("give")
    assert result.ok
    assert "bytes left out" in result["content"]
    assert "could not be kept" in result["note"]
    assert "artifact" not in result


KEEPING = """
import sys
from pathlib import Path
from handrail.artifacts.store import ArtifactStore
artifacts = ArtifactStore(Path(sys.argv[1]))
try:
    artifacts.keep("x" * 4_000_000)
except OSError as exc:
    print(exc.strerror)
artifacts.close()
print(len(artifacts), [path.name for path in Path(sys.argv[1]).iterdir()])
"""


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path) -> None:
    disk = ["bwrap", "--dev-bind", "/", "/", "--size", "2000000", "--tmpfs", str(tmp_path)]
    keep = [sys.executable, "-c", KEEPING, str(tmp_path / "held")]
    told = subprocess.run([*disk, "--", *keep], capture_output=True, text=True, check=True)
    assert told.stdout == "No space left on device\n0 ['.lock']\n"


# Declarations


@pytest.mark.parametrize("wrong", ["pdf", TextArtifact, 1])
def test_a_declared_kind_must_be_one(wrong: Any) -> None:
    with pytest.raises(PluginError, match="artifact is"):
        returning("", artifact=wrong)


class Log(TextArtifact):
    """A log, which can be asked for its errors."""

    kind = "log"


@artifact_query("Errors of a log")
def artifact_log_errors(artifact: Log, most: int = 5) -> dict[str, Any]:
    """The errors in a log."""
    with artifact.open() as file:
        found = [line for line in file.read().decode().splitlines() if "ERROR" in line]
    return {"errors": found[:most]}


class Queried(Log):
    """The same, with its own query."""

    queries: ClassVar[tuple[ArtifactQuery, ...]] = (artifact_log_errors,)


async def test_a_class_of_artifacts_brings_its_own_queries() -> None:
    async with open_test_session(tools=[returning("ok\nERROR a\x1b[1m\nERROR b", artifact=lambda: Queried)]) as session:
        kept = await session.call("give")
        assert kept["artifact"]["kind"] == "log"
        result = await session.call("artifact_log_errors", {"artifact": "a1", "most": 1})
        assert result["errors"] == ["ERROR a"]
        assert (await session.call("artifact_grep", {"artifact": "a1", "pattern": "ok"})).ok


async def test_a_function_that_names_no_class_fails_the_call() -> None:
    result, _ = await given("x", artifact=lambda: "json")
    assert result.error_code == "downstream_error"


def test_a_query_takes_an_artifact() -> None:
    def ask(most: int) -> dict[str, Any]:
        return {"most": most}

    with pytest.raises(PluginError, match="takes no artifact"):
        artifact_query("Ask")(ask)


# Kinds


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param('{"a": [1, 2]}', "json", id="object"),
        pytest.param(" [1,\n2]\n", "json", id="array"),
        pytest.param('{"a": 1}\n{"a": 2}\n', "jsonl", id="json-lines"),
        pytest.param('{"a": 1}\n', "json", id="one-line-is-json"),
        pytest.param("{a: 1}", "text", id="json5"),
        pytest.param("[INFO] started\n[INFO] done]", "text", id="log-in-brackets"),
        pytest.param("# Title\n\nText [l](u).\n", "markdown", id="markdown"),
        pytest.param("---\ntitle: a\n---\ntext\n", "markdown", id="front-matter"),
        pytest.param("# a comment\nkey = 1\n", "text", id="comment"),
        pytest.param('<?xml version="1.0"?><a/>', "xml", id="xml"),
        pytest.param("<a><b/></a>\n", "xml", id="xml-without-declaration"),
        pytest.param("<unknown> error\n", "text", id="angle-bracket"),
        pytest.param("---\na: 1\nb:\n  - 2\n", "yaml", id="yaml"),
        pytest.param("a,b\n1,2\n3,4\n", "csv", id="csv"),
        pytest.param('a;b\n1;"x;y"\n3;4\n', "csv", id="semicolons"),
        pytest.param("Well, yes\nno, no\nyes, no, no\n", "text", id="prose"),
        pytest.param("plain\n", "text", id="text"),
        pytest.param("", "text", id="empty"),
        pytest.param("\ufeff[1]", "json", id="byte-order-mark"),
        pytest.param("a\0b", "binary", id="nul"),
    ],
)
def test_a_kind_is_found_where_nothing_is_declared(text: str, kind: str) -> None:
    data = text.encode()
    assert detect_kind(data, data[-1_024:], whole=True) == kind


def test_a_kind_is_found_by_the_beginning_and_the_end_of_a_large_file() -> None:
    whole = json.dumps([{"n": n} for n in range(20_000)]).encode()
    lines = b"".join(b'{"n": %d}\n' % n for n in range(20_000))
    assert detect_kind(whole[:65_536], whole[-1_024:], whole=False) == "json"
    assert detect_kind(lines[:65_536], lines[-1_024:], whole=False) == "jsonl"
    assert detect_kind(b"\xff\xfe" * 30_000, b"", whole=True) == "binary"


# Files


def test_files_and_folders_are_their_owners_only(tmp_path: Path) -> None:
    artifacts = ArtifactStore(tmp_path / "cache" / "held")
    artifacts.keep("text")
    artifacts.store(b"x", ".png")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "cache").rglob("*")}
    assert modes == {0o700, 0o600}
    artifacts.close()


def test_a_folder_that_is_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "held").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="held"):
        ArtifactStore(tmp_path / "held").keep("text")
    assert list((tmp_path / "elsewhere").iterdir()) == []


async def test_a_tool_may_write_an_artifact_while_it_works() -> None:
    @tool()
    async def stream(context: ToolContext) -> dict[str, Any]:
        """Write much."""
        spool = context.artifacts.create("csv")
        for n in range(3):
            spool.write(b"%d,x\n" % n)
        return {"artifact": spool.wire()}

    async with open_test_session(tools=[stream]) as session:
        result = await session.call("stream")
        held = session.artifacts.get("a1")
        assert result["artifact"]["kind"] == "csv"
        assert held is not None
        assert held.source == result.source


# Media


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: Media("image", "image/png", data=b"bytes"), id="data"),
        pytest.param(lambda path: Media("image", "image/png", path=path), id="path"),
        pytest.param(lambda path: Media("image", "image/png", open=lambda: b"bytes"), id="function"),
        pytest.param(lambda path: Media("image", "image/png", open=lambda: path.open("rb")), id="stream"),
    ],
)
async def test_the_bytes_of_media_are_read_when_they_are_wanted_and_again(
    tmp_path: Path, make: Callable[[Path], Media]
) -> None:
    path = tmp_path / "a.png"
    media = make(path)
    path.write_bytes(b"bytes")
    for _ in range(2):
        assert await media.read() == b"bytes"
        assert await media.read(4) is None
        assert media.wire().get("data_b64", "Ynl0ZXM=") == "Ynl0ZXM="


async def test_nothing_reads_media_before_the_edge() -> None:
    def fail() -> bytes:
        raise AssertionError("it was read")

    result, _ = await given(Media("video", "video/mp4", open=fail, stash={"transcript": "a\u202eb"}))
    (media,) = result["media"]
    assert media.words == "transcript: a⟦U+202E⟧b"


def test_a_binary_artifact_has_no_lines(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"\0\n")
    wire = Artifact("a1", tmp_path / "a", limit=1_000).wire()
    assert wire == {"id": "a1", "kind": "binary", "path": str(tmp_path / "a"), "bytes": 2}
