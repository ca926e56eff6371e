"""Web pages in a Chromium that is shown half as large again, where pages and what is around them tell places in different pixels."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from handrail import Session
from handrail_accessibility.tree.protocol import AccessibilityController

from .conftest import Use, begin, shows, until

pytestmark = pytest.mark.anyio

ROWS = 2_000
PAGE = """<!doctype html><title>Long page</title>
<button style="margin: 2em" onclick="this.textContent = 'Pressed'">Press me</button>
<select aria-label="Fruit" onchange="document.title = 'Took ' + this.value"><option>Apple<option>Pear</select>
<input aria-label="Share" type="range" min="0" max="1" step="0.1" value="0.5">
<label>Rooms <input type="number" min="0" max="10"></label> <label>Guest <input></label>
<label>Day <input readonly onclick="document.title = 'Picked a day'"></label>
<button onclick="document.title = 'Renamed page'">Rename</button>
<div role="alert">Stock is low</div>
<table>{rows}</table>"""
ROW = '<tr><td>row {n}<td><a href="#{n}">link {n}</a><td><button>button {n}</button></tr>'


@pytest.fixture(scope="module")
async def page(
    session: Session,
    control: AccessibilityController,
    environment: dict[str, str],
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncIterator[None]:
    folder = tmp_path_factory.mktemp("chromium")
    file = folder / "long.html"
    file.write_text(PAGE.format(rows="".join(ROW.format(n=n) for n in range(ROWS))))
    flags = ("--no-sandbox", "--no-first-run", "--force-renderer-accessibility", "--force-device-scale-factor=1.5")
    process = begin(("chromium", *flags, f"--user-data-dir={folder / 'profile'}", file.as_uri()), environment, folder)
    try:
        await until(lambda: shows(control, "Long page"), "the page")
        yield
    finally:
        process.kill()
        process.wait()


async def look(session: Session) -> list[dict[str, Any]]:
    result = await session.call("observe_screen", {"image": "none"})
    assert result.ok, result
    return result["ui_elements"]


async def loaded(session: Session) -> list[dict[str, Any]]:
    seen: list[dict[str, Any]] = []

    async def there() -> bool:
        result = await session.call("observe_screen", {"image": "none"})
        seen[:] = result["ui_elements"] if result.ok else []
        return any(e["text"] == "button 1" for e in seen)

    await until(there, "the table of the page")
    return seen


async def test_a_long_page_is_told_as_far_as_it_shows(session: Session, page: None) -> None:
    """The browser keeps pages out of the cache that is read at once."""
    seen = await loaded(session)
    words = [e["text"] for e in seen]
    assert "Stock is low" in words
    links = [e["text"] for e in seen if e["role"] == "link"]
    assert links == [f"link {n}" for n in range(len(links))]
    assert 2 < len(links) < 100
    assert all(e["bbox"] for e in seen if e["role"] == "link")


async def test_choices_and_numbers_of_a_page_are_set_and_its_new_title_is_no_new_window(
    session: Session, page: None, use: Use
) -> None:
    """A choice with a label tells no value, and numbers have four bytes: 0.3 is none of them."""
    await loaded(session)
    chosen = await use(action="select", element_name="Fruit", value="Pear")
    assert chosen.get("effect") == "confirmed", chosen
    await until(lambda: _titled(session, "Took Pear"), "what the page does with its choice")
    stands = await use(action="set_value", element_name="Share", value="0.3")
    assert stands["evidence"] == ["it now stands at 0.3"], stands
    renamed = await use(action="click", element_name="Rename")
    assert "is now called 'Renamed page" in renamed["evidence"][0], renamed


async def test_fields_of_a_page_are_found_by_their_label_and_written(session: Session, page: None, use: Use) -> None:
    """A field for a number takes numbers from nobody but the keyboard, and says that it took them."""
    await loaded(session)
    for label, value in (("Rooms", "7"), ("Guest", "Ada 漢字")):
        written = await use(action="set_value", element_name=label, value=value)
        assert written.get("effect") == "confirmed", written
    too_many = await use(action="set_value", element_name="Rooms", value="11")
    assert too_many["error"]["details"] == {"wanted": 11.0, "found": 7.0}, too_many


async def test_a_field_that_can_only_be_read_is_not_disabled_and_can_be_clicked(
    page: None, session: Session, control: AccessibilityController
) -> None:
    day = next(e for e in await loaded(session) if e["role"] == "textbox" or e["text"] == "Day")
    assert "readonly" in day["states"]
    assert "disabled" not in day["states"]
    result = await session.call("execute_gui", {"action": "click", "element_id": day["id"]})
    assert result.ok, result
    await until(lambda: shows(control, "Picked a day"), "the click")


async def test_pages_and_the_browser_around_them_are_clicked_where_they_show(session: Session, page: None) -> None:
    seen = await loaded(session)
    button = next(e for e in seen if e["text"] == "Press me")
    clicked = await session.call("execute_gui", {"action": "click", "element_id": button["id"]})
    assert clicked.ok, clicked
    assert "Pressed" in [e["text"] for e in await look(session)]
    tab = next(e for e in await look(session) if e["text"] == "New Tab")
    clicked = await session.call("execute_gui", {"action": "click", "element_id": tab["id"]})
    assert clicked.ok, clicked
    await until(lambda: _titled(session, "New Tab"), "another tab")


async def _titled(session: Session, title: str) -> bool:
    return any(title in window.title for window in await (await session.service("screen")).windows())
