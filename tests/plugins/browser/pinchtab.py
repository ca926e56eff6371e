"""A PinchTab for tests: what pinchtab_api.toml says of its interface, over a real Chromium. What that does not name, it refuses.

Run as a program, as the real one: `pinchtab bridge` or `pinchtab server`, with PINCHTAB_CONFIG and PINCHTAB_TOKEN.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import secrets
import sys
import tempfile
import tomllib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from handrail import Downstream, TimedOut
from handrail_browser.chromium.cdp import CdpConnection, PipeChannel
from handrail_browser.chromium.reaper_process import start_reaper

FACTS = tomllib.loads(Path(__file__).with_name("pinchtab_api.toml").read_text())
PATHS = {each["path"]: each for each in FACTS["paths"]}
INTERACTIVE = frozenset((
    "button", "link", "textbox", "searchbox", "combobox", "listbox", "option", "checkbox", "radio", "switch", "slider", "spinbutton",
    "menuitem", "menuitemcheckbox", "menuitemradio", "tab", "treeitem",
))  # fmt: skip
KEYS = {
    "Enter": (13, "\r"),
    "Tab": (9, "\t"),
    "Escape": (27, ""),
    "Backspace": (8, ""),
    "Home": (36, ""),
    "End": (35, ""),
}
SET = """function(v) { this.value = v; this.dispatchEvent(new Event('input', {bubbles: true}));
this.dispatchEvent(new Event('change', {bubbles: true})); }"""
ACTION_S = 30.0


class Refused(Exception):
    """An answer that says no."""

    def __init__(self, status: int, error: str, code: str = "error", **details: Any) -> None:
        super().__init__(error)
        self.status = status
        self.body = {"error": error, "code": code} | ({"details": details} if details else {})


@dataclass
class Tab:
    """One tab of the browser."""

    id: str
    session: str
    dialog: dict[str, Any] | None = None


@dataclass
class Browser:
    """One Chromium, started with the flags of the configuration. `states`: what each load state is, as the page says it."""

    config: Mapping[str, Any]
    connection: CdpConnection
    keeper: Any
    states: Mapping[str, str]
    tabs: dict[str, Tab] = field(default_factory=dict)

    @classmethod
    async def started(cls, config: Mapping[str, Any], release: str) -> Browser:
        to, ours = os.pipe()
        answers, back = os.pipe()
        profile = Path(tempfile.mkdtemp(prefix="pinchtab-profile-"))
        flags = cls.flags(config)
        flags += ["--no-sandbox"] if os.geteuid() == 0 else []
        argv = [
            config["browser"]["binary"],
            "--remote-debugging-pipe",
            "--headless=new",
            f"--user-data-dir={profile}",
            "--disable-gpu",
        ]
        command = ["remove", str(to), str(back), "--", *argv, "--disable-dev-shm-usage", *flags, "about:blank"]
        keeper = start_reaper(command, profile, dict(os.environ))
        os.close(to)
        os.close(back)
        browser = cls(config, CdpConnection(await PipeChannel.over(answers, ours)), keeper, FACTS["states"][release])
        browser.connection.listen(None, browser.told)
        await browser.connection.send("Target.setDiscoverTargets", {"discover": True})
        return browser

    @staticmethod
    def flags(config: Mapping[str, Any]) -> list[str]:
        """The switches that the configuration adds."""
        return config["browser"].get("extraFlags", "").split()

    def told(self, method: str, params: dict[str, Any]) -> None:
        """Windows that pages open are closed."""
        info = params.get("targetInfo", {})
        if method == "Target.targetCreated" and info.get("type") == "page" and info.get("openerId"):
            self.connection.tell("Target.closeTarget", {"targetId": info["targetId"]})

    async def list(self) -> list[dict[str, Any]]:
        found = (await self.connection.send("Target.getTargets"))["targetInfos"]
        return [
            {"id": each["targetId"], "url": each["url"], "title": each["title"], "type": "page"}
            for each in found
            if each["type"] == "page"
        ]

    async def open(self, url: str) -> Tab:
        target = (await self.connection.send("Target.createTarget", {"url": "about:blank"}))["targetId"]
        tab = await self.tab(target)
        if url and url != "about:blank":
            await self.navigate(tab, url)
        return tab

    async def tab(self, id: str) -> Tab:
        if id in self.tabs:
            return self.tabs[id]
        if id not in {each["id"] for each in await self.list()}:
            raise Refused(404, f"tab {id} not found")
        told = await self.connection.send("Target.attachToTarget", {"targetId": id, "flatten": True})
        tab = self.tabs[id] = Tab(id, told["sessionId"])

        def heard(method: str, params: dict[str, Any]) -> None:
            if method == "Page.javascriptDialogOpening":
                tab.dialog = {"type": params["type"], "message": params["message"]}
            elif method == "Page.javascriptDialogClosed":
                tab.dialog = None

        self.connection.listen(tab.session, heard)
        await self.do(tab, "Page.enable")
        return tab

    async def do(self, tab: Tab, method: str, seconds: float = ACTION_S, **params: Any) -> dict[str, Any]:
        return await self.connection.send(method, params, session=tab.session, seconds=seconds)

    async def value(self, tab: Tab, expression: str) -> Any:
        told = await self.do(tab, "Runtime.evaluate", expression=expression, returnByValue=True)
        return told["result"].get("value")

    async def here(self, tab: Tab) -> dict[str, Any]:
        return {"url": await self.value(tab, "location.href"), "title": await self.value(tab, "document.title")}

    def allow(self, url: str) -> None:
        security = self.config.get("security", {})
        allowed = security.get("allowedDomains", ["127.0.0.1", "localhost"])
        if (
            security.get("idpi", {}).get("enabled", True)
            and "*" not in allowed
            and urlsplit(url).hostname not in allowed
        ):
            raise Refused(
                403, f'navigation blocked by IDPI: domain "{urlsplit(url).hostname}" is not in the allowed list'
            )

    async def navigate(self, tab: Tab, url: str) -> None:
        """It looks after a moment whether the page is ready, the old one counts too; what could not be had is no error."""
        self.allow(url)
        if urlsplit(url).scheme in ("javascript", "data"):
            raise Refused(400, f"invalid URL scheme: {urlsplit(url).scheme}")
        asyncio.get_running_loop().create_task(self.go(tab, url))
        await asyncio.sleep(0.2)
        await self.ready(tab)

    async def go(self, tab: Tab, url: str) -> None:
        with suppress(Downstream, TimedOut):
            await self.do(tab, "Page.navigate", url=url)

    async def ready(self, tab: Tab, seconds: float = 10) -> None:
        ends = monotonic() + seconds
        while monotonic() < ends:
            with suppress(Downstream, TimedOut):
                if await self.value(tab, "document.readyState") in ("interactive", "complete"):
                    return
            await asyncio.sleep(0.05)

    # What is on a page

    async def snapshot(self, tab: Tab, filter: str, selector: str | None) -> list[dict[str, Any]]:
        raw: list[dict[str, Any]] = []
        tree = (await self.do(tab, "Page.getFrameTree"))["frameTree"]
        for id in _frames(tree):
            with suppress(Downstream):
                raw += (await self.do(tab, "Accessibility.getFullAXTree", frameId=id))["nodes"]
        if selector:
            raw = _within(raw, await self.backend(tab, selector))
        parents = {child: node["nodeId"] for node in raw for child in node.get("childIds", ())}
        found: list[dict[str, Any]] = []
        for node in raw:
            role, name = _text(node.get("role")), _text(node.get("name"))
            if (
                node.get("ignored")
                or role in ("none", "generic", "InlineTextBox")
                or (role == "StaticText" and not name)
            ):
                continue
            if filter == "interactive" and role not in INTERACTIVE:
                continue
            depth, at = 0, node["nodeId"]
            while (at := parents.get(at)) is not None:
                depth += 1
            row = {"ref": f"e{len(found)}", "role": role, "name": name, "depth": depth}
            row |= {"value": held} if (held := _text(node.get("value"))) else {}
            row |= {"nodeId": node["backendDOMNodeId"]} if node.get("backendDOMNodeId") else {}
            told = {each["name"]: each["value"].get("value") for each in node.get("properties", ())}
            row |= {state: True for state in ("disabled", "focused") if told.get(state) is True}
            found.append(row)
        return found

    async def backend(self, tab: Tab, selector: str) -> int:
        css = json.dumps(selector.removeprefix("css:"))
        told = await self.do(tab, "Runtime.evaluate", expression=f"document.querySelector({css})")
        if "objectId" not in told["result"]:
            raise Refused(400, "selector: no element matches selector")
        node = await self.do(tab, "DOM.describeNode", objectId=told["result"]["objectId"])
        return node["node"]["backendNodeId"]

    # What is done to it

    async def act(self, tab: Tab, asked: Mapping[str, Any]) -> dict[str, Any]:
        kind, node = asked.get("kind"), asked.get("nodeId")
        if kind not in FACTS["actions"]["kinds"]:
            raise Refused(400, f"unknown action kind: {kind}")
        try:
            told = await self._act(tab, str(kind), node, asked)
        except (Downstream, TimedOut) as exc:
            raise Refused(500, f"action {kind}: {exc}", "action_failed") from exc
        return {"success": True, "result": told or {kind: True}}

    async def _act(self, tab: Tab, kind: str, node: int | None, asked: Mapping[str, Any]) -> Any:
        match kind:
            case "click" | "dblclick" | "hover":
                x, y = asked.get("x", 0), asked.get("y", 0)
                if node is not None:
                    box = (await self.do(tab, "DOM.getBoxModel", backendNodeId=node))["model"]["content"]
                    await self.do(tab, "DOM.scrollIntoViewIfNeeded", backendNodeId=node)
                    x, y = (box[0] + box[4]) / 2, (box[1] + box[5]) / 2
                    if kind != "hover":
                        await self.do(tab, "DOM.focus", backendNodeId=node)
                if kind == "hover":
                    await self.do(tab, "Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
                    return None
                for type in ("mousePressed", "mouseReleased"):
                    count = 2 if kind == "dblclick" else 1
                    await self.do(tab, "Input.dispatchMouseEvent", type=type, button="left", clickCount=count, x=x, y=y)
            case "scrollintoview":
                await self.do(tab, "DOM.scrollIntoViewIfNeeded", backendNodeId=node)
                found = await self.do(tab, "DOM.resolveNode", backendNodeId=node)
                ask = "function() { const r = this.getBoundingClientRect(); return {x: r.x, y: r.y, width: r.width, height: r.height} }"
                told = await self.do(
                    tab,
                    "Runtime.callFunctionOn",
                    functionDeclaration=ask,
                    objectId=found["object"]["objectId"],
                    returnByValue=True,
                )
                return {"box": told["result"]["value"]}
            case "focus":
                await self.do(tab, "DOM.focus", backendNodeId=node)
            case "fill" | "select":
                await self.do(tab, "DOM.focus", backendNodeId=node)
                found = await self.do(tab, "DOM.resolveNode", backendNodeId=node)
                value = asked.get("value") or asked.get("text") or ""
                await self.do(
                    tab,
                    "Runtime.callFunctionOn",
                    functionDeclaration=SET,
                    objectId=found["object"]["objectId"],
                    arguments=[{"value": value}],
                )
            case "keyboard-inserttext":
                await self.do(tab, "Input.insertText", text=asked["text"])
            case "keyboard-type":
                for letter in asked["text"]:
                    down = {"type": "keyDown", "text": letter, "key": letter, "unmodifiedText": letter}
                    await self.do(tab, "Input.dispatchKeyEvent", windowsVirtualKeyCode=ord(letter), **down)
                    await self.do(tab, "Input.dispatchKeyEvent", type="keyUp", key=letter)
            case "press":
                await self.press(tab, asked["key"])
            case "scroll":
                await self.value(tab, f"window.scrollBy({asked.get('scrollX', 0)}, {asked.get('scrollY', 800)})")
            case _:
                raise Refused(501, f"these tests do not know {kind}")
        return None

    async def press(self, tab: Tab, key: str) -> None:
        number, text = KEYS.get(key, (ord(key[0]), key))
        about = {"key": key, "code": key, "windowsVirtualKeyCode": number}
        await self.do(tab, "Input.dispatchKeyEvent", type="rawKeyDown", **about)
        if text:
            await self.do(tab, "Input.insertText", text=text)
        await self.do(tab, "Input.dispatchKeyEvent", type="keyUp", **about)

    async def upload(self, tab: Tab, asked: Mapping[str, Any]) -> int:
        if not self.config.get("security", {}).get("allowUpload"):
            setting = "security.allowUpload"
            raise Refused(
                403, f"upload endpoint is disabled; enable {setting} in config", "upload_disabled", setting=setting
            )
        folder = Path(self.config["server"]["stateDir"]) / "uploads"
        paths = [str((folder / name).resolve(strict=True)) for name in asked.get("paths", ())]
        for number, content in enumerate(asked.get("files", ())):
            path = Path(tempfile.mkdtemp()) / f"upload-{number}"
            path.write_bytes(base64.b64decode(content.removeprefix("base64:")))
            paths.append(str(path))
        node = await self.backend(tab, asked["selector"])
        await self.do(tab, "DOM.setFileInputFiles", files=paths, backendNodeId=node)
        return len(paths)

    async def wait(self, tab: Tab, asked: Mapping[str, Any]) -> dict[str, Any]:
        css = json.dumps(str(asked.get("selector", "")).removeprefix("css:"))
        hidden = "===" if asked.get("state") == "hidden" else "!=="
        if "selector" in asked:
            ask = f"document.querySelector({css}) {hidden} null"
        elif (ask := self.states.get(str(asked["load"]))) is None:
            raise Refused(400, f"unsupported load state: {asked['load']} (supported: {', '.join(self.states)})")
        began = monotonic()
        while True:
            if await self.value(tab, ask):
                return {"waited": True, "elapsed": int((monotonic() - began) * 1000), "match": ask}
            if monotonic() - began > asked.get("timeout", 10_000) / 1000:
                return {"waited": False, "elapsed": int((monotonic() - began) * 1000), "error": "timeout"}
            await asyncio.sleep(0.05)

    async def travel(self, tab: Tab, where: str) -> None:
        if where == "reload":
            await self.do(tab, "Page.reload")
            return
        history = await self.do(tab, "Page.getNavigationHistory")
        at = history["currentIndex"] + (1 if where == "forward" else -1)
        if 0 <= at < len(history["entries"]):
            await self.do(tab, "Page.navigateToHistoryEntry", entryId=history["entries"][at]["id"])
            await self.ready(tab)

    async def end(self) -> None:
        self.keeper.stdin.close()
        await self.connection.close()
        await asyncio.to_thread(self.keeper.wait)


def _text(value: Any) -> str:
    found = (value or {}).get("value", "")
    return "" if found is None else str(found)


def _frames(tree: Mapping[str, Any]) -> list[str]:
    return [tree["frame"]["id"], *(id for child in tree.get("childFrames", ()) for id in _frames(child))]


def _within(raw: list[dict[str, Any]], backend: int) -> list[dict[str, Any]]:
    """The part of the tree below an element; all of it when that is not in the tree, as the real one does."""
    top = next((node for node in raw if node.get("backendDOMNodeId") == backend), None)
    if top is None:
        return raw
    by_id, wanted, todo = {node["nodeId"]: node for node in raw}, list[dict[str, Any]](), [top["nodeId"]]
    while todo:
        if (node := by_id.get(todo.pop(0))) is not None:
            wanted.append(node)
            todo = [*node.get("childIds", ()), *todo]
    return wanted


class PinchTab:
    """The server: one browser (`bridge`), or as many as are asked for (`server`)."""

    def __init__(self, config: Mapping[str, Any], token: str, *, several: bool, release: str) -> None:
        self.config, self.token, self.several, self.release = config, token, several, release
        self.browsers: dict[str, Browser] = {}

    async def answer(
        self, method: str, target: str, headers: Mapping[str, str], content: bytes
    ) -> tuple[int, str, bytes]:
        """Status, content type and content."""
        try:
            body = await self._answered(method, target, headers, content)
        except Refused as exc:
            return exc.status, "application/json", json.dumps(exc.body).encode()
        except (Downstream, TimedOut) as exc:
            return 500, "application/json", json.dumps({"error": str(exc), "code": "error"}).encode()
        if body is None:
            return 404, "text/plain; charset=utf-8", b"404 page not found\n"
        return (
            (200, "image/png", body)
            if isinstance(body, bytes)
            else (200, "application/json", json.dumps(body).encode())
        )

    async def _answered(self, method: str, target: str, headers: Mapping[str, str], content: bytes) -> Any:
        given = headers.get("authorization", "")
        if not given:
            raise Refused(401, "unauthorized", "missing_token")
        scheme, _, token = given.partition(" ")
        if scheme not in FACTS["auth"]["schemes"].values() or not secrets.compare_digest(token, self.token):
            raise Refused(401, "unauthorized", "bad_token")
        parts = urlsplit(target)
        pieces = parts.path.split("/")
        # Tabs and instances are named in the second place.
        named = len(pieces) > 2 and pieces[1] in ("tabs", "instances") and pieces[2] != "start"
        id = unquote(pieces[2]) if named else ""
        known = f"{method} " + "/".join(["{id}" if named and at == 2 else each for at, each in enumerate(pieces)])
        facts = PATHS.get(known)
        if facts is None or "since" in facts or (known == "POST /tabs/{id}/close" and not self.several):
            return None
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        asked = json.loads(content) if content else {}
        if strange := set(query) - set(facts.get("query", ())) | set(asked) - set(facts.get("body", ())):
            raise Refused(500, f"the interface that was read has no {strange} at {known}")
        told = await self.told(known, id, query, asked)
        if isinstance(told, dict) and (strange := set(told) - set(facts.get("answer", ()))):
            raise Refused(500, f"the interface that was read tells no {strange} at {known}")
        return told

    async def one(self) -> Browser:
        if not self.browsers:
            self.browsers[f"inst_{secrets.token_hex(4)}"] = await Browser.started(self.config, self.release)
        return next(iter(self.browsers.values()))

    async def of(self, tab: str) -> Browser:
        for browser in self.browsers.values():
            if tab in {each["id"] for each in await browser.list()}:
                return browser
        raise Refused(404, f"tab {tab} not found")

    async def told(self, known: str, id: str, query: Mapping[str, str], asked: Mapping[str, Any]) -> Any:
        if "/instances" in known:
            return await self.instances(known, id, asked)
        match known:
            case "GET /health":
                if self.several:
                    return {"status": "ok", "mode": "dashboard", "version": "test", "instances": len(self.browsers)}
                return {"status": "ok", "tabs": len(await (await self.one()).list())}
            case "GET /tabs":
                return {"tabs": await (await self.one()).list()}
            case "POST /tab":
                browser = await self.one()
                if asked["action"] == "close":
                    return await self.close(browser, asked["tabId"])
                tab = await browser.open(asked.get("url", ""))
                return {"tabId": tab.id, **await browser.here(tab)}
            case "POST /navigate":
                browser = await self.one()
                tab = await browser.open("")
                await browser.navigate(tab, asked["url"])
                return {"tabId": tab.id, **await browser.here(tab)}
            case "POST /tabs/{id}/close":
                return await self.close(await self.of(id), id)
            case _:
                browser = await self.of(id)
                return await self.in_tab(browser, await browser.tab(id), known.rpartition("/")[2], query, asked)

    async def close(self, browser: Browser, id: str) -> dict[str, Any]:
        if len(await browser.list()) <= 1:
            raise Refused(500, "cannot close the last tab — at least one tab must remain")
        await browser.connection.send("Target.closeTarget", {"targetId": id})
        while id in {each["id"] for each in await browser.list()}:
            await asyncio.sleep(0.02)
        browser.tabs.pop(id, None)
        return {"closed": True}

    async def instances(self, known: str, id: str, asked: Mapping[str, Any]) -> Any:
        if not self.several:
            return None
        if known == "POST /instances/start":
            id = f"inst_{secrets.token_hex(4)}"
            self.browsers[id] = await Browser.started(self.config, self.release)
            return {"id": id, "status": "starting", "headless": asked.get("mode") != "headed"}
        if id not in self.browsers:
            raise Refused(404, f'instance "{id}" not found')
        match known:
            case "GET /instances/{id}":
                return {"id": id, "status": "running", "headless": True}
            case "GET /instances/{id}/tabs":
                return [{**each, "instanceId": id} for each in await self.browsers[id].list()]
            case "POST /instances/{id}/tabs/open":
                tab = await self.browsers[id].open(asked.get("url", ""))
                return {"tabId": tab.id, **await self.browsers[id].here(tab)}
            case _:
                await self.browsers.pop(id).end()
                return {"id": id, "status": "stopped"}

    async def in_tab(
        self, browser: Browser, tab: Tab, what: str, query: Mapping[str, str], asked: Mapping[str, Any]
    ) -> Any:
        do: dict[str, Callable[[], Awaitable[Any]]] = {
            "action": lambda: browser.act(tab, asked),
            "wait": lambda: browser.wait(tab, asked),
        }
        match what:
            case "navigate":
                await browser.navigate(tab, asked["url"])
                return {"tabId": tab.id, **await browser.here(tab)}
            case "back" | "forward" | "reload":
                await browser.travel(tab, what)
                return {"tabId": tab.id, "url": await browser.value(tab, "location.href")}
            case "snapshot":
                nodes = await browser.snapshot(tab, query.get("filter", "all"), query.get("selector"))
                return {**await browser.here(tab), "nodes": nodes, "count": len(nodes)}
            case "text":
                text = await browser.value(tab, "document.body.innerText") or ""
                return {
                    **await browser.here(tab),
                    "text": text[: int(query.get("maxChars", len(text)))],
                    "truncated": False,
                }
            case "screenshot":
                return base64.b64decode((await browser.do(tab, "Page.captureScreenshot", format="png"))["data"])
            case "dialog":
                if tab.dialog is None:
                    raise Refused(400, f"no dialog open on tab {tab.id}")
                was, accept = tab.dialog, asked["action"] == "accept"
                await browser.do(tab, "Page.handleJavaScriptDialog", accept=accept, promptText=asked.get("text", ""))
                return {**was, "handled": True}
            case "upload":
                return {"status": "ok", "files": await browser.upload(tab, asked)}
            case _:
                return await do[what]()


async def serve(pinchtab: PinchTab, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """One connection; whoever leaves before the answer stops what was asked for."""
    with suppress(ConnectionError, asyncio.IncompleteReadError):
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            method, target, _ = head[0].split(" ")
            headers = {line.partition(":")[0].lower(): line.partition(":")[2].strip() for line in head[1:] if line}
            content = await reader.readexactly(int(headers.get("content-length", 0)))
            status, kind, body = await pinchtab.answer(method, target, headers, content)
            writer.write(
                f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body
            )
            await writer.drain()
    writer.close()


async def run(argv: Sequence[str], release: str) -> None:
    config = json.loads(Path(os.environ["PINCHTAB_CONFIG"]).read_text())
    pinchtab = PinchTab(config, os.environ["PINCHTAB_TOKEN"], several=argv[0] == "server", release=release)
    server = await asyncio.start_server(
        lambda reader, writer: serve(pinchtab, reader, writer), config["server"]["bind"], int(config["server"]["port"])
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


def main(release: str) -> None:
    asyncio.run(run(sys.argv[1:], release))


def program(folder: Path, name: str = "pinchtab", release: str = "0.8.4") -> Path:
    """This as a program of one file, as the real one is. `release`: whose load states it knows."""
    root = Path(__file__).parents[3]
    path = folder / name
    path.write_text(
        f"#!{sys.executable}\nimport sys\nsys.path.insert(0, {str(root)!r})\nfrom tests.plugins.browser import pinchtab\npinchtab.main({release!r})\n"
    )
    path.chmod(0o700)
    return path


def template(path: str) -> str:
    """A path as the facts have it."""
    return re.sub(r"^/(tabs|instances)/(?!start)[^/]+", r"/\1/{id}", path)
