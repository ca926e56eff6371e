"""Sources of package managers and git: the hosts they connect to, and the variables that configure them in the sandbox.

The user's configuration (variables, files in their home) replaces a program's own default. So does a project's
configuration, which is shown when the user is prompted. Only host names and addresses are taken from such files, never
a user name, password or token.
"""

from __future__ import annotations

import configparser
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import Any, cast
from urllib.parse import urlsplit, urlunsplit

from handrail.fs import path_resolution
from handrail.net import urls

TextReader = Callable[[Path], str | None]
# Folders above the one that a command works in that are looked into, up to the root of the workspace.
MAX_FOLDERS = 12
MAX_REMOTES = 20
WEB_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
# A value that holds another variable's is nobody's plain address.
EXPANDED_VALUE = re.compile(r"\$\{?\w|%\(")
HOST_AND_PORT = re.compile(r"[\w.-]+(:\d+)?")
# What a file of requirements says of indexes (pip's documentation, "Requirements File Format").
REQUIREMENTS_INDEX = re.compile(r"^\s*(-i|--index-url|--extra-index-url|-f|--find-links)(?:\s+|=)(\S+)", re.MULTILINE)
NPM_SCOPE = re.compile(r"@[\w.~-]+:registry")
GEM_SOURCE = re.compile(r"^\s*source\s*\(?\s*[\"'](https?://[^\"']+)[\"']", re.MULTILINE)
GIT_SECTION = re.compile(r'\[\s*(remote|submodule)\s+"((?:[^"\\\n]|\\.)*)"\s*\]', re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class RegistryLookup:
    """Circumstances of a command, as far as its program looks there for registries.

    `environment` is what the command gets, with the host's variables; `folders` are those that it may work in and `roots` those of the
    workspace. Without `read_text` no file is opened, and what files would say is left out.
    """

    environment: Mapping[str, str]
    home: PurePath
    folders: Sequence[PurePath]
    roots: Sequence[PurePath]
    read_text: TextReader | None = None

    def text(self, *places: PurePath | str | None) -> str:
        """Return the text of the first of these files that can be read, empty where none can."""
        found = (self.read_text(Path(place)) for place in places if place and self.read_text is not None)
        return next((text for text in found if text is not None), "")

    def in_project(self, name: str) -> str:
        """Return the text of the nearest file of this name, from the working directories up to the workspace root.

        A symlink out of the workspace is not followed: its target is not the project's to show.
        """
        places = (folder / name for folder in self._project_folders())
        return self.text(*(place for place in places if self.contains(place)))

    def contains(self, place: PurePath) -> bool:
        """Return True if this place lies in the workspace, also where a link on the way to it leads. False where no file may be opened."""
        return (
            path_resolution.is_inside_roots(os.path.realpath(place), tuple(self.roots))
            if self.read_text is not None
            else False
        )

    def _project_folders(self) -> Iterator[PurePath]:
        for folder in self.folders:
            above = [each for each in (folder, *folder.parents) if any(each.is_relative_to(r) for r in self.roots)]
            yield from above[:MAX_FOLDERS]

    def variable(self, *names: str) -> str | None:
        """Return the value of the first of these variables that is set, in any case of letters."""
        folded = {name.lower(): value for name, value in self.environment.items() if value}
        return next((folded[name.lower()] for name in names if name.lower() in folded), None)


@dataclass(frozen=True, slots=True)
class PackageSources:
    """The package sources of a program: addresses (`url`) or hosts, and variables that configure a confined program accordingly."""

    urls: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def places(self) -> tuple[str, ...]:
        """The hosts, as `urls.place` writes them; addresses that are not of the web are left out."""
        named = (urls.find_url_place(url) for url in self.urls if WEB_ADDRESS.match(url))
        return tuple(dict.fromkeys(filter(None, (*named, *self.hosts))))


def strip_credentials(url: str) -> str:
    """Return an address without the user name and password in front of its host."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return ""
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def find_package_sources(family: str, around: RegistryLookup) -> PackageSources:
    """Return where programs of a family get their packages. Raises KeyError for a family that there is not."""
    return SOURCE_FINDERS[family](around)


def create_registry_variables(around: RegistryLookup) -> dict[str, str]:
    """Return the variables that tell confined programs of every family where to get packages, without credentials."""
    return {name: value for family in SOURCE_FINDERS.values() for name, value in family(around).variables.items()}


def enter_virtual_environment(program: str, around: RegistryLookup) -> RegistryLookup:
    """Return the lookup for `program` (`.venv/bin/pip`), with its virtual environment active.

    This overrides VIRTUAL_ENV, provided that the virtual environment is in the workspace.
    """
    name = PurePath(program)
    if "/" not in program or not name.name.startswith(("pip", "python")) or name.parent.name != "bin":
        return around
    places = (folder / name.parent.parent for folder in around.folders)
    folder = next((place for place in places if around.contains(place / "pyvenv.cfg")), None)
    if folder is None:
        return around
    return replace(around, environment={**around.environment, "VIRTUAL_ENV": str(folder)})


# JavaScript


def _find_npm_sources(around: RegistryLookup) -> PackageSources:
    project = _parse_npmrc(around.in_project(".npmrc"))
    user = _parse_npmrc(around.text(around.variable("npm_config_userconfig"), around.home / ".npmrc"))
    system = _parse_npmrc(around.text("/etc/npmrc"))
    named = around.variable("npm_config_registry")
    said = (named, project.get("registry"), user.get("registry"), system.get("registry"))
    registry = _find_first_url(said) or "https://registry.npmjs.org/"
    # The files are not shown inside: without these variables a package of a scope would come from the registry of all others.
    of_project, of_user = _find_npm_scopes(project), _find_npm_scopes(user)
    cafile = around.variable("npm_config_cafile") or user.get("cafile")
    variables = {"npm_config_registry": registry, **({"npm_config_cafile": cafile} if cafile else {})}
    variables |= {f"npm_config_{key}": url for key, url in (of_user | of_project).items()}
    return PackageSources((registry, *of_project.values()), variables=variables)


def _find_npm_scopes(settings: Mapping[str, str]) -> dict[str, str]:
    """Return the registries that an .npmrc names for scopes, by their keys (`@scope:registry`)."""
    named = {key: _find_first_url((value,)) for key, value in settings.items() if NPM_SCOPE.fullmatch(key)}
    return {key: url for key, url in named.items() if url}


def _find_yarn_sources(around: RegistryLookup) -> PackageSources:
    """Return the sources of Yarn.

    Yarn 1 uses its own host in addition to npm's; later versions use `npmRegistryServer`.
    """
    npm = _find_npm_sources(around)
    if npm.places != ("registry.npmjs.org",):
        return npm
    berry = re.search(r"^npmRegistryServer:\s*[\"']?(\S+?)[\"']?\s*$", around.in_project(".yarnrc.yml"), re.MULTILINE)
    classic = re.search(r'^registry\s+"?([^\s"]+)"?', around.in_project(".yarnrc"), re.MULTILINE)
    told = _find_first_url(found[1] for found in (berry, classic) if found is not None)
    return PackageSources((told,)) if told else PackageSources(npm.urls, ("registry.yarnpkg.com",))


def _parse_npmrc(text: str) -> dict[str, str]:
    """Parse the settings of an .npmrc."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, equals, value = line.strip().partition("=")
        if equals and name[:1] not in ("#", ";"):
            found[name.strip()] = value.strip().strip("\"'")
    return found


# Python


def _find_pip_sources(around: RegistryLookup) -> PackageSources:
    active = around.variable("VIRTUAL_ENV")
    files = (
        around.variable("PIP_CONFIG_FILE"),
        f"{active}/pip.conf" if active else None,
        around.home / ".config/pip/pip.conf",
        around.home / ".pip/pip.conf",
        "/etc/pip.conf",
    )
    settings = [_parse_pip_config(around.text(file)) for file in files if file]

    def told(variable: str, key: str) -> list[str]:
        value = around.variable(variable) or next((found for each in settings if (found := each.get(key))), "")
        return list(filter(None, (_find_first_url((word,)) for word in value.split())))

    index = told("PIP_INDEX_URL", "index-url")[:1]
    more = told("PIP_EXTRA_INDEX_URL", "extra-index-url")
    trusted = around.variable("PIP_TRUSTED_HOST") or next(
        (t for each in settings if (t := each.get("trusted-host"))), ""
    )
    plain = [word for word in trusted.split() if HOST_AND_PORT.fullmatch(word)]
    cert = around.variable("PIP_CERT") or next((found for each in settings if (found := each.get("cert"))), None)
    variables = {
        **({"PIP_INDEX_URL": index[0]} if index else {}),
        **({"PIP_EXTRA_INDEX_URL": " ".join(more)} if more else {}),
        **({"PIP_TRUSTED_HOST": " ".join(plain)} if plain else {}),
        **({"PIP_CERT": cert} if cert else {}),
    }
    return PackageSources((*index, *more), () if index else ("pypi.org", "files.pythonhosted.org"), variables)


def add_requirement_sources(found: PackageSources, names: Iterable[str], around: RegistryLookup) -> PackageSources:
    """Return pip's sources with those that files of requirements name. An index in a file takes the place of all others."""
    lines = [line for name in names for line in REQUIREMENTS_INDEX.findall(around.in_project(name))]
    first = [url for option, text in lines if option in ("-i", "--index-url") and (url := _find_first_url((text,)))]
    more = [url for option, text in lines if option not in ("-i", "--index-url") and (url := _find_first_url((text,)))]
    if first:
        return PackageSources((*first, *more))
    return replace(found, urls=(*found.urls, *more))


def _parse_pip_config(text: str) -> dict[str, str]:
    """Parse the settings of pip's files; those of `install` override those for all commands."""
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return {}
    found: dict[str, str] = {}
    for section in ("global", "download", "install"):
        if parser.has_section(section):
            found |= {key.replace("_", "-"): value for key, value in parser.items(section)}
    return found


def _find_uv_sources(around: RegistryLookup) -> PackageSources:
    project = _parse_toml(around.in_project("uv.toml")) or _get_table(
        _parse_toml(around.in_project("pyproject.toml")), "tool", "uv"
    )
    user = _parse_toml(around.text(around.home / ".config/uv/uv.toml", "/etc/uv/uv.toml"))
    named = _find_first_url((around.variable("UV_DEFAULT_INDEX", "UV_INDEX_URL"),))
    of_project, of_user = _find_uv_default(project), _find_uv_default(user)
    default = named or of_project or of_user
    words = (around.variable("UV_INDEX") or "", around.variable("UV_EXTRA_INDEX_URL") or "")
    # Names may stand before addresses (`name=https://…`).
    more = [
        _find_first_url((word.partition("=")[2] if not WEB_ADDRESS.match(word) else word,))
        for text in words
        for word in text.split()
    ]
    extra = [*filter(None, more), *_iter_uv_extra(project), *_iter_uv_extra(user)]
    variables = {"UV_DEFAULT_INDEX": named or of_user} if named or (of_user and not of_project) else {}
    hosts = () if default else ("pypi.org", "files.pythonhosted.org")
    told = {name: value for name, value in variables.items() if value}
    return PackageSources((*((default,) if default else ()), *extra), hosts, told)


def _find_uv_default(table: Mapping[str, Any]) -> str | None:
    indexes = (index for index in _list_tables(table.get("index")) if index.get("default") is True)
    return _find_first_url(
        (table.get("index-url"), _get_table(table, "pip").get("index-url"), *(i.get("url") for i in indexes))
    )


def _iter_uv_extra(table: Mapping[str, Any]) -> Iterator[str]:
    listed: Any = table.get("extra-index-url")
    texts = cast("list[Any]", listed) if isinstance(listed, list) else []
    for value in (*texts, *(index.get("url") for index in _list_tables(table.get("index")))):
        if (url := _find_first_url((value,))) is not None:
            yield url


# Rust, Go, Ruby and others


def _find_cargo_sources(around: RegistryLookup) -> PackageSources:
    """Return the sources of Cargo: crates.io by its sparse index, or what a source replacement names."""
    files = (around.in_project(".cargo/config.toml"), create_cargo_config(around))
    replaced = [url for text in files for url in _iter_cargo_urls(_parse_toml(text))]
    if replaced:
        return PackageSources(tuple(replaced))
    return PackageSources(hosts=("index.crates.io", "static.crates.io"))


def create_cargo_config(around: RegistryLookup) -> str:
    """Return a configuration for cargo with nothing but the source replacements of the person's own, without credentials; empty for none."""
    home = around.variable("CARGO_HOME") or around.home / ".cargo"
    named = _get_table(_parse_toml(around.text(PurePath(home) / "config.toml", PurePath(home) / "config")), "source")
    lines: list[str] = []
    for name in named:
        source = _get_table(named, name)
        plain = {key: _clean_registry(source[key]) for key in ("replace-with", "registry") if key in source}
        if re.fullmatch(r"[\w.-]+", name) and plain:
            lines += [
                f"[source.{_quote_toml(name)}]",
                *(f"{key} = {_quote_toml(value)}" for key, value in plain.items()),
            ]
    return "".join(f"{line}\n" for line in lines)


def _clean_registry(value: Any) -> str:
    value = str(value)
    kind, plus, url = value.partition("+") if value.startswith("sparse+") else ("", "", value)
    return kind + plus + (strip_credentials(url) if WEB_ADDRESS.match(url) else url)


def _quote_toml(text: str) -> str:
    return '"' + re.sub(r'[\\"\x00-\x1f]', "", text) + '"'


def _iter_cargo_urls(table: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses that replace crates.io, at the end of the chain."""
    named = _get_table(table, "source")
    name = "crates-io"
    for _ in range(5):
        source = _get_table(named, name)
        if isinstance(after := source.get("replace-with"), str):
            name = after
            continue
        registry = source.get("registry")
        if name != "crates-io" and isinstance(registry, str):
            url = _find_first_url((registry.removeprefix("sparse+"),))
            yield from (url,) if url else ()
        return


def _find_go_sources(around: RegistryLookup) -> PackageSources:
    file = around.text(around.variable("GOENV"), around.home / ".config/go/env")
    told = {name.strip(): value.strip() for name, _, value in (line.partition("=") for line in file.splitlines())}
    proxy = around.variable("GOPROXY") or told.get("GOPROXY")
    sums = around.variable("GOSUMDB") or told.get("GOSUMDB") or "sum.golang.org"
    if not proxy:
        return PackageSources(hosts=("proxy.golang.org", "sum.golang.org"))
    listed = [_find_first_url((word,)) for word in re.split(r"[,|]", proxy)]
    plain = [url for url in listed if url]
    host = () if sums == "off" or not re.fullmatch(r"[\w.-]+", sums) else (sums,)
    kept = [word for word in re.split(r"[,|]", proxy) if word in ("direct", "off")]
    return PackageSources(tuple(plain), host, {"GOPROXY": ",".join((*plain, *kept))})


def _find_gem_sources(around: RegistryLookup) -> PackageSources:
    found = tuple(filter(None, (_find_first_url((url,)) for url in GEM_SOURCE.findall(around.in_project("Gemfile")))))
    hosts = ("rubygems.org", "index.rubygems.org") if not found or any("rubygems.org" in url for url in found) else ()
    return PackageSources(found, hosts)


def _create_fixed_source(*hosts: str) -> Callable[[RegistryLookup], PackageSources]:
    return lambda around: PackageSources(hosts=hosts)


# git


def find_git_remotes(
    around: RegistryLookup, *, name: str | None = None, kind: str = "remote"
) -> tuple[str, ...] | None:
    """Return the addresses of a repository's remotes, or of the one with this name; None where they are not known."""
    if kind == "submodule":
        found = _parse_git_urls(around.in_project(".gitmodules"), kind)
    else:
        found = _parse_git_urls(around.in_project(".git/config"), kind)
    wanted = [url for known, url in found if name in (None, known)]
    return tuple(wanted[:MAX_REMOTES]) or None


def _parse_git_urls(text: str, kind: str) -> list[tuple[str, str]]:
    section: re.Match[str] | None = None
    found: list[tuple[str, str]] = []
    for line in text.splitlines():
        if line.lstrip().startswith("["):
            section = GIT_SECTION.match(line.strip())
            continue
        key, equals, value = line.partition("=")
        if equals and section is not None and section[1].lower() == kind and key.strip().lower() == "url":
            found.append((section[2], value.strip().strip('"')))
    return found


SOURCE_FINDERS: Mapping[str, Callable[[RegistryLookup], PackageSources]] = {
    "npm": _find_npm_sources,
    "yarn": _find_yarn_sources,
    "pip": _find_pip_sources,
    "uv": _find_uv_sources,
    "cargo": _find_cargo_sources,
    "go": _find_go_sources,
    "gem": _find_gem_sources,
    "composer": _create_fixed_source("repo.packagist.org", "api.github.com", "codeload.github.com", "github.com"),
    "deno": _create_fixed_source("jsr.io", "deno.land", "registry.npmjs.org"),
}


# Reading


def _find_first_url(values: Iterable[Any]) -> str | None:
    """Return the first of these values that is a plain web address, without credentials, or None."""
    for value in values:
        if isinstance(value, str) and WEB_ADDRESS.match(value) and not EXPANDED_VALUE.search(value):
            return strip_credentials(value)
    return None


def _parse_toml(text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    # Also raised for an integer of too many digits, besides what is no TOML.
    except (ValueError, RecursionError):
        return {}


def _get_table(table: Mapping[str, Any], *names: str) -> Mapping[str, Any]:
    found: Any = table
    for name in names:
        found = cast("Mapping[str, Any]", found).get(name)
        if not isinstance(found, dict):
            return {}
    return cast("Mapping[str, Any]", found)


def _list_tables(value: Any) -> list[Mapping[str, Any]]:
    listed = cast("list[Any]", value) if isinstance(value, list) else []
    return [cast("Mapping[str, Any]", each) for each in listed if isinstance(each, dict)]
