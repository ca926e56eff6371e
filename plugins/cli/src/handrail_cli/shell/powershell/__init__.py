"""Parsing and walking of command lines for PowerShell."""
