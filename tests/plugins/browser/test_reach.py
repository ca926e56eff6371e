"""What is on a page can be worked wherever it stands: in boxes that scroll, under bars, in frames within frames; or it is said what is in the way."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.plugins.browser.site import Site
from tests.plugins.browser.working import Hands, shown

BUTTON = "<body style='margin:0'><button style='height:40px' onclick=\"this.textContent='hit'\">Inner</button><div style='height:300px'></div>"


@pytest.fixture(params=["own", "other"])
def inner(request: pytest.FixtureRequest, site: Site, other: Site) -> str:
    """The address of a page with a button, at the origin of the page that is shown and at another."""
    place = site if request.param == "own" else other
    place.pages["/inner"] = BUTTON
    return place.url("/inner")


async def test_what_a_scrolling_box_hides_is_scrolled_to(hands: Hands, site: Site) -> None:
    rows = "".join(f"<p><button onclick=\"this.textContent='hit'\">Row {n}</button>" for n in range(30))
    await shown(hands, site, f"<div style='height:150px;overflow:auto'>{rows}</div><p style='height:900px'>below")
    assert "'hit'" in (await hands.done("click", name="Row 12"))["content"]


async def test_what_a_bar_covers_is_moved_from_under_it(hands: Hands, site: Site) -> None:
    bar = "<div style='position:fixed;inset:0 0 auto 0;height:90px;background:#eee;z-index:9'>Bar</div>"
    button = "<button style='margin-top:600px' onclick=\"this.textContent='hit'\">Under</button><div style='height:3000px'></div>"
    await shown(hands, site, f"<body style='margin:0'>{bar}{button}<script>scrollTo(0, 590)</script>")
    assert "'hit'" in (await hands.done("click", name="Under"))["content"]


async def test_a_frame_that_is_far_down_or_drawn_smaller_is_worked(hands: Hands, site: Site, inner: str) -> None:
    frame = f"<iframe src='{inner}'"
    far = f"<div style='height:3000px'></div>{frame} style='border:9px solid;padding:7px'></iframe><div style='height:3000px'></div>"
    await shown(hands, site, far)
    assert "'hit'" in (await hands.done("click", name="Inner"))["content"]
    small = "style='width:800px;height:600px;margin-left:40px;transform:scale(.4);transform-origin:0 0'></iframe>"
    await shown(hands, site, f"{frame} {small}")
    assert "'hit'" in (await hands.done("click", name="Inner"))["content"]


async def test_what_lies_over_a_frame_is_not_clicked_in_its_place(hands: Hands, site: Site, inner: str) -> None:
    over = "<div role=dialog aria-label=Offer onclick=\"document.title='paid'\" style='position:fixed;inset:0'></div>"
    await shown(hands, site, f"<iframe src='{inner}'></iframe>{over}")
    await hands.refused("click", "'Inner' cannot be used: dialog \"Offer\" lies over it", name="Inner", timeout=0.3)
    assert (await hands.done("list_tabs"))["content"].count("paid") == 0


async def test_a_picture_of_a_thing_far_down_the_page_shows_it(hands: Hands, site: Site, other: Site) -> None:
    from PIL import Image

    blue = "<div id=it style='width:80px;height:50px;background:#00f'></div>"
    other.pages["/blue"] = f"<body style='margin:0'><div style='height:30px'></div>{blue}"
    far = "<div style='height:2500px;background:#f00'></div>"
    await shown(hands, site, f"{far}{blue}{far}")
    for framed in (False, True):
        if framed:
            await shown(hands, site, f"{far}<iframe src='{other.url('/blue')}' style='border:0'></iframe>{far}")
        kept = (await hands.done("screenshot", selector="#it"))["artifact"]
        image = Image.open(kept["path"]).convert("RGB")
        assert image.size == (80, 50)
        assert {image.getpixel(each) for each in ((2, 2), (77, 47))} == {(0, 0, 255)}


async def test_what_stands_in_a_frame_is_waited_for_and_not_said_to_be_gone(
    hands: Hands, site: Site, other: Site
) -> None:
    other.pages["/words"] = "<p id=words>inside words</p>"
    await shown(hands, site, f"<p>outside</p><iframe src='{other.url('/words')}'></iframe>")
    assert (await hands.done("wait", text="inside words"))["met"] is True
    assert (await hands.done("wait", selector="#words"))["met"] is True
    assert (await hands.done("wait", text="inside words", gone=True, timeout=0.3))["met"] is False
    assert (await hands.done("wait", text="not there", gone=True))["met"] is True
    await hands.refused("wait", "no CSS selector", selector="[")


async def test_what_scrolls_is_scrolled_whatever_box_it_is_in(hands: Hands, site: Site) -> None:
    lines = "".join(f"<p>{n}" for n in range(300))
    await shown(hands, site, f"<style>html{{scroll-behavior:smooth}}</style>{lines}")
    for direction in ("bottom", "top"):
        assert (await hands.done("scroll", direction=direction))["effect"] == "confirmed"
    assert (await hands.done("scroll", direction="up"))["effect"] == "none"
    application = "<style>html,body{margin:0;height:100%;overflow:hidden}main{height:100vh;overflow:auto}</style>"
    await shown(hands, site, f"{application}<main>{lines}</main>")
    assert (await hands.done("scroll"))["at"] > 100
    row = "".join(f"<button>B{n}</button>" for n in range(90))
    await shown(hands, site, f"<div style='overflow-x:auto;white-space:nowrap;width:300px'>{row}</div>")
    assert (await hands.done("scroll", direction="right", name="B1"))["effect"] == "confirmed"


async def test_a_box_that_is_drawn_by_its_label_is_seen_and_worked(hands: Hands, site: Site) -> None:
    none = "style='display:none'"
    await shown(
        hands,
        site,
        f"<input type=checkbox id=terms {none}><label for=terms>Terms</label><label for=file>Picture</label>"
        f"<input type=file id=file {none}><label><input type=radio name=size {none}> Large</label>"
        "<label for=name>Name</label><input id=name>",
    )
    assert [line.partition(" [")[0] for line in (await hands.lines()).splitlines()] == [
        'checkbox "Terms"',
        'file "Picture"',
        'radio "Large"',
        'textbox "Name"',
    ]
    assert "is checked" in (await hands.done("click", name="Terms"))["content"]
    assert "checked" in (await hands.lines()).splitlines()[0]
    assert "is checked" in (await hands.done("click", name="Large"))["content"]
    Path(hands.session.workspace[0], "a.txt").write_text("a")
    assert (await hands.done("upload", name="Picture", paths=["a.txt"]))["effect"] == "confirmed"
    assert '= "a.txt"' in await hands.lines()


async def test_a_list_is_not_called_by_its_only_choice_and_rich_text_is_a_textbox(hands: Hands, site: Site) -> None:
    choice = "<li role=option onclick=\"this.textContent='chosen'\">Apple</li>"
    await shown(hands, site, f"<ul role=listbox tabindex=0>{choice}</ul><div contenteditable aria-label=Body>old</div>")
    assert "chosen" in (await hands.done("click", name="Apple"))["content"]
    assert 'textbox "Body"' in await hands.lines()
    assert (await hands.done("fill", name="Body", text="one\n\ntwo"))["effect"] == "confirmed"


async def test_of_a_page_of_one_endless_text_the_beginning_is_read(hands: Hands, site: Site) -> None:
    # Far down a page, such a text is not laid out, which would take seconds.
    far = "<div style='height:9000px'></div><p id=it style='content-visibility:auto'>"
    await shown(hands, site, f"{far}<script>it.append('endless words '.repeat(800_000))</script>")
    read = await hands.done("extract_text", timeout=60)
    assert "endless words" in read["content"]
    assert read["truncated"] is True
