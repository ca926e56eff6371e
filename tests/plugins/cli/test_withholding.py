"""Variables of the session that a command on the host is not given."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

import handrail
from handrail import Session
from handrail.asking.confirm import yes
from handrail_cli.withholding import withheld_variables

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="paths are those of POSIX")


@pytest.mark.parametrize(
    ("name", "value", "withheld"),
    [
        pytest.param("LEFTHOOK_BIN", "{work}/evil", True, id="in-the-workspace"),
        pytest.param("LEFTHOOK_BIN", "sh -c {work}/evil", True, id="among-words"),
        pytest.param("GIO_EXTRA_MODULES", "/usr/lib/gio:/tmp/x", True, id="among-temporary-files"),
        pytest.param("VIM", "/proc/self/cwd/vim", True, id="by-way-of-a-process"),
        pytest.param("VIM", "//tmp/vim", True, id="two-slashes"),
        pytest.param("VIM", "/usr/../tmp/vim", True, id="up-and-down"),
        pytest.param("GNUPGHOME", "keys", True, id="a-folder-that-is-there"),
        pytest.param("ZDOTDIR", "not/there/yet", True, id="a-relative-path"),
        pytest.param("ZDOTDIR", "..", True, id="above"),
        pytest.param("OPTIONS", "-I{work}/x", True, id="behind-an-option"),
        pytest.param("CONFIG", "file:///%74mp/x", True, id="as-an-address"),
        pytest.param("VERSION", "1.2.3", False, id="no-path"),
        pytest.param("API", "https://api.example/v1", False, id="an-address"),
        pytest.param("TOOLS", "/usr/lib/tools", False, id="of-the-system"),
        pytest.param("NODE_ENV", "keys", False, id="a-name-that-no-file-has"),
        pytest.param("OWN", "{work}/own", False, id="the-users-own"),
    ],
)
def test_what_leads_to_files_of_the_workspace_is_withheld(
    tmp_path: Path, name: str, value: str, *, withheld: bool
) -> None:
    work = Path("/srv/shop")
    (tmp_path / "keys").mkdir()
    found = withheld_variables(
        {name: value.format(work=work)},
        {"OWN": f"{work}/own"},
        command="git commit",
        folder=tmp_path,
        roots=(work,),
    )
    assert (name in found) is withheld


@pytest.mark.parametrize(
    ("command", "withheld"),
    [
        pytest.param('rm -r "$BUILD/x"', False, id="used"),
        pytest.param('rm -r "${BUILD:?}/x"', False, id="used-in-braces"),
        pytest.param("deploy # BUILD", True, id="named-only"),
        pytest.param("echo $BUILDS", True, id="another-name"),
    ],
)
def test_a_command_that_uses_a_variable_is_given_it(tmp_path: Path, command: str, *, withheld: bool) -> None:
    session = {"BUILD": str(tmp_path / "build")}
    found = withheld_variables(session, {}, command=command, folder=tmp_path, roots=(tmp_path,))
    assert found == (frozenset({"BUILD"}) if withheld else frozenset())


@pytest.fixture
async def host(folder: Path) -> AsyncGenerator[Session, None]:
    async with handrail.open(cwd=folder, confirm=yes, sandbox={"use": ["none"]}) as opened:
        yield opened


async def test_an_approved_command_is_not_led_by_what_nobody_approved(host: Session) -> None:
    await host.call("execute_cli", {"command": "export GNUPGHOME=./keys PLAIN=1"})
    result = await host.call("execute_cli", {"command": "env; true > made"})
    assert ("GNUPGHOME=" in result["stdout"], "PLAIN=1" in result["stdout"]) == (False, True)
    assert "without the session's GNUPGHOME" in result["note"]
    used = await host.call("execute_cli", {"command": "echo $GNUPGHOME; true > made"})
    assert used["stdout"] == "./keys\n"


async def test_what_an_approved_command_has_set_lasts(host: Session) -> None:
    await host.call("execute_cli", {"command": "export PATH=$PWD/bin:$PATH TOOLS=$PWD/tools; true > made"})
    result = await host.call("execute_cli", {"command": "env; true > made"})
    assert f"PATH={host.cwd}/bin:" in result["stdout"]
    assert f"TOOLS={host.cwd}/tools\n" in result["stdout"]
