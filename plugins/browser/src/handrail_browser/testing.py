"""Contract of every browser driver: a test class from which its author derives one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from handrail import Denied, Element, NotFound, Observations, StaleElement, ToolError
from handrail_browser.browsing.snapshot_text import number_nodes
from handrail_browser.driver import (
    ActionOutcome,
    AmbiguousNode,
    BrowserDriver,
    BrowserTab,
    PageNode,
    PageSnapshot,
    StaleNode,
    WaitConditions,
)

PNG_SIGNATURE = b"\x89PNG\r\n\x1a\n"
# Serves markup at a path and says where that is.
Show = Callable[..., str]


class DriverContract:
    """Contract of every browser driver, regardless of how it controls a browser.

        class TestMine(DriverContract):
            @pytest.fixture
            async def driver(self): ...

            @pytest.fixture
            def show(self): ...

    Provide the fixtures `driver`, an open driver that may reach the pages of `show` and no other private address, and
    `show`, a function that serves markup at a path (`show(html, path="/")`) and returns its address. A driver refuses
    what it cannot do with an error that has a hint, and does nothing: the tests accept that if the driver's `lacks`
    declares it.
    """

    @pytest.fixture
    def driver(self) -> BrowserDriver:
        """Return the driver under test."""
        raise NotImplementedError("give a fixture `driver` that returns an open Driver")

    @pytest.fixture
    def show(self) -> Show:
        """Return the function that serves pages."""
        raise NotImplementedError("give a fixture `show` that serves markup and returns its address")

    # Tabs and addresses

    async def test_tabs_are_opened_listed_and_closed(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, keep ids for as long as a tab is open, and make a new tab the active one."""
        first = await driver.open_tab(show("<title>First</title>"))
        second = await driver.open_tab(show("<title>Second</title>", "/second"))
        ids = [tab.id for tab in await driver.tabs()]
        assert ids.index(first.id) < ids.index(second.id)
        assert [tab.id for tab in await driver.tabs() if tab.active] == [second.id]
        assert (await driver.tab(first.id)).title == "First"
        assert (await driver.close_tab(second)).effect == "confirmed"
        assert second.id not in [tab.id for tab in await driver.tabs()]
        with pytest.raises(NotFound) as caught:
            await driver.tab(second.id)
        assert first.id in (caught.value.hint or "")

    async def test_going_to_an_address_says_where_it_led(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, report the address that the tab shows, not the one that was requested."""
        tab = await open_page(
            driver, show("<title>There</title><script>history.replaceState(0, '', '/moved')</script>")
        )
        assert tab.title == "There"
        assert tab.url.endswith("/moved")
        done = await driver.navigate(tab, show("<p>again", "/again"), until="load", seconds=10)
        assert done.effect == "confirmed"
        assert "/again" in done.evidence[0]

    async def test_the_history_is_gone_through(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, use the address to decide if there was a page in the history."""
        tab = await open_page(driver, show("<p>one", "/one"))
        await driver.navigate(tab, show("<p>two", "/two"), until="load", seconds=10)
        assert "/one" in (await driver.travel(tab, "back", seconds=10)).evidence[0]
        assert "/two" in (await driver.travel(tab, "forward", seconds=10)).evidence[0]
        assert (await driver.travel(tab, "forward", seconds=10)).effect == "none"

    async def test_places_that_the_rail_closes_are_not_gone_to(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, check addresses before the browser gets them, and enforce the rules on its connections."""
        tab = await open_page(driver, show("<title>Here</title>"))
        with pytest.raises(Denied):
            await driver.navigate(tab, "http://10.255.255.1/", until="load", seconds=5)

    async def test_a_page_does_not_lead_to_where_it_may_not(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, check the address that a tab has reached, or give the browser no route around the rules."""
        tab = await open_page(
            driver, show("<button onclick=\"location.href = 'http://10.255.255.1/secret'\">Out</button>")
        )
        with suppress(Denied):
            await click_named(driver, tab, "Out")
            assert any("10.255.255.1" in each for each in driver.refused())

    async def test_an_address_where_nobody_answers_is_an_error(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, do not treat the browser's own error page as a page."""
        tab = await open_page(driver, show("<p>here"))
        nobody = show("").rpartition(":")[0] + ":9/"
        with pytest.raises(ToolError):
            await driver.navigate(tab, nobody, until="load", seconds=5)

    # What is on a page

    async def test_a_snapshot_has_what_can_be_used(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, give each usable element its role, name, value and states, with a handle and a fingerprint."""
        html = "<h1>Top</h1><button>Go</button><button disabled>Off</button><label>Name <input value=Ada></label><p>Plain words"
        tab = await open_page(driver, show(html))
        found = (await take_snapshot(driver, tab)).nodes
        told = {(node.role, node.name): node for node in found}
        assert told["textbox", "Name"].value == "Ada"
        assert "disabled" in told["button", "Off"].states
        assert "disabled" not in told["button", "Go"].states
        assert told["button", "Go"].handle is not None
        assert told["button", "Go"].fingerprint
        assert ("heading", "Top") in told
        assert not any(node.name == "Plain words" for node in found)

    async def test_a_snapshot_of_all_has_the_text_and_is_cut(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, return up to `most` lines starting at `skip`, and count all lines."""
        tab = await open_page(driver, show("<p>Plain words</p>" + "".join(f"<button>B{n}</button>" for n in range(9))))
        assert any(node.name == "Plain words" for node in (await take_snapshot(driver, tab, everything=True)).nodes)
        part = await driver.snapshot(tab, everything=False, selector=None, most=3, skip=4)
        assert [node.name for node in part.nodes] == ["B4", "B5", "B6"]
        assert part.total == 9

    async def test_a_part_is_named_by_selector(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, apply the selector to the complete snapshot."""
        tab = await open_page(
            driver, show("<button>Out</button><section id=part aria-label=Part><button>In</button></section>")
        )
        found = await driver.snapshot(tab, everything=False, selector="#part", most=50, skip=0)
        assert [node.name for node in found.nodes if node.role == "button"] == ["In"]
        with pytest.raises(NotFound):
            await driver.snapshot(tab, everything=False, selector="#nothing", most=50, skip=0)

    async def test_a_thing_is_found_by_what_it_is_called(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, do nothing when several elements match: raise `AmbiguousNode` with them."""
        tab = await open_page(
            driver,
            show(
                "<button>One</button><button id=b>Two</button><button>Two more</button><a href=#>Same</a><button>Same</button>"
            ),
        )
        assert (await driver.pick(tab, selector=None, text="One")).role == "button"
        assert (await driver.pick(tab, selector="#b", text=None)).name == "Two"
        with pytest.raises(NotFound):
            await driver.pick(tab, selector=None, text="Nothing of the kind")
        with pytest.raises(AmbiguousNode) as caught:
            await driver.pick(tab, selector=None, text="Same")
        assert {node.role for node in caught.value.nodes} == {"link", "button"}

    async def test_an_element_is_found_again_or_refused(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, identify elements by their properties, and refuse with candidates if one has changed."""
        html = "<button id=a>Save</button><button id=b>Draw</button><script>b.onclick = () => a.outerHTML = '<button id=a>Save</button>'</script>"
        tab = await open_page(driver, show(html + "<button id=c onclick=\"a.textContent='Delete'\">Turn</button>"))
        elements = await map_elements_by_name(driver, tab)
        await click_named(driver, tab, "Draw")
        assert (await driver.locate(elements["Save"])).name == "Save"
        again = await map_elements_by_name(driver, tab)
        await click_named(driver, tab, "Turn")
        with pytest.raises(StaleNode) as caught:
            await driver.locate(again["Save"])
        assert [node.name for node in caught.value.nodes] == ["Delete"]
        await driver.navigate(tab, show("<p>other", "/other"), until="load", seconds=10)
        with pytest.raises(StaleElement):
            await driver.locate(again["Draw"])

    async def test_a_page_is_read(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, return the text of the page, or its markup as it is seen."""
        tab = await open_page(driver, show("<main><h1>News</h1><p>Said and done.</p></main>"))
        reading = await driver.read(tab, None)
        assert "Said and done." in reading.text + reading.html
        with pytest.raises(NotFound):
            await driver.read(tab, "#nothing")

    async def test_a_picture_is_taken(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, return a PNG of the window."""
        tab = await open_page(driver, show("<p>Look"))
        assert (await driver.screenshot(tab, None, full=False)).startswith(PNG_SIGNATURE)

    # What is done to it

    async def test_a_click_says_what_came_of_it(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, inspect the page after the action, and confirm only the changes that were seen."""
        near = (
            "<button onclick=\"out.textContent = 'it happened'\">Do</button><div role=button>Dead</div><p id=out></p>"
        )
        far = "<div style='height:3000px'></div><button onclick=\"out.textContent = 'far away'\">Far</button>"
        tab = await open_page(driver, show(near + far))
        done = await click_named(driver, tab, "Do")
        assert done.effect == "confirmed"
        assert any("it happened" in each for each in done.evidence)
        assert (await click_named(driver, tab, "Dead")).effect == "unverified"
        assert any("far away" in each for each in (await click_named(driver, tab, "Far")).evidence)

    async def test_what_is_disabled_is_not_clicked(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, refuse elements that cannot be used."""
        tab = await open_page(driver, show("<button disabled>Off</button>"))
        with pytest.raises(ToolError):
            await click_named(driver, tab, "Off", seconds=0.4)

    async def test_a_field_is_filled_and_read_back(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, read the field again, and report a value other than the one given."""
        named = "<label>Name <input value=old oninput=\"out.textContent = 'heard ' + this.value\"></label>"
        tab = await open_page(driver, show(named + "<label>Short <input maxlength=3></label><p id=out></p>"))
        assert (await fill_named(driver, tab, "Name", "Größe 漢字")).effect == "confirmed"
        assert await driver.wait(tab, WaitConditions("heard Größe 漢字"), seconds=3)
        done = await fill_named(driver, tab, "Short", "abcdef")
        kept = next(node for node in (await take_snapshot(driver, tab)).nodes if node.name == "Short").value
        assert (done.effect == "confirmed") is (kept == "abcdef")
        assert (await fill_named(driver, tab, "Name", "")).effect == "confirmed"

    async def test_a_form_is_sent_by_its_field(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, press Enter in the field once it contains the text."""
        show("<p>Found it", "/found")
        tab = await open_page(driver, show("<form action=/found><label>Find <input name=q></label></form>"))
        node = await driver.pick(tab, selector=None, text="Find")
        done = await driver.fill(tab, node, "it", submit=True, seconds=5)
        assert any("/found?q=it" in each for each in done.evidence)

    async def test_a_key_is_pressed(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, send the key to the named element."""
        tab = await open_page(
            driver,
            show(
                "<label>Box <input></label><p id=out></p><script>onkeydown = e => out.textContent = 'pressed ' + e.key</script>"
            ),
        )
        node = await driver.pick(tab, selector=None, text="Box")
        assert any("pressed Enter" in each for each in (await driver.press(tab, node, "Enter", seconds=5)).evidence)

    async def test_a_choice_is_made_by_value_or_label(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, read the list again: an option that it does not have was not chosen."""
        tab = await open_page(
            driver,
            show("<select aria-label=Role><option value=w>Writer<option value=a>Analyst<option value=d>Diver</select>"),
        )
        for value, label in (("Analyst", "Analyst"), ("d", "Diver")):
            node = await driver.pick(tab, selector=None, text="Role")
            done = await driver.select(tab, node, [value], seconds=5)
            assert done.effect == "confirmed"
            assert label in done.evidence[0]
        with pytest.raises(NotFound):
            await driver.select(tab, await driver.pick(tab, selector=None, text="Role"), ["Nobody"], seconds=5)

    async def test_a_file_is_given(self, driver: BrowserDriver, show: Show, tmp_path: Path) -> None:
        """If this fails, upload the file under its own name, and check that the field has it."""
        (tmp_path / "notes.txt").write_text("what it says")
        script = "<script>f.onchange = async () => out.textContent = f.files[0].name + ' ' + await f.files[0].text()</script>"
        tab = await open_page(driver, show(f"<input type=file id=f aria-label=File><p id=out></p>{script}"))
        node = await driver.pick(tab, selector="#f", text=None)
        assert (await driver.upload(tab, node, [tmp_path / "notes.txt"], seconds=5)).effect == "confirmed"
        assert await driver.wait(tab, WaitConditions("notes.txt what it says"), seconds=3)

    async def test_a_question_of_the_page_is_answered(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, detect that the page waits, report it in `state`, and answer the dialog as requested."""
        tab = await open_page(
            driver, show("<button onclick=\"out.textContent = 'said ' + prompt('Who?')\">Ask</button><p id=out></p>")
        )
        done = await click_named(driver, tab, "Ask")
        assert "dialog" in done.more
        assert (await driver.tab(tab.id)).state == "dialog"
        answered = await driver.dialog(tab, accept=True, text="Ada", seconds=5)
        assert answered.effect == "confirmed"
        assert (await driver.tab(tab.id)).state == "open"
        assert await driver.wait(tab, WaitConditions("said Ada"), seconds=3)
        with pytest.raises(NotFound):
            await driver.dialog(tab, accept=True, text=None, seconds=5)

    async def test_what_is_waited_for_is_told_apart_from_what_did_not_come(
        self, driver: BrowserDriver, show: Show
    ) -> None:
        """If this fails, check until the timeout, and return the condition at that moment."""
        tab = await open_page(
            driver,
            show(
                "<p id=p>soon</p><script>setTimeout(() => { p.textContent = 'here'; p.id = 'q' }, 300)</script>",
                "/wait",
            ),
        )

        for awaited in (
            WaitConditions("here"),
            WaitConditions("soon", gone=True),
            WaitConditions(selector="#q"),
            WaitConditions(url="/wait"),
            WaitConditions(until="load"),
        ):
            assert await driver.wait(tab, awaited, seconds=3), awaited
        for never in (WaitConditions("never"), WaitConditions(selector="#never")):
            assert not await driver.wait(tab, never, seconds=0.4), never

    async def test_what_it_lacks_it_refuses_with_the_way_round(self, driver: BrowserDriver, show: Show) -> None:
        """If this fails, do nothing if an action is unsupported, suggest an alternative, and declare it in `lacks`."""
        tab = await open_page(driver, show("<label>Box <input></label><p>text"))
        node = await driver.pick(tab, selector=None, text="Box")
        tries = {
            "chords": lambda: driver.press(tab, node, "Control+A", seconds=5),
            "element_pictures": lambda: driver.screenshot(tab, node, full=False),
            "other_buttons": lambda: driver.click(tab, node, button="middle", count=1, seconds=5),
        }
        for word, attempt in tries.items():
            if word not in driver.lacks:
                await attempt()
                continue
            with pytest.raises(ToolError) as caught:
                await attempt()
            assert caught.value.hint, f"the refusal of {word} has no hint"


async def open_page(driver: BrowserDriver, url: str) -> BrowserTab:
    """Open a tab at an address."""
    return await driver.open_tab(url)


async def take_snapshot(driver: BrowserDriver, tab: BrowserTab, *, everything: bool = False) -> PageSnapshot:
    """Return the content of the tab's page."""
    return await driver.snapshot(tab, everything=everything, selector=None, most=200, skip=0)


async def map_elements_by_name(driver: BrowserDriver, tab: BrowserTab) -> dict[str, Element]:
    """Return the elements of the tab's page as a session has them, by name."""
    shown: Sequence[tuple[PageNode, Element | None]] = number_nodes(
        (await take_snapshot(driver, tab)).nodes, Observations()
    )
    return {node.name: element for node, element in shown if element is not None}


async def click_named(driver: BrowserDriver, tab: BrowserTab, name: str, seconds: float = 5) -> ActionOutcome:
    """Click what is called so."""
    node = await driver.pick(tab, selector=None, text=name)
    return await driver.click(tab, node, button="left", count=1, seconds=seconds)


async def fill_named(driver: BrowserDriver, tab: BrowserTab, name: str, text: str) -> ActionOutcome:
    """Fill the field that is called so."""
    return await driver.fill(tab, await driver.pick(tab, selector=None, text=name), text, submit=False, seconds=5)
