"""File access as text for other plugins, decoded as `edit_file` does, so that `edit_file` can write the result back."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio.to_thread

from handrail_files import diffs
from handrail_files.file_content import read_content


class FileTexts:
    """The capability `file_texts`."""

    async def read(self, path: Path, named: str) -> str:
        """Return the complete text of a judged file, with its own line ends; `Downstream` for binary data."""
        content = await anyio.to_thread.run_sync(partial(read_content, path, named), abandon_on_cancel=True)
        return content.text

    def diff(self, before: str, after: str, named: str) -> str:
        """Return the line diff in the format of the file tools; at most about 20,000 characters."""
        return diffs.diff_contents(before, after, diffs.format_diff_name(named)).result

    async def close(self) -> None:
        """Do nothing: no resources are held."""
