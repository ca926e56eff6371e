"""A Chromium of our own, over the DevTools protocol."""
