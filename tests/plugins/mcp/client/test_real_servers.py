"""The servers that people really use: the protocol's own, on Node.js."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from handrail import Answer, Choice, Media
from handrail.api.events import Progress
from handrail.cli import handrail_program

from .using import at, deciding, names, raw, until, using

pytestmark = pytest.mark.anyio


@pytest.fixture
def everything(node: Path, node_modules: Path) -> dict[str, Any]:
    return {
        "command": [str(node), str(node_modules / "@modelcontextprotocol/server-everything/dist/index.js"), "stdio"]
    }


async def test_everything(everything: dict[str, Any]) -> None:
    confirm, _ = deciding(Answer(Choice.DENY))
    async with using({"all": everything}, confirm=confirm) as session:
        heard: list[Progress] = []
        session.bus.subscribe(lambda event: heard.append(event) if isinstance(event, Progress) else None)
        echo = await session.call("mcp_all_echo", {"message": "hello"})
        picture = await session.call("mcp_all_get_tiny_image")
        structured = await session.call("mcp_all_get_structured_content", {"location": "Chicago"})
        await session.call("mcp_all_trigger_long_running_operation", {"duration": 0.4, "steps": 2})
        links = await session.call("mcp_all_get_resource_links", {"count": 2})
        held = await session.call("mcp_all_get_resource_reference", {"resourceType": "Text", "resourceId": 1})
        asked = await session.call("mcp_all_trigger_elicitation_request")
        listed = await session.call("list_resources", {"server": "all"})
        read = await session.call("read_resource", {"server": "all", "uri": listed["resources"][0]["uri"]})
    assert "hello" in echo["content"]
    assert [type(media) for media in picture["media"]] == [Media]
    assert structured["structured"]["temperature"]
    assert heard[-1].fraction == 1
    assert len(links["links"]) == 2
    assert held["resources"][0]["uri"].startswith("demo://")
    assert "decline" in asked["content"].lower()
    assert read["resources"][0]["text"]


async def test_filesystem(node: Path, node_modules: Path, tmp_path: Path) -> None:
    script = node_modules / "@modelcontextprotocol/server-filesystem/dist/index.js"
    (tmp_path / "notes.txt").write_text("mind the gap")
    async with using({"fs": {"command": [str(node), str(script), str(tmp_path)]}}) as session:
        read = await session.call("mcp_fs_read_text_file", {"path": str(tmp_path / "notes.txt")})
        outside = await session.call("mcp_fs_read_text_file", {"path": "/etc/hostname"})
    assert read["content"] == "mind the gap"
    assert outside.error_code == "downstream_error"


async def test_memory(node: Path, node_modules: Path, tmp_path: Path) -> None:
    script = node_modules / "@modelcontextprotocol/server-memory/dist/index.js"
    settings = {"command": [str(node), str(script)], "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")}}
    entity = {"name": "Ada", "entityType": "person", "observations": ["writes programs"]}
    async with using({"memory": settings}) as session:
        wrong = await session.call("mcp_memory_create_entities", {"entities": [{"name": "Ada"}]})
        await session.call("mcp_memory_create_entities", {"entities": [entity]})
        graph = await session.call("mcp_memory_read_graph")
    assert wrong.error_code == "invalid_arguments"
    assert graph["structured"]["entities"] == [entity]


async def test_a_server_over_http_that_begins_anew_is_reached_again(node: Path, node_modules: Path) -> None:
    script = node_modules / "@modelcontextprotocol/server-everything/dist/index.js"
    command = [str(node), str(script), "streamableHttp"]
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]

    async def started() -> asyncio.subprocess.Process:
        quiet = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *command, env={**os.environ, "PORT": str(port)}, stdout=quiet, stderr=quiet
        )

        async def reachable() -> bool:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                return False
            writer.close()
            return True

        await until(reachable)
        return process

    first = await started()
    async with using({"web": at(f"http://127.0.0.1:{port}/mcp", transport="http")}) as session:
        assert (await session.call("mcp_web_echo", {"message": "x"})).ok
        first.kill()
        await first.wait()
        gone = await session.call("mcp_web_echo", {"message": "x"})
        second = await started()

        async def works() -> bool:
            return (await session.call("mcp_web_echo", {"message": "x"})).ok

        try:
            assert not gone.ok
            await until(works)
            assert "mcp_web_echo" in await names(session)
        finally:
            second.kill()
            await second.wait()


# The commands


@pytest.fixture
def configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "handrail.toml"
    command = json.dumps(raw("plain")["command"])
    file.write_text(f'[mcp.servers.docs]\ncommand = {command}\n[mcp.servers.none]\ncommand = ["no-such-program"]\n')
    monkeypatch.setenv("HANDRAIL_PLUGINS", "mcp")
    monkeypatch.setenv("HANDRAIL_HOME", str(tmp_path / "home"))
    return file


def test_the_command_says_how_it_stands_with_each_server(configured: Path) -> None:
    done = CliRunner().invoke(handrail_program, ["mcp", "servers", "--json", "--config", str(configured)])
    docs, none = json.loads(done.stdout)
    assert (docs["name"], docs["state"], docs["offers"]) == ("docs", "ready", ["mcp_docs_echo"])
    assert (none["name"], none["state"]) == ("none", "waiting")
    assert "no-such-program" in none["problem"]


def test_the_doctor_names_a_server_that_does_not_work(configured: Path) -> None:
    done = CliRunner().invoke(handrail_program, ["doctor", "--json", "--config", str(configured)])
    found = {check["name"]: check for check in json.loads(done.stdout)}
    assert found["server docs"]["ok"]
    assert not found["server none"]["ok"]
