"""Programs of five toolkits on a private desktop: their trees read, looked at, clicked and typed into."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio

import handrail
from benchmarks import atspi_peers
from benchmarks.measure import Absent, Contender, Effort, take_turns
from benchmarks.report import Measurement, Row, compare, duration
from benchmarks.screen import desktop, program
from benchmarks.sessions import environment, require, succeed
from handrail import Session

PATIENCE_S = 60.0
SYSTEM_PYTHON = "/usr/bin/python3"
PEERS = ("pyatspi", "libatspi", "dogtail")
LIMIT = "pyatspi, the whole tree in a process of its own"
LETTERS = 10_000
ROWS_OF_PAGE = 300
PAGE = """<!doctype html><title>Big</title><textarea aria-label=Notes></textarea><label><input type=checkbox>Paid</label><table>{}</table>"""
PAGE_ROW = "<tr><td>{0}<td><a href=#{0}>link {0}</a><td><button>b{0}</button><td><input value=v{0}>"
QT_FORM = """
import sys
from PySide6.QtWidgets import QApplication, QCheckBox, QFormLayout, QMainWindow, QPlainTextEdit, QPushButton, QWidget
app = QApplication(sys.argv)
window, form = QMainWindow(), QWidget()
lines = QFormLayout(form)
lines.addRow("Notes", QPlainTextEdit())
lines.addRow("", QCheckBox("Paid"))
for number in range(12):
    lines.addRow(f"Field {number}", QPushButton(f"Button {number}"))
window.setCentralWidget(form)
window.show()
app.exec()
"""


@dataclass(frozen=True, slots=True)
class Application:
    """Program to start, with elements to click and to type into; `tree` is the goal for the tree's ratio."""

    argv: tuple[str, ...]
    click: tuple[str, str]
    field: str | None
    tree: float | None = None


APPLICATIONS: Mapping[str, Application] = {
    "gtk3": Application(("mousepad",), ("menu", "Edit"), "text"),
    "gtk4": Application(("gtk4-widget-factory",), ("check box", "checkbutton"), "text"),
    "qt": Application((sys.executable, "qt_form.py"), ("check box", "Paid"), "text", 1.0),
    "calc": Application(("soffice", "--norestore", "--nologo", "--calc"), ("toggle button", "Bold"), None, 0.15),
    "writer": Application(("soffice", "--norestore", "--nologo", "--writer"), ("toggle button", "Bold"), "paragraph"),
    "chromium": Application(
        ("chromium", "--no-sandbox", "--no-first-run", "--force-renderer-accessibility", "big.html"),
        ("check box", "Paid"),
        "text",
        0.06,
    ),
}


async def tree(name: str, effort: Effort) -> Row:
    """Measure `get_ui_context` without the call around it, and the peers' walks."""
    async with running(name) as (session, shown):
        service = await session.service("accessibility")
        counted: list[int] = []

        async def ours() -> float:
            began = perf_counter()
            counted.append(len((await service.tree()).elements))
            return perf_counter() - began

        contenders: dict[str, Contender] = {"handrail": ours}
        absent: dict[str, str] = {}
        for peer in PEERS:
            contender = _peer(peer, shown)
            try:
                await contender()
            except Absent as exc:
                absent[peer] = f"absent: {exc}"
            else:
                contenders[LIMIT if peer == PEERS[0] else peer] = contender
        if LIMIT not in contenders:
            raise Absent(absent[PEERS[0]])
        timings = await take_turns(contenders, rounds=effort.rounds(10), warm_up=2)
    goal = APPLICATIONS[name].tree
    note = f"{counted[-1]} elements"
    return compare(f"accessibility tree of {name}", timings, limit=LIMIT, goal=goal, absent=absent, note=note)


async def observe(name: str, effort: Effort) -> Row:
    """Measure `observe_screen` with the picture as JPEG."""
    async with running(name) as (session, _):
        return await _timed(f"observe {name} with a picture", partial(_call, session, "observe_screen"), effort)


async def click(name: str, effort: Effort) -> Row:
    """Measure an `execute_gui` click by id, from the call until the screen is quiet."""
    async with running(name) as (session, _):
        role, text = APPLICATIONS[name].click
        id = await _id(session, lambda e: (e["role"], e["text"]) == (role, text))
        clicked = partial(_call, session, "execute_gui", action="click", element_id=id)
        return await _timed(f"click in {name} until it is quiet", clicked, effort)


async def typing(name: str, effort: Effort) -> Row:
    """Measure `execute_gui` typing 10,000 characters, which are read back."""
    async with running(name) as (session, _):
        field = APPLICATIONS[name].field
        id = await _id(session, lambda e: e["role"] == field and "editable" in e["states"])
        await succeed(session, "execute_gui", {"action": "click", "element_id": id})

        async def typed() -> float:
            text = "".join(random.choices("abcdefghij äöü漢字😀", k=LETTERS))
            return await _call(session, "execute_gui", action="type", text=text)

        return await _timed(f"{LETTERS:,} characters into {name}", typed, effort, goal=2_000)


async def _timed(job: str, contender: Contender, effort: Effort, *, goal: float | None = None) -> Row:
    timing = (await take_turns({"handrail": contender}, rounds=effort.rounds(10)))["handrail"]
    told = duration(timing.median)
    return Row(job, value=timing.median * 1e3, goal=goal, unit="ms", ours=told, timings={"handrail": timing})


async def _call(session: Session, tool: str, **args: Any) -> float:
    began = perf_counter()
    await succeed(session, tool, args)
    return perf_counter() - began


async def _id(session: Session, fits: Callable[[dict[str, Any]], bool]) -> str:
    seen = await succeed(session, "observe_screen", {"image": "none"})
    found = next((element["id"] for element in seen["ui_elements"] if fits(element)), None)
    if found is None:
        raise Absent(f"what is to be used is not there: {seen['stdout'][:300]}")
    return found


def _peer(name: str, shown: Mapping[str, str]) -> Contender:
    variables = {key: value for key, value in shown.items() if not key.startswith(("PYTHON", "VIRTUAL_ENV"))}
    argv = [SYSTEM_PYTHON, str(Path(atspi_peers.__file__)), name]

    async def contender() -> float:
        try:
            with anyio.fail_after(PATIENCE_S):
                done = await anyio.run_process(argv, env=variables, check=False, stdin=subprocess.DEVNULL)
        except TimeoutError:
            raise Absent(f"its walk takes more than {PATIENCE_S:g} s") from None
        if done.returncode:
            said = (done.stderr + done.stdout).decode(errors="replace")
            raise Absent(said.strip().rpartition("\n")[2] or f"it ended with {done.returncode}")
        return float(done.stdout.split()[0])

    return contender


@asynccontextmanager
async def running(name: str) -> AsyncGenerator[tuple[Session, Mapping[str, str]]]:
    """Run the program on a private desktop and read it twice: the first read starts what its cache needs."""
    with (
        environment(HANDRAIL_DESKTOP="benchmark", HANDRAIL_BACKEND="accessibility") as variables,
        desktop(variables) as shown,
    ):
        folder = Path(variables["HANDRAIL_HOME"])
        rows = "".join(PAGE_ROW.format(number) for number in range(ROWS_OF_PAGE))
        (folder / "big.html").write_text(PAGE.format(rows))
        (folder / "qt_form.py").write_text(QT_FORM)
        given = {"big.html": (folder / "big.html").as_uri(), "qt_form.py": str(folder / "qt_form.py")}
        argv = [given.get(part, part) for part in APPLICATIONS[name].argv]
        async with handrail.open(environment=variables, cwd=folder) as session:
            require(session, "gui", "accessibility")
            with program(*argv, environment={**shown, "HOME": str(folder)}):
                await _until_read(session, APPLICATIONS[name].click)
                yield session, shown


async def _until_read(session: Session, wanted: tuple[str, str]) -> None:
    with anyio.move_on_after(PATIENCE_S):
        while True:
            seen = await session.call("observe_screen", {"image": "none"})
            if seen.ok and any((e["role"], e["text"]) == wanted for e in seen["ui_elements"]):
                return
            await anyio.sleep(0.2)
    raise Absent(f"after {PATIENCE_S:g} s there is no {wanted[0]} {wanted[1]!r}")


ROWS: Mapping[str, Measurement] = {
    **{f"tree-{name}": partial(tree, name) for name in APPLICATIONS},
    **{f"observe-{name}": partial(observe, name) for name in APPLICATIONS},
    **{f"click-{name}": partial(click, name) for name in APPLICATIONS},
    **{f"typing-{name}": partial(typing, name) for name, given in APPLICATIONS.items() if given.field is not None},
}
