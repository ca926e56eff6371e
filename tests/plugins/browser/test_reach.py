"""What is on a page can be worked wherever it stands: in boxes that scroll, under bars, in frames within frames; or it is said what is in the way."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator

import pytest
from tests.plugins.browser.site import Site, serving
from tests.plugins.browser.working import Hands, browsing, shown

BUTTON = "<body style='margin:0'><button style='height:40px' onclick=\"this.textContent='hit'\">Inner</button><div style='height:300px'></div>"


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        yield site


@pytest.fixture(scope="module")
def other() -> Iterator[Site]:
    with serving(Site()) as site:
        site.pages["/inner"] = BUTTON
        yield site


@pytest.fixture(scope="module")
async def shared() -> AsyncGenerator[Hands, None]:
    async with browsing() as hands:
        yield hands


@pytest.fixture
async def hands(shared: Hands) -> AsyncGenerator[Hands, None]:
    """One browser for all tests, with a tab of its own for each."""
    await shared.done("open_tab")
    yield shared
    await shared.done("close_tab")


async def test_what_a_scrolling_box_hides_is_scrolled_to(hands: Hands, site: Site) -> None:
    rows = "".join(f"<p><button onclick=\"this.textContent='hit'\">Row {n}</button>" for n in range(30))
    await shown(hands, site, f"<div style='height:150px;overflow:auto'>{rows}</div><p style='height:900px'>below")
    assert "'hit'" in (await hands.done("click", name="Row 12"))["content"]


async def test_what_a_bar_covers_is_moved_from_under_it(hands: Hands, site: Site) -> None:
    bar = "<div style='position:fixed;inset:0 0 auto 0;height:90px;background:#eee;z-index:9'>Bar</div>"
    button = "<button style='margin-top:600px' onclick=\"this.textContent='hit'\">Under</button><div style='height:3000px'></div>"
    await shown(hands, site, f"<body style='margin:0'>{bar}{button}<script>scrollTo(0, 590)</script>")
    assert "'hit'" in (await hands.done("click", name="Under"))["content"]


@pytest.mark.parametrize("where", ["own", "other"])
async def test_a_frame_that_is_far_down_or_drawn_smaller_is_worked(
    hands: Hands, site: Site, other: Site, where: str
) -> None:
    site.pages["/inner"] = BUTTON
    frame = f"<iframe src='{(site if where == 'own' else other).url('/inner')}'"
    far = f"<div style='height:3000px'></div>{frame} style='border:9px solid;padding:7px'></iframe><div style='height:3000px'></div>"
    await shown(hands, site, far)
    assert "'hit'" in (await hands.done("click", name="Inner"))["content"]
    small = "style='width:800px;height:600px;margin-left:40px;transform:scale(.4);transform-origin:0 0'></iframe>"
    await shown(hands, site, f"{frame} {small}")
    assert "'hit'" in (await hands.done("click", name="Inner"))["content"]


@pytest.mark.parametrize("where", ["own", "other"])
async def test_what_lies_over_a_frame_is_not_clicked_in_its_place(
    hands: Hands, site: Site, other: Site, where: str
) -> None:
    site.pages["/inner"] = BUTTON
    over = "<div role=dialog aria-label=Offer onclick=\"document.title='paid'\" style='position:fixed;inset:0'></div>"
    await shown(hands, site, f"<iframe src='{(site if where == 'own' else other).url('/inner')}'></iframe>{over}")
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
