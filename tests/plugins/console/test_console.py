"""The console in a real browser, with sessions in processes of their own."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail.audit.writer import AuditWriter
from handrail.desktop.recent_agent_input import AgentInputRecord
from handrail.fs.app_dirs import AppDirs

from . import pictures
from .opened import HANDRAIL, Agent, Console, Page, agent, browser, console, until

PLAIN_WINDOW = Path(__file__).parents[1] / "gui" / "plain_window.py"
HOSTILE = (
    "<script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">"
    "\"'></pre><iframe src=javascript:parent.document.title='owned'> \x1b[31mred\x1b[0m \u202egnp.exe\u202c \u200b&lt;b&gt;"
)


@pytest.fixture(scope="module")
async def new_page() -> AsyncIterator[Any]:
    async with browser() as new:
        yield new


@pytest.fixture(scope="module")
def report(served: Console, home: Path) -> Iterator[Agent]:
    with agent(served, home / "report") as running:
        yield running


@pytest.fixture(scope="module")
def site(served: Console, home: Path) -> Iterator[Agent]:
    """A session with a desktop of its own."""
    with agent(served, home / "site", "--desktop", "private") as running:
        yield running


@pytest.fixture(autouse=True)
async def left_clean(served: Console, report: Agent, site: Agent) -> AsyncIterator[None]:
    """Whatever becomes of a test, the next one finds no call, no question, no file and no stop switch of it."""
    yield
    await anyio.run_process([HANDRAIL, "resume"], env=served.environment)
    (AppDirs.of(served.environment).state / "presses").unlink(missing_ok=True)
    for each in (report, site):
        await each.clean()


@pytest.fixture
async def page(new_page: Any, served: Console, report: Agent, site: Agent) -> AsyncIterator[Page]:
    """The console's page, with both sessions in it."""
    opened: Page = await new_page()
    await opened.goto(served.link)
    await opened.wait("document.querySelectorAll('#sessions .pick').length === 2")
    yield opened
    await opened.send("Page.navigate", url="about:blank")
    # The door is answered with 401, and what is over with 404. Of nothing else the browser complains: no script failed or was kept from running.
    assert [said for said in opened.said if not said.startswith("Failed to load resource")] == []


def question(folder: str, what: str = "") -> str:
    """The one question of a session, by what stands in its path, and in it."""
    fits = f"each.textContent.includes('{folder}') && each.textContent.includes('{what}')"
    return f"[...document.querySelectorAll('article.ask')].find((each) => {fits})"


async def select(page: Page, folder: str) -> None:
    """Choose the session that works in a folder."""
    button = f"[...document.querySelectorAll('#sessions .pick')].find((each) => each.textContent.includes('{folder}'))"
    await page.wait(f"!!{button}")
    await page.js(f"{button}.click()")
    await page.wait(f"{button}.getAttribute('aria-pressed') === 'true'")


async def test_of_two_sessions_at_once_one_call_is_approved_and_the_other_denied(
    page: Page, report: Agent, site: Agent
):
    approved = report.call("write_file", file_path="yes.txt", content="hello")
    refused = site.call("write_file", file_path="no.txt", content="hello")
    await page.wait("document.querySelectorAll('article.ask').length === 2")
    await page.press(".approve", question("report"))
    # The other question moves up, where it takes no press for a moment.
    await page.wait("document.querySelectorAll('article.ask').length === 1")
    await page.js(f"{question('site')}.querySelector('input').value = 'write less'")
    await page.press(".deny", question("site"))
    assert (await report.result(approved))["status"] == "success"
    denied = await site.result(refused)
    assert denied["error"]["code"] == "denied_by_user"
    assert "write less" in denied["error"]["message"]
    assert (report.folder / "yes.txt").read_text() == "hello"
    assert not (site.folder / "no.txt").exists()
    # The host that was asked as well is told that it need not ask any longer.
    asked = await report.asked(approved)
    told = await report.line(lambda line: line.get("answered") == asked["approval"])
    assert (told["answer"], told["by"]) == ("once", "in the console")
    await page.wait("document.querySelectorAll('article.ask').length === 0")
    await select(page, "report")
    await page.wait("document.querySelector('details.call').textContent.includes('success')")


async def test_an_edited_call_is_judged_anew(page: Page, report: Agent):
    edited = report.call("write_file", file_path="edited.txt", content="one")
    await page.press(".edit", question("report"))
    await page.wait("!!document.querySelector('[data-argument=content]')")
    await page.write("[data-argument=content]", "two")
    before = await page.js(f"{question('report')}.dataset.question")
    await page.press(".edited", question("report"))
    await page.wait(f"{question('report')} && {question('report')}.dataset.question !== '{before}'")
    assert "+two" in await page.js(f"{question('report')}.textContent")
    await page.press(".approve", question("report"))
    assert (await report.result(edited))["status"] == "success"
    assert (report.folder / "edited.txt").read_text() == "two"


async def test_who_comes_second_is_told(page: Page, report: Agent):
    late = report.call("write_file", file_path="late.txt", content="hello")
    asked = await report.asked(late)
    await page.wait(f"!!{question('report')}")
    report.write({"control": "answer", "id": "answering", "approval": asked["approval"], "answer": "once"})
    assert (await report.result(late))["status"] == "success"
    await page.wait("document.querySelectorAll('article.ask').length === 0")
    await page.wait("document.getElementById('notice').textContent.includes('answered elsewhere')")


HOSTILE_QUESTIONS = [
    {
        "question": f"Which one? {HOSTILE}",
        "kind": "choice",
        "options": ["red", f"blue {HOSTILE}"[:200]],
        "several": True,
    },
    {"question": "Sure?", "kind": "yes_no"},
    {"question": "What is it called?"},
]


async def test_questions_in_words_are_answered_and_are_only_text(page: Page, report: Agent):
    asking = report.call("ask_user", questions=HOSTILE_QUESTIONS)
    told = await report.line(lambda line: line.get("id") == asking and "inquiry" in line)
    card = "document.querySelector('article.ask')"
    await page.wait(f"{card}?.querySelectorAll('fieldset').length === 3")
    text = await page.js(f"{card}.textContent")
    assert "told to the model" in text
    assert "Open for" in text
    assert not any(letter in text for letter in "\x1b\u202e\u202c\u200b")
    assert await page.js(f"{card}.querySelectorAll('img, script, iframe').length") == 0
    await page.js(
        f"{card}.querySelectorAll('input[type=checkbox]')[0].click(), {card}.querySelectorAll('input[type=radio]')[1].click()"
    )
    await page.write("article.ask textarea", "the boat")
    await page.press(".reply", card)
    result = await report.result(asking)
    assert [each["answer"] for each in result["answers"]] == [["red"], False, "the boat"]
    answered = await report.line(lambda line: line.get("answered") == told["inquiry"])
    assert answered["by"] == "in the console"
    await page.wait("document.querySelectorAll('article.ask').length === 0")


async def test_questions_in_words_that_somebody_else_answers_are_taken_off_the_page(page: Page, report: Agent):
    asking = report.call("ask_user", questions=[{"question": "What is it called?"}])
    told = await report.line(lambda line: line.get("id") == asking and "inquiry" in line)
    await page.wait("!!document.querySelector('article.ask .reply')")
    report.write({"control": "reply", "id": "replying", "inquiry": told["inquiry"], "answers": ["the boat"]})
    assert (await report.result(asking))["status"] == "success"
    await page.wait("document.querySelectorAll('article.ask').length === 0")
    await page.wait("document.getElementById('notice').textContent.includes('answered elsewhere')")


async def test_the_question_of_a_session_that_was_killed_leaves_the_page(page: Page, served: Console, home: Path):
    with agent(served, home / "killed") as killed:
        killed.call("write_file", file_path="never.txt", content="hello")
        await page.wait(f"!!{question('killed')}")
        killed.process.kill()
        await page.wait("document.querySelectorAll('article.ask').length === 0")
    assert list(Path(served.environment["HANDRAIL_HOME"], "state", "approvals").iterdir()) == []


async def test_what_an_agents_hands_may_have_pressed_is_no_yes(page: Page, served: Console, report: Agent):
    places = AppDirs.of(served.environment)
    call = report.call("write_file", file_path="pressed.txt", content="hello")
    with AgentInputRecord(places.state / "presses").made():
        await page.press(".approve", question("report"))
        await page.wait("document.getElementById('notice').textContent.includes('may have been theirs')")
        assert not (report.folder / "pressed.txt").exists()
    # A moment later.
    os.utime(places.state / "presses", (0, 0))
    await page.press(".approve", question("report"))
    assert (await report.result(call))["status"] == "success"
    # A no is taken whoever pressed.
    with AgentInputRecord(places.state / "presses").made():
        call = report.call("write_file", file_path="denied.txt", content="hello")
        await page.press(".deny", question("report"))
        assert (await report.result(call))["error"]["code"] == "denied_by_user"


async def test_what_a_running_command_puts_out_is_shown_while_it_runs(page: Page, report: Agent):
    command = 'i=0; while sleep 0.05; do i=$((i+1)); echo "line $i of $(cat page.txt)"; done'
    (report.folder / "page.txt").write_text(HOSTILE)
    await select(page, "report")
    running = report.call("execute_cli", command=command, timeout=600)
    card = f"document.querySelector('[data-call={running}]')"
    # Nobody opens it: the newest that puts something out opens by itself.
    await page.wait(f"{card}?.open && {card}.querySelector('pre.tail').textContent.includes(' of <script>')")
    tail = await page.js(f"{card}.querySelector('pre.tail').textContent")
    last = int(tail.rpartition("line ")[2].partition(" ")[0])
    await page.wait(f"Number({card}.querySelector('pre.tail').textContent.split('line ').pop().split(' ')[0]) > {last}")
    assert "<script>" in tail
    assert len(tail.split("\n")) <= 60
    assert await page.js(f"{card}.querySelectorAll('pre.tail *').length") == 0
    report.write({"control": "cancel", "id": "stopping", "call": running})
    assert (await report.result(running))["status"] == "cancelled"
    await page.wait(f"{card}.dataset.status === 'cancelled' && !{card}.querySelector('pre.tail')")


async def test_agents_are_stopped_and_go_on(page: Page, report: Agent):
    await page.press("#stop")
    await page.wait("!document.getElementById('stopped').hidden")
    stopped = report.call("write_file", file_path="stopped.txt", content="hello")
    assert (await report.result(stopped))["error"]["code"] == "failsafe"
    assert not (report.folder / "stopped.txt").exists()
    await page.press("#resume")
    await page.wait("document.getElementById('stopped').hidden")
    resumed = report.call("write_file", file_path="resumed.txt", content="hello")
    await page.press(".approve", question("report"))
    assert (await report.result(resumed))["status"] == "success"


async def test_a_hostile_result_is_nothing_but_text(page: Page, report: Agent):
    (report.folder / "hostile.txt").write_text(HOSTILE)
    hostile = report.call("read_file", file_path="hostile.txt")
    await report.result(hostile)
    await select(page, "report")
    card = f"document.querySelector('[data-call={hostile}]')"
    await page.wait(f"!!{card}?.querySelector('summary')")
    await page.js(f"{card}.open = true")
    await page.wait(f"{card}.querySelector('pre.result').textContent.includes('onerror')")
    assert await page.js("document.title") == "Handrail console"
    assert await page.js("document.querySelectorAll('#live iframe, #live script, #live pre *').length") == 0
    text = await page.js("document.body.textContent")
    assert not any(letter in text for letter in "\x1b\u202e\u202c\u200b")
    # A script that got into the page all the same would not run, and no text passes for HTML.
    refused = "(() => { try { document.body.insertAdjacentHTML('beforeend', '<p>'); return false; } catch { return true; } })()"
    assert await page.js(refused)
    await until(lambda: [said for said in page.said if "TrustedHTML" in said], what="the browser's complaint")
    page.said = [said for said in page.said if "TrustedHTML" not in said]


async def test_keys_answer_nothing_by_accident_and_stay_where_they_are(page: Page, report: Agent, site: Agent):
    await select(page, "report")
    await page.js("document.querySelector('#sessions [aria-pressed=true]').focus()")
    call = site.call("write_file", file_path="keys.txt", content="hello")
    await page.wait(f"{question('site')}?.querySelector('.approve').disabled === false")
    # The list of sessions was made anew, and the focus is where it was, on no button that answers.
    focused = "document.activeElement.dataset.session"
    assert await page.js(f"{focused} === document.querySelector('#sessions [aria-pressed=true]').dataset.session")
    for key in ("Enter", "Escape"):
        await page.key(key)
    await page.js(f"{question('site')}.querySelector('input').focus()")
    for key in ("Enter", "Escape"):
        await page.key(key)
    assert await page.js(f"!!{question('site')} && !{question('site')}.dataset.answered")
    # Reached by its key, it is pressed by another.
    await page.js(f"{question('site')}.querySelector('.approve').focus()")
    await page.key("Enter")
    assert (await site.result(call))["status"] == "success"


async def test_every_control_has_a_name(page: Page, site: Agent):
    site.call("ask_user", questions=[{"question": "Which?", "kind": "choice", "options": ["a", "b"]}])
    await page.wait("!!document.querySelector('article.ask fieldset')")
    tree = await page.send("Accessibility.getFullAXTree")
    roles = {"button", "textbox", "checkbox", "radio", "combobox", "slider", "article", "image", "log"}
    controls = [node for node in tree["nodes"] if node.get("role", {}).get("value") in roles]
    assert len(controls) > 8
    assert [node for node in controls if not node["name"].get("value")] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
async def test_on_a_telephone_nothing_is_wider_than_the_screen(page: Page, report: Agent, tmp_path: Path, dark: bool):
    await page.size(360, 740, dark=dark)
    wide = "document.documentElement.scrollWidth"
    wide_call = report.call("write_file", file_path="a" * 100, content="wide " * 200)
    await page.wait(f"!!{question('report')}")
    assert await page.js(wide) == 360
    await page.press(".edit", question("report"))
    assert await page.js(wide) == 360
    await page.press(".deny", question("report"))
    await report.result(wide_call)
    await select(page, "report")
    await page.js("document.querySelectorAll('details.call').forEach((each) => { each.open = true; })")
    assert await page.js(wide) == 360
    await page.press("#show-history")
    await page.wait("!!document.querySelector('#past .pick')")
    assert await page.js(wide) == 360
    await page.picture(tmp_path / "telephone.png")
    assert (tmp_path / "telephone.png").stat().st_size > 10_000


async def test_the_pictures_of_the_documentation_are_taken_of_this_page(page: Page, report: Agent, tmp_path: Path):
    for file, size in zip(await pictures.shoot(page, report, tmp_path), pictures.SIZES.values(), strict=True):
        assert png_size(file.read_bytes()) == size


async def test_a_person_works_the_desktop_on_the_live_picture(page: Page, site: Agent, served: Console, tmp_path: Path):
    assert "image_b64" in await site.result(site.call("observe_screen"))
    desktop = next(line for line in recorded(served, "desktop") if line["private"])
    typed = tmp_path / "typed.txt"
    with plain_window(typed, desktop["environment"]):
        await select(page, "site")
        await page.wait("document.querySelector('.card[data-seen] img.screen').naturalWidth > 0")
        await page.press("#take")
        await page.wait("!document.getElementById('type').hidden && !!document.querySelector('img.screen.taken')")
        await until(typed.exists, what="the window")
        await page.click("img.screen")
        await page.wait("document.querySelector('.card[data-seen]').textContent.includes('click done')")
        await page.write("#type-text", "by hand")
        await page.press("#type")
        await until(lambda: typed.read_text() == "by hand", what="what was typed")
    acts = [line for line in recorded(served, "call") if line["tool"] == "manual_control"]
    assert [line["args"]["action"] for line in acts] == ["click", "type"]
    assert "by hand" not in json.dumps(acts)
    refused = await site.result(site.call("manual_control", action="click"))
    assert refused["error"]["code"] == "tool_unavailable"


async def test_past_calls_are_gone_through_step_by_step_with_their_pictures(page: Page, site: Agent):
    assert "image_b64" in await site.result(site.call("observe_screen"))
    await page.press("#show-history")
    button = "[...document.querySelectorAll('#past .pick')].find((each) => each.textContent.includes('observe_screen'))"
    await page.wait(f"!!{button}")
    await page.js(f"{button}.click()")
    steps = int(
        (await page.wait("document.getElementById('step') && document.getElementById('step').textContent")).split()[-1]
    )
    for number in range(2, steps + 1):
        await page.press("#next")
        await page.wait(f"document.getElementById('step').textContent.startsWith('{number} of')")
    await page.wait("document.querySelector('#replay img.shot').naturalWidth > 0")


@pytest.fixture
def long_session(served: Console) -> Iterator[str]:
    """The id of a past session with many calls."""
    id = "20200101-000000-abcdef"
    audit = AuditWriter(AppDirs.of(served.environment).audit / f"{id}.jsonl", session=id)
    for number in range(250):
        audit.write("call", {"call_id": f"long-{number}", "tool": "write_file", "args": {}})
        audit.write("result", {"call_id": f"long-{number}", "status": "success", "result": {}})
    audit.close()
    yield id
    audit.path.unlink()


async def test_a_long_past_is_gone_through_page_by_page_from_its_end(page: Page, long_session: str):
    await page.press("#show-history")
    await page.press(f"[data-session='{long_session}']", "document.getElementById('past')")
    last = "document.querySelector('#replay > div:last-child details:last-child')?.dataset.call"
    await page.wait(f"{last} === 'long-249'")
    await page.press("#earlier")
    await page.wait(f"{last} === 'long-149'")
    assert await page.js("document.querySelectorAll('#replay > div:last-child details').length") == 100
    await page.press("#earlier")
    await page.wait(f"{last} === 'long-49'")
    assert await page.js("document.getElementById('earlier')") is None
    await page.press("#later")
    await page.wait(f"{last} === 'long-149'")


def png_size(data: bytes) -> tuple[int, int]:
    width, height = struct.unpack(">II", data[16:24])
    return width, height


async def test_of_a_session_with_very_many_calls_the_page_holds_the_last(page: Page, served: Console):
    id = "20990101-000000-abcdef"
    # Whoever writes an audit runs.
    audit = AuditWriter(AppDirs.of(served.environment).audit / f"{id}.jsonl", session=id)
    shown = "document.querySelectorAll('#calls > details')"
    try:
        for number in range(1_000):
            audit.write("call", {"call_id": f"many-{number}", "tool": "write_file", "args": {}})
            audit.write("result", {"call_id": f"many-{number}", "status": "success", "result": {}})
            if number == 0:
                await page.press(f"[data-session='{id}']", "document.getElementById('sessions')")
        await page.wait(f"{shown}[0]?.dataset.call === 'many-999'")
        assert await page.js(f"{shown}.length") <= 200
    finally:
        audit.close()
        audit.path.unlink()


async def test_of_two_tabs_one_answers_and_the_other_is_told(page: Page, new_page: Any, served: Console, report: Agent):
    other: Page = await new_page()
    try:
        await other.goto(served.link)
        call = report.call("write_file", file_path="tabs.txt", content="hello")
        await other.wait(f"!!{question('report')}")
        await page.press(".approve", question("report"))
        assert (await report.result(call))["status"] == "success"
        await other.wait("document.querySelectorAll('article.ask').length === 0")
        await other.wait("document.getElementById('notice').textContent.includes('answered elsewhere')")
    finally:
        await other.send("Page.navigate", url="about:blank")


async def test_a_page_follows_on_by_itself_and_says_when_its_link_is_no_longer_good(new_page: Any, tmp_path: Path):
    opened: Page = await new_page()
    try:
        with console(tmp_path) as first:
            await opened.goto(first.link)
            await opened.wait("document.getElementById('link').textContent === 'connected'")
            port = str(first.address[1])
        await opened.wait("document.getElementById('link').textContent === 'not connected'")
        with console(tmp_path, port=port):
            await opened.wait("document.getElementById('notice').textContent.includes('no longer good')")
    finally:
        await opened.send("Page.navigate", url="about:blank")


@contextmanager
def plain_window(typed: Path, environment: dict[str, str]) -> Iterator[None]:
    """A window on a desktop, which writes down what it is typed."""
    window = subprocess.Popen(
        [sys.executable, PLAIN_WINDOW, typed], env={**os.environ, **environment}, stdin=subprocess.DEVNULL
    )
    try:
        yield
    finally:
        window.terminate()
        window.wait(60)


def recorded(served: Console, event: str) -> list[dict[str, Any]]:
    """The lines of all audits about this."""
    audits = sorted(Path(served.environment["HANDRAIL_HOME"], "data", "audit").glob("*.jsonl"))
    lines = [json.loads(line) for audit in audits for line in audit.read_text().splitlines()]
    return [line for line in lines if line["event"] == event]
