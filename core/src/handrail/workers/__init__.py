"""Processes of Handrail's own: parsers of files, programs that it starts, and the registry of what goes on running."""
