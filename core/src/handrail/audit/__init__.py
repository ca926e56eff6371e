"""Audit log of calls: writing, reading and verification."""
