"""OpenCV, imported without what it does to the environment.

Its loader puts its own folders into LD_LIBRARY_PATH (`cv2/__init__.py`, with an empty last item, which means the working directory); every
program that is started later would search them.
"""

from __future__ import annotations

import os

_previous_library_path = os.environ.get("LD_LIBRARY_PATH")

import cv2  # noqa: E402 # after the look at the environment

if _previous_library_path is None:
    os.environ.pop("LD_LIBRARY_PATH", None)
else:
    os.environ["LD_LIBRARY_PATH"] = _previous_library_path

__all__ = ["cv2"]
