"""Files as people have them: with comments, an order of their own, other servers."""

from __future__ import annotations

SETTINGS = """\
// Mine. Hands off.
{
  "theme": "One Dark", // dark
  /* the servers */
  "context_servers": {
    "docs": {
      "command": "docs-server",
      "args": ["--url", "https://example.com/a"], // with a slash
    }, // the last one
    // "old": {}
  },
  "vim_mode": false
}
"""

JSON = """\
{
    "numStartups": 3,
    "mcpServers": {
        "docs": {"command": "docs-server", "args": ["a // b", "c, }"]}
    },
    "projects": {"/tmp": {"mcpServers": {}}}
}
"""

TOML = """\
# My Codex.
model = "gpt-5"   # the big one

[mcp_servers.docs]  # reads docs
command = "docs-server"
args = [
  "--stdio",  # always
]

[mcp_servers.docs.env]
KEY = "x"

[projects."/home/me"]
trust_level = "trusted"
"""

YAML = """\
# My Goose.
active_provider: anthropic
extensions:
  developer:   # built in
    bundled: true
    enabled: true
    args:
    - one
    - "two"  # the second

  memory:
    enabled: false
    type: builtin   # the last one

# What follows
GOOSE_MODE: "smart_approve"
"""

KEPT = {"zed": SETTINGS, "claude": JSON, "codex": TOML, "goose": YAML}
