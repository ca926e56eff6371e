"""macOS' own calls, by pyobjc: Quartz, AppKit, ApplicationServices."""
