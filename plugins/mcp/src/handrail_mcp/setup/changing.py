"""A client's configuration file, read, changed and written back: whole, at once, with a copy of what was there."""

from __future__ import annotations

import copy
import difflib
import os
import stat
import time
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from handrail.config.places import private_folder
from handrail.errors import HandrailError
from handrail.files.opened import Expected, replace
from handrail_mcp.setup.clients import Client, Server
from handrail_mcp.setup.jsonc import Jsonc
from handrail_mcp.setup.texts import BrokenError, Text, table_at
from handrail_mcp.setup.toml import Toml
from handrail_mcp.setup.yamls import Yaml

BOM = b"\xef\xbb\xbf"
TEXTS: Mapping[str, type[Text]] = {"json": Jsonc, "toml": Toml, "yaml": Yaml}

Done = Literal["added", "updated", "unchanged", "removed", "absent"]


@dataclass(frozen=True, slots=True)
class File:
    """A configuration file as it was read. `path` is the client's own word for it, `real` where the links lead; `data` is None where none is."""

    path: Path
    real: Path
    data: bytes | None
    status: os.stat_result | None

    @property
    def text(self) -> str:
        """What it says, without a mark of its encoding, lines ending in a line feed alone where all end alike."""
        try:
            text = (self.data or b"").removeprefix(BOM).decode()
        except UnicodeDecodeError as exc:
            raise HandrailError(
                f"{self.path} is not in UTF-8", hint="save it as UTF-8, and repeat this; it was not changed"
            ) from exc
        return text.replace("\r\n", "\n") if self._is_crlf else text

    def encoded(self, text: str) -> bytes:
        """A text as this file would have it."""
        data = text.replace("\n", "\r\n") if self._is_crlf else text
        return (BOM if (self.data or b"").startswith(BOM) else b"") + data.encode()

    @property
    def _is_crlf(self) -> bool:
        data = self.data or b""
        return b"\r\n" in data and data.count(b"\n") == data.count(b"\r\n")


@dataclass(frozen=True, slots=True)
class Change:
    """What is to be done to a file."""

    file: File
    done: Done
    after: str

    @property
    def diff(self) -> str:
        """For a person, with the file's own path."""
        name = str(self.file.path)
        before, after = self.file.text.splitlines(keepends=True), self.after.splitlines(keepends=True)
        lines = difflib.unified_diff(before, after, name if self.file.data is not None else os.devnull, name)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def open_file(path: Path) -> File:
    """The file at a path, or what shall be one. Raises `HandrailError` where something else is."""
    real = Path(os.path.realpath(path))
    try:
        # A pipe that nobody writes would hold us up, and a device has no end.
        with open(real, "rb", opener=_opener) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise HandrailError(f"{path} is no file", hint="name another with --file")
            return File(path, real, file.read(), status)
    except FileNotFoundError:
        return File(path, real, None, None)
    except OSError as exc:
        raise HandrailError(f"{path} cannot be read: {exc.strerror}", hint="name another with --file") from exc


def _opener(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def installing(client: Client, file: File, name: str, server: Server, *, force: bool) -> Change:
    """The server under this name. What a person added to an entry of ours stays; one that is not ours is replaced by force only."""
    entry, path = client.entry(name, server), (client.key, name)

    def change(text: Text, content: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
        old = table_at(content, path[:1]).get(name)
        known = client.server(old)
        if old is None or (force and not (known and known.is_handrail)):
            yield path, entry
            return
        if known is None or not known.is_handrail:
            raise HandrailError(
                f"{file.path} has a server {name!r} already, which is not Handrail's",
                hint="give another --name, or replace it with --force",
            )
        yield from (((*path, *below), value) for below, value in _wanted(client, entry, old))

    return _changed(client, file, change)


def uninstalling(client: Client, file: File, name: str, *, force: bool) -> Change:
    """Without the server of this name. One that is not ours is taken out by force only."""
    text = TEXTS[client.format]()
    before = file.text
    content = _read(client, file, text)
    table = _table(client, file, content)
    if name not in table:
        return Change(file, "absent", before)
    known = client.server(table[name])
    if not force and not (known and known.is_handrail):
        raise HandrailError(
            f"the server {name!r} in {file.path} is not Handrail's", hint="take it out all the same with --force"
        )
    with _blaming(client, file):
        after = text.drop(before, (client.key, name))
    expected = copy.deepcopy(content)
    del expected[client.key][name]
    _check(client, file, text, after, _tidy(expected, client.key))
    return Change(file, "removed", after)


def servers(client: Client, file: File) -> dict[str, Server]:
    """The servers in a file that are ours, by name."""
    table = _table(client, file, _read(client, file, TEXTS[client.format]()))
    known = {name: client.server(entry) for name, entry in table.items()}
    return {name: server for name, server in known.items() if server and server.is_handrail}


def shown(client: Client, name: str, server: Server) -> str:
    """The entry as it would stand in a file of its own."""
    return TEXTS[client.format]().put("", (client.key, name), client.entry(name, server))


def write(change: Change, backups: Path, *, secret: bool = False) -> Path | None:
    """Put the change into the file; a new one with a secret is its owner's alone. Gives the copy of what was there, None where nothing was."""
    file = change.file
    kept = None if file.data is None else _keep(file, backups)
    mode = 0o600 if secret else 0o666
    replace(file.real, file.encoded(change.after), create_dirs=True, expected=Expected(file.status), mode=mode)
    return kept


def _wanted(client: Client, entry: Mapping[str, Any], old: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The parts that are set, each with its place; the rest is only filled in, since a person may have chosen otherwise."""
    ours = (client.names.command, client.names.args)
    environment = client.names.environment
    for key, value in entry.items():
        if key == environment and isinstance(old.get(key), dict):
            # One by one: what a person wrote beside them stays.
            yield from (((key, name), each) for name, each in value.items() if old[key].get(name) != each)
        elif (key in ours and old.get(key) != value) or key not in old:
            yield (key,), value


def _changed(
    client: Client, file: File, change: Callable[[Text, Mapping[str, Any]], Iterator[tuple[tuple[str, ...], Any]]]
) -> Change:
    text = TEXTS[client.format]()
    after = file.text
    content = _read(client, file, text)
    _table(client, file, content)
    expected = copy.deepcopy(content)
    done: Done = "unchanged"
    for path, value in change(text, content):
        with _blaming(client, file):
            after = text.put(after, path, value)
        _set(expected, path, value)
        done = "updated" if client.key in content and path[1] in table_at(content, path[:1]) else "added"
    if done != "unchanged":
        _check(client, file, text, after, expected)
    return Change(file, done, after)


def _set(content: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        content[key] = content.get(key) or {}
        content = content[key]
    content[path[-1]] = value


def _read(client: Client, file: File, text: Text) -> dict[str, Any]:
    with _blaming(client, file):
        return text.read(file.text)


def _table(client: Client, file: File, content: Mapping[str, Any]) -> dict[str, Any]:
    with _blaming(client, file):
        return table_at(content, (client.key,))


def _check(client: Client, file: File, text: Text, after: str, expected: Mapping[str, Any]) -> None:
    """An edit counts only when it says what was meant, and nothing else."""
    try:
        found = text.read(after)
    except BrokenError:
        found = None
    if found is None or _tidy(found, client.key) != _tidy(expected, client.key):
        raise _broken(client, file, BrokenError("this way of writing it cannot be edited here"))


def _tidy(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Without an empty table of servers: that and none are the same."""
    return {each: value for each, value in content.items() if each != key or value}


@contextmanager
def _blaming(client: Client, file: File) -> Generator[None]:
    """What is broken inside is told as a fault of the client's file."""
    try:
        yield
    except BrokenError as exc:
        raise _broken(client, file, exc) from exc


def _broken(client: Client, file: File, exc: BrokenError) -> HandrailError:
    where = file.path if exc.line is None else f"{file.path}:{exc.line}"
    return HandrailError(
        f"{where}: {exc}",
        hint=f"nothing was changed; mend it, or edit it yourself: `handrail mcp install {client.name} --print` shows the entry",
    )


def _keep(file: File, backups: Path) -> Path:
    """A copy that only the user can read, beside nothing that others look at: a folder of dotfiles or a project may be shared."""
    folder = private_folder(backups)
    stamp = time.strftime("%Y%m%d-%H%M%S")
    number = 0
    while True:
        path = folder / f"{stamp}-{number}-{file.real.name}"
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
        except FileExistsError:
            number += 1
            continue
        with open(descriptor, "wb") as copied:
            copied.write(file.data or b"")
            copied.flush()
            os.fsync(descriptor)
        return path
