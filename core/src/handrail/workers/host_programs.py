"""Programs that Handrail starts for its own purposes, from the PATH of its user without directories that agents write.

An activated `.venv/bin` or `node_modules/.bin` of a workspace is on PATH, and a sandboxed command may put a `bash`
there. Programs that the user has approved are found on the user's PATH as it is; programs started without a prompt are
found here.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from handrail.fs import path_resolution
from handrail.fs.app_dirs import find_home_folder

__all__ = ["START_FOLDER", "HostPrograms", "find_own_programs", "resolve_start_place"]

# Places whose programs are the system's own, also where a workspace holds them (`/`): nothing is written there unasked.
SYSTEM_FOLDERS = tuple(
    map(Path, ("/usr", "/bin", "/sbin", "/nix/store", "/gnu/store", "/run/current-system", "/run/wrappers"))
)

# Where programs run that Handrail starts by itself: agents write nothing there, and no folder above it is searched for settings or code.
START_FOLDER = "/"


class HostPrograms:
    """The programs that may be started without asking, and the environment to start them with."""

    environment: Mapping[str, str]
    """The environment that Handrail was started with; its PATH has real folders only, and none that agents write."""
    left_out: tuple[str, ...]
    """The folders of the person's PATH that are not searched, as they are written there."""

    def __init__(self, environment: Mapping[str, str], agents: Iterable[Path] = ()) -> None:
        """Select the directories of PATH to search.

        `agents`: the real directories that agents, or all users, can write.
        """
        self._agents = tuple(agents)
        kept: list[str] = []
        left_out: list[str] = []
        for folder in environment.get("PATH", os.defpath).split(os.pathsep):
            (kept if self._trusts_folder(folder) else left_out).append(folder)
        self._folders = tuple(dict.fromkeys(map(os.path.realpath, kept)))
        self.left_out = tuple(left_out)
        # An empty PATH would mean the current folder.
        self.environment = {**environment, "PATH": os.pathsep.join(self._folders) or os.devnull}
        self._found: dict[str, str] = {}

    def find(self, name: str) -> str | None:
        """Return the absolute path of a program, or None if it is in no directory searched.

        An absolute path is returned unchanged if it is executable.
        """
        if os.path.isabs(name):
            return name if os.access(name, os.X_OK) else None
        if name not in self._found:
            for folder in self._folders:
                found = shutil.which(name, path=folder)
                # On Windows the current folder comes first.
                if found is not None and os.path.isabs(found) and not self._of_agents(os.path.realpath(found)):
                    self._found[name] = found
                    break
        return self._found.get(name)

    def searched(self, search_path: str) -> str:
        """Return those folders of a PATH that programs may be started from without asking, as a PATH."""
        return os.pathsep.join(filter(self._trusts_folder, search_path.split(os.pathsep))) or os.devnull

    def why_missing(self, name: str) -> str:
        """Say that a program is missing, with the folders that were left out and what to do about them."""
        if not self.left_out:
            return f"the program {name} is not on PATH"
        return (
            f"the program {name} is in no folder of PATH that Handrail itself starts programs from; left out, because agents may write there or "
            f"they depend on the current folder: {', '.join(map(repr, self.left_out))}. Start Handrail outside of an activated environment, "
            f"in a workspace that holds none of them, and with the folder of {name} on PATH"
        )

    def _trusts_folder(self, folder: str) -> bool:
        # By its text, too: a link in the workspace may lead elsewhere a moment later.
        return os.path.isabs(folder) and not any(
            map(self._of_agents, {os.path.normpath(folder), os.path.realpath(folder)})
        )

    def _of_agents(self, place: str) -> bool:
        known = [system for system in SYSTEM_FOLDERS if Path(place).is_relative_to(system)]
        roots = [root for root in self._agents if not any(system.is_relative_to(root) for system in known)]
        return path_resolution.is_inside_roots(Path(place), roots, platform=sys.platform)


def find_own_programs() -> HostPrograms:
    """Return the programs on this process's PATH, except those in the current directory.

    The current directory is taken for a workspace unless it contains the home directory.
    """
    try:
        here = Path.cwd()
    except FileNotFoundError:
        here = None
    project = () if here is None or find_home_folder(os.environ).is_relative_to(here) else (here,)
    return HostPrograms(os.environ, (*project, *list_temporary_folders()))


def resolve_start_place(command: Sequence[str], named: str | None, folder: Path) -> tuple[tuple[str, ...], str]:
    """Return the words of a configured command and the directory it runs in: the configured one, else `START_FOLDER`.

    Without a configured directory, a program given with a directory, and arguments that begin with `./` or `../`, are
    resolved from `folder`. Whether such a file exists makes no difference: an agent could create one.
    """
    if named is not None:
        return tuple(command), str(folder / Path(named).expanduser())
    program, *arguments = command
    return (
        str(folder / program) if _has_folder(program) else program,
        *(_resolve_dotted_word(word, folder) for word in arguments),
    ), START_FOLDER


def iter_named_files(command: Sequence[str], named: str | None, folder: Path) -> Iterator[Path | None]:
    """Yield for each word of a configured command the file that it names, as the command finds it where it runs; None for another word.

    Whoever makes a file that a path names and that is missing decides what runs, so it is yielded as well.
    """
    words, place = resolve_start_place(command, named, folder)
    for index, word in enumerate(words):
        path = os.path.normpath(os.path.join(place, word))
        is_path = os.path.isabs(word) or _leading_dots(word) or (index == 0 and _has_folder(word))
        yield Path(path) if os.path.isfile(path) or (is_path and _is_missing(path)) else None


def _has_folder(program: str) -> bool:
    return "/" in program or os.sep in program


def _resolve_dotted_word(word: str, folder: Path) -> str:
    # The rest stays as it is written: it may be more than a path.
    dots = _leading_dots(word)
    return f"{folder / dots}{word[len(dots) :]}" if dots else word


def _leading_dots(word: str) -> str:
    first = word.replace(os.sep, "/").split("/", 1)[0]
    return first if first in (".", "..") else ""


def _is_missing(path: str) -> bool:
    try:
        os.lstat(path)
    except FileNotFoundError:
        return True
    # No name of a file, or none that can be looked at.
    except (OSError, ValueError):
        return False
    return False


def list_temporary_folders() -> tuple[Path, ...]:
    """Return the folders that every program of every user writes, as real paths."""
    folders = (*path_resolution.SHARED_TEMPORARY, tempfile.gettempdir())
    return tuple(dict.fromkeys(Path(os.path.realpath(folder)) for folder in folders))
