"""Trees that a platform's own calls give: what Windows and macOS have in common."""
