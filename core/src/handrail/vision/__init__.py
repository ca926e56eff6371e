"""How a desktop is seen: backends, their coordinates, and what was observed."""
