"""The columns of the rows: which programs inspect the system, pass on their input, obey the project, follow lists or reach out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from tests.plugins.cli.bash_cases import BARE

from handrail import Decision, Offer, View
from handrail_cli.commandline import Word
from handrail_cli.judgement import judge
from handrail_cli.programs import rows, use
from handrail_cli.programs.rows import Block, Row, RowError

JUDGING = replace(BARE, sandbox=Offer(name="bubblewrap", network=False))
# Roles of words that a program changes, runs, sends or connects to.
ACTING = frozenset((
    "write", "append", "create", "dest", "move", "delete", "delete_tree", "change", "change_tree", "execute", "target", "device", "url", "host",
    "send", "folder",
))  # fmt: skip
OPERANDS_OF_INSPECTING = frozenset(("text", "none", "list", "name", "commands"))
OPERANDS_OF_FILTERS = frozenset(("read", "write", "text", "none", "list", "name", "commands", "command", "sets"))
BEYOND = frozenset(("network", "code", "repository", "session", "input", "loads_project", "reads_list"))


def every_row() -> Iterator[Row]:
    seen: set[int] = set()
    for name in rows.index():
        for block in rows.program(name):
            if id(block) not in seen:
                seen.add(id(block))
                yield rows.row(block)


def needs_of(line: str) -> frozenset[str]:
    found = use([Word(text, text, (0, 0)) for text in line.split()])
    assert found is not None, line
    assert found.unknown is None, line
    return found.needs


def view_of(command: str) -> View | None:
    """Return the view that a command gets without approval, None where it needs one."""
    return judge(command, JUDGING).view


def row_of(header: str, *body: str) -> Row:
    return rows.row(Block((frozenset(("x",)),), header, body))


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
        found = use([Word(text, text, (0, 0)) for text in words])
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
    "ps aux | jc --ps | jq .",
]


@pytest.mark.parametrize("command", INSPECTING)
def test_the_system_is_inspected_on_the_host(command: str) -> None:
    assert view_of(command) is View.SYSTEM, judge(command, JUDGING).reasons


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


@pytest.mark.parametrize("command", READING)
def test_what_reads_a_file_that_is_named_is_not_run_on_the_host(command: str) -> None:
    assert view_of(command) is View.READ, judge(command, JUDGING).reasons


ASKED = [
    # changes, kills or connects
    "fuser -k 8080/tcp",
    "fuser -TERM x",
    "lsof -D /x",
    "ss -K dst 1.1.1.1",
    "ss -F x",
    "bridge -b x show",
    "ip -b x",
    "nmcli general hostname x",
    "hostnamectl hostname x",
    "rfkill block all",
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
    assert judge(command, JUDGING).suggestion is not Decision.ALLOW


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
    "svn log",
    "hg incoming",
    "tldr tar",
    "inxi -i",
    "gpg --list-keys",
    "busctl tree x",
]


@pytest.mark.parametrize("command", REACHING)
def test_what_reaches_out_needs_approval(command: str) -> None:
    assert judge(command, JUDGING).suggestion is not Decision.ALLOW


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
    assert judge(command, JUDGING).suggestion is not Decision.ALLOW


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
    found = judge(line.format("/home/user/.netrc"), JUDGING)
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
