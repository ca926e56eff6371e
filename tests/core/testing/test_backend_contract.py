"""The contract of vision backends holds for a sound one, and notices each promise that a backend breaks."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import anyio
import numpy as np
import pytest
from pydantic import BaseModel

from handrail import Element, Frame, Plan, PlannedAction, Rect, VisionBackend
from handrail.testing import VisionBackendContract
from handrail.testing.backend_contract import FakeBackendContext, create_frame

pytestmark = pytest.mark.anyio


def bar(frame: Frame) -> list[Element]:
    """The dark bar, where it is."""
    rows, columns = np.nonzero(frame.pixels[:, :, 0] < 100)
    if not len(rows):
        return []
    x, y = frame.screen.x + int(columns.min()), frame.screen.y + int(rows.min())
    size = int(columns.max() - columns.min()) + 1, int(rows.max() - rows.min()) + 1
    return [Element("bar", "dark", Rect(x, y, *size), source="vision", confidence=0.9)]


class Sound(VisionBackend):
    """Sees dark bars, and keeps every promise."""

    name = "sound"
    capabilities = frozenset({"parse_screen", "understand", "plan_actions"})

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        return bar(frame)

    async def understand(self, frame: Frame, intent: str) -> str:
        return f"{len(bar(frame))} dark bars"

    async def plan(self, frame: Frame, instruction: str, history: Any) -> Plan:
        actions = [
            PlannedAction("execute_gui", {"action": "click", "x": e.rect.center[0], "y": e.rect.center[1]})
            for e in bar(frame)
            if e.rect
        ]
        return Plan(tuple(actions), done=not actions)


class TestSound(VisionBackendContract):
    @pytest.fixture
    def backend(self) -> VisionBackend:
        return Sound()


def looks(parse: Callable[[Frame], Any]) -> type[VisionBackend]:
    """A backend that sees what the function does."""

    class Bad(Sound):
        name = "bad"
        capabilities = frozenset({"parse_screen"})
        understand = VisionBackend.understand
        plan = VisionBackend.plan

        async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
            return parse(frame)

    return Bad


def with_fields(**fields: Any) -> type[VisionBackend]:
    return type("Bad", (Sound,), {"name": "bad", **fields})


def changed(**changes: Any) -> type[VisionBackend]:
    return looks(lambda frame: [replace(element, **changes) for element in bar(frame)])


def in_picture_pixels(frame: Frame) -> list[Element]:
    return bar(create_frame(frame.pixels, 0, 0))


def paints(frame: Frame) -> list[Element]:
    seen = bar(frame)
    if frame.pixels.flags.writeable:
        frame.pixels[0, 0] = 0
    return seen


def blocks(frame: Frame) -> list[Element]:
    time.sleep(0.7)
    return bar(frame)


STARTED: list[subprocess.Popen[bytes]] = []


def starts(frame: Frame) -> list[Element]:
    STARTED.append(subprocess.Popen(["sleep", "60"]))
    return bar(frame)


def crashes(frame: Frame) -> list[Element]:
    if frame.screen.width < 10:
        raise ZeroDivisionError
    return bar(frame)


class Shared(looks(lambda frame: [])):
    kept: ClassVar[dict[Rect, list[Element]]] = {}

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        return self.kept.setdefault(frame.screen, bar(frame))


class Reused(looks(lambda frame: [])):
    """One list for all answers."""

    kept: ClassVar[list[Element]] = []

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        self.kept[:] = bar(frame)
        return self.kept


class BlocksInOpen(Sound):
    async def open(self, context: Any) -> None:
        blocks(create_frame(np.zeros((9, 9, 3), np.uint8), 0, 0))


class NeverCloses(Sound):
    deadline = 0.05

    async def close(self) -> None:
        await asyncio.Event().wait()


class Moving(Sound):
    async def open(self, context: Any) -> None:
        os.chdir("/")


class Deaf(Sound):
    async def open(self, context: Any) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)


class Slow(Sound):
    deadline = 0.05

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        await asyncio.sleep(0.1)
        return bar(frame)


class Hanging(Sound):
    deadline = 0.05

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        await asyncio.Event().wait()
        return ()


class AtOnce(Sound):
    def parse(self, frame: Frame, intent: str) -> Any:
        return bar(frame)


class Stubborn(Sound):
    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        with anyio.CancelScope(shield=True):
            await anyio.sleep(2.1)
        return bar(frame)


class Leaky(Sound):
    tasks: ClassVar[list[Any]] = []

    async def open(self, context: Any) -> None:
        self.tasks.append(asyncio.create_task(asyncio.sleep(30)))


class Littering(Sound):
    async def open(self, context: Any) -> None:
        self.folder = tempfile.mkdtemp()


class Counting(Sound):
    """One count for all sessions."""

    seen: ClassVar[Iterator[int]] = itertools.count()

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        return [replace(element, fingerprint=f"bar {next(self.seen)}") for element in bar(frame)]


class Muddled(Sound):
    at: Frame

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        self.at = frame
        await asyncio.sleep(0.01)
        return bar(self.at)


class Wild(Sound):
    async def plan(self, frame: Frame, instruction: str, history: Any) -> Plan:
        return Plan((PlannedAction("execute_gui", {"action": "click", "x": 5, "y": 5}),))


class Silent(Sound):
    async def understand(self, frame: Frame, intent: str) -> str:
        return " "


class Careless(BaseModel):
    level: int = 1


class Sloppy(Sound):
    Config = Careless


class Greedy(Sound):
    @classmethod
    def missing(cls) -> str | None:
        return ""


class Eager(Sound):
    async def close(self) -> None:
        self.session.close()  # pyright: ignore[reportAttributeAccessIssue] # there is none before `open`


BROKEN = {
    "wrong-space": (looks(in_picture_pixels), "test_every_element_lies_in_the_picture"),
    "not-moved": (changed(rect=Rect(-990, 50, 5, 5)), "test_a_picture_elsewhere_on_the_screen_is_seen_there"),
    "box-outside": (changed(rect=Rect(-1001, 40, 9, 9)), "test_every_element_lies_in_the_picture"),
    "empty-box": (changed(rect=Rect(-990, 50, 0, 5)), "test_every_element_lies_in_the_picture"),
    "own-ids": (changed(id="e1"), "test_elements_are_named_as_the_contract_says"),
    "percent": (changed(confidence=90.0), "test_elements_are_named_as_the_contract_says"),
    "slow": (Slow, "test_it_answers_within_its_deadline"),
    "hangs": (Hanging, "test_it_leaves_nothing_behind"),
    "not-async": (AtOnce, "test_it_answers_within_its_deadline"),
    "no-elements": (looks(lambda frame: [{"role": "bar"}]), "test_elements_are_named_as_the_contract_says"),
    "no-list": (looks(lambda frame: None), "test_every_element_lies_in_the_picture"),
    "half-pixels": (changed(rect=Rect(-990.5, 50.5, 5.5, 5.5)), "test_every_element_lies_in_the_picture"),  # pyright: ignore[reportArgumentType] # so it is
    "no-text": (changed(text=None), "test_elements_are_named_as_the_contract_says"),
    "raises": (looks(crashes), "test_odd_pictures_are_answered_or_refused"),
    "blocks": (looks(blocks), "test_it_does_not_block_the_loop"),
    "blocks-in-open": (BlocksInOpen, "test_it_does_not_block_the_loop"),
    "never-closes": (NeverCloses, "test_it_may_be_closed_without_having_been_opened"),
    "moves-the-program": (Moving, "test_it_leaves_nothing_behind"),
    "takes-signals": (Deaf, "test_it_leaves_nothing_behind"),
    "stubborn": (Stubborn, "test_it_stops_when_it_is_cancelled"),
    "leaves-processes": (looks(starts), "test_it_leaves_nothing_behind"),
    "leaks": (Leaky, "test_it_leaves_nothing_behind"),
    "leaves-temporary-files": (Littering, "test_it_leaves_nothing_behind"),
    "shares-fingerprints": (Counting, "test_a_fingerprint_is_of_the_thing_and_not_of_who_asked_before"),
    "lies": (
        with_fields(capabilities=frozenset({"accessibility_tree"})),
        "test_it_has_the_method_of_each_capability_and_no_other",
    ),
    "hides": (
        with_fields(capabilities=frozenset({"parse_screen"})),
        "test_it_has_the_method_of_each_capability_and_no_other",
    ),
    "mutable-result": (Shared, "test_an_answer_belongs_to_who_asked"),
    "one-list": (Reused, "test_an_answer_belongs_to_who_asked"),
    "paints": (looks(paints), "test_the_picture_stays_as_it_is"),
    "muddled": (Muddled, "test_several_at_once_each_get_their_own_answer"),
    "wild-plan": (Wild, "test_a_plan_stays_in_the_picture"),
    "silent": (Silent, "test_a_description_says_something"),
    "any-key": (Sloppy, "test_its_settings_have_defaults_and_refuse_unknown_keys"),
    "empty-lack": (Greedy, "test_it_says_quickly_what_it_lacks"),
    "closes-nothing": (Eager, "test_it_may_be_closed_without_having_been_opened"),
    "a-list": (with_fields(capabilities=["parse_screen"]), "test_its_capabilities_are_a_frozenset_of_words"),
    "odd-name": (with_fields(name="Bad Name"), "test_its_name_is_one_that_a_configuration_can_hold"),
    "no-deadline": (with_fields(deadline=0), "test_it_has_a_deadline"),
}


async def run(test: str, backend: VisionBackend) -> None:
    """One test of the contract, as pytest runs it."""
    pixels = np.full((160, 320, 3), 240, np.uint8)
    pixels[60:100, 80:240] = 40
    given = {"backend": backend, "context": FakeBackendContext(), "frame": create_frame(pixels, -1000, 40)}
    check = getattr(VisionBackendContract(), test)
    ran = check(**{name: given[name] for name in inspect.signature(check).parameters})
    if inspect.isawaitable(ran):
        await ran


@pytest.mark.parametrize(("broken", "test"), BROKEN.values(), ids=BROKEN)
async def test_a_broken_promise_is_noticed(broken: type[VisionBackend], test: str) -> None:
    folder, ends = os.getcwd(), signal.getsignal(signal.SIGTERM)
    try:
        # That it holds for a sound one is what TestSound says.
        with pytest.raises((AssertionError, AttributeError, ZeroDivisionError, pytest.fail.Exception)):
            await run(test, broken())
    finally:
        os.chdir(folder)
        signal.signal(signal.SIGTERM, ends)
        while STARTED:
            STARTED[-1].kill()
            STARTED.pop().wait()
        for task in Leaky.tasks:
            task.cancel()
        Leaky.tasks.clear()


@pytest.mark.parametrize("test", [name for name in dir(VisionBackendContract) if name.startswith("test_")])
def test_each_promise_says_what_to_do_about_it(test: str) -> None:
    assert (getattr(VisionBackendContract, test).__doc__ or "").startswith("If this fails")
