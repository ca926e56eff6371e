"""Handling of untrusted content: cleaned, marked, and tracked."""
