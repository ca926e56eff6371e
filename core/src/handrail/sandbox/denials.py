"""Detection of what a sandbox seems to have blocked, from the output of a command that failed in it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from handrail.api.sandbox import Denial
from handrail.fs.sensitive_paths import SHARED_TEMPORARY
from handrail.net import urls
from handrail.undo.coverage import REPOSITORY_FOLDERS

if TYPE_CHECKING:
    from handrail.api.sandbox import Bounds
    from handrail.sandbox.gateway import RefusedTraffic

__all__ = ["PERMISSION_FAILURE", "detect_repository_denial", "refused_files"]

# Programs say why they failed at the end of what they print.
TAIL_CHARS = 20_000
MAX_PATHS = 40
NETWORK_FAILURE = re.compile(
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
FAILED_HOST = re.compile(
    r"""(?ix)
    (?: could\ not\ resolve\ host(?:name)?:? | unable\ to\ resolve\ host\ address | getaddrinfo\ (?:ENOTFOUND|EAI_AGAIN)
      | dial\ tcp:?\ lookup | failed\ to\ resolve | HTTPS?Connection(?:Pool)?\(host= | unknown\ host:? | couldn.t\ resolve\ host
      | unable\ to\ access\ 'https?://
    )
    \ ?['"\u2018\u201c]?(?P<host>[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?)
    """
)
MAX_HOSTS = 10
AUTH_FAILURE = re.compile(
    r"""(?ix)
    \bE401\b | \b401\ (?:client\ error|unauthorized|authorization\ required) | unauthorized\ \(401\) | HTTP\ (?:error|code|status)?:?\ ?401\b
    | could\ not\ read\ (?:username|password)\ for | authentication\ failed\ for | status\ code:?\ 401\b | returned\ error:\ 401\b
    """
)
WRITE_FAILURE = re.compile(r"(?i)read-only file ?system|\bEROFS\b")
BUSY_FAILURE = re.compile(r"(?i)device or resource busy|\bEBUSY\b")
# What git says of a file of the work tree that it leaves as it is, and goes on.
UNCHANGED = re.compile(
    r"""(?mx) ^(?:error|warning):\ (?:unable\ to|cannot)\ (?:unlink(?:\ old)?|create\ file|write\ file|update\ file)
    \ '?(?P<name>[^'\n]+?)'?:\ (?:Read-only\ file\ system|Device\ or\ resource\ busy)$"""
)
# What git says of a repository that it does not take for this user's, nor was told to trust.
OWNERSHIP_FAILURE = re.compile(r"detected dubious ownership in repository")
PERMISSION_FAILURE = re.compile(r"(?i)permission denied|\bEACCES\b")
PRIVILEGE_FAILURE = re.compile(
    r"""(?ix)
    (?:operation\ not\ permitted | \bEPERM\b | permission\ denied | must\ be\ (?:run\ as\ )?root | are\ you\ root
     | no\ new\ privileges | must\ be\ (?:owned\ by\ uid\ 0|setuid) | superuser)
    """
)
# Programs and calls that need what a sandbox never gives. Without one of these words the same message is an ordinary failure.
PRIVILEGED_ACTION = re.compile(
    r"(?i)\b(ptrace|strace|gdb|perf|mount|umount|unshare|setns|nsenter|chroot|sudo|doas|su|ping|modprobe|insmod|sysctl|iptables|nft|bpf|keyctl"
    r"|namespace|setuid|setgroups|mknod|chown|io_uring|userfaultfd|docker|podman|bwrap|socket)\b"
)
LIMIT_FAILURE = re.compile(
    r"(?i)resource temporarily unavailable|cannot allocate memory|file size limit exceeded|file too large|\bMemoryError\b|\bEFBIG\b"
)
MISSING_FILE_FAILURE = re.compile(
    r"(?i)no such file or directory|not found|\bENOENT\b|does not exist|cannot access|can't (?:open|cd)"
)
PATH_PATTERN = re.compile(r"(?:~|(?<![\w.~-]))/[\w.@+~/-]+")
# What a command sees at their own place, whatever the bounds.
VISIBLE_FOLDERS = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/lib32", "/proc", "/dev")


def detect_denial(output: str, exit_code: int, bounds: Bounds) -> Denial | None:
    """Return the refusal that a failed command's output suggests.

    None for a command that succeeded or seems to have failed for ordinary reasons.
    """
    if exit_code == 0:
        return None
    text = output[-TAIL_CHARS:]
    return (
        _detect_credential_denial(text, bounds)
        or _detect_network_denial(text, bounds)
        or _detect_secret_denial(text, bounds)
        or _detect_write_denial(text, bounds)
        or _detect_outside_denial(text, bounds)
        or _detect_privilege_denial(text)
        or _detect_limit_denial(text, exit_code)
    )


def describe_refused_hosts(traffic: RefusedTraffic, output: str) -> Denial | None:
    """Return the refusal of connections to hosts that were not allowed.

    None if there were none, or if the server's reply explains the failure.
    """
    if not traffic.places or (not traffic.askable and AUTH_FAILURE.search(output[-TAIL_CHARS:])):
        return None
    texts = "; ".join(
        refused.text
        for refused in list(traffic.refused.values())[:MAX_HOSTS]
        if refused.why not in ("not_allowed", "unreachable")
    )
    places = ", ".join(traffic.askable[:MAX_HOSTS])
    told = f"the sandbox refused connections to {places}" if places else ""
    return Denial("network", "; ".join(filter(None, (told, texts))), traffic.askable[:MAX_HOSTS])


def _detect_network_denial(text: str, bounds: Bounds) -> Denial | None:
    if bounds.network or (found := NETWORK_FAILURE.search(text)) is None:
        return None
    if bounds.hosts:
        way = "the sandbox reaches its hosts through a proxy (HTTPS_PROXY), and the command seems to have gone past it"
        return Denial("network", f"{way} ({found[0]!r})")
    told = f"the sandbox has no network, and the command seems to need one ({found[0]!r})"
    return Denial("network", told, tuple(_iter_named_hosts(text)))


def _iter_named_hosts(text: str) -> Iterator[str]:
    """Yield the public hosts that a command without network access names in its errors.

    The output is untrusted, so the names are shown to the user.
    """
    names = dict.fromkeys(found["host"].lower() for found in FAILED_HOST.finditer(text))
    views = (urls.evaluate_host(name) for name in list(names)[:MAX_HOSTS])
    yield from (view.host for view in views if view.host and view.floor is None)


def _detect_credential_denial(text: str, bounds: Bounds) -> Denial | None:
    if not bounds.hosts or (line := next(_iter_matching_lines(AUTH_FAILURE, text), None)) is None:
        return None
    cure = "a person can have it run on the host, with their own credentials: now, or by a rule that allows the command"
    return Denial("credentials", f"a server asked for credentials, which the sandbox does not have ({line!r}); {cure}")


def _detect_secret_denial(text: str, bounds: Bounds) -> Denial | None:
    for line in _iter_matching_lines(PERMISSION_FAILURE, text):
        for path in bounds.masked:
            if path.name in line:
                return Denial("secret", f"the sandbox hides {str(path)!r}, and the command seems to need it")
    return None


def detect_repository_denial(output: str, bounds: Bounds) -> Denial | None:
    """Return the refusal to change the data of version control that an output points to, also that of a command which ended well."""
    for line in _iter_matching_lines(BUSY_FAILURE, output[-TAIL_CHARS:]):
        for place in bounds.kept:
            if place.parent.name in REPOSITORY_FOLDERS and f"{place.parent.name}/{place.name}" in line:
                told = f"the sandbox keeps {str(place)!r} as it is, since git obeys it"
                return Denial("write", f"{told}; a command that a person approves can change it")
    for line in _iter_matching_lines(WRITE_FAILURE, output[-TAIL_CHARS:]):
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
    names = (match["name"] for match in UNCHANGED.finditer(output[-TAIL_CHARS:]))
    return tuple(dict.fromkeys(name for name in names if ".git" not in name.split("/")[:-1]))


def _detect_write_denial(text: str, bounds: Bounds) -> Denial | None:
    if (found := detect_repository_denial(text, bounds)) is not None:
        return found
    if (line := next(_iter_matching_lines(WRITE_FAILURE, text), None)) is not None:
        return Denial("write", f"the sandbox seems to have refused a write ({line!r})")
    if (line := next(_iter_matching_lines(OWNERSHIP_FAILURE, text), None)) is not None:
        told = f"where git may change one repository, it works in no other, and fetches from none on this machine ({line!r})"
        return Denial("write", f"{told}; run git in that one in a call of its own, without changing its settings")
    for line in _iter_matching_lines(BUSY_FAILURE, text):
        for path in (*bounds.kept, *bounds.anchored, *bounds.masked):
            if path.name in line:
                return Denial("write", f"the sandbox keeps {str(path)!r} as it is, and the command seems to change it")
    return None


def _detect_outside_denial(text: str, bounds: Bounds) -> Denial | None:
    shown = (*VISIBLE_FOLDERS, *map(str, (*bounds.writable, *bounds.readable)))
    for line in _iter_matching_lines(MISSING_FILE_FAILURE, text):
        for match in list(PATH_PATTERN.finditer(line))[:MAX_PATHS]:
            path = os.path.normpath(match[0].replace("~", str(bounds.home), 1) if match[0][0] == "~" else match[0])
            if any(path == root or path.startswith(f"{root}/") for root in shown) or path == "/":
                continue
            if os.path.lexists(path) and not _is_in_private_folder(path, bounds):
                return Denial("outside", f"the sandbox does not show {path!r}, and the command seems to need it")
    return None


def _is_in_private_folder(path: str, bounds: Bounds) -> bool:
    """Return True if a path exists in the private directory that is /tmp inside, or is that directory."""
    shared = next((folder for folder in SHARED_TEMPORARY if f"{path}/".startswith(f"{folder}/")), None)
    return shared is not None and os.path.lexists(f"{bounds.temporary}{path[len(shared) :]}")


def _detect_privilege_denial(text: str) -> Denial | None:
    for line in _iter_matching_lines(PRIVILEGE_FAILURE, text):
        if (power := PRIVILEGED_ACTION.search(line)) is not None:
            return Denial("privilege", f"the sandbox seems to have refused what {power[0]!r} needs ({line!r})")
    return None


def _detect_limit_denial(text: str, exit_code: int) -> Denial | None:
    if exit_code in (128 + 24, 128 + 25):
        return Denial("limit", "the command reached a limit of the sandbox: CPU time or the size of a file")
    if (line := next(_iter_matching_lines(LIMIT_FAILURE, text), None)) is not None:
        return Denial("limit", f"the command seems to have reached a limit of the sandbox ({line!r})")
    return None


def _iter_matching_lines(pattern: re.Pattern[str], text: str) -> Iterator[str]:
    """Yield the lines that match the pattern, last first, cut to a length that can be shown (200 characters)."""
    for line in reversed(text.splitlines()):
        if pattern.search(line):
            yield line.strip()[:200]
