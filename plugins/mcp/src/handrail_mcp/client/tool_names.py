"""Local names for the tools of servers.

The pair of server and tool remains the identity; the name is only what a model uses.
"""

from __future__ import annotations

import hashlib
import logging
import re
from collections.abc import Iterable

log = logging.getLogger(__name__)

# Before every name.
NAME_PREFIX = "mcp_"
MAX_NAME_LENGTH = 63
HASH_DIGITS = 6


class ToolNames:
    """Tool names of one session. A pair keeps its name, even if tools come and go."""

    def __init__(self) -> None:
        self._names: dict[tuple[str, str], str] = {}
        self._owners: dict[str, tuple[str, str]] = {}

    def give(self, server: str, tools: Iterable[str]) -> dict[str, str]:
        """Assign a name to each tool of a server; the keys are the server's own names."""
        # Those that need no change come first, so that an odd one never takes the name of a plain one.
        for tool in sorted(tools, key=lambda tool: (make_slug(tool) != tool, tool)):
            if (server, tool) not in self._names:
                self._give(server, tool)
        return {tool: self._names[server, tool] for tool in tools}

    def _give(self, server: str, tool: str) -> None:
        name = plain = f"{NAME_PREFIX}{make_slug(server)}_{make_slug(tool)}"
        owner = self._owners.get(plain)
        if len(plain) > MAX_NAME_LENGTH or owner is not None:
            name = make_unique_name(plain, server, tool)
        if owner is not None:
            log.warning(
                "%r of the server %r is called %s: %s is %r of the server %r", tool, server, name, plain, *owner[::-1]
            )
        self._names[server, tool] = name
        self._owners[name] = server, tool


def make_slug(text: str) -> str:
    """Return the text with only the characters allowed in a name: lower-case letters, digits and underscores."""
    return re.sub(r"[^a-z0-9_]", "_", text.lower())


def make_unique_name(plain: str, server: str, tool: str) -> str:
    """Return a name that is unique to the pair of server and tool, and the same in every session."""
    digits = hashlib.sha256(f"{server}\0{tool}".encode("utf-8", "surrogatepass")).hexdigest()[:HASH_DIGITS]
    return f"{plain[: MAX_NAME_LENGTH - HASH_DIGITS - 1]}_{digits}"
