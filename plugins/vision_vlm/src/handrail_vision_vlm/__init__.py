"""Handrail's vision backends by models with an OpenAI-compatible interface."""
