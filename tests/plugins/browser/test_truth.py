"""What a result says of an action is what happened: a page that only looks as if it had been done is not believed."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.plugins.browser.site import Answer, Site
from tests.plugins.browser.working import Hands, shown

TRIES = 5


async def test_a_button_that_only_takes_the_focus_has_done_nothing(hands: Hands, site: Site) -> None:
    await shown(hands, site, "<button>Dead</button><input aria-label=Field>")
    result = await hands.done("click", name="Dead")
    assert (result["effect"], result["content"]) == ("unverified", "focus on button 'Dead'")
    assert (await hands.done("click", name="Field"))["effect"] == "confirmed"


async def test_what_changes_by_itself_is_no_sign_of_an_action(hands: Hands, site: Site) -> None:
    clock = "<p id=clock></p><script>let n = 0; setInterval(() => clock.textContent = 'tick ' + ++n, 20)</script>"
    await shown(
        hands,
        site,
        f"<div role=button>Dead</div><button onclick=\"out.textContent='done'\">Alive</button><p id=out></p>{clock}",
    )
    for _ in range(4):
        seen = (await hands.lines(filter="all")).splitlines()[-1]
        await hands.done("wait", text=seen, gone=True)
    result = await hands.done("click", name="Dead")
    assert result["effect"] == "unverified"
    assert result["settled"] is True
    assert "changes by itself: 'tick" in result["content"]
    result = await hands.done("click", name="Alive")
    assert result["effect"] == "confirmed"
    assert "new on the page: 'done'" in result["content"]


async def test_a_box_is_checked_where_the_page_lets_it_be(hands: Hands, site: Site) -> None:
    back = "setTimeout(() => this.checked = false, 5)"
    await shown(
        hands,
        site,
        f"<label><input type=checkbox> Plain</label><label><input type=checkbox onclick='{back}'> Held</label>",
    )
    assert "checkbox 'Plain' is checked" in (await hands.done("click", name="Plain"))["evidence"]
    assert (await hands.done("click", name="Held"))["effect"] == "unverified"


async def test_a_choice_counts_where_the_page_keeps_it(hands: Hands, site: Site) -> None:
    options = "<option>a<option>b</select>"
    await shown(
        hands,
        site,
        f"<select aria-label=Held onchange=\"setTimeout(() => this.value = 'a', 5)\">{options}"
        f"<select aria-label=Off disabled>{options}<fieldset disabled><select aria-label=Within>{options}</fieldset>"
        f"<select aria-label=Grouped><optgroup label=x disabled><option>p</optgroup><option>q</select>"
        f"<select aria-label=Several multiple>{options}",
    )
    result = await hands.done("select", name="Held", values=["b"])
    assert (result["effect"], result["evidence"][0]) == ("unverified", "it holds 'a'")
    for name in ("Off", "Within"):
        await hands.refused("select", "it is disabled", name=name, values=["b"])
    await hands.refused("select", "the choice is disabled", name="Grouped", values=["p"])
    assert (await hands.done("select", name="Several", values=["a", "b"]))["effect"] == "confirmed"
    assert (await hands.done("select", name="Several", values=["a", "b"]))["effect"] == "none"


async def test_what_a_field_cuts_off_is_not_submitted(hands: Hands, site: Site) -> None:
    sending = "<form onsubmit=\"out.textContent='sent '+this.elements[0].value; return false\">"
    mask = "this.value = this.value.replace(/\\D/g, '').replace(/^(...)(...)/, '($1) $2-')"
    await shown(
        hands,
        site,
        f'{sending}<input aria-label=Zip maxlength=5></form>{sending}<input aria-label=Phone oninput="{mask}"></form><p id=out></p>',
    )
    result = await hands.done("fill", name="Zip", text="1234567", submit=True)
    assert result["effect"] == "unverified"
    assert "Nothing was submitted" in result["note"]
    assert "sent" not in await hands.lines(filter="all")
    await hands.done("fill", name="Phone", text="5551234567", submit=True)
    assert "sent (555) 123-4567" in await hands.lines(filter="all")


async def test_text_that_went_into_another_field_is_told(hands: Hands, site: Site) -> None:
    await shown(hands, site, "<input aria-label=Search onfocus=other.focus()><input id=other aria-label=Other>")
    result = await hands.done("fill", name="Search", text="kettle")
    assert result["effect"] == "unverified"
    assert "textbox 'Other' holds 'kettle'" in result["evidence"]


async def test_files_count_as_given_where_the_field_holds_them(hands: Hands, site: Site, folder: Path) -> None:
    work = Path(hands.session.workspace[0])
    for name in ("a.txt", "b.txt"):
        (work / name).write_text(name)
    await shown(
        hands,
        site,
        "<input type=file aria-label=One><input type=file disabled aria-label=Off><button>Other</button>"
        "<input type=file aria-label=Emptied onchange=\"setTimeout(() => this.value = '', 5)\"><label for=out>Choose</label>"
        "<input type=file id=out style='display:none'>",
    )
    await hands.refused("upload", "takes one file", name="One", paths=["a.txt", "b.txt"])
    assert (await hands.done("upload", name="One", paths=["a.txt"]))["effect"] == "confirmed"
    await hands.refused("upload", "it is disabled", name="Off", paths=["a.txt"])
    await hands.refused("upload", "takes no files", name="Other", paths=["a.txt"])
    result = await hands.done("upload", name="Emptied", paths=["a.txt"])
    assert (result["effect"], result["evidence"]) == ("unverified", ["the field holds no file"])
    await hands.done("click", selector="label")
    await hands.refused("upload", "takes one file", paths=["a.txt", "b.txt"])
    assert (await hands.done("upload", paths=["b.txt"]))["effect"] == "confirmed"
    assert "a.txt" in await hands.lines()


async def test_a_link_that_leads_nowhere_is_told_as_that(hands: Hands, site: Site) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        dead = f"http://127.0.0.1:{held.getsockname()[1]}/"
        await shown(
            hands,
            site,
            f"<a href='{dead}'>Dead</a> <a href='http://127.0.0.2:{site.port}/'>Kept</a> <a href=/none>None</a>",
        )
        result = await hands.done("click", name="Dead")
        assert (result["effect"], result["url"]) == ("unverified", dead)
        assert "could not be opened" in result["content"]
        await hands.refused("navigate", "cannot be reached", dead)
    await hands.done("navigate", site.url())
    result = await hands.done("click", name="Kept")
    assert (result["effect"], "may not be gone to" in result["content"]) == ("unverified", True)
    assert "127.0.0.2" in result["blocked"][0]
    await hands.done("back")
    assert (await hands.done("click", name="None"))["http_status"] == 404


async def test_an_address_with_nothing_to_show_is_no_file(hands: Hands, site: Site) -> None:
    site.pages["/nothing"] = Answer(status=204)
    await shown(hands, site, "<p>here")
    result = await hands.done("navigate", site.url("/nothing"))
    assert (result["effect"], "nothing to show" in result["content"]) == ("none", True)
    assert result["url"] == site.url()


async def test_a_page_that_asks_whether_to_leave_it_has_not_been_left(hands: Hands, site: Site) -> None:
    await shown(hands, site, "<input aria-label=Note><script>onbeforeunload = e => e.preventDefault()</script>")
    await hands.done("fill", name="Note", text="mine")
    result = await hands.done("navigate", site.url("/nothing"))
    assert (result["effect"], result["content"]) == ("none", "the page asks whether to leave it")
    await hands.done("dialog")


async def test_a_page_that_did_not_come_in_time_was_not_gone_to(hands: Hands, site: Site) -> None:
    site.pages["/next"] = "<title>Next</title>"
    await shown(hands, site, "<button onclick='for (;;);'>Hang</button>")
    assert (await hands.call("click", name="Hang", timeout=1))["status"] == "timeout"
    assert (await hands.call("navigate", site.url("/next"), timeout=1))["status"] == "timeout"


async def test_a_tab_that_closes_itself_is_said_to(hands: Hands, site: Site) -> None:
    site.pages["/popup"] = "<title>Popup</title><button onclick='window.close()'>Enough</button>"
    await shown(hands, site, "<button onclick=\"window.open('/popup')\">Open</button>")
    opener = (await hands.done("list_tabs"))["tab_id"]
    # The browser tells of it a little later than the page; on a machine that is busy with others that may be too late.
    for _ in range(TRIES):
        [popup] = (await hands.done("click", name="Open", tab_id=opener))["opened_tabs"]
        result = await hands.done("click", name="Enough", tab_id=popup)
        if result["effect"] == "confirmed":
            break
    assert (result["effect"], result["content"]) == ("confirmed", "the tab was closed")
    await hands.done("snapshot", tab_id=opener)


async def test_what_a_click_begins_to_download_is_told_and_not_kept(hands: Hands, site: Site, folder: Path) -> None:
    made = "a.href = window.URL.createObjectURL(new Blob(['some text'])); a.click()"
    await shown(hands, site, f'<a id=a download=made.txt></a><button onclick="{made}">Export</button>')
    for _ in range(TRIES):
        result = await hands.done("click", name="Export")
        if result["effect"] == "confirmed":
            break
    assert "a download began: 'made.txt'" in result["evidence"]
    assert "was not kept" in result["note"]
    await hands.done("download", name="Export", path="made.txt")
    assert (folder / "work" / "made.txt").read_text() == "some text"


async def test_what_comes_under_the_pointer_in_place_of_its_target_is_not_clicked(hands: Hands, site: Site) -> None:
    decoy = "<button style='position:absolute;left:10px;top:60px' onclick=\"document.title='paid'\">Pay</button>"
    dodge = "<button style='position:absolute;left:10px;top:60px' onmouseover=\"this.style.left='300px'\">Free</button>"
    await shown(hands, site, decoy + dodge)
    await hands.refused("click", "button 'Pay' came in between", name="Free")
    over = "<div id=over onclick=\"document.title='paid'\" style='display:none;position:fixed;inset:0'></div>"
    await shown(hands, site, f"<button onmouseover=\"over.style.display='block'\">Real</button>{over}")
    await hands.refused("click", "came in between", name="Real")
    assert "paid" not in (await hands.done("list_tabs"))["content"]
    # What is drawn anew under the pointer is the same thing.
    again = "this.outerHTML = `<button onclick=\"this.textContent='hit'\">Again</button>`"
    await shown(hands, site, f"<button onmouseover='{again.replace(chr(39), '&#39;')}'>Again</button>")
    assert "'hit'" in (await hands.done("click", name="Again"))["content"]
