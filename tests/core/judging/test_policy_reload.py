"""Rules that are edited while sessions run."""

from __future__ import annotations

import functools
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from handrail.config import loader as config, trust
from handrail.fs.app_dirs import AppDirs
from handrail.plugins.loader import load_plugins
from handrail.session.runtime import open_runtime
from handrail.session.session import Session

DENY_WAITING = '[[policy.rules]]\ntool = "wait"\ndecision = "deny"\n'


@asynccontextmanager
async def session_in(folder: Path) -> AsyncGenerator[tuple[Session, Path], None]:
    """A session that follows the user's file, and that file."""
    environment = {"HOME": str(folder), "HANDRAIL_HOME": str(folder / "state")}
    places = AppDirs.of(environment)
    places.config_file.parent.mkdir(parents=True)
    places.config_file.write_text("")
    read = functools.partial(
        config.load_config, places=places, folder=folder, environment=environment, admin=folder / "none"
    )
    async with (
        open_runtime(
            read(), environment=environment, cwd=folder, places=places, plugins=load_plugins([]), reload=read
        ) as runtime,
        runtime.session() as session,
    ):
        yield session, places.config_file


async def until(holds: Callable[[list[str]], bool], session: Session) -> None:
    with anyio.fail_after(30):
        while not holds([tool.name for tool in await session.tools()]):
            await anyio.sleep(0.02)


async def test_a_rule_that_is_written_holds_at_once_and_one_that_is_taken_out_no_longer(tmp_path: Path) -> None:
    async with session_in(tmp_path) as (session, file):
        assert (await session.call("wait", {"seconds": 0.1})).ok
        file.write_text(DENY_WAITING)
        await until(lambda names: "wait" not in names, session)
        assert (await session.call("wait", {"seconds": 0.1})).error_code == "tool_unavailable"
        file.write_text("")
        await until(lambda names: "wait" in names, session)


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        pytest.param(DENY_WAITING + "comand = []\n", ":4: unknown key 'policy.rules[0].comand'", id="a-key"),
        pytest.param(DENY_WAITING.replace('"wait"', '"wiat"'), ":2: policy.rules[0].tool: no tool here", id="a-tool"),
        pytest.param("[[policy.rules]\n", ":1:15: this is not TOML", id="no-toml"),
    ],
)
async def test_a_broken_file_is_reported_and_the_rules_from_before_stay(
    broken: str, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with session_in(tmp_path) as (session, file):
        file.write_text(DENY_WAITING)
        await until(lambda names: "wait" not in names, session)
        file.write_text(broken)
        with anyio.fail_after(30):
            while said not in caplog.text:
                await anyio.sleep(0.02)
        assert "wait" not in [tool.name for tool in await session.tools()]


async def test_a_projects_file_that_changes_tells_what_of_it_does_not_count_until_it_is_trusted_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    project = tmp_path / "handrail.toml"
    project.write_text("")
    places = AppDirs.of({"HANDRAIL_HOME": str(tmp_path / "state")})
    trust.trust_folder(tmp_path, places=places)
    async with session_in(tmp_path) as (session, _):
        project.write_text(f'[tools]\nprofile = "files"\n{DENY_WAITING}')
        await until(lambda names: "wait" not in names, session)
        assert f"tools.profile; read the file, then run: handrail trust {tmp_path}" in caplog.text
        assert session.settings.tools.profile != "files"
        trust.trust_folder(tmp_path, places=places)
        with anyio.fail_after(30):
            while session.settings.tools.profile != "files":
                await anyio.sleep(0.02)
                await session.tools()
