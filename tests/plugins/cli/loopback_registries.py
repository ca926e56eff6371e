"""Registries of packages on this machine, for tests: static files that npm, pip, git and cargo fetch over HTTP."""

from __future__ import annotations

import base64
import functools
import hashlib
import io
import json
import subprocess
import tarfile
import threading
import zipfile
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


@dataclass
class Registry:
    """A folder that is served, and what was asked of it. With a `password`, only who shows it is answered."""

    folder: Path
    port: int = 0
    asked: list[str] = field(default_factory=list[str])
    password: str | None = None

    @property
    def place(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.place}"

    def put(self, path: str, content: bytes | str) -> None:
        file = self.folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content.encode() if isinstance(content, str) else content)


class _Handler(SimpleHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, *args: object, registry: Registry) -> None:
        self.registry = registry
        super().__init__(*args, directory=str(registry.folder))  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.registry.asked.append(self.path)
        secret = self.registry.password
        shown = self.headers.get("Authorization", "")
        if secret is not None and base64.b64encode(f"me:{secret}".encode()).decode() not in shown:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="registry"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        super().do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@contextmanager
def serving(folder: Path, *, password: str | None = None) -> Generator[Registry]:
    """Serve a folder at a free port of the loopback."""
    folder.mkdir(parents=True, exist_ok=True)
    registry = Registry(folder, password=password)
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, registry=registry))
    registry.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def add_npm_package(registry: Registry, name: str, *, files: Registry | None = None) -> str:
    """Add a package of npm whose file is at `files` (default: the same registry). Returns its integrity."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in (
            ("package/package.json", json.dumps({"name": name, "version": "1.0.0", "main": "index.js"})),
            ("package/index.js", f"module.exports = '{name} is here'\n"),
        ):
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    content = packed.getvalue()
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
    at = files or registry
    at.put(f"files/{name}-1.0.0.tgz", content)
    dist = {"tarball": f"{at.url}/files/{name}-1.0.0.tgz", "integrity": integrity}
    version = {"name": name, "version": "1.0.0", "dist": dist}
    registry.put(name, json.dumps({"name": name, "dist-tags": {"latest": "1.0.0"}, "versions": {"1.0.0": version}}))
    return integrity


def npm_project(folder: Path, registry: Registry, *names: str, files: Registry | None = None) -> None:
    """Write a package with a lock file that needs these packages."""
    packages: dict[str, object] = {
        "": {"name": "app", "version": "1.0.0", "dependencies": dict.fromkeys(names, "1.0.0")}
    }
    for name in names:
        integrity = add_npm_package(registry, name, files=files)
        resolved = f"{(files or registry).url}/files/{name}-1.0.0.tgz"
        packages[f"node_modules/{name}"] = {"version": "1.0.0", "resolved": resolved, "integrity": integrity}
    lock = {"name": "app", "version": "1.0.0", "lockfileVersion": 3, "requires": True, "packages": packages}
    (folder / "package-lock.json").write_text(json.dumps(lock))
    (folder / "package.json").write_text(json.dumps(packages[""]))


def add_wheel(registry: Registry, name: str) -> None:
    """Add a package of Python to the index at `/simple/`."""
    file = f"{name}-1.0-py3-none-any.whl"
    packed = io.BytesIO()
    info = f"{name}-1.0.dist-info"
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr(f"{name}.py", f"said = '{name} is here'\n")
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    registry.put(f"files/{file}", packed.getvalue())
    registry.put(
        f"simple/{name}/index.html", f'<!DOCTYPE html><html><body><a href="/files/{file}">{file}</a></body></html>'
    )


def add_repository(registry: Registry, name: str, work: Path) -> None:
    """Add a repository that git clones without a server of its own (`git update-server-info`)."""
    git = ("git", "-c", "user.name=A", "-c", "user.email=a@b.c")
    work.mkdir()
    (work / "file.txt").write_text("cloned\n")
    for words in (("init", "-q", "-b", "main"), ("add", "-A"), ("commit", "-qm", "first")):
        subprocess.run([*git, *words], cwd=work, check=True)
    target = registry.folder / name
    subprocess.run(["git", "clone", "-q", "--bare", str(work), str(target)], check=True)
    subprocess.run(["git", "update-server-info"], cwd=target, check=True)


def add_crate(registry: Registry, name: str) -> None:
    """Add a crate to a sparse index at `/index/`."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        manifest = f'[package]\nname = "{name}"\nversion = "1.0.0"\nedition = "2021"\n'
        for path, text in (
            ("Cargo.toml", manifest),
            ("src/lib.rs", f'pub fn said() -> &\'static str {{ "{name} is here" }}\n'),
        ):
            entry = tarfile.TarInfo(f"{name}-1.0.0/{path}")
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    content = packed.getvalue()
    registry.put("index/config.json", json.dumps({"dl": f"{registry.url}/crates/{{crate}}-{{version}}.crate"}))
    registry.put(f"crates/{name}-1.0.0.crate", content)
    line = {
        "name": name,
        "vers": "1.0.0",
        "deps": [],
        "cksum": hashlib.sha256(content).hexdigest(),
        "features": {},
        "yanked": False,
    }
    registry.put(f"index/{name[:2]}/{name[2:4]}/{name}", json.dumps(line) + "\n")
