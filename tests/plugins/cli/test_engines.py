"""Programs that ask container engines and print servers run unasked where these are on this machine."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from handrail import Decision, EvaluationContext, Opinion, SandboxOffer, View
from handrail.fs.small_files import read_small_text
from handrail_cli.shell.verdict import judge_line

SSH = "ssh://me@build.example"
SOCKET = "unix:///run/user/1000/docker.sock"


def context(host: object) -> dict[str, str]:
    """The settings of docker whose current context leads to `host`."""
    meta = f".docker/contexts/meta/{hashlib.sha256(b'far').hexdigest()}/meta.json"
    return {
        ".docker/config.json": '{"currentContext": "far"}',
        meta: json.dumps({"Name": "far", "Endpoints": {"docker": {"Host": host}}}),
    }


def connection(uri: str) -> dict[str, str]:
    known = {"Connection": {"Default": "far", "Connections": {"far": {"URI": uri}}}}
    return {".config/containers/podman-connections.json": json.dumps(known)}


def service(uri: str) -> dict[str, str]:
    text = f'[engine]\nactive_service = "far"\n[engine.service_destinations.far]\nuri = "{uri}"\n'
    return {".config/containers/containers.conf": text}


def judged(home: Path, command: str, variables: Mapping[str, str], files: Mapping[str, str]) -> Opinion:
    for name, text in files.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)
    work = home / "work"
    work.mkdir()
    judging = EvaluationContext(
        cwd=work,
        home=home,
        user="ada",
        environment={"PATH": "/usr/bin", **variables},
        workspace=(work,),
        platform="linux",
        sandbox=SandboxOffer("box", filters=True),
        read_text=read_small_text,
    )
    return judge_line(command, judging)


@pytest.mark.parametrize(
    ("command", "variables", "files"),
    [
        pytest.param("docker ps", {}, {}, id="no-settings"),
        pytest.param("docker ps", {}, {".docker/config.json": '{"currentContext": "default"}'}, id="default-context"),
        pytest.param("docker logs web", {}, context(SOCKET), id="a-context-with-a-socket"),
        pytest.param("docker ps", {}, context("npipe:////./pipe/docker_engine"), id="a-context-with-a-pipe"),
        pytest.param("docker ps", {"DOCKER_HOST": SOCKET}, {}, id="a-variable-with-a-socket"),
        pytest.param("docker context ls", {"DOCKER_HOST": SSH}, context(SSH), id="asks-no-engine"),
        pytest.param("docker ps --help", {"DOCKER_HOST": SSH}, {}, id="help"),
        pytest.param("podman ps", {}, context(SSH), id="the-settings-of-another-program"),
        pytest.param("podman ps", {}, connection(SOCKET), id="a-connection-with-a-socket"),
        pytest.param("podman ps", {}, service(SOCKET), id="a-service-with-a-socket"),
        pytest.param("lpstat -p", {"CUPS_SERVER": "localhost:631"}, {}, id="the-local-print-server"),
        pytest.param("lpstat -p", {}, {".cups/client.conf": "ServerName /run/cups.sock\n"}, id="the-socket-of-cups"),
    ],
)
def test_an_engine_of_this_machine_is_asked_silently(
    tmp_path: Path, command: str, variables: dict[str, str], files: dict[str, str]
) -> None:
    opinion = judged(tmp_path, command, variables, files)
    assert (opinion.suggestion, opinion.reasons) == (Decision.ALLOW, ())
    assert opinion.view in (View.SYSTEM, View.READ)


@pytest.mark.parametrize(
    ("command", "variables", "files"),
    [
        pytest.param("docker ps", {}, context(SSH), id="a-context"),
        pytest.param("docker logs web | grep x", {}, context("tcp://10.0.0.7:2375"), id="in-a-pipeline"),
        pytest.param("watch docker ps", {}, context(SSH), id="run-by-another-program"),
        pytest.param("docker ps", {"DOCKER_HOST": SOCKET}, context(SSH), id="a-context-that-a-variable-hides"),
        pytest.param("docker ps", {"DOCKER_HOST": "tcp://build.example:2375"}, {}, id="a-variable"),
        pytest.param("docker ps", {"DOCKER_CONTEXT": "gone"}, {}, id="a-context-that-is-not-there"),
        pytest.param("docker ps", {}, context(None), id="a-context-without-an-address"),
        pytest.param("docker ps", {}, {".docker/config.json": '{"currentContext"'}, id="settings-cut-short"),
        pytest.param("docker ps", {}, {".docker/config.json": "[]"}, id="settings-of-another-form"),
        pytest.param("docker ps", {}, {".docker/config.json/x": ""}, id="settings-that-are-a-folder"),
        pytest.param("podman ps", {"CONTAINER_HOST": SSH}, {}, id="podman-by-a-variable"),
        pytest.param("podman ps", {}, connection(SSH), id="podman-by-a-connection"),
        pytest.param("podman ps", {}, service(SSH), id="podman-by-a-service"),
        pytest.param("lpstat -p", {"CUPS_SERVER": "print.example"}, {}, id="a-print-server-by-a-variable"),
        pytest.param("lpq", {}, {".cups/client.conf": "ServerName print.example\n"}, id="a-print-server"),
    ],
)
def test_an_engine_on_another_machine_is_asked_about(
    tmp_path: Path, command: str, variables: dict[str, str], files: dict[str, str]
) -> None:
    """If this fails, what the model writes leaves the machine unasked, with the headers and keys that the person's settings name."""
    opinion = judged(tmp_path, command, variables, files)
    assert opinion.suggestion is Decision.CONFIRM
    assert "remote" in {reason.code for reason in opinion.reasons}
    assert any(touch.kind == "network" for part in opinion.parts for touch in part.touches)


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions stop nobody here")
def test_settings_that_may_not_be_read_count_as_another_machine(tmp_path: Path) -> None:
    (tmp_path / ".docker").mkdir()
    (tmp_path / ".docker/config.json").write_text("{}")
    (tmp_path / ".docker/config.json").chmod(0)
    assert judged(tmp_path, "docker ps", {}, {}).suggestion is Decision.CONFIRM
