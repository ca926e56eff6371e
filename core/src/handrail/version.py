"""The version of Handrail, which all its packages share."""

__version__ = "0.1.0"
