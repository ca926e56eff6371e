"""Results too long to show: kept, looked into, and in time thrown away."""
