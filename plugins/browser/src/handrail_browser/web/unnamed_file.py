"""Content laid down for a parser."""

from __future__ import annotations

import tempfile
from typing import IO


def create_unnamed_file(data: bytes) -> IO[bytes]:
    """The content as a file without a name, to be read from its beginning."""
    file = tempfile.TemporaryFile()
    file.write(data)
    file.seek(0)
    return file
