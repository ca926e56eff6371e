"""Content laid down for a parser."""

from __future__ import annotations

import tempfile
from typing import IO


def create_unnamed_file(data: bytes) -> IO[bytes]:
    """Create a file without a name that has this content, positioned at its beginning."""
    file = tempfile.TemporaryFile()
    file.write(data)
    file.seek(0)
    return file
