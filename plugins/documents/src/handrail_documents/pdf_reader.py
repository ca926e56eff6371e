"""Text out of PDF files. Runs in the worker."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, cast

from pypdf import PasswordType, PdfReader
from pypdf.errors import PdfReadError
from pypdf.generic import DictionaryObject, PdfObject

from handrail.json_types import is_list
from handrail.workers.parse_refusal import ParseRefused
from handrail_documents.page_ranges import parse_page_ranges
from handrail_documents.pdf_repair import recover_truncated_pdf
from handrail_documents.reading_order import extract_ordered_text

MAX_TEXT = 200_000
MAX_FIELDS = 500
MAX_VALUE = 2_000
MAX_LISTED = 50
# Halves of characters, which some fonts' tables name, are no text.
SURROGATE_REPLACEMENTS = dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
# How deep forms may lie in forms when a page is looked over for pictures.
MAX_FORM_DEPTH = 5
PASSWORD_HINT = "give the password that a person tells you as `password`, or ask for a copy without one"
TRUNCATED_NOTE = "the end of the file is missing or damaged; these are the pages that are left"
OCR_HINT = "pages that are pictures have no text to read: show them (open_file, then observe_screen) or run OCR on them (ocrmypdf)"


def read_pdf(fd: int | None, args: Mapping[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Return the text of the requested pages, up to 200,000 characters. `args`: `pages`, `password`."""
    assert fd is not None
    # What it says of damaged files goes nowhere.
    logging.disable(logging.CRITICAL)
    with os.fdopen(os.dup(fd), "rb") as file:
        try:
            reader, locked = _open_reader(file, args["password"])
            count, notes = len(reader.pages), list[str]()
        except PdfReadError:
            if (left := recover_truncated_pdf(file)) is None:
                raise
            reader, locked, count, notes = left, False, len(left.pages), [TRUNCATED_NOTE]
        wanted = parse_page_ranges(args["pages"], count) if args["pages"] else list(range(1, count + 1))
        return _build_result(reader, wanted, count, notes, locked=locked), b""


def _open_reader(file: Any, password: str | None) -> tuple[PdfReader, bool]:
    """Return the file, decrypted, and whether that required the password."""
    if b"%PDF-" not in file.read(1_024):
        raise ParseRefused("unreadable", "it is no PDF: the mark %PDF- is missing")
    file.seek(0)
    reader = PdfReader(file)
    locked = reader.is_encrypted and reader.decrypt("") is PasswordType.NOT_DECRYPTED
    if locked and not password:
        raise ParseRefused("protected", "it is encrypted, and opening it takes a password", hint=PASSWORD_HINT)
    if locked and reader.decrypt(password or "") is PasswordType.NOT_DECRYPTED:
        raise ParseRefused("protected", "it is encrypted, and the password given does not open it", hint=PASSWORD_HINT)
    if reader.root_object.get("/Pages") is None:
        raise PdfReadError("it has no pages")
    return reader, locked


def _build_result(
    reader: PdfReader, wanted: list[int], count: int, notes: list[str], *, locked: bool
) -> dict[str, Any]:
    reading = _PageCollector()
    for number in wanted:
        if not reading.take(number, *_extract_page(reader, number)):
            break
    result: dict[str, Any] = {
        "content": "\n\n".join(reading.texts),
        "page_count": count,
        "pages_read": len(reading.texts),
        "truncated": reading.truncated,
    }
    fields, lost = _read_form_fields(reader)
    if fields:
        result["form_fields"] = fields
    if scanned := reading.numbers["scanned"]:
        result["scanned_pages"] = scanned
    notes = [*notes, *reading.notes(wanted)]
    if lost:
        notes.append(lost)
    if reader.is_encrypted and not locked:
        notes.append("the file is encrypted, but takes no password to be read")
    return {**result, "note": "; ".join(notes)} if notes else result


PageState = Literal["text", "scanned", "empty", "broken"]


class _PageCollector:
    """Texts of pages, up to as much as is shown."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.numbers: dict[PageState, list[int]] = {"text": [], "scanned": [], "empty": [], "broken": []}
        self.truncated = False
        self._left = MAX_TEXT

    def take(self, number: int, text: str, state: PageState) -> bool:
        """Add a page. Return False if there is no room for another one.

        A page that is too long on its own is truncated; the others wait for the next call.
        """
        piece = f"## Page {number}\n\n{text}"
        if len(piece) + 2 > self._left:
            self.truncated = True
            if self.texts:
                return False
            piece = piece[: self._left]
        self.texts.append(piece)
        self.numbers[state].append(number)
        self._left -= len(piece) + 2
        return not self.truncated

    def notes(self, wanted: Sequence[int]) -> Iterator[str]:
        """Yield additional notes for the reader."""
        rest = wanted[len(self.texts) :]
        if self.truncated and rest:
            yield f"more than {MAX_TEXT:,} characters; go on with pages={_format_page_span(rest)!r}"
        elif self.truncated:
            yield f"page {wanted[0]} has more than {MAX_TEXT:,} characters and was cut"
        if self.numbers["scanned"]:
            yield f"pages without text, only pictures: {_format_page_list(self.numbers['scanned'])}; {OCR_HINT}"
        if self.numbers["broken"]:
            yield f"pages that are damaged: {_format_page_list(self.numbers['broken'])}"


def _format_page_span(numbers: Sequence[int]) -> str:
    return str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"


def _format_page_list(numbers: Sequence[int]) -> str:
    shown = ", ".join(map(str, numbers[:MAX_LISTED]))
    return shown if len(numbers) <= MAX_LISTED else f"{shown} and {len(numbers) - MAX_LISTED} more"


def _extract_page(reader: PdfReader, number: int) -> tuple[str, PageState]:
    """Return the text of a page, or in brackets the reason why it has none."""
    try:
        page = reader.pages[number - 1]
        text = extract_ordered_text(page).strip().translate(SURROGATE_REPLACEMENTS)
        if text:
            return text, "text"
        if _has_picture(page.get("/Resources"), MAX_FORM_DEPTH):
            return "[a scan or picture: no text]", "scanned"
        # Instructions that cannot be unpacked are taken for none where their text is asked for.
        page.get_contents()
    except (MemoryError, ParseRefused):
        raise
    except Exception as exc:  # noqa: BLE001 # the parser meets damage with errors of any kind, and the pages around it may be whole
        return f"[damaged: {type(exc).__name__}: {exc}]"[:300], "broken"
    return "[no text]", "empty"


def _has_picture(resources: Any, depth: int) -> bool:
    """Return True if the resources contain an image, directly or in nested forms."""
    for thing in _list_entries(_get_entry(resources, "/XObject")):
        if _get_entry(thing, "/Subtype") == "/Image":
            return True
        if depth and _has_picture(_get_entry(thing, "/Resources"), depth - 1):
            return True
    return False


def _get_entry(thing: Any, key: str) -> Any:
    """Return the value of a key of a dictionary object; None for any other object."""
    thing = thing.get_object() if isinstance(thing, PdfObject) else thing
    return cast("Any", thing).get(key) if isinstance(thing, DictionaryObject) else None


def _list_entries(thing: Any) -> list[Any]:
    thing = thing.get_object() if isinstance(thing, PdfObject) else thing
    return list(cast("Any", thing).values()) if isinstance(thing, DictionaryObject) else []


def _read_form_fields(reader: PdfReader) -> tuple[dict[str, Any], str | None]:
    """Return the fields of a form with their values, and a note about fields that were left out.

    The fields are empty if there is no form.
    """
    try:
        fields = reader.get_fields() or {}
    except Exception as exc:  # noqa: BLE001 # errors of any kind; a form that cannot be made out takes nothing from the text
        return {}, f"it has a form that cannot be made out, and its fields are left out ({type(exc).__name__}: {exc})"[
            :300
        ]
    shown = {name[:MAX_VALUE]: _format_field_value(field.value) for name, field in islice(fields.items(), MAX_FIELDS)}
    return shown, f"{len(fields) - MAX_FIELDS} more form fields are left out" if len(fields) > MAX_FIELDS else None


def _format_field_value(value: Any) -> str | list[str] | None:
    """Format the value of a field: a list if several items of a list may be selected."""
    if is_list(value):
        return [_format_field_text(each) for each in islice(value, MAX_FIELDS)]
    return None if value is None else _format_field_text(value)


def _format_field_text(value: Any) -> str:
    return str(value).removeprefix("/").translate(SURROGATE_REPLACEMENTS)[:MAX_VALUE]
