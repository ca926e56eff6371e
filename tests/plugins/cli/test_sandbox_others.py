"""Sandboxes of other engines and systems: what they would be started with. None of them runs here."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handrail import Bounds, Limits, NoSandbox, Sandbox
from handrail.sandbox.selection import find_missing_reason
from handrail_cli.sandboxes.docker import DockerSandbox, DockerSettings as DockerSettings
from handrail_cli.sandboxes.seatbelt import SeatbeltSandbox, create_profile
from handrail_cli.sandboxes.windows_job import KILL_ON_CLOSE, WindowsJobSandbox, compute_limit_flags, encode_limits

# Answers as the client does, notes its words, and runs the command on the host: only the words are under test.
ENGINE = """#!{python}
import json, os, sys
words = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(json.dumps(words) + "\\n")
if words[0] == "image":
    sys.exit(0 if words[2] == "there:1" else 1)
if words[0] == "run":
    open(words[words.index("--cidfile") + 1], "w").write("id")
    at = words.index("there:1")
    os.execvp(words[at + 1], words[at + 1:])
"""


@pytest.fixture
def bounds(tmp_path: Path) -> Bounds:
    places = [tmp_path / name for name in ("work", "private", "home")]
    for place in places:
        place.mkdir()
    return Bounds(writable=(places[0],), temporary=places[1], home=places[2])


@pytest.fixture
def engine(tmp_path: Path) -> type[DockerSandbox]:
    """Docker with a client whose words are written, one list a line, to the file `log` beside it."""
    log, client = tmp_path / "log", tmp_path / "client"
    client.write_text(ENGINE.format(python=sys.executable, log=str(log)))
    client.chmod(0o755)

    class Engine(DockerSandbox):
        pass

    Engine.client = str(client)
    return Engine


def said(engine: type[DockerSandbox]) -> list[list[str]]:
    return [json.loads(line) for line in Path(engine.client).with_name("log").read_text().splitlines()]


async def test_docker_is_used_where_an_engine_has_the_image(engine: type[DockerSandbox]) -> None:
    await engine(DockerSettings(image="there:1")).check()
    with pytest.raises(NoSandbox, match="not there") as missing:
        await engine(DockerSettings(image="elsewhere:1")).check()
    assert missing.value.hint == "docker pull elsewhere:1"


def test_docker_runs_and_removes_a_container(engine: type[DockerSandbox], bounds: Bounds) -> None:
    confined = engine(DockerSettings(image="there:1")).confine(
        ("echo", "hi"), cwd=bounds.writable[0], environment={"A": "b"}, bounds=bounds
    )
    done = subprocess.run(confined.argv, env=dict(confined.environment), capture_output=True, text=True, check=True)
    assert done.stdout == "hi\n"
    assert confined.ended() is None
    run, removed = said(engine)
    assert removed == ["rm", "--force", run[run.index("--name") + 1]]


@pytest.mark.parametrize(
    "words",
    [
        ("--network", "none"), ("--memory", str(256 * 2**20)), ("--memory-swap", str(256 * 2**20)), ("--cpus", "0.5"), ("--pids-limit", "100"),
        ("--read-only",), ("--tmpfs", "/tmp:rw,nosuid,nodev,size=64m"), ("--security-opt", "no-new-privileges"), ("--user", "65534:65534"),
        ("--cap-drop", "ALL"), ("--pull", "never"), ("--env", "A=b"),
    ],
)  # fmt: skip
def test_docker_gives_the_container_nothing_else(bounds: Bounds, words: tuple[str, ...]) -> None:
    given = list(DockerSandbox().options(bounds, bounds.writable[0], "name", {"A": "b"}))
    assert any(tuple(given[at : at + len(words)]) == words for at in range(len(given)))


def test_docker_mounts_the_workspace_and_covers_what_is_secret_or_kept(bounds: Bounds) -> None:
    work = bounds.writable[0]
    (work / ".env").write_text("x")
    (work / ".git").mkdir()
    inside = replace(bounds, masked=(work / ".env",), kept=(work / ".git",))
    given = list(DockerSandbox().options(inside, work, "name", {}))
    mounts = [given[at + 1] for at, word in enumerate(given) if word == "--mount"]
    assert mounts[0] == f"type=bind,source={work},target={work}"
    assert mounts[1] == f"type=bind,source={work}/.git,target={work}/.git,readonly"
    assert mounts[2].endswith(f"target={work}/.env,readonly")


def test_docker_says_when_the_engine_made_no_container(engine: type[DockerSandbox], bounds: Bounds) -> None:
    confined = engine().confine(("true",), cwd=bounds.writable[0], environment={}, bounds=bounds)
    assert confined.ended() == "the engine made no container"


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({"network": True}, id="it-has-no-network"),
        pytest.param({"readable": (Path("/a,readonly=false"),)}, id="a-comma-would-be-an-option"),
    ],
)
def test_docker_refuses_what_it_cannot_keep(bounds: Bounds, changed: dict[str, Any]) -> None:
    with pytest.raises(NoSandbox):
        DockerSandbox().confine(("true",), cwd=bounds.writable[0], environment={}, bounds=replace(bounds, **changed))


def test_the_seatbelt_profile_denies_first_and_covers_last(bounds: Bounds) -> None:
    work = bounds.writable[0]
    inside = replace(bounds, masked=(work / ".env",), kept=(work / ".git/hooks",), anchored=(work / ".git",))
    lines = create_profile(inside).splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert f'(allow file-write* (subpath "{work}") (subpath "{bounds.temporary}"))' in lines
    assert lines[-3:] == [
        f'(deny file-write-unlink (literal "{work}/.git"))',
        f'(deny file-write* (subpath "{work}/.git/hooks"))',
        f'(deny file-read* file-write* (subpath "{work}/.env"))',
    ]


def test_the_seatbelt_profile_allows_the_network_only_when_it_is_given(bounds: Bounds) -> None:
    assert "network" not in create_profile(bounds)
    assert "(allow network-outbound (remote ip))" in create_profile(replace(bounds, network=True))


def test_a_path_cannot_add_a_line_to_the_seatbelt_profile(bounds: Bounds) -> None:
    odd = replace(bounds, writable=(Path('/a")(allow default)("'),))
    assert r'(subpath "/a\")(allow default)(\"")' in create_profile(odd)
    with pytest.raises(NoSandbox):
        create_profile(replace(bounds, writable=(Path("/a\n(allow default)"),)))


class JobThere(WindowsJobSandbox):
    """As if this were Windows."""

    @classmethod
    def missing(cls) -> str | None:
        return None


def test_a_job_object_is_never_offered_for_what_needs_no_question() -> None:
    assert (
        find_missing_reason(JobThere)
        == "it does not confine network, read, write, so nothing may run in it without a question"
    )


def test_a_job_object_ends_with_its_starter_and_has_the_limits(bounds: Bounds) -> None:
    confined = WindowsJobSandbox().confine(("cmd", "/c", "dir"), cwd=bounds.writable[0], environment={}, bounds=bounds)
    limits = json.loads(confined.argv[4])
    assert limits["processes"] == 512
    assert compute_limit_flags(limits) & KILL_ON_CLOSE
    assert compute_limit_flags(json.loads(encode_limits(Limits(None, None, None, None)))) & 0x20A == 0
    with pytest.raises(NoSandbox):
        WindowsJobSandbox().confine(
            ("x",), cwd=bounds.writable[0], environment={}, bounds=replace(bounds, masked=(Path("/x"),))
        )


@pytest.mark.parametrize("kind", [DockerSandbox, SeatbeltSandbox])
def test_a_folder_that_is_not_shown_is_refused(kind: type[Sandbox], bounds: Bounds) -> None:
    with pytest.raises(NoSandbox, match="not shown"):
        kind().confine(("true",), cwd=bounds.home, environment={}, bounds=bounds)
