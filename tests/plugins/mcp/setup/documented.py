"""What each client's own documentation says of its file, put as a JSON Schema: the page, when it was read, and where the file is.

Only what is said there is in a schema. `closed` ones list every key that the client knows; the others show what a server started here has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

READ = "2026-11-22"

TEXTS = {"type": "array", "items": {"type": "string"}}
VARIABLES = {"type": "object", "additionalProperties": {"type": "string"}}


@dataclass(frozen=True)
class Documented:
    source: str
    schema: dict[str, Any]
    linux: str
    macos: str
    windows: str
    project: str | None = None


def servers(key: str, server: dict[str, Any]) -> dict[str, Any]:
    """A file whose servers are under a key."""
    return {
        "type": "object",
        "required": [key],
        "properties": {key: {"type": "object", "additionalProperties": server}},
    }


def started(*, required: tuple[str, ...] = ("command",), closed: bool = False, **properties: Any) -> dict[str, Any]:
    """A server that the client starts."""
    known = {"command": {"type": "string"}, "args": TEXTS, "env": VARIABLES, **properties}
    return {"type": "object", "required": list(required), "properties": known, "additionalProperties": not closed}


STDIO = {"enum": ["stdio"]}

DOCUMENTED = {
    "claude": Documented(
        "https://code.claude.com/docs/en/mcp",
        servers("mcpServers", started(closed=True, type=STDIO, timeout={"type": "integer"})),
        "~/.claude.json",
        "~/.claude.json",
        "%USERPROFILE%/.claude.json",
        ".mcp.json",
    ),
    "claude-desktop": Documented(
        "https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        servers("mcpServers", started(closed=True)),
        "~/.config/Claude/claude_desktop_config.json",
        "~/Library/Application Support/Claude/claude_desktop_config.json",
        "%APPDATA%/Claude/claude_desktop_config.json",
    ),
    "gemini": Documented(
        "https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
        servers(
            "mcpServers",
            started(
                closed=True,
                cwd={"type": "string"},
                timeout={"type": "number"},
                trust={"type": "boolean"},
                includeTools=TEXTS,
                excludeTools=TEXTS,
            ),
        ),
        "~/.gemini/settings.json",
        "~/.gemini/settings.json",
        "%USERPROFILE%/.gemini/settings.json",
        ".gemini/settings.json",
    ),
    # The schema that Visual Studio Code itself checks the file with.
    "vscode": Documented(
        "https://github.com/microsoft/vscode/blob/main/src/vs/workbench/contrib/mcp/common/mcpConfiguration.ts",
        {
            **servers(
                "servers",
                started(
                    required=(),
                    closed=True,
                    type=STDIO,
                    cwd={"type": "string"},
                    envFile={"type": "string"},
                    dev={"type": "object"},
                ),
            ),
            "propertyNames": {"enum": ["servers", "inputs"]},
        },
        "~/.config/Code/User/mcp.json",
        "~/Library/Application Support/Code/User/mcp.json",
        "%APPDATA%/Code/User/mcp.json",
        ".vscode/mcp.json",
    ),
    "cursor": Documented(
        "https://cursor.com/docs/mcp",
        servers("mcpServers", started(closed=True, type=STDIO, envFile={"type": "string"})),
        "~/.cursor/mcp.json",
        "~/.cursor/mcp.json",
        "%USERPROFILE%/.cursor/mcp.json",
        ".cursor/mcp.json",
    ),
    "codex": Documented(
        "https://github.com/openai/codex/blob/main/codex-rs/core/config.schema.json",
        servers(
            "mcp_servers",
            started(
                closed=True,
                cwd={"type": "string"},
                enabled={"type": "boolean"},
                env_vars=TEXTS,
                startup_timeout_sec={"type": "number"},
                tool_timeout_sec={"type": "number"},
                enabled_tools=TEXTS,
                disabled_tools=TEXTS,
            ),
        ),
        "~/.codex/config.toml",
        "~/.codex/config.toml",
        "%USERPROFILE%/.codex/config.toml",
        ".codex/config.toml",
    ),
    "windsurf": Documented(
        "https://docs.windsurf.com/windsurf/cascade/mcp",
        servers("mcpServers", started(closed=True)),
        "~/.codeium/windsurf/mcp_config.json",
        "~/.codeium/windsurf/mcp_config.json",
        "%USERPROFILE%/.codeium/windsurf/mcp_config.json",
    ),
    "zed": Documented(
        "https://zed.dev/docs/ai/mcp",
        servers("context_servers", started(closed=True, enabled={"type": "boolean"})),
        "~/.config/zed/settings.json",
        "~/.config/zed/settings.json",
        "%APPDATA%/Zed/settings.json",
        ".zed/settings.json",
    ),
    "goose": Documented(
        "https://github.com/aaif-goose/goose/blob/main/documentation/docs/guides/config-files.md",
        servers(
            "extensions",
            {
                "type": "object",
                "required": ["type", "name", "enabled", "cmd", "args", "timeout"],
                "additionalProperties": False,
                "properties": {
                    "type": STDIO,
                    "name": {"type": "string"},
                    "description": {"type": "string"},
                    "enabled": {"type": "boolean"},
                    "bundled": {"type": "boolean"},
                    "cmd": {"type": "string"},
                    "args": TEXTS,
                    "env_keys": TEXTS,
                    "envs": VARIABLES,
                    "timeout": {"type": "integer", "minimum": 0},
                    "available_tools": TEXTS,
                },
            },
        ),
        "~/.config/goose/config.yaml",
        "~/.config/goose/config.yaml",
        "%APPDATA%/Block/goose/config/config.yaml",
    ),
}
