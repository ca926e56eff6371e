"""A contract for sandboxes: every test tries to get out. A sandbox passes when nothing outside was read, changed, reached or left behind."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from handrail.api.sandbox import Limits
from handrail.errors import NoSandbox
from handrail.sandbox.gateway import PROXY_ADDRESS, receive_listener
from handrail.sandbox.interface import Sandbox
from handrail.testing.linux_sandbox_claims import LinuxSandboxClaims
from handrail.testing.sandbox_harness import (
    RUN_TIMEOUT_S,
    SandboxHarness,
    create_secret_file,
    is_socket_reached,
    skip_unless_confined,
)


class SandboxContract(LinuxSandboxClaims):
    """Contract of every sandbox: real work inside, and no way out.

        class TestJail(SandboxContract):
            @pytest.fixture
            def sandbox(self):
                return Jail()

    Tests are skipped according to what the sandbox `confines`. Provide the fixture `python` (words) if the Python that
    runs the tests is not available inside.
    """

    @pytest.fixture
    def sandbox(self) -> Sandbox:
        """Return the sandbox under test."""
        raise NotImplementedError("give a fixture `sandbox` that returns the Sandbox")

    @pytest.fixture
    def python(self) -> Sequence[str]:
        """Return the words that start Python inside, if it is not this one."""
        return ()

    @pytest.fixture
    def box(self, sandbox: Sandbox, python: Sequence[str], tmp_path: Path) -> Generator[SandboxHarness]:
        """Yield the sandbox with bounds in a temporary directory; skip the test if it is not usable."""
        if (lacks := type(sandbox).missing()) is not None:
            pytest.skip(lacks)
        yield SandboxHarness(sandbox, tmp_path, python)
        asyncio.run(sandbox.close())

    # Real work

    def test_a_command_gives_its_output_and_its_exit_code(self, box: SandboxHarness) -> None:
        ran = box.run("print('out'); print('err', file=sys.stderr); sys.exit(7)")
        assert (ran.stdout, ran.stderr, ran.code, ran.never) == ("out\n", "err\n", 7, None), (
            "If this fails, `confine` changes what a command says or how it ends."
        )

    def test_the_workspace_is_the_real_one_and_it_runs_there(self, box: SandboxHarness) -> None:
        ran = box.run("open('made', 'w').write('x'); os.mkdir('folder'); print(os.getcwd())")
        assert ran.stdout.strip() == str(box.work)
        assert (box.work / "made").read_text() == "x"
        assert (box.work / "folder").is_dir()

    def test_tmp_is_private_and_lasts(self, box: SandboxHarness) -> None:
        name = f"handrail-{secrets.token_hex(8)}"
        box.run(f"open('/tmp/{name}', 'w').write('x')")
        assert not os.path.lexists(f"/tmp/{name}"), "If this fails, /tmp inside is the host's."
        assert box.run(f"print(open('/tmp/{name}').read())").stdout == "x\n"

    def test_only_the_given_environment_is_there(self, box: SandboxHarness, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SECRET_OF_THE_HOST", "x")
        ran = box.run("print(sorted(os.environ))", environment={"GIVEN": "1"})
        assert "'GIVEN'" in ran.stdout
        assert "SECRET_OF_THE_HOST" not in ran.stdout

    def test_no_descriptors_of_the_host_are_there(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "process")
        ran = box.run("print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))")
        # The fourth is the listing itself.
        assert ran.stdout.strip() in ("[0, 1, 2, 3]", "[0, 1, 2]"), (
            "If this fails, descriptors of the sandbox's own leak into it."
        )

    # Writing

    def test_nothing_outside_is_written(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "write")
        (box.outside / "file").write_text("before")
        (box.work / "link").symlink_to(box.outside)
        ways = (box.outside, box.work / "link", f"/proc/self/root{box.outside}", f"/proc/1/root{box.outside}")
        for way in map(str, ways):
            box.run(f"""
                attempt(os.makedirs, {way!r}, exist_ok=True)
                attempt(lambda: open({way + "/file"!r}, "w").write("after"))
                attempt(lambda: open({way + "/new"!r}, "w").write("after"))
                attempt(os.chmod, {way + "/file"!r}, 0o777)
                attempt(os.chown, {way + "/file"!r}, 12345, 12345)
                attempt(os.unlink, {way + "/file"!r})
                attempt(os.link, {way + "/file"!r}, "stolen")
            """)
        assert [path.name for path in box.outside.iterdir()] == ["file"]
        found = (box.outside / "file").stat()
        assert ((box.outside / "file").read_text(), found.st_nlink, found.st_uid) == ("before", 1, os.getuid())
        assert found.st_mode & 0o777 != 0o777

    def test_the_system_is_not_written(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "write")
        name = f"handrail-{secrets.token_hex(8)}"
        places = (
            "/",
            "/etc",
            "/usr",
            "/usr/bin",
            "/usr/local/bin",
            "/var",
            "/var/lib",
            "/opt",
            "/home",
            "/root",
            "/dev",
            "/run",
            "/sys",
        )
        box.run(f"for place in {places!r}: attempt(lambda: open(place + '/{name}', 'w').close())")
        assert [place for place in places if os.path.lexists(f"{place}/{name}")] == []

    def test_what_is_kept_cannot_be_changed_moved_or_replaced(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "write")
        git = box.work / ".git"
        (git / "hooks").mkdir(parents=True)
        (git / "config").write_text("[core]\n")
        kept = (git / "hooks", git / "config")
        ran = box.run(
            """
            attempt(lambda: open(".git/hooks/pre-commit", "w").write("evil"))
            attempt(lambda: open(".git/config", "a").write("evil"))
            attempt(lambda: os.rename(".git/config", ".git/old"))
            attempt(lambda: os.unlink(".git/config"))
            open(".git/new", "w").write("evil")
            attempt(lambda: os.rename(".git/new", ".git/config"))
            attempt(lambda: os.rename(".git/hooks", ".git/old"))
            attempt(lambda: os.rename(".git", "moved"))
            attempt(lambda: os.mkdir(".git"))
            print(open(".git/config").read(), open(".git/new").read())
            """,
            kept=kept,
            anchored=(git,),
        )
        assert (git / "config").exists(), "If this fails, a folder with kept files can be moved away whole."
        assert (git / "config").read_text() == "[core]\n"
        assert list((git / "hooks").iterdir()) == []
        assert not (box.work / "moved").exists()
        assert ran.stdout == "[core]\n evil\n", "kept files are read, and beside them can be written"

    # Reading

    def test_secrets_are_not_read(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "read")
        secret, folder = create_secret_file(box.work), box.work / "keys"
        folder.mkdir()
        (folder / "id").write_text("hunter2")
        ran = box.run(
            f"""
            for path in ({str(secret)!r}, {str(folder / "id")!r}):
                print(attempt(lambda: open(path).read()))
                print(attempt(os.chmod, path, 0o777), attempt(os.rename, path, "stolen"), attempt(os.link, path, "linked"))
                for name in ("stolen", "linked"):
                    print(attempt(lambda: open(name).read()))
            print(attempt(os.listdir, {str(folder)!r}), attempt(os.rename, {str(folder)!r}, "moved"), attempt(lambda: open("moved/id").read()))
            """,
            masked=(secret, folder),
        )
        assert "hunter2" not in ran.stdout
        assert (secret.read_text(), (folder / "id").read_text()) == ("TOKEN=hunter2", "hunter2")

    def test_what_is_hidden_does_not_look_empty(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "read")
        ran = box.run("print(repr(attempt(lambda: open('.env').read())))", masked=(create_secret_file(box.work),))
        assert "Error" in ran.stdout, "If this fails, a hidden file reads as an empty one, and is committed so."

    def test_the_home_and_other_folders_are_not_read(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "read")
        (box.home / ".ssh").mkdir()
        for file in (box.home / ".ssh/id_rsa", box.outside / "file"):
            file.write_text("hunter2")
        ran = box.run(f"""
            for path in ({str(box.home / ".ssh/id_rsa")!r}, {str(box.outside / "file")!r}, "/etc/shadow", "/proc/1/root/etc/shadow"):
                print(attempt(lambda: open(path).read()))
            print(os.listdir({str(box.home)!r}))
        """)
        assert "hunter2" not in ran.stdout
        assert "root:" not in ran.stdout
        assert ran.stdout.endswith("[]\n"), "If this fails, the home inside is not an empty folder."

    # Network

    def test_no_port_of_the_host_is_reached(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "network")
        with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
            udp.bind(("127.0.0.1", 0))
            ports = tcp.getsockname()[1], udp.getsockname()[1]
            box.run(f"""
                attempt(socket.create_connection, ("127.0.0.1", {ports[0]}), 2)
                attempt(lambda: socket.socket(type=socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", {ports[1]})))
            """)
            for listening in (tcp, udp):
                listening.setblocking(False)
            assert not is_socket_reached(tcp.accept), "If this fails, a port of the host is reached from inside."
            assert not is_socket_reached(lambda: udp.recv(1)), "If this fails, datagrams get out."

    def test_no_name_is_resolved_and_no_address_reached(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "network")
        ran = box.run("""
            print(isinstance(attempt(socket.getaddrinfo, "example.com", 80), OSError))
            print(isinstance(attempt(socket.create_connection, ("192.0.2.1", 80), 2), OSError))
        """)
        assert ran.stdout == "True\nTrue\n"

    def test_a_command_with_hosts_finds_the_listener_and_no_other_way_out(self, box: SandboxHarness) -> None:
        if not box.sandbox.filters:
            pytest.skip("it cannot limit the network to hosts")
        with socket.create_server(("127.0.0.1", 0)) as ours:
            self._finds_the_listener(box, ours)
            ours.setblocking(False)
            assert not is_socket_reached(ours.accept), "If this fails, a port of the host is reached from inside."

    def _finds_the_listener(self, box: SandboxHarness, ours: socket.socket) -> None:
        code = f"""
            attempt(socket.create_connection, {ours.getsockname()!r}, 2)
            with socket.create_connection({PROXY_ADDRESS!r}, 10) as way:
                way.sendall(b"ping")
                print(way.recv(10).decode())
            print(isinstance(attempt(socket.getaddrinfo, "example.com", 80), OSError))
            print(isinstance(attempt(socket.create_connection, ("192.0.2.1", 80), 2), OSError))
            print(sorted(int(fd) for fd in os.listdir('/proc/self/fd')))
        """
        with box.started(code, hosts=("example.com",)) as (process, confined):
            assert confined.channel is not None, "If this fails, `confine` gives no channel for the bounds' hosts."
            confined.channel.settimeout(RUN_TIMEOUT_S)
            listener = receive_listener(confined.channel)
            assert listener is not None, "If this fails, no listener of the sandbox's own network comes out of it."
            with listener:
                listener.settimeout(RUN_TIMEOUT_S)
                taken, _ = listener.accept()
                with taken:
                    assert taken.recv(10) == b"ping"
                    taken.sendall(b"pong")
                    stdout, stderr = process.communicate(timeout=RUN_TIMEOUT_S)
        lines = stdout.splitlines()
        assert lines[:3] == ["pong", "True", "True"], stderr
        assert lines[3] in ("[0, 1, 2, 3]", "[0, 1, 2]"), "If this fails, the channel is left open for the command."

    def test_a_command_with_hosts_starts_as_any_other(self, box: SandboxHarness) -> None:
        if not box.sandbox.filters:
            pytest.skip("it cannot limit the network to hosts")
        code = """
            import signal
            print(sorted(os.environ), [signal.getsignal(n) for n in (signal.SIGHUP, signal.SIGXCPU)], os.getcwd())
            print(open("/proc/self/status").read().partition("SigIgn:")[2].split()[0])
            print(len(os.listdir("/proc/self/task")), os.getppid() > 0)
            sys.exit(5)
        """
        plain, given = box.run(code), box.run(code, hosts=("example.com",))
        assert (given.stdout, given.code, given.never) == (plain.stdout, 5, None)

    # Processes

    def test_no_process_of_the_host_is_seen_signalled_or_traced(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "process")
        with subprocess.Popen(["sleep", "60"]) as victim:
            try:
                ran = box.run(f"""
                    import signal
                    signal.signal(signal.SIGTERM, signal.SIG_IGN)
                    for pid in ({victim.pid}, -1):
                        attempt(os.kill, pid, signal.SIGTERM)
                    attempt(os.kill, {victim.pid}, signal.SIGKILL)
                    libc.ptrace(16, {victim.pid}, None, None)
                    print(attempt(lambda: open("/proc/{victim.pid}/environ").read()))
                    print(*(attempt(lambda: open(f"/proc/{{pid}}/cmdline").read()) for pid in os.listdir("/proc") if pid.isdigit()))
                """)
                assert victim.poll() is None, "If this fails, signals get out."
                assert "sleep\0" not in ran.stdout, "If this fails, processes of the host are seen."
            finally:
                victim.kill()

    def test_nothing_is_typed_into_the_terminal(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "process")
        leader, follower = os.openpty()
        try:
            with box.started(
                """
                import fcntl, termios
                for fd in (0, attempt(os.open, "/dev/tty", os.O_RDWR)):
                    print(type(attempt(fcntl.ioctl, fd, termios.TIOCSTI, b"x")).__name__, isinstance(fd, int))
                """,
                stdin=follower,
            ) as (process, _):
                said = process.communicate(timeout=RUN_TIMEOUT_S)[0].splitlines()
        finally:
            os.close(leader)
            os.close(follower)
        assert said[0].split()[0] in ("PermissionError", "OSError"), (
            "If this fails, it types commands into the person's shell (TIOCSTI)."
        )
        assert said[1].split()[1] == "False", "If this fails, it has the person's terminal: start a new session."

    def test_nothing_is_left_when_the_command_ends(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "process")
        seconds = f"9{secrets.randbelow(10**6)}.5"
        box.run(f"""
            import subprocess
            subprocess.Popen(["sleep", {seconds!r}], start_new_session=True, stdin=-3, stdout=-3, stderr=-3)
        """)
        assert _wait_until_gone(seconds), "If this fails, what it started outlives it."

    def test_nothing_is_left_when_it_is_killed(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "process")
        seconds = f"9{secrets.randbelow(10**6)}.5"
        code = f"""
            import subprocess
            subprocess.Popen(["sleep", {seconds!r}], start_new_session=True)
            print("ready", flush=True)
            time.sleep(60)
        """
        with box.started(code) as (process, _):
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            os.kill(process.pid, signal.SIGKILL)
            assert _wait_until_gone(seconds), "If this fails, killing the sandbox does not end what is in it."

    # Limits

    def test_a_fork_bomb_stays_small_and_the_host_goes_on(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "process")
        code = """
            made = 0
            for _ in range(400):
                child = attempt(os.fork)
                if not isinstance(child, int):
                    break
                if child == 0:
                    time.sleep(20)
                    os._exit(0)
                made += 1
            print(made, flush=True)
        """
        made: list[int] = []
        slowest = _measure_slowest_start(lambda: made.append(int(box.run(code).stdout)))
        assert made[0] <= 64, "If this fails, the number of processes is not limited."
        assert slowest < 5.0, "If this fails, the host does not answer meanwhile."

    def test_memory_and_files_are_limited(self, box: SandboxHarness) -> None:
        skip_unless_confined(box, "process")
        limits = Limits(memory=256 * 2**20, file_size=1_000_000, processes=64)
        ran = box.run("x = bytearray(600 * 2**20); print('got it')", limits=limits)
        assert "got it" not in ran.stdout
        box.run("with open('big', 'wb') as file: file.write(bytes(3_000_000))", limits=limits)
        assert (box.work / "big").stat().st_size <= 1_000_000

    # Honesty

    def test_a_folder_that_is_not_shown_is_refused(self, box: SandboxHarness) -> None:
        with pytest.raises(NoSandbox):
            box.sandbox.confine(("true",), cwd=box.outside, environment={}, bounds=box.bounds)

    def test_it_gives_no_network_that_it_does_not_have(self, box: SandboxHarness) -> None:
        if box.sandbox.networks:
            pytest.skip("it can give the network")
        with pytest.raises(NoSandbox):
            box.sandbox.confine(("true",), cwd=box.work, environment={}, bounds=replace(box.bounds, network=True))


def _wait_until_gone(word: str, seconds: float = 3.0) -> bool:
    """Return True once no `sleep` process with this argument exists, or False after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
        if not any(line.split()[:2] == ["sleep", word] for line in listed.splitlines() if line.strip()):
            return True
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)


def _measure_slowest_start(job: Callable[[], None]) -> float:
    """Return the longest time, in seconds, that starting a program on the host took while the job ran."""
    thread = threading.Thread(target=job)
    thread.start()
    slowest = 0.0
    while thread.is_alive():
        began = time.monotonic()
        subprocess.run(["true"], check=True)
        slowest = max(slowest, time.monotonic() - began)
        time.sleep(0.02)
    thread.join()
    return slowest
