"""Parsing and walking of command lines for cmd.exe."""
