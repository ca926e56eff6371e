"""What each window system does: pointer, keyboard, windows, clipboard."""
