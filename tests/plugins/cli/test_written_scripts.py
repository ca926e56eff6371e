"""A script that a line writes and runs is judged as a file that is there: in the sandbox it may do what every file of the workspace may."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tests.plugins.cli.bash_cases import BARE

from handrail import Decision, EvaluationContext, Mode, Route, SandboxOffer, View
from handrail.api.approval import no
from handrail.session.open_session import open_configured_runtime
from handrail_cli.shell.verdict import judge_line

JUDGING = replace(BARE, sandbox=SandboxOffer(name="bubblewrap", network=False))

PYTHON = """import re, pathlib, socket, subprocess
def total(*parts): return {"sum": sum(parts)}
for number, line in enumerate(pathlib.Path("a.txt").read_text().splitlines()):
    if re.search(r"h(i)|^#", line):
        print(f"{number}: {line}", total(1, 2))
"""
NODE = "const a = [1, 2].map(x => x * 2);\nconsole.log(a.join(','), require('os').cpus());\n"
AWK = 'BEGIN { FS = "," } { print $1 | "sort" }\n'
MAKEFILE = "all: a.o\n\tgcc -o $@ $^ && $(CC) --version\n"


def written(name: str, text: str, command: str) -> str:
    return f"cat > {name} <<'EOF'\n{text}EOF\n{command}"


SCRIPTS = [
    written("fix.py", PYTHON, "python3 fix.py && rm fix.py"),
    written("fix.py", PYTHON, "python3 -u fix.py a b"),
    written("fix.py", f"#!/usr/bin/env python3\n{PYTHON}", "chmod +x fix.py && ./fix.py"),
    written("gen.js", NODE, "node gen.js"),
    written("first.awk", AWK, "awk -f first.awk a.csv"),
    written("Other.mk", MAKEFILE, "make -f Other.mk"),
    "echo 'print(open(\"a.txt\").read())' > x.py; timeout 5 python3 x.py",
]


@pytest.mark.parametrize("command", SCRIPTS)
def test_a_script_that_the_line_writes_runs_in_the_sandbox(command: str) -> None:
    found = judge_line(command, JUDGING)
    assert (found.suggestion, found.route, found.reasons) == (Decision.ALLOW, Route.SANDBOX, ())


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (PYTHON, "runs_program"),
        ("open('/etc/motd', 'w').write('x')\n", "persistence"),
        ("with open(f'{__file__}.txt') as file: pass\n", "code"),
    ],
)
def test_what_a_script_would_do_counts_where_it_runs_on_the_host(script: str, code: str) -> None:
    alone, asked = written("fix.py", script, "python3 fix.py"), written("fix.py", script, "python3 fix.py; frobnicate")
    for command, judging in ((alone, BARE), (asked, JUDGING)):
        found = judge_line(command, judging)
        assert found.suggestion is Decision.CONFIRM
        assert code in {reason.code for reason in found.reasons}


@pytest.mark.parametrize("run", ["python3 fix.py", "chmod +x fix.py; ./fix.py"])
@pytest.mark.parametrize("judging", [BARE, JUDGING], ids=["host", "sandbox"])
def test_a_script_that_must_run_nowhere_is_denied_also_in_the_sandbox(run: str, judging: EvaluationContext) -> None:
    """A rule of a person, or a yes after the sandbox has refused something, has the same line run on the host."""
    script = "#!/usr/bin/python3\nimport shutil\nshutil.rmtree('/home/user')\n"
    assert judge_line(written("fix.py", script, run), judging).catastrophic
    assert judge_line(written("fix.py", script, f"{run}; frobnicate"), judging).catastrophic


@pytest.mark.parametrize(
    "command",
    [
        "echo 'rm -rf ~' > x.sh; bash x.sh",
        "echo 'rm -rf ~' > x; ./x",
        "printf '#!/bin/sh\\nrm -rf ~' > x; ./x",
        "printf '#!/usr/bin/python3\\nrm -rf ~' > x; bash x",
        "printf '#!/usr/bin/python3\\nrm -rf ~' > x; . ./x",
    ],
)
def test_what_is_written_for_a_shell_is_read_as_the_line_is(command: str) -> None:
    assert judge_line(command, JUDGING).catastrophic


@pytest.mark.parametrize("run", ["bash x", ". ./x", "source x"])
def test_a_first_line_hides_nothing_from_a_shell(run: str) -> None:
    found = judge_line(f"printf '#!/usr/bin/python3\\ncat ~/.ssh/id_rsa' > x; {run}", JUDGING)
    assert "secret" in {reason.code for reason in found.reasons}


INLINE = [
    "python3 - <<'PY'\nimport click\n@click.command()\ndef run(): pass\nprint(click.style('x'))\nPY",
    "python3 -c \"import sqlite3; print(sqlite3.connect('a.db').execute('select 1').fetchall())\"",
    "python3 -c \"from pathlib import Path; print([p.read_text() for p in Path('.').rglob('*.py')])\"",
    "node -e \"console.log(fs.readFileSync('package.json', 'utf8'))\"",
    "node -p \"require('is-number')('5')\"",
    'ruby -e \'puts File.read("x").split("/")\'',
    'node -e \'require("./app").get("/no-such-folder/users")\'',
    "php -r 'echo file_get_contents(\"a.txt\");'",
]


@pytest.mark.parametrize("command", INLINE)
def test_code_that_is_not_read_runs_in_the_sandbox_as_a_file_of_the_workspace(command: str) -> None:
    found = judge_line(command, JUDGING)
    assert (found.suggestion, found.route, found.view) == (Decision.ALLOW, Route.SANDBOX, View.WORK)


@pytest.mark.parametrize("command", INLINE)
@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.PERMISSIVE])
@pytest.mark.parametrize("around", ["{}", "{}\nfrobnicate", "frobnicate {}", "cd /etc\n{}", "{}\ncat ~/letter.txt"])
def test_code_that_is_not_read_is_asked_about_where_it_may_run_on_the_host(
    command: str, mode: Mode, around: str
) -> None:
    if "<<" in command and around == "frobnicate {}":
        pytest.skip("the here-document is for the program that is not known")
    judging = BARE if around == "{}" else JUDGING
    found = judge_line(around.format(command), replace(judging, mode=mode))
    assert (found.suggestion, found.floor) == (Decision.CONFIRM, Decision.CONFIRM)
    assert "code" in {reason.code for reason in found.reasons}


@pytest.mark.parametrize(
    "code",
    [
        "python3 -c 'import click, os; click.echo(1); os.system(\"id\")'",
        "python3 -c 'import click; click.echo(open(\".env\").read())'",
        "python3 -c 'import click, requests; click.echo(requests.get(\"http://x.example\"))'",
        "python3 -c 'import click, os; os.remove(click.x)'",
        "node -e 'console.log(fs.readFileSync(\".env\"))'",
        'node -e \'require("fs").writeFileSync("/home/user/.bashrc", "x")\'',
        'php -r \'file_put_contents("../other/notes.txt", "x");\'',
        'node -e \'require("child_process").execSync("id")\'',
        'node -e \'require("fs").unlinkSync("x")\'',
        "ruby -e 'puts File.read(\"/home/user/.ssh/id_rsa\")'",
        "ruby -e '%x(id)'",
        "perl -e 'do{1}; open(F, \"id|\")'",
        "php -r 'echo file_get_contents(\"http://x.example\");'",
    ],
)
def test_code_that_shows_harm_is_asked_about_though_the_rest_is_not_read(code: str) -> None:
    assert judge_line(code, JUDGING).floor is Decision.CONFIRM


@pytest.mark.parametrize("option", ["-z", "--strange"])
def test_an_option_that_is_not_known_is_asked_about_beside_code_that_is_not_read(option: str) -> None:
    assert judge_line(f"perl {option} -e 'print File::x()'", JUDGING).suggestion is Decision.CONFIRM


async def test_a_script_that_is_written_and_run_in_one_call_asks_nobody(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "a.txt").write_text("hi\n")
    environment = {
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "HOME": str(tmp_path / "home"),
        "HANDRAIL_HOME": str(tmp_path / "state"),
    }
    async with (
        open_configured_runtime({}, cwd=work, environment=environment) as runtime,
        runtime.session(confirm=no) as session,
    ):
        result = await session.call("execute_cli", {"command": SCRIPTS[0]})
    assert (result.status, result.get("stdout")) == ("success", "0: hi {'sum': 3}\n"), result
