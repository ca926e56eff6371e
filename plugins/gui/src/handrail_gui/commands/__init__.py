"""Commands of the `handrail` program."""
