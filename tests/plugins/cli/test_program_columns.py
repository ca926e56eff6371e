"""The columns of the rows: which programs inspect the system, pass on their input, obey the project, follow lists or reach out."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings, strategies as st
from tests.plugins.cli.bash_cases import BARE

from handrail import Decision, KeyboardTarget, SandboxOffer, View
from handrail_cli.programs import rows
from handrail_cli.programs.grammars.arg_matching import match_command_line
from handrail_cli.programs.rows import ProgramRow, RowBlock, RowError
from handrail_cli.shell.bash.syntax import ShellWord
from handrail_cli.shell.typed_input import judge_typed_keys
from handrail_cli.shell.verdict import judge_line

JUDGING = replace(BARE, sandbox=SandboxOffer(name="bubblewrap", network=False))
# Roles of words that a program changes, runs, sends or connects to.
ACTING = frozenset((
    "write", "append", "create", "dest", "move", "delete", "delete_tree", "change", "change_tree", "execute", "target", "device", "url", "host",
    "send", "folder",
))  # fmt: skip
OPERANDS_OF_INSPECTING = frozenset(("text", "none", "list", "name", "commands"))
OPERANDS_OF_FILTERS = frozenset(("read", "write", "text", "none", "list", "name", "commands", "command", "sets"))
BEYOND = frozenset(("network", "code", "repository", "session", "input", "loads_project", "reads_list"))


def every_row() -> Iterator[ProgramRow]:
    seen: set[int] = set()
    for name in rows.load_row_index():
        for block in rows.find_program_blocks(name):
            if id(block) not in seen:
                seen.add(id(block))
                yield rows.parse_row(block)


def needs_of(line: str) -> frozenset[str]:
    found = match_command_line([ShellWord(text, text, (0, 0)) for text in line.split()])
    assert found is not None, line
    assert found.unknown is None, line
    return found.needs


def view_of(command: str) -> View | None:
    """Return the view that a command gets without approval, None where it needs one."""
    return judge_line(command, JUDGING).view


def row_of(header: str, *body: str) -> ProgramRow:
    return rows.parse_row(RowBlock((frozenset(("x",)),), header, body))


# The language


def test_a_line_of_needs_adds_to_a_call_that_has_the_option_and_changes_nothing_else() -> None:
    row = row_of("x = reads filters: read? ; prints", "needs network reads_list -r --from=read", "-n:")
    assert row.options["-r"].needs == {"network", "reads_list"}
    assert (row.options["--from"].role, row.options["--from"].makes) == ("read", None)
    assert row.options["-n"].needs == frozenset()


@pytest.mark.parametrize(
    ("header", "line"),
    [
        ("x = reads inspect: none ; prints", "-n"),
        ("x = reads: none ; prints", "needs -r"),
        ("x = reads: none ; prints", "needs nothing -r"),
        ("x = reads: files ; prints", "-r"),
    ],
)
def test_a_column_that_is_not_known_is_an_error(header: str, line: str) -> None:
    with pytest.raises(RowError):
        row_of(header, line)


def test_code_and_repositories_are_of_the_project() -> None:
    assert row_of("x = effect code: none ; builds").needs == {"code", "loads_project"}
    assert row_of("x = reads repository: none ; shows").needs == {"repository", "loads_project"}


@pytest.mark.parametrize("line", ["npm ls", "npm --version", "cargo --version", "git --version", "terraform validate"])
def test_a_program_that_obeys_the_project_does_so_with_any_subcommand(line: str) -> None:
    assert "loads_project" in needs_of(line)


# The whole table


def test_what_inspects_the_system_names_no_file_that_it_acts_on() -> None:
    for row in every_row():
        if "inspects" in row.needs:
            assert {operand.role for operand in row.operands} <= OPERANDS_OF_INSPECTING, row.names
            acting = [option.name for option in row.options.values() if option.role in ACTING and option.makes is None]
            assert not acting, (row.names, acting)


def test_what_inspects_the_system_or_passes_on_its_input_does_nothing_beyond_that() -> None:
    for row in every_row():
        if row.needs & {"inspects", "filters"}:
            assert not row.needs & BEYOND, row.names
        if "inspects" in row.needs:
            assert row.kind == "reads", row.names


def test_what_passes_on_its_input_opens_only_what_is_named() -> None:
    for row in every_row():
        if "filters" in row.needs:
            roles = {operand.role for operand in row.operands}
            assert all(role in OPERANDS_OF_FILTERS or role.startswith("code/") for role in roles), row.names


def test_what_reaches_out_never_only_reads() -> None:
    for row in every_row():
        if "network" not in row.needs or row.by is not None:
            continue
        words = [min(names) for names in row.names]
        found = match_command_line([ShellWord(text, text, (0, 0)) for text in words])
        assert found is not None
        assert (found.kind, "network" in found.needs) != ("reads", True), words


def test_nothing_that_follows_lists_or_obeys_the_project_counts_as_contained() -> None:
    for line in ("sort --files0-from=x", "md5sum -c x", "grep -R x .", "lsof +D /tmp", "du -L /", "file -f x"):
        assert needs_of(line) & {"inspects", "filters", "reads_list"} == {"reads_list"}, line


# What each column is there for

INSPECTING = [
    "ps aux",
    "ps aux | grep -v x | sort -k3 -rn | head -5",
    "sleep 1; ps -ef",
    "df -h",
    "df -h /",
    "free -m; uptime",
    "lsof -i :8080 -P -n",
    "lsof -ti:3000",
    "lsof /var/log/syslog",
    "lsof -np 3",
    "lsof -U",
    "netstat -tulpn",
    "netstat --numeric --tcp",
    "netstat -i",
    "arp -an",
    "route -n",
    "hostname -I",
    "fuser 8080/tcp",
    "fuser -n tcp 8080",
    "systemctl",
    "systemctl --user status x",
    "journalctl -u ssh -n 20 --no-pager",
    "docker ps -a --format '{{.Names}}'",
    "docker inspect -f '{{.State.Status}}' web",
    "docker logs -f --tail 20 web",
    "dpkg -l | grep ssl",
    "apt list --installed",
    "id root",
    "crontab -l",
    "tmux ls",
    "getent passwd root",
    "timeout 5 ss -tlnp",
    "ss -tn state established '( dport = :443 or sport = :ssh )' dst 10.0.0.0/8",
    "ss -tn src '[::1]:*' dst 127.0.0.1:8080",
    "lsof -i tcp@127.0.0.1:8080",
    "lsof -i4 -nP",
    "ip -br addr",
    "bridge link show",
    "tc qdisc show dev eth0",
    "ethtool -i eth0",
    "findmnt -T /tmp",
    "lsblk -o NAME,SIZE /dev/sda",
    "top -b -n 1",
    "nvidia-smi --query-gpu=name --format=csv",
    "nmcli device status",
    "loginctl",
    "sysctl net.ipv4.ip_forward",
    "mount | column -t",
    "ps aux | awk '{print $2}'",
    "ps aux | awk -F: -v n=3 'NR > 1 && $3 > 1.5 {s += $3 / 2} END {printf \"%.1f\\n\", s}'",
    "df -h | awk '$5+0 > 80 {print $6\": \"$5}'",
    "ps aux | sed -n '2,5p;$p' | sed -E -e 's|/usr/(s?bin)/|\\1:|g' -e '/^[[:space:]]*$/d'",
    'lsblk -J | jq -r \'.blockdevices[] | select(.type == "disk") | "\\(.name) \\(.size)"\'',
    "ps aux | sort -nrk3 | head -n 5 | tr -s ' ' | cut -d' ' -f2",
    "LC_ALL=C COLUMNS=200 ps aux",
    "env TZ=UTC timeout 5 uptime",
]


@pytest.mark.parametrize("command", INSPECTING)
def test_the_system_is_inspected_on_the_host(command: str) -> None:
    assert view_of(command) is View.SYSTEM, judge_line(command, JUDGING).reasons


READING = [
    "df -h .",
    "lsof a.txt",
    "lsof +D /tmp",
    "fuser -v .",
    "journalctl --file=x",
    "journalctl -D x",
    "dmesg -F x",
    "pgrep -F x",
    "last -f x",
    "who x",
    "lspci -F x",
    "lsusb -D x",
    "findmnt -F x",
    "lscpu --sysroot=x",
    "modinfo ./x.ko",
    "apt show ./x.deb",
    "dpkg -I x.deb",
    "ps aux; cat a.txt",
    "ps aux < a.txt",
    "ps aux | grep -f a.txt",
    "ps aux | python3 -c 'print(1)'",
    "top -n 1",
]

# What no words, settings or variables can make do more is a short list; all else is for the sandbox, also where it looks harmless.
FILTERING = [
    "uptime | sed 'i\\\\\\\nx'",
    "uptime | sed 's/a/b/\np'",
    "uptime | sed '/x/{p;q}'",
    "uptime | sed 's/[/]/x/'",
    "uptime | awk '{print $1,\n$2 > \"x\"}'",
    "uptime | awk '{print $1 # x\n}'",
    "uptime | awk '{f($1)}'",
    "uptime | awk -v 'x=\\n' '{print x}'",
    "uptime | jq 'input_filename'",
    "uptime | jc --uptime",
    "uptime | perl -ne 'print'",
    "uptime | python3 -c 'print(1)'",
    "uptime | zgrep x",
    "uptime | xzdiff - -",
    "uptime | file -",
    "uptime | bc",
    "uptime | yq .",
    "uptime | xargs -n1 echo",
    "watch uptime",
    "watch -x ps",
    "sh -c uptime",
    "bash -c 'uptime | wc'",
    # Variables that some program may obey.
    "TC_LIB_DIR=x tc qdisc show",
    "PS_FORMAT=pid ps",
    "env PS_FORMAT=pid ps",
    "env -S 'PS_FORMAT=pid ps'",
    "timeout 5 env X=1 nice ps",
    # A higher priority on the host can starve the desktop.
    "nice -n -20 ps",
    "ps | chrt -f 99 cat",
    "ionice -c 1 ps",
    "export BLKID_FILE=x; blkid",
    "BLKID_FILE=x; blkid",
    "ps | GREP_COLOR=1 UNKNOWN=1 grep x",
]


@pytest.mark.parametrize("command", FILTERING)
def test_what_is_not_known_to_filter_only_is_not_run_on_the_host(command: str) -> None:
    assert view_of(command) in (View.READ, View.WORK, None), judge_line(command, JUDGING).reasons


@pytest.mark.parametrize("command", ["watch uptime", "PS_FORMAT=pid ps", "uptime | perl -ne 'print'"])
def test_what_inspects_the_sandbox_asks_nobody_and_says_so(command: str) -> None:
    opinion = judge_line(command, JUDGING)
    assert opinion.suggestion is Decision.ALLOW
    assert [reason.code for reason in opinion.reasons] == ["inspects_inside"]


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("ps; cat notes.txt", "ps sees the sandbox and not the system; run it by itself to see the system"),
        (
            "df; ps; cat notes.txt",
            "df, ps see the sandbox and not the system; run them by themselves to see the system",
        ),
    ],
)
def test_the_note_on_inspectors_agrees_with_their_number(command: str, told: str) -> None:
    assert [reason.text for reason in judge_line(command, JUDGING).reasons] == [told]


@pytest.mark.parametrize(
    ("command", "written"),
    [
        ("wget -qO- https://example.com", []),
        ("wget --output-document=- https://example.com", []),
        ("curl -so - https://example.com", []),
        ("wget -qO page https://example.com", ["/home/user/project/page"]),
    ],
)
def test_a_dash_for_what_is_fetched_is_no_file(command: str, written: list[str]) -> None:
    touches = [touch for part in judge_line(command, JUDGING).parts for touch in part.touches]
    assert [touch.what for touch in touches if touch.kind == "write"] == written


@pytest.mark.parametrize(
    "command", ["TC_LIB_DIR=x tc qdisc show", "export TC_LIB_DIR=x; tc qdisc show", "watch uptime"]
)
def test_what_may_be_led_is_not_harmless_beside_what_a_rule_allows(command: str) -> None:
    """If this fails, a rule for one command of a line runs the others on the host."""
    assert not all(part.harmless for part in judge_line(command, JUDGING).parts)


def test_no_filter_is_a_script() -> None:
    """If this fails, take `filters` from its row: scripts run programs that variables name. Debian's `egrep` and `fgrep` run only grep."""
    filters = {
        name
        for name in rows.load_row_index()
        for block in rows.find_program_blocks(name)
        if "filters" in rows.parse_row(block).needs
    }
    places = {name: shutil.which(name) for name in filters - {"egrep", "fgrep"}}
    scripts = [name for name, place in places.items() if place and Path(place).read_bytes()[:2] == b"#!"]
    assert scripts == []


@pytest.mark.skipif(not Path("/bin/sed").exists(), reason="there is no sed")
@given(st.text("sewrpdqgi;/|,!#= \t[]^$&.*\\12~+-x@%_\n", max_size=12), st.sampled_from(["", "s/", "s|", "/", "$!"]))
@settings(max_examples=200, deadline=None)
def test_sed_runs_and_opens_nothing_by_a_script_that_is_taken_for_simple(script: str, start: str) -> None:
    if view_of(f"uptime | sed -e {shlex.quote(start + script)}") is View.SYSTEM:
        found = subprocess.run(
            ["/bin/sed", "--sandbox", "-e", start + script], input=b"", capture_output=True, check=False
        )
        assert b"sandbox mode" not in found.stderr


@pytest.mark.parametrize(
    ("line", "allowed"),
    [
        ("uptime", True),
        ("cd sub", True),
        ("export TZ=UTC", True),
        ("export NO_COLOR=1", True),
        ("export NO_COLOR='a[0]'", False),
        ("export TC_LIB_DIR=x", False),
        ("X=1 tc qdisc show", False),
    ],
)
def test_a_terminal_is_given_no_variable_that_its_later_commands_may_obey(line: str, *, allowed: bool) -> None:
    opinion = judge_typed_keys(
        KeyboardTarget("x", "bash", shell=True, cwd=Path("/home/user/project"), lines=(line,)), BARE
    )
    assert opinion is not None
    assert (opinion.suggestion is Decision.ALLOW) is allowed


@pytest.mark.parametrize("command", ["apt-config dump", "apt-config dump | grep -i proxy", "apt-config shell P x"])
def test_settings_of_apt_are_not_read_on_the_host(command: str) -> None:
    """If this fails, the password of a proxy that they name is shown unasked."""
    assert view_of(command) is View.READ


@pytest.mark.parametrize("command", READING)
def test_what_reads_a_file_that_is_named_is_not_run_on_the_host(command: str) -> None:
    assert view_of(command) is View.READ, judge_line(command, JUDGING).reasons


ASKED = [
    # changes, kills or connects
    "fuser -k 8080/tcp",
    "fuser -TERM x",
    "lsof -D /x",
    "ss -K dst 1.1.1.1",
    "ss -F x",
    "bridge -b x show",
    "ip -b x",
    # has a name looked up, which goes to a server that answers for it
    "lsof -i @words.example",
    "lsof -ni tcp@words.example:80",
    "lsof -i @deadbeef:80",
    "ss -an dst deadbeef:80",
    "ss -a dst words.example",
    "ss 'dst words'",
    "ss '( src = words.example )'",
    "fuser 80,words.example,99/tcp",
    "fuser -n tcp 80,words.example,99",
    "ip -r route get 127.1.2.3",
    "nmcli general hostname x",
    "hostnamectl hostname x",
    "rfkill block all",
    # commits that nothing else may hold
    "git branch -d -r origin/x",
    "git branch -dr origin/x",
    "git branch --delete --remotes origin/x",
    "git remote remove origin",
    "git remote rm origin",
    "pidstat -e ls",
    "docker -H tcp://x ps",
    # reads what is no setting, library or service, whatever it is called
    "sysctl -n /../../home/user/.netrc",
    "sysctl kernel/../../../home/user/x",
    "getent -s x passwd",
    "service ../../x status",
    "iostat +f /home/x",
    # shows variables
    "docker inspect web",
    "docker inspect -f '{{json .}}' web",
    "docker inspect -f '{{.Config}}' web",
    "helm env",
]


@pytest.mark.parametrize("command", ASKED)
def test_what_does_more_than_inspect_needs_approval(command: str) -> None:
    assert judge_line(command, JUDGING).suggestion is not Decision.ALLOW


REACHING = [
    "npm view x",
    "npm search x",
    "npm outdated",
    "npm docs x",
    "pnpm view x",
    "yarn info x",
    "pip index versions x",
    "pip list --outdated",
    "cargo search x",
    "go list -m all",
    "go list -u ./...",
    "gem list -r",
    "gem search x",
    "bundle outdated",
    "composer show -l",
    "poetry show --latest",
    "brew info x",
    "conda search x",
    "snap find x",
    "flatpak search x",
    "dnf search x",
    "apt changelog x",
    "docker search x",
    "docker compose ps",
    "docker compose config",
    "docker compose up -d",
    "docker exec web ls",
    "kubectl get pods",
    "kubectl get -f secret.yaml -o yaml",
    "kubectl kustomize https://x.example/y",
    "kubectl config view",
    "helm list",
    "skopeo inspect docker://x",
    "gh pr view 3",
    "gh status",
    "aws s3 ls",
    "terraform show",
    "terraform providers",
    "psql -h x -c 'select 1' db",
    "mysql -h x -e 'show tables' db",
    "redis-cli -h x get y",
    "pg_isready -h x",
    "getent hosts x.example",
    "getent ahosts x.example",
    "resolvectl query x.example",
    "ss -r",
    "who --lookup",
    "pinky --lookup",
    "netstat -t",
    "netstat --route",
    "lsof",
    "lsof -i",
    "lsof -i4",
    "lsof -p 3",
    "lsof a.txt -p 3",
    "arp -a",
    "route",
    "hostname -f",
    "hostname --ip-address",
    "dnsdomainname",
    "hostid",
    "svn log",
    "hg incoming",
    "tldr tar",
    "inxi -i",
    "gpg --list-keys",
    "busctl tree x",
]


@pytest.mark.parametrize("command", REACHING)
def test_what_reaches_out_needs_approval(command: str) -> None:
    assert judge_line(command, JUDGING).suggestion is not Decision.ALLOW


RUNNING = [
    "mlr --icsv put '$y = system(\"id\")' a.csv",
    "mlr --icsv filter 'exec(\"id\")' a.csv",
    "mlr --icsv put 'tee > \"x\", $*' a.csv",
    "mlr --icsv split -n 2 a.csv",
    "mlr --prepipe 'sh -c id' cat a.csv",
    "mlr -s x cat a.csv",
    "calc 'system(\"id\")'",
    "qalc 'command(\"id\")'",
    "echo '!id' | dc",
    "qsv luau map x y a.csv",
    "qsv foreach x id a.csv",
    "cloc --vcs=git .",
    "cloc --config=x .",
    "yq -s .a f.yaml",
    'fx \'require("child_process").execSync("id")\'',
    "sed -l p '1e id' f",
    "mawk -W exec ./prog",
    "xmllint --noent a.xml",
    "xmllint --c14n a.xml",
    "in2csv --write-sheets - x.xlsx",
    "perldoc -n ./x y",
    "strings @list",
    "strings --target @list program",
    "nm @list",
    "scc @flags",
    "7z x a.7z -x@list",
    "zless '+!id' x",
    "fping -f x",
]


@pytest.mark.parametrize("command", RUNNING)
def test_an_operand_or_option_that_runs_code_or_names_lists_needs_approval(command: str) -> None:
    assert judge_line(command, JUDGING).suggestion is not Decision.ALLOW


@pytest.mark.parametrize(
    "command",
    [
        "scc -o out .",
        "xsv split out x.csv",
        "xsv stats x.csv -o y.csv",
        "zipnote -w a.zip",
        "zipcloak a.zip",
        "git mailinfo a b",
        "jaq -i .a f",
        "mlr -I --csv sort -f a a.csv",
        "nstat",
        "edid-decode a b",
        "docx2txt a.docx",
        "poetry version 1.2",
    ],
)
def test_what_writes_by_an_operand_or_option_gets_a_workspace_that_it_can_write(command: str) -> None:
    assert view_of(command) is View.WORK


@pytest.mark.parametrize(
    "line",
    [
        "mlr --icsv cat {}",
        "mlr --icsv join -j id -f {} a.csv",
        "csvcut -c 1 {}",
        "csvlook {}",
        "csvsort -r {}",
        "in2csv -f csv {}",
        "xsv select a {}",
        "qsv count {}",
        "yq {}",
        "more -p {}",
        "mediainfo -f {}",
        "ffprobe -i {}",
        "catdoc -w {}",
        "mimetype {}",
        "lolcat {}",
        "fortune {}",
        "units -f {}",
        "zipinfo {}",
        "pip hash {}",
        "pkg-config --cflags {}",
        "tree --fromfile {}",
        "who {}",
        "ssh-keygen -F x -f {}",
        "wc --files0-from={}",
        "go version {}",
        "apt show {}",
        "tokei {}",
        "conda compare {}",
    ],
)
def test_a_word_that_names_a_file_is_judged_as_one(line: str) -> None:
    found = judge_line(line.format("/home/user/.netrc"), JUDGING)
    assert "secret" in [reason.code for reason in found.reasons], found


PROJECT = [
    "python3 -c 'print(1)'",
    "python3 -m json.tool a",
    "node -p 1",
    "ruby -e 'puts 1'",
    "git status",
    "bundle list",
    "brew list",
    "uv pip list",
    "qsv count a.csv",
    "ack x",
    "rustup show",
    "pyenv versions",
]


@pytest.mark.parametrize("command", PROJECT)
def test_what_obeys_files_of_the_project_is_confined(command: str) -> None:
    assert view_of(command) in (View.READ, View.WORK)
    assert view_of(f"ps aux | {command}") in (View.READ, View.WORK)


def test_isolated_code_of_python_loads_nothing_of_the_project() -> None:
    assert "loads_project" in needs_of("python3 -c 1")
    assert "loads_project" not in needs_of("python3 -I -c 1")


LISTS = [
    "xargs -a x ls",
    "find -files0-from x",
    "find -L .",
    "find . -follow",
    "tar -cf - .",
    "tar -tf a.tar -T x",
    "rg x",
    "cloc .",
    "7z l a.zip @x",
]


@pytest.mark.parametrize("line", LISTS)
def test_lists_and_folders_that_are_gone_through_are_noted(line: str) -> None:
    assert "reads_list" in needs_of(line)
