"""Settings: their sources, and the values they may have."""
