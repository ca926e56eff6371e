"""Reports by the kernel of directories in which something changed, to avoid checking every file (inotify, Linux only).

Its reports are trusted. The absence of a report is trusted only if the caller knows that no process writes through
memory maps, because such writes are not reported.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
import re
import struct
import sys

# A person's other programs (editors, servers of development) need watches, too.
WATCH_SHARE = 4
LIMIT_FILE = "/proc/sys/fs/inotify/max_user_watches"
# File systems whose changes all go through this kernel.
LOCAL_FILE_SYSTEMS = frozenset(
    ("ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "f2fs", "zfs", "bcachefs", "overlay", "reiserfs", "jfs")
)
MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
DELETE_SELF, MOVE_SELF, UNMOUNT, OVERFLOW, IGNORED = 0x400, 0x800, 0x2000, 0x4000, 0x8000
ONLY_FOLDERS = 0x01000000
WATCH_MASK = (
    MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | DELETE_SELF | MOVE_SELF | ONLY_FOLDERS
)
EVENT_HEADER = struct.Struct("iIII")
READ_BYTES = 262_144
# A blank in the name of a mount point.
OCTAL_ESCAPE = re.compile(rb"\\([0-7]{3})")


class ChangeWatch:
    """Watch on individual directories. `whole` is False from the moment that something may have been missed."""

    def __init__(self, descriptor: int, most: int) -> None:
        self.whole = True
        self._descriptor = descriptor
        self._most = most
        self._paths: dict[int, str] = {}
        self._numbers: dict[str, int] = {}

    @classmethod
    def start(cls) -> ChangeWatch | None:
        """Start a watch with no directories; return None if the system cannot provide one."""
        if sys.platform != "linux":
            return None
        try:
            with open(LIMIT_FILE, encoding="ascii") as file:
                most = int(file.read()) // WATCH_SHARE
        except (OSError, ValueError):
            return None
        descriptor = _load_libc().inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        return cls(descriptor, most) if descriptor >= 0 else None

    def close(self) -> None:
        """Stop watching."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self.whole = False

    def add(self, folder: int, path: str) -> None:
        """Watch the folder that is open as `folder`. To be done before it is listed."""
        if not self.whole:
            return
        number = _load_libc().inotify_add_watch(self._descriptor, b"/proc/self/fd/%d" % folder, WATCH_MASK)
        if number < 0 or len(self._paths) >= self._most:
            self.close()
            return
        if self._numbers.get(path) == number:
            return
        self.remove(path)
        if (before := self._paths.get(number)) is not None:
            # It was moved here.
            self._numbers.pop(before, None)
        self._paths[number] = path
        self._numbers[path] = number

    def remove(self, path: str) -> None:
        """Watch a folder no longer."""
        number = self._numbers.pop(path, None)
        if number is not None and self._paths.get(number) == path:
            del self._paths[number]
            _load_libc().inotify_rm_watch(self._descriptor, number)

    def watches(self, path: str) -> bool:
        """Return True if the directory is watched."""
        return self.whole and path in self._numbers

    def changed(self) -> set[str]:
        """Return the directories in which something changed since the last call.

        `whole` is up to date afterwards.
        """
        found: set[str] = set()
        while self.whole:
            try:
                data = os.read(self._descriptor, READ_BYTES)
            except BlockingIOError:
                break
            except OSError:
                self.close()
                break
            self._take(data, found)
        return found

    def _take(self, data: bytes, found: set[str]) -> None:
        at = 0
        while at < len(data):
            number, mask, _, length = EVENT_HEADER.unpack_from(data, at)
            at += EVENT_HEADER.size + length
            if mask & (OVERFLOW | UNMOUNT):
                self.close()
                return
            path = self._paths.get(number)
            if path is None:
                continue
            found.add(path)
            if mask & (DELETE_SELF | MOVE_SELF | IGNORED):
                # What is there now is told by the folder that it was in.
                found.add(os.path.dirname(path))
            if mask & IGNORED:
                del self._paths[number]
                if self._numbers.get(path) == number:
                    del self._numbers[path]


def is_local_file_system(folder: str) -> bool:
    """Return True if only this kernel can change what is in the directory."""
    place, kind = b"", ""
    with contextlib.suppress(OSError), open("/proc/self/mountinfo", "rb") as file:
        for line in file:
            before, _, after = line.partition(b" - ")
            point = OCTAL_ESCAPE.sub(lambda found: bytes([int(found[1], 8)]), before.split()[4])
            # Of two at one place the later one lies on top.
            if len(point) >= len(place) and os.fsencode(f"{folder}/").startswith(point.rstrip(b"/") + b"/"):
                place, kind = point, after.split()[0].decode("ascii", "replace")
    return kind in LOCAL_FILE_SYSTEMS


@functools.cache
def _load_libc() -> ctypes.CDLL:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.inotify_add_watch.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_uint32)
    libc.inotify_rm_watch.argtypes = (ctypes.c_int, ctypes.c_int)
    return libc
