"""The terminal that Handrail was started at: standard streams, JSON lines on them, and questions to the person there."""
