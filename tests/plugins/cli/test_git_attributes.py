"""Contents of secrets that were committed are not shown by git in the sandbox."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from tests.plugins.cli.test_sandbox_network import run, working

from handrail import Session
from handrail.fs import sensitive_paths
from handrail_cli.sandboxes.git_attributes import create_secret_attributes

COMMITTED = """
git init -q -b main . && git config user.name a && git config user.email a@b.example
echo a > a.txt && git add a.txt && git commit -qm first
mkdir deep && echo KEY=hunter2 | tee .env deep/prod.env > server.key && echo shown > .env.example && echo b > a.txt
git add -Af . && git commit -qm second
"""


@pytest.fixture
async def session(tmp_path: Path) -> AsyncGenerator[Session, None]:
    async with working(tmp_path, None) as opened:
        await anyio.run_process(("bash", "-ec", COMMITTED), cwd=opened.cwd)
        yield opened


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")
@pytest.mark.parametrize(
    "command",
    ["git log -p", "git show", "git diff --cached HEAD~1", "git grep -n KEY HEAD", "git log -p -- .", "git show | cat"],
)
async def test_git_shows_nothing_of_a_secret_that_was_committed(session: Session, command: str) -> None:
    result = await run(session, command)
    assert result.ok, result
    assert "hunter2" not in result["stdout"]
    assert ".env" in result["stdout"]


@pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")
async def test_git_shows_the_other_files_of_the_same_commit(session: Session) -> None:
    shown = (await run(session, "git show"))["stdout"]
    assert "+b" in shown
    assert "+shown" in shown


@pytest.mark.parametrize(
    "name",
    [
        *sorted(sensitive_paths.SECRET_NAMES),
        *(f"x{ending}" for ending in sensitive_paths.KEY_ENDINGS),
        ".env.local", ".env.example", "sample.env", "prod.env", "id_rsa.pub", "server.pem", "server-cert.pem", "cacert.pem", ".psql_history",
        "ssh_host_rsa_key", "client_secret_1.json", "service-account-x.json", "known_hosts", "README.md", "environment.py",
    ],
)  # fmt: skip
def test_git_hides_the_names_that_are_secrets(tmp_path: Path, name: str) -> None:
    """If this fails, `known_places` knows a secret that git shows, or git hides a file that is none."""
    (tmp_path / "attributes").write_text(create_secret_attributes())
    asked = ("git", "-c", f"core.attributesFile={tmp_path}/attributes", "check-attr", "-z", "diff", "--", f"a/{name}")
    subprocess.run(("git", "init", "-q", str(tmp_path)), check=True)
    told = subprocess.run(asked, cwd=tmp_path, capture_output=True, text=True, check=True).stdout.split("\0")
    assert told[2] == ("unset" if sensitive_paths.describe_secret(f"a/{name}") else "unspecified")
