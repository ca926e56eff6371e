"""The workflow layer: what a person does in several steps, as sequences of judged calls."""
