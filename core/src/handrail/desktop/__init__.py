"""A desktop as a value, who holds it, and how a person stops everything on it."""
