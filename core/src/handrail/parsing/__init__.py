"""Hostile files and pages parsed in processes that are shut in and can be killed; plugins bring the jobs."""
