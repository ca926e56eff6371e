"""A lasting yes to a command on the host is for files that nobody changes without a question, and for what was shown of folders outside."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest
from tests.plugins.cli.test_grant_folders import Granting
from tests.plugins.cli.test_grant_words import asked
from tests.plugins.cli.test_sandbox_network import run, working

from handrail import Route
from handrail.api.approval import Approval

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="bubblewrap is Linux's")

GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@one.example", "-c", "init.defaultBranch=main")


@pytest.mark.parametrize(
    "command",
    [
        pytest.param("nm --plugin ./a.so /opt/a.o", id="a-plugin"),
        pytest.param("objdump --plugin=./a.so -d /opt/a.o", id="a-plugin-in-one-word"),
        pytest.param("openssl x509 -engine ./a.so -in /opt/a.crt -noout", id="an-engine"),
        pytest.param("openssl dgst -provider-path . -provider a /opt/a.crt", id="a-provider"),
        pytest.param("openssl req -config a.cfg -in /opt/a.csr -noout", id="a-configuration"),
        pytest.param("openssl ca -config a.cfg -in /opt/a.csr", id="a-configuration-and-an-effect"),
        pytest.param("docker compose -f a.cfg up", id="a-project-of-containers"),
        pytest.param("docker compose ps", id="a-project-of-containers-that-is-found"),
        pytest.param("nm --frobnicate=a.cfg /opt/a.o", id="an-option-that-is-not-known"),
        pytest.param("gcloud projects list --flags-file=a.cfg", id="options-out-of-a-file"),
        pytest.param("aws ec2 describe-instances --filters file://a.cfg", id="a-value-out-of-a-file"),
        pytest.param("frob --opt x; ls --frobnicate /opt", id="a-program-that-is-not-known"),
        pytest.param("xmllint a.cfg /opt/a.xml", id="a-document-that-names-others"),
        pytest.param("gcc -E -I. /opt/a.c", id="files-that-are-included"),
        pytest.param("strings /opt/a.o @a.cfg", id="words-out-of-a-file"),
        pytest.param("patch --dry-run a.cfg /opt/a.patch", id="a-patch-that-names-files"),
        pytest.param("sqlite3 /opt/a.db < a.cfg", id="code-as-input"),
        pytest.param("cat a.cfg | sqlite3 /opt/a.db", id="code-through-a-pipe"),
        pytest.param("git apply a.cfg /opt/a.patch", id="a-patch-of-the-workspace"),
        pytest.param("git apply /opt/a.patch", id="a-patch"),
        pytest.param("git am /opt/a.patch", id="patches-from-mails"),
    ],
)
async def test_what_may_obey_a_file_that_changes_takes_no_lasting_yes_on_the_host(tmp_path: Path, command: str) -> None:
    """If this fails, an unprompted command rewrites the file, and the granted one runs on the host what is in it."""
    approval = await asked(tmp_path, command)
    assert approval.verdict.route is Route.HOST
    assert not approval.grants


@pytest.mark.parametrize(
    "command",
    [
        "cat /opt/notes.md a.cfg",
        "diff a.cfg /opt/notes.md",
        "file a.cfg /opt/notes.md",
        "grep -c x a.cfg /opt/notes.md",
        "nm /opt/a.o",
        "gcc --version && cat /opt/notes.md",
        "gh pr list | tail -n 3",
        "openssl x509 -in /opt/a.crt -noout -text",
    ],
)
async def test_what_takes_files_as_data_takes_one(tmp_path: Path, command: str) -> None:
    assert "exactly this call" in [grant.label for grant in (await asked(tmp_path, command)).grants]


@pytest.mark.parametrize("folder", ["writable", "/tmp"])
async def test_folders_that_are_open_to_the_sandbox_count_like_the_workspace(tmp_path: Path, folder: str) -> None:
    person = Granting()
    place = tmp_path / "writable" if folder == "writable" else Path(folder)
    (tmp_path / "writable").mkdir()
    async with working(tmp_path, person, sandbox={"writable": [str(tmp_path / "writable")]}) as session:
        await run(session, f"xmllint {place}/a.xml /opt/a.xml")
    assert not person.asked[0].grants


# Folders outside that a command works in


@pytest.fixture
def other() -> Iterator[Path]:
    """A repository with a commit, outside the workspace and the folders for temporary files."""
    with tempfile.TemporaryDirectory(prefix="handrail-test-", dir=Path.home()) as folder:
        place = Path(folder).resolve()
        (place / "main.py").write_text("one\n")
        for words in (("init", "-q"), ("add", "-A"), ("commit", "-q", "-m", "one")):
            subprocess.run([*GIT, *words], cwd=place, check=True)
        yield place


@pytest.mark.parametrize(
    ("granted", "later"),
    [
        ("git -C {} branch", "git -C {} branch -m main other"),
        ("git -C {} branch", "git -C {} branch --list"),
        ("git -C {} remote", "git -C {} remote add evil https://two.example/x"),
        ("git -C {} config -l", "git -C {} config user.name evil"),
        ("git -C {} tag", "git -C {} tag v1"),
        ("git -C {} add main.py", "git -C {} add -A"),
        ("git -C {} checkout -b t1", "git -C {} checkout main"),
        ("git -C {} stash", "git -C {} stash -u"),
        ("git -C {} log", "git -C {} log -p"),
        ("git -C {} add --dry-run .", "git -C {} add ."),
        ("env -C {} git branch", "env -C {} git branch -m main other"),
        ("fd --base-directory {} x", "fd --base-directory {} y"),
    ],
)
async def test_a_command_in_a_folder_outside_is_granted_word_for_word(
    tmp_path: Path, other: Path, granted: str, later: str
) -> None:
    """If this fails, a look at another repository is a yes to changing it."""
    person = Granting()
    async with working(tmp_path, person) as session:
        await run(session, granted.format(other))
        same = await run(session, granted.format(other))
        result = await run(session, later.format(other))
    assert [grant.label for grant in person.asked[0].grants] == ["exactly this call"]
    assert same.status != "denied"
    assert (len(person.asked), result.status) == (2, "denied")


@pytest.mark.parametrize(
    ("command", "writes"),
    [
        ("git -C {} branch", False),
        ("git -C {} branch two", True),
        ("git -C {} stash", True),
        ("cd {} && git log", False),
        ("make -C {}", True),
        ("make -C {} -n", False),
        ("tar -C {} -cf /dev/null .", False),
        ("tar -C {} -xf /opt/a.tar", True),
        ("npm --prefix {} ls", False),
        ("npm --prefix {} run build", True),
        ("go -C {} vet", True),
        ("go -C {} list", False),
        ("fd --base-directory {} x", False),
        ("mktemp -p {}", True),
    ],
)
async def test_a_question_names_the_folder_outside_that_a_command_works_in(
    tmp_path: Path, other: Path, command: str, *, writes: bool
) -> None:
    approval = await _asked(tmp_path, command.format(other))
    kinds = {touch.kind for part in approval.verdict.parts for touch in part.touches if touch.what == str(other)}
    assert ("write" in kinds) is writes
    assert writes or "read" in kinds
    assert [grant.label for grant in approval.grants] in ([], ["exactly this call"])


@pytest.mark.parametrize(
    "command", ["cargo build --manifest-path {}/Cargo.toml", "cargo metadata --manifest-path {}/Cargo.toml"]
)
async def test_a_project_outside_that_is_named_by_its_file_takes_no_lasting_yes(
    tmp_path: Path, other: Path, command: str
) -> None:
    approval = await _asked(tmp_path, command.format(other))
    assert f"{other}/Cargo.toml" in [touch.what for part in approval.verdict.parts for touch in part.touches]
    assert not approval.grants


async def _asked(folder: Path, command: str) -> Approval:
    person = Granting()
    async with working(folder, person) as session:
        await anyio.run_process(("git", "init", "-q", str(session.cwd)))
        await run(session, command)
    return person.asked[0]


# In permissive mode


@pytest.mark.parametrize(
    ("command", "asks"),
    [
        ("git push --repo=../two.git --all", True),
        ("git push --repo ../two.git --all", True),
        ("git push --repo=https://two.example/x --all", True),
        ("git push --repo=ext::sh --all", True),
        ("nm --plugin ./a.so /opt/a.o", True),
        ("git apply /opt/a.patch", True),
        ("nm /opt/a.o", False),
    ],
)
async def test_permissive_mode_holds_back_another_side_and_code_of_the_workspace(
    tmp_path: Path, command: str, *, asks: bool
) -> None:
    person = Granting()
    async with working(tmp_path, person, mode="permissive") as session:
        await anyio.run_process(("git", "init", "-q", str(session.cwd)))
        await run(session, command)
    assert bool(person.asked) is asks
