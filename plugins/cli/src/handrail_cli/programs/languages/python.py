"""Stub."""

from handrail_cli.programs.languages.finding import UNCLEAR, Finding


def look(text: str) -> Finding:
    """Stub."""
    return UNCLEAR
