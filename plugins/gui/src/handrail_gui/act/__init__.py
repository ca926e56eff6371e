"""Actions: aiming, pressing, typing, and what came of them."""
