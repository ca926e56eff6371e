"""What is written for each client, and where, is what its documentation says."""

from __future__ import annotations

import re
from pathlib import Path

import jsonschema
import pytest

from handrail_mcp.setup.clients import CLIENTS, McpClient, ServerCommand, SystemName, UserMachine
from handrail_mcp.setup.config_edit import TEXT_FORMATS, format_entry, open_config_file, plan_install

from .documented import DOCUMENTED, READ

SERVER = ServerCommand(
    "/opt/handrail/bin/handrail", ("serve", "--desktop", "private"), {"HANDRAIL_TOOLS_PROFILE": "shell"}
)
HOME, APPDATA = Path("/home/me"), "/roaming"

each_client = pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.name)


def test_every_client_has_its_documentation_named_and_dated():
    assert set(DOCUMENTED) == {client.name for client in CLIENTS}
    assert all(one.source.startswith("https://") for one in DOCUMENTED.values())
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", READ)


@each_client
@pytest.mark.parametrize(
    "server", [SERVER, ServerCommand("handrail", ("serve",), {}, ("DISPLAY",))], ids=["full", "plain"]
)
def test_an_entry_fits_what_is_documented(client: McpClient, server: ServerCommand):
    written = TEXT_FORMATS[client.format]().read(format_entry(client, "handrail", server))
    jsonschema.validate(written, DOCUMENTED[client.name].schema)
    entry = written[client.key]["handrail"]
    assert client.server(entry) == ServerCommand(server.command, server.args)


@each_client
def test_a_key_that_is_not_documented_would_be_noticed(client: McpClient):
    written = {client.key: {"handrail": {**client.entry("handrail", SERVER), "made_up": 1}}}
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(written, DOCUMENTED[client.name].schema)


@each_client
@pytest.mark.parametrize(("system", "of"), [("linux", "linux"), ("darwin", "macos"), ("win32", "windows")])
def test_the_file_is_where_it_is_documented(client: McpClient, system: SystemName, of: str):
    machine = UserMachine(system, HOME, {"APPDATA": APPDATA}, Path("/work"))
    documented: str = getattr(DOCUMENTED[client.name], of)
    expected = documented.replace("~", str(HOME)).replace("%USERPROFILE%", str(HOME)).replace("%APPDATA%", APPDATA)
    assert machine.file(client, "user") == Path(expected)
    assert client.project == DOCUMENTED[client.name].project


@pytest.mark.parametrize(
    ("name", "variables", "expected"),
    [
        ("claude", {"CLAUDE_CONFIG_DIR": "/c"}, "/c/.claude.json"),
        ("codex", {"CODEX_HOME": "/c"}, "/c/config.toml"),
        ("gemini", {"GEMINI_CLI_HOME": "/c"}, "/c/.gemini/settings.json"),
        ("goose", {"GOOSE_PATH_ROOT": "/c"}, "/c/config/config.yaml"),
        ("zed", {"XDG_CONFIG_HOME": "/c"}, "/c/zed/settings.json"),
    ],
)
def test_a_folder_that_the_client_was_told_of_counts(name: str, variables: dict[str, str], expected: str):
    client = next(client for client in CLIENTS if client.name == name)
    assert UserMachine("linux", HOME, variables, Path("/work")).file(client, "user") == Path(expected)


@each_client
def test_an_entry_goes_into_a_file_that_is_not_there(client: McpClient, tmp_path: Path):
    change = plan_install(client, open_config_file(tmp_path / "deep" / "file"), "handrail", SERVER, force=False)
    assert change.done == "added"
    assert change.after == format_entry(client, "handrail", SERVER)


def test_the_page_on_clients_names_each_with_its_files():
    page = (Path(__file__).parents[4] / "docs" / "clients.md").read_text()
    machine = UserMachine("linux", Path("~"), {}, Path())
    for client in CLIENTS:
        project = f"`{client.project}` " if client.project else ""
        assert f"| `{client.name}` | {client.title} | `{machine.file(client, 'user')}` | {project}|\n" in page
