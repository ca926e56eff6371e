"""What Handrail has started and what goes on by itself: who it is, and how it is ended."""
