"""Additional contract of a sandbox on Linux: mounts, sockets, privileges, system calls, kernel settings and devices."""

from __future__ import annotations

import os
import secrets
import socket
import sys
from pathlib import Path

import pytest

from handrail.testing.sandbox_harness import SandboxHarness, create_secret_file, is_socket_reached, skip_unless_confined

IS_LINUX = sys.platform == "linux"


class LinuxSandboxClaims:
    """The part of `SandboxContract` that only speaks of Linux; skipped elsewhere. The fixture `box` is the contract's."""

    @pytest.mark.skipif(not IS_LINUX, reason="mounts of Linux")
    def test_nothing_can_be_mounted_or_uncovered(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "write")
        name = f"handrail-{secrets.token_hex(8)}"
        secret = create_secret_file(box.work)
        ran = box.run(
            f"""
            NEWNS, NEWUSER, REMOUNT, BIND = 0x20000, 0x10000000, 32, 4096
            def everything(where):
                for place in ("/", "/usr", "/etc", "/dev"):
                    print(where, "remount", called(libc.mount(None, place.encode(), None, REMOUNT | BIND, None)))
                print(where, "bind", called(libc.mount(b"/usr", b"/tmp", None, BIND, None)))
                print(where, "proc", called(libc.mount(b"proc", b"/tmp", b"proc", 0, None)))
                print(where, "umount", called(libc.umount2({str(secret)!r}.encode(), 2)))
                attempt(lambda: open("/usr/{name}", "w").close())
                print(attempt(lambda: open({str(secret)!r}).read()))
            everything("as it is")
            if os.fork() == 0:
                print("inner", called(libc.unshare(NEWUSER | NEWNS)))
                everything("in a namespace of its own")
                os._exit(0)
            os.wait()
            """,
            masked=(secret,),
        )
        assert not os.path.lexists(f"/usr/{name}"), (
            "If this fails, root inside can write the host: drop all capabilities."
        )
        assert "done" not in ran.stdout, f"If this fails, mounts can be changed inside:\n{ran.stdout}"
        assert "hunter2" not in ran.stdout

    @pytest.mark.skipif(not IS_LINUX, reason="sockets of Linux")
    @pytest.mark.parametrize("network", [False, True])
    def test_no_socket_of_the_desktop_is_reached(self, box: SandboxHarness, network: bool) -> None:
        skip_unless_confined(box, "network")
        if network and not box.sandbox.networks:
            pytest.skip("it never gives the network")
        name = f"handrail-{secrets.token_hex(8)}"
        with socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as named:
            abstract.bind(f"\0{name}")
            named.bind(f"/tmp/{name}")
            try:
                for listening in (abstract, named):
                    listening.listen()
                    listening.setblocking(False)
                box.run(
                    f"""
                    for path in ("\\0{name}", "/tmp/{name}"):
                        attempt(lambda: socket.socket(socket.AF_UNIX).connect(path))
                    """,
                    network=network,
                )
                for listening in (abstract, named):
                    assert not is_socket_reached(listening.accept), (
                        "If this fails, a desktop's bus or screen is reached from inside."
                    )
            finally:
                os.unlink(f"/tmp/{name}")

    @pytest.mark.skipif(not IS_LINUX, reason="sockets of Linux")
    def test_no_rare_kind_of_socket_is_made(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "network")
        ran = box.run("""
            for family, kind, protocol in ((17, 3, 3), (40, 1, 0), (38, 5, 0), (16, 3, 9), (16, 3, 12), (2, 3, 1)):
                print(isinstance(attempt(socket.socket, family, kind, protocol), OSError))
        """)
        assert ran.stdout == "True\n" * 6, "packet, vsock, alg, audit and netfilter netlink, raw"

    @pytest.mark.skipif(not IS_LINUX, reason="capabilities of Linux")
    def test_there_is_no_power_and_none_can_be_gained(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "process")
        ran = box.run("print(open('/proc/self/status').read())")
        status = dict(line.split(":\t") for line in ran.stdout.splitlines() if ":\t" in line)
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            assert int(status[name], 16) == 0, f"If this fails, {name} still holds powers."
        assert status["NoNewPrivs"] == "1", "If this fails, a setuid program gives its owner's power."

    @pytest.mark.skipif(not IS_LINUX, reason="system calls of Linux")
    @pytest.mark.parametrize(
        ("name", "call"),
        [
            ("ptrace", "libc.ptrace(0, 0, None, None)"),
            ("unshare", "libc.unshare(0x10000000)"),
            ("clone", "libc.syscall({'x86_64': 56, 'aarch64': 220}[os.uname().machine], 0x10000000 | 17, 0, 0, 0, 0)"),
            ("keyctl", "libc.syscall({'x86_64': 250, 'aarch64': 219}[os.uname().machine], 0, -3, 0)"),
            ("bpf", "libc.syscall({'x86_64': 321, 'aarch64': 280}[os.uname().machine], 0, 0, 0)"),
            ("userfaultfd", "libc.syscall({'x86_64': 323, 'aarch64': 282}[os.uname().machine], 1)"),
            ("perf_event_open", "libc.syscall({'x86_64': 298, 'aarch64': 241}[os.uname().machine], 0, 0, -1, -1, 0)"),
            ("io_uring_setup", "libc.syscall(425, 1, ctypes.create_string_buffer(200))"),
        ],
    )
    def test_a_dangerous_call_is_refused(self, box: SandboxHarness, name: str, call: str) -> None:
        skip_unless_confined(box, "process")
        ran = box.run(f"""
            result = {call}
            if result == 0 and {name == "clone"}:
                os._exit(0)
            print(called(result))
        """)
        assert ran.stdout in ("EPERM\n", "ENOSYS\n", "EACCES\n"), (
            f"If this fails, {name} is not refused: {ran.stdout!r}"
        )

    @pytest.mark.skipif(not IS_LINUX, reason="the kernel's settings of Linux")
    def test_no_setting_of_the_kernel_is_changed(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "process")
        pattern = Path("/proc/sys/kernel/core_pattern")
        before = pattern.read_text()
        ran = box.run("""
            for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger", "/proc/sys/kernel/modprobe",
                         "/proc/irq/0/smp_affinity", "/sys/kernel/uevent_helper", "/proc/sys/kernel/hostname", "/proc/self/oom_score_adj"):
                print(path, type(attempt(lambda: os.close(os.open(path, os.O_WRONLY)))).__name__)
        """)
        assert pattern.read_text() == before
        opened = [line.split()[0] for line in ran.stdout.splitlines() if line.endswith("NoneType")]
        # A process may make itself more likely to be ended, and nothing else.
        assert set(opened) <= {"/proc/self/oom_score_adj"}, (
            f"If this fails, the kernel's settings can be opened for writing: {opened}"
        )

    @pytest.mark.skipif(not IS_LINUX, reason="devices of Linux")
    def test_there_are_no_devices(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "write")
        ran = box.run("""
            import stat
            print(*(name for name in os.listdir("/dev") if stat.S_ISBLK(os.lstat("/dev/" + name).st_mode)), "none")
            print(type(attempt(os.mknod, "/tmp/disk", 0o600 | stat.S_IFBLK, os.makedev(8, 0))).__name__)
            print(*(type(attempt(lambda: open("/dev/" + name, "rb"))).__name__ for name in ("mem", "kmem", "kmsg", "fuse", "kvm", "sda", "vda")))
        """)
        assert ran.stdout.splitlines()[:2] == ["none", "PermissionError"]
        assert set(ran.stdout.splitlines()[2].split()) <= {"FileNotFoundError", "PermissionError"}
