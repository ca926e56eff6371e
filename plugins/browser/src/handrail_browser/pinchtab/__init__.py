"""A browser behind PinchTab, a server that works a Chromium over HTTP (https://pinchtab.com/docs)."""
