"""Session tools for Handrail: questions to the user, to-dos, memory, plan mode, topics."""
