"""Reading what is in a folder with secrets is reading secrets, wherever it would not be the sandbox that keeps them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from handrail import Decision, EvaluationContext, Mode, Route, View
from handrail.api.verdict import SandboxOffer
from handrail_cli.shell.verdict import judge_line

SECRETS = (".netrc", ".ssh/id_ed25519", ".docker/config.json", ".config/gh/hosts.yml", ".aws/credentials")
OPEN = ("documents/letter.txt", "documents/data.json", ".config/htop/rc", ".docker/other/x")


@pytest.fixture
def home() -> Iterator[Path]:
    """A home outside the folders for temporary files, of which sandboxed commands see their own."""
    with tempfile.TemporaryDirectory(prefix="handrail-test-", dir=Path.home()) as folder:
        yield Path(folder).resolve()


@pytest.fixture
def judging(home: Path) -> EvaluationContext:
    for name in (*SECRETS, *OPEN, "work/a.txt"):
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).touch()
    return EvaluationContext(
        cwd=home / "work",
        home=home,
        user="user",
        environment={"PATH": "/usr/bin:/bin", "HOME": str(home)},
        workspace=(home / "work",),
        platform="linux",
        mode=Mode.PERMISSIVE,
        sandbox=SandboxOffer("bubblewrap"),
    )


def is_asked_each_time(command: str, judging: EvaluationContext) -> bool:
    """True if a person sees it on the host whatever the mode, a rule or a grant says."""
    found = judge_line(command, judging)
    return found.floor is Decision.CONFIRM and "secret" in found.rule


READING = [
    "grep -r x ~",
    "grep -r x ..",
    "grep -r x /",
    "grep -r x /proc/self",
    "grep -r x /proc",
    "cat /proc/self/*",
    "grep -r x ~/.config",
    "grep x ~/.docker/*",
    "cat ~/.docker/*",
    "cat ~/.docker/conf*",
    "cat ~/.[a-n]*",
    "cat ~/.config/*/*",
    "cat < ~/.docker/*",
    "cd ~/.docker && cat *",
    "cd ~ && grep -r x .",
    "cp -r ~/.config copy",
    "tar cf - ~",
    "zip -r x.zip ~/.config",
    "diff -r ~/.config .",
    "for f in ~/.docker/*; do cat $f; done",
    "ln -s ~ link; cat link/.netrc",
]
READING_FOUND = [
    "find ~ | xargs cat",
    "find ~ -type f -print0 | xargs -0 cat",
    "find ~ -type f -exec cat {} +",
    "ls -d ~/.docker/* | xargs cat",
    "echo ~/.n* | xargs cat",
    "printf '%s\\n' ~/.docker/* | xargs cat",
    "cat $(find ~ -type f)",
    "cat $(echo ~/.docker/*)",
    "x=$(echo ~/.netrc); cat $x",
    "cat ~/.docker/$x",
    'find ~ | while read -r f; do cat "$f"; done',
    "find ~ | parallel cat",
    "xargs -a <(find ~) cat",
    "find ~ | tar cf x.tar -T -",
    "cd ~; find . | xargs cat",
]


@pytest.mark.parametrize("command", [*READING, *READING_FOUND])
def test_a_folder_with_secrets_is_not_read_unseen(command: str, judging: EvaluationContext) -> None:
    # `kill` needs an approval of its own, and in permissive mode runs the line on the host.
    assert is_asked_each_time(f"ping -c1 localhost; {command}", judging)
    if command != "find ~ | tar cf x.tar -T -":
        assert is_asked_each_time(command, judging)


WORKSPACE = [
    "grep -r x . ~/documents",
    "grep -r x co?f ~/documents",
    "cd conf && grep -r x . ~/documents",
    "rg x; cat ~/documents/letter.txt",
    "find . -type f | xargs cat; cat ~/documents/letter.txt",
    "cat $(find . -type f) ~/documents/letter.txt",
    "git grep --no-index x; cat ~/documents/letter.txt",
    "git grep --untracked x; cat ~/documents/letter.txt",
    "tar cf - -T list | wc -c; cat ~/documents/letter.txt",
    "cat $X ~/documents/letter.txt",
    "cp -r conf other; cat ~/documents/letter.txt",
    "ping -c1 localhost; grep -r x conf",
]


@pytest.mark.parametrize("command", WORKSPACE)
def test_what_keeps_a_line_out_of_the_sandbox_shows_no_secrets_of_the_workspace(
    command: str, judging: EvaluationContext
) -> None:
    secret = judging.cwd / "conf/deep/.env"
    secret.parent.mkdir(parents=True)
    secret.touch()
    assert is_asked_each_time(command, judging)
    assert any(str(secret) in reason.text for reason in judge_line(command, judging).reasons)
    without = judge_line(command, replace(judging, sandbox=None))
    assert any(str(secret) in reason.text for reason in without.reasons)
    secret.unlink()
    assert not is_asked_each_time(command, judging)


def test_folders_outside_are_searched_without_a_look_at_the_workspace(judging: EvaluationContext) -> None:
    (judging.cwd / ".env").touch()
    assert not is_asked_each_time("grep -r x ~/documents", judging)
    assert not is_asked_each_time("diff -r ~/documents ~/.config/htop", judging)


@pytest.mark.parametrize(
    "command", ["cat conf/*", "head -1 conf/*", "for f in conf/*; do cat $f; done; cat ~/documents/data.json"]
)
def test_a_pattern_that_fits_a_secret_shows_it_to_nobody_unasked(command: str, judging: EvaluationContext) -> None:
    (judging.cwd / "conf").mkdir()
    (judging.cwd / "conf/id_rsa").touch()
    assert is_asked_each_time(command, judging)


ANY = [
    "wc -l *",
    "cat conf/*",
    "head -1 c*",
    "cat */*",
    "md5sum *",
    "sort -u *",
    "sed -n 1p *",
    'for f in *; do wc -c < "$f"; done',
]


@pytest.mark.parametrize("command", ANY)
def test_a_pattern_that_means_any_file_is_not_asked_about_in_the_sandbox(
    command: str, judging: EvaluationContext
) -> None:
    """If this fails, look at what `pattern` and `use_of` put among the doubts that count only on the host."""
    (judging.cwd / "conf").mkdir()
    (judging.cwd / "conf/a.txt").touch()
    found = judge_line(command, judging)
    assert (found.suggestion, found.view) == (Decision.ALLOW, View.READ)
    assert judge_line(command, replace(judging, sandbox=None)).suggestion is Decision.CONFIRM
    assert "secret" in {one.code for one in judge_line(f"{command}; cat ~/documents/letter.txt", judging).reasons}
    for name in ("id_rsa", "credentials.json", "conf/id_rsa"):
        (judging.cwd / name).touch()
    assert is_asked_each_time(command, judging)


@pytest.mark.parametrize("command", ["cat id_*", "cat .e*", "cat ../*", "cat ~/*", "cat .{1..9}/*"])
def test_a_pattern_that_names_secrets_or_leads_outside_is_asked_about(command: str, judging: EvaluationContext) -> None:
    assert judge_line(command, judging).suggestion is Decision.CONFIRM


@pytest.mark.parametrize("name", ["--compress-program=sh", "-o", "of=a.txt"])
@pytest.mark.parametrize("command", ["sort -u *", "tar czf x.tgz *", "sort ?*"])
def test_a_pattern_is_asked_about_where_a_name_looks_like_an_option(
    name: str, command: str, judging: EvaluationContext
) -> None:
    judging = replace(judging, undoable=True)
    assert judge_line(command, judging).suggestion is Decision.ALLOW
    (judging.cwd / name).touch()
    assert judge_line(command, judging).suggestion is Decision.CONFIRM


@pytest.mark.parametrize("command", ["env *", "xargs *", "python3 *", "git branch *", "make *", "dd *", "awk *"])
def test_a_pattern_for_what_a_program_runs_or_changes_is_asked_about(command: str, judging: EvaluationContext) -> None:
    assert judge_line(command, replace(judging, undoable=True)).suggestion is Decision.CONFIRM


@pytest.mark.parametrize("command", ["grep -r x . --no-such", "cat $X", "grep -r x . > new; rm old", "PIP_X=1 rg x"])
def test_what_permissive_mode_keeps_in_the_sandbox_is_not_asked_about(command: str, judging: EvaluationContext) -> None:
    for name in (".env", "new", "old"):
        (judging.cwd / name).write_text("x\n")
    found = judge_line(command, judging)
    assert (found.floor, found.route) == (None, Route.SANDBOX)
    assert is_asked_each_time(f"{command}; cat ~/documents/letter.txt", judging)


UNPACKING = ["tar xf e.tar", "unzip e.zip", "7z x e.7z", "patch -p1 < e.diff", "rsync -a conf/ .", "cp -r conf/. ."]


@pytest.mark.parametrize("command", UNPACKING)
def test_names_that_are_not_known_are_not_written_on_the_host(command: str, judging: EvaluationContext) -> None:
    """If this fails, a file that is read outside takes an archive to the host, where it brings hooks along."""
    (judging.cwd / "conf").mkdir()
    judging = replace(judging, undoable=True)
    assert judge_line(command, judging).suggestion is Decision.ALLOW
    found = judge_line(f"cat ~/documents/letter.txt; {command}", judging)
    assert (found.floor, "autorun" in found.rule) == (Decision.CONFIRM, True)


@pytest.mark.parametrize("command", ["find ~ | cpio -o", "git -C ~ grep --no-index x"])
def test_a_list_of_names_in_such_a_folder_is_not_read_on_the_host(command: str, judging: EvaluationContext) -> None:
    assert is_asked_each_time(f"ping -c1 localhost; {command}", judging)


@pytest.mark.parametrize(
    "command",
    [
        "grep -r x ~/documents",
        "cat ~/documents/*",
        "cat ~/documents/*.json",
        "grep -r x ~/.config/htop",
        "find ~/documents -type f | xargs cat",
        "cat ~/*.txt",
    ],
)
def test_a_folder_without_secrets_by_name_is_any_folder_outside(command: str, judging: EvaluationContext) -> None:
    found = judge_line(command, judging)
    assert (found.suggestion, found.floor) == (Decision.CONFIRM, None)


@pytest.mark.parametrize("command", ["ls -la ~", "du -sh ~", "find ~ -name x", "ls ~ | wc -l", "grep -r x ."])
def test_names_alone_are_shown(command: str, judging: EvaluationContext) -> None:
    assert judge_line(command, judging).suggestion is Decision.ALLOW


def test_a_folder_shown_to_the_sandbox_is_read_there_and_not_on_the_host(judging: EvaluationContext) -> None:
    cargo = judging.home / ".cargo"
    cargo.mkdir()
    (cargo / "credentials.toml").touch()
    shown = replace(judging, readable=(cargo,))
    assert judge_line("grep -r x ~/.cargo", shown).suggestion is Decision.ALLOW
    assert is_asked_each_time("ping -c1 localhost; grep -r x ~/.cargo", shown)
    assert is_asked_each_time("grep -r x ~/.cargo", replace(shown, sandbox=None))


def test_what_lets_a_person_answer_is_not_found_by_a_search(judging: EvaluationContext) -> None:
    keys = judging.home / "documents" / "keys"
    keys.mkdir()
    assert is_asked_each_time("grep -r x ~/documents", replace(judging, keys=(keys,)))
