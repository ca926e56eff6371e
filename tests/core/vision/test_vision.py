"""The chain of vision backends: who answers, who is passed over and why, and when a backend is asked again."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import anyio
import anyio.lowlevel
import numpy as np
import pytest
from pydantic import BaseModel

from handrail import BackendUnavailable, Cost, Element, Frame, NotFound, Rect, VisionBackend
from handrail.testing import fake_backend, open_test_session
from handrail.vision.backend_chain import MAX_ELEMENTS, Vision, clip_elements

pytestmark = pytest.mark.anyio

AREA = Rect(0, 0, 100, 50)
BUTTON = Element("button", "Save", Rect(10, 10, 20, 20), source="ocr")


def frame(pixels: Any = None) -> Frame:
    return Frame(AREA, pixels, time.monotonic())


class Eye(VisionBackend):
    """Gives what `does` gives, or raises it."""

    name = "eye"
    capabilities = frozenset({"ocr", "understand"})
    does: Any = (BUTTON,)
    asked = 0
    closed = False
    warm = False

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        self.asked += 1
        if isinstance(self.does, Exception):
            raise self.does
        return self.does

    async def understand(self, frame: Frame, intent: str) -> str:
        return "" if self.does == () else f"a screen, asked for {intent!r}"

    async def warm_up(self) -> None:
        self.warm = True

    async def close(self) -> None:
        self.closed = True


def chain(**backends: VisionBackend) -> Vision:
    """Vision with these backends in this order."""

    async def opening(name: str) -> VisionBackend:
        return backends[name]

    for name, backend in backends.items():
        backend.name = name  # pyright: ignore[reportAttributeAccessIssue] # told apart by it
    return Vision(tuple(backends), opening)


def failing(error: Any) -> Eye:
    eye = Eye()
    eye.does = error
    return eye


async def test_the_first_backend_that_can_do_it_answers() -> None:
    tree_only = fake_backend("tree")()
    seen = await chain(tree=tree_only, eye=Eye()).parse(frame())
    assert (seen.backend, seen.value) == ("eye", (BUTTON,))
    assert [passed.backend for passed in seen.passed] == ["tree"]
    assert "does not offer" in seen.note


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        pytest.param(BackendUnavailable("the server is down"), "the server is down", id="unavailable"),
        pytest.param(RuntimeError("a bug"), "failed inside", id="crash"),
        pytest.param("text", "instead of a list", id="no-list"),
        pytest.param([{"role": "button"}], "gave dict among", id="no-elements"),
        pytest.param(None, "gave NoneType", id="nothing"),
        pytest.param([replace(BUTTON, rect=Rect(0.5, 1, 2, 3))], "none of whole pixels", id="half-pixels"),  # pyright: ignore[reportArgumentType] # so it is
        pytest.param([replace(BUTTON, rect=(0, 1, 2, 3))], "none of whole pixels", id="no-rectangle"),
        pytest.param([replace(BUTTON, text=None)], "the text None", id="no-text"),
    ],
)
async def test_one_that_fails_is_named_and_the_next_one_answers(wrong: Any, why: str) -> None:
    seen = await chain(bad=failing(wrong), good=Eye()).parse(frame())
    assert seen.backend == "good"
    assert why in seen.note


async def test_whole_numbers_of_numpy_become_those_that_json_knows() -> None:
    found = replace(BUTTON, rect=Rect(*np.array([1, 2, 30, 40])))
    (seen,) = (await chain(eye=failing([found])).parse(frame())).value
    assert seen.rect is not None
    assert json.dumps(seen.rect.corners()) == "[1, 2, 31, 42]"


async def test_why_one_does_not_answer_is_told_with_the_cure() -> None:
    seen = await chain(bad=failing(BackendUnavailable("no key", hint="set a key")), good=Eye()).parse(frame())
    assert "bad: no key (set a key)" in seen.note


async def test_when_none_answers_each_says_why() -> None:
    vision = chain(one=failing(BackendUnavailable("no key")), other=failing(RuntimeError("a bug")))
    with pytest.raises(BackendUnavailable, match=r"one: no key; other: it failed inside \(RuntimeError\)"):
        await vision.parse(frame())


async def test_what_the_caller_did_wrong_is_no_failure_of_the_backend() -> None:
    vision = chain(bad=failing(NotFound("no such window")), good=Eye())
    with pytest.raises(NotFound):
        await vision.parse(frame())
    assert vision.health("bad").failures_in_a_row == 0


async def test_one_that_takes_too_long_is_left() -> None:
    class Slow(Eye):
        deadline = 0.05

        async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
            await anyio.sleep_forever()
            raise AssertionError

    seen = await chain(slow=Slow(), good=Eye()).parse(frame())
    assert "within 0.05 s" in seen.note


async def test_one_that_failed_is_passed_over_for_a_while_and_then_asked_again() -> None:
    bad = failing(BackendUnavailable("down"))
    vision = chain(bad=bad, good=Eye())
    await vision.parse(frame())
    seen = await vision.parse(frame())
    assert bad.asked == 1
    assert "down (tried again in" in seen.note
    bad.does = (BUTTON,)
    with anyio.fail_after(30):
        while (await vision.parse(frame())).backend != "bad":
            await anyio.sleep(0.05)
    assert vision.health("bad").failures_in_a_row == 0


async def test_the_wait_grows_with_each_failure_up_to_a_minute() -> None:
    vision = chain(bad=failing(BackendUnavailable("down")))
    waits: list[float] = []
    for _ in range(12):
        with pytest.raises(BackendUnavailable):
            await vision.parse(frame())
        waits.append(vision.health("bad").again_in)
    assert waits[1] > waits[0]
    assert 59 < waits[-1] <= 60


async def test_the_last_one_left_is_asked_however_often_it_failed() -> None:
    bad = failing(BackendUnavailable("down"))
    vision = chain(bad=bad)
    for _ in range(3):
        with pytest.raises(BackendUnavailable):
            await vision.parse(frame())
    bad.does = (BUTTON,)
    assert (await vision.parse(frame())).value == (BUTTON,)


async def test_an_equal_picture_is_looked_at_once() -> None:
    eye = Eye()
    vision = chain(eye=eye)
    for pixels in (b"same", bytearray(b"same"), b"other"):
        await vision.parse(frame(pixels))
    assert eye.asked == 2
    await vision.parse(frame(b"same"), "another intent")
    await vision.parse(Frame(Rect(5, 5, 100, 50), b"same", 0.0))
    assert eye.asked == 4


async def test_a_failure_is_not_remembered_as_an_answer() -> None:
    eye = failing(BackendUnavailable("down"))
    vision = chain(eye=eye)
    with pytest.raises(BackendUnavailable):
        await vision.parse(frame(b"same"))
    eye.does = (BUTTON,)
    assert (await vision.parse(frame(b"same"))).value == (BUTTON,)


def test_boxes_are_cut_to_the_picture_and_those_outside_are_left_out() -> None:
    inside = Element("a", "", Rect(90, 40, 50, 50))
    given = [inside, Element("b", "", Rect(200, 0, 5, 5)), Element("c", "", None), Element("d", "", Rect(3, 3, 0, 9))]
    seen = clip_elements(given, frame())
    assert [(e.role, e.rect) for e in seen] == [("a", Rect(90, 40, 10, 10))]


def test_ids_are_the_sessions_to_give_and_a_flood_is_cut() -> None:
    seen = clip_elements([Element("a", "", AREA, id="e7")] * (MAX_ELEMENTS + 5), frame())
    assert len(seen) == MAX_ELEMENTS
    assert {element.id for element in seen} == {""}


async def test_what_an_answer_cost_is_told() -> None:
    class Paid(Eye):
        async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
            self.cost += Cost(100, 20, 0.5)
            return (BUTTON,)

    vision = chain(paid=Paid())
    await vision.parse(frame())
    assert (await vision.parse(frame())).cost == Cost(100, 20, 0.5)
    assert vision.health("paid").cost == Cost(200, 40, 1.0)


async def test_a_question_under_way_ends_on_the_old_backend() -> None:
    gate, begun = anyio.Event(), anyio.Event()
    made: list[Eye] = []

    class Gated(Eye):
        async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
            begun.set()
            await gate.wait()
            assert not self.closed
            return (BUTTON,)

    async def opening(name: str) -> VisionBackend:
        made.append(Gated())
        return made[-1]

    vision = Vision(("eye",), opening)
    answers: list[Any] = []

    async def ask() -> None:
        answers.append(await vision.parse(frame()))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await begun.wait()
        vision.forget("eye")
        await anyio.lowlevel.checkpoint()
        gate.set()
    assert len(answers) == 1
    await vision.parse(frame())
    assert [eye.closed for eye in made] == [True, False]
    await vision.close()
    assert [eye.closed for eye in made] == [True, True]


async def test_a_backend_that_is_chosen_is_warmed_up_in_the_background() -> None:
    made: list[Eye] = []

    class Warm(Eye):
        name = "warm"

        def __init__(self, config: Any = None) -> None:
            super().__init__(config)
            made.append(self)

    async with open_test_session(backends=[fake_backend("first"), Warm], settings={"backend": "first"}) as session:
        # Nothing is warmed up for a desktop that nobody has asked for.
        await session.desktop()
        await session.use_backend("warm")
        with anyio.fail_after(30):
            while not (made and made[0].warm):
                await anyio.sleep(0.005)


async def test_a_look_without_any_that_finds_elements_still_gives_the_picture() -> None:
    class Reader(Eye):
        capabilities = frozenset({"understand"})

    async def capture() -> Frame:
        return frame()

    looked = await chain(reader=Reader()).look(capture)
    assert looked.value.tree.elements == ()
    assert "does not offer" in looked.note


async def test_an_empty_picture_is_no_failure_of_a_fallback_that_reads_none() -> None:
    async def capture() -> Frame:
        return frame()

    looked = await chain(eye=failing([]), tree=fake_backend("tree")()).look(capture)
    assert (looked.backend, looked.note) == ("eye", "")


async def test_one_that_was_to_add_what_it_sees_and_could_not_is_named_as_such() -> None:
    async def capture() -> Frame:
        return frame()

    vision = chain(eye=Eye(), bad=failing(BackendUnavailable("the server is down")))
    looked = await replace(vision, chain=("eye",), merge=lambda: ["bad"]).look(capture)
    assert looked.value.tree.elements == (BUTTON,)
    assert looked.note == "others could not add what they see: bad: the server is down"


@pytest.mark.parametrize("others", [{}, {"reader": fake_backend("reader", capabilities=["understand"])()}])
async def test_a_look_by_one_that_fails_to_find_elements_is_no_empty_screen(others: dict[str, VisionBackend]) -> None:
    async def capture() -> Frame:
        return frame()

    refused = failing(BackendUnavailable("the server answered 401", hint="see whether the key is valid"))
    with pytest.raises(BackendUnavailable, match=r"answered 401 \(see whether the key is valid\)"):
        await chain(eye=refused, **others).look(capture)


async def test_an_empty_description_is_no_answer() -> None:
    described = await chain(empty=failing(()), good=Eye()).understand(frame(), "the total")
    assert (described.backend, described.value) == ("good", "a screen, asked for 'the total'")


SETS = {
    "tree": frozenset({"accessibility_tree"}),
    "ocr": frozenset({"ocr", "parse_screen"}),
    "planner": frozenset({"plan_actions"}),
    "both": frozenset({"plan_actions", "parse_screen"}),
}


@pytest.mark.parametrize("first", SETS)
@pytest.mark.parametrize("second", SETS)
async def test_the_list_of_tools_follows_every_switch(first: str, second: str) -> None:
    from handrail import tool

    @tool(name="looks", requires=["accessibility_tree", "ocr", "parse_screen", "understand"])
    async def looks() -> None:
        """Look."""

    @tool(name="plans", requires=["plan_actions"])
    async def plans() -> None:
        """Plan."""

    def expected(name: str) -> set[str]:
        plans, looks = "plan_actions" in SETS[name], bool(SETS[name] - {"plan_actions"})
        return {tool for tool, there in (("looks", looks), ("plans", plans)) if there}

    backends = [fake_backend(name, capabilities=capabilities) for name, capabilities in SETS.items()]
    async with open_test_session(tools=[looks, plans], backends=backends, settings={"backend": first}) as session:
        assert {tool.name for tool in await session.tools()} & {"looks", "plans"} == expected(first)
        await session.use_backend(second)
        assert {tool.name for tool in await session.tools()} & {"looks", "plans"} == expected(second)
        for hidden in {"looks", "plans"} - expected(second):
            assert (await session.call(hidden)).error_code == "tool_unavailable"


class Settings(BaseModel):
    model: str = "sees"


class Picky(Eye):
    name = "picky"
    Config = Settings

    @classmethod
    def unfit(cls, config: BaseModel) -> str | None:
        return None if config == Settings() else "the model is blind; set backends.picky.model"


async def test_a_backend_that_its_settings_make_useless_says_why_when_it_is_asked() -> None:
    settings = {"backend": "picky", "backends": {"picky": {"model": "blind"}}}
    async with open_test_session(backends=[Picky], settings=settings) as session:
        with pytest.raises(BackendUnavailable, match=r"the model is blind; set backends\.picky\.model"):
            await session.vision.parse(frame())
    async with open_test_session(backends=[Picky], settings={"backend": "picky"}) as session:
        assert (await session.vision.parse(frame())).value == (BUTTON,)


class NeverOpens(Eye):
    name = "never"
    deadline = 0.05

    async def open(self, context: Any) -> None:
        await anyio.sleep_forever()

    async def close(self) -> None:
        await anyio.sleep_forever()


async def test_a_backend_that_never_opens_nor_closes_is_passed_over_at_its_deadline() -> None:
    async def capture() -> Frame:
        return frame()

    settings = {"backend": "never", "backend_fallback": ["other"]}
    other = fake_backend("other", capabilities=["ocr"], elements=[BUTTON])
    async with open_test_session(backends=[NeverOpens, other], settings=settings) as session:
        with anyio.fail_after(20):
            answered = await session.vision.look(capture)
    assert answered.backend == "other"
    assert "never: it did not open within 0.05 s" in answered.note
