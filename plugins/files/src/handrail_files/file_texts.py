"""Files as text, for other plugins: decoded as `edit_file` does, so that what is made of it can be written back by it."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio.to_thread

from handrail_files import diffs
from handrail_files.file_content import read_content


class FileTexts:
    """The capability `file_texts`."""

    async def read(self, path: Path, named: str) -> str:
        """The whole text of a file that was judged, with its own line ends; `Downstream` for binary data."""
        content = await anyio.to_thread.run_sync(partial(read_content, path, named), abandon_on_cancel=True)
        return content.text

    def diff(self, before: str, after: str, named: str) -> str:
        """What differs, line by line, as the file tools tell it; at most some 20,000 characters."""
        return diffs.diff_contents(before, after, diffs.format_diff_name(named)).result

    async def close(self) -> None:
        """Nothing is held."""
