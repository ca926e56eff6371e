"""Stub."""

from handrail_cli.programs.languages.finding import UNCLEAR, Finding


def perl(text: str) -> Finding:
    """Stub."""
    return UNCLEAR


ruby = node = php = lua = r = perl
