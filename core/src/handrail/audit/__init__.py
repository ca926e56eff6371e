"""What is written down of calls, and read or run again."""
