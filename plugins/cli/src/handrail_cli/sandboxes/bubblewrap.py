"""bubblewrap (Linux): private namespaces, a minimal read-only root, no capabilities, and a filter of system calls.

Only what is listed here is visible inside: the system's programs and libraries, a few files of /etc, and the bounds of
the call.
"""

from __future__ import annotations

import contextlib
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import anyio

from handrail import Bounds, Confined, NoSandbox, PreparedSandbox, Sandbox
from handrail.api.sandbox import ALL_ASPECTS
from handrail.fs.sensitive_paths import SHARED_TEMPORARY
from handrail.sandbox.scratch_folder import ScratchFolder
from handrail.workers import processes
from handrail.workers.host_programs import START_FOLDER, find_own_programs
from handrail_cli.sandboxes import limits, seccomp
from handrail_cli.sandboxes.descriptors import list_inheritable_descriptors
from handrail_cli.sandboxes.git_attributes import create_secret_attributes
from handrail_cli.sandboxes.proxy_listener import create_listener_command, list_interpreter_folders

BWRAP_PROGRAM = "bwrap"
INSTALL_HINT = "install bubblewrap (Debian, Ubuntu, Fedora: the package `bubblewrap`)"
# Sizes of what is kept in memory inside.
HOME_BYTES, SHARED_BYTES = 1 << 30, 256 << 20
# Names in a folder of /etc that is copied and not bound.
MAX_COPIED = 30
# Folders of /proc that show a process its own and hold nothing to be set.
HARMLESS_PROC_FOLDERS = frozenset(("tty", "sysvipc", "pressure"))
# What is a link at the top of many systems, and a folder on others.
TOP_LEVEL_LINKS = ("/bin", "/sbin", "/lib", "/lib64", "/lib32", "/libx32")
# Programs of systems that keep them elsewhere.
PROGRAM_STORES = ("/nix/store", "/gnu/store", "/run/current-system")
# Of /etc: how libraries are found, who this is, certificates, time, and what languages and tools look up. No keys, no passwords, no mounts.
ETC_FILES = (
    "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "alternatives", "ssl/certs", "ssl/openssl.cnf", "ca-certificates", "ca-certificates.conf",
    "pki/tls/certs", "pki/tls/cert.pem", "pki/tls/openssl.cnf", "pki/ca-trust", "crypto-policies", "localtime", "timezone", "mime.types",
    "magic", "protocols", "services", "os-release", "lsb-release", "debian_version", "gitattributes", "fonts", "inputrc", "terminfo",
    "java-11-openjdk", "java-17-openjdk", "java-21-openjdk", "java", "jvm", "perl", "python3", "papersize", "locale.conf", "locale.alias",
    "passwd", "group", "hosts", "resolv.conf", "hostname", "fstab", "networks", "issue", "issue.net", "motd", "manpath.config",
    "default/locale", "nsswitch.conf", "host.conf", "gai.conf", "shells", "bash_completion.d", "ant", "maven",
)  # fmt: skip
# Of /etc, when the host's network is used.
ETC_OF_NETWORK = ("resolv.conf", "hosts")
HOSTS = "127.0.0.1 localhost\n::1 localhost\n"
# The setting that keeps ordinary users from making namespaces, and the one that lets only some programs make them.
CLONE_SETTING = Path("/proc/sys/kernel/unprivileged_userns_clone")
APPARMOR_SETTING = Path("/proc/sys/kernel/apparmor_restrict_unprivileged_userns")
MAX_NAMESPACES = Path("/proc/sys/user/max_user_namespaces")
CHECK_S = 10.0


class BubblewrapSandbox(Sandbox):
    """Sandbox that uses bwrap. It has no network unless the bounds allow it, entirely or for some hosts."""

    name = "bubblewrap"
    confines = ALL_ASPECTS
    networks = True
    filters = True
    descriptors = True
    own_processes = True
    private_tmp = True

    @classmethod
    def missing(cls) -> str | None:
        """Return why bwrap cannot be used here (not available, or disabled by system settings), or None."""
        if sys.platform != "linux":
            return f"it works on Linux, and this is {sys.platform}"
        if (programs := find_own_programs()).find(BWRAP_PROGRAM) is None:
            return f"{programs.why_missing(BWRAP_PROGRAM)}; {INSTALL_HINT}"
        if seccomp.build_filter_program(network=False) is None:
            return f"the system calls of {platform.machine()!r} are not known to it; use another sandbox"
        return None if os.geteuid() == 0 else _explain_namespace_ban()

    async def check(self) -> None:
        """Run `true` in it. Raises `NoSandbox` with what the system has against it."""
        await anyio.to_thread.run_sync(self._try)

    def confine(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], bounds: Bounds) -> Confined:
        """Return the command line of bwrap; its options and its filter are passed by descriptors."""
        check_folder(cwd, bounds)
        words, fds, run = self._plumbed(self.options(bounds, cwd), bounds)
        given = {**environment, **create_own_variables(bounds)}
        channel: socket.socket | None = None
        if bounds.hosts and not bounds.network:
            channel, inside = socket.socketpair()
            fds.append(inside.detach())
            argv = create_listener_command(argv, fds[-1], given)
        inner = limits.wrap_with_limits(argv, bounds.limits)
        return Confined((*words, "--", *inner), given, tuple(fds), run.started, run.ended, channel)

    def is_set_up(self, pid: int) -> bool:
        """Return True once bwrap has bound everything, and has started the program inside or ended."""
        waiting = [pid]
        for each in waiting:
            if (name := processes.read_process_name(each)) and name != BWRAP_PROGRAM:
                return True
            waiting += _list_children(each)
        found = processes.read_process(pid)
        return found is None or found.state == "Z"

    def prepare(self, bounds: Bounds) -> PreparedSandbox | None:
        """Start bwrap with a first process that waits for commands; None where no Python is shown inside."""
        from handrail_cli.sandboxes.prepared_bwrap import PreparedBubblewrap, create_init_command, find_inner_python

        if (python := find_inner_python(bounds.readable)) is None:
            return None
        ours, theirs = socket.socketpair()
        words, fds, run = self._plumbed((*self.options(bounds, Path("/")), "--as-pid-1"), bounds)
        inner = create_init_command(python, theirs.fileno(), (str(bounds.home), "/dev/shm"))
        handed = (*fds, theirs.fileno())
        # What this process inherited itself (an open file of the program that started it) is nothing for commands.
        inherited = [fd for fd in list_inheritable_descriptors() if fd not in handed]
        try:
            pid = os.posix_spawn(
                self._program,
                (*words, "--", *limits.wrap_with_limits(inner, bounds.limits)),
                {"PATH": os.defpath, **create_own_variables(bounds)},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                    *((os.POSIX_SPAWN_CLOSE, fd) for fd in inherited),
                    *((os.POSIX_SPAWN_DUP2, fd, fd) for fd in handed),
                ],
                setsid=True,
            )
        except OSError:
            ours.close()
            run.ended()
            return None
        finally:
            theirs.close()
            for fd in fds:
                os.close(fd)
        run.started(pid)
        return PreparedBubblewrap(pid, ours, create_own_variables(bounds), run.ended)

    def _plumbed(self, options: Iterable[str], bounds: Bounds) -> tuple[Sequence[str], list[int], _BubblewrapRun]:
        """Return the first words of a bwrap with these options, the descriptors that it inherits, and what is known of its run."""
        group = self._groups.take(bounds.limits)
        with contextlib.ExitStack() as opened:
            text = b"".join(os.fsencode(option) + b"\0" for option in options)
            fds = [
                _create_memory_file("options", text),
                _create_memory_file("filter", self.filtering(bounds)),
                _create_memory_file("status", b""),
            ]
            for fd in fds:
                opened.callback(os.close, fd)
            status = os.dup(fds[2])
            words = [self._program, "--args", str(fds[0]), "--seccomp", str(fds[1]), "--json-status-fd", str(fds[2])]
            gate: int | None = None
            if group is not None:
                waiting, gate = os.pipe()
                fds.append(waiting)
                words += ["--block-fd", str(waiting)]
            opened.pop_all()
        return words, fds, _BubblewrapRun(status, gate, group, self._groups)

    def filtering(self, bounds: Bounds) -> bytes:
        """Return the program with which the kernel checks each system call."""
        program = seccomp.build_filter_program(network=bounds.network, local_sockets=bounds.local_sockets)
        assert program is not None
        return program

    def options(self, bounds: Bounds, cwd: Path) -> Iterator[str]:
        """Yield bwrap's options for these bounds, in the order in which it applies them."""
        yield from ("--unshare-user", "--unshare-all", "--die-with-parent", "--new-session", "--cap-drop", "ALL")
        yield from ("--share-net",) if bounds.network else ()
        yield from ("--disable-userns",) if self._disables else ()
        yield from ("--hostname", platform.node() or "localhost")
        yield from self._root
        yield from _iter_network_files(bounds)
        # What the kernel can be told through /proc belongs to root, with or without powers: some of it (core_pattern) runs programs on the host.
        yield from ("--proc", "/proc", *(word for path in self._settings for word in ("--ro-bind", path, path)))
        yield from ("--dev", "/dev", "--size", str(SHARED_BYTES), "--tmpfs", "/dev/shm")
        for place in SHARED_TEMPORARY:
            yield from ("--bind", str(bounds.temporary), place)
        yield from ("--size", str(HOME_BYTES), "--tmpfs", str(bounds.home))
        python = list_interpreter_folders(bounds) if bounds.hosts and not bounds.network else ()
        yield from (word for path in (*bounds.readable, *python) for word in ("--ro-bind", str(path), str(path)))
        yield from (word for place, file in bounds.shown.items() for word in ("--ro-bind", str(file), str(place)))
        yield from (word for path in (*bounds.writable, *bounds.anchored) for word in ("--bind", str(path), str(path)))
        yield from (word for path in bounds.kept for word in ("--ro-bind", str(path), str(path)))
        for path in bounds.masked:
            yield from ("--ro-bind", str(self._own / ("closed" if path.is_dir() else "hidden")), str(path))
        yield from ("--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(cwd))

    async def close(self) -> None:
        """Remove the substitute files and the control groups."""
        await anyio.to_thread.run_sync(self._groups.close)
        if "_scratch" in self.__dict__:
            await anyio.to_thread.run_sync(self._scratch.close)

    @cached_property
    def _groups(self) -> limits.ControlGroupPool:
        return limits.ControlGroupPool()

    @property
    def _program(self) -> str:
        programs = self.programs()
        found = programs.find(BWRAP_PROGRAM)
        if found is None:
            raise NoSandbox(programs.why_missing(BWRAP_PROGRAM), hint=INSTALL_HINT)
        return found

    @cached_property
    def _disables(self) -> bool:
        """True if this bwrap can prohibit further user namespaces (version 0.8 or later, not setuid)."""
        told = subprocess.run(
            [self._program, "--version"], cwd=START_FOLDER, capture_output=True, text=True, timeout=CHECK_S, check=False
        )
        version = re.search(r"(\d+)\.(\d+)", told.stdout)
        setuid = os.stat(self._program).st_mode & 0o4000 != 0
        return version is not None and (int(version[1]), int(version[2])) >= (0, 8) and not setuid

    @cached_property
    def _scratch(self) -> ScratchFolder:
        return ScratchFolder()

    @cached_property
    def _own(self) -> Path:
        """A folder with what is shown in the place of other files."""
        folder = self._scratch.temporary
        # What may not be opened fails; what looked empty would be taken for changed, and be committed so.
        (folder / "hidden").touch(mode=0o000)
        (folder / "closed").mkdir(mode=0o000)
        # A copy: each place that is bound by itself costs every command a part of a millisecond.
        etc = folder / "etc"
        etc.mkdir()
        for name in ETC_FILES:
            _copy_path(Path("/etc", name), etc / name)
        # Users of this machine are no secret, and programs tell who owns a file by them.
        hosts = etc / "hosts"
        named = hosts.exists() and "localhost" in hosts.read_text(errors="replace").split()
        for name, text in (
            ("hosts", "" if named else HOSTS),
            ("resolv.conf", ""),
            ("passwd", _format_passwd()),
            ("group", _format_group()),
        ):
            _append_missing_lines(etc / name, text)
        with (etc / "gitattributes").open("a") as file:
            file.write(f"\n{create_secret_attributes()}")
        return folder

    @cached_property
    def _settings(self) -> Sequence[str]:
        """The folders of /proc that are of no process, and files in it that can be written; only root could."""
        if os.geteuid() != 0:
            return ()
        with os.scandir("/proc") as entries:
            found = [
                entry
                for entry in entries
                if not entry.name.isdigit() and entry.name not in HARMLESS_PROC_FOLDERS and not entry.is_symlink()
            ]
        return [e.path for e in found if e.is_dir() or (e.is_file() and e.stat().st_mode & 0o222)]

    @cached_property
    def _root(self) -> Sequence[str]:
        """Options that are the same for every command: the system, read-only."""
        words = ["--ro-bind", "/usr", "/usr"]
        for top in TOP_LEVEL_LINKS:
            if os.path.islink(top):
                words += ["--symlink", os.readlink(top), top]
            elif os.path.isdir(top):
                words += ["--ro-bind", top, top]
        words += [word for store in PROGRAM_STORES if os.path.exists(store) for word in ("--ro-bind", store, store)]
        words += ["--dir", "/run", "--dir", "/var", "--symlink", "/run", "/var/run"]
        words += ["--ro-bind", str(self._own / "etc"), "/etc"]
        large = [name for name in ETC_FILES if _is_large_folder(Path("/etc", name))]
        return [
            *words,
            *(word for name in large for word in ("--ro-bind", os.path.realpath(f"/etc/{name}"), f"/etc/{name}")),
        ]

    def _try(self) -> None:
        bounds = Bounds(writable=(), temporary=self._own, home=Path("/home"))
        confined = self.confine(("/bin/true",), cwd=Path("/"), environment={"PATH": os.defpath}, bounds=bounds)
        try:
            process = subprocess.Popen(
                confined.argv,
                cwd=START_FOLDER,
                env=dict(confined.environment),
                pass_fds=confined.pass_fds,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
            )
        except OSError as exc:
            confined.ended()
            raise NoSandbox(f"it does not start: {exc}", hint=INSTALL_HINT) from exc
        finally:
            for fd in confined.pass_fds:
                os.close(fd)
        confined.started(process.pid)
        try:
            said = process.communicate(timeout=CHECK_S)[1].strip()
        except subprocess.TimeoutExpired:
            process.kill()
            said = process.communicate()[1] or f"nothing happened in {CHECK_S:g} s"
        confined.ended()
        if process.returncode != 0:
            raise NoSandbox(
                f"it does not work here: {said or f'exit code {process.returncode}'}", hint=suggest_remedy(said)
            )


class _BubblewrapRun:
    """One command that bwrap runs: what it says of itself, and the control group it is in."""

    def __init__(
        self, status: int, gate: int | None, group: limits.ControlGroup | None, groups: limits.ControlGroupPool
    ) -> None:
        self._status = status
        self._gate = gate
        self._group = group
        self._groups = groups

    def started(self, pid: int) -> None:
        """Put it into its group before it may run."""
        if self._group is not None:
            # One after another: what a process starts once it is in the group is in it, too.
            waiting = [pid]
            while waiting:
                self._group.put(waiting[0])
                waiting += _list_children(waiting.pop(0))
        if self._gate is not None:
            # One that is over already says why by its end.
            with contextlib.suppress(BrokenPipeError):
                os.write(self._gate, b"x")

    def ended(self) -> str | None:
        """Give everything back; why the command never ran."""
        if self._gate is not None:
            os.close(self._gate)
        if self._group is not None:
            self._groups.give_back(self._group)
        try:
            said = os.pread(self._status, 4096, 0)
        finally:
            os.close(self._status)
        return None if b"exit-code" in said else NEVER_RAN


NEVER_RAN = "bwrap could not set the sandbox up"


def suggest_remedy(said: str) -> str:
    """Return how to enable a sandbox on a system that refuses one with this message."""
    container = any(os.path.exists(mark) for mark in ("/.dockerenv", "/run/.containerenv"))
    if container:
        return (
            "inside a container: start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined "
            "--security-opt systempaths=unconfined` (Docker) so that namespaces can be made in it, with a /proc of their own, "
            'or use sandbox.use = ["docker"] with an engine of your own'
        )
    if _read_setting(APPARMOR_SETTING) == "1":
        return (
            "AppArmor lets only named programs make namespaces: install the profile for bwrap (Ubuntu: the package `apparmor-profiles`, "
            "then `sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo systemctl reload apparmor`)"
        )
    return (
        _explain_namespace_ban()
        or f"try `{BWRAP_PROGRAM} --unshare-all --ro-bind / / true` in a shell and see what it says ({said[:100]!r})"
    )


def _explain_namespace_ban() -> str | None:
    if _read_setting(CLONE_SETTING) == "0":
        return "ordinary users may not make namespaces here; sudo sysctl -w kernel.unprivileged_userns_clone=1"
    if _read_setting(MAX_NAMESPACES) == "0":
        return "no namespaces of users may be made here; sudo sysctl -w user.max_user_namespaces=15000"
    return None


def _read_setting(setting: Path) -> str | None:
    try:
        return setting.read_text().strip()
    except OSError:
        return None


def _iter_network_files(bounds: Bounds) -> Iterator[str]:
    for name in ETC_OF_NETWORK if bounds.network else ():
        if os.path.exists(file := f"/etc/{name}"):
            yield from ("--ro-bind", os.path.realpath(file), file)


def _is_large_folder(source: Path) -> bool:
    """Return True for a directory with more entries than are copied."""
    try:
        with os.scandir(source) as entries:
            return sum(1 for _ in entries) > MAX_COPIED
    except OSError:
        return False


def _copy_path(source: Path, target: Path) -> None:
    """Copy a file or a small folder of the system, links as they are; of a large one make the place. What cannot be read is left out."""
    with contextlib.suppress(OSError, shutil.Error):
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_symlink() and not str(source.resolve()).startswith("/usr/"):
            source = source.resolve()
        if _is_large_folder(source):
            target.mkdir()
        elif source.is_dir() and not source.is_symlink():
            shutil.copytree(source, target, symlinks=True, ignore_dangling_symlinks=True)
        else:
            shutil.copyfile(source, target, follow_symlinks=False)


def create_own_variables(bounds: Bounds) -> dict[str, str]:
    """Return the variables that every command inside gets."""
    return {"HOME": str(bounds.home), "TMPDIR": "/tmp"}


def check_folder(cwd: Path, bounds: Bounds) -> None:
    """Raise when the folder is not one of those that are shown."""
    shown = (*bounds.writable, *bounds.readable, Path("/usr"))
    private = [bounds.temporary / cwd.relative_to(tmp) for tmp in SHARED_TEMPORARY if cwd.is_relative_to(tmp)]
    there = any(cwd.is_relative_to(path) for path in shown) or any(path.is_dir() for path in private)
    if not there and cwd not in (Path("/"), bounds.home):
        raise NoSandbox(
            f"the folder {str(cwd)!r} is not shown in the sandbox, so nothing was run",
            hint="give a `cwd` in the workspace, or add the folder to sandbox.readable or sandbox.writable",
        )


def _list_children(pid: int) -> Sequence[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return ()


def _append_missing_lines(file: Path, text: str) -> None:
    """Append the lines whose first word up to a colon or blank the file does not have; a user may be known elsewhere only."""
    known = file.read_text(errors="replace") if file.exists() else ""
    names = {re.split(r"[:\s]", line, maxsplit=1)[0] for line in known.splitlines()}
    missing = [line for line in text.splitlines() if re.split(r"[:\s]", line, maxsplit=1)[0] not in names]
    file.write_text("".join(f"{line}\n" for line in (*known.splitlines(), *missing)))


def _create_memory_file(name: str, content: bytes) -> int:
    fd = os.memfd_create(f"handrail-{name}")
    os.write(fd, content)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def _format_passwd() -> str:
    import pwd

    lines = ["nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin"]
    with contextlib.suppress(KeyError):
        user = pwd.getpwuid(os.getuid())
        lines.append(f"{user.pw_name}:x:{user.pw_uid}:{user.pw_gid}::{user.pw_dir}:/bin/bash")
    return "".join(f"{line}\n" for line in lines)


def _format_group() -> str:
    import grp

    lines = ["nogroup:x:65534:"]
    with contextlib.suppress(KeyError):
        group = grp.getgrgid(os.getgid())
        lines.append(f"{group.gr_name}:x:{group.gr_gid}:")
    return "".join(f"{line}\n" for line in lines)
