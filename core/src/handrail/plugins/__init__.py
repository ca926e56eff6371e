"""Loading of plugins, and what they register."""
