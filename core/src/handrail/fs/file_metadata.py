"""File metadata that a new file takes from the file it replaces.

That is what a file has besides its content: owner, permissions, access lists and extended attributes.
"""

from __future__ import annotations

import errno
import os
import stat

# What the system gives to a program or a measured file, which a changed content has no claim to.
CONTENT_ATTRIBUTES = frozenset(("security.capability", "security.ima", "security.evm"))
LABEL_PREFIX = "security."
IGNORED_ERRORS = frozenset((errno.ENOTSUP, errno.EPERM, errno.EACCES, errno.EINVAL))


def copy_metadata(fd: int, name: str, status: os.stat_result) -> bool:
    """Make the open new file like the one called `name`, of which the system says `status`; False when it cannot be made so."""
    if not hasattr(os, "fchown"):
        return True
    mine = os.fstat(fd)
    if (mine.st_uid, mine.st_gid) != (status.st_uid, status.st_gid):
        try:
            os.fchown(fd, status.st_uid, status.st_gid)
        except OSError:
            return False
    os.fchmod(fd, stat.S_IMODE(status.st_mode))
    return _copy_attributes(fd, name)


def _copy_attributes(fd: int, name: str) -> bool:
    if not hasattr(os, "listxattr"):
        return True
    try:
        theirs = os.listxattr(name, follow_symlinks=False)
    except OSError as exc:
        return exc.errno in IGNORED_ERRORS
    for key in theirs:
        if key in CONTENT_ATTRIBUTES:
            continue
        try:
            value = os.getxattr(name, key, follow_symlinks=False)
            if not key.startswith(LABEL_PREFIX) or os.getxattr(fd, key) != value:
                os.setxattr(fd, key, value)
        except OSError:
            return False
    return True
