"""Who is told of calls, and who may tighten them."""
