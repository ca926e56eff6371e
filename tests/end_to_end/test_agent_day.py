"""A day of a coding agent in one project, call by call: real commands and file tools, and how often the user is asked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

import handrail
from handrail.api.approval import Answer, Approval, Choice

MOST_QUESTIONS = 5
CALLS = 150
FEATURES = ("rounding", "taxes", "vouchers", "shipping", "currency")
SOURCE = '''"""Prices."""


def total(prices):
    """Add prices up."""
    result = 0
    for price in prices:
        result += price
    return result
'''
TEST = """from shop.prices import total


def test_total():
    assert total([1, 2]) == 3
"""
Call = tuple[str, dict[str, Any]]


class Counting:
    """A confirmer that approves for the session and keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def __call__(self, approval: Approval) -> Answer:
        self.asked.append(f"{approval.tool} {approval.args}: {[reason.text for reason in approval.verdict.reasons]}")
        return Answer(Choice.SESSION if approval.grants else Choice.ONCE)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a package, tests, a page, and a remote beside it."""
    project = tmp_path / "home/shop"
    for folder in ("shop", "tests", "docs", "web"):
        (project / folder).mkdir(parents=True)
    (project / "shop/__init__.py").touch()
    (project / "shop/prices.py").write_text(SOURCE)
    (project / "tests/test_prices.py").write_text(TEST)
    (project / "web/package.json").write_text(
        '{"name": "shop", "version": "1.0.0", "scripts": {"test": "node test.js"}}\n'
    )
    (project / "web/test.js").write_text("console.log('ok')\n")
    (project / "docs/guide.md").write_text("# Guide\n\nRun the tests.\n")
    (project / "Makefile").write_text("test:\n\tpython3 -m unittest -q\n")
    (project / ".env").write_text("KEY=secret\n")
    (project / ".gitignore").write_text(".env\n__pycache__\n")
    identity = ("-c", "user.name=User", "-c", "user.email=user@example.com")
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", tmp_path / "remote.git"], check=True)
    for words in (
        ("init", "-q", "-b", "main"),
        ("add", "."),
        ("commit", "-qm", "Start"),
        ("remote", "add", "origin", tmp_path / "remote.git"),
    ):
        subprocess.run(["git", *identity, *words], cwd=project, check=True)
    (tmp_path / "home/.gitconfig").write_text("[user]\n\tname = User\n\temail = user@example.com\n")
    return project


ORIENTATION = """pwd
ls -la
git status
git log --oneline -5
git branch -a
cat README.md 2>/dev/null || ls docs
cat shop/prices.py
head -20 tests/test_prices.py
grep -rn total .
find . -name '*.py' -not -path './.git/*'
python3 --version
which python3 node npm
uname -sr
df -h .
ps aux | head -5
free -m
date
git remote -v
git diff --stat
wc -l shop/*.py
git show --stat HEAD
git config user.name
echo $HOME"""
EXPLORING = """git checkout -q -b NAME
sed -n '1,40p' shop/prices.py
grep -n NAME -r shop || true"""
CHANGING = """python3 -m unittest -q 2>&1 | tail -3
make test 2>&1 | tail -5
python3 shop/NAME.py
sed -i 's/value/number/g' shop/NAME.py
cat shop/NAME.py
git diff
python3 -m unittest -q
mkdir -p docs/NAME && echo '# NAME' > docs/NAME/index.md
mv docs/NAME/index.md docs/NAME/readme.md
rm -r docs/NAME
git add -A
git commit -qm 'Add NAME'
git log -1 --stat
git status --short
git checkout -q main
git merge -q NAME"""
CLOSING = """cd web && npm test --silent
cd ..
node -e 'console.log(1 + 1)'
git log --oneline | wc -l
git push -q origin main
git diff HEAD~1 --stat
tar czf build.tgz shop && tar tzf build.tgz | head -3
rm build.tgz
git stash list
ls -R shop | head"""
UNIT_TEST = """import unittest
from shop.NAME import NAME


class Case(unittest.TestCase):
    def test_it(self):
        self.assertEqual(NAME(2), 4)
"""


def shell(commands: str, name: str = "") -> Iterator[Call]:
    for command in commands.replace("NAME", name).splitlines():
        yield "execute_cli", {"command": command}


def feature(name: str) -> Iterator[Call]:
    """One change: look, edit, test, commit."""
    module = f"shop/{name}.py"
    yield from shell(EXPLORING, name)
    yield "write_file", {"file_path": module, "content": f"def {name}(value):\n    return value\n"}
    yield "edit_file", {"file_path": module, "old_string": "return value", "new_string": "return value * 2"}
    yield "read_file", {"file_path": module}
    yield "write_file", {"file_path": f"tests/test_{name}.py", "content": UNIT_TEST.replace("NAME", name)}
    yield from shell(CHANGING, name)


def day() -> Iterator[Call]:
    yield from shell(ORIENTATION)
    yield "read_file", {"file_path": "shop/prices.py"}
    yield "list_directory", {"path": "."}
    yield "find_files", {"search_text": "total"}
    for name in FEATURES:
        yield from feature(name)
    yield from shell(CLOSING)


async def test_a_day_of_work_asks_the_user_a_handful_of_times(project: Path, tmp_path: Path) -> None:
    calls = list(day())
    assert len(calls) >= CALLS, len(calls)
    confirm = Counting()
    environment = {**os.environ, "HOME": str(tmp_path / "home")}
    failed: list[str] = []
    async with handrail.open(cwd=project, confirm=confirm, environment=environment) as session:
        for tool, args in calls:
            result = await session.call(tool, args)
            if result["status"] != "success":
                failed.append(f"{tool} {args}: {result['status']} {result.get('error')} {result.get('stderr')}")
    assert failed == []
    assert len(confirm.asked) <= MOST_QUESTIONS, confirm.asked
    pushed = await anyio.run_process(["git", "log", "--oneline", "main"], cwd=tmp_path / "remote.git")
    assert len(pushed.stdout.splitlines()) > len(FEATURES)
