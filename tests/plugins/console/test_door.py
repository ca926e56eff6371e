"""Who is let in to the console, and who is not."""

from __future__ import annotations

import http.client
import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from handrail_console.console_command import console_command

from .opened import HANDRAIL, Console

PATHS = ("/", "/page", "/live", "/sessions", "/sessions/20260101-000000-abcdef", "/nothing")


def get(
    served: Console, path: str, method: str = "GET", *, token: str = "", **headers: str
) -> tuple[int, dict[str, str], str]:
    """Status, headers and body of an answer."""
    connection = http.client.HTTPConnection(*served.address, timeout=60)
    shown = {"authorization": f"Bearer {token}"} if token else {}
    try:
        connection.request(method, path, headers={**shown, **headers})
        answer = connection.getresponse()
        body = "" if path == "/live" and answer.status == 200 else answer.read().decode()
        return answer.status, {name.lower(): value for name, value in answer.getheaders()}, body
    finally:
        connection.close()


@pytest.mark.parametrize("path", PATHS)
def test_a_stranger_without_the_token_is_told_nothing(served: Console, path: str):
    for token in ("", "wrong", served.token[:-1], served.token + "x"):
        status, headers, body = get(served, path, token=token)
        assert status == 401
        assert served.token not in body
        assert "access-control-allow-origin" not in headers
        assert "set-cookie" not in headers


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({"host": "evil.example"}, id="another-name"),
        pytest.param({"host": "127.0.0.1"}, id="no-port"),
        pytest.param({"host": "phone.example.ts.net.evil.example"}, id="longer-name"),
        pytest.param({"origin": "https://evil.example"}, id="another-page"),
        pytest.param({"origin": "null"}, id="a-page-without-origin"),
        pytest.param({"origin": "http://127.0.0.1:1"}, id="another-port"),
    ],
)
def test_another_name_and_another_page_are_refused_even_with_the_token(
    served: Console, path: str, headers: dict[str, str]
):
    status, told, _ = get(served, path, token=served.token, **headers)
    assert status == 403
    assert "access-control-allow-origin" not in told


@pytest.mark.parametrize("path", ["/answer", "/stops", "/control"])
def test_nothing_is_done_without_the_token_or_for_another_page(served: Console, path: str):
    assert get(served, path, "POST")[0] == 401
    assert get(served, path, "POST", token=served.token, origin="https://evil.example")[0] == 403
    assert get(served, path, "GET", token=served.token)[0] == 405


def test_a_token_in_the_address_opens_nothing(served: Console):
    assert get(served, f"/sessions?token={served.token}")[0] == 401
    assert get(served, "/sessions", cookie=f"token={served.token}")[0] == 401


def test_who_shows_the_token_is_let_in_under_every_name_of_the_console(served: Console):
    _, port = served.address
    for host in (f"127.0.0.1:{port}", f"localhost:{port}", "phone.example.ts.net"):
        status, headers, _ = get(served, "/sessions", token=served.token, host=host)
        assert status == 200
        assert "default-src 'none'" in headers["content-security-policy"]
        assert headers["cache-control"] == "no-store"
    origin = "https://phone.example.ts.net"
    assert get(served, "/sessions", token=served.token, host="phone.example.ts.net", origin=origin)[0] == 200


# Nothing is imported after the change: the interpreter may lie where another user sees nothing.
AS_ANOTHER = """
import encodings.idna, os, socket, sys
os.setgroups([]); os.setgid(65534); os.setuid(65534)
host, port, token = sys.argv[1:]
connection = socket.create_connection((host, int(port)), timeout=60)
lines = ("GET /sessions HTTP/1.1", f"Host: {host}:{port}", f"Authorization: Bearer {token}", "Connection: close", "", "")
connection.sendall("\\r\\n".join(lines).encode())
with connection.makefile("rb") as answer:
    sys.stdout.write(answer.read().decode())
"""


@pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="to be another user takes root, as CI has it")
def test_another_user_of_the_machine_is_refused_even_with_the_token(served: Console):
    host, port = served.address
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", AS_ANOTHER, host, str(port), served.token],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.stdout.startswith("HTTP/1.1 403 "), done
    assert "another user" in done.stdout


def test_the_link_is_in_a_file_that_only_its_owner_reads(served: Console, home: Path):
    (file,) = (home / "state" / "console").glob("*.json")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {"link": served.link}


def test_the_console_is_served_on_this_machine_only(home: Path):
    done = subprocess.run(
        [HANDRAIL, "console", "--host", "0.0.0.0", "--port", "0"],
        capture_output=True, text=True, check=False, timeout=60, cwd=home,
    )  # fmt: skip
    assert done.returncode == 2 or "other machines" in done.stderr, done
    assert "ssh -L PORT:127.0.0.1:PORT" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("name", ["a b", "http://x/", "", "x/", "x:port", "x:70000", "[::x]", "münchen.example"])
def test_a_name_that_no_host_header_can_say_is_refused(name: str):
    done = CliRunner().invoke(console_command, ["--name", name, "--host", "0.0.0.0"])
    assert done.exit_code == 2
    assert "write a host name, as in your-machine.example.ts.net" in " ".join(done.output.split())


@pytest.mark.parametrize(
    "name", ["your-machine.example.ts.net", "my_box:8443", "100.64.0.1:80", "[fd7a::1]:443", "[fd7a::1]"]
)
def test_a_name_that_a_host_header_can_say_is_taken(name: str):
    refused = CliRunner().invoke(console_command, ["--name", name, "--host", "0.0.0.0"])
    assert "other machines" in str(refused.exception)


def test_pictures_of_records_are_no_way_to_other_files(served: Console, home: Path):
    folder = home / "cache" / "artifacts" / "20260101-000000-abcdef"
    folder.mkdir(parents=True)
    (folder / "secret.txt").write_text("secret")
    (folder / "p1.png").symlink_to(folder / "secret.txt")
    (home / "data" / "audit").mkdir(parents=True, exist_ok=True)
    (home / "data" / "audit" / "20260101-000000-abcdef.jsonl").write_text("")
    for name in ("secret.txt", "p1.png", "..%2f..%2fsecret.txt", "%2e%2e"):
        status, _, body = get(served, f"/sessions/20260101-000000-abcdef/pictures/{name}", token=served.token)
        assert status in (403, 404)
        assert "secret" not in body


def test_a_request_with_faults_is_told_which(served: Console):
    connection = http.client.HTTPConnection(*served.address, timeout=60)
    try:
        connection.request("POST", "/stops", '{"desktp": 1}', headers={"authorization": f"Bearer {served.token}"})
        answer = connection.getresponse()
        assert answer.status == 400
        told = json.loads(answer.read())["error"]
        assert "action: Field required" in told
        assert "desktp: " in told
    finally:
        connection.close()


def test_a_disk_that_refuses_is_told_with_the_headers_of_every_answer(served: Console):
    connection = http.client.HTTPConnection(*served.address, timeout=60)
    try:
        # No file has so long a name.
        body = json.dumps({"action": "stop", "desktop": "a" * 3_000})
        connection.request("POST", "/stops", body, headers={"authorization": f"Bearer {served.token}"})
        answer = connection.getresponse()
        assert answer.status == 500
        assert "File name too long" in json.loads(answer.read())["error"]
        assert answer.getheader("content-security-policy")
    finally:
        connection.close()
