"""What this plugin registers. Light: it is imported at every start."""

from __future__ import annotations
