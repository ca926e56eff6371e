"""OpenCV, imported without what it does to the environment.

Its loader puts its own folders into LD_LIBRARY_PATH (`cv2/__init__.py`, with an empty last item, which means the working directory); every
program that is started later would search them.
"""

from __future__ import annotations

import os

_before = os.environ.get("LD_LIBRARY_PATH")

import cv2  # noqa: E402 # after the look at the environment

if _before is None:
    os.environ.pop("LD_LIBRARY_PATH", None)
else:
    os.environ["LD_LIBRARY_PATH"] = _before

__all__ = ["cv2"]
