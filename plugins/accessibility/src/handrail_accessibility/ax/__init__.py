"""AXUIElement, the accessibility of macOS, by pyobjc."""
