"""Container engines and print servers: whether programs that ask them find them on this machine, or reach another by the person's settings.

Sources: docs.docker.com/engine/manage-resources/contexts, containers.conf(5), podman-system-connection(1), client.conf(5) of CUPS.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from handrail import EvaluationContext
from handrail.json_types import is_mapping

# A socket or a pipe of this machine: by its scheme or as a path.
LOCAL_SOCKET = re.compile(r"(?:(?:unix|npipe|fd):|/).*", re.IGNORECASE | re.DOTALL)
# The context of docker that is what DOCKER_HOST says, or the engine of this machine.
DEFAULT_CONTEXT = "default"
SYSTEM_CONTAINERS = (Path("/usr/share/containers"), Path("/etc/containers"))
LOCAL_PRINTING = re.compile(r"(?:/.*|(?:localhost|127\.0\.0\.1|\[::1\])(?:[:/].*)?)", re.IGNORECASE)
PRINT_SERVER = re.compile(r"(?im)^[ \t]*ServerName[ \t]+(\S+)")


class UnreadableSettings(Exception):
    """A settings file that is there and could not be read; its text is the path."""


def find_remote_engine(program: str, judging: EvaluationContext) -> str | None:
    """Return the address of the engine that a program asks where it is not a socket of this machine; None where it is.

    What settings that cannot be read say counts as an address elsewhere. Without `judging.read_text` the variables alone are looked at.
    """
    kind = program.rpartition("/")[2]
    settings = (
        _find_print_servers
        if kind.startswith("lp")
        else _find_podman_engines
        if kind == "podman"
        else _find_docker_engines
    )
    try:
        return next(settings(judging), None)
    except UnreadableSettings as exc:
        return f"what {str(exc)!r} says, which cannot be read"


def _find_docker_engines(judging: EvaluationContext) -> Iterator[str]:
    """Yield the remote addresses that docker, or a program in its place, may use."""
    yield from _find_in_variables(judging, "DOCKER_HOST", "CONTAINER_HOST", "CONTAINERD_ADDRESS")
    # What asks without approval is given no variables, and obeys the folder in the home in any case.
    folders = {judging.home / ".docker", Path(judging.environment.get("DOCKER_CONFIG") or judging.home / ".docker")}
    for folder in sorted(folders):
        file = folder / "config.json"
        settings = _parse_settings(file, json.loads, judging)
        for context in (settings.get("currentContext"), judging.environment.get("DOCKER_CONTEXT")):
            if context and context != DEFAULT_CONTEXT:
                yield from _iter_if_remote(_find_context_address(folder, str(context), judging))
    yield from _find_configured_services(SYSTEM_CONTAINERS, judging)


def _find_podman_engines(judging: EvaluationContext) -> Iterator[str]:
    """Yield the remote addresses that podman may use."""
    yield from _find_in_variables(judging, "CONTAINER_HOST", "DOCKER_HOST")
    if connection := judging.environment.get("CONTAINER_CONNECTION"):
        yield connection
    own = Path(judging.environment.get("XDG_CONFIG_HOME") or judging.home / ".config") / "containers"
    yield from _find_configured_services((*SYSTEM_CONTAINERS, own), judging)
    connections = _parse_settings(own / "podman-connections.json", json.loads, judging).get("Connection")
    if name := _get_nested(connections, "Default"):
        yield from _iter_if_remote(_get_nested(connections, "Connections", str(name), "URI"))


def _find_print_servers(judging: EvaluationContext) -> Iterator[str]:
    """Yield the remote print servers that programs of CUPS may contact."""
    named = [judging.environment.get("CUPS_SERVER")]
    for file in (judging.home / ".cups/client.conf", Path("/etc/cups/client.conf")):
        named += PRINT_SERVER.findall(_read_settings(file, judging) or "")
    yield from (server for server in named if server and not LOCAL_PRINTING.fullmatch(server))


def _find_in_variables(judging: EvaluationContext, *names: str) -> Iterator[str]:
    for name in names:
        if address := judging.environment.get(name):
            yield from _iter_if_remote(address)


def _iter_if_remote(address: Any) -> Iterator[str]:
    """Yield the address unless it is local; an unspecified address counts as remote."""
    if not isinstance(address, str) or not LOCAL_SOCKET.fullmatch(address):
        yield str(address or "an address that is not told")


def _find_context_address(folder: Path, context: str, judging: EvaluationContext) -> Any:
    """Return the address of a docker context; None if it is not specified."""
    file = folder / "contexts/meta" / hashlib.sha256(context.encode()).hexdigest() / "meta.json"
    return _get_nested(_parse_settings(file, json.loads, judging), "Endpoints", "docker", "Host")


def _find_configured_services(folders: tuple[Path, ...], judging: EvaluationContext) -> Iterator[str]:
    """Yield the remote services that `containers.conf` in these directories configures for podman."""
    for file in (file for folder in folders for file in _list_container_settings(folder)):
        engine = _parse_settings(file, tomllib.loads, judging).get("engine")
        if name := _get_nested(engine, "active_service"):
            yield from _iter_if_remote(_get_nested(engine, "service_destinations", str(name), "uri"))
        elif _get_nested(engine, "remote"):
            yield from _iter_if_remote(None)


def _list_container_settings(folder: Path) -> Iterator[Path]:
    yield folder / "containers.conf"
    yield from sorted((folder / "containers.conf.d").glob("*.conf"))


def _get_nested(settings: Any, *names: str) -> Any:
    """Return the value under these names, one in another, or None."""
    for name in names:
        settings = settings.get(name) if is_mapping(settings) else None
    return settings


def _parse_settings(file: Path, parse: Callable[[str], Any], judging: EvaluationContext) -> Mapping[str, Any]:
    """Return the settings in a file, empty if the file does not exist."""
    text = _read_settings(file, judging)
    if text is None:
        return {}
    try:
        settings = parse(text)
    # json and tomllib raise errors of this kind, and the first runs out of stack for nested lists.
    except (ValueError, RecursionError) as exc:
        raise UnreadableSettings(file) from exc
    if not is_mapping(settings):
        raise UnreadableSettings(file)
    return settings


def _read_settings(file: Path, judging: EvaluationContext) -> str | None:
    """Return the text of a settings file; None if it does not exist."""
    if judging.read_text is None:
        return None
    text = judging.read_text(file)
    if text is None and os.path.lexists(file):
        raise UnreadableSettings(file)
    return text
