"""Window system implementations: pointer, keyboard, windows, clipboard."""
