"""All that is done with a release's wheels; in one file, so that they are built once."""

from __future__ import annotations

import json
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from configparser import ConfigParser
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest
from tests.installs.conftest import Environment, interpreters

# What an interpreter lacks comes from the registry.
pytestmark = pytest.mark.timeout(600)

ROOT = Path(__file__).parents[2]
# What editors, patches and runs leave beside sources.
RUBBISH = {"", ".pyc", ".orig", ".rej", ".swp", ".bak", ".log", ".tmp"}
PYTHONS = interpreters()
on_each_python = pytest.mark.parametrize("python", PYTHONS.values(), ids=PYTHONS)

Environments = Callable[..., Environment]


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


@on_each_python
def test_the_desktop_extra_installs_and_works(environment: Environments, python: Path):
    made = environment(python)
    made.install("handrail[desktop]")
    assert made.handrail("--version").startswith("handrail, version ")
    assert {plugin["state"] for plugin in json.loads(made.handrail("plugins", "--json"))} == {"loaded"}
    assert {"execute_cli", "observe_screen", "read_pdf"} <= {
        t["name"] for t in json.loads(made.handrail("tools", "--json"))
    }
    called = json.loads(made.handrail("call", "execute_cli", "--args", '{"command": "echo hello"}', "--json"))
    assert (called["status"], called["stdout"]) == ("success", "hello\n")


@on_each_python
def test_core_alone_installs_and_works(environment: Environments, python: Path):
    made = environment(python)
    made.install("handrail-core")
    assert {tool["name"] for tool in json.loads(made.handrail("tools", "--json"))} == {"wait", "get_action_history"}
    assert json.loads(made.handrail("call", "wait", "--args", '{"seconds": 0.1}', "--json"))["status"] == "success"
