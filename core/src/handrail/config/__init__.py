"""Where settings come from, and what they may say."""
