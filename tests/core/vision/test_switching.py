"""Another vision backend is chosen while calls are under way."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

import handrail
from handrail import Element, Frame, Rect, Session, ToolContext, VisionBackend, tool
from handrail.testing import open_test_session

pytestmark = pytest.mark.anyio


class Eye(VisionBackend):
    """Answers with its name, and remembers its instances."""

    name = "first"
    capabilities = frozenset({"understand", "parse_screen"})
    made: list[Eye]
    closed = False

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        type(self).made.append(self)

    async def understand(self, frame: Frame, intent: str) -> str:
        assert not self.closed, "it is asked after it was closed"
        return self.name

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        return ()

    async def close(self) -> None:
        self.closed = True


def eyes(*names: str) -> list[type[Eye]]:
    return [type(name.title(), (Eye,), {"name": name, "made": []}) for name in names]


class Stage:
    """Two tools that look: one waits for the gate in between, one has the other do it."""

    def __init__(self) -> None:
        self.gate, self.begun = anyio.Event(), anyio.Event()

        @tool(trusted=True)
        async def look_twice(context: ToolContext) -> str:
            """Look, wait, look."""
            first = await look(context)
            self.begun.set()
            await self.gate.wait()
            return f"{first} {await look(context)}"

        @tool(trusted=True)
        async def wait_and_have_look(context: ToolContext) -> str:
            """Wait, then have another call look."""
            self.begun.set()
            await self.gate.wait()
            return (await context.call("look_once", {}))["content"]

        @tool(trusted=True)
        async def look_once(context: ToolContext) -> str:
            """Look."""
            return await look(context)

        self.tools = [look_twice, wait_and_have_look, look_once]


async def look(context: ToolContext) -> str:
    return (await context.vision.understand(Frame(Rect(0, 0, 9, 9), None, 0.0))).value


@pytest.mark.parametrize(("call", "seen"), [("look_twice", "first first"), ("wait_and_have_look", "first")])
async def test_a_call_under_way_ends_on_the_backend_that_it_began_with(call: str, seen: str) -> None:
    stage, (first, second) = Stage(), eyes("first", "second")
    results: list[Any] = []
    async with open_test_session(tools=stage.tools, backends=[first, second], settings={"backend": "first"}) as session:

        async def run() -> None:
            results.append(await session.call(call))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await stage.begun.wait()
            await session.use_backend("second")
            assert (await session.call("look_once"))["content"] == "second"
            assert not any(eye.closed for eye in first.made)
            stage.gate.set()
        assert results[0].ok, results[0]
        assert results[0]["content"] == seen
        # Nobody asks it any more.
        with anyio.fail_after(30):
            while not all(eye.closed for eye in first.made):
                await anyio.lowlevel.checkpoint()
    assert not session.bus.listening


async def test_a_tool_that_the_new_backend_hides_is_refused_though_what_it_would_need_is_held() -> None:
    gate, begun = anyio.Event(), anyio.Event()

    @tool(trusted=True, exclusive="screen", requires={"parse_screen"})
    async def stare() -> str:
        """Look until the gate opens."""
        begun.set()
        await gate.wait()
        return "stared"

    class OnlyPlans(VisionBackend):
        name = "only_plans"
        capabilities = frozenset({"plan_actions"})

    backends, settings = [*eyes("first"), OnlyPlans], {"backend": "first"}
    async with open_test_session(tools=[stare], backends=backends, settings=settings) as session:
        results: list[Any] = []

        async def run() -> None:
            results.append(await session.call("stare"))

        async with anyio.create_task_group() as group:
            group.start_soon(run)
            await begun.wait()
            await session.use_backend("only_plans")
            with anyio.fail_after(30):
                assert (await session.call("stare")).error_code == "tool_unavailable"
            assert not results
            gate.set()
    assert results[0]["content"] == "stared"


async def test_a_backend_that_is_left_is_closed_and_one_to_fall_back_on_stays_open() -> None:
    stage, (first, second, third) = Stage(), eyes("first", "second", "third")
    settings = {"backend": "first", "backend_fallback": ["third"]}
    async with open_test_session(tools=stage.tools, backends=[first, second, third], settings=settings) as session:
        await session.call("look_once")
        await session.use_backend("third")
        assert (await session.call("look_once"))["content"] == "third"
        await session.use_backend("second")
        await session.call("look_once")
        assert [eye.closed for eye in first.made] == [True]
        assert [eye.closed for eye in third.made] == [False]


async def test_one_that_is_left_while_it_warms_up_is_closed_as_well() -> None:
    class Slow(*eyes("slow")):
        async def warm_up(self) -> None:
            await anyio.sleep_forever()

    (first,) = eyes("first")
    async with open_test_session(backends=[first, Slow], settings={"backend": "first"}) as session:
        await session.desktop()
        await session.use_backend("slow")
        with anyio.fail_after(30):
            while not Slow.made:
                await anyio.lowlevel.checkpoint()
            await session.use_backend("first")
            while not Slow.made[0].closed:
                await anyio.lowlevel.checkpoint()


def configured(folder: Path, text: str) -> None:
    new = folder / "new.toml"
    new.write_text(text)
    new.replace(folder / "given.toml")


async def taken_over(session: Session, profile: str) -> None:
    with anyio.fail_after(30):
        while session.settings.tools.profile != profile:
            await anyio.sleep(0.02)


async def test_what_was_chosen_by_hand_stays_until_the_file_names_another_one(tmp_path: Path) -> None:
    configured(tmp_path, 'backend = "accessibility"')
    async with handrail.open(config=tmp_path / "given.toml", cwd=tmp_path, desktop="private") as session:
        await session.use_backend("ocr")
        configured(tmp_path, 'backend = "accessibility"\n[tools]\nprofile = "all"')
        await taken_over(session, "all")
        assert session.backend == "ocr"
        configured(tmp_path, 'backend = "ocr"\n[tools]\nprofile = "files"')
        await taken_over(session, "files")
        configured(tmp_path, 'backend = "accessibility"\n[tools]\nprofile = "all"')
        await taken_over(session, "all")
        assert session.backend == "accessibility"


async def test_choosing_starts_no_private_desktop() -> None:
    first, second = eyes("first", "second")
    async with open_test_session(backends=[first, second], settings={"backend": "first"}) as session:
        await session.use_backend("second")
        await anyio.wait_all_tasks_blocked()
        assert second.made == []
