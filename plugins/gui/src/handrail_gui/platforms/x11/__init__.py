"""X11: one connection for each desktop, and what is done through it. Only modules here import Xlib and mss."""
