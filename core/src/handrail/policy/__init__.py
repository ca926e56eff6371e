"""What may be done: opinions, rules, grants, and the verdict that is made of them."""
