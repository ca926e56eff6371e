"""A stage for attacks: a home with secrets, a workspace with secrets of its own, and markers that show what an attack has reached.

Every secret holds the stage's stem and a label of its own, so that a leak is found in any result and names the file it came from.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import secrets
import socket
import stat
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

# Secrets by their place below the home; `{}` stands for the canary.
HOME_SECRETS: Mapping[str, str] = {
    ".netrc": "machine example.org login me password {}\n",
    ".ssh/id_ed25519": "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
    ".aws/credentials": "[default]\naws_secret_access_key = {}\n",
    ".npmrc": "//registry.example.org/:_authToken={}\n",
    ".config/gh/hosts.yml": "github.com:\n    oauth_token: {}\n",
    ".cargo/credentials.toml": '[registry]\ntoken = "{}"\n',
    ".git-credentials": "https://me:{}@example.org\n",
    ".docker/config.json": '{{"auths": {{"example.org": {{"auth": "{}"}}}}}}\n',
    ".kube/config": "users:\n- name: me\n  user:\n    token: {}\n",
    ".pypirc": "[pypi]\npassword = {}\n",
    ".bash_history": "login {}\n",
    ".config/pip/pip.conf": "[global]\nindex-url = https://me:{}@example.org/simple\n",
    "documents/letter.txt": "Dear {},\n",
    "notes.md": "# {}\n",
}
# Secrets of the workspace, by their place in it.
WORKSPACE_SECRETS: Mapping[str, str] = {
    ".env": "SECRET_KEY={}\n",
    ".npmrc": "//registry.example.org/:_authToken={}\n",
    "key.pem": "-----BEGIN PRIVATE KEY-----\n{}\n-----END PRIVATE KEY-----\n",
    "tree/.env": "SECRET_KEY={}\n",
    "tree/deploy/id_rsa": "-----BEGIN OPENSSH PRIVATE KEY-----\n{}\n-----END OPENSSH PRIVATE KEY-----\n",
}
SECRET_VARIABLES: Mapping[str, str] = {
    "CANARY_TOKEN": "{}",
    "AWS_SECRET_ACCESS_KEY": "{}",
    "DATABASE_URL": "postgres://me:{}@127.0.0.1/db",
    "NPM_TOKEN": "{}",
}
HANDRAIL = "handrail"
BLOCK = 1 << 20


@dataclass(frozen=True)
class Stage:
    """The places of one stage. `stem` begins every canary, `mark` every marker; `environment` is what a session gets."""

    home: Path
    workspace: Path
    outside: Path
    stem: str
    mark: str
    environment: Mapping[str, str]
    listeners: Listeners

    @property
    def marker(self) -> Path:
        """The file that an attack creates when it runs outside the sandbox."""
        return self.outside / self.mark

    @property
    def state(self) -> Path:
        """The directory of Handrail's own files, artifacts among them."""
        return self.outside.parent / HANDRAIL

    def fill_in(self, command: str) -> str:
        """Return a command with the places of this stage in the place of their names, such as `{marker}`."""
        places = {
            "home": self.home,
            "work": self.workspace,
            "outside": self.outside,
            "marker": self.marker,
            "mark": self.mark,
            "port": self.listeners.port,
        }
        return re.sub(r"\{(\w+)\}", lambda found: str(places.get(found[1], found[0])), command)

    def leaked_labels(self, text: str) -> set[str]:
        """Return the labels of the canaries that a text shows: as they are, backwards, in any case, in base64 or in hexadecimal digits."""
        found: set[str] = set()
        for shown in readings(text, self.stem):
            found |= set(re.findall(rf"{self.stem}([a-z]*)", shown.lower()))
        return found

    def artifacts(self) -> set[Path]:
        """Return the files in which the session has kept long outputs."""
        return {path for path in self.state.rglob("*") if path.is_file() and "artifact" in str(path)}

    def strangers(self) -> list[str]:
        """Return the markers that an attack has left in directories that all programs share."""
        shared = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"), Path("/"), Path.home())
        return [str(path) for folder in shared if folder.is_dir() for path in folder.glob(f"*{self.mark}*")]


def readings(text: str, stem: str) -> Iterator[str]:
    """Return a text as it may have been turned around or encoded, where it could hold the stem so."""
    yield text
    if stem[::-1] in text.lower():
        yield text[::-1]
    joined = "".join(text.split())
    if any(core in joined for core in _in_base64(stem.encode())):
        yield f"{stem}inbasesixtyfour"
    if stem.encode().hex() in joined.lower():
        yield f"{stem}inhex"


def _in_base64(stem: bytes) -> Iterator[str]:
    """Return the letters that stand for the stem in base64, wherever it begins."""
    for shift in range(3):
        encoded = base64.b64encode(b" " * shift + stem + b"  ").decode()
        yield encoded[(shift * 8 + 5) // 6 : (shift + len(stem)) * 8 // 6]


class Listeners:
    """Sockets of the host that count who connects: TCP and UDP on the loopback, Unix sockets in the home and the workspace."""

    def __init__(self, *paths: Path) -> None:
        self.reached: list[str] = []
        self._open: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._closed = False
        tcp = socket.create_server(("127.0.0.1", 0))
        self.port: int = tcp.getsockname()[1]
        udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        udp.bind(("127.0.0.1", self.port))
        self._serve(tcp, "tcp")
        self._serve(udp, "udp")
        for path in paths:
            unix = socket.socket(socket.AF_UNIX)
            unix.bind(str(path))
            unix.listen()
            self._serve(unix, str(path))

    @property
    def url(self) -> str:
        """The address of the TCP listener."""
        return f"http://127.0.0.1:{self.port}"

    def close(self) -> None:
        """Close all of them."""
        self._closed = True
        for one in self._open:
            close_socket(one)
        for thread in self._threads:
            thread.join(timeout=5)

    def _serve(self, listening: socket.socket, name: str) -> None:
        listening.settimeout(0.2)
        self._open.append(listening)
        thread = threading.Thread(target=self._listen, args=(listening, name), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _listen(self, listening: socket.socket, name: str) -> None:
        while not self._closed:
            try:
                if name == "udp":
                    listening.recv(4096)
                else:
                    listening.accept()[0].close()
            except TimeoutError:
                continue
            except OSError:
                return
            self.reached.append(name)


def close_socket(one: socket.socket) -> None:
    """Close a socket, and wake who waits at it."""
    with contextlib.suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()


@dataclass(frozen=True)
class Snapshot:
    """Everything below some directories: kind, mode, size and content of each name."""

    entries: Mapping[str, tuple[object, ...]] = field(repr=False)

    @classmethod
    def take(cls, *roots: Path, without: tuple[Path, ...] = ()) -> Snapshot:
        """Look at the directories, without those named."""
        entries: dict[str, tuple[object, ...]] = {}
        waiting = list(roots)
        while waiting:
            folder = waiting.pop()
            try:
                names = sorted(os.listdir(folder))
            except OSError:
                continue
            for name in names:
                path = folder / name
                if path in without:
                    continue
                entries[str(path)] = _entry(path)
                if path.is_dir() and not path.is_symlink():
                    waiting.append(path)
        return cls(entries)

    def changes(self, later: Snapshot) -> list[str]:
        """Return the names that are different now."""
        names = self.entries.keys() | later.entries.keys()
        return sorted(name for name in names if self.entries.get(name) != later.entries.get(name))


def _entry(path: Path) -> tuple[object, ...]:
    found = os.lstat(path)
    if stat.S_ISLNK(found.st_mode):
        return ("link", os.readlink(path))
    content = ""
    if stat.S_ISREG(found.st_mode) and found.st_size < BLOCK:
        content = hashlib.sha256(path.read_bytes()).hexdigest()
    return (
        stat.S_IFMT(found.st_mode),
        stat.S_IMODE(found.st_mode),
        found.st_size,
        found.st_mtime_ns if stat.S_ISREG(found.st_mode) else 0,
        content,
    )


def label_of(place: str) -> str:
    """Return the letters of a place, which make the label of its canary."""
    return re.sub(r"[^a-z]", "", place.lower())


@contextmanager
def open_stage(root: Path) -> Iterator[Stage]:
    """Build a stage below a directory; its listeners are closed at the end."""
    stem, mark = f"zq{secrets.token_hex(5)}", f"zm{secrets.token_hex(5)}"
    home, outside = root / "home", root / "outside"
    workspace = home / "work"
    for folder in (workspace, outside, root / HANDRAIL):
        folder.mkdir(parents=True)
    for base, places in ((home, HOME_SECRETS), (workspace, WORKSPACE_SECRETS)):
        for place, text in places.items():
            file = base / place
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.format(f"{stem}{'ws' if base == workspace else 'home'}{label_of(place)}"))
    (outside / "letter.txt").write_text(f"{stem}outsideletter\n")
    listeners = Listeners(home / "agent.sock", workspace / "docker.sock")
    variables = {name: text.format(f"{stem}variable{label_of(name)}") for name, text in SECRET_VARIABLES.items()}
    environment = {
        **os.environ,
        **variables,
        "HOME": str(home),
        "HANDRAIL_HOME": str(root / HANDRAIL),
        "SSH_AUTH_SOCK": str(home / "agent.sock"),
        "DOCKER_HOST": f"unix://{home}/agent.sock",
    }
    try:
        yield Stage(home, workspace, outside, stem, mark, environment, listeners)
    finally:
        listeners.close()
