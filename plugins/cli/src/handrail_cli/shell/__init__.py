"""Effects of a command line, whatever the shell."""
