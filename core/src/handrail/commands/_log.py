"""What is logged, on stderr."""

from __future__ import annotations

import logging
from typing import Any


class Redacting(logging.Formatter):
    """Log lines without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """The record as text."""
        from handrail.redaction import redact_text

        return redact_text(super().format(record))


class OneLine(Redacting):
    """Log lines without tracebacks."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 # logging's own name
        """Nothing: the message says it."""
        return ""

    def format(self, record: logging.LogRecord) -> str:
        """The record on one line."""
        return super().format(record).rstrip("\n")


def log_to_stderr(*, debug: bool) -> None:
    """Warnings in one line each; everything, with tracebacks, for `--debug`."""
    handler = logging.StreamHandler()
    form = "%(levelname)s %(name)s: %(message)s"
    handler.setFormatter(Redacting(form) if debug else OneLine(form))
    logging.basicConfig(handlers=[handler], level=logging.DEBUG if debug else logging.WARNING)
