"""Complete content of a text file, decoded so that writing it back changes only what was edited."""

from __future__ import annotations

import hashlib
import os
import re
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from handrail import Downstream, NotFound
from handrail.fs import safe_open
from handrail_files.text_reader import BOMS, SAMPLE, detect_encoding_name

# Larger files are not read whole.
MAX_FILE_BYTES = 64 * 1_048_576
READ = 1_048_576
# The codec for the bytes behind each mark.
CODECS_BY_BOM = {
    b"\xef\xbb\xbf": "utf-8",
    b"\xff\xfe\0\0": "utf-32-le",
    b"\0\0\xfe\xff": "utf-32-be",
    b"\xff\xfe": "utf-16-le",
    b"\xfe\xff": "utf-16-be",
}
LINE_END = re.compile(r"\r?\n")

LineEnd = Literal["\n", "\r\n"]


@dataclass(frozen=True, slots=True)
class TextEncoding:
    """Encoding that turns text into a file's bytes.

    `name` is the name that `read_file` reports; `mark` is the byte order mark. In UTF-8, invalid bytes are preserved.
    """

    name: str = "utf-8"
    codec: str = "utf-8"
    mark: bytes = b""

    def decode(self, data: bytes) -> str:
        """Decode the text after the byte order mark; UnicodeDecodeError if the bytes are not valid in this encoding."""
        return data[len(self.mark) :].decode(self.codec, "surrogateescape" if self.codec == "utf-8" else "strict")

    def encode(self, text: str) -> bytes:
        """Encode the text, after the byte order mark.

        Raises `Downstream` for a character that this encoding cannot represent.
        """
        try:
            return self.mark + text.encode(self.codec, "surrogateescape" if self.codec == "utf-8" else "strict")
        except UnicodeEncodeError as exc:
            letter = exc.object[exc.start]
            raise Downstream(
                f"{letter!r} (U+{ord(letter):04X}) cannot be written in {self.name}, the encoding of this file",
                hint="nothing was changed; use other characters, or convert the file to UTF-8 first, as with `iconv`",
            ) from exc


@dataclass(frozen=True)
class FileContent:
    """A file as it was read: its bytes, its encoding, and what the system said of it."""

    data: bytes
    encoding: TextEncoding
    status: os.stat_result

    @cached_property
    def text(self) -> str:
        """Its text with its own line ends. What bytes can tell needs none: decoding takes longer than reading."""
        return self.encoding.decode(self.data)


def read_bytes(path: Path, text: str) -> tuple[bytes, os.stat_result]:
    """Read all bytes and the status of a judged file; `Downstream` if it has more than 64 MB.

    `text` is the path as the call named it, for messages.
    """
    with safe_open.open_for_reading(path) as file:
        if file.size > MAX_FILE_BYTES:
            raise Downstream(f"{text!r} has {file.size} bytes; at most {MAX_FILE_BYTES} can be changed at once")
        data = bytearray()
        try:
            while len(data) <= MAX_FILE_BYTES and (more := os.read(file.fd, READ if len(data) else file.size + 1)):
                data += more
        except OSError as exc:
            raise Downstream(f"{text!r} could not be read: {exc.strerror}") from exc
        return bytes(data), file.status


def read_content(path: Path, text: str) -> FileContent:
    """Read a judged file as text.

    Raises `Downstream` for binary data and for content that does not survive being written back.
    """
    data, status = read_bytes(path, text)
    found = detect_encoding(data)
    if found is None:
        raise Downstream(f"{text!r} is binary and has no lines", hint="nothing was changed")
    return _check_round_trip(FileContent(data, found, status), text)


def read_if_exists(path: Path, text: str) -> FileContent | bytes | None:
    """Read a judged file as text if possible, else return its bytes; None if it does not exist.

    Bytes are returned for binary data and for content that does not survive being written back.
    """
    try:
        data, status = read_bytes(path, text)
    except NotFound:
        return None
    found = detect_encoding(data)
    if found is None:
        return data
    try:
        return _check_round_trip(FileContent(data, found, status), text)
    except Downstream:
        return data


def detect_encoding(data: bytes) -> TextEncoding | None:
    """Detect the encoding of a file with these bytes; None for binary data."""
    name = detect_encoding_name(data[:SAMPLE])
    if name is None:
        return None
    mark = next((mark for mark, _ in BOMS if data.startswith(mark)), b"")
    return TextEncoding(name, CODECS_BY_BOM.get(mark, name), mark)


def _check_round_trip(content: FileContent, text: str) -> FileContent:
    """Return the content if encoding its text gives its bytes again; `Downstream` if not.

    `text` is the path as the call named it, for messages.
    """
    found = content.encoding
    # In these every byte does.
    if found.codec in ("utf-8", "latin-1"):
        return content
    try:
        same = found.encode(content.text) == content.data
    except (UnicodeError, Downstream):
        same = False
    if not same:
        raise Downstream(
            f"{text!r} is not wholly {found.name}: writing it back would change other places, too",
            hint="nothing was changed; use execute_cli on its bytes",
        )
    return content


def compute_digest(data: bytes) -> bytes:
    """Return a digest that identifies the content: BLAKE2b, 16 bytes."""
    return hashlib.blake2b(data, digest_size=16).digest()


def has_cr_line_ends(text: str) -> bool:
    """Return True if lines end with carriage returns alone, as on old Macs."""
    return "\r" in text and "\n" not in text


def normalize_line_ends(text: str) -> str:
    r"""Return the text with `\n` in place of carriage returns, if these alone end its lines."""
    return text.replace("\r", "\n") if has_cr_line_ends(text) else text


def find_main_line_end(text: str) -> LineEnd:
    r"""Return the line end that most lines have; `\n` if the text has no line ends."""
    pairs = text.count("\r\n")
    return "\r\n" if pairs * 2 > text.count("\n") else "\n"


def restore_line_ends(before: str, text: str) -> str:
    r"""Give a new content the line ends of the old one: those of the same line if it existed, else the most frequent.

    A content that has `\r\n` itself is returned unchanged.
    """
    if has_cr_line_ends(before) and "\r" not in text:
        return text.replace("\n", "\r")
    if "\r\n" not in before or "\r\n" in text:
        return text
    main = find_main_line_end(before)
    if before.count("\r\n") == before.count("\n"):
        return text.replace("\n", main)
    ends: dict[str, Counter[str]] = {}
    for line in before.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        ends.setdefault(bare, Counter())[line[len(bare) :]] += 1
    lines = text.split("\n")
    made = [line + (ends[line].most_common(1)[0][0] or main if line in ends else main) for line in lines[:-1]]
    return "".join([*made, lines[-1]])


def describe_hard_links(before: os.stat_result, after: os.stat_result) -> str:
    """Return what a change of a file means for its other names (hard links); empty for a file that had none."""
    names = before.st_nlink
    if names < 2:
        return ""
    if os.path.samestat(before, after):
        return f"the file has {names} names (hard links), and all of them show the new content"
    others = "the other one keeps" if names == 2 else "the others keep"
    return f"the file had {names} names (hard links), not all of them in the workspace: {others} the old content"
