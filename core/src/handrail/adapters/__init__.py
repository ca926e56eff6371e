"""Handrail's tools for agents of other frameworks. Each module needs the extra of its name."""
