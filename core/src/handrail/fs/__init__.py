"""Paths: where they lead, what they hold, and how they are opened."""
