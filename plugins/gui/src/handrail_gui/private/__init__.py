"""Private desktops: a virtual screen with a window manager and buses of its own, which ends with the process that started it."""
