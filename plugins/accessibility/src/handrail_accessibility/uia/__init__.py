"""UI Automation, the accessibility of Windows, by comtypes."""
