"""Logging to stderr."""

from __future__ import annotations

import logging
import os
import select
import stat
import sys
from typing import Any

# What a pipe takes without blocking when it says that it can be written.
PIPE_BUF = 512 if sys.platform == "win32" else select.PIPE_BUF


class RedactingFormatter(logging.Formatter):
    """Log lines without secrets."""

    def format(self, record: logging.LogRecord) -> str:
        """Format the record without secrets."""
        from handrail.redaction import redact_text

        return redact_text(super().format(record))


class OneLineFormatter(RedactingFormatter):
    """Log lines without tracebacks."""

    def formatException(self, ei: Any) -> str:  # noqa: N802 # logging's own name
        """Return an empty text instead of the traceback: the message says enough."""
        return ""

    def format(self, record: logging.LogRecord) -> str:
        """Format the record on one line."""
        return super().format(record).rstrip("\n")


class NonBlockingHandler(logging.StreamHandler[Any]):
    """Handler that writes to stderr.

    Records that would go into a full pipe are dropped, because waiting for its reader would block the program.
    """

    def emit(self, record: logging.LogRecord) -> None:
        """Write the record, unless it would have to wait for a reader."""
        if not self._full():
            super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """Format the record; if it goes into a pipe, cut it to what a pipe accepts at once."""
        told = super().format(record)
        return told if not self._pipe() else told.encode()[: PIPE_BUF - 1].decode("utf-8", "ignore")

    def _full(self) -> bool:
        return self._pipe() and not select.select([], [self.stream], [], 0)[1]

    def _pipe(self) -> bool:
        try:
            return sys.platform != "win32" and stat.S_ISFIFO(os.fstat(self.stream.fileno()).st_mode)
        except (AttributeError, OSError, ValueError):
            # A stream of somebody's own, without a descriptor.
            return False


def configure_stderr_logging(*, debug: bool) -> None:
    """Log warnings, each on one line; with `--debug`, log everything, with tracebacks."""
    handler = NonBlockingHandler()
    form = "%(levelname)s %(name)s: %(message)s"
    handler.setFormatter(RedactingFormatter(form) if debug else OneLineFormatter(form))
    logging.basicConfig(handlers=[handler], level=logging.DEBUG if debug else logging.WARNING)
