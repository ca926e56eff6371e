"""Observations: capture, marks, and the context for the model."""
