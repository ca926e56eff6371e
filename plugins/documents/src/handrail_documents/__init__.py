"""Documents for Handrail."""
