"""Plans: recording calls, replaying them, and the report of a run."""
