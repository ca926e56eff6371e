"""The examples that people copy from the documentation work as they stand, and every link leads somewhere."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from scripts import make_docs

from handrail.config.installed import schema_here

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md"), ROOT / "core/README.md"]
)


def python_blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def printed(code: str, folder: Path) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "HANDRAIL_HOME": str(folder / "home")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=90,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_lines_of_the_python_page_list_call_batch_and_follow(tmp_path: Path) -> None:
    first, *others = python_blocks("docs/python.md")
    lines = printed("\n".join([first, *others]), tmp_path)
    assert lines[0] == "True"
    assert {"one", "execute_cli success", "wait success", "['success', 'success']"} <= set(lines)


def test_the_pages_that_are_made_from_the_code_show_it_as_it_is() -> None:
    for path, text in make_docs.pages().items():
        assert path.read_text(encoding="utf-8") == text, "If this fails, run `make docs` and look at what changed."


def test_the_list_of_pages_leads_to_every_page() -> None:
    listed = re.findall(r"\]\(([^)#]+)\)", (ROOT / "docs" / "README.md").read_text(encoding="utf-8"))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").glob("*.md")}
    assert pages - {"README.md"} <= set(listed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_to_a_file_leads_to_one(page: Path) -> None:
    targets = re.findall(r"\]\(([^)\s#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8"))
    gone = [target for target in targets if "://" not in target and not (page.parent / target).exists()]
    assert gone == []


@pytest.mark.parametrize(
    ("rule", "fits"),
    [
        pytest.param({"tool": "read_file", "decision": "allow"}, True, id="one"),
        pytest.param({"tool": ["read_file", "wait"], "decision": "allow"}, True, id="several"),
        pytest.param({"tool": 7, "decision": "allow"}, False, id="a-number"),
        pytest.param({"layer": ["fiel"], "decision": "allow"}, False, id="a-slip-in-a-list"),
    ],
)
def test_editors_are_told_what_a_key_takes_that_may_hold_several(rule: dict[str, Any], fits: bool) -> None:
    told = jsonschema.Draft202012Validator(schema_here({}))
    assert told.is_valid({"policy": {"rules": [rule]}}) is fits
