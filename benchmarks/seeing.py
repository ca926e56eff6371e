"""Vision backends: from one to another, text read from a screen, marks drawn on a picture."""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from time import perf_counter

import handrail
from benchmarks.measure import Effort, Timing
from benchmarks.reading import running, scaled_desktop, settled
from benchmarks.report import Measurement, Row, duration
from benchmarks.sessions import environment, require, succeed
from handrail import Session
from handrail.api.approval import yes

LINES = 30


async def switch(effort: Effort) -> Row:
    """Another backend chosen and the tools listed anew, with every plugin there is."""
    with environment(HANDRAIL_DESKTOP="private", HANDRAIL_BACKEND="accessibility") as variables:
        folder = Path(variables["HANDRAIL_HOME"])
        async with handrail.open(environment=variables, cwd=folder) as session:
            require(session, "accessibility", "vision_ocr")
            taken: list[float] = []
            for round_ in range(effort.rounds(200)):
                began = perf_counter()
                await session.use_backend(("ocr", "accessibility")[round_ % 2])
                listed = await session.tools()
                taken.append(perf_counter() - began)
    return _row("another backend chosen, tools listed", Timing(tuple(taken)), "ms", f"{len(listed)} tools listed")


async def ocr(effort: Effort) -> Row:
    """Measure reading a whole 1280x800 desktop with an editor, and again after a line was typed."""
    from handrail.testing.backend_contract import FakeBackendContext
    from handrail_vision_ocr.backend import OcrBackend

    whole: list[float] = []
    again: list[float] = []
    async with _editor() as session:
        screen = await session.service("screen")
        for round_ in range(1 + effort.rounds(10)):
            backend = OcrBackend()
            await backend.open(FakeBackendContext())
            try:
                await backend.warm_up()
                for taken in (whole, again):
                    await succeed(session, "execute_gui", {"action": "type", "text": f"{random.getrandbits(90):x}\n"})
                    frame = await screen.capture()
                    began = perf_counter()
                    seen = await backend.parse(frame, "")
                    if round_:
                        taken.append(perf_counter() - began)
            finally:
                await backend.close()
    changed = Timing(tuple(again))
    note = f"{len(seen)} elements; {duration(changed.median)} where a line had changed"
    return _row("text, boxes and icons of a 1280x800 desktop", Timing(tuple(whole)), "s", note)


async def marks(effort: Effort) -> Row:
    """Measure placing and drawing marks on a window with every GTK widget."""
    from handrail_gui.observe import annotate as marking, model_image

    taken: list[float] = []
    async with scaled_desktop(1) as (session, variables):
        with running(("gtk3-widget-factory",), variables):
            await settled(session)
            screen = await session.service("screen")
            for _ in range(effort.rounds(50)):
                seen = await succeed(session, "observe_screen", {"image": "none"})
                observation = session.observations.get(seen["observation_id"])
                frame = await screen.capture()
                assert observation.transform is not None
                pixels = model_image.scale_frame(frame, observation.transform)
                began = perf_counter()
                found = marking.place_marks(pixels, observation.elements, observation.transform)
                marking.draw_marks(pixels, found)
                taken.append(perf_counter() - began)
    return _row("marks on a picture of 1280x800", Timing(tuple(taken)), "ms", f"{len(found)} things marked")


def _row(job: str, timing: Timing, unit: str, note: str) -> Row:
    value = timing.median * (1e3 if unit == "ms" else 1)
    return Row(job, value=value, unit=unit, ours=f"p95 {duration(timing.p95)}", timings={"handrail": timing}, note=note)


@asynccontextmanager
async def _editor() -> AsyncGenerator[Session, None]:
    async with scaled_desktop(1) as (session, variables):
        notes = Path(variables["HANDRAIL_HOME"], "notes.txt")
        notes.write_text("\n".join(f"{line} {random.getrandbits(200):x}" for line in range(LINES)))
        with running(("mousepad", str(notes)), variables):
            await settled(session)
            session.confirmer = yes
            yield session


ROWS: Mapping[str, Measurement] = {"switch": switch, "ocr": ocr, "marks": marks}
