"""What a result says of an action is what happened: a page that only looks as if it had been done is not believed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest
from tests.plugins.browser.site import Site, serving
from tests.plugins.browser.working import Hands, browsing, shown


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        yield site


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("session")


@pytest.fixture(scope="module")
async def shared(folder: Path) -> AsyncGenerator[Hands, None]:
    async with browsing(folder) as hands:
        yield hands


@pytest.fixture
async def hands(shared: Hands) -> AsyncGenerator[Hands, None]:
    """One browser for all tests, with a tab of its own for each."""
    await shared.done("open_tab")
    yield shared
    await shared.done("close_tab")


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
