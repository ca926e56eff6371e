"""Handrail written into the configuration of MCP clients, and taken out of it."""
