"""Files for Handrail."""
