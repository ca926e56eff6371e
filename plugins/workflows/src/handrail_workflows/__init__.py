"""Workflow layer: what a user does in several steps, as sequences of judged calls."""
