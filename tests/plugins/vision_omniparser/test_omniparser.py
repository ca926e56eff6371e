"""The backend `omniparser` against a server that speaks OmniParser's protocol over real HTTP, with the defects that it is known for."""

from __future__ import annotations

import math
import os
import socket
import sys
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import psutil
import pytest
from tests.plugins.vision_omniparser import omni
from tests.plugins.vision_vlm.serving import Answer, Asked, served_apart, serving

from handrail import BackendUnavailable, Element, Frame, Rect, VisionBackend
from handrail.testing import VisionBackendContract
from handrail.testing.backend_contract import FakeBackendContext, create_frame, open_backend
from handrail_vision_omniparser.backend import OmniParser, OmniParserConfig

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with served_apart("tests.plugins.vision_omniparser.omni") as url:
        yield url


class TestOmniParser(VisionBackendContract):
    @pytest.fixture
    def backend(self, server: str) -> VisionBackend:
        return OmniParser(OmniParserConfig(url=server))


def screen(*, x: int = 0, y: int = 0) -> Frame:
    """A line of words, as stripes, and a button below it."""
    pixels = np.full((400, 640, 3), 240, np.uint8)
    pixels[40:60, 100:300:10] = 20
    pixels[200:240, 320:480] = 20
    return create_frame(pixels, x, y)


def button_alone() -> Frame:
    pixels = np.full((400, 640, 3), 240, np.uint8)
    pixels[200:240, 320:480] = 20
    return create_frame(pixels, 0, 0)


async def parse(url: str, frame: Frame, **settings: Any) -> list[Element]:
    async with open_backend(OmniParser(OmniParserConfig(url=url, **settings)), FakeBackendContext()) as backend:
        return list(await backend.parse(frame, ""))


async def test_boxes_are_ratios_of_the_picture_and_end_up_in_screen_pixels(server: str) -> None:
    text, button = await parse(server, screen(x=-640, y=100))
    assert (text.role, text.source, text.actions, text.ref) == ("text", "ocr", (), 0)
    assert (button.role, button.text, button.source, button.actions) == ("icon", "a button", "vision", ("click",))
    assert button.rect == Rect(-320, 300, 160, 40)
    # The number that the server draws upon its own picture.
    assert button.ref == 1


async def test_the_picture_is_sent_as_it_is_and_to_the_documented_place() -> None:
    async with serving(omni.answer) as served:
        await parse(served.url, screen())
        assert [(asked.method, asked.path) for asked in served.asked] == [("GET", "/probe/"), ("POST", "/parse/")]
        (body,) = served.bodies
        assert list(body) == ["base64_image"]
        assert not body["base64_image"].startswith("data:")


async def test_a_picture_without_text_breaks_the_server_and_is_understood_all_the_same(server: str) -> None:
    (button,) = await parse(server, button_alone())
    assert button.rect == Rect(320, 200, 160, 40)
    assert not await parse(server, create_frame(np.full((100, 100, 3), 255, np.uint8), 0, 0))


async def test_a_server_that_always_breaks_is_said() -> None:
    async def broken(asked: Asked) -> Answer:
        return await omni.answer(asked) if asked.method == "GET" else Answer(b"Internal Server Error", status=500)

    async with serving(broken) as served:
        with pytest.raises(BackendUnavailable, match=r"answered 500 \(Internal Server Error\)"):
            await parse(served.url, screen())
        assert len(served.bodies) == 2


def item(**changes: Any) -> dict[str, Any]:
    return {
        "type": "icon",
        "bbox": [0.1, 0.1, 0.2, 0.2],
        "interactivity": True,
        "content": "x",
        "source": "y",
        **changes,
    }


@pytest.mark.parametrize(
    ("listed", "numbers"),
    [
        pytest.param([item(), item(content=None), item(content=7)], [0, 1, 2], id="without-content"),
        pytest.param([item(bbox=None), item(bbox=[0.1, 0.2]), item(bbox=[0, 0, "1", 1]), item()], [3], id="no-boxes"),
        pytest.param([item(bbox=[0.5, 0.5, 1.004, 1.0]), item(bbox=[1.2, 0, 1.5, 1])], [0], id="beyond-the-edge"),
        pytest.param(["text", None, 3, item()], [3], id="no-elements"),
        pytest.param([item(bbox=[0.3, 0.3, 0.1, 0.1])], [0], id="corners-swapped"),
        pytest.param([item(bbox=[True, 0, 1, 1])], [], id="no-number"),
        pytest.param([item(bbox=[10**400, 0, 1, 1]), item(bbox=[math.nan] * 4), item()], [2], id="endless-numbers"),
        pytest.param([*[None] * 4_999, item(), item()], [4_999], id="a-flood"),
        pytest.param([], [], id="nothing"),
    ],
)
async def test_what_makes_no_sense_is_left_out_and_the_rest_keeps_its_number(listed: Any, numbers: list[int]) -> None:
    async def odd(asked: Asked) -> Answer:
        return Answer({"parsed_content_list": listed, "message": ""})

    async with serving(odd) as served:
        frame = screen()
        found = await parse(served.url, frame)
        assert [element.ref for element in found] == numbers
        assert all(element.rect and element.rect.intersect(frame.screen) == element.rect for element in found)


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        pytest.param(Answer(b"<html>It works!</html>"), "no JSON", id="another-server"),
        pytest.param(Answer({"message": "hello"}), "no OmniParser", id="another-interface"),
        pytest.param(Answer([1]), "answered list", id="no-object"),
        pytest.param(Answer({"detail": "Not Found"}, status=404), "404 .Not Found.: Not Found", id="not-found"),
        pytest.param(Answer(b"", status=307, headers={"location": "http://127.0.0.1:1/"}), "leads on", id="redirect"),
        pytest.param(Answer({"parsed_content_list": []}, cut=True), "no connection", id="cut"),
    ],
)
async def test_what_is_no_omniparser_is_named(answer: Answer, why: str) -> None:
    async def other(asked: Asked) -> Answer:
        return Answer({"message": "ready"}) if asked.path == "/probe/" else answer

    async with serving(other) as served:
        with pytest.raises(BackendUnavailable, match=why):
            await parse(served.url, screen())


async def test_where_nothing_listens_the_cure_is_named() -> None:
    with pytest.raises(BackendUnavailable, match="no OmniParser answers at http") as caught:
        await parse(f"http://127.0.0.1:{free_port()}", screen())
    assert "backends.omniparser.url" in (caught.value.hint or "")


async def test_pictures_are_sent_one_after_another() -> None:
    at_once = most = 0

    async def counting(asked: Asked) -> Answer:
        nonlocal at_once, most
        at_once += 1
        most = max(most, at_once)
        await anyio.sleep(0.02)
        at_once -= 1
        return await omni.answer(asked)

    async with (
        serving(counting) as served,
        open_backend(OmniParser(OmniParserConfig(url=served.url)), FakeBackendContext()) as backend,
        anyio.create_task_group() as group,
    ):
        for _ in range(4):
            group.start_soon(backend.parse, screen(), "")
    assert most == 1


async def test_a_server_that_is_at_work_for_somebody_else_is_waited_for() -> None:
    busy = anyio.Event()

    async def silent(asked: Asked) -> Answer:
        if asked.path == "/probe/" and not busy.is_set():
            # As long as it takes until the one who probes has had enough.
            await anyio.sleep_forever()
        return await omni.answer(asked)

    async with serving(silent) as served:
        backend = OmniParser(OmniParserConfig(url=served.url))
        await backend.open(FakeBackendContext())
        try:
            assert len(await backend.parse(screen(), "")) == 2
        finally:
            await backend.close()


# A server that is started here


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def surroundings(**variables: str) -> FakeBackendContext:
    around = FakeBackendContext()
    around.environment = {**os.environ, **variables}
    return around


def own(seconds: float, **settings: Any) -> tuple[int, OmniParserConfig]:
    """A backend's settings with a server that takes some seconds to load."""
    port = free_port()
    command = (sys.executable, "-m", "tests.plugins.vision_omniparser.omni", str(port), str(seconds))
    return port, OmniParserConfig(url=f"http://127.0.0.1:{port}", command=command, cwd=str(ROOT), **settings)


def group_of(port: int) -> list[psutil.Process]:
    """The server's process and what it started."""
    found = [child for child in psutil.Process().children(recursive=True) if str(port) in child.cmdline()]
    return [*found, *(below for child in found for below in child.children(recursive=True))]


def gone(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


async def until_gone(processes: list[psutil.Process]) -> None:
    with anyio.fail_after(30):
        while not all(gone(process) for process in processes):
            await anyio.sleep(0.05)


@pytest.fixture
async def started() -> AsyncGenerator[tuple[OmniParser, int], None]:
    """A backend whose server was started with its first question."""
    port, config = own(0.5)
    backend = OmniParser(config)
    await backend.open(FakeBackendContext())
    assert not group_of(port)
    assert len(await backend.parse(screen(), "")) == 2
    yield backend, port
    await backend.close()


async def test_it_is_started_with_the_first_question_and_ended_whole(started: tuple[OmniParser, int]) -> None:
    backend, port = started
    processes = group_of(port)
    assert len(processes) == 2
    assert os.getpgid(processes[0].pid) == processes[0].pid != os.getpgid(0)
    await backend.close()
    await until_gone(processes)


async def test_one_that_has_died_is_started_anew(started: tuple[OmniParser, int]) -> None:
    backend, port = started
    group_of(port)[0].kill()
    with anyio.fail_after(30):
        while True:
            try:
                assert len(await backend.parse(screen(), "")) == 2
                return
            except BackendUnavailable:
                continue


async def test_it_is_given_no_credentials() -> None:
    port, config = own(0.1)
    around = surroundings(OPENAI_API_KEY="sk-123456789012345678901234")
    async with open_backend(OmniParser(config), around) as backend:
        await backend.parse(screen(), "")
        assert "OPENAI_API_KEY" not in group_of(port)[0].environ()


async def test_one_that_ends_while_loading_is_told_with_its_last_words() -> None:
    port, config = own(0.1)
    async with open_backend(OmniParser(config), surroundings(OMNI_BROKEN="1")) as backend:
        with pytest.raises(BackendUnavailable, match="has ended: exit code 1: CUDA error: out of memory"):
            await backend.parse(screen(), "")
        assert not group_of(port)


async def test_a_program_that_is_not_there_is_named() -> None:
    config = OmniParserConfig(url=f"http://127.0.0.1:{free_port()}", command=("no-such-program",))
    async with open_backend(OmniParser(config), FakeBackendContext()) as backend:
        with pytest.raises(BackendUnavailable, match="no-such-program"):
            await backend.parse(screen(), "")


async def test_its_program_is_none_that_an_agent_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "omni").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "omni").chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    config = OmniParserConfig(url=f"http://127.0.0.1:{free_port()}", command=("omni",))
    async with open_backend(OmniParser(config), surroundings()) as backend:
        with pytest.raises(BackendUnavailable, match="the program omni is in no folder of PATH"):
            await backend.parse(screen(), "")


async def test_it_runs_where_agents_write_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    config = OmniParserConfig(url=f"http://127.0.0.1:{free_port()}", command=("sh", "-c", "pwd; exit 1"))
    async with open_backend(OmniParser(config), surroundings()) as backend:
        with pytest.raises(BackendUnavailable, match="exit code 1: /\n"):
            await backend.parse(screen(), "")


async def test_loading_goes_on_when_the_one_who_asked_has_left() -> None:
    _, config = own(1)
    async with open_backend(OmniParser(config), FakeBackendContext()) as backend:
        with anyio.move_on_after(0.3) as scope:
            await backend.parse(screen(), "")
        assert scope.cancelled_caught
        assert len(await backend.parse(screen(), "")) == 2


async def test_warming_up_has_the_server_read_something() -> None:
    async with serving(omni.answer) as served:
        async with open_backend(OmniParser(OmniParserConfig(url=served.url)), FakeBackendContext()) as backend:
            await backend.warm_up()
        assert len(served.bodies) == 1
