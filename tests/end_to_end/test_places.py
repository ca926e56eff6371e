"""One table of places: shell commands and file tools may do the same in the same places without approval."""

from __future__ import annotations

import asyncio
import os
import shlex
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import handrail
from handrail import Decision, Delete, EvaluationContext, Opinion, ToolContext, tool
from handrail.api.call import Invocation
from handrail.api.tool import Tool
from handrail.api.verdict import SandboxOffer
from handrail.fs import path_resolution, sensitive_paths, sensitive_paths_data
from handrail.policy import path_rules, place_kinds
from handrail.policy.effect_rules import EffectsEvaluator
from handrail.policy.place_kinds import AccessMode, PlaceKind
from handrail_cli.shell.verdict import judge_line
from handrail_documents.convert_tool import convert_document
from handrail_documents.read_tools import read_excel, read_image, read_pdf
from handrail_documents.write_tool import write_excel
from handrail_files.edit_tool import edit_file
from handrail_files.list_tool import list_directory
from handrail_files.read_many_tool import read_many_files
from handrail_files.read_tool import read_file
from handrail_files.write_tool import write_file

HOME = Path("/home/user")
WORK = HOME / "project"
STATE = HOME / ".local/state/handrail"
HERE = EvaluationContext(
    cwd=WORK,
    home=HOME,
    user="user",
    environment={"PATH": "/usr/bin:/bin", "HOME": str(HOME)},
    workspace=(WORK,),
    platform="linux",
    protected=(STATE, HOME / ".config/handrail/config.toml"),
    keys=(STATE,),
    temporary=Path("/tmp/handrail-box-of-nobody/tmp"),
    readable=(HOME / ".cargo",),
    writable=(Path("/srv/data"),),
    undoable=True,
)
SHELL = replace(HERE, temporary=None, sandbox=SandboxOffer("a sandbox", writable=("/srv/data",), private_tmp=True))

EXAMPLES: dict[PlaceKind | None, list[str]] = {
    PlaceKind.WORKSPACE: ["a.txt", "src/new.py", "./b/../c.md", str(WORK / "d.csv"), "README.md"],
    PlaceKind.TEMPORARY: ["/tmp/handrail-no-such.txt", "/var/tmp/handrail-no-such.txt", "/tmp/handrail-no-such/.envrc"],
    PlaceKind.OPENED: ["/srv/data/x.csv", "/srv/data/deep/er/y"],
    PlaceKind.READABLE: ["~/.cargo/registry/src/lib.rs", "/home/user/.cargo/bin/rg"],
    PlaceKind.PUBLIC: [
        "/usr/share/doc/x/README",
        "/usr/include/stdio.h",
        "/bin/sh",
        "/etc/hosts",
        "/etc/os-release",
        "/proc/cpuinfo",
        "/sys/class/net/lo/address",
    ],
    PlaceKind.SECRET: [
        ".env",
        "id_rsa",
        "~/.ssh/id_rsa",
        "/etc/shadow",
        "/usr/share/x/server.key",
        "~/.cargo/credentials",
    ],
    PlaceKind.KEYS: ["~/.local/state/handrail/console/1.json"],
    PlaceKind.PROTECTED: ["~/.config/handrail/config.toml"],
    PlaceKind.DEVICE: ["/dev/mem", "/dev/sda1", "/run/docker.sock", "/run/user/1000/bus"],
    PlaceKind.KERNEL: ["/proc/sys/kernel/hostname", "/sys/power/state", "/proc/self/environ"],
    PlaceKind.STARTUP: [
        "~/.bashrc",
        "/etc/cron.d/x",
        "~/.config/autostart/x.desktop",
        "/usr/lib/systemd/system/x.service",
    ],
    PlaceKind.AUTORUN: [".git/hooks/pre-commit", ".envrc", "sub/.vscode/tasks.json", ".npmrc", "/srv/data/.envrc"],
    None: ["/srv/other/x", "~/notes.txt", "../sibling/x", "/opt/x/y", "/var/log/syslog", "/etc/ssl/openssl.cnf"],
}
COMMANDS: dict[AccessMode, str] = {"read": "cat {}", "write": "sed -i s/a/b/ {}", "delete": "rm {}"}
# Where the shell and the file tools differ, with the reason; everything else has to agree.
DIFFERENCES: dict[tuple[str, AccessMode], str] = {
    (
        "handrail.toml",
        "read",
    ): "the sandbox hides Handrail's own files from commands; file tools only read what the person wrote there",
    ("/dev/null", "read"): "a stream of the shell, and no file that a tool could show",
    ("/dev/null", "write"): "a stream of the shell, and no file that a tool could write",
}


@tool(effects=[Delete("file", arg="path")])
async def delete_file(path: str, *, context: ToolContext) -> str:
    """Delete a file. No plugin has such a tool; it stands for those of others."""
    return path


def by_tool(access: AccessMode, place: str, judging: EvaluationContext = HERE) -> Opinion:
    found: dict[AccessMode, tuple[Tool, dict[str, object]]] = {
        "read": (read_file, {"file_path": place}),
        "write": (write_file, {"file_path": place, "content": "x"}),
        "delete": (delete_file, {"path": place}),
    }
    return opinion(*found[access], judging)


def opinion(tool: Tool, args: dict[str, object], judging: EvaluationContext = HERE) -> Opinion:
    invocation = Invocation(tool, args, tool.validate(args), "1")
    view = asyncio.run(EffectsEvaluator().opinion(invocation, judging))
    assert view is not None
    return view


def by_shell(access: AccessMode, place: str) -> Opinion:
    named = f"{HOME}{place[1:]}" if place.startswith("~/") else place
    return judge_line(COMMANDS[access].format(shlex.quote(named)), SHELL)


def free(found: Opinion) -> bool:
    return found.suggestion is Decision.ALLOW and found.floor is None and not found.catastrophic


def from_tables() -> Iterator[str]:
    """Every place of every table, each in some of the folders that it may stand in."""
    names = {"/".join(place) for place in sensitive_paths.SECRET_PLACES} | set(sensitive_paths.SECRET_NAMES)
    for table in (
        sensitive_paths_data.PROJECT_AUTORUN,
        sensitive_paths_data.HOME_STARTUP,
        sensitive_paths_data.SYSTEM_STARTUP,
    ):
        names |= {place for line in table.splitlines() if line.startswith(" ") for place in line.strip().split("  ")}
    folders = ("", "~/", "/", "/srv/data/", "~/.cargo/", "/usr/share/")
    for number, name in enumerate(sorted(names)):
        for folder in {"", folders[number % len(folders)]}:
            yield f"{folder}{name}" if number % 3 else f"{folder}{name}/below.txt"


@pytest.mark.parametrize("access", COMMANDS)
@pytest.mark.parametrize("place", [place for places in EXAMPLES.values() for place in places])
def test_the_shell_and_the_file_tools_agree_with_the_table(access: AccessMode, place: str) -> None:
    """If this fails, one of them judges a place by something else than `handrail.policy.place_kinds`."""
    expected = place_kinds.is_access_free(
        place_kinds.classify_place(path_rules.resolve_path(place, HERE, {}), HERE), access
    )
    assert free(by_tool(access, place)) == expected, by_tool(access, place)
    assert free(by_shell(access, place)) == expected, by_shell(access, place)


@pytest.mark.parametrize("kind", EXAMPLES)
def test_the_examples_are_of_the_kind_they_stand_for(kind: PlaceKind | None) -> None:
    for place in EXAMPLES[kind]:
        kinds = place_kinds.classify_place(path_rules.resolve_path(place, HERE, {}), HERE)
        assert kind in kinds if kind is not None else not any(place_kinds.is_access_free({k}, "read") for k in kinds), (
            place
        )


@pytest.mark.parametrize("access", COMMANDS)
def test_they_agree_about_every_place_that_is_known_by_name(access: AccessMode) -> None:
    """If this fails, a place is open to a command and closed to a tool, or the other way round: name the reason in `DIFFERENCES`, or mend it."""
    differing = {
        place: (by_shell(access, place).rule, by_tool(access, place).rule)
        for place in from_tables()
        if free(by_shell(access, place)) != free(by_tool(access, place)) and (place, access) not in DIFFERENCES
    }
    assert differing == {}


@pytest.mark.parametrize(("place", "access"), DIFFERENCES)
def test_each_difference_is_one(place: str, access: AccessMode) -> None:
    """If this fails, they agree by now: take the line out of `DIFFERENCES`."""
    own = replace(HERE, protected=(*HERE.protected, WORK / "handrail.toml"))
    command = judge_line(COMMANDS[access].format(place), replace(SHELL, protected=own.protected))
    assert free(command) != free(by_tool(access, place, own))


@pytest.mark.parametrize("undoable", [True, False])
@pytest.mark.parametrize(
    ("tool", "args", "changes"),
    [
        (read_file, {"file_path": "{}"}, False),
        (read_many_files, {"paths": ["{}"]}, False),
        (list_directory, {"path": "{}"}, False),
        (read_pdf, {"path": "{}"}, False),
        (read_image, {"path": "{}"}, False),
        (read_excel, {"path": "{}"}, False),
        (write_file, {"file_path": "{}", "content": "x"}, True),
        (edit_file, {"file_path": "{}", "old_string": "a", "new_string": "b"}, True),
        (write_excel, {"path": "{}", "data": [[1]]}, True),
        (convert_document, {"input_path": "a.docx", "output_path": "{}", "output_format": "pdf"}, True),
        (delete_file, {"path": "{}"}, True),
    ],
    ids=lambda value: value.name if isinstance(value, Tool) else None,
)
def test_every_tool_changes_the_workspace_where_undo_keeps_it_and_reads_what_is_public(
    tool: Tool, args: dict[str, object], *, changes: bool, undoable: bool
) -> None:
    judging = replace(HERE, undoable=undoable)

    def at(place: str) -> Opinion:
        filled = {
            name: [place] if value == ["{}"] else value.replace("{}", place) if isinstance(value, str) else value
            for name, value in args.items()
        }
        return opinion(tool, filled, judging)

    assert free(at("docs/x.pdf")) == (undoable or not changes)
    assert at("docs/x.pdf").relies_on_undo == (changes and undoable)
    assert free(at("/usr/share/doc/x.pdf")) == (not changes)
    assert free(at("/srv/data/x.pdf"))
    assert free(at("/tmp/handrail-no-such.pdf"))
    for closed in ("~/x.pdf", "~/.ssh/x.pdf", "/dev/mem"):
        assert not free(at(closed))


async def test_a_file_that_a_tool_makes_in_the_private_folder_is_there_for_commands(tmp_path: Path) -> None:
    """If this fails, `write_file` and a command mean two places by one name."""
    name = f"handrail-test-{tmp_path.name}.txt"
    async with handrail.open(cwd=tmp_path) as session:
        offer = await session.runtime.offer(session.court.judging)
        if offer is None or not offer.private_tmp:
            pytest.skip("no sandbox with a private /tmp is usable here")
        made = await session.call("write_file", {"file_path": f"/tmp/{name}", "content": "from a tool\n"})
        assert (made["status"], made["path"]) == ("success", f"/tmp/{name}"), made
        shown = await session.call("execute_cli", {"command": f"cat /tmp/{name} && echo more >> /tmp/{name}"})
        assert shown["stdout"] == "from a tool\n", shown
        read = await session.call("read_file", {"file_path": f"/tmp/{name}"})
        assert "more" in read["stdout"], read
        assert not Path("/tmp", name).exists()


async def test_an_error_names_a_place_in_the_private_folder_as_commands_do(tmp_path: Path) -> None:
    async with handrail.open(cwd=tmp_path) as session:
        await session.call("execute_cli", {"command": "mkfifo /tmp/pipe"})
        if session.temporary is None:
            pytest.skip("no sandbox with a private /tmp is usable here")
        for name in ("missing", "pipe"):
            error = (await session.call("read_file", {"file_path": f"/tmp/{name}"}))["error"]
            assert (str(session.temporary) in str(error), "'/tmp" in error["message"]) == (False, True), error


@pytest.mark.parametrize("at", [".", "conf", "conf/deep"])
async def test_what_a_link_named_like_a_secret_leads_to_is_one(tmp_path: Path, at: str) -> None:
    real = tmp_path / "conf/deep/plain.conf"
    real.parent.mkdir(parents=True)
    real.write_text("xyzzy")
    link = tmp_path / at / "prod.env"
    link.symlink_to(os.path.relpath(real, link.parent))
    async with handrail.open(cwd=tmp_path) as session:
        for path in (link, real):
            assert (await session.call("read_file", {"file_path": str(path)})).status == "denied"
        found = await session.call("find_files", {"search_text": "xyzzy", "ignore": False})
        listed = await session.call("list_directory", {"path": str(link.parent)})
        shown = await session.call("execute_cli", {"command": "cat conf/deep/plain.conf; grep -r xyz ."})
        assert not any("xyzzy" in str({**each, "args": ""}) for each in (listed, shown))
        assert "plain.conf" not in str(found)


async def test_public_files_are_read_when_nobody_can_be_asked(tmp_path: Path) -> None:
    async with handrail.open(cwd=tmp_path, mode="headless") as session:
        for tool, args in (
            ("read_file", {"file_path": "/etc/hosts"}),
            ("list_directory", {"path": "/usr/share"}),
            ("find_files", {"path": "/usr/share/doc", "pattern": "copyright*", "max_results": 3}),
            ("execute_cli", {"command": "cat /etc/hosts"}),
        ):
            result = await session.call(tool, args)
            assert result["status"] == "success", (tool, result)
        assert (await session.call("read_file", {"file_path": "/etc/shadow"}))["status"] == "denied"


def test_names_of_the_table_are_told_apart_in_one_module() -> None:
    assert place_kinds.is_public("/usr/share/doc/x")
    assert not place_kinds.is_public("/etc/shadow")
    assert (
        place_kinds.describe_resolved_secret(path_resolution.resolve_path(".env", cwd=WORK, home=HOME), ())
        == "settings with secrets"
    )
