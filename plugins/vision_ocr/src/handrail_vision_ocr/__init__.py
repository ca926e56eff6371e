"""Handrail's vision backend `ocr`."""
