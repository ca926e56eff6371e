"""Processes that run commands: how they start, what they write, how they end."""
