"""Editing of a client's configuration file: read, change, back up, and replace atomically."""

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

from handrail.errors import HandrailError
from handrail.fs.app_dirs import ensure_private_folder
from handrail.fs.safe_open import ExpectedState, replace_file
from handrail_mcp.setup.clients import McpClient, ServerCommand
from handrail_mcp.setup.config_format import ConfigFormat, MalformedConfigError, get_table
from handrail_mcp.setup.jsonc_format import JsoncFormat
from handrail_mcp.setup.toml_format import TomlFormat
from handrail_mcp.setup.yaml_format import YamlFormat

BOM = b"\xef\xbb\xbf"
TEXT_FORMATS: Mapping[str, type[ConfigFormat]] = {"json": JsoncFormat, "toml": TomlFormat, "yaml": YamlFormat}

ChangeStatus = Literal["added", "updated", "unchanged", "removed", "absent"]


@dataclass(frozen=True, slots=True)
class ConfigFile:
    """Configuration file as it was read.

    `path` is the client's own name for it, `real` the path with symlinks resolved; `data` is None if the file does not
    exist.
    """

    path: Path
    real: Path
    data: bytes | None
    status: os.stat_result | None

    @property
    def text(self) -> str:
        """Content without a byte order mark, and with line feeds as line ends if all of them are CRLF.

        Raises `HandrailError` if the file is not in UTF-8.
        """
        try:
            text = (self.data or b"").removeprefix(BOM).decode()
        except UnicodeDecodeError as exc:
            raise HandrailError(
                f"{self.path} is not in UTF-8", hint="save it as UTF-8, and repeat this; it was not changed"
            ) from exc
        return text.replace("\r\n", "\n") if self._is_crlf else text

    def encoded(self, text: str) -> bytes:
        """Encode a text with the byte order mark and the line ends of this file."""
        data = text.replace("\n", "\r\n") if self._is_crlf else text
        return (BOM if (self.data or b"").startswith(BOM) else b"") + data.encode()

    @property
    def _is_crlf(self) -> bool:
        data = self.data or b""
        return b"\r\n" in data and data.count(b"\n") == data.count(b"\r\n")


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """Planned change of a configuration file."""

    file: ConfigFile
    done: ChangeStatus
    after: str

    @property
    def diff(self) -> str:
        """Unified diff for the user, with the file's own path."""
        name = str(self.file.path)
        before, after = self.file.text.splitlines(keepends=True), self.after.splitlines(keepends=True)
        lines = difflib.unified_diff(before, after, name if self.file.data is not None else os.devnull, name)
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def open_config_file(path: Path) -> ConfigFile:
    """Open the file at a path, which need not exist; `HandrailError` if it cannot be read or is not a regular file."""
    real = Path(os.path.realpath(path))
    try:
        # A pipe that nobody writes would hold us up, and a device has no end.
        with open(real, "rb", opener=_open_nonblocking) as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise HandrailError(f"{path} is no file", hint="name another with --file")
            return ConfigFile(path, real, file.read(), status)
    except FileNotFoundError:
        return ConfigFile(path, real, None, None)
    except OSError as exc:
        raise HandrailError(f"{path} cannot be read: {exc.strerror}", hint="name another with --file") from exc


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def plan_install(client: McpClient, file: ConfigFile, name: str, server: ServerCommand, *, force: bool) -> ConfigChange:
    """Plan to add the server under this name.

    What the user added to an entry of Handrail stays; an entry that is not Handrail's is only replaced with `force`.
    """
    entry, path = client.entry(name, server), (client.key, name)

    def change(text: ConfigFormat, content: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], Any]]:
        old = get_table(content, path[:1]).get(name)
        known = client.server(old)
        if old is None or (force and not (known and known.is_handrail)):
            yield path, entry
            return
        if known is None or not known.is_handrail:
            raise HandrailError(
                f"{file.path} has a server {name!r} already, which is not Handrail's",
                hint="give another --name, or replace it with --force",
            )
        yield from (((*path, *below), value) for below, value in _iter_entry_updates(client, entry, old))

    return _plan_change(client, file, change)


def plan_uninstall(client: McpClient, file: ConfigFile, name: str, *, force: bool) -> ConfigChange:
    """Plan to remove the server with this name; an entry that is not Handrail's is only removed with `force`."""
    text = TEXT_FORMATS[client.format]()
    before = file.text
    content = _read_content(client, file, text)
    table = _get_server_table(client, file, content)
    if name not in table:
        return ConfigChange(file, "absent", before)
    known = client.server(table[name])
    if not force and not (known and known.is_handrail):
        raise HandrailError(
            f"the server {name!r} in {file.path} is not Handrail's", hint="take it out all the same with --force"
        )
    with _attributing_errors(client, file):
        after = text.drop(before, (client.key, name))
    expected = copy.deepcopy(content)
    del expected[client.key][name]
    _check_edit(client, file, text, after, _drop_empty_table(expected, client.key))
    return ConfigChange(file, "removed", after)


def find_servers(client: McpClient, file: ConfigFile) -> dict[str, ServerCommand]:
    """Return the Handrail servers in a file, by name."""
    table = _get_server_table(client, file, _read_content(client, file, TEXT_FORMATS[client.format]()))
    known = {name: client.server(entry) for name, entry in table.items()}
    return {name: server for name, server in known.items() if server and server.is_handrail}


def format_entry(client: McpClient, name: str, server: ServerCommand) -> str:
    """Return the entry as the content of an otherwise empty file."""
    return TEXT_FORMATS[client.format]().put("", (client.key, name), client.entry(name, server))


def write_change(change: ConfigChange, backups: Path, *, secret: bool = False) -> Path | None:
    """Put the change into the file; a new one with a secret is its owner's alone. Gives the copy of what was there, None where nothing was."""
    file = change.file
    kept = None if file.data is None else _back_up_file(file, backups)
    mode = 0o600 if secret else 0o666
    replace_file(
        file.real, file.encoded(change.after), create_dirs=True, expected=ExpectedState(file.status), mode=mode
    )
    return kept


def _iter_entry_updates(
    client: McpClient, entry: Mapping[str, Any], old: Mapping[str, Any]
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield the values to set, each with its path below the entry.

    Command and arguments are always updated; other values are only added where missing, as the user may have chosen
    others. Environment variables are set one by one, so that the user's own ones stay.
    """
    ours = (client.names.command, client.names.args)
    environment = client.names.environment
    for key, value in entry.items():
        if key == environment and isinstance(old.get(key), dict):
            # One by one: what a person wrote beside them stays.
            yield from (((key, name), each) for name, each in value.items() if old[key].get(name) != each)
        elif (key in ours and old.get(key) != value) or key not in old:
            yield (key,), value


def _plan_change(
    client: McpClient,
    file: ConfigFile,
    change: Callable[[ConfigFormat, Mapping[str, Any]], Iterator[tuple[tuple[str, ...], Any]]],
) -> ConfigChange:
    text = TEXT_FORMATS[client.format]()
    after = file.text
    content = _read_content(client, file, text)
    _get_server_table(client, file, content)
    expected = copy.deepcopy(content)
    done: ChangeStatus = "unchanged"
    for path, value in change(text, content):
        with _attributing_errors(client, file):
            after = text.put(after, path, value)
        _set_value(expected, path, value)
        done = "updated" if client.key in content and path[1] in get_table(content, path[:1]) else "added"
    if done != "unchanged":
        _check_edit(client, file, text, after, expected)
    return ConfigChange(file, done, after)


def _set_value(content: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        content[key] = content.get(key) or {}
        content = content[key]
    content[path[-1]] = value


def _read_content(client: McpClient, file: ConfigFile, text: ConfigFormat) -> dict[str, Any]:
    with _attributing_errors(client, file):
        return text.read(file.text)


def _get_server_table(client: McpClient, file: ConfigFile, content: Mapping[str, Any]) -> dict[str, Any]:
    with _attributing_errors(client, file):
        return get_table(content, (client.key,))


def _check_edit(
    client: McpClient, file: ConfigFile, text: ConfigFormat, after: str, expected: Mapping[str, Any]
) -> None:
    """Check that an edit had exactly the expected result; raise an error if not."""
    try:
        found = text.read(after)
    except MalformedConfigError:
        found = None
    if found is None or _drop_empty_table(found, client.key) != _drop_empty_table(expected, client.key):
        raise _build_error(client, file, MalformedConfigError("this way of writing it cannot be edited here"))


def _drop_empty_table(content: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return the content without an empty server table, which is equivalent to a missing one."""
    return {each: value for each, value in content.items() if each != key or value}


@contextmanager
def _attributing_errors(client: McpClient, file: ConfigFile) -> Generator[None]:
    """Re-raise parse errors as errors that name the client's file."""
    try:
        yield
    except MalformedConfigError as exc:
        raise _build_error(client, file, exc) from exc


def _build_error(client: McpClient, file: ConfigFile, exc: MalformedConfigError) -> HandrailError:
    where = file.path if exc.line is None else f"{file.path}:{exc.line}"
    return HandrailError(
        f"{where}: {exc}",
        hint=f"nothing was changed; mend it, or edit it yourself: `handrail mcp install {client.name} --print` shows the entry",
    )


def _back_up_file(file: ConfigFile, backups: Path) -> Path:
    """Copy the file to the backup folder, readable only by the user.

    Backups are not placed beside the original, because a dotfiles or project folder may be shared.
    """
    folder = ensure_private_folder(backups)
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
