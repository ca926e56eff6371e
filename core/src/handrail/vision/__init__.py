"""Vision: backends, their coordinates, and observations of a desktop."""
