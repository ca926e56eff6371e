"""Tools: their definitions, their declarations to models, and the available set."""
