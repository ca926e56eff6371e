from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from handrail.cli.new import PLUGIN_KINDS

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("kind", PLUGIN_KINDS)
def test_a_package_is_made_and_the_next_step_is_told(handrail, kind: str) -> None:
    done = handrail("new", kind, "my_first")
    assert done.returncode == 0, done.stderr
    assert f"next: cd handrail-my-first && handrail install -e '.[test]' && {sys.executable} -m pytest" in done.stdout
    made = handrail.folder / "handrail-my-first"
    assert {file.name for file in made.rglob("*.py")} == {"__init__.py", "test_my_first.py"}
    assert 'my_first = "handrail_my_first"' in (made / "pyproject.toml").read_text()


def test_what_is_there_is_left_alone(handrail) -> None:
    (handrail.folder / "handrail-mine").mkdir()
    done = handrail("new", "tool", "mine")
    assert done.returncode == 1
    assert "exists already, and nothing was written" in done.stderr
    assert not list((handrail.folder / "handrail-mine").iterdir())


@pytest.mark.parametrize(
    ("name", "cure"),
    [("My Tool", "'my_tool'"), ("2fast", "'fast'"), ("-", "-"), ("../x", "'x'"), ("class", "'my_class'")],
)
def test_a_name_that_no_plugin_can_have_is_refused_with_one_that_it_can(handrail, name: str, cure: str) -> None:
    done = handrail("new", "tool", "--", name)
    assert done.returncode == 2
    assert cure in done.stderr
    assert not list(handrail.folder.iterdir())


@pytest.mark.parametrize(
    ("kind", "name", "told"),
    [
        ("backend", "core", "'handrail-core' is a package of Handrail's own"),
        ("tool", "gemini_cu", "'handrail-gemini-cu' is a package of Handrail's own"),
        ("backend", "ocr", "the plugin 'vision_ocr' supplies a backend 'ocr' already"),
    ],
)
def test_a_name_that_would_take_the_place_of_a_part_of_handrail_is_refused(
    handrail, kind: str, name: str, told: str
) -> None:
    done = handrail("new", kind, name)
    assert done.returncode == 1
    assert told in done.stderr
    assert not list(handrail.folder.iterdir())


def test_without_the_extra_it_says_how_to_get_it(handrail) -> None:
    # A package of that name that cannot be imported stands for one that is not there.
    (handrail.folder / "copier.py").write_text("raise ImportError\n")
    done = handrail("new", "tool", "mine", PYTHONPATH=str(handrail.folder))
    assert done.returncode == 1
    assert "handrail install 'handrail-core[new]'" in done.stderr


def test_the_tutorial_shows_the_example_as_it_is() -> None:
    page = (ROOT / "docs/plugins/backend.md").read_text(encoding="utf-8")
    shown = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    example = ROOT / "plugins/example"
    files = (example / "src/handrail_example/__init__.py", example / "tests/test_example.py")
    assert shown == [file.read_text(encoding="utf-8") for file in files]
