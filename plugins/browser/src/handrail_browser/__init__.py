"""The web: pages as text, and what search engines find."""
