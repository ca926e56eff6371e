"""Where commands run that may not run on the host."""
