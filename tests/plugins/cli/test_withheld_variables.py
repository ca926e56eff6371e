"""Variables of the session that a command on the host is not given."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

import handrail
from handrail import Session
from handrail.api.approval import yes
from handrail_cli.process.withheld_variables import find_withheld_variables

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="paths are those of POSIX")


@pytest.mark.parametrize(
    ("name", "value", "withheld"),
    [
        pytest.param("LEFTHOOK_BIN", "/srv/shop/evil", True, id="a-program"),
        pytest.param("HGMERGE", "cd; touch ran", True, id="code-without-a-path"),
        pytest.param("VAULT_ADDR", "https://host.example", True, id="an-address"),
        pytest.param("LEFTHOOK", "0", True, id="a-switch"),
        pytest.param("TZ", "../../srv/shop/zone", True, id="a-file-of-a-time-zone"),
        pytest.param("RAILS_ENV", "production", True, id="the-kind-of-a-run"),
        pytest.param("OWN", "/srv/shop/own", False, id="the-users-own"),
    ],
)
def test_what_may_lead_a_program_astray_is_withheld(name: str, value: str, *, withheld: bool) -> None:
    found = find_withheld_variables({name: value}, {"OWN": "/srv/shop/own"}, command="git commit")
    assert (name in found) is withheld


@pytest.mark.parametrize(
    ("name", "value", "withheld"),
    [
        pytest.param("TC_LIB_DIR", "lib", True, id="a-folder"),
        pytest.param("TZ", "../../srv/shop/zone", True, id="a-file-of-a-time-zone"),
        pytest.param("TZ", "Europe/Berlin", False, id="a-time-zone"),
        pytest.param("LC_ALL", "C.UTF-8", False, id="a-language"),
        pytest.param("NO_COLOR", "1", False, id="a-switch"),
        pytest.param("GREP_COLORS", "mt=01;31:ne", False, id="colours"),
        pytest.param("NO_COLOR", "a[$(touch ran)]", True, id="code-for-a-shell-that-computes"),
        pytest.param("COLUMNS", "x`id`", True, id="code-in-a-width"),
    ],
)
def test_a_program_that_inspects_the_system_is_given_what_leads_nowhere(
    name: str, value: str, *, withheld: bool
) -> None:
    assert (name in find_withheld_variables({name: value}, {}, command="ps", gives_tame=True)) is withheld


@pytest.mark.parametrize(
    ("command", "withheld"),
    [
        pytest.param('rm -r "$BUILD/x"', False, id="used"),
        pytest.param('rm -r "${BUILD:?}/x"', False, id="used-in-braces"),
        pytest.param("deploy # BUILD", True, id="named-only"),
        pytest.param("echo $BUILDS", True, id="another-name"),
    ],
)
def test_a_command_that_uses_a_variable_is_given_it(command: str, *, withheld: bool) -> None:
    found = find_withheld_variables({"BUILD": "/srv/shop/build"}, {}, command=command)
    assert found == (frozenset({"BUILD"}) if withheld else frozenset())


def test_a_variable_whose_value_no_question_shows_is_not_given_either() -> None:
    assert find_withheld_variables({"API_TOKEN": "x"}, {}, command="deploy $API_TOKEN") == {"API_TOKEN"}


@pytest.fixture
async def host(folder: Path) -> AsyncGenerator[Session, None]:
    async with handrail.open(cwd=folder, confirm=yes, sandbox={"use": ["none"]}) as opened:
        yield opened


async def test_an_approved_command_is_not_led_by_what_nobody_approved(host: Session) -> None:
    await host.call("execute_cli", {"command": "export HGMERGE=./keys CI=1"})
    result = await host.call("execute_cli", {"command": "env; true > made"})
    assert ("HGMERGE=./keys" in result["stdout"], "CI=1" in result["stdout"]) == (False, False)
    assert "without the session's CI, HGMERGE" in result["note"]
    used = await host.call("execute_cli", {"command": "echo $HGMERGE; true > made"})
    assert used["stdout"] == "./keys\n"


async def test_what_an_approved_command_has_set_lasts(host: Session) -> None:
    await host.call("execute_cli", {"command": "export PATH=$PWD/bin:$PATH TOOLS=$PWD/tools; true > made"})
    result = await host.call("execute_cli", {"command": "env; true > made"})
    assert f"PATH={host.cwd}/bin:" in result["stdout"]
    assert f"TOOLS={host.cwd}/tools\n" in result["stdout"]
