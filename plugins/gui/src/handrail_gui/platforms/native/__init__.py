"""Desktops that a platform's own calls work: what Windows and macOS have in common."""
