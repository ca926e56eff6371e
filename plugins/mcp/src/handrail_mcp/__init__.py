"""Handrail's tools for any client of the Model Context Protocol."""

from __future__ import annotations

from handrail_mcp.setup.server_entry import client_entry

__all__ = ["client_entry"]
