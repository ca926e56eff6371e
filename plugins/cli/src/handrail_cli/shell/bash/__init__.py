"""One pass over the parse of a command line, in the order of the text."""
