"""Limits on how a sandboxed command may change a git repository.

It may change the content, but nothing that git runs or obeys at the next `git status`.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from handrail.fs import sensitive_paths
from handrail.sandbox.git_commands import (
    ALWAYS_OVERRIDDEN,
    MAX_VALUE,
    is_fixed_command,
    is_interpreter,
    override_value,
    run_command,
)
from handrail.sandbox.leftovers import is_present_or_unknown
from handrail.sandbox.path_links import iter_path_steps

__all__ = [
    "HOOKS_KEY",
    "find_single_repository",
    "has_unsettled_hooks",
    "is_without_hooks",
    "iter_work_trees",
    "list_common_settings",
    "overriding_settings",
]

# Within the folder of a repository, a submodule's or a worktree's: programs, and names of programs and of folders that hold them.
OBEYED_NAMES = ("hooks", "config", "config.worktree", "commondir", "gitdir")
# What is left to do of a rebase that stopped, below the folder of a repository, a submodule or a worktree; and the lines in it that run a command.
REBASE_FOLDER, TODO_FILE = "rebase-merge", "git-rebase-todo"
EXEC_LINE = re.compile(r"^[ \t]*(?:exec|x)(?:[ \t].*)?$", re.MULTILINE)
# Below the folder of a repository, that of its further work trees.
WORK_TREES = "worktrees"
# Folders of a repository whose files are remotes by their names.
NAMING_REMOTES = ("remotes", "branches")
# Below the folder of a repository, the file that names others whose objects are its own, too.
ALTERNATES_PATH = ("objects", "info", "alternates")
# Files of settings that are larger, together with those that they include, count as ones that name what nobody can tell.
MAX_SETTINGS_BYTES = 4_000_000
# The same of a list of what is left to do of a rebase.
MAX_TODO_BYTES = 64_000
MAX_MODULES = 100
MAX_HOOKS = 200
# The setting that names a folder of hooks, as all keys in small letters.
HOOKS_KEY = "core.hookspath"
# Settings that name more count as ones that nobody can tell: of all that hold in a work tree the files, which may include others, and the letters
# of values that may name something.
MAX_SETTINGS_FILES = 100
MAX_NAMING = 64_000
# What a new repository's own settings may say without naming a program, a file or another repository's settings.
PLAIN_SETTINGS = re.compile(
    r"""(?ix)
    core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol)
    | user\.(?:name|email) | init\.defaultbranch | (?:remote|branch)(?:\..+)?\.(?:url|fetch|remote|merge|pushurl|rebase)
    | commit\.gpgsign | pull\.(?:rebase|ff) | extensions\.objectformat | advice\..+
    """
)
# Settings that name files which git reads and does not obey: they may lie in a work tree like any other.
READ_SETTINGS = re.compile(
    r"core\.(?:excludesfile|attributesfile)|blame\.ignorerevsfile|commit\.template|mailmap\.file"
)
# Sections whose settings name nothing at all.
NAMELESS = ("branch.", "url.", "user.", "color.", "advice.")
# In the command of a setting, what stands for the work tree and for the person's home.
TOPLEVEL_PATTERN = re.compile(
    r"""(?x) ["']? (?: \$\( \s*git\s+rev-parse\s+--show-toplevel (?:\s+2>\s*/dev/null)? \s*\)
    | ` \s*git\s+rev-parse\s+--show-toplevel (?:\s+2>\s*/dev/null)? \s*` ) (?: ["'](?=/) )?"""
)
HOME_VARIABLE = re.compile(r"""\$(?:HOME|\{HOME\})["']?(?=/)""")
# What divides the words of a command, and what stands in one for a name that only a shell can tell.
BETWEEN_WORDS = re.compile(r"[\s;&|()]+")
TOLD_BY_SHELL = re.compile(r"[$`]")
# An expression for sed or perl, which is no name of a file.
EXPRESSION_PATTERN = re.compile(
    r"""(?x) (?<=[\s'"]) [\d,$]* (?: s | y | tr ) ([/|,#@!:]) (?:\\.|(?!\1).)* \1 (?:\\.|(?!\1).)* \1 [gpiImM\d]* (?= $ | [\s'";}] )"""
)
# What tells the name of a file from other words; and what stands for several names, or none.
FILE_NAME = re.compile(r"[./]")
NO_FILE = re.compile(r"[\[\]{}*?<>|%]|^[.:]+$")
SECTION_LINE = re.compile(r'\[\s*([A-Za-z0-9.-]+)(?:\s+"((?:[^"\\\n]|\\.)*)")?\s*\]\s*(.*)')
# What a file of settings consists of: blanks and comments, headers, and settings whose value may go on in the next line.
PART = re.compile(
    r"""(?x) (?: \s++ | [\#;][^\n]*+ )
    | \[ [ \t]* (?P<section>[A-Za-z0-9.-]+) (?: [ \t]+ "(?P<named>(?:[^"\\\n]|\\.)*+)" )? [ \t]* \]
    | (?P<name>[A-Za-z][A-Za-z0-9-]*+) [ \t]*+ (?: = (?P<value>(?: [^\n"\\#;] | \\(?s:.) | "(?:[^"\\\n]|\\(?s:.))*+ "? )*+ ) )?+
    | [^\n]++ """
)
# A line that goes on in the next one, and the parts of a value.
CONTINUED_LINE = re.compile(r"(?<!\\)((?:\\\\)*)\\\n")
VALUE_PART = re.compile(r"""(?x) "(?P<quoted>(?:\\.|[^"\\])*)"? | (?P<escaped>\\.) | [#;].* | (?P<plain>[^"\\#;]+) """)
ESCAPED_CHAR = re.compile(r"\\(.)")
ESCAPE_VALUES = {"n": "\n", "t": "\t", "b": "\b"}
KEY_LINE = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*(.*))?$")


def iter_obeyed_places(git: Path) -> Iterator[Path]:
    """Yield the existing paths in a `.git` directory that no command may change.

    Those of its submodules and worktrees are included.
    """
    for folder in _list_all_folders(git):
        for name in OBEYED_NAMES:
            if os.path.lexists(folder / name):
                yield folder / name


def iter_obeyed_links(git: Path) -> Iterator[Path]:
    """Yield the obeyed paths that are symlinks.

    Their targets can be kept as they are; the links themselves can only be watched.
    """
    return (place for place in iter_obeyed_places(git) if place.is_symlink())


def find_rebase_commands(git: Path) -> dict[Path, frozenset[str] | None]:
    """Return the stopped rebases that would run commands when continued, keyed by the path of their todo list.

    The value is None if the list cannot be read or is reached through a symlinked directory; in the latter case the key
    is that directory. Lists without commands are omitted.
    """
    found: dict[Path, frozenset[str] | None] = {}
    for folder in _list_all_folders(git):
        rebase, todo = folder / REBASE_FOLDER, folder / REBASE_FOLDER / TODO_FILE
        if not is_present_or_unknown(todo):
            continue
        text = None if rebase.is_symlink() else _read_small_file(todo, most=MAX_TODO_BYTES)
        commands = None if text is None else frozenset(line.strip() for line in EXEC_LINE.findall(text))
        if commands is None or commands:
            found[rebase if rebase.is_symlink() else todo] = commands
    return found


def iter_missing_obeyed(git: Path, settings: Iterable[Path] = ()) -> Iterator[Path]:
    """Yield paths that git would obey in `.git` or by its settings, that do not exist and must not be created."""
    of_trees = (folder / "config.worktree" for folder in _list_folders(git / WORK_TREES))
    places = (*(git / name for name in OBEYED_NAMES), *of_trees, *iter_configured_places(git, settings))
    yield from (place for place in places if not os.path.lexists(place))


def iter_configured_places(git: Path, settings: Iterable[Path] = ()) -> Iterator[Path]:
    """Yield the paths that a repository's own settings name: other hooks, more settings, programs. They may not exist.

    Each word of a possible command is taken as the name of a file in the work tree. The targets of symlinked hooks are
    included. `settings` are further settings files that apply to the repository (see `list_common_settings`).
    """
    yield from _iter_link_targets(git / "hooks")
    for tree, files in _iter_trees_with_settings(git, settings):
        yield from iter_places_in_settings(files, tree)


def iter_paths_to_obeyed(git: Path, settings: Iterable[Path] = ()) -> Iterator[Path]:
    """Yield the configured paths as written, including any symlinks on the way, and the symlinks among the hooks."""
    hooks = [folder / "hooks" for folder in _list_all_folders(git)]
    for named in _iter_all_named(git, settings):
        if named.is_kept:
            yield named.way
        if named.key == HOOKS_KEY:
            hooks.append(named.way)
    for folder in hooks:
        yield from _list_links(folder)


def list_common_settings(home: Path, environment: Mapping[str, str]) -> Sequence[Path]:
    """Return the settings files that apply to all repositories: the user's and the machine's."""
    own = environment.get("XDG_CONFIG_HOME") or home / ".config"
    given = environment.get("GIT_CONFIG_GLOBAL")
    of_person = (Path(own, "git/config"), home / ".gitconfig") if given is None else (Path(given),)
    return Path(environment.get("GIT_CONFIG_SYSTEM") or "/etc/gitconfig"), *of_person


def iter_places_in_settings(settings: Iterable[Path], work: Path) -> Iterator[Path]:
    """Yield the paths that these settings files name for a work tree, and the targets of symlinks among them."""
    for named in _parse_named_places(settings, work):
        if named.is_kept:
            yield named.place
            yield from _iter_link_targets(named.place)


def has_unsettled_hooks(git: Path, settings: Iterable[Path] = (), *, used: Collection[Path] = ()) -> bool:
    """Return True if git could put a hook in place itself and then run it.

    This is the case if a hooks directory, or the target of a symlinked hook, is missing or lies behind a symlink.
    `used` are the work trees that git works in, besides submodules; empty means all.
    """
    trees = _list_real_trees(git)
    own = [Path(os.path.realpath(folder), "hooks") for folder in _list_all_folders(git)]
    named = [named.way for named in _iter_all_named(git, settings, used=used) if named.key == HOOKS_KEY]
    return not (
        all(_are_settled(hooks, trees, held=hooks) for hooks in own if os.path.lexists(hooks))
        and all(_are_settled(hooks, trees) for hooks in named)
    )


def unsettled_setting(
    git: Path, settings: Iterable[Path] = (), *, used: Collection[Path] = (), writable: Iterable[Path] = ()
) -> str | None:
    """Return a setting by which git could run a program, or obey further settings, that it puts in place itself.

    None if such a setting does not exist. Included settings must exist and not lie behind a symlink in a work tree. A
    command must be a single program outside all work trees and `writable` directories, followed only by options, unless
    `overriding_settings` replaces it (see `is_fixed_command`). `used` are the work trees that git works in, besides
    submodules; empty means all.
    """
    trees = _list_real_trees(git)
    folders = (*trees, *writable)
    for setting in _all_settings(git, settings, used=used):
        if setting.unclear or (
            not _is_settled(setting.way, trees, os.path.isfile)
            if setting.way is not None
            else override_value(setting.key) is None and not _is_fixed(setting, folders)
        ):
            return setting.key
    return None


def overriding_settings(
    git: Path, settings: Iterable[Path] = (), *, used: Collection[Path] = (), writable: Iterable[Path] = ()
) -> Iterator[tuple[str, str]]:
    """Yield the settings to pass to git to keep it from running programs by settings that it can do without.

    The parameters are those of `unsettled_setting`.
    """
    yield from ALWAYS_OVERRIDDEN.items()
    folders = (*_list_real_trees(git), *writable)
    given: set[str] = set()
    for setting in _all_settings(git, settings, used=used):
        value = override_value(setting.key)
        if value is not None and setting.key not in given and not _is_fixed(setting, folders):
            given.add(setting.key)
            yield setting.key, value


def _is_fixed(setting: _Setting, writable: Iterable[Path]) -> bool:
    command = run_command(setting.key, setting.value)
    return command is None or is_fixed_command(command, writable)


def _list_real_trees(git: Path) -> Sequence[Path]:
    return [Path(os.path.realpath(tree)) for tree in iter_work_trees(git)]


def _iter_all_named(git: Path, settings: Iterable[Path], *, used: Collection[Path] = ()) -> Iterator[_NamedPlace]:
    for tree, files in _iter_trees_with_settings(git, settings, used=used):
        yield from _parse_named_places(files, tree)


def _all_settings(git: Path, settings: Iterable[Path], *, used: Collection[Path] = ()) -> Iterator[_Setting]:
    for _, files in _iter_trees_with_settings(git, settings, used=used):
        yield from _read_settings(files)


def _iter_trees_with_settings(
    git: Path, settings: Iterable[Path], *, used: Collection[Path] = ()
) -> Iterator[tuple[Path, Sequence[Path]]]:
    """Yield the work trees with the files of settings that hold there. Of the repository's own only those that are `used`, if any is."""
    common = tuple(settings)
    for tree in iter_work_trees(git) if git.name == ".git" else (git,):
        folders = (git,) if tree in (git, git.parent) else resolve_gitdir_file(tree / ".git")
        if used and git in folders and tree not in used:
            continue
        yield tree, (*(folder / name for folder in folders for name in ("config", "config.worktree")), *common)


def _are_settled(hooks: Path, trees: Sequence[Path], *, held: Path | None = None) -> bool:
    """Return True if a folder of hooks is settled, and what the hooks in it are links to: the links themselves cannot be changed there."""
    if not _is_settled(hooks, trees, os.path.isdir, held=held):
        return False
    folder = Path(os.path.realpath(hooks))
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry, _ in zip(entries, range(MAX_HOOKS + 1), strict=False)]
    except OSError:
        return True
    links = [Path(entry.path) for entry in found if entry.is_symlink()]
    return len(found) <= MAX_HOOKS and all(_is_settled(link, trees, os.path.isfile, held=folder) for link in links)


def _is_settled(way: Path, trees: Sequence[Path], fits: Callable[[Path], bool], *, held: Path | None = None) -> bool:
    """Return True if git cannot replace what is at a path.

    The path must exist, and no part of it inside a work tree may be a symlink. Symlinks in the directory `held` do not
    count, as they cannot be changed. A path outside all work trees is settled.
    """
    steps = [step for step in iter_path_steps(way) if any(step.is_relative_to(tree) for tree in trees)]
    loose = [step for step in steps if held is None or not step.is_relative_to(held)]
    return not steps or (fits(way) and not any(step.is_symlink() for step in loose))


def resolve_gitdir_file(git: Path) -> tuple[Path, ...]:
    """Return the directories that a `.git` file points to, if they point back to it.

    That is the repository's directory for a worktree, or the submodule's own directory.
    """
    text = _read_small_file(git)
    if text is None or not text.startswith("gitdir:"):
        return ()
    own = Path(os.path.realpath(git.parent / text[len("gitdir:") :].strip()))
    back = _read_small_file(own / "gitdir")
    if back is not None and os.path.realpath(back.strip()) == os.path.realpath(git):
        common = _read_small_file(own / "commondir")
        folder = Path(os.path.realpath(own / (common or ".").strip()))
        # A worktree's folder lies in its repository's; anything else leads somewhere by the back door.
        return (folder,) if own.parent.parent == folder and folder.name == ".git" else ()
    try:
        settings = dict(_parse_strict_settings(_read_small_file(own / "config") or ""))
    except ValueError:
        return ()
    belongs = os.path.realpath(own / settings.get("core.worktree", ".")) == os.path.realpath(git.parent)
    return (own,) if belongs else ()


def new_work_tree(git: Path) -> Path | None:
    """Return the `.git` directory of the repository that a `.git` file adds a work tree to.

    None unless both ends are as git writes them. Such a tree has no separate settings, and Handrail and git read the
    names in these files in the same way.
    """
    folder, text = next(iter(resolve_gitdir_file(git)), None), _read_small_file(git)
    if folder is None or text is None:
        return None
    written = text.removeprefix("gitdir: ").removesuffix("\n")
    own = git.parent / written
    is_plain = text == f"gitdir: {written.strip()}\n" and "\n" not in written
    is_plain = is_plain and os.path.normpath(own) == os.path.realpath(own)
    own = Path(os.path.normpath(own))
    return folder if is_plain and own.parent == folder / WORK_TREES and _names_no_settings(own) else None


def _names_no_settings(own: Path) -> bool:
    """Return True if a work tree's directory in its repository is as git creates it.

    That is, it has no settings, hooks or links itself.
    """
    strange = any(os.path.lexists(own / name) for name in OBEYED_NAMES[:3])
    return (
        not strange and _read_small_file(own / "commondir") == "../..\n" and _read_small_file(own / "HEAD") is not None
    )


def named_for_tree(git: Path, tree: Path, settings: Iterable[Path]) -> Iterator[Path]:
    """Yield the places in a work tree that settings of its repository (`git`), and these further files of settings, name and that are there."""
    for place in iter_places_in_settings((git / "config", git / "config.worktree", *settings), tree):
        if place.is_relative_to(tree) and is_present_or_unknown(place):
            yield place


def find_single_repository(gits: Iterable[str]) -> Path | None:
    """Return the directory of the one repository that all these `.git` paths are or point to.

    None if there are several, or if one of them points elsewhere.
    """
    folders = {_find_repository_folder(Path(git)) for git in gits}
    return folders.pop() if len(folders) == 1 else None


def _find_repository_folder(git: Path) -> Path | None:
    if git.is_symlink():
        return None
    if git.is_dir():
        return git
    # What belongs to a submodule lies in the repository around it.
    return next(
        (
            outermost
            for own in resolve_gitdir_file(git)
            for outermost in (*reversed(own.parents), own)
            if outermost.name == ".git"
        ),
        None,
    )


def iter_work_trees(git: Path) -> Iterator[Path]:
    """Yield the work trees of a repository: its own, those of its submodules, and the additional ones.

    Trees that do not point back to the repository are left out.
    """
    yield git.parent
    for folder in _iter_module_folders(git / "modules"):
        named = dict(_parse_settings(_read_small_file(folder / "config") or "")).get("core.worktree")
        if named is not None:
            yield from _iter_if_leading_back(Path(os.path.realpath(folder / named)))
    for folder in _list_folders(git / WORK_TREES):
        if (text := _read_small_file(folder / "gitdir")) is not None:
            yield from _iter_if_leading_back(Path(os.path.realpath(text.strip())).parent)


def _iter_if_leading_back(tree: Path) -> Iterator[Path]:
    if resolve_gitdir_file(tree / ".git"):
        yield tree


def is_harmless_repository(git: Path) -> bool:
    """Return True if a new `.git` directory is as `git init` makes it.

    That is, it has only sample hooks, and no setting that names a program.
    """
    try:
        if not stat.S_ISDIR(os.lstat(git).st_mode) or any(os.path.lexists(git / name) for name in OBEYED_NAMES[2:]):
            return False
        hooks = git / "hooks"
        strange = hooks.is_symlink() or (hooks.exists() and not all(n.endswith(".sample") for n in os.listdir(hooks)))
        if strange or find_rebase_commands(git):
            return False
    except OSError:
        return False
    text = _read_small_file(git / "config")
    try:
        return text is not None and all(PLAIN_SETTINGS.fullmatch(key) for key, _ in _parse_strict_settings(text))
    except ValueError:
        return False


def is_without_hooks(git: Path, settings: Iterable[Path]) -> bool:
    """Return True if a repository is `is_harmless_repository` and further settings files add nothing to run.

    That is, they name no hooks for it, and no program in its work tree.
    """
    work = git.parent
    return is_harmless_repository(git) and not any(
        place.is_dir() or (place.is_relative_to(work) and is_present_or_unknown(place))
        for place in iter_places_in_settings(settings, work)
    )


def iter_leading_elsewhere(git: Path, has_changed: Callable[[Path], bool]) -> Iterator[Path]:
    """Yield changed paths in a `.git` directory that make git write to, read from or obey something elsewhere.

    These are symlinks, files that name remotes or alternate objects, and nested repositories other than submodules and
    work trees that name no program.
    """
    waiting = [git]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        new = folder != git and any(has_changed(folder / name) for name in OBEYED_NAMES)
        if new and _is_foreign_repository(folder, {entry.name for entry in found}, git):
            yield folder
            continue
        # A branch may have such a name, too.
        names_remotes = folder.name in NAMING_REMOTES and (folder.parent / "objects").exists()
        for entry in found:
            path = Path(entry.path)
            named = names_remotes or path.parts[-3:] == ALTERNATES_PATH
            if entry.is_dir(follow_symlinks=False):
                # Objects themselves lie in folders of two letters.
                if folder.name != "objects" or entry.name in ("info", "pack"):
                    waiting.append(path)
            elif (entry.is_symlink() or named) and has_changed(path):
                yield path


def _is_foreign_repository(folder: Path, names: Set[str], git: Path) -> bool:
    """Return True for another repository inside a `.git` directory, unless nothing in it makes git run a program."""
    another = sensitive_paths.is_repository(sensitive_paths.REPOSITORY_NAMES.intersection(names))
    of_tree = folder.parent == git / WORK_TREES and _names_no_settings(folder)
    return another and not of_tree and not is_harmless_repository(folder) and not _is_submodule(folder, git)


def _is_submodule(folder: Path, git: Path) -> bool:
    """Return True for a submodule's repository that names no program.

    It may not name a work tree outside that of the repository it is in, either.
    """
    if not folder.is_relative_to(git / "modules") or (text := _read_small_file(folder / "config")) is None:
        return False
    rest = [(key, value) for key, value in _parse_settings(text) if not PLAIN_SETTINGS.fullmatch(key)]
    inside = all(
        key == "core.worktree" and Path(os.path.realpath(folder / value)).is_relative_to(git.parent)
        for key, value in rest
    )
    hooks = folder / "hooks"
    return (
        inside
        and not hooks.is_symlink()
        and not (hooks.is_dir() and any(not n.endswith(".sample") for n in os.listdir(hooks)))
    )


class _NamedPlace(NamedTuple):
    """Path that a setting may name, as written.

    `unclear`: the name can be determined only by a shell, or not at all.
    """

    key: str
    way: Path
    unclear: bool = False

    @property
    def place(self) -> Path:
        return Path(os.path.normpath(self.way))

    @property
    def is_kept(self) -> bool:
        """Return True if git obeys it: a folder counts only where a setting names nothing else."""
        obeyed = self.key == HOOKS_KEY or _is_include(self.key)
        return not self.unclear and (obeyed or not self.place.is_dir())


class _Setting(NamedTuple):
    """A setting that holds for a repository.

    `way`: the place of the settings that it includes. `unclear`: settings that cannot be read.
    """

    key: str
    value: str
    way: Path | None = None
    unclear: bool = False


def _read_settings(files: Iterable[Path]) -> Iterator[_Setting]:
    """Yield the settings of files that may name something, with those that they include: each file once, and up to a bound in total."""
    waiting = list(files)
    met, read = set(waiting), set[tuple[str, str]]()
    size = said = 0
    while waiting:
        file = waiting.pop(0)
        # A person's own settings are often a link. What they include lies beside the link.
        real = os.path.realpath(file)
        if (real, beside := os.path.realpath(file.parent)) in read:
            continue
        read.add((real, beside))
        text = _read_small_file(Path(real))
        size += _read_size(Path(real)) if text is None else len(text)
        if size > MAX_SETTINGS_BYTES or len(read) > MAX_SETTINGS_FILES:
            yield _Setting("include.path", str(file), unclear=True)
            return
        for key, value in _naming_settings(text or ""):
            if (said := said + len(value)) > MAX_NAMING:
                yield _Setting(key, value, unclear=True)
                return
            way = _resolve_name(value, file.parent) if _is_include(key) else None
            yield _Setting(key, value, way)
            if way is not None and way not in met:
                met.add(way)
                waiting.append(way)


def _parse_named_places(files: Iterable[Path], work: Path) -> Iterator[_NamedPlace]:
    """Yield the places that files of settings name."""
    for key, value, way, unclear in _read_settings(files):
        if unclear:
            yield _NamedPlace(key, work, unclear=True)
        elif way is not None or (key == HOOKS_KEY and (way := _resolve_name(value, work)) is not None):
            yield _NamedPlace(key, way)
        elif not key.startswith("alias.") or value.startswith("!"):
            yield from _iter_command_files(key, value.lstrip("!"), work)


def _is_include(key: str) -> bool:
    return key.startswith("include") and key.endswith(".path")


def _iter_command_files(key: str, command: str, work: Path) -> Iterator[_NamedPlace]:
    """Yield the files that a command may name, which git runs at the top of a work tree."""
    if len(command) > MAX_VALUE:
        yield _NamedPlace(key, work, unclear=True)
        return
    command = EXPRESSION_PATTERN.sub(" ", HOME_VARIABLE.sub("~", TOPLEVEL_PATTERN.sub(".", command)))
    if _has_unclear_name(re.sub("[\"']", "", command)):
        yield _NamedPlace(key, work, unclear=True)
    words = [word for word in re.split(r"""[\s"';&|()]+""", command) if word]
    runs_words = bool(words) and is_interpreter(words[0])
    for number, whole in enumerate(words):
        # What stands behind `--option=` or `NAME=`; the name of a file may have such a sign, too.
        for word in dict.fromkeys((whole, whole.rpartition("=")[2])):
            named = FILE_NAME.search(word) is not None or (runs_words and number > 0)
            if named and _may_be_file(word) and (way := _resolve_name(word, work)) is not None:
                yield _NamedPlace(key, way)


def _has_unclear_name(command: str) -> bool:
    """Return True if only a shell can tell the name of a file in a command without quotes."""
    words = BETWEEN_WORDS.split(command)
    return ")/" in command or any("/" in word[found.end() :] for word in words if (found := TOLD_BY_SHELL.search(word)))


def _may_be_file(word: str) -> bool:
    return bool(word) and not word.startswith("-") and NO_FILE.search(word) is None


def _iter_link_targets(place: Path) -> Iterator[Path]:
    """Yield where a place leads, if it is a link, and where the links in it lead."""
    if place.is_symlink():
        yield Path(os.path.realpath(place))
    yield from (Path(os.path.realpath(link)) for link in _list_links(place))


def _list_links(folder: Path) -> Iterable[Path]:
    try:
        with os.scandir(folder) as entries:
            return [Path(e.path) for e, _ in zip(entries, range(MAX_HOOKS), strict=False) if e.is_symlink()]
    except OSError:
        return ()


def _resolve_name(name: str, folder: Path) -> Path | None:
    return None if "\0" in name else folder / os.path.expanduser(name)


def _iter_module_folders(folder: Path, depth: int = 4) -> Iterator[Path]:
    """Yield the directories of submodules, whose names may have several parts."""
    for below in _list_folders(folder):
        if os.path.lexists(below / "HEAD"):
            yield below
            yield from _iter_module_folders(below / "modules", depth - 1) if depth else ()
        elif depth:
            yield from _iter_module_folders(below, depth - 1)


def _list_folders(folder: Path) -> Iterable[Path]:
    try:
        with os.scandir(folder) as entries:
            return [
                Path(e.path)
                for e, _ in zip(entries, range(MAX_MODULES), strict=False)
                if e.is_dir(follow_symlinks=False)
            ]
    except OSError:
        return ()


def _list_all_folders(git: Path) -> Iterable[Path]:
    """Return a repository's directory and those of its submodules and worktrees."""
    return (git, *_iter_module_folders(git / "modules"), *_list_folders(git / WORK_TREES))


def _read_small_file(file: Path, *, most: int = MAX_SETTINGS_BYTES) -> str | None:
    """Return the text of a small regular file, or None for anything else."""
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size > most:
            return None
        return os.read(fd, most).decode("utf-8", "replace")
    except OSError:
        return None
    finally:
        os.close(fd)


def _read_size(file: Path) -> int:
    try:
        return os.stat(file).st_size
    except OSError:
        return 0


def _parse_strict_settings(text: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of a git configuration as dotted keys with their values.

    Raises ValueError for a line that is not clearly a setting.
    """
    for key, value in _iter_setting_lines(text):
        if key is None or value.endswith("\\"):
            raise ValueError(f"{value!r} is not plainly a setting")
        yield key, value.strip('"')


@lru_cache(maxsize=16)
def _parse_settings(text: str) -> Sequence[tuple[str, str]]:
    """Return the settings in a text as git reads them, as far as they can be determined."""
    section = ""
    found: list[tuple[str, str]] = []
    for part in PART.finditer(text.removeprefix("\ufeff").replace("\r\n", "\n")):
        if part["section"] is not None:
            section = part["section"].lower() + (f".{part['named']}" if part["named"] is not None else "")
        elif part["name"] is not None:
            value = part["value"]
            said = "true" if value is None else _unquote_value(CONTINUED_LINE.sub(r"\1", value))
            found.append((f"{section}.{part['name'].lower()}", said))
    return tuple(found)


@lru_cache(maxsize=MAX_SETTINGS_FILES)
def _naming_settings(text: str) -> Sequence[tuple[str, str]]:
    """Return the settings that may name a program, a file that git obeys, or further settings; each once."""
    return tuple(dict.fromkeys((key, value) for key, value in _parse_settings(text) if not _names_nothing(key)))


def _names_nothing(key: str) -> bool:
    return bool(key.startswith(NAMELESS) or PLAIN_SETTINGS.fullmatch(key) or READ_SETTINGS.fullmatch(key))


def _unquote_value(value: str) -> str:
    """Return a value as git reads it: without its quotes, with what it escapes, and without a comment."""
    said = "".join(
        part["plain"]
        or ESCAPED_CHAR.sub(
            lambda found: ESCAPE_VALUES.get(found[1], found[1]), part["quoted"] or part["escaped"] or ""
        )
        for part in VALUE_PART.finditer(value)
    )
    return said.strip()


def _iter_setting_lines(text: str) -> Iterator[tuple[str | None, str]]:
    """Yield a dotted key and a value for each line with content; the key is None for a line that is not a setting."""
    section = ""
    for line in text.splitlines():
        line = line.strip()
        if (match := SECTION_LINE.match(line)) is not None:
            section = match[1].lower() + (f".{match[2]}" if match[2] is not None else "")
            line = match[3].strip()
        if line and line[0] not in "#;":
            pair = KEY_LINE.match(line)
            yield (None, line) if pair is None else (f"{section}.{pair[1].lower()}", (pair[2] or "true").strip())
