"""What the documentation has a reader type is there: each command with its options, each tool with its arguments, each name to import."""

from __future__ import annotations

import asyncio
import importlib
import re
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
from scripts import make_docs
from tests.end_to_end import shown
from tests.end_to_end.test_docs import PAGES, ROOT

from handrail import Tool
from handrail.cli import handrail_program
from handrail.plugins.known_plugins import find_supplier

# What was once so, and what is wrong and how that is answered.
PAGES_OF_TODAY = [page for page in PAGES if page.name not in ("CHANGELOG.md", "troubleshooting.md")]
# The example is what a third party makes.
PUBLISHED = [ROOT / "core", *sorted(path.parent for path in ROOT.glob("plugins/[!e]*/README.md"))]
every_page = pytest.mark.parametrize("page", PAGES_OF_TODAY, ids=lambda page: str(page.relative_to(ROOT)))


@pytest.fixture(scope="module")
def tools() -> dict[str, Tool]:
    """Every tool that there is, also those that are there only now and then."""
    owned = [*asyncio.run(make_docs.owned_tools()), *asyncio.run(make_docs.passing_tools())]
    return {each.tool.name: each.tool for each in owned}


def read(words: Sequence[str]) -> None:
    """Raises what a user would be told of a command that is not there, of its options and their values; nothing is run."""
    command, rest = handrail_program, list(words)
    context = click.Context(handrail_program, info_name="handrail", **handrail_program.context_settings)
    while True:
        given, rest, _ = command.make_parser(context).parse_args(rest)
        for param in command.params:
            value = given.get(param.name)
            if isinstance(param.type, click.Choice) and isinstance(value, str) and not is_placeholder(value):
                param.type.convert(value, param, context)
        if not isinstance(command, click.Group) or not rest or is_placeholder(rest[0]):
            return
        name, command, rest = command.resolve_command(context, rest)
        assert command is not None
        context = click.Context(command, parent=context, info_name=name)


def is_placeholder(text: str) -> bool:
    """Whether a page means that the reader puts something there."""
    return "…" in text or text.isupper()


@every_page
def test_every_command_that_a_page_shows_is_there_with_its_options(page: Path) -> None:
    for words in shown.commands(page):
        read(words)


def test_a_command_or_option_that_is_not_there_is_noticed() -> None:
    for words in (["sesion"], ["call", "wait", "--jsn"], ["mcp", "instal"], ["completion", "tcsh"]):
        with pytest.raises(click.UsageError):
            read(words)


@every_page
def test_every_call_that_a_page_shows_is_of_a_tool_that_takes_its_arguments(page: Path, tools: dict[str, Tool]) -> None:
    for call in shown.calls(page):
        if call.tool in tools:
            tools[call.tool].validate(call.args)
        else:
            # It has its tests where the page makes it.
            assert f"def {call.tool}(" in page.read_text(encoding="utf-8"), f"there is no tool {call.tool!r}"


@every_page
def test_every_name_that_python_on_a_page_imports_is_there(page: Path) -> None:
    for module, name in shown.imports(page):
        if find_spec(module.partition(".")[0]) is None:
            # What the page itself has the reader make.
            assert module.partition(".")[0].removeprefix("handrail_") in page.read_text(encoding="utf-8")
            continue
        found = importlib.import_module(module)
        assert not name or hasattr(found, name) or importlib.import_module(f"{module}.{name}")


INSTALLS = re.compile(r"(?m)^(?: {4})?pip install (dist/handrail_core-\*\.whl(?: dist/handrail_\w+-\*\.whl)*)$")


@pytest.mark.parametrize("folder", PUBLISHED, ids=lambda folder: folder.name)
def test_the_readme_of_a_package_installs_its_wheel_and_those_that_its_examples_need(folder: Path) -> None:
    readme = folder / "README.md"
    (line,) = INSTALLS.findall(readme.read_text(encoding="utf-8"))
    installed = set(re.findall(r"handrail_(\w+)-\*", line))
    needed = {folder.name} | {find_supplier("tools", call.tool) for call in shown.calls(readme)}
    for words in shown.commands(readme):
        needed |= {find_supplier("commands", words[0])} | ({"gui"} if "private" in words else set())
    assert needed - {None} <= installed


@every_page
def test_no_page_takes_a_package_of_handrail_from_an_index_that_does_not_have_it(page: Path) -> None:
    taken = re.findall(r"pip install '?\"?(handrail[\w\[\]-]*)", page.read_text(encoding="utf-8"))
    assert [name for name in taken if not re.fullmatch(r"handrail-core\[[\w-]+\]", name)] == []
