"""The environment of a sandboxed command that may reach some hosts: its own caches, the person's registries, and the certificates they use."""

from __future__ import annotations

import itertools
import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from handrail import Confinement
from handrail.fs import path_resolution
from handrail.fs.small_files import read_small_bytes
from handrail_cli.shell import package_sources
from handrail_cli.shell.package_sources import RegistryLookup

# In the private folder that is /tmp inside: what one command of a session has fetched is there for the next.
CACHE_ROOT = "/tmp/.handrail-caches"
CACHE_FOLDERS: Mapping[str, str] = {
    "npm_config_cache": "npm",
    "YARN_CACHE_FOLDER": "yarn",
    "YARN_GLOBAL_FOLDER": "yarn-global",
    "BUN_INSTALL_CACHE_DIR": "bun",
    "DENO_DIR": "deno",
    "PIP_CACHE_DIR": "pip",
    "UV_CACHE_DIR": "uv",
    "CARGO_HOME": "cargo",
    "GOPATH": "go",
    "GOMODCACHE": "go/pkg/mod",
    "GOCACHE": "go-build",
    "COMPOSER_HOME": "composer",
    "BUNDLE_USER_HOME": "bundle",
}
# npm and pnpm would try for more than a minute.
WITHOUT_NETWORK = {"npm_config_fetch_retries": "0"}
# Cargo reads the settings of every folder above the one it works in; this one is not a command's to change.
CARGO_SETTINGS = Path("/.cargo/config.toml")
# After each `pip install` pyenv writes into its own folder, which is not the sandbox's to change, and fails. Without this it leaves that out.
PYENV_REHASH = "pyenv.d/exec/pip-rehash"
# Files of certificates that programs are told to trust.
CERTIFICATE_VARIABLES = (
    "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS", "PIP_CERT",
    "CARGO_HTTP_CAINFO", "npm_config_cafile",
)  # fmt: skip
# Larger files, and folders with more entries, are not shown.
MAX_CERTIFICATE_BYTES = 4_000_000
MAX_CERTIFICATES = 500


@dataclass(frozen=True, slots=True)
class NetworkedSandbox:
    """The sandbox and the environment for one command."""

    sandbox: Confinement
    environment: Mapping[str, str]


def prepare_networked_sandbox(
    sandbox: Confinement, environment: Mapping[str, str], around: RegistryLookup, programs: Collection[str]
) -> NetworkedSandbox:
    """Return the sandbox and environment for a command that may reach hosts.

    `environment` is what the command would get otherwise, and `programs` are the names of those that it starts.
    """
    told = package_sources.create_registry_variables(around)
    certificates = {name: value for name in CERTIFICATE_VARIABLES if (value := told.get(name) or around.variable(name))}
    caches = {name: f"{CACHE_ROOT}/{folder}" for name, folder in CACHE_FOLDERS.items()}
    given = {**environment, **caches, **told, **certificates}
    if "pnpm" in programs:
        # It writes the place of its store into the project: the one that it has outside.
        given["npm_config_store_dir"] = f"{around.home}/.local/share/pnpm/store"
    rehash = Path(around.variable("PYENV_ROOT") or around.home / ".pyenv", PYENV_REHASH)
    shown = sandbox.hiding(rehash) if rehash.is_dir() else sandbox
    shown = shown.reading(*_find_hidden_certificates(certificates.values(), sandbox))
    return NetworkedSandbox(show_registries(shown, around), given)


def show_registries(sandbox: Confinement, around: RegistryLookup) -> Confinement:
    """Return the sandbox with the person's registries for programs that take them from files alone: cargo."""
    settings = package_sources.create_cargo_config(around)
    return sandbox.showing(CARGO_SETTINGS, settings) if settings else sandbox


def find_cache_variables(sandbox: Confinement) -> dict[str, str]:
    """Return the variables that lead a command without hosts to what earlier ones of the session have fetched, and keep it from trying for others."""
    kept = sandbox.bounds.temporary / Path(CACHE_ROOT).name
    once = {} if sandbox.network else WITHOUT_NETWORK
    return once | {name: f"{CACHE_ROOT}/{folder}" for name, folder in CACHE_FOLDERS.items() if (kept / folder).is_dir()}


def _find_hidden_certificates(files: Iterable[str], sandbox: Confinement) -> Iterator[Path]:
    """Yield the files and folders that are not seen inside by themselves, and hold certificates and nothing else."""
    for text in dict.fromkeys(files):
        place = Path(text).resolve()
        seen = (Path("/usr"), Path("/etc/ssl"), Path("/etc/pki"), *sandbox.bounds.readable, *sandbox.bounds.writable)
        if any(place.is_relative_to(folder) for folder in seen) or path_resolution.describe_secret(str(place)):
            continue
        if has_only_certificates(place):
            yield place


def has_only_certificates(place: Path) -> bool:
    """Return True for a file of certificates without a private key, and for a folder of such files alone.

    The path may come from a file of the project (`.venv/pip.conf`), which must not open other files of the person to the sandbox.
    """
    try:
        with os.scandir(place) as entries:
            found = [Path(entry.path) for entry in itertools.islice(entries, MAX_CERTIFICATES + 1)]
    except NotADirectoryError:
        found = [place]
    except OSError:
        return False
    return 0 < len(found) <= MAX_CERTIFICATES and all(map(_is_certificate_file, found))


def _is_certificate_file(file: Path) -> bool:
    data = read_small_bytes(file, most=MAX_CERTIFICATE_BYTES)
    return data is not None and b"-----BEGIN CERTIFICATE-----" in data and b"PRIVATE KEY-----" not in data
