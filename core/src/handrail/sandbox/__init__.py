"""Sandboxes for commands that may not run directly on the host."""
