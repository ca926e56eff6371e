"""Approval by the user: the questions, and the meaning of the answers."""
