"""How plugins load, and what they register."""
