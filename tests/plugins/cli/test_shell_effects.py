"""What ordinary changes come to: where they may happen, what they need, and what makes them more than ordinary."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.plugins.cli.bash_cases import BARE, HOME, WORK

from handrail import Access, Decision, EvaluationContext, Opinion, Route, View
from handrail.api.verdict import SandboxOffer
from handrail_cli.shell.verdict import judge_line

JUDGING = replace(BARE, sandbox=SandboxOffer("a sandbox", writable=(str(WORK),)))
ONLINE = replace(BARE, sandbox=SandboxOffer("a sandbox", network=True, writable=(str(WORK),)))


def opinion(command: str, judging: EvaluationContext = JUDGING) -> Opinion:
    return judge_line(command, judging)


ORDINARY = [
    "touch a.txt",
    "mkdir -p src/new && cp a.txt src/new/",
    "echo x > out.txt",
    "sort a.txt >> /tmp/sorted",
    "rm -rf build",
    "rm -f *.o",
    'rm -rf "$PWD/build" "$TMPDIR/x"',
    "cd build && rm -f old.log",
    "mv a.txt b.txt",
    "for f in a b c; do touch $f.txt; done",
    'for f in *.txt; do cp "$f" copies/; done',
    "build() { mkdir -p $1 && touch $1/done; }; build out",
    "case x in x) touch a;; esac",
    "find . -name '*.orig' -exec rm -f {} +",
    "if ! test -f a; then touch a; fi",
    "cat <<'E' > notes.md\nrm -rf /\nE",
    "x=a.txt; rm $x",
    "touch a & wait",
    "trap 'rm -f work.lock' EXIT",
    "eval 'touch x'",
    "tee log.txt <<< hello",
]


BEHIND = [
    "cd build && cmake ..",
    "mkdir -p build && cd build && cmake -DX=1 .. > log 2>&1 && make -j4 | tail -3",
    "(cd src && rm -f ../a.txt)",
    "touch a; cd src && rm ../a",
    "cd src && cd lib && rm ../../a.txt",
    "cat a | head && cd src && ../configure",
]
# The shell may be where it was: nothing waits for the `cd` alone.
BESIDE = [
    "cd src; rm ../a.txt",
    "cd src || rm ../a.txt",
    "cd src && true; rm ../a.txt",
    "cd src && true || rm ../a.txt",
    "true || cd src && rm ../a.txt",
    "true ||\ncd src && rm ../a.txt",
    "true | cd src && rm ../a.txt",
    "cd src | true && rm ../a.txt",
    "! cd src && rm ../a.txt",
    "(cd src) && rm ../a.txt",
    "(cd src && true) && rm ../a.txt",
    "(cd src && true) | rm ../a.txt",
    "cd src & true && rm ../a.txt",
    "cd src && bash -c 'true && rm ../../a.txt'",
    "if cd src; then true; fi && rm ../a.txt",
    # Other shells than bash take this `&` for one that leaves the `cd` in the background.
    "sh -c 'cd src &> log && rm ../a.txt'",
]


@pytest.mark.parametrize("command", BEHIND)
def test_what_waits_for_a_cd_is_judged_in_its_folder(command: str) -> None:
    found = opinion(command)
    assert (found.suggestion, found.floor) == (Decision.ALLOW, None), found.reasons


@pytest.mark.parametrize("command", BESIDE)
def test_what_does_not_wait_for_a_cd_is_judged_where_the_shell_was_too(command: str) -> None:
    assert "outside" in [reason.code for reason in opinion(command).reasons]


@pytest.mark.parametrize(
    "command",
    [
        "cd src && trap 'rm ../a.txt' EXIT && cd ..",
        "cd src && eval \"trap 'rm ../a.txt' EXIT\" && cd .. && true",
        "cd src && trap 'rm ../a.txt' EXIT; true",
    ],
)
def test_a_trap_is_judged_in_every_folder_that_it_may_be_sprung_in(command: str) -> None:
    assert "outside" in [reason.code for reason in opinion(command).reasons]


def test_a_trap_that_changes_the_folder_may_be_sprung_again_and_again() -> None:
    command = "cd a/b && trap 'cd ..' DEBUG && cd c && rm ../../f"
    assert opinion(command).suggestion is Decision.CONFIRM
    assert opinion("trap 'cd src && rm ../a.txt' EXIT").suggestion is Decision.ALLOW


def test_a_folder_is_not_moved_away_around_the_one_it_works_in() -> None:
    command = "cd a/b/c && mv ../../b ../../../b && rm ../../../f"
    assert "bulk_delete" in [reason.code for reason in opinion(command).reasons]


@pytest.mark.parametrize("start", ["..", "../b", str(WORK), "lib/../.."])
def test_what_find_runs_in_folders_that_are_not_below_is_asked_about(start: str) -> None:
    assert opinion(f"cd src && find {start} -execdir cat ../a.txt ';'").suggestion is Decision.CONFIRM
    assert opinion("cd src && find . -execdir cat ../a.txt ';'").suggestion is Decision.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "lua -e \"os.remove('/home/user/x')\"",
        "lua - <<'E'\nos.remove('/home/user/x')\nE",
        'lua -e \'for k, f in pairs(os) do if k:match("^rem") then f("a.txt") end end\'',
        "lua -e 'local o = os; o.remove(\"a.txt\")'",
        'Rscript -e \'sapply("/home/user/x", "unlink")\'',
        'Rscript -e \'f <- sapply; f("/home/user/x", "unlink")\'',
    ],
)
def test_what_a_script_deletes_by_another_name_is_asked_about(command: str) -> None:
    assert opinion(command).suggestion is Decision.CONFIRM


@pytest.mark.parametrize(
    "command",
    [
        "lua -e 'local t = {1, 2}; table.remove(t); print(#t, os.time())'",
        "Rscript -e 'print(sapply(1:3, function(v) v + 1))'",
        "Rscript -e 'print(lapply(c(1, 2), function(v) v + 1))'",
    ],
)
def test_what_a_script_only_computes_is_allowed(command: str) -> None:
    assert opinion(command).suggestion is Decision.ALLOW


def test_a_function_in_place_of_cd_leads_nowhere() -> None:
    assert opinion("cd() { true; }; cd src && rm ../a.txt").suggestion is Decision.CONFIRM


@pytest.mark.parametrize("command", ORDINARY)
def test_an_ordinary_change_runs_in_the_sandbox(command: str) -> None:
    found = opinion(command)
    assert (found.suggestion, found.route, found.floor) == (Decision.ALLOW, Route.SANDBOX, None), found.reasons


@pytest.mark.parametrize("command", ORDINARY)
def test_without_a_sandbox_the_same_is_asked_about(command: str) -> None:
    found = opinion(command, BARE)
    assert (found.suggestion, found.floor) == (Decision.CONFIRM, None)
    assert "no_sandbox" in [reason.code for reason in found.reasons]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("rm -rf .", "bulk_delete"),
        ("rm -rf *", "bulk_delete"),
        ("rm -rf ./.*", "bulk_delete"),
        ("rm -rf /tmp/*", "bulk_delete"),
        ("cd src; rm -rf *", "bulk_delete"),
        ("find . -exec rm -rf {} +", "bulk_delete"),
        ("rm -rf ../other", "outside"),
        ("cd .. && rm -rf build", "outside"),
        ("rm ~/notes.txt", "outside"),
        ("echo x > ~/notes.txt", "outside"),
        ("cp a.txt /opt/a.txt", "outside"),
        ("mv /opt/a.txt .", "outside"),
        ("touch ~/.bashrc", "persistence"),
        ("cp run.desktop ~/.config/autostart/", "persistence"),
        ("echo x > .git/hooks/pre-commit", "autorun"),
        ("cp settings.json .vscode/settings.json", "autorun"),
        ("touch .env", "secret"),
        ("rm $X", "unknown_target"),
        ('echo x > "$OUT"', "unknown_target"),
        ("echo x > out*", "unknown_target"),
        ("ln -s ~/.ssh/id_rsa x; cat x", "secret"),
        ("/tmp/tool", "foreign_program"),
        ("source ~/setup.sh", "foreign_program"),
        ("cat x.sh | sh", "hidden_code"),
        ("bash < x.sh", "hidden_code"),
        ('eval "$X"', "hidden_code"),
        ("LD_PRELOAD=./x.so touch a", "variable"),
        ("export PATH=/tmp/x:$PATH", "variable"),
        ("unset HISTFILE", "history"),
        ("enable -f ./x.so y", "session"),
        ("f() { rm -rf ../x; }; f", "outside"),
        ("touch() { cat x | sh; }; touch a", "hidden_code"),
        ("x=a; while true; do cat $x; x=.env; rm $x; done", "unknown_target"),
    ],
)
def test_what_may_do_harm_is_confirmed_each_time_under_a_name(command: str, code: str) -> None:
    found = opinion(command, ONLINE)
    assert (found.floor, found.catastrophic) == (Decision.CONFIRM, False)
    assert code in [reason.code for reason in found.reasons]
    assert found.rule == "shell:" + "+".join(dict.fromkeys(reason.code for reason in found.reasons))


@pytest.fixture
def environment() -> Iterator[Path]:
    """A virtual environment among the temporary files, outside of the workspace."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        (Path(name) / "bin").mkdir()
        (Path(name) / "bin" / "python3").touch()
        yield Path(name)


def test_a_temporary_folder_on_the_path_that_only_this_user_writes_has_programs_of_its_own_and_no_others(
    environment: Path,
) -> None:
    judging = replace(JUDGING, environment={"PATH": f"{environment}/bin:/usr/bin:/bin"})
    assert opinion("uname -sr", judging).suggestion is Decision.ALLOW
    (environment / "bin" / "uname").touch()
    assert opinion("uname -sr", judging).suggestion is not Decision.ALLOW


@pytest.mark.parametrize("open_to_others", [".", "bin"])
def test_a_temporary_folder_on_the_path_that_others_may_change_is_not_trusted(
    environment: Path, open_to_others: str
) -> None:
    (environment / open_to_others).chmod(0o777)
    judging = replace(JUDGING, environment={"PATH": f"{environment}/bin:/usr/bin:/bin"})
    assert opinion("uname -sr", judging).suggestion is not Decision.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "x=a; while true; do cat $x; x=.env; done",
        "f() { cat $x; }; x=.env; f",
        "f() { cat $1; }; f .env",
        "x=a; eval 'x=.env'; cat $x",
        "x=a; read x; cat $x",
        "HOME=/srv/x; cat ~/notes.txt",
        "export HOME=/etc; cat ~/shadow",
        "ln -s .. up; cat up/notes.txt",
        "for x in a b; do cat $x; x=.env; done",
        "bash -c 'cat $1' _ .env",
    ],
)
def test_a_value_that_may_have_changed_is_not_relied_on(command: str) -> None:
    assert opinion(command).suggestion is Decision.CONFIRM


def test_what_only_the_line_sets_is_followed() -> None:
    for command in (
        "x=README.md; cat $x",
        "cat ${file:-README.md}",
        "x=a.txt.bak; cat ${x%.bak}",
        "x=abc; cat ${x:0:2}",
    ):
        assert opinion(command).suggestion is Decision.ALLOW, command
    assert opinion("x=xx.env; cat ${x#xx}").floor is Decision.CONFIRM


def test_parts_say_what_each_command_touches() -> None:
    found = opinion("cat a.txt > out.txt && rm -r build")
    touches = {part.argv: part.touches for part in found.parts}
    assert touches["cat", "a.txt"] == (Access("read", str(WORK / "a.txt")),)
    assert touches[">", "out.txt"] == (Access("write", str(WORK / "out.txt")),)
    assert touches["rm", "-r", "build"] == (Access("delete", str(WORK / "build")),)


def test_reasons_point_at_the_words_they_speak_of() -> None:
    command = "touch a; rm -rf ../other"
    (reason,) = opinion(command).reasons
    assert reason.span is not None
    assert command[slice(*reason.span)] == "../other"


def test_an_allow_is_narrowed_to_the_commands_that_are_asked_about() -> None:
    assert opinion("touch a && mkdir b", BARE).narrowed == (("touch",), ("mkdir",))
    assert opinion("git add a; git status", BARE).narrowed == (("git", "add"),)
    for never in ("rm -rf ../x", "nosuchprogram x", "rm $X", "touch a; cat x | sh"):
        assert opinion(never, BARE).narrowed == (), never


@pytest.mark.parametrize(
    "command",
    [
        "cp -l ../x/a.txt b.txt",
        "cp -al ../x .",
        "cp --link -t . ../x/a.txt",
        "link ../x/a.txt b.txt",
        "busybox cp -l ../x/a.txt b.txt",
        "rsync -a --link-dest=../x src/ copy/",
    ],
)
def test_another_name_of_a_file_is_asked_about_like_a_change_of_it(command: str) -> None:
    found = opinion(command)
    assert found.suggestion is Decision.CONFIRM
    written = [touch.what for part in found.parts for touch in part.touches if touch.kind == "write"]
    assert any(what.startswith(str(WORK.parent / "x")) for what in written)


def test_what_is_copied_as_links_is_not_known_from_then_on() -> None:
    assert opinion("cp -s $PWD/a.txt b.txt").suggestion is Decision.ALLOW
    assert opinion("cp -l a.txt b.txt").suggestion is Decision.ALLOW
    assert opinion("cp -rs .. up; cat up/notes.txt").suggestion is Decision.CONFIRM


def test_a_link_is_changed_where_it_leads(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (tmp_path / "outside").mkdir()
    (work / "out").symlink_to(tmp_path / "outside")
    # Temporary folders are where tests run; here only the workspace counts.
    here = replace(JUDGING, cwd=work, workspace=(work,), sandbox=SandboxOffer("a sandbox", writable=(str(work),)))
    inside = [touch.what for part in opinion("touch out/x", here).parts for touch in part.touches]
    assert inside == [str(tmp_path / "outside" / "x")]
    assert [t.what for p in opinion("rm out", here).parts for t in p.touches] == [str(work / "out")]


def test_what_a_person_has_opened_to_the_sandbox_may_be_changed_in_it() -> None:
    opened = replace(BARE, sandbox=SandboxOffer("a sandbox", writable=("/srv/data",)))
    found = opinion("touch /srv/data/x", opened)
    assert (found.suggestion, found.route) == (Decision.ALLOW, Route.SANDBOX)
    assert "outside" in [reason.code for reason in opinion("touch /srv/other/x", opened).reasons]


@pytest.mark.parametrize(
    "command", ["ls | xargs rm -rf", "find . | xargs rm", "git ls-files | xargs rm", 'for f in *; do rm -rf "$f"; done']
)
def test_everything_that_is_listed_is_everything(command: str) -> None:
    assert "bulk_delete" in [reason.code for reason in opinion(command).reasons]


@pytest.mark.parametrize(
    "command",
    [
        "grep -rln X --include=*.py . | grep -v .venv | xargs sed -i s/X/Y/g",
        "grep -r -l -e X src | sort -u | xargs sed -i s/X/Y/g",
        "grep -rlZ X . | xargs -0 sed -i s/X/Y/g",
        "rg -nl X src | xargs sed -i s/X/Y/g",
    ],
)
def test_files_whose_names_are_searched_for_are_changed_in_the_sandbox(command: str) -> None:
    found = opinion(command)
    assert (found.suggestion, found.route) == (Decision.ALLOW, Route.SANDBOX)


@pytest.mark.parametrize(
    "command",
    [
        "grep -rel . | xargs rm",
        "grep -r -e -l . | xargs rm",
        "grep -r -- -l . | xargs rm",
        "rg -L X | xargs rm",
        "rg -rl X | xargs rm",
    ],
)
def test_lines_that_a_search_prints_are_not_names(command: str) -> None:
    assert "unknown_target" in [reason.code for reason in opinion(command).reasons]


@pytest.mark.parametrize("command", ["env LD_PRELOAD=./x.so ls", "env PATH=. ls", "env -i PAGER=./x git log"])
def test_variables_set_by_env_are_variables(command: str) -> None:
    assert opinion(command).floor is Decision.CONFIRM


def test_a_pattern_is_a_secret_only_where_one_is_there(tmp_path: Path) -> None:
    (tmp_path / "data.json").touch()
    here = replace(JUDGING, cwd=tmp_path, workspace=(tmp_path,))
    assert opinion("cat *.json", here).suggestion is Decision.ALLOW
    (tmp_path / "credentials.json").touch()
    assert opinion("cat *.json", here).suggestion is Decision.CONFIRM


GIT_LOOKS = ["git diff {}", "git diff HEAD -- {}", "git log -p -1 -- {}", "git show HEAD -- {}", "git blame {}"]


@pytest.mark.parametrize("command", GIT_LOOKS)
def test_git_shows_a_file_that_is_there_as_freely_as_reading_it(command: str, tmp_path: Path) -> None:
    for name in ("main.py", ".env"):
        (tmp_path / name).touch()
    judging = replace(JUDGING, cwd=tmp_path, workspace=(tmp_path,))
    assert opinion(command.format("main.py"), judging).suggestion is Decision.ALLOW
    assert "secret" in opinion(command.format(".env"), judging).rule
    assert "destructive" in opinion("git checkout main.py", judging).rule
    assert opinion(command.format("/etc/shadow"), judging).suggestion is Decision.CONFIRM


FILLING = ["cp ../project/src/a.txt .", "mv src/a.txt .", "tar xzf a.tgz", "unzip a.zip", "tar xf a.tar -C ."]


@pytest.mark.parametrize("command", FILLING)
def test_filling_the_folder_of_a_project_that_has_a_handrail_toml_runs_in_the_sandbox(command: str) -> None:
    kept = (WORK / "handrail.toml", HOME / ".config" / "handrail")
    found = opinion(command, replace(JUDGING, protected=kept))
    assert (found.suggestion, found.route, found.floor) == (Decision.ALLOW, Route.SANDBOX, None), found.reasons
    assert opinion(command, replace(BARE, protected=kept)).floor is Decision.CONFIRM


@pytest.mark.parametrize(
    "command", ["cp x/handrail.toml .", "touch handrail.toml", "rm handrail.toml", "tar xf a.tar -C ~/.config"]
)
def test_files_by_which_handrail_judges_stay_denied(command: str) -> None:
    kept = (WORK / "handrail.toml", HOME / ".config" / "handrail")
    assert opinion(command, replace(JUDGING, protected=kept)).floor is Decision.DENY


def test_what_the_network_gives_is_asked_about_each_time_where_it_may_replace_a_handrail_toml() -> None:
    found = opinion("curl -O https://example.org/x", replace(JUDGING, protected=(WORK / "handrail.toml",)))
    assert found.floor is Decision.CONFIRM


def test_a_virtual_environment_of_a_workspace_in_a_temporary_folder_is_the_workspaces_own() -> None:
    work = Path("/tmp/user/project")
    judging = replace(JUDGING, cwd=work, workspace=(work,), environment={"PATH": f"{work}/.venv/bin:/usr/bin"})
    assert opinion("uname -sr", judging).suggestion is Decision.ALLOW
    assert (
        opinion("uname -sr", replace(judging, environment={"PATH": "/tmp/other/bin:/usr/bin"})).suggestion
        is not Decision.ALLOW
    )


@pytest.mark.parametrize(
    "command",
    [
        "curl http://169.254.169.254/latest/meta-data/",
        "curl -s http://0xA9FEA9FE/",
        "wget http://metadata.google.internal/x",
        "curl http://10.0.0.8/status",
        "git clone http://printer.lan/x.git",
    ],
)
def test_the_inner_network_is_asked_about_each_time_whatever_the_mode_allows(command: str) -> None:
    assert opinion(command, ONLINE).floor is Decision.CONFIRM


@pytest.mark.parametrize(
    "command", ["curl http://localhost:3000/health", "curl https://example.com", "git push origin main"]
)
def test_this_machine_the_web_and_remotes_by_name_are_no_inner_network(command: str) -> None:
    assert opinion(command, ONLINE).floor is None


def test_git_looks_at_any_repository_of_the_workspace_only_in_the_sandbox(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    made, bare = tmp_path / "node_modules" / "x", tmp_path / "bare"
    (made / ".git").mkdir(parents=True)
    (made / "deep").mkdir()
    (tmp_path / "src").mkdir()
    for name in ("objects", "refs"):
        (bare / name).mkdir(parents=True)
    (bare / "HEAD").touch()
    judging = replace(JUDGING, cwd=tmp_path, workspace=(tmp_path,))
    nested = ("cd node_modules/x/deep && git status", "git -C node_modules/x diff", "cd bare && git log")
    for command in ("git status", "cd src && git log", *nested):
        found = opinion(command, judging)
        assert (found.route, found.view) == (Route.SANDBOX, View.READ)


@pytest.mark.parametrize(
    "command",
    [
        "git commit -m \"$(cat <<'EOF'\nIt's (done\n\nMore: 1\nEOF\n)\" && git log -1",
        "git commit -F - <<'E'\nsubject\nE",
        "patch -i - <<'E'\n--- a\nE",
    ],
)
def test_a_message_from_a_here_document_is_data(command: str) -> None:
    found = opinion(command)
    assert (found.suggestion, found.route, found.floor) == (Decision.ALLOW, Route.SANDBOX, None), found.reasons


@pytest.mark.parametrize(
    "command",
    [
        'git commit -m "$(cat <<EOF\n$(rm -rf ~)\nEOF\n)"',
        "git commit -m \"$(cat <<'EOF')\"\nrm -rf ~\nEOF\n",
        "bash -c \"$(cat <<'EOF'\nrm -rf ~\nEOF\n)\"",
        "echo \"$(cat <<'EOF'\nx\nEOF\nrm -rf ~)\"",
        "cat - <<'E' | sh\nrm -rf ~\nE",
    ],
)
def test_a_here_document_hides_no_command(command: str) -> None:
    assert opinion(command).catastrophic


@pytest.mark.parametrize(
    ("command", "narrowed"),
    [
        ("git bundle verify /opt/x", ("git", "bundle", "verify")),
        ("git -C src bundle verify /opt/x", ("git", "-C", "src", "bundle", "verify")),
        ("git --no-pager -C src bundle verify -q /opt/x", ("git", "--no-pager", "-C", "src", "bundle", "verify")),
        ("cd src && git bundle verify /opt/x", ("git", "bundle", "verify")),
    ],
)
def test_an_allow_is_narrowed_to_the_subcommand(command: str, narrowed: tuple[str, ...]) -> None:
    assert opinion(command).narrowed == (narrowed,)


@pytest.mark.parametrize(
    "command",
    [
        "git -C /opt/other log",
        "git --no-pager -C /opt/other log -1",
        "cd /opt/other && git log",
        "git -C /opt/other",
    ],
)
def test_an_allow_is_narrowed_to_no_beginning_in_a_folder_outside(command: str) -> None:
    assert not opinion(command).narrowed
