"""The examples of docs/plugins: every one of them runs, and every hook has one."""

from __future__ import annotations

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from handrail.plugins import hookspecs
from handrail.testing.session_fixtures import OpenSession

DOCS = Path(__file__).parents[2] / "docs/plugins"
HOOKS = [name for name in dir(hookspecs) if name.startswith("handrail_register_")]


def blocks(text: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


def sections() -> dict[str, list[str]]:
    """The code blocks under each heading that is a hook's name."""
    parts = re.split(r"^## (\w+)$", (DOCS / "hooks.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {name: blocks(text) for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def examples() -> list[Any]:
    """Each example with the lines that try it."""
    pairs = [(name, code[at], code[at + 1]) for name, code in sections().items() for at in range(0, len(code), 2)]
    return [pytest.param(*pair, id=f"{pair[0]}-{at}") for at, pair in enumerate(pairs)]


def run(code: str, name: str, folder: Path, **given: Any) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = str(folder / f"{name}.py")
    module.__dict__.update(given)
    exec(compile(code, f"docs/plugins/{name}", "exec"), module.__dict__)
    return module


@pytest.mark.parametrize("hook", HOOKS)
def test_every_hook_has_an_example_and_lines_that_try_it(hook: str) -> None:
    code = sections().get(hook, [])
    assert code, f"If this fails, write a section {hook!r} with an example in docs/plugins/hooks.md."
    assert len(code) % 2 == 0, f"If this fails, an example of {hook} lacks the block that tries it."
    assert any(f"def {hook}(" in block for block in code[::2])


def test_no_example_is_of_a_hook_that_is_not_there() -> None:
    assert set(sections()) == set(HOOKS)


@pytest.mark.parametrize(("hook", "example", "trial"), examples())
async def test_every_example_works(
    hook: str, example: str, trial: str, handrail_session: OpenSession, tmp_path: Path
) -> None:
    hooks = run(example, "example", tmp_path)
    tests = [
        value for name, value in vars(run(trial, "trial", tmp_path, hooks=hooks)).items() if name.startswith("test_")
    ]
    assert tests
    for test in tests:
        if inspect.iscoroutinefunction(test):
            await test(handrail_session)
        else:
            test()


IMPORTS = """
from typing import Annotated
import pytest
from pydantic import Field
from handrail import Decision, Evaluator, Opinion, Reason, Rect, Send, Window, Write, tool
from handrail.testing import (
    Always, EvaluatorContract, FakeScreen, ScriptedConfirmer, ToolContract, fake_backend, fake_service
)
"""


@pytest.mark.parametrize("page", ["testing.md", "evaluator.md", "sandbox.md"])
def test_what_a_page_about_testing_shows_is_a_test_module_that_passes(page: str, tmp_path: Path) -> None:
    (tmp_path / "test_shown.py").write_text(
        IMPORTS + "\n".join(blocks((DOCS / page).read_text(encoding="utf-8"))), encoding="utf-8"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\nanyio_mode = auto\nfilterwarnings = error\n")
    (tmp_path / "conftest.py").write_text(
        "import pytest\n@pytest.fixture\ndef anyio_backend():\n    return 'asyncio'\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " skipped" not in done.stdout


def test_what_confirmation_md_shows_runs(tmp_path: Path) -> None:
    (code,) = blocks((DOCS.parent / "confirmation.md").read_text(encoding="utf-8"))
    (tmp_path / "shown.py").write_text(code, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "shown.py"], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert "Handrail asks: may set_volume do this?" in done.stdout
    assert "now 20 %" in done.stdout
    assert "a person said no: not so loud" in done.stdout


def test_what_paths_and_urls_md_shows_runs(tmp_path: Path) -> None:
    (code,) = blocks((DOCS.parent / "paths-and-urls.md").read_text(encoding="utf-8"))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "the host is 127.0.0.1 in a form that programs read differently",
        "/work/docs/a.txt",
    ]


def test_what_documents_md_shows_runs(tmp_path: Path) -> None:
    text = (DOCS.parent / "documents.md").read_text(encoding="utf-8")
    (code,) = blocks(text)
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert f"```\n{done.stdout}```" in text


def test_what_models_md_shows_runs(tmp_path: Path) -> None:
    code = blocks((DOCS.parent / "models.md").read_text(encoding="utf-8"))
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(code)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
        timeout=60,
        env={**os.environ, "HANDRAIL_HOME": str(tmp_path / "home")},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith('gemini-3 [{"name": "wait"')
