"""The contract of a vision backend: subclass it, give the backend and a picture, and every promise is tested."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
import tempfile
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Collection, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from inspect import isawaitable
from pathlib import Path
from typing import Any, TypeVar

import anyio
import pytest
from pydantic import ValidationError

from handrail.api.desktop import Desktop, Tree
from handrail.api.observation import Element, Frame, Rect
from handrail.api.vision import Plan, VisionBackend
from handrail.config.settings import NetworkSettings
from handrail.errors import BackendUnavailable, NotFound, ToolUnavailable
from handrail.vision.backend_chain import clip_elements

T = TypeVar("T")
BACKEND_NAME = re.compile(r"[a-z][a-z0-9_]*")
# What each capability asks of a backend.
CAPABILITY_METHODS = {
    "accessibility_tree": "tree",
    "parse_screen": "parse",
    "ocr": "parse",
    "understand": "understand",
    "plan_actions": "plan",
}
# Seconds.
MAX_MISSING_S = 1.0
MAX_CANCEL_S = 2.0
# A loop that stands still for so long keeps a person's stop, and every other session, waiting.
MAX_BLOCKED_S = 0.5
SAMPLE_INTENT = "the button that saves"


class FakeBackendContext:
    """Context for a backend under test.

    It has a desktop that is only a name and this process's environment, but no services and no secrets.
    """

    desktop = Desktop("test", ":0")
    environment: Mapping[str, str] = os.environ
    network = NetworkSettings()

    async def secret(self, name: str) -> str:
        """Raise `NotFound`: the contract has no secrets."""
        raise NotFound(f"the contract knows no secret {name!r}; give a fixture `context` that does")

    async def service(self, capability: str) -> Any:
        """Raise `ToolUnavailable`: the contract supplies no services."""
        raise ToolUnavailable(f"the contract supplies no service {capability!r}; give a fixture `context` that does")


class VisionBackendContract:
    """Contract of every vision backend, by the capabilities that it declares.

        class TestTesseract(VisionBackendContract):
            @pytest.fixture
            def backend(self):
                return Tesseract(Tesseract.Config())

    Provide the fixture `backend`: a new one, not yet open. For backends with other needs, also provide `context` (what
    `open` receives) and `pixels` (a numpy array, height x width x 3, BGR, with something to see).
    """

    @pytest.fixture
    def backend(self) -> VisionBackend:
        """Return the backend under test, not yet open."""
        raise NotImplementedError("give a fixture `backend` that returns a new VisionBackend")

    @pytest.fixture
    def context(self) -> Any:
        """Return the context that `open` receives."""
        return FakeBackendContext()

    @pytest.fixture
    def pixels(self) -> Any:
        """Return the picture to show: a dark bar on a light background."""
        import numpy as np

        picture = np.full((160, 320, 3), 240, np.uint8)
        picture[60:100, 80:240] = 40
        return picture

    @pytest.fixture
    def frame(self, pixels: Any) -> Frame:
        """Return the picture as a frame at the left end of a second monitor."""
        return create_frame(pixels, -1000, 40)

    # What it says of itself

    def test_its_name_is_one_that_a_configuration_can_hold(self, backend: VisionBackend) -> None:
        """If this fails, choose a name of lower-case letters, digits and underscores; it is written as `backend = "name"`."""
        assert BACKEND_NAME.fullmatch(type(backend).name), f"{type(backend).name!r} is no name of a backend"

    def test_its_capabilities_are_a_frozenset_of_words(self, backend: VisionBackend) -> None:
        """If this fails, declare `capabilities = frozenset({…})` on the class, with at least one capability."""
        declared = type(backend).capabilities
        assert isinstance(declared, frozenset), f"capabilities is a {type(declared).__name__}"
        assert declared, "it declares no capability, so nothing would ever ask it"

    def test_it_has_the_method_of_each_capability_and_no_other(self, backend: VisionBackend) -> None:
        """If this fails, declare what the class implements, and implement what it declares."""
        promised = {CAPABILITY_METHODS[word] for word in type(backend).capabilities if word in CAPABILITY_METHODS}
        written = {
            name
            for name in set(CAPABILITY_METHODS.values())
            if getattr(type(backend), name) is not getattr(VisionBackend, name)
        }
        assert promised <= written, f"it declares {sorted(promised - written)} and does not implement it"
        declare = sorted(word for word, method in CAPABILITY_METHODS.items() if method in written - promised)
        assert written <= promised, (
            f"it implements {sorted(written - promised)}, and no capability says so: it declares"
            f" {sorted(type(backend).capabilities)}; declare {' or '.join(declare)}"
        )

    def test_it_says_quickly_what_it_lacks(self, backend: VisionBackend) -> None:
        """If this fails, make `missing` quick and free of heavy imports: it runs at every start.

        It must return None, or a sentence that includes the remedy.
        """
        before, began = set(sys.modules), time.monotonic()
        lacks = type(backend).missing()
        assert time.monotonic() - began < MAX_MISSING_S, "`missing` takes too long"
        assert lacks is None or lacks.strip(), "`missing` gave an empty text; give None when nothing is missing"
        heavy = {"numpy", "cv2", "onnxruntime", "torch", "PIL"} & (set(sys.modules) - before)
        assert not heavy, f"`missing` imports {sorted(heavy)}"

    def test_its_settings_have_defaults_and_refuse_unknown_keys(self, backend: VisionBackend) -> None:
        """If this fails, give each field of `Config` a working default, and set `extra="forbid"`.

        A mistyped key must not be accepted silently.
        """
        type(backend).Config()
        with pytest.raises(ValidationError):
            type(backend).Config.model_validate({"no_such_key": 1})

    def test_it_has_a_deadline(self, backend: VisionBackend) -> None:
        """If this fails, set `deadline`: the maximum time for one answer, in seconds."""
        assert 0 < backend.deadline <= 600

    # Opening and closing

    async def test_it_may_be_closed_without_having_been_opened(self, backend: VisionBackend) -> None:
        """If this fails, make `close` release what exists, which may be nothing.

        It is also called after a failed `open`.
        """
        await _close_within_deadline(backend)

    async def test_it_leaves_nothing_behind(self, backend: VisionBackend, context: Any, frame: Frame) -> None:
        """If this fails, make `close` clean up everything that exists by then.

        It must end every task, thread and child process, close every file, and remove temporary ones. It must not
        change the working directory or the signal handlers, which concern the entire program.
        """
        program = _snapshot_process_state()
        await backend.open(context)
        await _request_answer(backend, frame)
        tasks, files, threads = len(asyncio.all_tasks()), _count_open_files(), threading.active_count()
        processes = _list_child_processes()
        with use_own_temporary_folder() as temporary:
            for _ in range(3):
                other = type(backend)(backend.config)
                await other.open(context)
                await _request_answer(other, frame)
                await _close_within_deadline(other)
            left = sorted(path.name for path in temporary.iterdir())
        assert not left, f"temporary files stay after `close`: {', '.join(left)}"
        assert len(asyncio.all_tasks()) <= tasks, "a task goes on after `close`"
        assert _count_open_files() <= files + 1, "files or sockets stay open after `close`"
        assert threading.active_count() <= threads + 1, "threads go on after `close`"
        assert len(_list_child_processes()) <= len(processes), (
            "processes go on after `close`, or nobody has waited for their end"
        )
        await _close_within_deadline(backend)
        assert _snapshot_process_state() == program, (
            "it changes the working directory, or how the program takes signals"
        )

    # Answers

    async def test_it_answers_within_its_deadline(self, backend: VisionBackend, context: Any, frame: Frame) -> None:
        """If this fails, be quicker, or declare a longer `deadline`."""
        async with open_backend(backend, context):
            began = time.monotonic()
            await _request_answer(backend, frame)
            assert time.monotonic() - began < backend.deadline, _describe_timeout(backend)

    async def test_it_does_not_block_the_loop(self, backend: VisionBackend, context: Any, frame: Frame) -> None:
        """If this fails, move the work to `anyio.to_thread.run_sync` or a process.

        Nothing else in the program runs meanwhile, not even a stop.
        """
        longest = 0.0

        async def tick() -> None:
            nonlocal longest
            while True:
                began = time.monotonic()
                await asyncio.sleep(0.005)
                longest = max(longest, time.monotonic() - began)

        async with open_backend(backend, context):
            # The first one may import what is heavy.
            await _request_answer(backend, frame)
        async with anyio.create_task_group() as group:
            group.start_soon(tick)
            await anyio.sleep(0.02)
            async with open_backend(type(backend)(backend.config), context) as other:
                for _ in range(3):
                    await _request_answer(other, frame)
            await anyio.sleep(0.02)
            group.cancel_scope.cancel()
        assert longest < MAX_BLOCKED_S, f"the event loop stood still for {longest:.2f} s"

    async def test_it_stops_when_it_is_cancelled(self, backend: VisionBackend, context: Any, frame: Frame) -> None:
        """If this fails, let the cancellation propagate.

        Shield nothing that takes long, and call threads with `abandon_on_cancel=True`.
        """
        async with open_backend(backend, context):
            began = time.monotonic()
            with anyio.move_on_after(0.001):
                await _request_answer(backend, frame)
            assert time.monotonic() - began < MAX_CANCEL_S, "it went on after it was cancelled"
            await _request_answer(backend, frame)

    async def test_odd_pictures_are_answered_or_refused(self, backend: VisionBackend, context: Any) -> None:
        """If this fails, return an empty result or raise `BackendUnavailable`: no screen may cause any other error."""
        import numpy as np

        noise = np.random.default_rng(7).integers(0, 256, (33, 1000, 3), np.uint8)
        async with open_backend(backend, context):
            for odd in (np.zeros((1, 1, 3), np.uint8), np.full((2, 700, 3), 255, np.uint8), noise, noise[:, ::3]):
                try:
                    await _request_answer(backend, create_frame(odd, 0, 0))
                except BackendUnavailable:
                    continue

    async def test_the_picture_stays_as_it_is(self, backend: VisionBackend, context: Any, frame: Frame) -> None:
        """If this fails, copy the pixels before drawing on them: others use the same picture."""
        before = frame.pixels.copy()
        async with open_backend(backend, context):
            await _request_answer(backend, frame)
        assert (frame.pixels == before).all(), "it changed the picture that it was given"

    async def test_several_at_once_each_get_their_own_answer(
        self, backend: VisionBackend, context: Any, frame: Frame
    ) -> None:
        """If this fails, keep no state of one request in the backend while another may run, or take turns."""
        answers: dict[int, str] = {}
        async with open_backend(backend, context):

            async def ask(index: int) -> None:
                answers[index] = _normalize_answer(
                    await _request_answer(backend, create_frame(frame.pixels, 5000 * index, 0)), 5000 * index
                )

            async with anyio.create_task_group() as group:
                for index in range(3):
                    group.start_soon(ask, index)
        assert len(set(answers.values())) == 1, "the same picture at three places was seen differently"

    async def test_every_element_lies_in_the_picture(self, backend: VisionBackend, context: Any, frame: Frame) -> None:
        """If this fails, return rectangles in screen pixels.

        They are the picture's rectangles moved by `frame.screen.x` and `.y`, not scaled, and none of them is empty.
        """
        for element in await self._elements(backend, context, frame):
            assert element.rect is not None, f"{element.role} {element.text!r} has no rectangle"
            assert not element.rect.empty, f"{element.role} {element.text!r} has an empty rectangle"
            assert element.rect.intersect(frame.screen) == element.rect, (
                f"{element.role} {element.text!r} at {element.rect} is outside the picture, which shows {frame.screen}"
            )

    async def test_a_picture_elsewhere_on_the_screen_is_seen_there(
        self, backend: VisionBackend, context: Any, frame: Frame
    ) -> None:
        """If this fails, the rectangles are not in screen pixels.

        The same picture further to the right must give the same rectangles further to the right.
        """
        here = await self._elements(backend, context, frame)
        there = await self._elements(type(backend)(backend.config), context, create_frame(frame.pixels, 777, 333))
        moved = [Rect(e.rect.x - 777, e.rect.y - 333, e.rect.width, e.rect.height) for e in there if e.rect]
        at = frame.screen
        assert [Rect(e.rect.x - at.x, e.rect.y - at.y, e.rect.width, e.rect.height) for e in here if e.rect] == moved

    async def test_elements_are_named_as_the_contract_says(
        self, backend: VisionBackend, context: Any, frame: Frame
    ) -> None:
        """If this fails, correct the fields of the elements.

        `role` is a word, `id` is empty (the session numbers elements), `confidence` is None or from 0 to 1, and
        `source` is one of the known words.
        """
        for element in await self._elements(backend, context, frame):
            assert element.role, "an element has no role"
            assert element.id == "", f"it numbers elements itself ({element.id!r}); leave `id` empty"
            assert element.confidence is None or 0 <= element.confidence <= 1, f"confidence is {element.confidence}"
            assert element.source in ("ocr", "vision", "dom", "accessibility"), f"source is {element.source!r}"

    async def test_a_fingerprint_is_of_the_thing_and_not_of_who_asked_before(
        self, backend: VisionBackend, context: Any, frame: Frame
    ) -> None:
        """If this fails, derive `fingerprint` from what is seen: the same thing keeps it.

        Do not derive it from a counter, or from what other sessions were shown.
        """
        first = await self._elements(backend, context, frame)
        await self._elements(
            type(backend)(backend.config), context, create_frame(frame.pixels[::-1, ::-1].copy(), 0, 0)
        )
        again = await self._elements(type(backend)(backend.config), context, frame)
        assert [e.fingerprint for e in first] == [e.fingerprint for e in again], (
            "a session that comes later gets other fingerprints for the same picture"
        )

    async def test_an_answer_belongs_to_who_asked(self, backend: VisionBackend, context: Any, frame: Frame) -> None:
        """If this fails, build a new list for each answer: the caller may change it."""
        if not type(backend).capabilities & {"parse_screen", "ocr"}:
            return
        async with open_backend(backend, context):
            first = await _await_within_deadline(backend, backend.parse(frame, SAMPLE_INTENT))
            told = _normalize_answer(first, frame.screen.x)
            await _await_within_deadline(
                backend, backend.parse(create_frame(frame.pixels[::-1, ::-1].copy(), 0, 0), SAMPLE_INTENT)
            )
            assert _normalize_answer(first, frame.screen.x) == told, (
                "an answer changes when it is asked about another picture"
            )
            if isinstance(first, list):
                first.clear()
            again = await _await_within_deadline(backend, backend.parse(frame, SAMPLE_INTENT))
        assert _normalize_answer(again, frame.screen.x) == told, (
            "asked again about the same picture, it answers something else"
        )

    async def test_a_description_says_something(self, backend: VisionBackend, context: Any, frame: Frame) -> None:
        """If this fails, make `understand` return text, or raise `BackendUnavailable` if it has none."""
        if "understand" not in type(backend).capabilities:
            return
        async with open_backend(backend, context):
            described = await _await_within_deadline(backend, backend.understand(frame, SAMPLE_INTENT))
        assert isinstance(described, str), f"understand gave {type(described).__name__}"
        assert described.strip(), "understand gave an empty text"

    async def test_a_plan_stays_in_the_picture(self, backend: VisionBackend, context: Any, frame: Frame) -> None:
        """If this fails, make `plan` return a `Plan` whose points are screen pixels of the picture.

        It must touch nothing.
        """
        if "plan_actions" not in type(backend).capabilities:
            return
        async with open_backend(backend, context):
            plan = await _await_within_deadline(backend, backend.plan(frame, "press the button", ()))
        assert isinstance(plan, Plan), f"plan gave {type(plan).__name__}"
        for action in plan.actions:
            assert action.tool, "an action names no tool"
            if {"x", "y"} <= set(action.args):
                x, y = action.args["x"], action.args["y"]
                assert frame.screen.contains(x, y), f"({x}, {y}) is outside {frame.screen}"

    async def test_a_tree_is_a_tree(self, backend: VisionBackend, context: Any) -> None:
        """If this fails, make `tree` return a `Tree` of at most `budget` elements."""
        if "accessibility_tree" not in type(backend).capabilities:
            return
        async with open_backend(backend, context):
            tree = await _await_within_deadline(backend, backend.tree(budget=3))
        assert isinstance(tree, Tree), f"tree gave {type(tree).__name__}"
        assert len(tree.elements) <= 3, "it gave more elements than the budget"

    async def _elements(self, backend: VisionBackend, context: Any, frame: Frame) -> Sequence[Element]:
        if not type(backend).capabilities & {"parse_screen", "ocr"}:
            return ()
        async with open_backend(backend, context):
            seen = await _await_within_deadline(backend, backend.parse(frame, SAMPLE_INTENT))
        try:
            clip_elements(seen, frame)
        except BackendUnavailable as exc:
            raise AssertionError(f"a session does not take what `parse` gives: {exc}") from exc
        return tuple(seen)


@contextmanager
def use_own_temporary_folder() -> Generator[Path]:
    """Yield a directory that `tempfile` uses meanwhile and that contains only files made by this process."""
    before = tempfile.tempdir
    with tempfile.TemporaryDirectory() as folder:
        tempfile.tempdir = folder
        try:
            yield Path(folder)
        finally:
            tempfile.tempdir = before


@asynccontextmanager
async def open_backend(backend: VisionBackend, context: Any) -> AsyncGenerator[VisionBackend, None]:
    """Open the backend for the duration of the block and yield it."""
    try:
        await backend.open(context)
        yield backend
    finally:
        await _close_within_deadline(backend)


def create_frame(pixels: Any, x: int, y: int) -> Frame:
    """Return the picture as a frame with its upper left corner at that point of the screen, in pixels."""
    height, width = pixels.shape[:2]
    return Frame(Rect(x, y, width, height), pixels, time.monotonic())


async def _request_answer(backend: VisionBackend, frame: Frame) -> Any:
    """Request an answer by the first capability that the backend declares."""
    declared = type(backend).capabilities
    if declared & {"parse_screen", "ocr"}:
        return await _await_within_deadline(backend, backend.parse(frame, SAMPLE_INTENT))
    if "understand" in declared:
        return await _await_within_deadline(backend, backend.understand(frame, SAMPLE_INTENT))
    if "plan_actions" in declared:
        return await _await_within_deadline(backend, backend.plan(frame, "press the button", ()))
    return await _await_within_deadline(backend, backend.tree(budget=10)) if "accessibility_tree" in declared else None


async def _await_within_deadline(backend: VisionBackend, asked: Awaitable[T]) -> T:
    """Return an answer; fail at the backend's deadline, at which a session gives up as well.

    A backend that hangs fails its test, and the next test begins.
    """
    assert isawaitable(asked), (
        f"a method gave {type(asked).__name__} at once; write it with `async def`, and without `yield`"
    )
    with anyio.move_on_after(backend.deadline):
        return await asked
    raise AssertionError(_describe_timeout(backend))


async def _close_within_deadline(backend: VisionBackend) -> None:
    """Close the backend as a session does, failing if it hangs: a session could not end."""
    with anyio.move_on_after(backend.deadline):
        await backend.close()
        return
    raise AssertionError(f"`close` does not end within its deadline of {backend.deadline:g} s")


def _snapshot_process_state() -> tuple[Any, ...]:
    """Return state of the entire program: the working directory and signal handlers."""
    return os.getcwd(), *(signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM))


def _describe_timeout(backend: VisionBackend) -> str:
    return f"it does not answer within its deadline of {backend.deadline:g} s"


def _normalize_answer(answer: Any, left: int) -> str:
    """Return an answer as text, independent of its picture's position."""
    if isinstance(answer, Plan):
        named = [{**action.args, "x": action.args.get("x", left) - left} for action in answer.actions]
        return f"{answer.text} {named}"
    if not isinstance(answer, Sequence) or isinstance(answer, str):
        return str(answer)
    shown: list[str] = []
    for element in answer:  # pyright: ignore[reportUnknownVariableType] # plugin code gives anything
        rect = element.rect if isinstance(element, Element) else None
        at = (rect.x - left, rect.y, rect.width, rect.height) if rect else None
        shown.append(f"{getattr(element, 'role', '')} {getattr(element, 'text', '')} {at}")  # pyright: ignore[reportUnknownArgumentType]
    return "\n".join(shown)


def _list_child_processes() -> Collection[str]:
    """Return the ids of this process's children that were not waited for; empty if they cannot be determined."""
    try:
        listed = [Path(thread, "children").read_text() for thread in Path("/proc/self/task").iterdir()]
    except OSError:
        return ()
    return " ".join(listed).split()


def _count_open_files() -> int:
    """Return how many files and sockets this process has open; 0 if that cannot be counted."""
    try:
        return len(os.listdir("/proc/self/fd"))
    except OSError:
        return 0
