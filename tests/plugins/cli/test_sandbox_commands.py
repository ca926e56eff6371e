"""Commands that `execute_cli` runs in bubblewrap: real work in the real workspace."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from tests.plugins.cli.conftest import Run

from handrail import Decision, Opinion, Route, Session
from handrail.testing import Always, open_test_session
from handrail_cli import hooks
from handrail_cli.sandboxes.bubblewrap import Bubblewrap

pytestmark = pytest.mark.skipif(Bubblewrap.missing() is not None, reason=str(Bubblewrap.missing()))

IN_SANDBOX = Always(Opinion("jailed", Decision.ALLOW, route=Route.SANDBOX))


class Cli:
    """The plugin without its judge."""

    handrail_register_tools = staticmethod(hooks.handrail_register_tools)
    handrail_register_services = staticmethod(hooks.handrail_register_services)
    handrail_register_sandboxes = staticmethod(hooks.handrail_register_sandboxes)


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    given = {"SSH_AUTH_SOCK": "/tmp/agent", "DISPLAY": ":0", "MY_TOKEN": "t", "LANG": "C.UTF-8"}
    async with open_test_session(
        plugins={"cli": Cli()}, evaluators=[IN_SANDBOX], trusted=True, environment=given, folder=tmp_path
    ) as opened:
        yield opened


async def test_the_result_says_where_it_ran(run: Run) -> None:
    result = await run("echo hi")
    assert (result["stdout"], result["sandbox"], result["network"]) == ("hi\n", "bubblewrap", False)


async def test_the_workspace_is_the_real_one(run: Run, session: Session) -> None:
    assert (await run("echo made > made.txt; mkdir sub")).ok
    assert (session.cwd / "made.txt").read_text() == "made\n"
    assert (session.cwd / "sub").is_dir()


async def test_nothing_but_the_workspace_is_written(run: Run, session: Session) -> None:
    result = await run(f"touch {session.cwd.parent}/home/x; touch /usr/x /etc/x; echo $?")
    assert "Read-only file system" in result["stderr"]
    assert not list((session.cwd.parent / "home").iterdir())


async def test_only_what_is_needed_of_the_environment_is_there(run: Run) -> None:
    shown = (await run("env"))["stdout"]
    assert "LANG=C.UTF-8" in shown
    assert not any(name in shown for name in ("SSH_AUTH_SOCK", "DISPLAY", "MY_TOKEN"))


async def test_folder_and_variables_are_kept_but_not_those_that_programs_obey(run: Run, session: Session) -> None:
    await run("mkdir sub; cd sub; export PLAIN=1 PATH=/x LD_PRELOAD=/y GIT_PAGER=z NODE_OPTIONS=w BASH_ENV=v")
    assert session.cwd.name == "sub"
    assert session.environment == {"PLAIN": "1"}


async def test_a_folder_that_is_only_in_the_sandbox_is_not_kept(run: Run, session: Session) -> None:
    before = session.cwd
    await run("mkdir /tmp/only_inside_the_sandbox && cd /tmp/only_inside_the_sandbox")
    assert session.cwd == before


async def test_one_private_tmp_lasts_for_the_session(run: Run, session: Session) -> None:
    assert (await run("echo once > /tmp/handrail_once; cat /var/tmp/handrail_once")).ok
    assert (await run("cat /tmp/handrail_once"))["stdout"] == "once\n"
    assert not os.path.exists("/tmp/handrail_once")


async def test_the_network_is_not_there_and_that_is_told(run: Run) -> None:
    result = await run("python3 -c \"import socket; socket.create_connection(('192.0.2.1', 80), 2)\"")
    assert result.error_code == "sandbox_denied"
    assert result["error"]["details"] == {"denied": "network"}


async def test_an_ordinary_failure_is_one(run: Run) -> None:
    result = await run("echo no >&2; exit 3")
    assert (result.error_code, result["exit_code"]) == ("downstream_error", 3)
