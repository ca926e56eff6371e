"""The web: pages as text."""
