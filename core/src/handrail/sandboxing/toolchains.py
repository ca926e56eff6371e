"""What a sandboxed command may read beside the system's own programs: toolchains that the person has on PATH, and the Python in use."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from handrail.errors import HandrailError
from handrail.files import opened

# Where the system's programs are; a sandbox shows these anyway.
SYSTEM = ("/usr", "/bin", "/sbin")
# What lies beside `bin` when that belongs to a toolchain, and not to somebody's project.
BESIDE_BIN = (
    "lib",
    "lib64",
    "libexec",
    "versions",
    "toolchains",
    "shims",
    "registry",
    "pkg",
    "conda-meta",
    "pyvenv.cfg",
    "node_modules",
)
# Folders in a home that are a home's own and no toolchain, though programs lie in them.
SHARED = (".local", ".config", ".cache", ".var", "Library")
# Where programs in ~/.local/bin have the rest of them.
OF_LOCAL = (".local/lib", ".local/share/uv", ".local/share/pipx", ".local/share/pnpm", ".local/share/mise")
# Toolchains that name their place by a variable.
NAMED_BY = ("VIRTUAL_ENV", "CONDA_PREFIX", "JAVA_HOME", "GOROOT", "RUSTUP_HOME", "PYENV_ROOT", "NVM_DIR", "SDKMAN_DIR")
VIRTUALENVS = (".venv", "venv")
# How much of a virtual environment's settings is read, in bytes.
MAX_SETTINGS = 10_000


def named_folders(texts: Sequence[str], *, workspace: Sequence[Path], home: Path) -> tuple[Path, ...]:
    """Return the real folders that a setting names, relative to the workspace, which may begin with `~`; those that are there."""
    named = (Path(os.path.realpath(workspace[0] / text.replace("~", str(home), 1))) for text in texts)
    return tuple(path for path in named if path.exists())


def toolchains(environment: Mapping[str, str], *, home: Path, roots: Sequence[Path]) -> tuple[Path, ...]:
    """Real folders outside the workspace and the system that programs on PATH need."""
    found = (*_on_path(environment, home), *_named(environment, home), *_pythons(environment, roots))
    real = dict.fromkeys(Path(os.path.realpath(path)) for path in found if os.path.isdir(path))
    return tuple(path for path in real if not _covers(path, home) and not _within(path, (*map(Path, SYSTEM), *roots)))


def _on_path(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    for text in environment.get("PATH", "").split(os.pathsep):
        folder = Path(text)
        if not folder.is_absolute() or text.startswith(tuple(f"{root}/" for root in SYSTEM)):
            continue
        yield folder
        prefix = folder.parent
        if prefix.name in SHARED or prefix == home:
            yield from (home / below for below in OF_LOCAL)
        elif any(os.path.lexists(prefix / name) for name in BESIDE_BIN):
            yield prefix
        if folder == home / ".cargo/bin":
            yield from (home / ".cargo", home / ".rustup")
        if folder == home / "go/bin":
            yield home / "go/pkg"


def _named(environment: Mapping[str, str], home: Path) -> Iterator[Path]:
    for name in NAMED_BY:
        path = Path(environment.get(name) or "relative")
        if path.is_absolute() and path.parent != home / ".config":
            yield path


def _pythons(environment: Mapping[str, str], roots: Sequence[Path]) -> Iterator[Path]:
    """The installations that the virtual environments in use were made from."""
    active = environment.get("VIRTUAL_ENV")
    for venv in (*((Path(active),) if active else ()), *(root / name for root in roots for name in VIRTUALENVS)):
        for line in _settings_of(venv):
            key, _, value = line.partition("=")
            if key.strip() != "home" or not os.path.isabs(value.strip()):
                continue
            try:
                installed = Path(os.path.realpath(value.strip())).parent
            # It was exchanged at this moment.
            except OSError:
                continue
            # Whoever wrote the file, what it names is shown only where it is what it should be; and nothing that commands can exchange meanwhile.
            if not _within(installed, roots) and _is_python(installed):
                yield installed


def _settings_of(venv: Path) -> Sequence[str]:
    try:
        with opened.reading(Path(os.path.realpath(venv / "pyvenv.cfg"))) as file:
            return os.read(file.fd, MAX_SETTINGS).decode(errors="replace").splitlines()
    except (HandrailError, OSError):
        return ()


def _is_python(prefix: Path) -> bool:
    """True for an installation of Python of its own: its standard library is there."""
    try:
        return any(path.is_file() for path in prefix.glob("lib/python3*/os.py"))
    except OSError:
        return False


def _covers(path: Path, home: Path) -> bool:
    """Whether it is the home, holds it, or is the whole of what a home keeps under one name."""
    return home == path or home.is_relative_to(path) or (path.parent == home and path.name in SHARED)


def _within(path: Path, roots: Sequence[Path]) -> bool:
    return any(path.is_relative_to(root) for root in roots)
