"""What a client is told so that it can start the server."""

from __future__ import annotations

import json
from pathlib import Path

import anyio
from mcp import Client, StdioServerParameters, stdio_client

from handrail_mcp import client_entry

from .place import HANDRAIL, LEGACY, Place


def test_the_entry_names_what_was_chosen_in_absolute_words():
    entry = client_entry(
        desktop="private", backend="ocr", mode="headless", profile="shell", workspace=("work",), config=Path("my.toml")
    )
    server = entry["mcpServers"]["handrail"]
    here = Path.cwd()
    assert server["args"] == [
        *("serve", "--desktop", "private", "--backend", "ocr", "--mode", "headless", "--profile", "shell"),
        *("--workspace", str(here / "work"), "--config", str(here / "my.toml")),
    ]
    assert Path(server["command"]).is_absolute()


async def test_the_printed_entry_starts_a_server(place: Place, tmp_path: Path):
    printed = await anyio.run_process(
        [str(HANDRAIL), "mcp", "install", "--print", "--desktop", "private", "--config", "handrail.toml"],
        env=place.environment,
        cwd=place.folder,
    )
    server = json.loads(printed.stdout)["mcpServers"]["handrail"]
    parameters = StdioServerParameters(**server, env=place.environment, cwd=tmp_path)
    async with Client(stdio_client(parameters), mode=LEGACY) as client:
        assert "see_tree" in [tool.name for tool in (await client.list_tools()).tools]
