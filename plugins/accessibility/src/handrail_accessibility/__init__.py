"""The accessibility tree for Handrail: read it, and act through it."""
