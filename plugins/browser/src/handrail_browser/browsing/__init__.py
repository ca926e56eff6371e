"""The tool `execute_browser`, whichever browser it drives."""
