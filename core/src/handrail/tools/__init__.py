"""What a tool is, what models are told of it, and which tools there are."""
