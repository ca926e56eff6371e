"""macOS: `sandbox-exec` with a profile that denies all but what is listed. Apple calls the program deprecated and ships it with every system."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import anyio

from handrail import Bounds, Confined, NoSandbox, Sandbox
from handrail.api.sandbox import ALL_ASPECTS
from handrail.workers.host_programs import START_FOLDER
from handrail_cli.sandboxes.limits import wrap_with_limits

SANDBOX_EXEC = "/usr/bin/sandbox-exec"
CHECK_S = 10.0
# What programs and their libraries read.
SYSTEM_PATHS = (
    "/usr", "/bin", "/sbin", "/System", "/Library/Apple", "/Library/Developer", "/Applications/Xcode.app", "/opt/homebrew", "/private/etc/ssl",
    "/private/etc/localtime", "/private/var/db/timezone", "/private/var/select", "/private/var/db/dyld", "/private/etc/passwd",
    "/private/etc/group", "/private/etc/protocols", "/private/etc/services", "/dev",
)  # fmt: skip
DEVICE_PATHS = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/dtracehelper")
# The services of the system that nearly every program asks.
SYSTEM_SERVICES = (
    "com.apple.system.logger", "com.apple.system.notification_center", "com.apple.system.opendirectoryd.libinfo",
    "com.apple.bsd.dirhelper", "com.apple.cfprefsd.agent", "com.apple.cfprefsd.daemon", "com.apple.trustd.agent",
)  # fmt: skip


class SeatbeltSandbox(Sandbox):
    """Confines with sandbox-exec. /tmp inside is the host's name for the private folder (TMPDIR), since nothing can be mounted."""

    name = "seatbelt"
    confines = ALL_ASPECTS
    networks = True
    descriptors = True

    @classmethod
    def missing(cls) -> str | None:
        """Another system, or one without the program."""
        if sys.platform != "darwin":
            return f"it works on macOS, and this is {sys.platform}"
        return None if Path(SANDBOX_EXEC).exists() else f"{SANDBOX_EXEC} is not there; it is a part of macOS"

    async def check(self) -> None:
        """Run `true` in it."""
        bounds = Bounds(writable=(), temporary=Path("/private/tmp"), home=Path("/var/empty"))
        words = [SANDBOX_EXEC, "-p", create_profile(bounds), "/usr/bin/true"]
        done = await anyio.to_thread.run_sync(
            lambda: subprocess.run(
                words, cwd=START_FOLDER, capture_output=True, text=True, timeout=CHECK_S, check=False
            )
        )
        if done.returncode != 0:
            raise NoSandbox(
                f"it does not work here: {done.stderr.strip()}",
                hint="a sandbox inside a sandbox is refused: start Handrail outside",
            )

    def confine(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], bounds: Bounds) -> Confined:
        """Return the command line of sandbox-exec."""
        if not any(cwd.is_relative_to(path) for path in (*bounds.writable, *bounds.readable, bounds.temporary)):
            raise NoSandbox(f"the folder {str(cwd)!r} is not shown in the sandbox, so nothing was run")
        if bounds.hosts and not bounds.network:
            raise NoSandbox("this sandbox cannot limit the network to hosts")
        given = {**environment, "TMPDIR": str(bounds.temporary)}
        return Confined((SANDBOX_EXEC, "-p", create_profile(bounds), *wrap_with_limits(argv, bounds.limits)), given)


def create_profile(bounds: Bounds) -> str:
    """Return the profile in Seatbelt's language, in which later lines override earlier ones."""
    return "".join(f"{line}\n" for line in _iter_profile_lines(bounds))


def _iter_profile_lines(bounds: Bounds) -> Iterator[str]:
    writable = (*bounds.writable, bounds.temporary)
    yield "(version 1)"
    yield "(deny default)"
    yield "(allow process-fork process-exec)"
    yield "(allow process-info* (target same-sandbox))"
    yield "(allow signal (target same-sandbox))"
    yield "(allow sysctl-read)"
    yield "(allow file-read-metadata)"
    yield '(allow file-read* (literal "/"))'
    yield f"(allow file-read* {_format_paths('subpath', map(Path, SYSTEM_PATHS))})"
    yield f"(allow file-read* {_format_paths('subpath', (*bounds.readable, *writable))})"
    yield f"(allow file-write* {_format_paths('subpath', writable)})"
    yield f"(allow file-write-data file-ioctl {_format_paths('literal', map(Path, DEVICE_PATHS))})"
    yield f"(allow mach-lookup {' '.join(f'(global-name {_quote_path(name)})' for name in SYSTEM_SERVICES)})"
    if bounds.network:
        yield "(allow network-outbound (remote ip))"
        yield "(allow network-inbound (local ip))"
        yield '(allow mach-lookup (global-name "com.apple.mDNSResponder"))'
        yield '(allow network-outbound (literal "/private/var/run/mDNSResponder"))'
    for path in bounds.anchored:
        yield f"(deny file-write-unlink (literal {_quote_path(str(path))}))"
    if bounds.kept:
        yield f"(deny file-write* {_format_paths('subpath', bounds.kept)})"
    if bounds.masked:
        yield f"(deny file-read* file-write* {_format_paths('subpath', bounds.masked)})"


def _format_paths(kind: str, paths: Iterator[Path] | Sequence[Path]) -> str:
    return " ".join(f"({kind} {_quote_path(str(path))})" for path in paths)


def _quote_path(text: str) -> str:
    """Quote a string in the profile's language; control characters raise `NoSandbox`."""
    if any(ord(letter) < 32 for letter in text):
        raise NoSandbox(f"the path {text!r} cannot be written into a profile")
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
