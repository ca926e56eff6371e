"""Session tools for Handrail: questions to a person, to-dos, memory, plan mode, topics."""
