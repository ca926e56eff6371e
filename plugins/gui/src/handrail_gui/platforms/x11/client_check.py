"""Another package that puts its files in the place of the X client's. Light: it imports no X client."""

from __future__ import annotations

import re
from importlib import metadata, util
from pathlib import Path

# Both are imported as `Xlib`; pyautogui depends on the second, whose last release is of 2014.
CLIENT_PACKAGE, OVERWRITING_PACKAGE = "python-xlib", "python3-xlib"
VERSION_PATTERN = re.compile(r"__version__\s*=\s*\((\d+),\s*(\d+)")
REPAIR_HINT = f"pip uninstall -y {OVERWRITING_PACKAGE} && pip install --force-reinstall {CLIENT_PACKAGE}; pyautogui works with it as well"


def find_overwritten_client() -> str | None:
    """Return why no X server can be reached and the repair, if python3-xlib has overwritten python-xlib; None where it has not."""
    try:
        theirs = metadata.version(OVERWRITING_PACKAGE)
    except metadata.PackageNotFoundError:
        return None
    if _read_imported_version() != theirs:
        return None
    return f"the package {OVERWRITING_PACKAGE}, which pyautogui brings, has overwritten {CLIENT_PACKAGE}; {REPAIR_HINT}"


def _read_imported_version() -> str | None:
    """Return the version that the package `Xlib` gives itself, from the text of its files."""
    found = util.find_spec("Xlib")
    if found is None or found.origin is None:
        return None
    match = VERSION_PATTERN.search(Path(found.origin).read_text(encoding="utf-8", errors="replace"))
    return None if match is None else f"{match[1]}.{match[2]}"
