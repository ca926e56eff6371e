"""The clipboard of macOS, over a pasteboard that keeps AppKit's rules and has the selectors of pyobjc. It has not been run on a Mac."""

# Names are the framework's own.
# ruff: noqa: N802

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from handrail import Downstream
from handrail_gui.platforms.macos.frameworks import MacFrameworks
from handrail_gui.platforms.macos.system import TEXT_TYPE, TRANSIENT_TYPE, MacPasteboard

PICTURE = "public.png"


class Item:
    """An NSPasteboardItem: it is on one pasteboard at most, once, and tells nothing when that has been cleared."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}
        self.put = self.gone = False

    @classmethod
    def alloc(cls) -> type[Item]:
        return cls

    @classmethod
    def init(cls) -> Item:
        return cls()

    def types(self) -> list[str]:
        return [] if self.gone else list(self.held)

    def dataForType_(self, kind: str) -> Any:
        return None if self.gone else self.held[kind]

    def setData_forType_(self, data: Any, kind: str) -> bool:
        self.held[kind] = data
        return True


class Board:
    """An NSPasteboard. Its count tells who has cleared it, and not what was written then."""

    def __init__(self, *things: dict[str, Any], takes: bool = True) -> None:
        self.items: list[Item] = []
        self.count, self.takes = 0, takes
        self.writeObjects_([self.item(**thing) for thing in things])

    @staticmethod
    def item(**held: Any) -> Item:
        item = Item()
        item.held = held
        return item

    def clearContents(self) -> int:
        for item in self.items:
            item.gone = True
        self.items = []
        self.count += 1
        return self.count

    def changeCount(self) -> int:
        return self.count

    def types(self) -> list[str] | None:
        return list(dict.fromkeys(kind for item in self.items for kind in item.types()))

    def pasteboardItems(self) -> list[Item] | None:
        return self.items or None

    def stringForType_(self, kind: str) -> str | None:
        return next((item.held[kind] for item in self.items if kind in item.held), None)

    def setString_forType_(self, text: str, kind: str) -> bool:
        if self.takes:
            self.items = self.items or [Item()]
            self.items[0].held[kind] = text
        return self.takes

    def writeObjects_(self, items: list[Item]) -> bool:
        assert not any(item.put for item in items), "an item is on one pasteboard, once"
        for item in items:
            item.put = True
        self.items += items
        return True

    @property
    def held(self) -> list[dict[str, Any]]:
        return [item.held for item in self.items]


def clipboard(board: Board) -> MacPasteboard:
    kept = SimpleNamespace(generalPasteboard=lambda: board)
    parts: Any = (None, None, SimpleNamespace(NSPasteboard=kept, NSPasteboardItem=Item))
    return MacPasteboard(MacFrameworks(*parts))


def test_a_text_is_written_in_the_place_of_all_there_was_and_read_back() -> None:
    board = Board({PICTURE: b"png"}, {TEXT_TYPE: "old"})
    mine = clipboard(board)
    mine.write("Grüße 漢字 😀\nzwei")
    assert mine.text() == "Grüße 漢字 😀\nzwei"
    assert mine.formats() == [TEXT_TYPE]


def test_an_empty_clipboard_has_no_text_and_no_formats() -> None:
    mine = clipboard(Board())
    assert (mine.text(), mine.formats()) == (None, [])


def test_a_text_that_macos_does_not_take_is_an_error() -> None:
    with pytest.raises(Downstream, match="did not take"):
        clipboard(Board(takes=False)).write("x")


def test_a_paste_finds_the_text_and_all_things_are_back_afterwards_in_all_their_formats() -> None:
    things: list[dict[str, Any]] = [{PICTURE: b"png", TEXT_TYPE: "a picture"}, {"public.file-url": b"file:///a"}]
    board = Board(*things)
    found: list[Any] = []
    assert clipboard(board).lend("lent", lambda: found.append(board.held))
    assert found == [[{TEXT_TYPE: "lent", TRANSIENT_TYPE: ""}]]
    assert board.held == things


def test_they_are_back_also_when_the_paste_fails() -> None:
    board = Board({TEXT_TYPE: "old"})

    def fail() -> None:
        raise Downstream("no window")

    with pytest.raises(Downstream, match="no window"):
        clipboard(board).lend("lent", fail)
    assert board.held == [{TEXT_TYPE: "old"}]


def test_what_somebody_copies_meanwhile_stays() -> None:
    board = Board({TEXT_TYPE: "old"})
    assert clipboard(board).lend("lent", lambda: clipboard(board).write("theirs"))
    assert board.held == [{TEXT_TYPE: "theirs"}]


def test_what_could_not_be_put_back_is_not_taken_away() -> None:
    board = Board({TEXT_TYPE: "old", "promised": None})
    assert not clipboard(board).lend("lent", lambda: pytest.fail("nothing is pasted"))
    assert board.held == [{TEXT_TYPE: "old", "promised": None}]
