"""Shell commands for Handrail: run, judged by what they parse to, and stopped with their children."""
