from __future__ import annotations

import os
import subprocess
import sys

import click
import pytest

from handrail import cli

# What would make every start slow.
HEAVY = (
    "pydantic",
    "anyio",
    "asyncio",
    "importlib.metadata",
    "platformdirs",
    "handrail.config.loader",
    "handrail.plugins.loader",
    "handrail.api.tool",
)


def test_help_lists_the_commands_with_their_first_lines(handrail):
    done = handrail("--help", plugins="stage")
    assert done.returncode == 0
    listed = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert "tools List the tools, and why one is not available." in listed
    assert "bow Bow before the audience." in listed


@pytest.mark.parametrize("plugins", ["plan_only,slow", None], ids=["without-commands", "all-that-are-installed"])
def test_help_imports_nothing_heavy(handrail, plugins):
    environment = handrail.environment(plugins or "")
    if plugins is None:
        # The plugins of this environment, without the tests' own.
        del environment["HANDRAIL_PLUGINS"], environment["PYTHONPATH"]
    code = "from handrail.cli import main; main(['--help'])"
    done = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", code], capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0
    imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert not imported & {*HEAVY, "handrail_test_slow"}, "If this fails, import it in the function that needs it."


def test_the_summary_in_the_list_is_the_commands_own():
    context = click.Context(cli.handrail_program)
    listed = dict(line.split(maxsplit=1) for line in _listed(context))
    for name in cli.handrail_program.list_commands(context):
        command = cli.handrail_program.get_command(context, name)
        assert command is not None
        assert listed[name] == command.get_short_help_str(100)
        assert len(listed[name]) < 60


def _listed(context: click.Context) -> list[str]:
    formatter = click.HelpFormatter(width=100)
    cli.handrail_program.format_commands(context, formatter)
    return formatter.getvalue().splitlines()[1:]


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_every_command_answers_to_help(handrail, flag):
    done = handrail("call", flag)
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: handrail call [OPTIONS] NAME")


def test_the_version_is_told(handrail):
    assert handrail("--version").stdout.startswith("handrail, version ")


def test_an_unknown_command_is_a_misuse_and_the_nearest_is_named(handrail):
    done = handrail("tols")
    assert done.returncode == 2
    assert "there is no command 'tols'; did you mean 'tools'?" in done.stderr


@pytest.mark.parametrize(
    "words", [("call",), ("session",), ("tools", "--nope"), ("call", "wait", "--args", "{"), ("trust", "a", "b")]
)
def test_a_misuse_ends_with_2_and_says_nothing_on_stdout(handrail, words):
    done = handrail(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "Error: " in done.stderr


def test_a_plugins_command_runs(handrail):
    assert handrail("bow", plugins="stage").stdout == "bows\n"
    assert handrail("bow", plugins="slow").returncode == 2


def test_an_error_is_one_line_and_a_hint_and_a_traceback_only_for_debug(handrail):
    (handrail.folder / "handrail.toml").write_text("mode = 3\n")
    plain = handrail("tools")
    assert plain.returncode == 1
    assert plain.stderr.startswith("Error: ")
    assert "Traceback" not in plain.stderr
    assert "Traceback" in handrail("--debug", "tools").stderr


def test_a_reader_that_leaves_early_is_no_error(handrail):
    reading, writing = os.pipe()
    os.close(reading)
    with open(writing, "wb") as stdout:
        done = subprocess.run(
            [handrail.path, "tools", "--json"], stdout=stdout, stderr=subprocess.PIPE, env=handrail.environment("stage"),
            cwd=handrail.folder,
        )  # fmt: skip
    assert done.returncode == 1
    assert done.stderr == b""
