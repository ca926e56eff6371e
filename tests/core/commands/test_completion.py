"""Completion in the shells themselves: each is given the word that the tabulator key stands after, and a person's settings."""

from __future__ import annotations

import os
import subprocess

import pytest
from tests.terminals import Terminal

from handrail.workers.registry import ProcessRegistry, RunningProgram


@pytest.fixture
def environment(handrail) -> dict[str, str]:
    return {**handrail.environment("stage"), "PATH": f"{handrail.path.parent}:{os.environ['PATH']}", "TERM": "xterm"}


@pytest.mark.parametrize(
    ("shell", "setting"),
    [
        pytest.param(["bash", "--norc", "--noprofile", "-i"], 'eval "$(handrail completion bash)"', id="bash"),
        pytest.param(
            ["zsh", "-f", "-i"], 'autoload -U compinit; compinit -u; eval "$(handrail completion zsh)"', id="zsh"
        ),
    ],
)
def test_the_tabulator_key_completes_commands_and_tools(handrail, environment, shell, setting):
    with Terminal(shell, handrail.folder, environment) as terminal:
        terminal.type(f"{setting}; echo re''ady\n")
        terminal.wait_for("ready")
        terminal.type("handrail cal\tgre\t| tr a-z A-Z\n")
        terminal.wait_for("HELLO, YOU")


def complete(handrail, line: str, **environment: str) -> list[str]:
    """What bash would be given for the last word of the line."""
    done = handrail(
        plugins="stage,plan_only",
        _HANDRAIL_COMPLETE="bash_complete",
        COMP_WORDS=line,
        COMP_CWORD=str(len(line.split(" ")) - 1),
        **environment,
    )
    assert done.stderr == ""
    return [word.partition(",")[2] for word in done.stdout.splitlines() if word]


def test_fish_completes_tools_with_what_they_do(handrail, environment):
    line = "handrail completion fish | source; complete -C 'handrail call gre'"
    done = subprocess.run(
        ["fish", "-N", "-c", line], env=environment, cwd=handrail.folder, capture_output=True, text=True
    )
    assert done.stdout == "greet\tGreet somebody\n", done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param("handrail uninst", ["uninstall"], id="command"),
        pytest.param("handrail uninstall sta", ["stage"], id="plugin"),
        pytest.param("handrail tools --backend plan", ["plan_only"], id="backend"),
        pytest.param("handrail call --mode p", ["plan", "permissive"], id="mode"),
        pytest.param("handrail call --desktop p", ["private"], id="desktop"),
        pytest.param("handrail call --profile s", ["shell"], id="profile"),
        pytest.param("handrail stop --desktop c", ["current"], id="desktop-to-stop"),
        pytest.param("handrail call --backend plan_only gre", ["greet"], id="after-options"),
        pytest.param("handrail nowhere zz", [], id="no-such-command"),
    ],
)
def test_the_last_word_is_completed(handrail, line, words):
    assert complete(handrail, line) == words


def test_a_desktop_that_was_started_is_completed(handrail):
    # What `handrail desktop start` writes down; here this process stands for the desktop's.
    running = RunningProgram.of("desktop", "workshop", "a desktop", pid=os.getpid())
    ProcessRegistry(handrail.home / "state").write(running)
    assert complete(handrail, "handrail call --desktop w") == ["workshop"]


def test_a_broken_configuration_does_not_write_into_the_line(handrail):
    (handrail.home / "config").mkdir(parents=True)
    (handrail.home / "config" / "config.toml").write_text("mode = [")
    assert complete(handrail, "handrail call gre") == []
