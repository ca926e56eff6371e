"""Another package that puts its files in the place of the X client's. Light: it imports no X client."""

from __future__ import annotations

import re
from importlib import metadata, util
from pathlib import Path

# Both are imported as `Xlib`; pyautogui depends on the second, whose last release is of 2014.
CLIENT, OVERWRITES = "python-xlib", "python3-xlib"
VERSION = re.compile(r"__version__\s*=\s*\((\d+),\s*(\d+)")
REPAIR = f"pip uninstall -y {OVERWRITES} && pip install --force-reinstall {CLIENT}; pyautogui works with it as well"


def overwritten_client() -> str | None:
    """Return why no X server can be reached and the repair, if python3-xlib has overwritten python-xlib; None where it has not."""
    try:
        theirs = metadata.version(OVERWRITES)
    except metadata.PackageNotFoundError:
        return None
    if _imported_version() != theirs:
        return None
    return f"the package {OVERWRITES}, which pyautogui brings, has overwritten {CLIENT}; {REPAIR}"


def _imported_version() -> str | None:
    """Return the version that the package `Xlib` gives itself, from the text of its files."""
    found = util.find_spec("Xlib")
    if found is None or found.origin is None:
        return None
    match = VERSION.search(Path(found.origin).read_text(encoding="utf-8", errors="replace"))
    return None if match is None else f"{match[1]}.{match[2]}"
