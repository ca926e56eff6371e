"""All that is done with a release's wheels; in one file, so that they are built once."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from configparser import ConfigParser
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from tests.end_to_end import shown
from tests.installs.environments import UV, Environment, interpreters, output

# What an interpreter lacks comes from the registry.
pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
# What editors, patches and runs leave beside sources.
RUBBISH = {"", ".pyc", ".orig", ".rej", ".swp", ".bak", ".log", ".tmp"}

Environments = Callable[..., Environment]


PYTHONS = interpreters()
MEMBERS = sorted(
    folder
    for folder in [ROOT, ROOT / "core", *(path.parent for path in ROOT.glob("plugins/*/pyproject.toml"))]
    if folder.name != "example"
)


def project(folder: Path) -> dict:
    return tomllib.loads((folder / "pyproject.toml").read_text())["project"]


class Wheel:
    """The wheel of the package in a folder."""

    def __init__(self, dist: Path, folder: Path) -> None:
        (path,) = dist.glob(f"{project(folder)['name'].replace('-', '_')}-[0-9]*.whl")
        with zipfile.ZipFile(path) as archive:
            self.files = {name: archive.read(name) for name in archive.namelist() if not name.endswith("/")}
        self.info = f"{path.name.rsplit('-', 3)[0]}.dist-info"

    @property
    def metadata(self) -> Message:
        return Parser().parsestr(self.files[f"{self.info}/METADATA"].decode())


@pytest.fixture(params=MEMBERS, ids=lambda folder: project(folder)["name"])
def member(request: pytest.FixtureRequest) -> Path:
    return request.param


def test_a_wheel_says_what_it_is(dist: Path, member: Path):
    told = Wheel(dist, member).metadata
    assert told["Version"] == (ROOT / "VERSION").read_text().strip()
    assert (told["License-Expression"], told["Requires-Python"]) == ("Apache-2.0", ">=3.11")
    assert told["Summary"] == project(member)["description"]
    assert told["Description-Content-Type"] == "text/markdown"
    assert told.get_payload() == (member / "README.md").read_text()
    assert told.get_all("Classifier") == sorted(project(member)["classifiers"])


def test_a_wheel_holds_the_package_and_nothing_else(dist: Path, member: Path):
    wheel = Wheel(dist, member)
    sources = {
        path.relative_to(member / "src").as_posix(): path.read_bytes()
        for path in (member / "src").rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    }
    assert {name: text for name, text in wheel.files.items() if not name.startswith(wheel.info)} == sources
    assert not [name for name in sources if name.endswith("~") or Path(name).suffix in RUBBISH]
    assert wheel.files[f"{wheel.info}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()
    packages = {name.partition("/")[0] for name in sources}
    assert {f"{package}/py.typed" for package in packages} <= sources.keys()


def test_a_wheel_declares_its_program_and_its_plugin(dist: Path, member: Path):
    wheel = Wheel(dist, member)
    declared = ConfigParser()
    declared.read_string(wheel.files.get(f"{wheel.info}/entry_points.txt", b"").decode())
    expected = {**project(member).get("entry-points", {})}
    if "scripts" in project(member):
        expected["console_scripts"] = project(member)["scripts"]
    assert {section: dict(declared[section]) for section in declared.sections()} == expected


def test_a_source_archive_holds_what_its_wheel_is_built_from_and_no_rubbish(dist: Path, member: Path):
    (path,) = dist.glob(f"{project(member)['name'].replace('-', '_')}-[0-9]*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "README.md", "pyproject.toml", "PKG-INFO"} <= names
    assert not [
        name for name in names if any(part in name for part in ("__pycache__", ".venv", "node_modules", "build/"))
    ]


@pytest.mark.parametrize("version", PYTHONS)
def test_the_desktop_extra_installs_and_works(environment: Environments, version: str):
    made = environment(PYTHONS[version])
    made.install("handrail[desktop]")
    assert made.handrail("--version").startswith("handrail, version ")
    assert {plugin["state"] for plugin in json.loads(made.handrail("plugins", "--json"))} == {"loaded"}
    assert {"execute_cli", "observe_screen", "read_pdf"} <= {
        t["name"] for t in json.loads(made.handrail("tools", "--json"))
    }
    called = json.loads(made.handrail("call", "execute_cli", "--args", '{"command": "echo hello"}', "--json"))
    assert (called["status"], called["stdout"]) == ("success", "hello\n")


def test_core_alone_installs_and_works(environment: Environments):
    made = environment()
    made.install("handrail-core")
    assert {tool["name"] for tool in json.loads(made.handrail("tools", "--json"))} == {
        "wait",
        "get_action_history",
        "undo_call",
    }
    assert json.loads(made.handrail("call", "wait", "--args", '{"seconds": 0.1}', "--json"))["status"] == "success"


@pytest.fixture
def links(dist: Path, tmp_path: Path) -> Path:
    """A folder to install from, with the wheels, to which a test may add newer ones."""
    folder = tmp_path / "links"
    folder.mkdir()
    for wheel in dist.glob("*.whl"):
        (folder / wheel.name).symlink_to(wheel)
    return folder


def release_core(version: str, links: Path, scratch: Path) -> None:
    """Add a newer version of core to the folder."""
    shutil.copytree(ROOT / "core", scratch / "newer" / "core", ignore=shutil.ignore_patterns("__pycache__"))
    (scratch / "newer" / "VERSION").write_text(version)
    output(
        UV,
        "-q",
        "build",
        "--wheel",
        "--no-build-isolation",
        "--python",
        sys.executable,
        "--out-dir",
        links,
        scratch / "newer" / "core",
    )


class Tool:
    """Handrail as `uv tool` or `pipx` installs it for a person, in folders of the test."""

    def __init__(self, folder: Path, dist: Path, *words: str | Path, **sources: str) -> None:
        self._folder = folder
        # Others' packages stay as they are, so that nothing is fetched.
        pins = [line for line in (dist / "pins.txt").read_text().splitlines() if " @ " not in line]
        others = folder / "others.txt"
        others.write_text("\n".join(pins))
        self._sources = {**sources, "UV_CONSTRAINT": str(others), "PIP_CONSTRAINT": str(others)}
        tools, programs = str(folder / "tools"), str(folder / "bin")
        places = {"UV_TOOL_DIR": tools, "UV_TOOL_BIN_DIR": programs, "PIPX_HOME": tools, "PIPX_BIN_DIR": programs}
        output(UV.parent / words[0], *words[1:], "handrail", cwd=folder, **places, **self._sources)

    def handrail(self, *words: str) -> str:
        home = {"HOME": str(self._folder), "HANDRAIL_HOME": str(self._folder / "state")}
        path = f"{UV.parent}{os.pathsep}{os.environ['PATH']}"
        return output(self._folder / "bin" / "handrail", *words, cwd=self._folder, PATH=path, **home, **self._sources)


def uv_tool(folder: Path, dist: Path, links: Path) -> Tool:
    return Tool(folder, dist, "uv", "-q", "tool", "install", "--python", sys.executable, UV_FIND_LINKS=str(links))


def pipx(folder: Path, dist: Path, links: Path) -> Tool:
    """Only the first command names the folder: those of Handrail take it from what pipx has written down."""
    return Tool(folder, dist, "pipx", "install", "--python", sys.executable, f"--pip-args=--find-links {links}")


@pytest.mark.parametrize("installed", [uv_tool, pipx])
def test_an_upgrade_keeps_plugins_where_a_program_made_the_environment(
    installed: Callable[[Path, Path, Path], Tool], tmp_path: Path, dist: Path, links: Path
):
    tool = installed(tmp_path, dist, links)
    assert tool.handrail("install", "handrail-session") == "installed the plugin session; see `handrail plugins`\n"
    assert "wait" in tool.handrail("tools")
    release_core("0.1.1", links, tmp_path)
    assert tool.handrail("install", "--upgrade") == "upgraded handrail-core 0.1.1\n"
    assert "ask_user" in tool.handrail("tools")
    assert tool.handrail("uninstall", "session") == "removed the plugin session\n"


def test_an_environment_keeps_plugins_in_an_upgrade(tmp_path: Path, environment: Environments, links: Path):
    made = environment()
    made.install("handrail-core", "handrail-session")
    release_core("0.1.1", links, tmp_path)
    sources = {"UV_FIND_LINKS": str(links), "PATH": f"{UV.parent}{os.pathsep}{os.environ['PATH']}"}
    assert made.handrail("install", "-U", "handrail-core", **sources) == "upgraded handrail-core 0.1.1\n"
    assert "ask_user" in made.handrail("tools")


def test_what_the_readme_of_a_plugin_says_installs_it_and_uses_it(dist: Path, tmp_path: Path):
    (tmp_path / "dist").symlink_to(dist)
    page = ROOT / "plugins/files/README.md"
    (tmp_path / "README.md").write_bytes(page.read_bytes())
    output(sys.executable, "-m", "venv", tmp_path / "venv")
    path = f"{tmp_path / 'venv/bin'}:{os.environ['PATH']}"
    lines = "\n".join(shown.INDENTED.findall(page.read_text()))
    told = output("bash", "-eu", "-c", lines, cwd=tmp_path, PATH=path, HANDRAIL_HOME=str(tmp_path / "home"))
    assert "     1\t# handrail-files" in told
