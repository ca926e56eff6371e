"""Workbooks as they lie on disk: a ZIP archive of XML parts (ECMA-376 part 2). Runs in the worker."""

from __future__ import annotations

import posixpath
import zipfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any
from xml.parsers import expat

from handrail.workers.parse_refusal import ParseRefused

# What is parsed beyond what is wanted is half of it on average.
BLOCK_BYTES = 16_384
MAX_PARTS = 20_000
# Parts that are read whole have nothing to say in more.
MAX_SMALL_PART = 64 * 1_048_576
# Sheets shrink to a tenth, and full of the same number to a hundredth.
BOMB_BYTES = 50 * 1_048_576
BOMB_RATIO = 250
MAX_TOTAL_BYTES = 16 * 1_073_741_824
OFFICE_DOCUMENT = "officeDocument"


@dataclass(frozen=True, slots=True)
class SheetEntry:
    """A sheet as the workbook lists it. `part`: where its cells are; None for a sheet that is a chart or a dialog."""

    name: str
    hidden: bool
    part: str | None


class StopParsing(Exception):
    """Raised by a handler that has seen what it wanted."""


class XlsxPackage:
    """An open workbook. Nothing is read before it is asked for."""

    def __init__(self, file: IO[bytes]) -> None:
        try:
            self.zip = zipfile.ZipFile(file)
        except zipfile.BadZipFile as exc:
            raise ParseRefused("unreadable", f"it is a damaged workbook: {exc}") from exc
        self.names = {info.filename: info for info in self.zip.infolist()}
        self._check()

    def _check(self) -> None:
        infos = self.zip.infolist()
        if len(infos) > MAX_PARTS or sum(info.file_size for info in infos) > MAX_TOTAL_BYTES:
            raise ParseRefused("limit", f"it holds {len(infos):,} parts, or unpacks to more than is read: a zip bomb")
        for info in infos:
            if info.file_size > BOMB_BYTES and info.file_size > BOMB_RATIO * info.compress_size:
                raise ParseRefused(
                    "limit", f"its part {info.filename[:80]!r} unpacks to {info.file_size:,} bytes: a zip bomb"
                )
            if info.flag_bits & 1 or info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ParseRefused(
                    "unreadable", f"its part {info.filename[:80]!r} is packed in a way that workbooks are not"
                )

    def blocks(self, part: str) -> Iterator[bytes]:
        """Yield the content of a part in blocks."""
        try:
            with self.zip.open(self._info(part)) as stream:
                while block := stream.read(BLOCK_BYTES):
                    yield block
        except zipfile.BadZipFile as exc:
            raise ParseRefused("unreadable", f"its part {part[:80]!r} is damaged: {exc}") from exc

    def whole(self, part: str) -> bytes:
        """Return the complete content of a small part; `ParseRefused` if it is larger than `MAX_SMALL_PART`."""
        size = self._info(part).file_size
        if size > MAX_SMALL_PART:
            raise ParseRefused(
                "limit", f"its part {part[:80]!r} has {size:,} bytes, and at most {MAX_SMALL_PART:,} are read"
            )
        return b"".join(self.blocks(part))

    def _info(self, part: str) -> zipfile.ZipInfo:
        if part not in self.names:
            raise ParseRefused("unreadable", f"its part {part[:80]!r} is missing")
        return self.names[part]

    @cached_property
    def workbook(self) -> str:
        """The part that lists the sheets."""
        for _, kind, target in self.relations(""):
            if kind == OFFICE_DOCUMENT:
                return target
        raise ParseRefused("unreadable", "it is a ZIP archive, but no workbook")

    def relations(self, part: str) -> Iterator[tuple[str, str, str]]:
        """Yield the relationships of a part inside the archive: ID, last segment of the type, and target part."""
        folder, name = posixpath.split(part)
        where = posixpath.join(folder, "_rels", f"{name}.rels")
        if where not in self.names:
            return
        for tag, attributes in iter_xml_elements(self.whole(where)):
            if tag == "Relationship" and attributes.get("TargetMode") != "External":
                target = posixpath.normpath(posixpath.join("/", folder, attributes.get("Target", "")))
                yield attributes.get("Id", ""), attributes.get("Type", "").rpartition("/")[2], target.lstrip("/")

    def part_of_kind(self, kind: str) -> str | None:
        """Return the workbook's part of a kind (`styles`, `sharedStrings`), or None if it has no such part."""
        found = (target for _, each, target in self.relations(self.workbook) if each == kind)
        return next((target for target in found if target in self.names), None)

    @cached_property
    def _listing(self) -> list[tuple[str, Mapping[str, str]]]:
        return list(iter_xml_elements(self.whole(self.workbook)))

    @cached_property
    def sheets(self) -> list[SheetEntry]:
        """In the workbook's order."""
        targets = {id_: (kind, target) for id_, kind, target in self.relations(self.workbook)}
        found: list[SheetEntry] = []
        for tag, attributes in self._listing:
            if tag == "sheet":
                id_ = next((value for key, value in attributes.items() if key.rpartition(":")[2] == "id"), "")
                kind, target = targets.get(id_, ("", ""))
                hidden = attributes.get("state", "visible") != "visible"
                found.append(SheetEntry(attributes.get("name", ""), hidden, target if kind == "worksheet" else None))
        return found

    @cached_property
    def active(self) -> int:
        """The place of the sheet that is shown when the workbook is opened."""
        tabs = [attributes.get("activeTab", "0") for tag, attributes in self._listing if tag == "workbookView"]
        return int(tabs[0]) if tabs and tabs[0].isdecimal() else 0

    @cached_property
    def from_1904(self) -> bool:
        """True if dates are counted from 1904, as on old Macs."""
        return any(
            tag == "workbookPr" and attributes.get("date1904") in ("1", "true") for tag, attributes in self._listing
        )

    @property
    def has_macros(self) -> bool:
        return any(name.endswith("vbaProject.bin") for name in self.names)


def create_xml_parser(
    start: Callable[[str, dict[str, str]], None],
    end: Callable[[str], None] | None = None,
    text: Callable[[str], None] | None = None,
) -> expat.XMLParserType:
    """Create an XML parser that refuses document type and entity declarations, which workbooks never contain."""

    def refuse(*_: Any) -> None:
        raise ParseRefused("unreadable", "its XML declares entities, which no workbook does")

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    if end is not None:
        parser.EndElementHandler = end
    if text is not None:
        parser.CharacterDataHandler = text
    return parser


def iter_xml_elements(data: bytes) -> Iterator[tuple[str, Mapping[str, str]]]:
    """Yield every element of an XML text in document order: its name without prefix, and its attributes."""
    found: list[tuple[str, Mapping[str, str]]] = []
    feed_xml_parser(
        create_xml_parser(lambda name, attributes: found.append((name.rpartition(":")[2], attributes))),
        data,
        final=True,
    )
    yield from found


def feed_xml_parser(parser: expat.XMLParserType, data: bytes, *, final: bool = False) -> None:
    """Feed data to the parser; `ParseRefused` if it is not well-formed XML."""
    try:
        parser.Parse(data, final)
    except expat.ExpatError as exc:
        raise ParseRefused("unreadable", f"its XML is damaged: {exc}") from exc
