"""PinchTab: how its program comes here, how one of our own is held, how one that a person runs is used, and what its refusals mean."""

# Markup and scripts stand on one line.

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
import signal
import stat
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from tests.plugins.browser import pinchtab as served
from tests.plugins.browser.pinchtab import FACTS, PATHS, program, template
from tests.plugins.browser.site import Answer, Asked, Site, serving
from tests.plugins.browser.working import Hands, browsers_of, browsing, command

from handrail import Denied, Downstream, InvalidArguments, NotFound, StaleElement, TimedOut, ToolError, ToolUnavailable
from handrail.net.resolver import resolve_with_system
from handrail.net.web_client import RequestLimits, WebClient
from handrail.testing import ScriptedConfirmer
from handrail.workers.host_programs import HostPrograms
from handrail_browser.browsing.browser_service import SessionBrowser
from handrail_browser.chromium.launcher import PROFILE_PREFIX, find_chromium as chromium_program
from handrail_browser.config import BrowserConfig
from handrail_browser.driver import PageInterrupted
from handrail_browser.pinchtab import input_actions, release
from handrail_browser.pinchtab.client import MAX_ANSWER_BYTES, PinchTabClient, PinchTabUnavailable, UnknownEndpoint
from handrail_browser.pinchtab.release import (
    PinchTabRelease,
    ReleaseFile,
    fetch_program,
    get_platform_name,
    is_program_intact,
    load_pinned_release,
)

LOCAL = ("127.0.0.1",)
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with serving(Site()) as site:
        yield site


# The program and where it comes from


def offered(site: Site, content: bytes, *, sha256: str | None = None) -> PinchTabRelease:
    """A release of this machine, whose one file is `content`."""
    site.pages["/v/pinchtab"] = Answer(content, headers={"content-type": "application/octet-stream"})
    file = ReleaseFile(name="pinchtab", sha256=sha256 or hashlib.sha256(content).hexdigest())
    return PinchTabRelease(version="9.9.9", base=site.url("/v/"), files={get_platform_name(): file})


def web() -> WebClient:
    return WebClient(
        allow_private=LOCAL, resolver=resolve_with_system, limits=RequestLimits(size=1_000_000, seconds=10, silence=5)
    )


def test_the_pinned_release_names_files_with_published_checksums() -> None:
    found = load_pinned_release()
    assert found.version in found.base
    assert found.base.startswith("https://")
    assert set(found.files) == {"linux-amd64", "linux-arm64", "darwin-amd64", "darwin-arm64"}
    assert all(place in file.name for place, file in found.files.items())


def test_a_platform_without_a_checksum_is_told_so_with_the_cure() -> None:
    with pytest.raises(ToolUnavailable, match=r"no checksum of PinchTab .* is known for 'windows-amd64'") as caught:
        load_pinned_release().file("windows-amd64")
    assert "plugins.browser.pinchtab.executable" in (caught.value.hint or "")


async def test_the_program_is_checked_made_executable_and_kept(site: Site, tmp_path: Path) -> None:
    wanted = offered(site, b"#!/bin/sh\n")
    path = await fetch_program(web(), wanted, tmp_path, get_platform_name())
    assert path == wanted.path(tmp_path, get_platform_name())
    assert path.read_bytes() == b"#!/bin/sh\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert is_program_intact(path, wanted.file(get_platform_name()))
    assert [each.name for each in path.parent.iterdir()] == ["pinchtab"]
    path.write_bytes(b"#!/bin/sh\nsomething else\n")
    assert not is_program_intact(path, wanted.file(get_platform_name()))


async def test_a_program_with_another_checksum_is_not_kept(site: Site, tmp_path: Path) -> None:
    with pytest.raises(Downstream, match="nothing was kept of it"):
        await fetch_program(web(), offered(site, b"changed", sha256="0" * 64), tmp_path, get_platform_name())
    assert not list(tmp_path.rglob("pinchtab*"))


async def test_a_program_that_does_not_come_whole_is_not_kept(tmp_path: Path) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\n" + b"x" * 400)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(speak, *LOCAL, 0) as server:
        base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        wanted = PinchTabRelease(
            version="1", base=base, files={get_platform_name(): ReleaseFile(name="p", sha256="0" * 64)}
        )
        with pytest.raises(Downstream):
            await fetch_program(web(), wanted, tmp_path, get_platform_name())
    # Nobody listens there any more.
    with pytest.raises(Downstream):
        await fetch_program(web(), wanted, tmp_path, get_platform_name())
    assert not list(tmp_path.rglob("*"))


async def test_a_release_that_is_not_there_or_leads_astray_is_an_error(site: Site, tmp_path: Path) -> None:
    wanted = offered(site, b"x")
    site.pages["/v/pinchtab"] = Answer("gone", 404)
    with pytest.raises(Downstream, match="answered 404"):
        await fetch_program(web(), wanted, tmp_path, get_platform_name())
    site.pages["/v/pinchtab"] = Answer("", 302, {"location": "http://10.255.255.1/pinchtab"})
    with pytest.raises(Denied):
        await fetch_program(web(), wanted, tmp_path, get_platform_name())
    assert not list(tmp_path.rglob("*"))


# One of our own


def browsers(folder: Path, *, wanted: PinchTabRelease | None = None, **config: Any) -> SessionBrowser:
    settings = BrowserConfig(**{"driver": "pinchtab", **config})
    return SessionBrowser(settings, dict(os.environ), data=folder, release=wanted)


async def test_it_is_fetched_after_a_question_and_then_kept(site: Site, tmp_path: Path) -> None:
    wanted = offered(site, program(tmp_path, "fake").read_bytes())
    first = browsers(tmp_path, wanted=wanted)
    choice = await first.choose()
    assert choice.asks is not None
    assert "9.9.9" in choice.asks
    assert site.url("/v/") in choice.asks
    site.pages["/page"] = "<title>Here</title>"
    driver = await first.driver(allow_private=LOCAL, upstream=None)
    try:
        assert (await driver.open_tab(site.url("/page"))).title == "Here"
    finally:
        await first.close()
    again = await browsers(tmp_path, wanted=wanted).choose()
    assert again.asks is None
    assert again.program == wanted.path(tmp_path, get_platform_name())


async def test_without_a_yes_nothing_is_fetched(tmp_path: Path, site: Site) -> None:
    person = ScriptedConfirmer("deny")
    async with browsing(tmp_path, confirm=person, driver="pinchtab") as hands:
        if get_platform_name() not in load_pinned_release().files:
            await hands.refused("open_tab", "no checksum", code="tool_unavailable")
            return
        result = await hands.refused("open_tab", "it fetches PinchTab", code="denied_by_user")
        assert load_pinned_release().base in result["error"]["message"]
    assert not list(tmp_path.rglob("pinchtab-*"))


async def test_a_program_that_ends_or_leads_past_the_proxy_is_not_used(tmp_path: Path) -> None:
    ended = tmp_path / "ended"
    ended.write_text("#!/bin/sh\nexit 3\n")
    ended.chmod(0o700)
    with pytest.raises(ToolUnavailable, match="ended as it was started"):
        await browsers(tmp_path, pinchtab={"executable": ended}).driver(allow_private=LOCAL, upstream=None)
    # It leaves out the switch that names the proxy.
    past = program(tmp_path, "past")
    past.write_text(
        past.read_text().replace("pinchtab.main(", "pinchtab.Browser.flags = lambda config: []\npinchtab.main(")
    )
    with pytest.raises(ToolUnavailable, match="does not keep to Handrail's proxy"):
        await browsers(tmp_path, pinchtab={"executable": past}).driver(allow_private=LOCAL, upstream=None)
    assert not [pid for pid in browsers_of(os.getpid()) if str(tmp_path) in command(pid)]


OF_ITS_OWN = """
import asyncio, sys
from pathlib import Path
from tests.plugins.browser.working import browsing
async def main():
    async with browsing(driver="pinchtab", pinchtab={"executable": sys.argv[2]}) as hands:
        await hands.done("navigate", sys.argv[1])
        print("ready", flush=True)
        await asyncio.sleep(600)
asyncio.run(main())
"""


def test_nothing_is_left_when_handrail_is_killed(site: Site, tmp_path: Path) -> None:
    site.pages["/page"] = "<title>Here</title>"
    argv = [sys.executable, "-c", OF_ITS_OWN, site.url("/page"), str(program(tmp_path))]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, cwd=Path(__file__).parents[3]) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        pids = browsers_of(process.pid)
        folders = {
            Path(word) for pid in pids for word in command(pid).split() if Path(word).name.startswith(PROFILE_PREFIX)
        }
        assert folders
        process.kill()

    def left() -> list[int]:
        return [
            pid for pid in pids if "chrom" in command(pid) or "reaper.py" in command(pid) or "bridge" in command(pid)
        ]

    ends = monotonic() + PATIENCE_S
    while (left() or any(folder.exists() for folder in folders)) and monotonic() < ends:
        signal.sigtimedwait([], 0.05)
    assert not left()
    assert not any(folder.exists() for folder in folders)


# One that a person runs


@asynccontextmanager
async def theirs(folder: Path, mode: str, **security: Any) -> AsyncGenerator[tuple[str, str], None]:
    """A PinchTab at work, with rules of its own; its address and its token."""
    chromium = chromium_program(None, HostPrograms(os.environ))
    config = folder / "theirs.json"
    config.write_text(
        json.dumps(
            {
                "server": {"bind": "127.0.0.1", "port": "0", "stateDir": str(folder)},
                "browser": {"binary": chromium},
                "security": {"allowedDomains": ["127.0.0.1", "10.255.255.1"], **security},
            }
        )
    )
    token = secrets.token_hex(16)
    around = {**os.environ, "PINCHTAB_CONFIG": str(config), "PINCHTAB_TOKEN": token}
    process = await asyncio.create_subprocess_exec(
        str(program(folder, "theirs")), mode, env=around, stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        port = int(await process.stdout.readline())
        yield f"http://127.0.0.1:{port}", token
    finally:
        process.kill()
        await process.wait()


@asynccontextmanager
async def working(
    folder: Path,
    mode: str,
    confirm: Any = None,
    *,
    auth: str = "token",
    **security: Any,
) -> AsyncGenerator[Hands, None]:
    async with theirs(folder, mode, **security) as (url, token):
        settings = {
            "driver": "auto",
            "pinchtab": {"url": url, "token": "secret:pinch", "auth": auth},
        }
        environment = {**os.environ, "HANDRAIL_SECRET_PINCH": token}
        more = {"confirm": confirm} if confirm is not None else {}
        async with browsing(environment=environment, **more, **settings) as hands:
            yield hands


async def test_a_server_of_theirs_gives_us_a_browser_of_our_own_after_a_yes(site: Site, tmp_path: Path) -> None:
    site.pages["/page"] = (
        "<title>Here</title><button onclick=\"this.textContent = 'Done'\">Do</button><input type=file id=f>"
    )
    person = ScriptedConfirmer("deny", *["once"] * 9)
    async with working(tmp_path, "server", person) as hands:
        (hands.session.cwd / "f.txt").write_text("x")
        result = await hands.refused("open_tab", "it uses the PinchTab at", code="denied_by_user")
        assert "what its pages load is not" in result["error"]["message"]
        assert (await hands.done("navigate", site.url("/page")))["title"] == "Here"
        assert "'Done'" in (await hands.done("click", name="Do"))["content"]
        # What their configuration forbids is said with the setting that allows it.
        result = await hands.refused("upload", "upload endpoint is disabled", selector="#f", paths=["f.txt"])
        assert "security.allowUpload" in result["error"]["message"]
        # Its own rules stay.
        result = await hands.call("navigate", "https://example.org/")
        assert result["status"] != "success"


async def test_a_tab_that_came_to_where_it_may_not_be_is_closed(site: Site, tmp_path: Path) -> None:
    site.pages["/good"] = "<title>Good</title><a href='/bad'>Go</a>"
    site.pages["/bad"] = Answer("", 302, {"location": f"http://localhost:{site.port}/secret"})
    site.pages["/secret"] = "<title>Secret</title>"
    allowed: dict[str, Any] = {"allowedDomains": ["127.0.0.1", "localhost"]}
    async with working(tmp_path, "bridge", auth="session", **allowed) as hands:
        await hands.done("navigate", site.url("/good"))
        result = await hands.call("click", name="Go")
        assert result["status"] == "denied", result
        assert "Secret" not in (await hands.done("list_tabs"))["content"]
        assert (await hands.call("navigate", "file:///etc/passwd"))["status"] == "denied"


async def test_one_that_does_not_answer_is_passed_over_or_told(tmp_path: Path) -> None:
    nobody = {"url": "http://127.0.0.1:9"}
    assert (await browsers(tmp_path, driver="auto", pinchtab=nobody).choose()).driver == "chromium"
    with pytest.raises(ToolUnavailable, match="no PinchTab answers at") as caught:
        await browsers(tmp_path, pinchtab=nobody).choose()
    assert "execute_gui" in (caught.value.hint or "")
    none = SessionBrowser(BrowserConfig(driver="pinchtab"), {"PATH": str(tmp_path)}, data=tmp_path)
    with pytest.raises(ToolUnavailable, match="PinchTab works a Chromium too") as caught:
        await none.choose()
    assert "execute_gui" in (caught.value.hint or "")


@pytest.mark.parametrize(
    "url", ["http://10.0.0.1:9867", "https://127.0.0.1:9867", "http://127.0.0.1.example.org:1", "http://a@127.0.0.1:1"]
)
def test_only_one_on_this_machine_can_be_named(url: str) -> None:
    with pytest.raises(ValueError, match="url"):
        BrowserConfig.model_validate({"pinchtab": {"url": url}})


# What it says no with


@pytest.mark.parametrize(
    ("status", "body", "kind", "cure"),
    [
        (401, {"error": "unauthorized", "code": "missing_token"}, Downstream, "plugins.browser.pinchtab.token"),
        (401, {"error": "unauthorized", "code": "bad_token"}, Downstream, "does not hold its token"),
        (
            403,
            {"error": "off", "code": "upload_disabled", "details": {"setting": "security.allowUpload"}},
            Downstream,
            "security.allowUpload true",
        ),
        (
            403,
            {"error": "current tab blocked by IDPI: domain", "code": "idpi_domain_blocked"},
            Denied,
            "security.allowedDomains",
        ),
        (404, {"error": "tab x not found", "code": "error"}, NotFound, "list the tabs"),
        (404, {"error": "ref e3 not found - take a /snapshot first", "code": "error"}, StaleElement, "new snapshot"),
        (409, {"error": "paused", "code": "tab_paused_handoff"}, Downstream, "pinchtab tab resume"),
        (409, {"error": "changed", "code": "navigation_changed"}, Downstream, "new snapshot"),
        (423, {"error": "locked", "code": "tab_locked"}, Downstream, "locked this tab"),
        (429, {"error": "too many requests", "code": "rate_limited"}, Downstream, "more requests"),
        (400, {"error": "selector: none", "code": "error"}, InvalidArguments, None),
        (500, {"error": "a dialog", "code": "dialog_blocking"}, PageInterrupted, None),
        (503, {"error": "no token", "code": "token_required"}, Downstream, "with a token"),
        (500, {"title": "Problem", "detail": "told by problem+json"}, Downstream, None),
    ],
)
async def test_a_refusal_is_explained_with_the_cure(
    site: Site, status: int, body: dict[str, Any], kind: type[Exception], cure: str | None
) -> None:
    code = body.get("code")
    assert code in (None, "error") or FACTS["errors"]["codes"][code] == status
    site.pages["/tabs"] = Answer(json.dumps(body), status, {"content-type": "application/json"})
    client = PinchTabClient(site.url("").rstrip("/"), "Bearer x", patience=0)
    try:
        with pytest.raises(kind) as caught:
            await client.get("/tabs")
    finally:
        await client.close()
    assert cure is None or cure in (getattr(caught.value, "hint", None) or "")
    if kind is Downstream:
        assert isinstance(caught.value, ToolError)
        assert caught.value.retryable is (status in (423, 429, 503))


async def test_a_request_that_was_one_too_many_is_made_again(site: Site) -> None:
    refused = Answer(json.dumps({"error": "too many requests", "code": "rate_limited"}), 429)
    answers = iter([refused, refused, Answer(json.dumps({"tabs": []}))])
    site.pages["/tabs"] = lambda _: next(answers)
    client = PinchTabClient(site.url("").rstrip("/"), "Bearer x")
    try:
        assert await client.get("/tabs") == {"tabs": []}
    finally:
        await client.close()


async def test_answers_that_are_none_are_told_apart(site: Site) -> None:
    def slow(_: Asked) -> Answer:
        site.release.wait(1)
        return Answer("{}")

    site.pages |= {
        "/broken": Answer("{not json"), "/list": Answer("[1]"), "/deep": Answer("[" * 100_000), "/huge": Answer(b" " * (MAX_ANSWER_BYTES + 1)),
        "/slow": slow, "/elsewhere": Answer("", 302, {"location": "/list"}),
    }  # fmt: skip
    client, nobody = PinchTabClient(site.url("").rstrip("/"), None), PinchTabClient("http://127.0.0.1:9", None)
    try:
        for path, told in (
            ("/broken", "not its protocol"),
            ("/list", "not its protocol"),
            ("/deep", "not its protocol"),
            ("/huge", "more than"),
            ("/elsewhere", "302"),
        ):
            with pytest.raises(Downstream, match=told):
                await client.get(path)
        with pytest.raises(TimedOut):
            await client.get("/slow", seconds=0.2)
        with pytest.raises(UnknownEndpoint):
            await client.get("/nothing")
        with pytest.raises(PinchTabUnavailable):
            await nobody.get("/health")
        assert nobody.lost
    finally:
        await client.close()
        await nobody.close()


async def test_what_it_did_to_another_element_is_no_success(site: Site) -> None:
    """PinchTab may act on something that is like what was named, and calls that a recovery."""
    site.pages["/tabs/x/action"] = Answer(
        json.dumps({"success": True, "result": {}, "recovery": {"strategy": "semantic"}})
    )
    client = PinchTabClient(site.url("").rstrip("/"), None)
    try:
        with pytest.raises(Downstream, match="to another one"):
            input_actions.check_action_result(
                "click", await client.post("/tabs/x/action", {"kind": "click", "nodeId": 1})
            )
        with pytest.raises(Downstream, match="did not do"):
            input_actions.check_action_result("click", {"success": False, "error": "no"})
    finally:
        await client.close()


def test_the_test_server_knows_nothing_but_the_interface_that_was_read() -> None:
    assert {served.template(path) for path in ("/tabs/A/action", "/instances/B/tabs/open")} == {
        "/tabs/{id}/action",
        "/instances/{id}/tabs/open",
    }
    assert template("/instances/start") == "/instances/start"
    used = {
        "click",
        "dblclick",
        "fill",
        "press",
        "hover",
        "focus",
        "select",
        "scroll",
        "keyboard-type",
        "keyboard-inserttext",
        "scrollintoview",
    }
    assert used <= set(FACTS["actions"]["kinds"])
    source = "".join(path.read_text() for path in Path(release.__file__).parent.glob("*.py"))
    for path in ("/health", "/tabs", "/tab", "/navigate", "/instances/start"):
        assert any(known.endswith(f" {path}") for known in PATHS)
        assert f'"{path}"' in source
