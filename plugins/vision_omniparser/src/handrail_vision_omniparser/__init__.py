"""Handrail's vision backend `omniparser`."""
