"""Handrail's console: what agents do, on one page, for the person whose agents they are."""
