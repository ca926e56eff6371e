"""The tool `read_file`."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Annotated, Any, Literal

import anyio.to_thread
from pydantic import Field

from handrail import Downstream, Location, Media, NotFound, Read, ToolContext, tool
from handrail.fs import safe_open
from handrail.fs.name_suggestions import describe_similar_names
from handrail.fs.safe_open import OpenedFile
from handrail_files.known_versions import KnownVersions
from handrail_files.text_reader import (
    SAMPLE,
    decode_to_utf8,
    detect_encoding_name,
    is_cr_terminated,
    read_blocks,
    read_lines,
    replace_carriage_returns,
)

# Up to here the lines are counted even when not all are shown.
COUNTED_BYTES = 1_048_576
MAX_MEDIA_BYTES = 20 * 1_048_576
MAX_SHOWN = 200_000
READ_DEADLINE_S = 20.0
# Blocks of 64 KB, behind the first, that are read without a thread.
AT_ONCE = 8
# Line numbers that are written together, for all calls.
NUMBER_BLOCK_SIZE = 256

MediaType = Literal["image", "audio", "video", "document"]


@dataclass(frozen=True, slots=True)
class MediaSignature:
    """Signature of a media type: the file begins with `start` and has `word` at byte `at`.

    `box`: the first four bytes are the size of a box, as in MP4.
    """

    start: bytes
    type: MediaType
    mime_type: str
    word: bytes = b""
    at: int = 0
    box: bool = False

    def fits(self, sample: bytes) -> bool:
        begins = sample.startswith(self.start) and sample.startswith(self.word, self.at)
        return begins and (not self.box or int.from_bytes(sample[:4], "big") in BOX_BYTES)


# Of an MP4 file's first box: a name, a version, and names of kindred formats. Letters in its place make a number far above.
BOX_BYTES = range(16, 1_025, 4)

MEDIA_SIGNATURES = (
    MediaSignature(b"\x89PNG\r\n\x1a\n", "image", "image/png"),
    MediaSignature(b"\xff\xd8\xff", "image", "image/jpeg"),
    MediaSignature(b"GIF87a", "image", "image/gif"),
    MediaSignature(b"GIF89a", "image", "image/gif"),
    MediaSignature(b"RIFF", "image", "image/webp", b"WEBP", 8),
    MediaSignature(b"BM", "image", "image/bmp", b"\0\0\0\0", 6),
    MediaSignature(b"%PDF-", "document", "application/pdf"),
    MediaSignature(b"RIFF", "audio", "audio/wav", b"WAVE", 8),
    # The version, the flags and the size behind these words tell them from a text that begins so.
    *(MediaSignature(b"ID3" + bytes([version, 0]), "audio", "audio/mpeg") for version in (2, 3, 4)),
    MediaSignature(b"fLaC", "audio", "audio/flac", b"\0\0\x22", 5),
    MediaSignature(b"OggS\0", "audio", "audio/ogg"),
    MediaSignature(b"", "video", "video/mp4", b"ftyp", 4, box=True),
    MediaSignature(b"\x1a\x45\xdf\xa3", "video", "video/webm"),
)


@tool(
    layer="file",
    title="Read a file",
    effects=[Read("file", arg="file_path")],
    timeout=30,
    locations=lambda asked: (Location(asked.file_path, asked.offset + 1),),
)
async def read_file(
    file_path: Annotated[str, Field(description="Path of the file.")],
    offset: Annotated[int, Field(ge=0, description="Lines to leave out at the beginning.")] = 0,
    limit: Annotated[int, Field(ge=1, le=100_000, description="Lines to show at most.")] = 200,
    *,
    context: ToolContext,
) -> Mapping[str, Any]:
    """Read a text file and return its lines numbered from 1 in stdout; pictures, sound, video and PDF come as media.

    Lines are cut at 2,000 characters. `truncated` says that there are lines behind those shown; read on with `offset`.
    """
    path = context.judged_path(file_path)
    known: KnownVersions = await context.service("known_files")
    stop = Event()
    work = partial(_read_judged_file, path, file_path, offset, limit, known)
    try:
        # What a few blocks hold is read sooner than a thread is woken.
        return work(go_on=_limit_blocks())
    except _MoreBlocksNeeded:
        return await anyio.to_thread.run_sync(partial(work, go_on=_limit_time(stop)), abandon_on_cancel=True)
    finally:
        stop.set()


class _MoreBlocksNeeded(Exception):
    """More than a few blocks have to be read."""


def _limit_blocks() -> Callable[[], None]:
    blocks_left = iter(range(AT_ONCE))

    def go_on() -> None:
        if next(blocks_left, None) is None:
            raise _MoreBlocksNeeded

    return go_on


def _limit_time(stop: Event) -> Callable[[], None]:
    deadline = monotonic() + READ_DEADLINE_S

    def go_on() -> None:
        if stop.is_set() or monotonic() > deadline:
            raise Downstream(f"the file is too large to be read that far within {READ_DEADLINE_S:g} s")

    return go_on


def _read_judged_file(
    path: Path, text: str, offset: int, limit: int, known: KnownVersions, *, go_on: Callable[[], None]
) -> Mapping[str, Any]:
    with _open_file(path, text) as file:
        try:
            sample = os.read(file.fd, SAMPLE)
            known.note(path, text, file.status, sample if len(sample) == file.size else None)
            if (media := next((magic for magic in MEDIA_SIGNATURES if magic.fits(sample)), None)) is not None:
                return _read_media(file, sample, media, text, go_on)
            return _read_text(file, sample, offset, limit, text, go_on)
        except OSError as exc:
            raise Downstream(f"{text!r} could not be read: {exc.strerror}") from exc


@contextmanager
def _open_file(path: Path, text: str) -> Generator[OpenedFile, None, None]:
    """Open the judged file; errors include a hint on what to do instead."""
    try:
        with safe_open.open_for_reading(path) as file:
            yield file
    except NotFound as exc:
        raise NotFound(f"there is no file {text!r}", hint=describe_similar_names(path)) from exc


def _read_text(
    file: OpenedFile, sample: bytes, offset: int, limit: int, text: str, go_on: Callable[[], None]
) -> Mapping[str, Any]:
    encoding = detect_encoding_name(sample)
    if encoding is None:
        raise Downstream(
            f"{text!r} is binary and has no lines",
            hint="look at it with execute_cli: `file`, `xxd | head` or `strings`",
        )
    source = read_blocks(file.fd, sample, go_on)
    narrow = encoding in ("utf-8", "latin-1")
    if not narrow:
        source = decode_to_utf8(source, encoding)
    if is_cr_terminated(sample, encoding):
        source = replace_carriage_returns(source)
    counted = file.size <= COUNTED_BYTES and file.size > 0
    found = read_lines(source, offset=offset, limit=limit, count_all=counted, encoding=encoding if narrow else "utf-8")
    shown, left_out = _number_lines(found.lines, offset + 1)
    result: dict[str, Any] = {"stdout": shown, "truncated": found.more or left_out > 0, "encoding": encoding}
    if found.total is not None:
        result["total_lines"] = found.total
    note = _build_note(found.lines, found.total, offset, left_out)
    return {**result, "note": note} if note else result


def _number_lines(lines: tuple[str, ...], first: int) -> tuple[str, int]:
    """Return the lines with their numbers, and how many lines were omitted because the text became too long."""
    pieces = [""] * (2 * len(lines))
    pieces[0::2] = _format_numbers(first, len(lines))
    pieces[1::2] = lines
    # A number begins with what parts it from the line before.
    shown = "".join(pieces)[1:]
    if len(shown) <= MAX_SHOWN:
        return shown, 0
    ends = accumulate(len(number) + len(line) for number, line in zip(pieces[0::2], lines, strict=True))
    kept = max(1, sum(end <= MAX_SHOWN for end in ends))
    return "".join(pieces[: 2 * kept])[1:], len(lines) - kept


def _format_numbers(first: int, count: int) -> list[str]:
    """Return the prefixes with the line numbers for `count` lines from `first` on."""
    start, past = first // NUMBER_BLOCK_SIZE, (first + count - 1) // NUMBER_BLOCK_SIZE + 1
    numbers = [number for block in range(start, past) for number in _format_number_block(block)]
    before = first - start * NUMBER_BLOCK_SIZE
    return numbers[before : before + count]


@lru_cache(maxsize=128)
def _format_number_block(block: int) -> tuple[str, ...]:
    # To write them takes longer than to read the lines.
    return tuple(f"\n{number:>6}\t" for number in range(block * NUMBER_BLOCK_SIZE, (block + 1) * NUMBER_BLOCK_SIZE))


def _build_note(lines: tuple[str, ...], total: int | None, offset: int, left_out: int) -> str | None:
    if left_out:
        return f"{left_out} of the lines asked for are not shown; go on with offset={offset + len(lines) - left_out}"
    if not lines and total == 0:
        return "the file is empty"
    if not lines:
        return f"the file has only {total} lines"
    return None


def _read_media(
    file: OpenedFile, sample: bytes, magic: MediaSignature, text: str, go_on: Callable[[], None]
) -> Mapping[str, Any]:
    if file.size > MAX_MEDIA_BYTES:
        raise Downstream(f"{text!r} ({magic.mime_type}) has {file.size} bytes; at most {MAX_MEDIA_BYTES} are shown")
    data = bytearray(sample)
    go_on()
    while len(data) < MAX_MEDIA_BYTES and (more := os.read(file.fd, 1_048_576)):
        data += more
    told = f"{magic.type} {file.path.name}, {magic.mime_type}, {len(data)} bytes"
    media = Media(magic.type, magic.mime_type, data=bytes(data), text=told)
    return {"stdout": told, "truncated": False, "encoding": "binary", "media": [media]}
