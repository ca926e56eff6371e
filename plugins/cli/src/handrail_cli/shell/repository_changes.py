"""The git repository that a line changes, as long as nothing but git on the line changes anything."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path, PurePath

from handrail.api.verdict import Access
from handrail.sandbox.repositories import find_single_repository
from handrail_cli.programs import ProgramUse
from handrail_cli.programs.values import UseNeed
from handrail_cli.shell.bash.syntax import ShellWord

# A program with one of these may run what nobody has read.
UNSEEN_NEEDS: frozenset[UseNeed] = frozenset(("code", "loads_project", "network", "session", "input"))
# Commands of git that make a repository, and leave the one around it alone.
CREATING_COMMANDS = ("clone", "init", "init-db")
# `git apply` keeps to what the index has with one of these, and otherwise patches any file below where it is: that may be `.git`.
INDEX_OPTIONS = ("--index", "--cached", "--3way", "-3")
WRITES_INDEX = re.compile(r"--(?:ind|cach|3|inte|build)|-[A-Za-z]*[3N]")


class RepositoryChanges:
    """The repositories that git works on in one line, by their `.git`, and whether the line could change them by anything but git.

    Which files a program changes is known too late: a pattern, a list, a link that git has just made or another process may lead it into
    `.git`. So nothing else on the line may change any.
    """

    def __init__(self) -> None:
        # None for one that cannot be told.
        self._found: dict[str | None, None] = {}
        self._writes = False
        # Whether git makes a repository, which the rest of the line works on: git is not kept to the one around it then.
        self._makes = False
        # Whether something besides git changes files or runs what nobody has read, or git runs without what keeps it to one repository.
        self.mixed = False

    @property
    def refused(self) -> tuple[str, ...]:
        """The repositories that git is to change and the line cannot; those that the line makes are not among them."""
        if not self._writes or find_single_repository(self.changed) is not None:
            return ()
        return tuple(place for place in self._found if place is not None)

    @property
    def may_be_split(self) -> bool:
        """True unless git makes a repository that later parts may work on."""
        return not self._makes

    @property
    def changed(self) -> tuple[str, ...]:
        """The `.git` that the line may change; empty where git only reads, works on an unknown or a new one, or is not alone in changing anything."""
        known = tuple(place for place in self._found if place is not None)
        certain = len(known) == len(self._found)
        return known if self._writes and certain and not (self.mixed or self._makes) else ()

    def run(
        self, use: ProgramUse, words: Sequence[ShellWord], folders: Sequence[PurePath], touches: Sequence[Access]
    ) -> None:
        """Record a known program that runs in one of these directories."""
        name = words[0].guess.rpartition("/")[2]
        # `env -i` takes away what keeps git to one repository.
        own = words[1 : min((inner.start for inner in use.inner), default=None)]
        clears = name == "env" and any(word.guess.startswith("-") for word in own)
        self.mixed = self.mixed or clears or use.unknown is not None
        if name == "git" and "repository" in use.needs:
            leading = words[1 : use.leading]
            # Files that its words name (`--output=FILE`), or a patch, may be in `.git`, too.
            self.mixed = (
                self.mixed or _is_unindexed_patch(words, leading) or any(named.role == "write" for named in use.named)
            )
            if leading and leading[-1].text in CREATING_COMMANDS:
                self._makes = True
            else:
                self._writes = self._writes or _writes_repository(use, words)
                self._work(leading, folders)
        elif (
            use.kind != "reads"
            or not use.needs.isdisjoint(UNSEEN_NEEDS)
            or any(one.gets != "nothing" for one in use.inner)
        ):
            self.mixed = True
        else:
            self.touch(touches)

    def touch(self, touches: Sequence[Access]) -> None:
        """Record files opened by the shell, or by a program that otherwise reads."""
        self.mixed = self.mixed or any(touch.kind in ("write", "delete") for touch in touches)

    def _work(self, leading: Sequence[ShellWord], folders: Sequence[PurePath]) -> None:
        """Git is called; `leading` are the words up to its subcommand, which may lead it to another repository than that of its folder."""
        if any(word.text is None or word.text.startswith("--bare") for word in leading) or not folders:
            self._found[None] = None
        for folder in folders:
            if self._makes and not os.path.lexists(folder):
                # That is the new one.
                continue
            found, place = _find_repository(Path(os.path.realpath(folder)))
            if found:
                self._found[place] = None


def _writes_repository(use: ProgramUse, words: Sequence[ShellWord]) -> bool:
    """Return True for git that may write into the repository. `git apply` does with some options, which may be shortened or joined to others."""
    if use.kind == "reads" or "spares_repository" not in use.needs:
        return use.kind != "reads"
    return any(WRITES_INDEX.match(word.guess) for word in words)


def _is_unindexed_patch(words: Sequence[ShellWord], leading: Sequence[ShellWord]) -> bool:
    """Return True for `git apply` to files that are in no index. Only the first option is looked at: a later one may be a value."""
    if not leading or leading[-1].text != "apply":
        return False
    behind = words[len(leading) + 1 :]
    return not behind or behind[0].text not in INDEX_OPTIONS


def _find_repository(folder: Path) -> tuple[bool, str | None]:
    """Return True and its `.git` if git finds a repository from `folder`; None for a `.git` that is not certain."""
    for each in (folder, *folder.parents):
        place = each / ".git"
        if os.path.lexists(place):
            return True, str(place)
        if os.path.lexists(each / "HEAD"):
            # Git takes a folder without a work tree for a repository, too.
            return True, None
    return False, None
