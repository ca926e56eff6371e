"""System tools for Handrail: processes, the machine, downloads."""
