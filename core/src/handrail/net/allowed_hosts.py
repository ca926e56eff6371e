"""Lists of hosts that connections are limited to."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from handrail.net import hostnames, urls

__all__ = ["AllowedHosts", "HostEntry"]

# The ports of a host that is named without one.
WEB_PORTS = frozenset(urls.DEFAULT_PORTS.values())
HOST_ENTRY = re.compile(r"(?P<below>\*\.)?(?P<host>\[[0-9A-Fa-f:.]+\]|[^\s:/@\[\]]+)(?::(?P<port>[1-9][0-9]{0,4}))?")


@dataclass(frozen=True, slots=True)
class HostEntry:
    """One entry of a list: `name`, `name:port`, or `*.name` for every name below it. Without a port it means 80 and 443."""

    host: str
    """The name in lower-case ASCII without a trailing dot, or an address without brackets."""
    port: int | None = None
    below: bool = False

    @classmethod
    def parse(cls, text: str) -> HostEntry:
        """Read an entry. Raises ValueError for anything that is not exactly one."""
        found = HOST_ENTRY.fullmatch(text)
        port = int(found["port"]) if found is not None and found["port"] else None
        host = urls.evaluate_host(found["host"]).host if found is not None else ""
        if not host or (port or 0) > 65535 or (found is not None and found["below"] and not host[-1].isalpha()):
            raise ValueError(f"{text!r} is not a host; give `name`, `name:port` or `*.name`")
        return cls(host, port, bool(found and found["below"]))

    def permits(self, host: str, port: int) -> bool:
        """Return True if a connection to this host and port is in the entry. `host` is written as in `HostEntry.host`."""
        if port not in (WEB_PORTS if self.port is None else (self.port,)):
            return False
        # Whole labels from the right: `evil-example.org` and `example.org.evil` are other hosts.
        return host.endswith(f".{self.host}") if self.below else host == self.host


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """Hosts that may be connected to; no other is."""

    entries: tuple[HostEntry, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> AllowedHosts:
        """Read a list. Raises ValueError for an entry that is not a host."""
        return cls(tuple(map(HostEntry.parse, texts)))

    def permits(self, host: str, port: int) -> bool:
        """Return True if any entry permits a connection to this host and port."""
        return any(entry.permits(host, port) for entry in self.entries)

    def covers(self, place: str) -> bool:
        """Return True if `place` (`host` or `host:port`, as `urls.place` gives it) lies within the list."""
        try:
            wanted = HostEntry.parse(place)
        except ValueError:
            return False
        ports = WEB_PORTS if wanted.port is None else (wanted.port,)
        return not wanted.below and all(self.permits(wanted.host, port) for port in ports)


def is_loopback(host: str) -> bool:
    """Return True for names and addresses by which a machine means itself: `localhost`, names below it, 127.0.0.0/8, ::1."""
    name = host.strip("[]").lower().removesuffix(".")
    return (
        hostnames.is_same_or_subdomain(name, "localhost")
        or name == "::1"
        or re.fullmatch(r"127(\.\d{1,3}){3}", name) is not None
    )
