"""The clients that can be set up, as data: where each keeps its servers, on which system, and how it wants one written.

What is said here follows the documentation of each client; tests/plugins/mcp/setup/documented.py names the pages and when they were read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PureWindowsPath
from typing import Any, Literal

from handrail.json_types import is_list, is_object

ConfigScope = Literal["user", "project"]
FileFormat = Literal["json", "toml", "yaml"]
SystemName = Literal["linux", "darwin", "win32"]


@dataclass(frozen=True, slots=True)
class ServerCommand:
    """Command that starts the server.

    It has an absolute program path, arguments, variables to set, and the names of variables to pass on from the client.
    """

    command: str
    args: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    passed: tuple[str, ...] = ()

    @property
    def is_handrail(self) -> bool:
        """True if the command is `handrail serve`, wherever that is installed."""
        return PureWindowsPath(self.command).stem == "handrail" and self.args[:1] == ("serve",)


@dataclass(frozen=True, slots=True)
class EntryKeys:
    """Key names that a client uses within an entry."""

    command: str = "command"
    args: str = "args"
    environment: str = "env"


@dataclass(frozen=True, slots=True)
class McpClient:
    """MCP client: the configuration file of each scope, the key of its server table, and the format of an entry.

    `user` gives the path by system, with `{home}`, `{config}` (XDG_CONFIG_HOME), `{support}` and `{appdata}` for the
    folders of macOS and Windows; `moved` names a variable that the client reads, and the path below the folder in it,
    which takes precedence if set. `project` is relative to the project's folder, None if the client reads no such file.
    `fixed` is in every entry, `named` is the key that repeats the server's name, `passing` the one that lists variables
    that the client would otherwise withhold.
    """

    name: str
    title: str
    format: FileFormat
    key: str
    user: Mapping[SystemName, str]
    after: str
    moved: tuple[str, str] | None = None
    project: str | None = None
    names: EntryKeys = EntryKeys()
    fixed: Mapping[str, Any] = field(default_factory=dict[str, Any])
    named: str | None = None
    passing: str | None = None

    def entry(self, name: str, server: ServerCommand) -> dict[str, Any]:
        """Build this client's entry for the server."""
        return {
            **self.fixed,
            **({self.named: name} if self.named else {}),
            self.names.command: server.command,
            self.names.args: list(server.args),
            **({self.names.environment: dict(server.environment)} if server.environment else {}),
            **({self.passing: list(server.passed)} if self.passing and server.passed else {}),
        }

    def server(self, entry: Any) -> ServerCommand | None:
        """Return the command that an entry starts; None if it does not start a local program."""
        if not is_object(entry):
            return None
        command, args = entry.get(self.names.command), entry.get(self.names.args, [])
        if not isinstance(command, str) or not is_list(args):
            return None
        return ServerCommand(command, tuple(str(arg) for arg in args))

    @property
    def scopes(self) -> tuple[ConfigScope, ...]:
        return ("user",) if self.project is None else ("user", "project")


@dataclass(frozen=True, slots=True)
class UserMachine:
    """Whose files they are: the system, the home folder, the environment, and the folder of the project."""

    system: SystemName
    home: Path
    environment: Mapping[str, str]
    folder: Path

    @classmethod
    def here(cls, folder: Path) -> UserMachine:
        """Describe this machine, with the project folder `folder`."""
        from handrail.fs.app_dirs import find_home_folder

        system: SystemName = "win32" if sys.platform == "win32" else "darwin" if sys.platform == "darwin" else "linux"
        return cls(system, find_home_folder(os.environ), os.environ, folder)

    def file(self, client: McpClient, scope: ConfigScope) -> Path:
        """Return the file in which the client keeps the servers of a scope."""
        if scope == "project":
            assert client.project is not None
            return self.folder / client.project
        if client.moved and (folder := self.environment.get(client.moved[0])):
            return Path(folder).absolute() / client.moved[1]
        return Path(client.user[self.system].format(**self._folders))

    @property
    def _folders(self) -> dict[str, str]:
        return {
            "home": str(self.home),
            "config": self.environment.get("XDG_CONFIG_HOME") or str(self.home / ".config"),
            "support": str(self.home / "Library" / "Application Support"),
            "appdata": self.environment.get("APPDATA") or str(self.home / "AppData" / "Roaming"),
        }


def _map_all_systems(path: str) -> Mapping[SystemName, str]:
    return {"linux": path, "darwin": path, "win32": path}


def _electron_path(path: str) -> Mapping[SystemName, str]:
    """Return a path below the folder for application data that Electron applications use, by system."""
    return {"linux": f"{{config}}/{path}", "darwin": f"{{support}}/{path}", "win32": f"{{appdata}}/{path}"}


STDIO_TYPE = {"type": "stdio"}

# The form that most clients take, for those that are not in the list.
GENERIC_CLIENT = McpClient("", "the client", "json", "mcpServers", user=_map_all_systems(""), after="")

CLIENTS = (
    McpClient(
        "claude",
        "Claude Code",
        "json",
        "mcpServers",
        user=_map_all_systems("{home}/.claude.json"),
        moved=("CLAUDE_CONFIG_DIR", ".claude.json"),
        project=".mcp.json",
        fixed=STDIO_TYPE,
        after="`claude mcp list` shows it; a running Claude Code has to be started again",
    ),
    McpClient(
        "claude-desktop",
        "Claude Desktop",
        "json",
        "mcpServers",
        user=_electron_path("Claude/claude_desktop_config.json"),
        after="quit Claude Desktop, which closing its window does not, and start it again",
    ),
    McpClient(
        "gemini",
        "Gemini CLI",
        "json",
        "mcpServers",
        user=_map_all_systems("{home}/.gemini/settings.json"),
        moved=("GEMINI_CLI_HOME", ".gemini/settings.json"),
        project=".gemini/settings.json",
        after="`gemini mcp list` shows it, in a folder that Gemini CLI trusts",
    ),
    McpClient(
        "vscode",
        "Visual Studio Code",
        "json",
        "servers",
        user=_electron_path("Code/User/mcp.json"),
        project=".vscode/mcp.json",
        fixed=STDIO_TYPE,
        after="`MCP: List Servers` in the command palette shows it, and starts it",
    ),
    McpClient(
        "cursor",
        "Cursor",
        "json",
        "mcpServers",
        user=_map_all_systems("{home}/.cursor/mcp.json"),
        project=".cursor/mcp.json",
        fixed=STDIO_TYPE,
        after="Cursor's settings show it under MCP, and switch it on",
    ),
    McpClient(
        "codex",
        "Codex",
        "toml",
        "mcp_servers",
        user=_map_all_systems("{home}/.codex/config.toml"),
        moved=("CODEX_HOME", "config.toml"),
        project=".codex/config.toml",
        passing="env_vars",
        after="`codex mcp list` shows it; a project's file counts where Codex trusts the folder",
    ),
    McpClient(
        "windsurf",
        "Windsurf",
        "json",
        "mcpServers",
        user=_map_all_systems("{home}/.codeium/windsurf/mcp_config.json"),
        after="press refresh under MCP in Cascade's settings",
    ),
    McpClient(
        "zed",
        "Zed",
        "json",
        "context_servers",
        user={
            "linux": "{config}/zed/settings.json",
            "darwin": "{home}/.config/zed/settings.json",
            "win32": "{appdata}/Zed/settings.json",
        },
        project=".zed/settings.json",
        after="Zed starts it at once; the settings of its agent panel show it",
    ),
    McpClient(
        "goose",
        "Goose",
        "yaml",
        "extensions",
        user={
            "linux": "{config}/goose/config.yaml",
            "darwin": "{home}/.config/goose/config.yaml",
            "win32": "{appdata}/Block/goose/config/config.yaml",
        },
        moved=("GOOSE_PATH_ROOT", "config/config.yaml"),
        names=EntryKeys(command="cmd", environment="envs"),
        fixed={"enabled": True, "type": "stdio", "description": "A computer, with a rail.", "timeout": 600},
        named="name",
        after="the next session of Goose has it",
    ),
)
