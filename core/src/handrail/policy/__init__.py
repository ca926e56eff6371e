"""Access control: opinions, rules, grants, and the verdict derived from them."""
