"""Downloads over real sockets, from a server on this machine that does what servers do."""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import json
import os
import stat
import sys
import time
import zlib
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.plugins.system.serving import (
    ETAG,
    Answer,
    Served,
    file,
    head,
    in_turn,
    ranged,
    says,
    serving,
    slowly,
    then_silence,
    to_this_machine,
)
from tests.web_server import Quiet, serving as listening

import handrail_system.hooks
from handrail import Invocation, Session, Tool, ToolResult, hookimpl
from handrail.api.approval import yes
from handrail.api.events import Event, Progress
from handrail.api.verdict import Decision
from handrail.testing import ScriptedConfirmer, ToolContract, open_test_session
from handrail_system import partial_downloads
from handrail_system.config import SystemConfig
from handrail_system.download import create_download_tool, download_file

CONTENT = os.urandom(300_000)


class Plugin:
    """The plugin, with a client that reaches this machine."""

    @hookimpl
    def handrail_register_tools(self) -> list[Tool]:
        return [create_download_tool(to_this_machine)]

    @hookimpl
    def handrail_register_config(self) -> type[SystemConfig]:
        return SystemConfig


@asynccontextmanager
async def opened(folder: Path, **config: object) -> AsyncGenerator[Session, None]:
    settings = {"plugins": {"system": config}}
    async with open_test_session(
        plugins={"system": Plugin()}, folder=folder, settings=settings, confirm=yes
    ) as session:
        yield session


@pytest.fixture
async def server() -> AsyncGenerator[Served, None]:
    async with serving() as served:
        yield served


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    async with opened(tmp_path, download_silence=1.0) as session:
        yield session


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


def kept(folder: Path) -> list[Path]:
    """The parts that are kept."""
    return sorted((folder / "state/cache/downloads").glob("*.part"))


async def get(session: Session, url: str, path: str = "f.bin", **args: Any) -> ToolResult:
    return await session.call("download_file", {"url": url, "path": path, **args})


def succeeded(result: ToolResult) -> ToolResult:
    assert result["status"] == "success", result
    return result


def failed(result: ToolResult, told: str, *, status: str = "error") -> ToolResult:
    assert result["status"] == status, result
    assert told in result["error"]["message"]
    return result


class Files(Quiet, SimpleHTTPRequestHandler):
    """Serves the files of a folder."""


class TestDownloadFile(ToolContract):
    @pytest.fixture
    def served(self, tmp_path: Path) -> Iterator[str]:
        """The address of a file, on a server that needs no loop."""
        (tmp_path / "served").write_bytes(CONTENT)
        with listening(partial(Files, directory=str(tmp_path))) as port:
            yield f"http://good.example:{port}/served"

    @pytest.fixture
    def tool(self) -> Tool:
        return Plugin().handrail_register_tools()[0]

    @pytest.fixture
    def options(self) -> Mapping[str, Any]:
        return {"plugins": {"system": Plugin()}}

    @pytest.fixture
    def good_args(self, served: str) -> Mapping[str, Any]:
        return {"url": served, "path": "f.bin"}

    @pytest.fixture
    def bad_args(self, served: str) -> Sequence[Mapping[str, Any]]:
        return [
            {"url": served, "path": "."},
            {"url": served, "path": "no/such/folder/f"},
            {"url": "gopher://good.example/", "path": "f"},
            {"url": served, "path": "f", "sha256": "short"},
        ]


# What a good server gives


async def test_a_file_is_put_in_its_place_with_its_checksum(session: Session, server: Served, work: Path) -> None:
    server.answers["/f"] = file(CONTENT, content_type="application/zip")
    result = succeeded(await get(session, server.url("/f")))
    assert (work / "f.bin").read_bytes() == CONTENT
    assert result["path"] == str(work / "f.bin")
    assert (result["size_bytes"], result["sha256"]) == (len(CONTENT), hashlib.sha256(CONTENT).hexdigest())
    assert result["content_type"] == "application/zip"
    assert "note" not in result


@pytest.mark.parametrize("content", [b"", b"x"])
async def test_an_empty_file_is_a_file(session: Session, server: Served, work: Path, content: bytes) -> None:
    server.answers["/f"] = file(content, etag=ETAG)
    assert succeeded(await get(session, server.url("/f")))["size_bytes"] == len(content)
    assert (work / "f.bin").read_bytes() == content


async def test_nothing_else_is_left_behind(session: Session, server: Served, work: Path, tmp_path: Path) -> None:
    server.answers["/f"] = ranged(CONTENT)
    succeeded(await get(session, server.url("/f")))
    assert [entry.name for entry in work.iterdir()] == ["f.bin"]
    assert list((tmp_path / "state/cache/downloads").iterdir()) == []


async def test_a_file_in_chunks_is_whole(session: Session, server: Served, work: Path) -> None:
    pieces = b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in (CONTENT[:1000], CONTENT[1000:]))
    server.answers["/f"] = says(head(transfer_encoding="chunked") + pieces + b"0\r\n\r\n")
    assert "note" not in succeeded(await get(session, server.url("/f")))
    assert (work / "f.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("packed", "way"),
    [
        (gzip.compress(CONTENT), "gzip"),
        (gzip.compress(CONTENT[:9]) + gzip.compress(CONTENT[9:]), "X-GZIP"),
        (zlib.compress(CONTENT), "deflate"),
        (zlib.compress(CONTENT, wbits=-15), "deflate"),
    ],
)
async def test_what_a_server_packs_for_the_way_is_unpacked(
    session: Session, server: Served, work: Path, packed: bytes, way: str
) -> None:
    server.answers["/f"] = file(packed, content_encoding=way, etag=ETAG)
    result = succeeded(await get(session, server.url("/f")))
    assert (work / "f.bin").read_bytes() == CONTENT
    assert result["size_bytes"] == len(CONTENT)
    assert server.asked[0].headers["accept-encoding"] == "identity"


async def test_an_archive_is_kept_as_it_is(session: Session, server: Served, work: Path) -> None:
    packed = gzip.compress(CONTENT)
    server.answers["/f.gz"] = file(packed, content_type="application/gzip")
    succeeded(await get(session, server.url("/f.gz")))
    assert (work / "f.bin").read_bytes() == packed


async def test_redirects_are_followed_and_the_last_address_is_told(session: Session, server: Served) -> None:
    server.answers["/a"] = file(b"", 302, location="/b")
    server.answers["/b"] = file(CONTENT)
    assert succeeded(await get(session, server.url("/a")))["url"] == server.url("/b")


async def test_a_file_that_was_there_is_replaced_as_a_whole(session: Session, server: Served, work: Path) -> None:
    (work / "f.bin").write_bytes(b"old" * 200_000)
    server.answers["/f"] = file(CONTENT)
    succeeded(await get(session, server.url("/f")))
    assert (work / "f.bin").read_bytes() == CONTENT


async def test_a_file_is_not_executable_and_knows_where_it_came_from(
    session: Session, server: Served, work: Path
) -> None:
    server.answers["/f.sh?token=SECRET"] = file(b"#!/bin/sh\n", x_mode="755")
    url = server.url("/f.sh?token=SECRET").replace("http://", "http://user:SECRET@")
    succeeded(await get(session, url, "f.sh"))
    assert not (work / "f.sh").stat().st_mode & (stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    with suppress(OSError):
        os.setxattr(work / "f.sh", "user.probe", b"1")
        assert os.getxattr(work / "f.sh", "user.xdg.origin.url") == server.url("/f.sh").encode()


async def test_a_program_is_not_replaced(session: Session, server: Served, work: Path) -> None:
    (work / "tool").write_text("#!/bin/sh\n")
    (work / "tool").chmod(0o755)
    failed(await get(session, server.url("/f"), "tool"), "may be executed")
    assert (work / "tool").read_text() == "#!/bin/sh\n"
    assert server.asked == []


async def test_a_link_that_is_put_in_the_way_meanwhile_is_not_written_through(
    session: Session, server: Served, work: Path, tmp_path: Path
) -> None:
    (tmp_path / "precious").write_text("precious")

    async def exchange(asked: Any, writer: asyncio.StreamWriter) -> None:
        (work / "f.bin").symlink_to(tmp_path / "precious")
        await file(CONTENT)(asked, writer)

    server.answers["/f"] = exchange
    failed(await get(session, server.url("/f")), "has become a link", status="denied")
    assert (tmp_path / "precious").read_text() == "precious"


async def test_a_link_in_the_workspace_stays_and_what_it_leads_to_is_replaced(
    session: Session, server: Served, work: Path
) -> None:
    (work / "real.bin").write_text("old")
    (work / "f.bin").symlink_to("real.bin")
    server.answers["/f"] = file(CONTENT)
    assert succeeded(await get(session, server.url("/f")))["path"] == str(work / "real.bin")
    assert (work / "f.bin").is_symlink()
    assert (work / "real.bin").read_bytes() == CONTENT


async def test_progress_is_told(session: Session, server: Served) -> None:
    heard: list[Event] = []
    session.bus.subscribe(heard.append)
    server.answers["/f"] = slowly(head(content_length=len(CONTENT)) + CONTENT, size=60_000, pause=0.1)
    succeeded(await get(session, server.url("/f")))
    told = [event for event in heard if isinstance(event, Progress)]
    fractions = [event.fraction for event in told if event.fraction is not None]
    assert len(fractions) >= 2
    assert fractions == sorted(fractions)
    assert told[0].message.endswith(" of 300.0 kB")


# Checksums


@pytest.mark.parametrize("spelled", [str.lower, str.upper])
async def test_the_right_checksum_is_taken(session: Session, server: Served, spelled: Callable[[str], str]) -> None:
    server.answers["/f"] = file(CONTENT)
    succeeded(await get(session, server.url("/f"), sha256=spelled(hashlib.sha256(CONTENT).hexdigest())))


async def test_a_file_with_another_checksum_is_not_kept(
    session: Session, server: Served, work: Path, tmp_path: Path
) -> None:
    (work / "f.bin").write_text("old")
    server.answers["/f"] = ranged(CONTENT)
    result = failed(await get(session, server.url("/f"), sha256="0" * 64), "has the checksum")
    assert result["error"]["details"]["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert (work / "f.bin").read_text() == "old"
    assert kept(tmp_path) == []


# What servers do wrong

BROKEN: Mapping[str, tuple[Answer, str]] = {
    "404": (file(b"gone", 404), "answered 404 (Not Found)"),
    "403": (file(b"no", 403), "answered 403 (Forbidden)"),
    "500": (file(b"oh", 500), "answered 500 (Internal Server Error)"),
    "unknown-status": (file(b"oh", 599), "answered 599"),
    "nothing": (says(head(204)), "answered 204 (No Content)"),
    "not-modified": (says(head(304)), "answered 304"),
    "redirect-to-nowhere": (says(head(302)), "answered 302"),
    "a-part-unasked": (file(b"part", 206, content_range="bytes 0-3/9"), "answered with a part"),
    "length-too-long": (says(head(content_length=500) + b"short"), "could not be fetched"),
    "chunks-that-end-early": (says(head(transfer_encoding="chunked") + b"ff\r\nshort"), "could not be fetched"),
    "chunks-that-are-none": (says(head(transfer_encoding="chunked") + b"zz\r\nshort"), "could not be fetched"),
    "closed-at-once": (says(b""), "could not be fetched"),
    "no-http": (says(b"SSH-2.0-OpenSSH_9.2\r\n"), "could not be fetched"),
    "length-of-the-moon": (says(head(content_length=9**20) + b"short"), "at most 500,000,000 are downloaded"),
    "length-that-is-none": (says(head(content_length="many") + b"short"), "could not be fetched"),
    "two-lengths": (says(head(content_length=5)[:-2] + b"content-length: 6\r\n\r\nhello"), "could not be fetched"),
    "negative-length": (says(head(content_length=-5) + b"hello"), "could not be fetched"),
    "head-without-end": (says(b"HTTP/1.1 200 OK\r\n" + b"x: " + b"y" * 300_000), "could not be fetched"),
    "gzip-that-is-none": (file(b"not packed", content_encoding="gzip"), "cannot be unpacked"),
    "gzip-without-its-end": (file(gzip.compress(CONTENT)[:-9], content_encoding="gzip"), "the end of what is packed"),
    "deflate-without-its-end": (file(zlib.compress(CONTENT)[:-9], content_encoding="deflate"), "the end of what is"),
    "packed-otherwise": (file(b"\x8b\x02\x80", content_encoding="br"), "packed by 'br', which was not asked for"),
    "endless-redirects": (file(b"", 302, location="/f"), "leads on more than"),
}


@pytest.mark.parametrize(("answer", "told"), BROKEN.values(), ids=BROKEN)
async def test_what_is_no_file_is_a_clear_error_and_leaves_nothing(
    session: Session, server: Served, work: Path, tmp_path: Path, answer: Answer, told: str
) -> None:
    server.answers["/f"] = answer
    failed(await get(session, server.url("/f")), told)
    assert list(work.iterdir()) == []
    assert kept(tmp_path) == []


@pytest.mark.parametrize(("status", "retryable"), [(404, False), (401, False), (429, True), (503, True)])
async def test_what_may_pass_is_told_from_what_will_not(
    session: Session, server: Served, status: int, retryable: bool
) -> None:
    server.answers["/f"] = file(b"no", status, retry_after=17)
    error = failed(await get(session, server.url("/f")), str(status))["error"]
    assert error["retryable"] is retryable
    assert error["details"]["http_status"] == status
    assert ("17 s" in str(error)) is retryable


async def test_more_than_was_announced_is_not_taken(session: Session, server: Served, work: Path) -> None:
    server.answers["/f"] = says(head(content_length=5) + b"hello and more")
    assert succeeded(await get(session, server.url("/f")))["size_bytes"] == 5
    assert (work / "f.bin").read_bytes() == b"hello"


async def test_a_file_of_which_nobody_said_the_length_is_said_to_be_that(session: Session, server: Served) -> None:
    server.answers["/f"] = says(head() + b"hello")
    result = succeeded(await get(session, server.url("/f")))
    assert "did not say how long" in result["note"]


async def test_a_server_that_is_not_there_is_told_and_may_be_tried_again(session: Session) -> None:
    result = failed(await get(session, "http://good.example:1/f"), "could not be fetched")
    assert result["error"]["retryable"]


# Too large, too slow


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(file(bytes(2_001)), id="says-so"),
        pytest.param(says(head() + bytes(2_001)), id="does-not-say-so"),
        pytest.param(file(gzip.compress(bytes(5_000_000)), content_encoding="gzip"), id="unpacked"),
        pytest.param(ranged(bytes(2_001)), id="can-be-gone-on-with"),
    ],
)
async def test_a_file_that_is_too_large_is_given_up(tmp_path: Path, server: Served, work: Path, answer: Answer) -> None:
    server.answers["/f"] = answer
    async with opened(tmp_path, download_max_bytes=2_000) as session:
        result = await get(session, server.url("/f"))
    assert result["status"] == "error"
    assert "2,000" in result["error"]["message"]
    assert list(work.iterdir()) == []
    assert kept(tmp_path) == []


async def test_a_file_of_just_the_limit_is_taken(tmp_path: Path, server: Served) -> None:
    server.answers["/f"] = file(bytes(2_000))
    async with opened(tmp_path, download_max_bytes=2_000) as session:
        succeeded(await get(session, server.url("/f")))


@pytest.mark.parametrize(
    ("begin", "config"),
    [
        pytest.param(b"", {"download_silence": 0.3}, id="nothing-at-all"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", {"download_silence": 0.3}, id="half-a-head"),
        pytest.param(head(content_length=99) + b"some", {"download_silence": 0.3}, id="half-a-file"),
        pytest.param(head(content_length=99) + b"some", {"download_timeout": 0.3}, id="in-all"),
    ],
)
async def test_a_server_that_falls_silent_is_not_waited_for(
    tmp_path: Path, server: Served, work: Path, begin: bytes, config: Mapping[str, float]
) -> None:
    server.answers["/f"] = then_silence(begin, server)
    async with opened(tmp_path, **config) as session:
        with anyio.fail_after(15):
            result = await get(session, server.url("/f"))
    assert result["status"] in ("error", "timeout")
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(slowly(head(content_length=99_999) + bytes(99_999), size=300, pause=0.1), id="file"),
        pytest.param(slowly(head(x_padding="y" * 9_999, content_length=0), size=2, pause=0.1), id="head"),
        pytest.param(slowly(b"HTTP/1.1 100 Continue\r\n\r\n" * 500, size=25, pause=0.1), id="promises"),
    ],
)
async def test_a_server_that_drips_is_given_up(tmp_path: Path, server: Served, work: Path, answer: Answer) -> None:
    server.answers["/f"] = answer
    async with opened(tmp_path, download_silence=0.6, download_slowest=10_000) as session:
        with anyio.fail_after(15):
            result = await get(session, server.url("/f"))
    assert result["status"] in ("error", "timeout")
    assert result["error"]["retryable"]
    assert list(work.iterdir()) == []


# Going on


async def test_what_broke_off_is_gone_on_with_in_the_same_call(session: Session, server: Served, work: Path) -> None:
    server.answers["/f"] = in_turn(ranged(CONTENT, stop_after=100_000), ranged(CONTENT))
    result = succeeded(await get(session, server.url("/f")))
    assert (work / "f.bin").read_bytes() == CONTENT
    assert [asked.start for asked in server.asked] == [None, 100_000]
    assert server.asked[1].headers["if-range"] == ETAG
    assert "resumed_from" not in result


async def test_what_broke_off_is_gone_on_with_by_the_next_call(
    session: Session, server: Served, work: Path, tmp_path: Path
) -> None:
    server.answers["/f"] = in_turn(ranged(CONTENT, stop_after=100_000), says(b""), ranged(CONTENT))
    result = await get(session, server.url("/f"))
    assert "100,000 bytes are kept" in str(result["error"])
    assert list(work.iterdir()) == []
    (part,) = kept(tmp_path)
    assert stat.S_IMODE(part.stat().st_mode) == 0o600
    result = succeeded(await get(session, server.url("/f")))
    assert result["resumed_from"] == 100_000
    assert result["sha256"] == hashlib.sha256(CONTENT).hexdigest()
    assert (work / "f.bin").read_bytes() == CONTENT
    assert kept(tmp_path) == []


async def broken_off(session: Session, server: Served) -> None:
    """The first 100,000 bytes have come, and the server was gone."""
    server.answers["/f"] = in_turn(ranged(CONTENT, stop_after=100_000), says(b""))
    assert (await get(session, server.url("/f")))["status"] == "error"


OTHER = bytes(reversed(CONTENT))
LYING = {
    "another-version": ranged(OTHER, etag='"v2"'),
    "no-ranges-any-more": file(OTHER),
    "a-part-of-another-version": in_turn(
        file(OTHER[100_000:], 206, content_range="bytes 100000-299999/300000", etag='"v2"'), file(OTHER)
    ),
    "a-part-of-another-size": in_turn(
        file(OTHER[100_000:], 206, content_range="bytes 100000-299999/300001"), file(OTHER)
    ),
    "another-part": in_turn(file(OTHER[5:], 206, content_range="bytes 5-299999/300000"), file(OTHER)),
    "no-word-of-which-part": in_turn(file(OTHER[5:], 206), file(OTHER)),
    "several-parts": in_turn(file(b"--x", 206, content_type="multipart/byteranges; boundary=x"), file(OTHER)),
    "not-satisfiable": in_turn(file(b"", 416, content_range="bytes */300000"), file(OTHER)),
    "a-packed-part": in_turn(
        file(
            gzip.compress(OTHER[100_000:]),
            206,
            content_encoding="gzip",
            content_range="bytes 100000-299999/300000",
            etag=ETAG,
        ),
        file(OTHER),
    ),
}


@pytest.mark.parametrize("answer", LYING.values(), ids=LYING)
async def test_what_does_not_go_on_is_begun_anew(session: Session, server: Served, work: Path, answer: Answer) -> None:
    await broken_off(session, server)
    server.answers["/f"] = answer
    result = succeeded(await get(session, server.url("/f")))
    assert (work / "f.bin").read_bytes() == OTHER
    assert "resumed_from" not in result


async def test_a_server_that_gives_little_at_a_time_is_asked_for_the_rest(
    session: Session, server: Served, work: Path
) -> None:
    await broken_off(session, server)
    rest = CONTENT[100_000:200_000]
    little = file(rest, 206, content_range="bytes 100000-199999/300000", etag=ETAG)
    server.answers["/f"] = in_turn(little, ranged(CONTENT))
    succeeded(await get(session, server.url("/f")))
    assert (work / "f.bin").read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("headers", "resumable"),
    [
        ({"etag": '"v1"'}, True),
        ({"etag": 'W/"v1"'}, False),
        ({"etag": '"v1"', "accept_ranges": "none"}, False),
        ({"etag": ""}, False),
        ({"last_modified": "Mon, 01 Jan 2024 00:00:00 GMT", "date": "Mon, 01 Jan 2024 00:00:09 GMT"}, True),
        ({"last_modified": "Mon, 01 Jan 2024 00:00:00 GMT", "date": "Mon, 01 Jan 2024 00:00:00 GMT"}, False),
        ({"last_modified": "Mon, 01 Jan 2024 00:00:00 GMT"}, False),
        ({"last_modified": "yesterday", "date": "today"}, False),
    ],
)
async def test_only_what_is_surely_the_same_file_is_gone_on_with(
    session: Session, server: Served, tmp_path: Path, headers: Mapping[str, str], resumable: bool
) -> None:
    begun = says(head(content_length=len(CONTENT), **headers) + CONTENT[:100_000])
    server.answers["/f"] = in_turn(begun, says(b"")) if resumable else begun
    assert (await get(session, server.url("/f")))["status"] == "error"
    assert len(kept(tmp_path)) == resumable
    server.answers["/f"] = file(CONTENT)
    succeeded(await get(session, server.url("/f")))
    assert (server.asked[-1].start is not None) is resumable


async def test_a_part_from_before_the_machine_went_down_does_not_count(
    session: Session, server: Served, tmp_path: Path
) -> None:
    await broken_off(session, server)
    note = kept(tmp_path)[0].with_suffix(".json")
    note.write_text(note.read_text().replace('"boot": "', '"boot": "other'))
    server.answers["/f"] = ranged(CONTENT)
    succeeded(await get(session, server.url("/f")))
    assert server.asked[-1].start is None


async def test_a_part_is_gone_on_with_for_the_same_address_and_place_only(
    session: Session, server: Served, work: Path
) -> None:
    await broken_off(session, server)
    server.answers["/f"] = server.answers["/g"] = ranged(CONTENT)
    succeeded(await get(session, server.url("/g")))
    succeeded(await get(session, server.url("/f"), "other.bin"))
    assert [asked.start for asked in server.asked[-2:]] == [None, None]


async def test_an_error_in_between_keeps_what_is_there_only_where_it_may_pass(
    session: Session, server: Served, tmp_path: Path
) -> None:
    await broken_off(session, server)
    server.answers["/f"] = file(b"", 503)
    await get(session, server.url("/f"))
    assert len(kept(tmp_path)) == 1
    server.answers["/f"] = file(b"", 404)
    await get(session, server.url("/f"))
    assert kept(tmp_path) == []


async def test_two_calls_for_one_file_do_not_mix(tmp_path: Path, server: Served, work: Path) -> None:
    data = head(content_length=len(CONTENT), etag=ETAG) + CONTENT
    server.answers["/f"] = slowly(data, size=100_000, pause=0.1)
    results: list[ToolResult] = []

    async def one() -> None:
        async with opened(tmp_path) as session:
            results.append(await get(session, server.url("/f")))

    async with anyio.create_task_group() as group:
        group.start_soon(one)
        group.start_soon(one)
    assert [succeeded(result)["size_bytes"] for result in results] == [len(CONTENT)] * 2
    assert (work / "f.bin").read_bytes() == CONTENT
    assert kept(tmp_path) == []


# Stopping


async def test_a_call_that_is_cancelled_leaves_the_place_as_it_was(
    session: Session, server: Served, work: Path, tmp_path: Path
) -> None:
    (work / "f.bin").write_text("old")
    server.answers["/f"] = then_silence(head(content_length=len(CONTENT), etag=ETAG) + CONTENT[:100_000], server)
    async with anyio.create_task_group() as group:
        results: list[ToolResult] = []

        async def call() -> None:
            results.append(await get(session, server.url("/f")))

        group.start_soon(call)
        with anyio.fail_after(30):
            while not any(part.stat().st_size for part in kept(tmp_path)):
                await anyio.sleep(0.01)
        session.cancel()
    assert results[0]["status"] == "cancelled"
    assert [entry.name for entry in work.iterdir()] == ["f.bin"]
    assert (work / "f.bin").read_text() == "old"
    server.answers["/f"] = ranged(CONTENT)
    assert succeeded(await get(session, server.url("/f")))["resumed_from"] > 0


async def test_a_call_that_is_cancelled_while_the_file_is_put_in_place_has_put_it_there_or_not(
    session: Session, server: Served, work: Path, tmp_path: Path
) -> None:
    content = bytes(40_000_000)
    server.answers["/f"] = ranged(content)

    def stop(event: Event) -> None:
        if isinstance(event, Progress) and "in place" in event.message:
            asyncio.get_running_loop().call_later(0.002, session.cancel)

    session.bus.subscribe(stop)
    result = await get(session, server.url("/f"))
    found = {entry.name: entry.stat().st_size for entry in work.iterdir()}
    assert (result["status"], found) in [("cancelled", {}), ("success", {"f.bin": len(content)})]
    await anyio.sleep(0.3)
    assert {entry.name: entry.stat().st_size for entry in work.iterdir()} == found


async def test_a_download_goes_on_after_handrail_was_killed(server: Served, tmp_path: Path, work: Path) -> None:
    work.mkdir()
    (tmp_path / "c.toml").write_text('[network]\nallow_private = ["127.0.0.1"]\n')
    args = json.dumps({"url": server.url("/f", "127.0.0.1"), "path": "f.bin"})
    program = [str(Path(sys.executable).with_name("handrail")), "call", "download_file", "--yes", "--json"]
    command = [*program, "--config", str(tmp_path / "c.toml"), "--args", args]
    environment = {**os.environ, "HANDRAIL_HOME": str(tmp_path / "state")}
    server.answers["/f"] = then_silence(head(content_length=len(CONTENT), etag=ETAG) + CONTENT[:100_000], server)
    async with await anyio.open_process(command, cwd=work, env=environment) as killed:
        with anyio.fail_after(30):
            while not any(part.stat().st_size == 100_000 for part in kept(tmp_path)):
                await anyio.sleep(0.02)
        killed.kill()
    assert list(work.iterdir()) == []
    server.answers["/f"] = ranged(CONTENT)
    done = await anyio.run_process(command, cwd=work, env=environment, check=False)
    assert json.loads(done.stdout)["resumed_from"] == 100_000
    assert (work / "f.bin").read_bytes() == CONTENT


# Disks


@pytest.mark.parametrize("name", ["x" * 300, "é" * 200])
async def test_a_name_that_is_too_long_is_a_clear_error(session: Session, server: Served, name: str) -> None:
    failed(await get(session, server.url("/f"), name), "File name too long")


async def test_a_path_that_ends_as_a_folder_is_none_of_a_file(session: Session, server: Served, work: Path) -> None:
    failed(await get(session, server.url("/f"), "new/"), "'new/' is a folder")
    assert (list(work.iterdir()), server.asked) == ([], [])


async def test_a_cache_that_cannot_be_used_is_a_clear_error(
    session: Session, server: Served, tmp_path: Path, work: Path
) -> None:
    (tmp_path / "state/cache").mkdir(parents=True, exist_ok=True)
    (tmp_path / "state/cache/downloads").write_text("in the way")
    failed(await get(session, server.url("/f")), "could not be downloaded: File exists")
    assert list(work.iterdir()) == []


@pytest.mark.parametrize(("days", "most", "left"), [(7, 10**9, 2), (7, 150, 1), (0.5, 10**9, 1), (7, 10, 0)])
def test_parts_that_nobody_goes_on_with_are_forgotten(tmp_path: Path, days: float, most: int, left: int) -> None:
    for name, age_days in (("old", 1.0), ("new", 0.1)):
        (tmp_path / f"{name}.part").write_bytes(bytes(100))
        (tmp_path / f"{name}.json").write_text("{}")
        then = time.time() - age_days * 86_400
        os.utime(tmp_path / f"{name}.part", (then, then))
    partial_downloads.prune_parts(tmp_path, days=days, most=most)
    expected = {"new", "old"} if left == 2 else {"new"} if left else set()
    assert {path.stem for path in tmp_path.iterdir()} == expected


@pytest.fixture
def small_disk(work: Path, mount: Callable[..., Path]) -> Path:
    """A disk of 1 MB in the workspace."""
    folder = work / "small"
    folder.mkdir(parents=True)
    return mount(folder, "-t", "tmpfs", "-o", "size=1m", "tmpfs")


async def test_a_file_that_the_disk_has_no_room_for_is_not_begun(
    small_disk: Path, session: Session, server: Served, tmp_path: Path
) -> None:
    server.answers["/f"] = ranged(bytes(2_000_000))
    failed(await get(session, server.url("/f"), "small/f.bin"), "no room for 2,000,000 bytes")
    assert list(small_disk.iterdir()) == []
    assert kept(tmp_path) == []


async def test_a_disk_that_fills_up_leaves_nothing_and_the_old_file(
    small_disk: Path, session: Session, server: Served
) -> None:
    (small_disk / "f.bin").write_text("old")
    server.answers["/f"] = says(head() + bytes(2_000_000))
    failed(await get(session, server.url("/f"), "small/f.bin"), "No space left on device")
    assert [entry.name for entry in small_disk.iterdir()] == ["f.bin"]
    assert (small_disk / "f.bin").read_text() == "old"


# The rail


@pytest.mark.parametrize(
    "location",
    ["http://inner.example/", "http://10.0.0.1/", "http://169.254.169.254/latest", "file:///etc/passwd", "http://[::1"],
)
async def test_a_redirect_to_a_private_place_is_not_followed(
    session: Session, server: Served, work: Path, location: str
) -> None:
    server.answers["/f"] = file(b"", 302, location=location)
    result = await get(session, server.url("/f"))
    assert result["status"] == "denied", result
    assert list(work.iterdir()) == []


async def test_a_redirect_that_a_person_should_see_first_is_not_followed(session: Session, server: Served) -> None:
    server.answers["/f"] = file(b"", 302, location=server.url("/g", "other.example"))
    failed(await get(session, server.url("/f")), "nobody was asked about", status="denied")
    assert len(server.asked) == 1


JUDGED = [
    pytest.param("https://example.org/a.zip", "a.zip", Decision.CONFIRM, id="plain"),
    pytest.param("https://example.org/a.zip", "../a.zip", Decision.CONFIRM, id="outside"),
    pytest.param("http://127.0.0.1:8000/a", "a", Decision.DENY, id="this-machine"),
    pytest.param("http://localhost/a", "a", Decision.DENY, id="localhost"),
    pytest.param("http://192.168.1.1/a", "a", Decision.DENY, id="network"),
    pytest.param("http://169.254.169.254/latest/meta-data", "a", Decision.DENY, id="metadata"),
    pytest.param("file:///etc/passwd", "a", Decision.DENY, id="file"),
    pytest.param("ftp://example.org/a", "a", Decision.DENY, id="ftp"),
    pytest.param("https://example.org/a", "~/.bashrc", Decision.DENY, id="start-up"),
    pytest.param("https://example.org/a", "~/.config/autostart/a.desktop", Decision.DENY, id="autostart"),
    pytest.param("https://example.org/a", "~/.ssh/authorized_keys", Decision.DENY, id="keys"),
    pytest.param("https://example.org/a", "/usr/bin/ls", Decision.DENY, id="program"),
    pytest.param("https://example.org/a", "/etc/cron.d/a", Decision.DENY, id="cron"),
    pytest.param("https://example.org/a", ".git/hooks/pre-commit", Decision.CONFIRM, id="hook"),
]


@pytest.mark.parametrize(("url", "path", "decision"), JUDGED)
@pytest.mark.parametrize("mode", ["default", "accept_edits", "permissive", "headless"])
async def test_what_is_judged_before_anything_is_asked_for(
    tmp_path: Path, url: str, path: str, decision: Decision, mode: str
) -> None:
    """As the plugin registers it, in every mode."""
    nobody = ScriptedConfirmer()
    settings = {"mode": mode, "network": {"allow_private": []}}
    plugins = {"system": handrail_system.hooks}
    async with open_test_session(plugins=plugins, folder=tmp_path, confirm=nobody, settings=settings) as session:
        tool, args = download_file, {"url": url, "path": path}
        verdict = await session.court.judge(Invocation(tool, args, tool.validate(args), "probe"))
    expected = Decision.DENY if mode == "headless" else decision
    if mode == "permissive" and verdict.decision is Decision.ALLOW:
        assert (url, path) == ("https://example.org/a.zip", "a.zip")
    else:
        assert verdict.decision is expected


async def test_production_reaches_this_machine_by_no_name(tmp_path: Path, server: Served) -> None:
    server.answers["/f"] = file(CONTENT)
    plugins = {"system": handrail_system.hooks}
    async with open_test_session(plugins=plugins, folder=tmp_path, confirm=yes) as session:
        for host in ("127.0.0.1", "localhost", "[::1]", "0.0.0.0", "good.example", "localtest.me"):
            result = await get(session, server.url("/f", host))
            assert result["status"] in ("denied", "error")
    assert server.asked == []


async def test_a_host_of_ones_own_is_reached_once_a_person_says_so(tmp_path: Path, server: Served) -> None:
    server.answers["/f"] = file(CONTENT)
    settings = {"network": {"allow_private": ["127.0.0.1"]}}
    plugins = {"system": handrail_system.hooks}
    async with open_test_session(plugins=plugins, folder=tmp_path, settings=settings, confirm=yes) as session:
        succeeded(await get(session, server.url("/f", "127.0.0.1")))


async def test_a_proxy_of_the_environment_is_not_used_and_that_is_said(tmp_path: Path) -> None:
    environment = {"HTTPS_PROXY": "http://127.0.0.1:9"}
    async with open_test_session(
        plugins={"system": Plugin()}, folder=tmp_path, confirm=yes, environment=environment
    ) as session:
        result = failed(await get(session, "http://good.example:1/f"), "could not be fetched")
    assert "network.proxy" in str(result["error"])


async def test_what_was_downloaded_is_known_to_be_a_third_partys(session: Session, server: Served, work: Path) -> None:
    server.answers["/f"] = file(CONTENT)
    succeeded(await get(session, server.url("/f")))
    seen = session.intake.seen
    assert seen is not None
    assert seen.downloads == {str(work / "f.bin")}


async def test_plan_mode_does_not_show_it(tmp_path: Path) -> None:
    plugins = {"system": handrail_system.hooks}
    async with open_test_session(plugins=plugins, folder=tmp_path, settings={"mode": "plan"}) as session:
        names = [tool.name for tool in await session.tools()]
        result = await session.call("download_file", {"url": "https://example.org/a", "path": "a"})
    assert "system_info" in names
    assert "download_file" not in names
    assert result["status"] in ("denied", "error")
