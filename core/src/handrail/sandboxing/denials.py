"""What a sandbox seems to have refused, told from the words of a command that failed in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from handrail.files.place_kinds import SHARED_TEMPORARY
from handrail.net import urls
from handrail.undo.coverage import REPOSITORY_FOLDERS

if TYPE_CHECKING:
    from handrail.sandboxing.gateway import Traffic
    from handrail.sandboxing.sandboxes import Bounds

What = Literal["network", "credentials", "write", "secret", "privilege", "outside", "limit"]

# Programs say why they failed at the end of what they print.
TAIL = 20_000
MAX_PATHS = 40
NETWORK = re.compile(
    r"""(?ix)
      network\ is\ unreachable | temporary\ failure\ in\ name\ resolution | name\ or\ service\ not\ known
    | could\ not\ resolve\ (?:host|hostname|proxy) | unable\ to\ resolve\ host | nodename\ nor\ servname | unknown\ host
    | \bENETUNREACH\b | \bEAI_AGAIN\b | getaddrinfo\ ENOTFOUND | failed\ to\ establish\ a\ new\ connection
    | dial\ tcp:?\ lookup | failed\ to\ lookup\ address | no\ address\ associated\ with\ hostname | name\ resolution\ failed
    | couldn.t\ resolve\ host | \(from\ versions:\ none\)
    | spurious\ network\ error | could\ not\ fetch\ url | unable\ to\ access\ 'https?:// | no\ route\ to\ host
    """
)
# Where programs that found no network name the host that they wanted.
HOST = re.compile(
    r"""(?ix)
    (?: could\ not\ resolve\ host(?:name)?:? | unable\ to\ resolve\ host\ address | getaddrinfo\ (?:ENOTFOUND|EAI_AGAIN)
      | dial\ tcp:?\ lookup | failed\ to\ resolve | HTTPS?Connection(?:Pool)?\(host= | unknown\ host:? | couldn.t\ resolve\ host
      | unable\ to\ access\ 'https?://
    )
    \ ?['"\u2018\u201c]?(?P<host>[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)
    """
)
MAX_HOSTS = 10
UNAUTHORIZED = re.compile(
    r"""(?ix)
    \bE401\b | \b401\ (?:client\ error|unauthorized|authorization\ required) | unauthorized\ \(401\) | HTTP\ (?:error|code|status)?:?\ ?401\b
    | could\ not\ read\ (?:username|password)\ for | authentication\ failed\ for | status\ code:?\ 401\b | returned\ error:\ 401\b
    """
)
WRITE = re.compile(r"(?i)read-only file ?system|\bEROFS\b")
BUSY = re.compile(r"(?i)device or resource busy|\bEBUSY\b")
# What git says of a file of the work tree that it leaves as it is, and goes on.
UNCHANGED = re.compile(
    r"""(?mx) ^(?:error|warning):\ (?:unable\ to|cannot)\ (?:unlink(?:\ old)?|create\ file|write\ file|update\ file)
    \ '?(?P<name>[^'\n]+?)'?:\ (?:Read-only\ file\ system|Device\ or\ resource\ busy)$"""
)
# What git says of a repository that it does not take for this user's, nor was told to trust.
UNTRUSTED = re.compile(r"detected dubious ownership in repository")
PERMISSION = re.compile(r"(?i)permission denied|\bEACCES\b")
PRIVILEGE = re.compile(
    r"""(?ix)
    (?:operation\ not\ permitted | \bEPERM\b | permission\ denied | must\ be\ (?:run\ as\ )?root | are\ you\ root
     | no\ new\ privileges | must\ be\ (?:owned\ by\ uid\ 0|setuid) | superuser)
    """
)
# Programs and calls that need what a sandbox never gives. Without one of these words the same message is an ordinary failure.
POWERS = re.compile(
    r"(?i)\b(ptrace|strace|gdb|perf|mount|umount|unshare|setns|nsenter|chroot|sudo|doas|su|ping|modprobe|insmod|sysctl|iptables|nft|bpf|keyctl"
    r"|namespace|setuid|setgroups|mknod|chown|io_uring|userfaultfd|docker|podman|bwrap|socket)\b"
)
LIMIT = re.compile(
    r"(?i)resource temporarily unavailable|cannot allocate memory|file size limit exceeded|file too large|\bMemoryError\b|\bEFBIG\b"
)
ABSENT = re.compile(
    r"(?i)no such file or directory|not found|\bENOENT\b|does not exist|cannot access|can't (?:open|cd)"
)
PATH = re.compile(r"(?:~|(?<![\w.~-]))/[\w.@+~/-]+")
# What a command sees at their own place, whatever the bounds.
SHOWN = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/proc", "/dev")


@dataclass(frozen=True, slots=True)
class Denial:
    """A refusal of the sandbox, as far as it is known: `what` for programs, `text` for people. `hosts`: those that a person may be asked about."""

    what: What
    text: str
    hosts: tuple[str, ...] = ()


def seen_in(output: str, exit_code: int, bounds: Bounds) -> Denial | None:
    """The refusal that the output of a failed command points to; None for a success, and for what looks like an ordinary failure."""
    if exit_code == 0:
        return None
    text = output[-TAIL:]
    return (
        _credentials(text, bounds)
        or _network(text, bounds)
        or _secret(text, bounds)
        or _write(text, bounds)
        or _outside(text, bounds)
        or _privilege(text)
        or _limit(text, exit_code)
    )


def refused_hosts(traffic: Traffic, output: str) -> Denial | None:
    """The refusal of connections to hosts that were not allowed; None where there were none, or what the server said explains the failure."""
    if not traffic.places or (not traffic.askable and UNAUTHORIZED.search(output[-TAIL:])):
        return None
    texts = "; ".join(
        refused.text
        for refused in list(traffic.refused.values())[:MAX_HOSTS]
        if refused.why not in ("not_allowed", "unreachable")
    )
    places = ", ".join(traffic.askable[:MAX_HOSTS])
    told = f"the sandbox refused connections to {places}" if places else ""
    return Denial("network", "; ".join(filter(None, (told, texts))), traffic.askable[:MAX_HOSTS])


def _network(text: str, bounds: Bounds) -> Denial | None:
    if bounds.network or (found := NETWORK.search(text)) is None:
        return None
    if bounds.hosts:
        way = "the sandbox reaches its hosts through a proxy (HTTPS_PROXY), and the command seems to have gone past it"
        return Denial("network", f"{way} ({found[0]!r})")
    told = f"the sandbox has no network, and the command seems to need one ({found[0]!r})"
    return Denial("network", told, tuple(_named_hosts(text)))


def _named_hosts(text: str) -> Iterator[str]:
    """The public hosts that a command without the network names in its errors. Its text is nobody's word: a person is shown the names."""
    names = dict.fromkeys(found["host"].lower() for found in HOST.finditer(text))
    views = (urls.host_view(name) for name in list(names)[:MAX_HOSTS])
    yield from (view.host for view in views if view.host and view.floor is None)


def _credentials(text: str, bounds: Bounds) -> Denial | None:
    if not bounds.hosts or (line := next(_lines(UNAUTHORIZED, text), None)) is None:
        return None
    cure = "a person can have it run on the host, with their own credentials: now, or by a rule that allows the command"
    return Denial("credentials", f"a server asked for credentials, which the sandbox does not have ({line!r}); {cure}")


def _secret(text: str, bounds: Bounds) -> Denial | None:
    for line in _lines(PERMISSION, text):
        for path in bounds.masked:
            if path.name in line:
                return Denial("secret", f"the sandbox hides {str(path)!r}, and the command seems to need it")
    return None


def refused_history(output: str, bounds: Bounds) -> Denial | None:
    """Return the refusal to change the data of version control that an output points to, also that of a command which ended well."""
    for line in _lines(BUSY, output[-TAIL:]):
        for place in bounds.kept:
            if place.parent.name in REPOSITORY_FOLDERS and f"{place.parent.name}/{place.name}" in line:
                told = f"the sandbox keeps {str(place)!r} as it is, since git obeys it"
                return Denial("write", f"{told}; a command that a person approves can change it")
    for line in _lines(WRITE, output[-TAIL:]):
        for place in bounds.kept:
            if place.name in REPOSITORY_FOLDERS and f"{place.name}/" in line:
                only = "unless git works in that one alone and nothing else in the command changes anything"
                return Denial(
                    "write",
                    f"the sandbox keeps {str(place)!r} as it is, {only}; run git in a call of its own, and what git would run in another",
                )
    return None


def refused_files(output: str) -> tuple[str, ...]:
    """Return the files of the work tree that git could not write or remove in the sandbox, as its output names them. It may end well all the same."""
    names = (match["name"] for match in UNCHANGED.finditer(output[-TAIL:]))
    return tuple(dict.fromkeys(name for name in names if ".git" not in name.split("/")[:-1]))


def _write(text: str, bounds: Bounds) -> Denial | None:
    if (found := refused_history(text, bounds)) is not None:
        return found
    if (line := next(_lines(WRITE, text), None)) is not None:
        return Denial("write", f"the sandbox seems to have refused a write ({line!r})")
    if (line := next(_lines(UNTRUSTED, text), None)) is not None:
        told = f"where git may change one repository, it works in no other, and fetches from none on this machine ({line!r})"
        return Denial("write", f"{told}; run git in that one in a call of its own, without changing its settings")
    for line in _lines(BUSY, text):
        for path in (*bounds.kept, *bounds.anchored, *bounds.masked):
            if path.name in line:
                return Denial("write", f"the sandbox keeps {str(path)!r} as it is, and the command seems to change it")
    return None


def _outside(text: str, bounds: Bounds) -> Denial | None:
    shown = (*SHOWN, *map(str, (*bounds.writable, *bounds.readable)))
    for line in _lines(ABSENT, text):
        for match in list(PATH.finditer(line))[:MAX_PATHS]:
            path = os.path.normpath(match[0].replace("~", str(bounds.home), 1) if match[0][0] == "~" else match[0])
            if any(path == root or path.startswith(f"{root}/") for root in shown) or path == "/":
                continue
            if os.path.lexists(path) and not _private(path, bounds):
                return Denial("outside", f"the sandbox does not show {path!r}, and the command seems to need it")
    return None


def _private(path: str, bounds: Bounds) -> bool:
    """Whether it is in the private folder that is /tmp inside, or is that."""
    shared = next((folder for folder in SHARED_TEMPORARY if f"{path}/".startswith(f"{folder}/")), None)
    return shared is not None and os.path.lexists(f"{bounds.temporary}{path[len(shared) :]}")


def _privilege(text: str) -> Denial | None:
    for line in _lines(PRIVILEGE, text):
        if (power := POWERS.search(line)) is not None:
            return Denial("privilege", f"the sandbox seems to have refused what {power[0]!r} needs ({line!r})")
    return None


def _limit(text: str, exit_code: int) -> Denial | None:
    if exit_code in (128 + 24, 128 + 25):
        return Denial("limit", "the command reached a limit of the sandbox: CPU time or the size of a file")
    if (line := next(_lines(LIMIT, text), None)) is not None:
        return Denial("limit", f"the command seems to have reached a limit of the sandbox ({line!r})")
    return None


def _lines(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """The lines that hold the pattern, short enough to be shown, last first."""
    for line in reversed(text.splitlines()):
        if pattern.search(line):
            yield line.strip()[:200]
