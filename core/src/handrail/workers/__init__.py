"""Handrail's own processes: file parsers, programs that it starts, and the registry of what keeps running."""
