"""Effects of a command line in any shell."""
