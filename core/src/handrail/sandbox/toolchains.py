"""Places that a sandboxed command may read beside the system's own programs: toolchains that the person has on PATH, and the Python in use.

Of a folder around a `bin` only what programs need is opened, by name. Nothing else in it is, and no project is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from handrail.errors import HandrailError
from handrail.fs import safe_open

__all__ = ["SYSTEM_PROGRAM_ROOTS", "resolve_named_folders"]

# Where the system's programs are; a sandbox shows these anyway.
SYSTEM_PROGRAM_ROOTS = ("/usr", "/bin", "/sbin")
# What programs in a `bin` need beside it, where it belongs to no project.
BESIDE_BIN = ("lib", "lib32", "lib64", "libexec", "share", "include")
# A folder of such a name holds programs, also where it belongs to a project.
OF_PROGRAMS = frozenset(("bin", "sbin", ".bin", "shims", "scripts"))
# What makes a folder somebody's project.
OF_PROJECTS = (
    *(".git", ".hg", ".svn", ".jj", "pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "package.json"),
    *("go.mod", "go.work", "Cargo.toml", "Gemfile", "pom.xml", "build.gradle", "build.gradle.kts", "composer.json"),
    *("mix.exs", "CMakeLists.txt", "Makefile", "meson.build", "build.sbt", "deno.json", "Package.swift"),
)
# Folders in a home that are a home's own and no toolchain, though programs lie in them.
SHARED_FOLDERS = (".local", ".config", ".cache", ".var", "Library")
# Where programs in ~/.local/bin have the rest of them.
OF_LOCAL = (
    *(".local/lib", ".local/pipx/venvs", ".local/share/pipx/venvs", ".local/share/pipx/shared", ".local/share/pipx/py"),
    *(".local/share/uv/python", ".local/share/uv/tools", ".local/share/pnpm/global", ".local/share/pnpm/nodejs"),
    *(".local/share/pnpm/store", ".local/share/mise/installs", ".local/share/mise/shims", ".local/share/mise/plugins"),
)
# Toolchains that name their place by a variable.
NAMED_BY = (
    *("VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "GOROOT", "GOPATH", "CARGO_HOME", "RUSTUP_HOME", "PYENV_ROOT"),
    *("NVM_DIR", "SDKMAN_DIR", "VOLTA_HOME", "BUN_INSTALL"),
)
VENV_NAMES = (".venv", "venv")
# Folders of other people's code, and of what comes with a language, in which no credentials of the person are searched for.
OF_OTHERS = frozenset(
    (
        *("registry", "mod", "rustlib", "testdata", "test", "tests", "doc", "docs", "man", "perl5", "python2.7"),
        *(f"python3.{minor}" for minor in range(40)),
    )
)


@dataclass(frozen=True)
class InstallationKind:
    """Kind of toolchain installation.

    `told_by`: groups of paths that identify it; at least one of each group must exist. `opened`: the parts that
    sandboxed commands may read.
    """

    told_by: tuple[tuple[str, ...], ...]
    opened: tuple[str, ...]


# Patterns are relative to the folder of the installation.
INSTALLATION_KINDS = (
    # Virtual environments. Settings of pip in them may name an index with its password.
    InstallationKind((("pyvenv.cfg",),), ("bin", "lib", "lib64", "include", "share", "etc/jupyter", "pyvenv.cfg")),
    InstallationKind(
        (("conda-meta/history", "conda-meta/*.json"),),
        (
            *(
                "bin",
                "sbin",
                "condabin",
                "lib",
                "lib64",
                "libexec",
                "include",
                "share",
                "ssl",
                "etc/fonts",
                "etc/jupyter",
                "conda-meta",
            ),
            *("envs", "pkgs", "shell", "man", "plugins", "qml", "resources", "translations", "jre", "compiler_compat"),
            *("opt", "x86_64-conda*-linux-gnu", "aarch64-conda*-linux-gnu", "python.app", "fonts", "nvvm", "targets"),
        ),
    ),
    # Python, Node.js, Rust, Go, Java, Maven.
    InstallationKind((("lib/python[23]*/os.py",),), ("bin", "lib", "lib64", "libexec", "include", "share", "ssl")),
    InstallationKind(
        (("bin/node",), ("include/node/node.h", "lib/node_modules/npm")),
        ("bin", "lib", "include", "share"),
    ),
    InstallationKind((("lib/rustlib",),), ("bin", "lib", "libexec", "share")),
    InstallationKind(
        (("bin/go",), ("src/runtime",)),
        ("bin", "lib", "pkg", "src", "api", "misc", "test", "VERSION", "go.env"),
    ),
    InstallationKind(
        (("release",), ("lib/modules", "jre/lib", "lib/rt.jar", "lib/tools.jar")),
        ("bin", "lib", "conf", "include", "jmods", "jre", "legal", "release"),
    ),
    InstallationKind((("bin/mvn",), ("boot",)), ("bin", "boot", "lib", "conf/logging")),
    # Homes of package managers: what was downloaded and built, without settings and credentials.
    InstallationKind(((".crates.toml", ".package-cache", "registry/index", "bin/rustup"),), ("bin", "registry", "git")),
    InstallationKind((("pkg/mod/cache",),), ("bin", "pkg")),
    InstallationKind((("bin/bun",), ("install/global", "install/cache")), ("bin", "install")),
    InstallationKind((("bin/npm", "bin/node", "bin/volta*"), ("tools/image",)), ("bin", "tools")),
    InstallationKind(
        (("Cellar",), ("bin/brew",)),
        ("bin", "sbin", "lib", "libexec", "Cellar", "opt", "share", "include", "etc/ca-certificates", "etc/openssl*"),
    ),
    # Version managers.
    InstallationKind(
        (("shims",), ("versions/*/bin", "libexec/*env")),
        (
            *("bin", "shims", "versions", "version", "libexec", "plugins", "completions"),
            *("pyenv.d", "rbenv.d", "nodenv.d", "goenv.d", "plenv.d"),
        ),
    ),
    InstallationKind(
        (("shims",), ("installs",), ("plugins",)), ("bin", "shims", "installs", "plugins", "lib", "libexec", "asdf.sh")
    ),
    InstallationKind((("shims",), ("self", "py")), ("shims", "self", "py", "toolchains", "tools", "uv", "pip-tools")),
    InstallationKind((("nvm.sh",),), ("versions", "alias", "nvm.sh", "nvm-exec")),
    InstallationKind(
        (("toolchains",), ("settings.toml", "update-hashes")), ("toolchains", "settings.toml", "update-hashes")
    ),
    InstallationKind(
        (("candidates",), ("bin/sdkman-init.sh",)), ("bin", "src", "libexec", "contrib", "candidates", "var")
    ),
)
# Settings of Cargo, and the lines in them that keep a credential.
OF_CARGO = ("config.toml", "config")
CARGO_CREDENTIAL = re.compile(r"(?i)token|secret|passw|credential|authorization|(?://|[\"'])[^/\s\"']*@")
# How much of a virtual environment's settings is read, in bytes.
MAX_SETTINGS = 10_000


def resolve_named_folders(texts: Sequence[str], *, workspace: Sequence[Path], home: Path) -> tuple[Path, ...]:
    """Return the real folders that a setting names, relative to the workspace, which may begin with `~`; those that are there."""
    named = (Path(os.path.realpath(workspace[0] / text.replace("~", str(home), 1))) for text in texts)
    return tuple(path for path in named if path.exists())


def find_toolchains(environment: Mapping[str, str], *, home: Path, roots: Sequence[Path]) -> tuple[Path, ...]:
    """Return real folders and single files, outside the workspace and the system, that programs on PATH need."""
    found = (
        *_iter_path_folders(environment, home),
        *_iter_named_folders(environment, home),
        *_iter_base_pythons(environment, roots),
    )
    real = dict.fromkeys(Path(os.path.realpath(path)) for path in found if os.path.exists(path))
    fit = [
        path
        for path in real
        if not _is_covering_home(path, home) and not _is_within_roots(path, (*map(Path, SYSTEM_PROGRAM_ROOTS), *roots))
    ]
    return tuple(path for path in fit if not any(folder in fit for folder in path.parents))


def _iter_path_folders(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    for text in environment.get("PATH", "").split(os.pathsep):
        folder = Path(text)
        if not folder.is_absolute() or _is_within_roots(folder, tuple(map(Path, SYSTEM_PROGRAM_ROOTS))):
            continue
        if folder.name.lower() in OF_PROGRAMS or not _is_project(folder):
            yield folder
        prefix = folder.parent
        if prefix.name in SHARED_FOLDERS or prefix == home:
            yield from (home / below for below in OF_LOCAL)
        else:
            yield from _iter_opened_places(prefix, home)
        if prefix.name == ".cargo":
            yield from _iter_installation_places(prefix.with_name(".rustup"))
        if prefix == home / "go":
            yield prefix / "pkg"


def _iter_named_folders(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    for name in NAMED_BY:
        path = Path(environment.get(name) or "relative")
        if path.is_absolute() and path != home and path.parent != home / ".config":
            yield from _iter_opened_places(path, home)


def _iter_opened_places(prefix: Path, home: Path) -> Iterator[Path]:
    """Yield what is opened of the directory around a `bin`: the parts of an installation, but no part of a project."""
    installed = list(_iter_installation_places(prefix))
    yield from installed
    if not installed and not any(_is_project(folder) for folder in _iter_folders_up_to(prefix, home)):
        yield from (prefix / name for name in BESIDE_BIN)


def _iter_installation_places(prefix: Path) -> Iterator[Path]:
    for kind in INSTALLATION_KINDS:
        if not all(any(_match_pattern(prefix, pattern) for pattern in group) for group in kind.told_by):
            continue
        for pattern in kind.opened:
            yield from _match_pattern(prefix, pattern)
        if "registry" in kind.opened:
            yield from (file for name in OF_CARGO if _is_without_credentials(file := prefix / name))


def _match_pattern(prefix: Path, pattern: str) -> Sequence[Path]:
    if "*" not in pattern:
        return (prefix / pattern,) if os.path.exists(prefix / pattern) else ()
    try:
        return sorted(prefix.glob(pattern))
    except OSError:
        return ()


def _is_without_credentials(file: Path) -> bool:
    """Return True if settings can be read completely and have no line with a token or a password."""
    try:
        with safe_open.open_for_reading(Path(os.path.realpath(file))) as settings:
            text = os.read(settings.fd, MAX_SETTINGS + 1).decode(errors="replace")
    except (HandrailError, OSError):
        return False
    return len(text) <= MAX_SETTINGS and CARGO_CREDENTIAL.search(text) is None


def _is_project(folder: Path) -> bool:
    return any(os.path.lexists(folder / name) for name in OF_PROJECTS)


def _iter_folders_up_to(folder: Path, home: Path) -> Iterator[Path]:
    """Yield a folder and those around it, without the home and what is around that."""
    for each in (folder, *folder.parents):
        if home.is_relative_to(each):
            return
        yield each


def _iter_base_pythons(environment: Mapping[str, str], roots: Sequence[Path]) -> Iterator[Path]:
    """Yield the opened parts of the installations that the virtual environments in use were made from."""
    active = environment.get("VIRTUAL_ENV")
    for venv in (*((Path(active),) if active else ()), *(root / name for root in roots for name in VENV_NAMES)):
        for line in _read_venv_settings(venv):
            key, _, value = line.partition("=")
            if key.strip() != "home" or not os.path.isabs(value.strip()):
                continue
            try:
                installed = Path(os.path.realpath(value.strip())).parent
            # It was exchanged at this moment.
            except OSError:
                continue
            # Whoever wrote the file, what it names is shown only where it is what it should be; and nothing that commands can exchange meanwhile.
            if not _is_within_roots(installed, roots) and _is_python(installed):
                yield from _iter_installation_places(installed)


def _read_venv_settings(venv: Path) -> Sequence[str]:
    try:
        with safe_open.open_for_reading(Path(os.path.realpath(venv / "pyvenv.cfg"))) as file:
            return os.read(file.fd, MAX_SETTINGS).decode(errors="replace").splitlines()
    except (HandrailError, OSError):
        return ()


def _is_python(prefix: Path) -> bool:
    """Return True for a complete Python installation, that is, one with its standard library."""
    try:
        return any(path.is_file() for path in prefix.glob("lib/python3*/os.py"))
    except OSError:
        return False


def _is_covering_home(path: Path, home: Path) -> bool:
    """Return True if a path is the home directory, contains it, or is a shared directory in it such as `.local`."""
    return home == path or home.is_relative_to(path) or (path.parent == home and path.name in SHARED_FOLDERS)


def _is_within_roots(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
