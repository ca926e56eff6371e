"""Builds that need the network: one question by host name, then they run in the sandbox and reach these hosts alone."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import os
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.plugins.cli.loopback_registries import (
    Registry,
    add_crate,
    add_npm_package,
    add_repository,
    add_wheel,
    npm_project,
    serving,
)

from handrail import Route, Session, ToolResult
from handrail.api.approval import Answer, Approval, Choice, Confirmer
from handrail.testing import open_test_session
from handrail_cli import hooks

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")


class Person:
    """A person who answers every question alike, for the first grant that is offered, and remembers what was asked."""

    def __init__(self, choice: Choice = Choice.SESSION) -> None:
        self.choice = choice
        self.asked: list[Approval] = []

    async def __call__(self, approval: Approval) -> Answer:
        self.asked.append(approval)
        grant = approval.grants[0] if self.choice in (Choice.SESSION, Choice.ALWAYS) and approval.grants else None
        return Answer(self.choice if grant is not None or self.choice is Choice.DENY else Choice.ONCE, grant=grant)

    @property
    def hosts(self) -> list[tuple[str, ...]]:
        """The hosts of each question."""
        return [a.verdict.reach.hosts if a.verdict.reach is not None else () for a in self.asked]


@asynccontextmanager
async def working(
    folder: Path, person: Confirmer | None, environment: Mapping[str, str] | None = None, **settings: Any
) -> AsyncGenerator[Session]:
    """A session with the shell's tools and their judge."""
    async with open_test_session(
        plugins={"cli": hooks},
        settings={"security": {"trust": ["cli"]}, **settings},
        confirm=person,
        environment={"LANG": "C.UTF-8", **(environment or {})},
        folder=folder,
    ) as session:
        yield session


async def run(session: Session, command: str, **args: Any) -> ToolResult:
    return await session.call("execute_cli", {"command": command, "timeout": 120, **args})


@pytest.fixture
def registry(tmp_path: Path) -> Generator[Registry]:
    with serving(tmp_path / "served") as served:
        yield served


@pytest.fixture
def other(tmp_path: Path) -> Generator[Registry]:
    with serving(tmp_path / "served elsewhere") as served:
        yield served


async def test_without_the_network_programs_give_up_soon_and_a_time_out_says_why(tmp_path: Path) -> None:
    async with working(tmp_path, None) as session:
        assert (await run(session, "printenv npm_config_fetch_retries"))["stdout"] == "0\n"
        result = await run(session, "sleep 30", timeout=1)
    assert result.status == "timeout"
    assert "the sandbox has no network" in result["error"]["message"]


async def test_a_command_that_lacks_the_network_is_not_said_to_have_changed_what_undo_does_not_keep(
    tmp_path: Path,
) -> None:
    async with working(tmp_path, Person(Choice.DENY), undo={"enabled": True, "max_file_bytes": 2_000}) as session:
        (session.cwd / "large.bin").write_bytes(bytes(3_000))
        (session.cwd / "w.sh").write_text("echo Network is unreachable >&2; exit 1")
        lacking = await run(session, "bash w.sh")
        refused = await run(session, "echo x >> large.bin")
    assert (lacking.error_code, "could not change" in lacking.get("note", "")) == ("sandbox_denied", False), lacking
    assert (refused.error_code, "could not change" in refused.get("note", "")) == ("sandbox_denied", True), refused


SHOWING = "env; .venv/bin/pip config list; cat /.cargo/config.toml; exit 0\n"


# One question, by host name


async def test_an_address_costs_one_question_and_later_ones_of_the_host_none(
    tmp_path: Path, registry: Registry
) -> None:
    registry.put("a.txt", "fetched\n")
    person = Person()
    async with working(tmp_path, person) as session:
        first = await run(session, f"curl -sSf {registry.url}/a.txt -o a.txt")
        second = await run(session, f"curl -sSf {registry.url}/a.txt | tr a-z A-Z")
        routes = [record.verdict.route for record in session.history.last() if record.verdict]
        there = (session.cwd / "a.txt").read_text()
    assert first.ok, first
    assert (second["stdout"], there) == ("FETCHED\n", "fetched\n")
    assert person.hosts == [(registry.place,)]
    assert f"network to {registry.place} for commands that run in the sandbox" in [
        g.label for g in person.asked[0].grants
    ]
    assert routes == [Route.SANDBOX, Route.SANDBOX]
    assert (second["sandbox"], second["network"], second["hosts"]) == ("bubblewrap", False, [registry.place])


async def test_npm_installs_what_the_project_needs_after_one_question(tmp_path: Path, registry: Registry) -> None:
    person = Person()
    async with working(tmp_path, person, {"npm_config_registry": registry.url}) as session:
        npm_project(session.cwd, registry, "left-here")
        add_npm_package(registry, "right-here")
        first = await run(session, "npm ci")
        (session.cwd / "show.js").write_text("console.log(require('right-here'))\n")
        second = await run(session, "npm install right-here && node show.js")
        home = session.runtime.judging.home
    assert first.ok, first
    assert second.ok, second
    assert "right-here is here" in second["stdout"]
    assert person.hosts == [(registry.place,)]
    assert not list(home.iterdir()), "nothing is written into the person's home"


async def test_pip_installs_into_the_projects_environment_after_one_question(
    tmp_path: Path, registry: Registry
) -> None:
    for name in ("tinyone", "tinytwo"):
        add_wheel(registry, name)
    index = registry.url.replace("//", "//me:hunter2-secret@") + "/simple/"
    person = Person()
    async with working(tmp_path, person, {"PIP_INDEX_URL": index}) as session:
        await anyio.run_process([os.path.realpath(sys.executable), "-m", "venv", str(session.cwd / ".venv")])
        first = await run(session, ".venv/bin/pip install tinyone")
        (session.cwd / "requirements.txt").write_text("tinytwo\n")
        (session.cwd / "show.sh").write_text(SHOWING)
        second = await run(session, ".venv/bin/pip install -r requirements.txt && bash ./show.sh")
        found = list((session.cwd / ".venv").glob("lib/*/site-packages/tiny*.py"))
    assert first.ok, first
    assert second.ok, second
    assert person.hosts == [(registry.place,)]
    assert sorted(file.name for file in found) == ["tinyone.py", "tinytwo.py"]
    assert f"PIP_INDEX_URL={registry.url}/simple/" in second["stdout"]
    assert "hunter2" not in second["stdout"], "a password in the address of an index is not shown inside"


async def test_git_clones_and_fetches_from_the_host_of_its_remote(tmp_path: Path, registry: Registry) -> None:
    add_repository(registry, "it.git", tmp_path / "origin")
    person = Person()
    async with working(tmp_path, person) as session:
        cloned = await run(session, f"git clone -q {registry.url}/it.git")
        fetched = await run(session, "git -C it fetch origin && git -C it pull -q")
        seen = (session.cwd / "it/file.txt").read_text()
    assert cloned.ok, cloned
    assert fetched.ok, fetched
    assert seen == "cloned\n"
    assert person.hosts == [(registry.place,)]


needs_cargo = pytest.mark.skipif(
    shutil.which("cargo") is None, reason="cargo is not on PATH: Debian 12 has one that knows no sparse registry"
)


@asynccontextmanager
async def building_with_cargo(folder: Path, person: Person | None, registry: Registry) -> AsyncGenerator[Session]:
    """A session in a project that needs a crate, whose person gets crates from this registry."""
    add_crate(registry, "here")
    around = {"RUSTUP_HOME": os.environ.get("RUSTUP_HOME", os.path.expanduser("~/.rustup"))}
    async with working(folder, person, around) as session:
        home = session.runtime.judging.home
        (home / ".cargo").mkdir()
        (home / ".cargo/config.toml").write_text(
            '[source.crates-io]\nreplace-with = "here"\n'
            f'[source.here]\nregistry = "sparse+{registry.url}/index/"\n[registries.here]\ntoken = "hunter2"\n'
        )
        (session.cwd / "src").mkdir()
        (session.cwd / "src/main.rs").write_text('fn main() { println!("{}", here::said()); }\n')
        manifest = '[package]\nname = "app"\nversion = "0.1.0"\nedition = "2021"\n[dependencies]\nhere = "1"\n'
        (session.cwd / "Cargo.toml").write_text(manifest)
        yield session


@needs_cargo
async def test_cargo_builds_after_one_question(tmp_path: Path, registry: Registry) -> None:
    person = Person()
    async with building_with_cargo(tmp_path, person, registry) as session:
        first = await run(session, "cargo build")
        (session.cwd / "show.sh").write_text(SHOWING)
        second = await run(session, "touch src/main.rs && cargo run -q && bash ./show.sh")
    assert first.ok, first
    assert second.ok, second
    assert "here is here" in second["stdout"]
    assert "hunter2" not in second["stdout"]
    assert person.hosts == [(registry.place,)]


@needs_cargo
async def test_cargo_without_anybody_to_ask_names_the_host_and_the_setting(tmp_path: Path, registry: Registry) -> None:
    async with building_with_cargo(tmp_path, None, registry) as session:
        result = await run(session, "cargo build")
    assert result.error_code == "sandbox_denied"
    assert result["error"]["details"] == {"denied": "network", "hosts": [registry.place]}
    assert "name them under [sandbox] as hosts" in result["error"]["message"]
    assert not registry.asked


async def test_tls_goes_through_and_stays_with_its_host(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    shown = tmp_path / "work/authority.crt"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost", "-keyout", tmp_path / "key.pem", "-out", shown]
    await anyio.run_process([*words, *map(str, names)])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(shown, tmp_path / "key.pem")

    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError):
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        writer.close()

    server = await asyncio.start_server(hello, "localhost", 0, family=socket.AF_INET, ssl=context)
    port = server.sockets[0].getsockname()[1]
    person = Person()
    async with working(tmp_path, person) as session:
        fetched = await run(session, f"curl -sS --cacert authority.crt https://localhost:{port}/")
        (session.cwd / "front.py").write_text(FRONTING)
        fronted = await run(session, f"python3 front.py {port}")
    server.close()
    assert fetched["stdout"] == "hello", fetched
    assert person.hosts[0] == (f"localhost:{port}",)
    assert fronted["stdout"].startswith("200 "), fronted
    assert "answered" not in fronted["stdout"]
    assert fronted["refused_hosts"] == [f"localhost:{port}"]


async def test_a_server_that_is_not_there_fails_a_download_and_is_named(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    async with working(tmp_path, Person()) as session:
        result = await run(session, f"curl -s http://localhost:{port}/data.json -o data.json; echo $?")
        assert (result["stdout"], (session.cwd / "data.json").exists()) == ("52\n", False), result
    assert f"localhost:{port} cannot be reached" in result["note"]


FRONTING = """
import os, socket, ssl, sys
way = socket.create_connection(("127.0.0.1", 28128))
place = f"localhost:{sys.argv[1]}"
way.sendall(f"CONNECT {place} HTTP/1.1\\r\\nHost: {place}\\r\\n\\r\\n".encode())
print(way.recv(1000).split(b" ", 1)[1].decode().split("\\r")[0])
context = ssl._create_unverified_context()
try:
    context.wrap_socket(way, server_hostname="another.example").sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
    print("answered")
except OSError as exc:
    print("ended")
"""


# What a project says, and wrong guesses


async def test_a_registry_that_the_project_names_is_shown_and_never_taken_silently(
    tmp_path: Path, registry: Registry, other: Registry
) -> None:
    person = Person()
    async with working(tmp_path, person, {"npm_config_userconfig": str(tmp_path / "npmrc")}) as session:
        (tmp_path / "npmrc").write_text(f"registry={registry.url}\n//{registry.place}/:_authToken=hunter2-hunter2\n")
        npm_project(session.cwd, registry, "left-here")
        first = await run(session, "npm ci")
        (session.cwd / ".npmrc").write_text(f"registry={other.url}\n")
        add_npm_package(other, "right-here")
        second = await run(session, "npm install right-here")
        (session.cwd / "show.sh").write_text(SHOWING)
        third = await run(session, "bash ./show.sh")
    assert first.ok, first
    assert second.ok, second
    assert person.hosts == [(registry.place,), (other.place,)]
    assert "hunter2" not in third["stdout"]


async def test_a_host_that_was_not_foreseen_is_refused_named_and_asked_about_once(
    tmp_path: Path, registry: Registry, other: Registry
) -> None:
    person = Person()
    around = {"npm_config_registry": registry.url, "npm_config_fetch_retries": "0"}
    async with working(tmp_path, person, around) as session:
        npm_project(session.cwd, registry, "left-here", files=other)
        (session.cwd / "package-lock.json").unlink()
        first = await run(session, "npm install")
        shutil.rmtree(session.cwd / "node_modules")
        again = await run(session, "npm ci")
        routes = [record.verdict.route for record in session.history.last() if record.verdict]
    assert first.ok, first
    assert again.ok, again
    assert person.hosts == [(registry.place,), (other.place,)]
    assert person.asked[1].verdict.rule == "sandbox:hosts"
    assert f"refused connections to {other.place}" in first["sandbox_denied"]
    assert set(routes) == {Route.SANDBOX}


@pytest.mark.parametrize("choice", [Choice.DENY, None])
async def test_without_a_yes_the_result_names_the_hosts(
    tmp_path: Path, registry: Registry, other: Registry, choice: Choice | None
) -> None:
    person = Person(choice) if choice else None
    async with working(tmp_path, person, sandbox={"hosts": [registry.place]}) as session:
        (session.cwd / "fetch.sh").write_text(f"curl -sSf {registry.url}/ -o a; curl -sSf {other.url}/ -o b\n")
        result = await run(session, "bash ./fetch.sh")
    assert result.error_code == "sandbox_denied"
    assert result["error"]["details"] == {"denied": "network", "hosts": [other.place]}
    assert f"the sandbox refused connections to {other.place}" in result["error"]["message"]
    assert result["refused_hosts"] == [other.place]
    assert registry.asked == ["/"]
    assert not other.asked


async def test_what_was_refused_is_told_of_a_command_that_went_well(
    tmp_path: Path, registry: Registry, other: Registry
) -> None:
    async with working(tmp_path, None, sandbox={"hosts": [registry.place]}) as session:
        (session.cwd / "fetch.sh").write_text(f"curl -sS {other.url}/\ncurl -sSf {registry.url}/ -o a\n")
        result = await run(session, "bash ./fetch.sh")
    assert result.ok, result
    assert result["refused_hosts"] == [other.place]
    assert f"The sandbox refused connections to {other.place}." in result["note"]


async def test_a_server_that_wants_credentials_is_told_and_the_way_out_is_named(tmp_path: Path) -> None:
    with serving(tmp_path / "served", password="secret") as registry:
        add_repository(registry, "it.git", tmp_path / "origin")
        person = Person()
        async with working(tmp_path, person) as session:
            person_says_no = Person(Choice.DENY)
            await run(session, f"curl -sS {registry.url}/x")
            session.confirmer = person_says_no
            result = await run(session, f"git clone -q {registry.url}/it.git")
    assert result["error"]["details"] == {"denied": "credentials"}
    assert "by a rule that allows the command" in result["error"]["message"]
    assert [approval.verdict.route for approval in person_says_no.asked] == [Route.HOST]


# Nothing else is in reach


ATTEMPTS = """
import socket, sys
ours, other = map(int, sys.argv[1:])
def attempt(what, *args):
    try:
        with socket.create_connection(*args) as way:
            return way
    except OSError as exc:
        return None
def asked(text):
    with socket.create_connection(("127.0.0.1", 28128), 10) as way:
        way.sendall(text.encode("latin-1"))
        return way.recv(1000).split(b" ")[1].decode()
for port in (ours, other):
    print("direct", attempt("", ("127.0.0.1", port), 2))
print(asked(f"GET http://127.0.0.1:{ours}/a HTTP/1.1\\r\\nHost: 127.0.0.1:{ours}\\r\\n\\r\\n"))
for host in (f"127.0.0.1:{other}", f"localhost:{ours}", "169.254.169.254", "10.0.0.1", f"127.0.0.1:{ours}.evil.example", "[::1]"):
    print(asked(f"GET http://{host}/ HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n"))
    print(asked(f"CONNECT {host} HTTP/1.1\\r\\nHost: {host}\\r\\n\\r\\n"))
print(asked(f"GET http://127.0.0.1:{ours}/b HTTP/1.1\\r\\nHost: 127.0.0.1:{other}\\r\\n\\r\\n"))
print(asked(f"GET http://127.0.0.1:{ours}\\0:{other}/b HTTP/1.1\\r\\nHost: 127.0.0.1:{ours}\\r\\n\\r\\n"))
"""


async def test_code_of_the_project_reaches_the_granted_hosts_and_no_others(
    tmp_path: Path, registry: Registry, other: Registry
) -> None:
    registry.put("a", "x")
    async with working(tmp_path, None, sandbox={"hosts": [registry.place]}) as session:
        (session.cwd / "attempts.py").write_text(ATTEMPTS)
        result = await run(session, f"python3 attempts.py {registry.port} {other.port}")
    lines = result["stdout"].splitlines()
    assert lines[:3] == ["direct None", "direct None", "200"], result
    assert lines[3:]
    assert set(lines[3:]) <= {"403", "400"}
    assert registry.asked == ["/a"]
    assert not other.asked


async def test_a_command_that_only_reads_has_no_way_out_whatever_was_granted(
    tmp_path: Path, registry: Registry
) -> None:
    async with working(tmp_path, None, sandbox={"hosts": [registry.place]}) as session:
        (session.cwd / "file").write_text("text")
        result = await run(session, "cat file")
    assert (result["stdout"], result["sandbox"]) == ("text", "bubblewrap")
    assert "hosts" not in result


async def test_the_proxy_of_the_host_is_used_and_not_shown(tmp_path: Path, registry: Registry) -> None:
    registry.put("a", "by way of the company\n")
    asked: list[str] = []

    async def company(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        asked.append(head.decode())
        far, there = await asyncio.open_connection("127.0.0.1", registry.port)
        there.write(head.replace(registry.url.encode(), b"", 1))
        while data := await far.read(65_536):
            writer.write(data)
        writer.close()
        there.close()

    server = await asyncio.start_server(company, "127.0.0.1", 0)
    proxy = f"http://me:hunter2-secret@127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with working(tmp_path, None, {"http_proxy": proxy}, sandbox={"hosts": [registry.place]}) as session:
        (session.cwd / "show.sh").write_text(SHOWING)
        result = await run(session, f"curl -sS {registry.url}/a && bash ./show.sh")
    server.close()
    assert result["stdout"].startswith("by way of the company\n"), result
    assert "hunter2" not in result["stdout"]
    assert asked[0].startswith(f"GET {registry.url}/a HTTP/1.1")
    assert "Proxy-Authorization: Basic" in asked[0]


# How it is asked about, and remembered


async def test_where_nobody_is_asked_the_denial_names_the_setting(tmp_path: Path, registry: Registry) -> None:
    command = f"curl -sS {registry.url}/"
    async with working(tmp_path, None) as session:
        denied = await run(session, command)
    assert denied.status == "denied"
    assert f'[sandbox] in their own config.toml: hosts = ["{registry.place}"]' in denied["error"]["message"]
    async with working(tmp_path, None, sandbox={"hosts": [registry.place]}) as session:
        assert (await run(session, command)).ok


def given_npm(folder: Path, registry: Registry) -> None:
    npm_project(folder, registry, "left-here")


def given_wheel(folder: Path, registry: Registry) -> None:
    add_wheel(registry, "tinyone")
    subprocess.run([os.path.realpath(sys.executable), "-m", "venv", folder / ".venv"], check=True)


@pytest.mark.parametrize(
    ("command", "prepare"),
    [
        pytest.param("npm ci", given_npm, id="npm"),
        pytest.param(".venv/bin/pip install tinyone", given_wheel, id="pip"),
    ],
)
async def test_a_build_without_anybody_to_ask_names_the_host_and_the_setting(
    tmp_path: Path, registry: Registry, command: str, prepare: Callable[[Path, Registry], None]
) -> None:
    around = {"npm_config_registry": registry.url, "PIP_INDEX_URL": f"{registry.url}/simple/"}
    async with working(tmp_path, None, around) as session:
        await anyio.to_thread.run_sync(prepare, session.cwd, registry)
        denied = await run(session, command)
    assert denied.status == "denied"
    assert f'hosts = ["{registry.place}"]' in denied["error"]["message"]
    assert not registry.asked
    async with working(tmp_path, None, around, sandbox={"hosts": [registry.place]}) as session:
        done = await run(session, command)
    assert done.ok, done
    assert done["hosts"] == [registry.place]


async def test_a_yes_for_always_holds_in_the_next_session(tmp_path: Path, registry: Registry) -> None:
    person = Person(Choice.ALWAYS)
    for _ in range(2):
        async with working(tmp_path, person) as session:
            assert (await run(session, f"curl -sS {registry.url}/")).ok
    assert len(person.asked) == 1


async def test_a_yes_for_this_once_is_for_this_once(tmp_path: Path, registry: Registry) -> None:
    person = Person(Choice.ONCE)
    async with working(tmp_path, person) as session:
        for _ in range(2):
            assert (await run(session, f"curl -sS {registry.url}/"))["hosts"] == [registry.place]
        assert "hosts" not in await run(session, "touch file")
    assert len(person.asked) == 2


async def test_a_command_in_the_background_has_its_hosts_as_long_as_it_runs(tmp_path: Path, registry: Registry) -> None:
    registry.put("a", "x")
    async with working(tmp_path, None, sandbox={"hosts": [registry.place]}) as session:
        (session.cwd / "poll.sh").write_text(f"while :; do curl -sSf {registry.url}/a && echo ok; sleep 0.2; done\n")
        started = await run(session, "bash ./poll.sh", background=True)
        with anyio.fail_after(30):
            while len(registry.asked) < 4:
                await anyio.sleep(0.05)
        stopped = await session.call("stop_process", {"process_id": started["process_id"]})
        assert stopped.ok, stopped
        before = len(registry.asked)
        await anyio.sleep(0.6)
        assert len(registry.asked) == before


async def test_nothing_is_left_of_many_calls(tmp_path: Path, registry: Registry) -> None:
    registry.put("a", "x" * 100_000)
    async with working(tmp_path, None, sandbox={"hosts": [registry.place]}) as session:
        command = f"curl -sSf {registry.url}/a {registry.url}/a >/dev/null; curl -s http://169.254.169.253/; true"
        (session.cwd / "some.sh").write_text(command)
        for _ in range(3):
            assert (await run(session, "bash ./some.sh")).ok
        gc.collect()
        fds, tasks = len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks())
        for _ in range(25):
            assert (await run(session, "bash ./some.sh")).ok
        with anyio.fail_after(10):
            while len(os.listdir("/proc/self/fd")) > fds + 1 or len(asyncio.all_tasks()) > tasks:
                await anyio.sleep(0.1)


async def test_the_record_and_the_explanation_name_the_hosts(tmp_path: Path, registry: Registry) -> None:
    person = Person()
    async with working(tmp_path, person) as session:
        await run(session, f"curl -sS {registry.url}/")
        files = list(session.runtime.places.data.rglob("*.jsonl"))
    lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    assert [line["hosts"] for line in lines if line.get("tool") == "execute_cli" and "hosts" in line] == [
        [registry.place]
    ]
