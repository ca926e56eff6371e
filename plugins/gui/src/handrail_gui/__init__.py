"""Screen, mouse, keyboard, windows and clipboard for Handrail, and private desktops to use them on."""
