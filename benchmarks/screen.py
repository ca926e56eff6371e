"""Seeing a desktop: its picture and its accessibility tree, on a private desktop with real programs on it."""

# Peers live in .venv-bench, where the type checker does not look.
# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import base64
import json
import os
import random
import subprocess
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import Any

import anyio

import handrail
from benchmarks.measure import Absent, Contender, Effort, Timing, take_turns
from benchmarks.report import Measurement, Row, compare, duration
from benchmarks.sessions import environment, require, succeed
from benchmarks.start import beside_python
from handrail import Session, Transform

NAME = "benchmark"
SIZE = "1920x1080"
SHOWN = (1280, 720)
QUALITY = 80
PATIENCE_S = 20.0
QUIET_S = 0.15
WINDOWS = ("notes.txt", "calculator")
LIMIT = "mss + area resize + encode in OpenCV"


@dataclass(frozen=True, slots=True)
class Stage:
    """A session on the desktop, and what a program needs to find that desktop."""

    session: Session
    variables: Mapping[str, str]

    @property
    def display(self) -> str:
        return self.variables["DISPLAY"]

    async def change(self) -> None:
        """Type something into the editor, so that no two rounds see the same screen."""
        word = "".join(random.choices("abcdefghijklmnopqrstuvwxyz", k=12))
        await succeed(self.session, "execute_gui", {"action": "type", "text": f"{word} "})
        # The editor goes on working for a moment after it has drawn, and is not what is measured.
        await anyio.sleep(QUIET_S)


async def screenshot(effort: Effort) -> Row:
    """Measure a screenshot of the whole screen as a base64 JPEG, 1280 wide."""
    async with _stage() as stage:
        return await _beside_opencv(
            stage, "screenshot 1920x1080 to 1280-wide JPEG, base64", await _picture(stage), effort, goal=1.1
        )


async def observe(effort: Effort) -> Row:
    """Measure the whole call: picture, elements of the tree, windows, numbering, recorded."""
    async with _stage() as stage:

        async def ours() -> float:
            began = perf_counter()
            await succeed(stage.session, "observe_screen", {"image": "raw"})
            return perf_counter() - began

        return await _beside_opencv(stage, "observe_screen, picture and elements", ours, effort, goal=None)


async def tree(effort: Effort) -> Row:
    """Measure `get_ui_context` of two GTK windows alternately, reread each time."""
    async with _stage() as stage:
        windows = [window.title for window in await (await stage.session.service("screen")).windows()]
        taken: list[float] = []
        counted: dict[str, int] = {}
        # The first look starts the listener that the cache needs.
        for round_ in range(1 + effort.rounds(50)):
            await stage.change()
            for title in windows:
                began = perf_counter()
                result = await succeed(stage.session, "get_ui_context", {"window": title})
                if round_:
                    taken.append(perf_counter() - began)
                counted[title] = result["element_count"]
    timing = Timing(tuple(taken))
    return Row(
        "accessibility tree of a GTK window, p95",
        value=timing.p95 * 1e3,
        goal=40,
        unit="ms",
        ours=f"median {duration(timing.median)}",
        timings={"handrail": timing},
        note="; ".join(f"{count} elements in {title!r}" for title, count in counted.items()),
    )


async def _beside_opencv(stage: Stage, job: str, ours: Contender, effort: Effort, *, goal: float | None) -> Row:
    absent: dict[str, str] = {}
    with _opencv(stage) as limit:
        contenders = {LIMIT: limit, "handrail": ours}
        if goal is not None:
            await _add_peers(contenders, absent, stage)
        changing = {name: _after_change(stage, contender) for name, contender in contenders.items()}
        timings = await take_turns(changing, rounds=effort.rounds(25), warm_up=3)
    return compare(job, timings, limit=LIMIT, goal=goal, absent=absent)


def _after_change(stage: Stage, contender: Contender) -> Contender:
    async def changed() -> float:
        await stage.change()
        return await contender()

    return changed


async def _picture(stage: Stage) -> Contender:
    """Return a contender that produces observe_screen's picture through the desktop's service."""
    from handrail_gui.observe import model_image

    screen = await stage.session.service("screen")

    async def contender() -> float:
        began = perf_counter()
        frame = await screen.capture()
        model_image.encode_jpeg(model_image.scale_frame(frame, Transform.fit(frame.screen)))
        return perf_counter() - began

    return contender


@contextmanager
def _opencv(stage: Stage) -> Iterator[Contender]:
    import cv2
    import numpy as np
    from mss import MSS

    def take(source: MSS) -> str:
        shot = source.grab(source.monitors[0])
        pixels = np.frombuffer(shot.raw, np.uint8).reshape(shot.height, shot.width, 4)
        # Three channels are resized faster than four.
        small = cv2.resize(cv2.cvtColor(pixels, cv2.COLOR_BGRA2BGR), SHOWN, interpolation=cv2.INTER_AREA)
        _, data = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        return base64.b64encode(data.tobytes()).decode("ascii")

    with MSS(display=stage.display) as source:

        async def contender() -> float:
            began = perf_counter()
            take(source)
            return perf_counter() - began

        yield contender


async def _add_peers(contenders: dict[str, Contender], absent: dict[str, str], stage: Stage) -> None:
    for name, peer in {"Pillow ImageGrab": _image_grab, "pyautogui": _pyautogui}.items():
        try:
            contender = _timed(peer(stage))
            await contender()
        # A peer that cannot take a picture here raises whatever it likes; it is named, and the others are measured.
        except Exception as exc:  # noqa: BLE001
            absent[name] = f"absent: {type(exc).__name__}: {str(exc).splitlines()[0] if str(exc) else ''}"
        else:
            contenders[name] = contender


def _timed(take: Callable[[], Any]) -> Contender:
    async def contender() -> float:
        began = perf_counter()
        image = take()
        written = BytesIO()
        image.convert("RGB").resize(SHOWN).save(written, "JPEG", quality=QUALITY)
        base64.b64encode(written.getvalue())
        return perf_counter() - began

    return contender


def _image_grab(stage: Stage) -> Callable[[], Any]:
    from PIL import ImageGrab

    return lambda: ImageGrab.grab(xdisplay=stage.display)


def _pyautogui(stage: Stage) -> Callable[[], Any]:
    # It knows no other display than the process's own, and looks at it when it is imported.
    os.environ.update(stage.variables, XDG_SESSION_TYPE="x11")
    import pyautogui

    return pyautogui.screenshot


@asynccontextmanager
async def _stage() -> AsyncGenerator[Stage, None]:
    """Open a private desktop with an editor and a calculator; all of it is gone afterwards."""
    with (
        environment(HANDRAIL_DESKTOP=NAME, HANDRAIL_BACKEND="accessibility") as variables,
        desktop(variables) as shown,
    ):
        notes = Path(variables["HANDRAIL_HOME"], "notes.txt")
        notes.write_text("\n".join(f"{line} {random.getrandbits(200):x}" for line in range(200)))
        with program("galculator", environment=shown), program("mousepad", str(notes), environment=shown):
            async with handrail.open(environment=variables, cwd=notes.parent) as session:
                require(session, "gui", "accessibility")
                await _until_shown(session)
                yield Stage(session, shown)


@contextmanager
def desktop(variables: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
    """Start a desktop with the public command; yield the variables for programs on it."""
    handrail = beside_python("handrail")
    started = subprocess.run(
        [handrail, "desktop", "start", NAME, "--size", SIZE, "--json"],
        env=dict(variables),
        capture_output=True,
        text=True,
        check=False,
    )
    if started.returncode:
        raise Absent(f"no private desktop: {started.stderr.strip() or f'exit {started.returncode}'}")
    try:
        yield {**variables, **json.loads(started.stdout)["environment"]}
    finally:
        subprocess.run([handrail, "desktop", "stop", NAME], env=dict(variables), capture_output=True, check=False)


@contextmanager
def program(*argv: str, environment: Mapping[str, str]) -> Iterator[None]:
    try:
        process = subprocess.Popen(argv, env=dict(environment), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        raise Absent(f"{argv[0]} is not installed") from None
    try:
        yield
    finally:
        process.terminate()
        process.wait()


async def _until_shown(session: Session) -> None:
    """Wait for both windows, and for the editor to have the focus."""
    screen = await session.service("screen")
    with anyio.move_on_after(PATIENCE_S):
        while True:
            windows = await screen.windows()
            if len(windows) == len(WINDOWS) and any(window.active and WINDOWS[0] in window.title for window in windows):
                return
            await anyio.sleep(0.1)
    raise Absent(f"after {PATIENCE_S:g} s the windows are {[window.title for window in await screen.windows()]}")


ROWS: Mapping[str, Measurement] = {"screenshot": screenshot, "observe": observe, "tree": tree}
