"""The hosts that a command connects to, if it needs no other network access."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain, pairwise
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from handrail.fs import path_resolution
from handrail.net import urls
from handrail.net.allowed_hosts import AllowedHosts, HostEntry
from handrail_cli.programs import ProgramUse
from handrail_cli.shell import package_sources
from handrail_cli.shell.bash.syntax import ShellWord
from handrail_cli.shell.package_sources import PackageSources, RegistryLookup

if TYPE_CHECKING:
    from handrail import EvaluationContext
    from handrail_cli.shell.path_effects import PathAnalyzer

WEB_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
ANY_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)
# Programs whose rows name several, and that get packages elsewhere than the family's host.
ONLY_PROGRAM = {"composer": "composer", "gem": "bundle"}
# Options by which pip writes into a folder that it is told.
PIP_FOLDERS = frozenset(("-t", "--target", "-d", "--dest", "-w", "--wheel-dir"))
PIP_IN_PLACE = frozenset(("download", "wheel", "lock"))
REQUIREMENT_OPTIONS = ("-r", "--requirement", "-c", "--constraint")
VIRTUALENV_FOLDERS = (".venv", "venv")


def find_hosts_reached(
    use: ProgramUse, words: Sequence[ShellWord], judging: EvaluationContext, places: PathAnalyzer
) -> tuple[str, ...] | None:
    """Return the hosts, each `name` or `name:port`, that a command connects to by HTTP.

    None where they are not known, or where hosts are not enough: another protocol, or what it fetches would be lost in the sandbox.
    """
    if use.reaches is None:
        return None
    operands = [named for named in use.named if named.role in ("url", "host")]
    texts = [words[named.word_index].text if named.value is None else named.value for named in operands]
    if any(text is None for text in texts):
        return None
    named = [text for text in texts if text]
    around = _create_lookup(judging, places)
    if use.reaches == "urls":
        return _find_url_hosts(named)
    if use.reaches in ("git", "submodules"):
        return _find_remote_hosts(named, around, words, submodules=use.reaches == "submodules")
    program = PurePath(words[0].guess).name
    if ONLY_PROGRAM.get(use.reaches, program) != program or not _is_install_kept(use.reaches, words, around):
        return None
    found = _find_package_sources(use.reaches, words, around).places
    return found if found and all(map(_is_host_entry, found)) else None


def find_local_repositories(
    use: ProgramUse, words: Sequence[ShellWord], judging: EvaluationContext, places: PathAnalyzer
) -> tuple[str, ...]:
    """Return the directories that git gets commits from, where it connects to no host; empty for every other command."""
    if use.reaches != "git":
        return ()
    texts = [words[one.word_index].text if one.value is None else one.value for one in use.named if one.role == "url"]
    if None in texts:
        return ()
    named = [text for text in texts if text]
    around = _create_lookup(judging, places)
    addresses = _find_git_addresses(named, around, words)
    if not addresses and named and any((folder / named[0]).is_dir() for folder in map(Path, around.folders)):
        addresses = (named[0],)
    if not addresses or not all(map(_is_directory_address, addresses)):
        return ()
    return tuple(re.sub(r"^file:/*", "/", address, flags=re.IGNORECASE) for address in addresses)


def _is_directory_address(address: str) -> bool:
    """Return True for what git takes for a directory: `file:` with a path, and a path without a colon before its first slash."""
    return address.lower().startswith("file:///") or ":" not in address.partition("/")[0]


def _find_package_sources(family: str, words: Sequence[ShellWord], around: RegistryLookup) -> PackageSources:
    """Return the package sources of a package manager called with these words."""
    if family != "pip":
        return package_sources.find_package_sources(family, around)
    texts = [word.text or "" for word in words]
    found = package_sources.find_package_sources(family, package_sources.enter_virtual_environment(texts[0], around))
    listed = [after for text, after in pairwise(texts) if text in REQUIREMENT_OPTIONS]
    listed += [text.partition("=")[2] for text in texts if text.startswith(tuple(f"{o}=" for o in REQUIREMENT_OPTIONS))]
    return package_sources.add_requirement_sources(found, listed, around)


def _create_lookup(judging: EvaluationContext, places: PathAnalyzer) -> RegistryLookup:
    """Return what a command of these circumstances finds when it looks for registries."""
    return RegistryLookup(judging.environment, judging.home, places.cwds, judging.workspace, judging.read_text)


def are_hosts_allowed(hosts: Sequence[str], allowed: Sequence[str]) -> bool:
    """Return True if all hosts are among those that are allowed without a question."""
    listed = AllowedHosts.of(allowed)
    return all(map(listed.covers, hosts))


def _find_url_hosts(texts: Sequence[str]) -> tuple[str, ...] | None:
    """Return the hosts of web addresses; a text without a scheme counts as one.

    None if any text is something else, or without any texts.
    """
    if not texts or any(ANY_SCHEME.match(text) and "://" in text and not WEB_ADDRESS.match(text) for text in texts):
        return None
    found = tuple(dict.fromkeys(urls.find_url_place(text) for text in texts))
    return found if all(map(_is_host_entry, found)) else None


def _is_host_entry(host: str) -> bool:
    try:
        HostEntry.parse(host)
    except ValueError:
        return False
    return True


def _find_remote_hosts(
    named: Sequence[str], around: RegistryLookup, words: Sequence[ShellWord], *, submodules: bool
) -> tuple[str, ...] | None:
    """Return the hosts of the addresses that git is given, or of the remotes of its repository."""
    if submodules and not named:
        listed = [word.text or "" for word in words if WEB_ADDRESS.match(word.text or "")]
        addresses = tuple(listed) or package_sources.find_git_remotes(around, kind="submodule")
        if addresses and any(address.startswith(("./", "../")) for address in addresses):
            addresses = (*(a for a in addresses if not a.startswith(".")), *(_expand_remote("origin", around) or ("",)))
    else:
        addresses = _find_git_addresses(named, around, words)
    if not addresses or not all(map(WEB_ADDRESS.match, addresses)):
        return None
    return _find_url_hosts(addresses)


def _find_git_addresses(
    named: Sequence[str], around: RegistryLookup, words: Sequence[ShellWord]
) -> tuple[str, ...] | None:
    """Return the addresses that git gets commits from: those that it is given, or those of remotes; None where one is not known."""
    if named:
        found = [addresses for text in named if (addresses := _expand_remote(text, around)) is not None]
        return tuple(chain.from_iterable(found)) if len(found) == len(named) else None
    everything = any(word.text in ("--all", "update") for word in words)
    return (None if everything else _expand_remote("origin", around)) or package_sources.find_git_remotes(around)


def _expand_remote(text: str, around: RegistryLookup) -> tuple[str, ...] | None:
    """Return the address that a word is, or the addresses of the remote that it names."""
    if "/" in text or ":" in text:
        return (text,)
    return package_sources.find_git_remotes(around, name=text)


def _is_install_kept(family: str, words: Sequence[ShellWord], around: RegistryLookup) -> bool:
    """Return True if what a package manager installs is there after the command: in the workspace, or in a cache that can be missed."""
    if family == "gem":
        return bool(around.in_project(".bundle/config"))
    if family != "pip":
        return True
    texts = [word.text or "" for word in words]
    if any(text in PIP_IN_PLACE or text.partition("=")[0] in PIP_FOLDERS for text in texts):
        return True
    program = PurePath(texts[0])
    if not program.name.startswith("pip"):
        # Poetry and its like use a virtual environment of the project where there is one.
        return any(around.in_project(f"{name}/pyvenv.cfg") for name in VIRTUALENV_FOLDERS)
    folder = str(program.parent.parent) if "/" in texts[0] else around.variable("VIRTUAL_ENV")
    if folder is None:
        return False
    found = [path_resolution.resolve_path(folder, cwd=cwd, home=around.home) for cwd in around.folders]
    return all(path_resolution.is_inside_roots(one.real, tuple(around.roots)) for one in found)
