"""The same server as fastmcp would have it."""

# Peers live in .venv-bench, where the type checker does not look.
# pyright: reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

from fastmcp import FastMCP

server = FastMCP("benchmark")


@server.tool
async def add(a: int, b: int) -> int:
    """Return the sum of two integers."""
    return a + b


if __name__ == "__main__":
    server.run(show_banner=False)
