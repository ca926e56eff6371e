"""Private desktops: a virtual screen with its own window manager and buses.

A private desktop ends with the process that started it.
"""
