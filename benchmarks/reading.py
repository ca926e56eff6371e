"""Accuracy of the backend `ocr` on real programs, against their accessibility tree: `python -m benchmarks.reading`.

Each program is shown on its own private desktop at three scales, and once with Chinese and Japanese text. The tree's
rectangles are the ground truth: which words are written there, and where a user would have to click.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from time import perf_counter

import anyio
import psutil

import handrail
from benchmarks.measure import Absent
from benchmarks.sessions import environment, require
from handrail import Element, Frame, Rect, Session

SIZE = (1280, 800)
SCALES = (1.0, 1.5, 2.0)
PATIENCE_S = 60.0
# A window is drawn when two pictures of it, so many seconds apart, are alike.
QUIET_S = 0.5
# So much of them may differ.
MOVING = 0.03
# Screen pixels that a letter takes at least at scale 1: a name that is longer than its rectangle is not written there.
NARROWEST = 4.5
WORKER = "handrail_vision_ocr.worker"
# Han, Hiragana, Katakana: each sign counts as a word.
WORDS = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_\u3040-\u30ff\u3400-\u9fff]+(?:['.,:/@-][^\W_]+)*")

# No longer than a window of it is wide at the largest scale.
NOTES = """Meeting of Tuesday, 14 March
Present: Ada Lovelace, Grace Hopper
1. The budget for 2027 is 48,250.00 EUR.
2. That is up 3.5 % on last year.
3. Send the report to office@example.org.
4. Do that before Friday at 17:30.
5. Files are in /srv/projects/handrail/docs.
Next meeting: room B-204, bring coffee.
"""
NOTES_CJK = """会议记录 三月十四日
出席：王小明、李美玲、张伟
预算为四万八千元，比去年增加。
請在星期五之前將報告寄給辦公室。
次の会議は来週の火曜日です。
資料を確認してから設定を変更してください。
"""
PAGE = """<!doctype html><meta charset="utf-8"><title>Orders</title>
<style>html{zoom:SCALE}body{font:16px sans-serif;margin:24px}td,th{padding:4px 16px;text-align:left}label{display:block;margin:8px 0}</style>
<h1>Orders of this week</h1><p>There are three open orders. Choose one to see its details.</p>
<table><tr><th>Number<th>Customer<th>Total<tr><td>10481<td>Brunner Optik<td>129.90
<tr><td>10482<td>Casa Verde<td>1,048.00<tr><td>10483<td>Nordwind Reisen<td>76.25</table>
<label>Search <input value="Nordwind"></label><label><input type="checkbox" checked> Show closed orders</label>
<button>Refresh list</button> <button>Export as CSV</button> <a href="#help">Help and contact</a>"""
PAGE_CJK = """<!doctype html><meta charset="utf-8"><title>订单</title><style>html{zoom:SCALE}body{font:18px sans-serif;margin:24px}</style>
<h1>本周订单</h1><p>有三个未完成的订单。请选择一个查看详细信息。</p>
<button>刷新列表</button> <button>导出文件</button> <p>注文を確認してください。</p><button>設定を変更</button> <button>保存する</button>"""

CELLS = (("Number", "Customer", "Total"), ("10481", "Brunner Optik", "129.90"), ("10482", "Casa Verde", "1048.00"))
SHEET = (
    '<?xml version="1.0" encoding="UTF-8"?><office:document office:version="1.3" '
    'xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" '
    'xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" '
    'xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" '
    'office:mimetype="application/vnd.oasis.opendocument.spreadsheet"><office:body><office:spreadsheet>'
    '<table:table table:name="Orders">'
    + "".join(
        "<table:table-row>"
        + "".join(f"<table:table-cell><text:p>{cell}</text:p></table:table-cell>" for cell in row)
        + "</table:table-row>"
        for row in CELLS
    )
    + "</table:table></office:spreadsheet></office:body></office:document>"
)


@dataclass(frozen=True, slots=True)
class Program:
    """A program to look at. `argv` may name files of `files`, which are written before, with the scale for the word SCALE."""

    name: str
    argv: tuple[str, ...]
    files: tuple[tuple[str, str], ...] = ()

    def command(self, folder: Path, scale: float) -> list[str]:
        for name, text in self.files:
            folder.joinpath(name).write_text(text.replace("SCALE", f"{scale:g}"), encoding="utf-8")
        return [part.format(folder=folder) for part in self.argv]


CHROMIUM = (
    "chromium",
    "--no-sandbox",
    "--no-first-run",
    "--disable-gpu",
    "--force-renderer-accessibility",
    "--user-data-dir={folder}/profile",
)
PROGRAMS = (
    Program("calculator (GTK)", ("galculator",)),
    Program("editor (GTK)", ("mousepad", "{folder}/notes.txt"), (("notes.txt", NOTES),)),
    Program("widgets (GTK)", ("gtk3-widget-factory",)),
    Program(
        "spreadsheet (LibreOffice)",
        ("localc", "--norestore", "--nologo", "-env:UserInstallation=file://{folder}/office", "{folder}/orders.fods"),
        (("orders.fods", SHEET),),
    ),
    Program("web page (Chromium)", (*CHROMIUM, "file://{folder}/page.html"), (("page.html", PAGE),)),
)
CJK = (
    Program("editor, Chinese and Japanese", ("mousepad", "{folder}/notes.txt"), (("notes.txt", NOTES_CJK),)),
    Program("web page, Chinese and Japanese", (*CHROMIUM, "file://{folder}/page.html"), (("page.html", PAGE_CJK),)),
)


@dataclass(frozen=True, slots=True)
class Shown:
    """One screen: its picture, and what the tree says is on it."""

    program: str
    scale: float
    frame: Frame
    tree: tuple[Element, ...]


@dataclass(frozen=True, slots=True)
class Score:
    """Score of one screen: words, elements named by their text, and elements without text; found, and total."""

    words: tuple[int, int]
    named: tuple[int, int]
    unnamed: tuple[int, int]
    seconds: float
    megabytes: float


def score(
    tree: Sequence[Element], seen: Sequence[Element], scale: float
) -> tuple[tuple[int, int], tuple[int, int], tuple[int, int]]:
    """Return the counts of items found and in total: words, named elements, and controls without text.

    Words must be read where they are; the center of a named element must be clicked by its text; a control without text
    must be found at all.
    """
    words, named, unnamed = [0, 0], [0, 0], [0, 0]
    for element in shown_of(tree):
        assert element.rect is not None
        told = words_of(label(element))
        if written(element, scale):
            near = {word for one in seen if one.rect and touch(one.rect, element.rect) for word in words_of(one.text)}
            words[0] += sum(word in near for word in told)
            words[1] += len(told)
            if element.actions and len(told) <= 6:
                named[1] += 1
                named[0] += any(
                    set(told) <= set(words_of(one.text)) and one.rect and element.rect.contains(*one.rect.center)
                    for one in seen
                )
        elif element.actions:
            unnamed[1] += 1
            unnamed[0] += any(one.rect and element.rect.contains(*one.rect.center) for one in seen)
    return (words[0], words[1]), (named[0], named[1]), (unnamed[0], unnamed[1])


def shown_of(tree: Sequence[Element]) -> list[Element]:
    """Return the elements that occupy a place of their own.

    Excludes frames around others, whose names are not drawn, and elements that the tree places outside their frame.
    """
    framed = {at: [e for e in beneath(tree, at) if e.rect and within(e.rect, tree[at].rect)] for at in range(len(tree))}
    outside = {
        id(element)
        for at, inside in framed.items()
        if inside
        for element in beneath(tree, at)
        if not any(element is each for each in inside)
    }
    frames = {at for at, inside in framed.items() if len(inside) > 1 or (inside and set(tree[at].actions) <= {"focus"})}
    return [element for at, element in enumerate(tree) if at not in frames and id(element) not in outside]


def beneath(tree: Sequence[Element], at: int) -> Iterator[Element]:
    """Yield the elements below this one in the tree."""
    return takewhile(lambda element: element.depth > tree[at].depth, tree[at + 1 :])


def within(inner: Rect, outer: Rect | None) -> bool:
    """Return True if most of the inner rectangle is inside the outer one."""
    if outer is None:
        return False
    both = inner.intersect(outer)
    return 2 * both.width * both.height > inner.width * inner.height


def label(element: Element) -> str:
    """Return the text drawn in the element: what was typed, else its name.

    Other values, such as a menu's number of items, are not drawn.
    """
    typed = element.value if "editable" in element.states else None
    return (typed or element.text).strip()


def written(element: Element, scale: float) -> bool:
    """Return True if the element's label can be written in its rectangle; otherwise it is an icon's name."""
    assert element.rect is not None
    text = label(element)
    square = element.rect.width <= 1.4 * element.rect.height and len(text) > 2
    return bool(words_of(text)) and not square and element.rect.width >= NARROWEST * scale * min(len(text), 40)


def words_of(text: str) -> list[str]:
    return [word.casefold() for word in WORDS.findall(text)]


def touch(one: Rect, other: Rect) -> bool:
    return not one.intersect(other).empty


async def shown(program: Program, scale: float) -> Shown:
    """Show the program on a private desktop of the size that the scale requires."""
    async with scaled_desktop(scale) as (session, variables):
        folder = Path(variables["HANDRAIL_HOME"])
        with running(program.command(folder, scale), {**variables, **enlarged(scale)}):
            return Shown(program.name, scale, *await settled(session))


def enlarged(scale: float) -> Mapping[str, str]:
    """Return the variables that tell GTK, and programs drawn by it, the text size.

    With GDK_SCALE the tree would report positions in other pixels.
    """
    return {"GDK_DPI_SCALE": f"{scale:g}"}


@asynccontextmanager
async def scaled_desktop(scale: float) -> AsyncGenerator[tuple[Session, Mapping[str, str]], None]:
    """Open a session on a private desktop of 1280x800 times the scale; yield it with the environment for programs."""
    width, height = (round(side * scale) for side in SIZE)
    with environment(HANDRAIL_BACKEND="accessibility") as variables:
        folder = Path(variables["HANDRAIL_HOME"])
        async with handrail.open(environment=variables, cwd=folder, desktop="current") as host:
            require(host, "gui", "accessibility", "vision_ocr")
            desktops = await host.runtime.service("desktops", session=None, desktop=None)
            desktop = await desktops.start("reading", width=width, height=height)
            around = {**variables, **desktop.environment}
            async with handrail.open(environment=around, cwd=folder, desktop="current") as session:
                yield session, around


@contextmanager
def running(argv: Sequence[str], variables: Mapping[str, str]) -> Iterator[None]:
    """Run a program; it and everything it starts are gone afterwards."""
    try:
        process = subprocess.Popen(
            argv, env=dict(variables), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
        )
    except FileNotFoundError:
        raise Absent(f"{argv[0]} is not installed") from None
    try:
        yield
    finally:
        # LibreOffice and Chromium are more than one process.
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


async def settled(session: Session) -> tuple[Frame, tuple[Element, ...]]:
    """Return the active window's picture and tree once it is drawn."""
    screen = await session.service("screen")
    # Away from everything that would show a hint.
    await (await session.service("hands")).move(0, 0)
    before: Frame | None = None
    count = -1
    with anyio.fail_after(PATIENCE_S):
        while True:
            active = next((window for window in await screen.windows() if window.active), None)
            if active is not None:
                frame = await screen.capture(active.rect)
                tree = (await session.vision.tree(budget=1000)).value.elements
                found = tuple(e for e in tree if e.rect and not e.rect.intersect(frame.screen).empty)
                same = before is not None and before.screen == frame.screen and _alike(before, frame)
                if same and count == len(found) > 5:
                    return frame, found
                before, count = frame, len(found)
            await anyio.sleep(QUIET_S)


def _alike(one: Frame, other: Frame) -> bool:
    """Return True if little has changed: a cursor may blink, and a spinner turn."""
    return bool((one.pixels != other.pixels).any(axis=2).mean() < MOVING)


async def read(screen: Shown) -> Score:
    """Read the screen with a backend that has its models loaded, and score it."""
    from handrail.testing.backend_contract import FakeBackendContext
    from handrail_vision_ocr.backend import OcrBackend

    backend = OcrBackend()
    await backend.open(FakeBackendContext())
    try:
        await backend.warm_up()
        began = perf_counter()
        seen = await backend.parse(screen.frame, "")
        took = perf_counter() - began
        megabytes = max(
            (child.memory_info().rss for child in psutil.Process().children() if WORKER in child.cmdline()), default=0
        )
    finally:
        await backend.close()
    return Score(*score(screen.tree, seen, screen.scale), took, megabytes / 1e6)


HEADINGS = (
    "screen",
    "scale",
    "words read",
    "clicked by their text",
    "controls without text found",
    "seconds",
    "memory, MB",
)


def line(screen: Shown, scored: Score) -> str:
    """Return a Markdown row of the table."""
    parts = (_share(*part) for part in (scored.words, scored.named, scored.unnamed))
    cells = (screen.program, f"{screen.scale:g}", *parts, f"{scored.seconds:.2f}", f"{scored.megabytes:.0f}")
    return f"| {' | '.join(cells)} |"


def _share(found: int, there: int) -> str:
    return f"{found} of {there} ({100 * found / there:.0f} %)" if there else "none there"


async def main() -> None:
    """Look at every screen, read it, print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("--only", metavar="WORD", default="", help="screens whose name has this in it")
    parser.add_argument("--keep", metavar="FOLDER", type=Path, help="leave the pictures there")
    given = parser.parse_args()
    wanted = [(p, s) for p in PROGRAMS for s in SCALES] + [(p, 1.0) for p in CJK]
    print(f"| {' | '.join(HEADINGS)} |\n|{'---|' * len(HEADINGS)}")
    for program, scale in wanted:
        if given.only in program.name:
            print(f"{program.name}, scale {scale:g} …", file=sys.stderr, flush=True)
            try:
                screen = await shown(program, scale)
            except TimeoutError:
                print(
                    f"{program.name} was not there, or did not come to rest, within {PATIENCE_S:g} s", file=sys.stderr
                )
                continue
            print(line(screen, await read(screen)), flush=True)
            if given.keep is not None:
                _keep(screen, given.keep)


def _keep(screen: Shown, folder: Path) -> None:
    import cv2

    folder.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(folder / f"{screen.program} {screen.scale:g}.png"), screen.frame.pixels)


if __name__ == "__main__":
    asyncio.run(main())
