"""The examples that people copy from the documentation work as they stand, and every link leads somewhere."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
import textwrap
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from scripts import make_docs, make_site
from tests.end_to_end.walk import Block, Walk, blocks

from handrail.session.installed_plugins import build_installed_schema

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("plugins/*/README.md"), ROOT / "core/README.md"]
)

CONFIGURATION = jsonschema.Draft202012Validator(build_installed_schema({}))


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


def test_the_lists_of_pages_name_them_by_their_titles() -> None:
    for page in (ROOT / "README.md", ROOT / "docs" / "README.md"):
        rows = re.findall(r"(?m)^\| .*$", page.read_text(encoding="utf-8"))
        for title, target in re.findall(r"\[([^\]]+)\]\(([^)#]+\.md)\)", "\n".join(rows)):
            assert (page.parent / target).read_text(encoding="utf-8").startswith(f"# {title}\n")


def test_the_site_is_made_without_a_warning_so_every_link_and_anchor_leads_somewhere(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "scripts.make_site", tmp_path], cwd=ROOT, capture_output=True, text=True, timeout=400
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{tmp_path / 'index.html'}\n", "")
    shown = (tmp_path / "docs/README.html").read_text(encoding="utf-8")
    assert all(f">{kind}<" in shown for kind in ("Tutorial", "How to", "Reference", "Why"))
    assert len([*tmp_path.rglob("*.html")]) > len(PAGES)
    texts = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("docs/*.html")]
    assert not [text for text in texts if re.search(r"<a [^>]*>(<[^>]+>)*[\w/-]+\.md<", text)]


def test_a_link_to_a_heading_that_is_not_there_stops_the_site(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/README.md").write_text("# Pages\n\n## Tutorial\n\n[a](a.md#gone)\n")
    (tmp_path / "docs/a.md").write_text("# A\n\n[b](b.md)\n")
    told = make_site.faults(tmp_path, tmp_path / "site")
    assert "'gone'" in told
    assert "'b.md'" in told


def read_block(block: Block) -> None:
    """Raises where a block is not what it says that it is written in."""
    text = textwrap.dedent(block.text)
    if block.kind == "python":
        compile(text, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    elif block.kind == "toml":
        table = tomllib.loads(text)
        if not table.keys() & {"project", "build-system"}:
            assert [error.message for error in CONFIGURATION.iter_errors(table)] == []
    elif block.kind == "json":
        json.loads(text)
    elif block.kind == "yaml":
        yaml.safe_load(text)


# That page shows what is wrong, and what is said of it.
@pytest.mark.parametrize(
    "page",
    [page for page in PAGES if page.name != "troubleshooting.md"],
    ids=lambda page: str(page.relative_to(ROOT)),
)
def test_every_block_of_code_is_what_it_says_that_it_is(page: Path) -> None:
    for block in blocks(page):
        read_block(block)


def test_the_page_about_continuous_integration_holds_word_by_word(tmp_path: Path) -> None:
    for folder in ("notes", "work", "home"):
        (tmp_path / folder).mkdir()
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    walk = Walk(
        tmp_path / "notes", tmp_path / "work", {**os.environ, "PATH": path, "HANDRAIL_HOME": str(tmp_path / "home")}
    )
    walk.follow(ROOT / "docs/ci.md")
    assert len(walk.done) == 4


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
    assert CONFIGURATION.is_valid({"policy": {"rules": [rule]}}) is fits


def test_the_page_for_contributors_shows_the_layout_as_it_is() -> None:
    """The diagram has the layers of the contract in their order, and every path of the page exists."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = next(each["layers"] for each in contracts if each["id"] == "layers")
    diagram = re.search(r"```text\n(cli .*?)```", page, re.DOTALL)
    assert diagram is not None
    shown = [re.split(r"\s{2,}", line)[0].split(" · ") for line in diagram[1].splitlines()]
    # The last lines are single modules; some of them stand for all.
    packages = [layer.split(" | ") for layer in layers[:-2]]
    assert shown[: len(packages)] == packages
    assert {*shown[-1]} - {"…"} <= {name for layer in layers[-2:] for name in layer.split(" | ")}
    paths = re.findall(r"`((?:core|plugins|scripts|tests)/[\w/.]*[\w/])`", page)
    assert paths
    assert [path for path in paths if "NAME" not in path and not (ROOT / path).exists()] == []
