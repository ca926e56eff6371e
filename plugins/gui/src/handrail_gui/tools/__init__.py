"""The tools of the desktop."""
