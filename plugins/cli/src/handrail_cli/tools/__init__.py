"""The tools that run commands and work with running ones."""
