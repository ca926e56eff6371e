"""Ways to confine a command on each system."""
