"""What nobody vouches for: cleaned, marked, and remembered."""
