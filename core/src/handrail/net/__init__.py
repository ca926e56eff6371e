"""The web: where a name leads, and how it is reached."""
