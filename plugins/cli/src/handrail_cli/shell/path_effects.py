"""Paths that a command's words resolve to, and the judgment of reading, writing or deleting there."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath

from handrail import Access, Decision, EvaluationContext, Reason, View
from handrail.fs import path_resolution
from handrail.fs.git_index import find_repository_above
from handrail.fs.sensitive_paths import SHARED_TEMPORARY
from handrail.glob_match import is_glob_match
from handrail.policy import place_kinds
from handrail.undo.coverage import REPOSITORY_FOLDERS
from handrail.undo.path_patterns import SOME_BELOW, PathLookup, get_fixed_folder
from handrail_cli.shell.bash.syntax import ShellWord
from handrail_cli.shell.glob_match import GLOB_CHARACTER, find_matching_secret
from handrail_cli.shell.host_env import HostEnvironment

WILDCARD_CHARS = frozenset("*?[]!.{},")
MAX_FOLDERS = 8
MAX_ENTRIES = 5_000
# Names of folders in a pattern that are looked up; where more are patterns, all that is below the first stands for them.
MAX_PATTERNS = 2
# Letters and digits that a pattern needs beside its stars to speak of some names.
LETTERS = 2
UNSURE_PATH = "which file it is depends on something unknown"


@dataclass(frozen=True, slots=True)
class Finding:
    """Reason why something is not plain reading.

    `floor` is the decision that no allow may go below; None if a rule or a weaker approval suffices.
    """

    reason: Reason
    floor: Decision | None = None


@dataclass(slots=True)
class CommandEffects:
    """Effects found for a command: findings, accesses, and whether it changes anything or needs the network."""

    doubts: list[Finding] = field(default_factory=list[Finding])
    touches: list[Access] = field(default_factory=list[Access])
    changes: bool = False
    network: bool = False
    # The hosts that it connects to, or may connect to, and whether those are all of the network that it needs.
    hosts: tuple[str, ...] = ()
    by_host: bool = True
    # Whether it starts a program, and whether it uses files or the names in a directory.
    program: bool = False
    files: bool = False
    # True for a program that inspects the running system, and for one that reads nothing but what it is given.
    inspects: bool = False
    filters: bool = False
    # Whether a word of it is not known, and whether it runs or loads files of the workspace that sandboxed commands may change.
    unlisted: bool = False
    obeys_workspace: bool = False
    # Whether it sets a variable for programs that some may obey.
    leads: bool = False
    # Whether it is given words that the line does not show, or obeys files that sandboxed commands may change.
    varies: bool = False
    # True if it reads what is in files that sandboxed commands may change.
    reads_changeable: bool = False
    # Resolved paths, or patterns of them, of which it may overwrite or delete what is there.
    losing: list[str] = field(default_factory=list[str])
    # Doubts that count only where the line does not run in the sandbox.
    unconfined: list[Finding] = field(default_factory=list[Finding])
    # Those of them that are only given another name.
    renamed: list[str] = field(default_factory=list[str])

    @property
    def view(self) -> View | None:
        """The surroundings in which it runs without approval; None where it needs one."""
        if self.doubts:
            return None
        if self.changes:
            return View.WORK
        if self.files or (self.program and not self.inspects):
            return View.READ
        return View.SYSTEM if self.inspects else View.SHELL

    @property
    def harmless(self) -> bool:
        """True if it reads no file and changes nothing, and may thus run on the host beside commands allowed there."""
        passes = not self.program or self.inspects or self.filters
        return passes and not (self.doubts or self.changes or self.files or self.leads)

    @property
    def writes_unseen(self) -> bool:
        """True if it makes something else of a file and does not say where: a link may be in the place by then."""
        kinds = {touch.kind for touch in self.touches}
        return (
            self.changes and not self.network and "read" in kinds and kinds.isdisjoint(("write", "delete", "execute"))
        )

    def led(self) -> None:
        """Note that it may obey a variable set by the line.

        What it reads or runs is thus unknown, and it must not run on the host.
        """
        self.inspects = self.filters = False

    def ask(self, code: str, text: str, word: ShellWord | None) -> None:
        """Somebody has to be asked."""
        self.doubts.append(Finding(Reason(code, text, word.span if word is not None else None)))

    def warn(self, code: str, text: str, word: ShellWord | None, floor: Decision = Decision.CONFIRM) -> None:
        """Add a finding that requires the user's approval, no matter what else is allowed."""
        self.doubts.append(Finding(Reason(code, text, word.span if word is not None else None), floor))

    def warn_on_host(self, code: str, text: str, word: ShellWord | None) -> None:
        """Add a finding that requires the user's approval if the line runs on the host."""
        self.unconfined.append(Finding(Reason(code, text, word.span if word is not None else None), Decision.CONFIRM))


class PathAnalyzer:
    """Resolves the words of one line from every folder that its `cd`s may have led to."""

    def __init__(self, judging: EvaluationContext, cwds: Sequence[PurePath], around: HostEnvironment) -> None:
        self.judging = judging
        self.around = around
        # Every folder that the shell may be in by now.
        self.cwds: list[PurePath] = list(cwds)
        self.began = self.cwds[0]
        # Those that the command at hand leads to, if it succeeds.
        self.entered: list[PurePath] = []
        # All that it may be in at some time.
        self.been: list[PurePath] = list(self.cwds)
        self.seen: path_resolution.PathCache = {}
        # Links that the line itself makes: what is behind them is not known.
        self.links: set[str] = set()
        # Doubts about folders that files are written into whose names are not known.
        self.unknown_names: list[Finding] = []
        # Places in the workspace that are read, with all that is in them: as written, as they really are, and the word.
        self.searched: list[tuple[str, str, ShellWord]] = []
        # A folder with secrets that the line looks through, as it is written, with one of them; and a word for files to read that are not known.
        self.looked_through: tuple[str, str] | None = None
        self.unknown_read: ShellWord | None = None
        self.temporary = around.temporary
        self._lookup = PathLookup()
        self.roots = around.workspace
        offer = judging.sandbox
        self.opened = offer.writable if offer is not None else ()
        self.open = (*around.temporary, *self.opened)

    def resolved(self, text: str) -> list[path_resolution.ResolvedPath]:
        """Return the paths that a text resolves to, one for each working directory."""
        home, seen = self.judging.home, self.seen
        return [
            path_resolution.resolve_path(text, cwd=cwd, home=home, platform="linux", seen=seen) for cwd in self.cwds
        ]

    def within(self, real: str) -> bool:
        """Return True if a resolved path is in the workspace."""
        for root in self.roots:
            if real.startswith(root) and real[len(root) : len(root) + 1] in ("", "/"):
                return True
        return path_resolution.is_inside_roots(real, self.judging.workspace, seen=self.seen)

    def keeps(self, found: path_resolution.ResolvedPath) -> bool:
        """Return True if a path resolves to one of Handrail's own files."""
        return self._kept(found.real) or (found.written != found.real and self._kept(found.written))

    def _kept(self, real: str) -> bool:
        if self.within(real):
            return bool(self.around.kept) and f"{real}/".startswith(self.around.kept)
        return path_resolution.is_inside_roots(real, self.judging.protected, seen=self.seen)

    def passing(self, real: str) -> bool:
        """Return True if a resolved path is in a temporary directory, or one the user has opened to the sandbox."""
        return any(real.startswith(f"{root}/") or real == root for root in self.open) and not self.within(real)

    def changeable(self, found: path_resolution.ResolvedPath) -> bool:
        """Return True if sandboxed commands may change what a path resolves to: the file, or a symlink on the way."""
        if self.judging.sandbox is None or place_kinds.is_stream(found.real):
            return False
        return any(self.within(place) or self.passing(place) for place in {found.real, found.written})

    def write_unnamed(self, word: ShellWord) -> None:
        """Take down that files are written below the working directory whose names the line does not show."""
        told = "it writes files whose names are not known, and programs may obey these"
        self.unknown_names.append(Finding(Reason("autorun", told, word.span), Decision.CONFIRM))

    def readable(self, real: str) -> bool:
        """Return True for a path in a directory outside the workspace that the sandbox shows.

        This is a toolchain, or a directory that the user has opened.
        """
        return path_resolution.is_inside_roots(real, self.judging.readable, seen=self.seen)

    def at_home(self) -> bool:
        """Return True if every directory that the shell may be in is in the workspace."""
        return all(self.within(str(cwd)) for cwd in self.cwds)

    def outer_repository(self) -> str | None:
        """Return the directory of the repository that git would find from the workspace if that lies above it."""
        for cwd in self.cwds:
            git = find_repository_above(str(cwd))
            if git is not None and not self.within(folder := os.path.dirname(git)):
                return folder
        return None

    def enter(self, folders: Sequence[PurePath]) -> bool:
        """Add directories that relative paths may start in from now on, because a `cd` may fail.

        Returns False if there are too many.
        """
        self.entered = list(dict.fromkeys(folders))
        self.cwds += [folder for folder in self.entered if folder not in self.cwds]
        self.been += [folder for folder in self.entered if folder not in self.been]
        return len(self.cwds) <= MAX_FOLDERS

    def holds(self, found: path_resolution.ResolvedPath) -> bool:
        """Return True if a path resolves to one of Handrail's own files, or to a directory that contains one."""
        return any(
            path_resolution.is_protected_path(place, self.judging.protected) for place in (found.path, found.named)
        )

    def loses_own(self, found: path_resolution.ResolvedPath, does: str) -> bool:
        """Return True if a change of a directory may change Handrail's files in it.

        Writing into a directory of the workspace does not: the sandbox keeps them unchanged. Nor does deleting or
        moving a directory that contains none.
        """
        if not self.within(found.real):
            return self.holds(found)
        there = [place for place in self.judging.protected if os.path.lexists(place)]
        return does != "writes to" and any(
            path_resolution.is_protected_path(place, there) for place in (found.path, found.named)
        )

    # Reading

    def read(self, word: ShellWord, effects: CommandEffects, *, text: str | None = None, listing: bool = False) -> None:
        """Reading the file that a word names; `listing`: only names and sizes are shown."""
        text = word.text if text is None else text
        if text is None:
            effects.files = True
            if not listing:
                self.unknown_read = word
                self.search_here(word)
                if "/" in word.start:
                    self.look_through(word.start.rpartition("/")[0] or "/", glob=False)
                effects.ask("unknown_path", UNSURE_PATH, word)
            return
        if text == "-" or word.process:
            return
        if (kept := self.holds_secret(text, glob=word.glob)) is not None:
            if listing:
                self.looked_through = text, kept
            else:
                effects.warn_on_host("secret", f"{kept!r} is among what {text!r} leads to, and keeps secrets", word)
        if not listing:
            places = [found.real for found in self.resolved(text) if self.within(found.real)]
            self.searched += [(text, place, word) for real in places for place in self._places_at(real)]
        if word.glob and not self.pattern(text, word, effects, listing=listing):
            return
        for found in self.resolved(text):
            effects.touches.append(Access("read", found.real))
            effects.files = effects.files or not place_kinds.is_stream(found.real)
            if not listing and self.changeable(found):
                effects.reads_changeable = True
            if not self.reading(text, found, word, effects, listing=listing):
                return

    def reading(
        self, text: str, found: path_resolution.ResolvedPath, word: ShellWord, effects: CommandEffects, *, listing: bool
    ) -> bool:
        real = found.real
        if found.refused is not None:
            effects.ask(found.refused.code, found.refused.text, word)
        elif (what := place_kinds.describe_resolved_secret(found, self.judging.workspace)) is not None:
            effects.warn("secret", f"{text!r} keeps {what}", word)
        elif self.links and self.behind_link(found):
            effects.ask("unknown_path", f"{text!r} is behind a link that the command makes", word)
        elif self.judging.protected and self.keeps(found):
            effects.warn("own", "files by which Handrail judges are named in it", word)
        elif place_kinds.is_stream(real):
            return True
        elif path_resolution.describe_device(real, seen=self.seen) is not None:
            effects.ask("device", f"{text!r} is a device", word)
        elif listing or self.within(real):
            return True
        elif self.passing(real):
            if self.judging.sandbox is None:
                # Inside, temporary files are the session's own; on the host they may be anybody's.
                effects.ask("read_outside", f"{text!r} is outside the workspace", word)
        elif word.glob or not (place_kinds.is_public(real) or self.readable(real)):
            effects.ask("read_outside", f"{text!r} is outside the workspace", word)
        else:
            return True
        return False

    def behind_link(self, found: path_resolution.ResolvedPath) -> bool:
        return any(found.written == link or found.written.startswith(f"{link}/") for link in self.links)

    def pattern(self, text: str, word: ShellWord, effects: CommandEffects, *, listing: bool) -> bool:
        """Return True if a glob can match only files that may be read."""
        folder, _, name = text.rpartition("/")
        if any(self.fits_keys(found.real) for found in self.resolved(text)):
            effects.warn("own", f"the pattern {text!r} fits what lets a person answer Handrail", word)
            return False
        if GLOB_CHARACTER.search(folder) and (folder.removeprefix("./").startswith(("/", "~", ".")) or "/." in folder):
            effects.ask("pattern", "the pattern looks into folders that are not named", word)
            return False
        if listing and not name.startswith((".", "[", "{")) and not GLOB_CHARACTER.search(folder):
            return True
        if listing and not text.startswith(("/", "~", ".", "[", "{")) and not re.search(r"/[.\[{]", text):
            return True
        fits = find_matching_secret(text)
        if fits is None or (
            name.startswith("*.") and fits in path_resolution.SECRET_NAMES and not self.any_secret(folder, name)
        ):
            return True
        told = f"the pattern {text.removeprefix('./')!r} fits names of secrets such as {fits!r}"
        doubt = Finding(Reason("secret", told, word.span), None if name[:1] == "*" else Decision.CONFIRM)
        if self.judging.sandbox is not None and _means_any(text) and self.finds_no_secret(text):
            # Should there be one by then, the sandbox hides it.
            effects.unconfined.append(doubt)
            return True
        effects.doubts.append(doubt)
        return False

    def look_through(self, text: str, *, glob: bool) -> None:
        """Take down a place whose names the line may come to know."""
        if text and (kept := self.holds_secret(text, glob=glob)) is not None:
            self.looked_through = text, kept

    def search_here(self, word: ShellWord) -> None:
        """Take down that a word may have any file below the working directories read."""
        self.searched += [(".", os.path.realpath(cwd), word) for cwd in self.cwds if self.within(str(cwd))]

    def secrets_searched(self) -> Iterator[Finding]:
        """Yield why reads in the workspace reveal secrets if the line runs outside the sandbox, which hides them.

        Without a sandbox, every search in the workspace already requires approval as a search, and the finding has no
        floor.
        """
        floor = None if self.judging.sandbox is None else Decision.CONFIRM
        for text, folder, word in dict.fromkeys(self.searched):
            if (kept := place_kinds.find_secret_within(folder)) is not None:
                told = f"{kept!r} is among what {text!r} leads to, and keeps secrets"
                yield Finding(Reason("secret", told, word.span), floor)

    def holds_secret(self, text: str, *, glob: bool) -> str | None:
        """Return a place with secrets below a text's path, or among a glob's matches; None if no known name is found.

        Places in the workspace do not count, nor do those that any user may see.
        """
        for found in self.resolved(text):
            real = found.real
            if self.within(real) or place_kinds.is_stream(real) or place_kinds.is_public(real):
                continue
            below = glob or text.endswith(f"/{SOME_BELOW}")
            for place in self._fitted(real) if below else {real, found.written}:
                if (kept := self._secret_at(place)) is not None:
                    return kept
        return None

    def _secret_at(self, place: str) -> str | None:
        """Return the place at or below this one that keeps secrets or lets someone answer prompts, or None."""
        own = next((str(key) for key in self.judging.keys if f"{key}/".startswith(f"{place.rstrip('/')}/")), None)
        if own is not None or path_resolution.describe_secret(place) is not None:
            return own or place
        return place_kinds.find_secret_below(place, self.judging.home)

    def _fitted(self, pattern: str) -> Sequence[str]:
        folders = sum(GLOB_CHARACTER.search(name) is not None for name in pattern.split("/")[:-1])
        return self._lookup.matching(pattern) if folders <= MAX_PATTERNS else (get_fixed_folder(pattern),)

    def _places_at(self, real: str) -> Sequence[str]:
        """Return the existing places that a resolved path or pattern refers to."""
        return (get_fixed_folder(real),) if real.endswith(f"/{SOME_BELOW}") else self._lookup.matching(real)

    def fits_keys(self, pattern: str) -> bool:
        """Return True if a resolved pattern could match anything in a directory that no tool may read."""
        names = pattern.split("/")
        return any(
            len(names) >= len(key) and all(_matches_glob(name, shape) for name, shape in zip(key, names, strict=False))
            for key in (str(place).split("/") for place in self.judging.keys)
        )

    def any_secret(self, folder: str, name: str) -> bool:
        """Return True if an existing file matches a pattern and keeps a secret; only names are examined."""
        for found in self.resolved(folder or "."):
            with contextlib.suppress(OSError):
                entries = os.listdir(found.real)
                if len(entries) > MAX_ENTRIES or any(
                    path_resolution.describe_secret(entry)
                    for entry in entries
                    if is_glob_match(entry, name, if_long=True)
                ):
                    return True
        return False

    def finds_no_secret(self, text: str) -> bool:
        """Return True if a pattern fits nothing outside the workspace, and no file that keeps a secret by its name."""
        if "{" in text:
            # The shell makes several patterns of it.
            return False
        found = self.resolved(text)
        return all(self.within(one.real) for one in found) and not any(
            path_resolution.describe_secret(place) for one in found for place in self._lookup.matching(one.real)
        )

    def picks_no_options(self, text: str) -> bool:
        """Return True if what a pattern fits begins like no option of a program and like no assignment."""
        first = text.partition("/")[0]
        if "{" in text:
            return False
        for cwd in self.cwds:
            try:
                entries = os.listdir(cwd)
            except OSError:
                return False
            if len(entries) > MAX_ENTRIES or any(
                (entry.startswith("-") or "=" in entry) and is_glob_match(entry, first, if_long=True)
                for entry in entries
            ):
                return False
        return True

    # Changing

    def write(
        self,
        word: ShellWord,
        effects: CommandEffects,
        *,
        text: str | None = None,
        name: str | None = None,
        into: Sequence[str] = (),
        loses: bool = True,
        names_unknown: bool = False,
    ) -> None:
        """Writing the file that a word names, or the file `name` in the folder that it names.

        `into`: the names under which files go into it if it is a folder; `names_unknown`: without these, any may. `loses`: what was in the file
        is overwritten.
        """
        text = word.text if text is None else text
        if text is None:
            effects.warn("unknown_target", "which file it writes depends on something unknown", word)
            return
        if word.process:
            return
        if name:
            text = os.path.join(text, name)
        for found in self.resolved(text):
            if place_kinds.is_stream(found.real):
                continue
            written = [found.real]
            if into and os.path.isdir(found.real):
                written = [f"{found.real.rstrip('/')}/{below}" for below in into]
            effects.touches += [Access("write", each) for each in written]
            if loses:
                self.lose(written, effects)
            if names_unknown and self.within(found.real) and any(map(os.path.isdir, written)):
                told = f"it writes files whose names are not known into {text!r}, and programs may obey these"
                self.unknown_names.append(Finding(Reason("autorun", told, word.span), Decision.CONFIRM))
            if not self.changing(text, found, word, effects, does="writes to"):
                return

    def delete(self, word: ShellWord, effects: CommandEffects, *, text: str | None = None, tree: bool = False) -> None:
        """Deleting what a word names; `tree`: with all that is in it."""
        text = word.text if text is None else text
        if text is None:
            effects.warn("unknown_target", "what it deletes depends on something unknown", word)
            return
        for found in self.resolved(text):
            if not text.endswith("/"):
                found = self.itself(found)
            effects.touches.append(Access("delete", found.real))
            self.lose((found.real,), effects)
            if not self.changing(text, found, word, effects, does="deletes"):
                return
            if (bulk := self.bulk(text, found.real, word.glob)) is not None:
                warn = effects.warn_on_host if self.is_private(found.real) else effects.warn
                warn("bulk_delete", f"it deletes {bulk}", word)
                return

    def is_private(self, real: str) -> bool:
        """Return True for the folders for temporary files and what is in them, where a sandboxed command has its own in their place."""
        offer = self.judging.sandbox
        own = offer is not None and offer.private_tmp and not self.within(real)
        return own and any(real == root or real.startswith(f"{root}/") for root in SHARED_TEMPORARY)

    def lose(self, paths: Sequence[str], effects: CommandEffects) -> None:
        """Take down that what is at these resolved paths may be lost; temporary files may."""
        for path in paths:
            if self.within(path) or not any(path.startswith(f"{root}/") for root in self.temporary):
                effects.losing.append(path)

    def renamed(self, text: str, other: str) -> Sequence[str]:
        """Return the resolved paths of a workspace file and of an unused name in its directory; otherwise empty."""
        sources, targets = self.resolved(text), self.resolved(other)
        if len(sources) != 1 or len(targets) != 1:
            return ()
        source, target = self.itself(sources[0]).real, targets[0].real
        same = os.path.dirname(source) == os.path.dirname(target) and self.within(source)
        plain = os.path.isfile(source) and not os.path.islink(source) and not os.path.lexists(target)
        # Of what has such a name undo keeps nothing.
        kept = os.path.basename(target) not in REPOSITORY_FOLDERS
        return (source, target) if same and plain and kept else ()

    def itself(self, found: path_resolution.ResolvedPath) -> path_resolution.ResolvedPath:
        """Return the place of a symlink itself, whose directory may be reached through symlinks."""
        if not found.linked:
            return found
        folder, _, name = found.written.rpartition("/")
        upper = path_resolution.resolve_path(folder or "/", cwd=self.cwds[0], home=self.judging.home, seen=self.seen)
        real = f"{upper.real.rstrip('/')}/{name}"
        return path_resolution.ResolvedPath(real, real, found.refused or upper.refused, found.doubtful)

    def changing(
        self, text: str, found: path_resolution.ResolvedPath, word: ShellWord, effects: CommandEffects, *, does: str
    ) -> bool:
        """Return True if a change at this place is an ordinary one."""
        effects.changes = True
        real = found.real
        lacks_sandbox = effects.network or self.judging.sandbox is None
        if lacks_sandbox and self.judging.protected and self.holds(found):
            told = f"files by which Handrail judges are in {text!r} and may be overwritten"
            effects.warn_on_host("own", told, word)
        if found.refused is not None:
            effects.ask(found.refused.code, found.refused.text, word)
        elif self.judging.protected and (self.keeps(found) or self.loses_own(found, does)):
            effects.warn("own_files", "files by which Handrail judges are named in it", word, Decision.DENY)
        elif (what := place_kinds.describe_resolved_secret(found, self.judging.workspace)) is not None:
            effects.warn("secret", f"{text!r} keeps {what}", word)
        elif path_resolution.describe_device(real, seen=self.seen) is not None:
            effects.warn("device", f"it {does} the device {real!r}", word)
        elif self.links and self.behind_link(found):
            effects.warn("unknown_target", f"{text!r} is behind a link that the command makes", word)
        elif not self.within(real) and not self.passing(real):
            self.elsewhere(text, found, word, effects, does)
        elif (what := self.autorun(real) or (found.linked and self.autorun(found.written)) or None) is not None:
            effects.warn("autorun", f"{what} obeys {text!r} without being asked", word)
        elif found.linked and not (self.within(found.written) or self.passing(found.written)):
            effects.warn("outside", f"it {does} {text!r}, outside the workspace", word)
        else:
            return True
        return False

    def elsewhere(
        self, text: str, found: path_resolution.ResolvedPath, word: ShellWord, effects: CommandEffects, does: str
    ) -> None:
        what = path_resolution.describe_startup(found.path, home=self.judging.home)
        if what is not None:
            effects.warn("persistence", f"{what} would run or obey {text!r} later", word)
        else:
            effects.warn("outside", f"it {does} {text!r}, outside the workspace", word)

    def autorun(self, place: str) -> str | None:
        """Return the kind of program that obeys a file of the workspace, or of a folder opened to the sandbox; None for temporary files."""
        for root in (*self.roots, *self.opened):
            if place.startswith(f"{root}/"):
                return place_kinds.describe_autorun(PurePath(place[len(root) + 1 :]))
        return place_kinds.describe_autorun(PurePath(place)) if self.within(place) else None

    def bulk(self, text: str, real: str, glob: bool) -> str | None:
        """Return a description of what is deleted entirely if that is too much, or None.

        Too much is the workspace, or all temporary files.
        """
        place = real
        while glob and (name := place.rpartition("/")[2]) and set(name) <= WILDCARD_CHARS:
            place = place.rpartition("/")[0] or "/"
        tops = (
            *self.roots,
            *map(str, self.judging.workspace),
            *(str(cwd) for cwd in self.cwds if self.within(str(cwd))),
        )
        if any(str(cwd).startswith(f"{place}/") for cwd in self.cwds if self.within(place)):
            return "everything in the folder it works in"
        if place in tops or any(root.startswith(f"{place}/") for root in self.roots):
            return "everything in the folder it works in" if place in tops else f"{place!r}"
        return f"all that is in {place!r}" if place in self.open else None


def _means_any(text: str) -> bool:
    """Return True for a pattern in plain directories that hardly restricts the names it matches.

    Examples are `*`, `src/*.*` and `c*`.
    """
    plain = not any(part.startswith(".") for part in text.removeprefix("./").split("/"))
    return plain and sum(map(str.isalnum, text.rpartition("/")[2])) < LETTERS


def _matches_glob(name: str, shape: str) -> bool:
    """Return True if a shell expands a pattern to this name; a leading dot is matched only by a leading dot."""
    return (not name.startswith(".") or shape.startswith(".")) and is_glob_match(name, shape, if_long=True)
