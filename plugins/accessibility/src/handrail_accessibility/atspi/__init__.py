"""Linux: the accessibility tree that programs publish over D-Bus (AT-SPI 2)."""
