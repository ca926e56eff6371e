"""What declared effects and their parameters make of a call."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import create_model

from handrail.api.call import Invocation
from handrail.api.tool import Delete, Effect, Input, Read, Run, Send, Tool, Write
from handrail.api.verdict import Access, Decision, EvaluationContext, Mode, Opinion, SubCommand
from handrail.policy.effect_rules import EffectsEvaluator


@pytest.fixture
def judging(tmp_path: Path) -> EvaluationContext:
    work = tmp_path / "work"
    work.mkdir()
    policy = tmp_path / "config/config.toml"
    return EvaluationContext(
        cwd=work, home=tmp_path, user="user", environment={}, workspace=(work,), platform="linux", protected=(policy,)
    )


async def nothing(params: Any, context: Any) -> None:
    """A handler that is never run here."""


def opinion(
    judging: EvaluationContext, *effects: Effect, evaluator: EffectsEvaluator | None = None, **args: Any
) -> Opinion | None:
    fields: Mapping[str, Any] = {
        name: (type(value) if value is not None else str | None, value) for name, value in args.items()
    }
    model = create_model("Params", **fields)
    tool = Tool(name="probe", description="Probe.", handler=nothing, params=model, effects=effects)
    invocation = Invocation(tool, args, tool.validate(args), "1")
    return asyncio.run((evaluator or EffectsEvaluator()).opinion(invocation, judging))


def decided(judging: EvaluationContext, *effects: Effect, **args: Any) -> tuple[Decision | None, Decision | None]:
    view = opinion(judging, *effects, **args)
    assert view is not None
    return view.suggestion, view.floor


def test_a_tool_without_effects_is_allowed(judging: EvaluationContext) -> None:
    assert decided(judging) == (Decision.ALLOW, None)


@pytest.mark.parametrize("what", ["screen", "windows", "processes", "tree"])
def test_looking_is_allowed(judging: EvaluationContext, what: str) -> None:
    assert decided(judging, Read(what)) == (Decision.ALLOW, None)


@pytest.mark.parametrize(
    "effect",
    [Read("mind"), Write("settings"), Send("network"), Run("skill"), Input("door"), Read("file"), Effect("file")],
)
def test_whatever_is_not_known_to_be_harmless_is_asked_about(judging: EvaluationContext, effect: Effect) -> None:
    assert decided(judging, effect) == (Decision.CONFIRM, None)


@pytest.mark.parametrize("effect", [Input("desktop"), Write("windows"), Write("clipboard")])
def test_hands_are_free_on_a_private_desktop_and_asked_for_once_a_session_on_a_persons_own(
    judging: EvaluationContext, effect: Effect
) -> None:
    assert decided(replace(judging, private_desktop=True), effect) == (Decision.ALLOW, None)
    view = opinion(judging, effect)
    assert view is not None
    assert (view.suggestion, view.floor, view.remember) == (Decision.CONFIRM, None, "desktop_input")


def test_a_remembered_yes_to_input_does_not_cover_the_network(judging: EvaluationContext) -> None:
    view = opinion(judging, Input("desktop"), Send("network"))
    assert view is not None
    assert (view.suggestion, view.remember) == (Decision.CONFIRM, None)


def test_shell_commands_are_left_to_whoever_can_read_them(judging: EvaluationContext) -> None:
    assert opinion(judging, Run("shell", arg="command"), command="ls") is None


def test_what_another_judge_decides_is_not_allowed_by_a_harmless_part(judging: EvaluationContext) -> None:
    assert opinion(judging, Run("shell", arg="command"), Read("screen"), command="rm x") is None


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.txt", (Decision.ALLOW, None)),
        (None, (Decision.ALLOW, None)),
        ("../a.txt", (Decision.CONFIRM, None)),
        ("/srv/a.txt", (Decision.CONFIRM, None)),
        ("/etc/hosts", (Decision.ALLOW, None)),
        ("/usr/share/doc/x/README", (Decision.ALLOW, None)),
        ("/proc/cpuinfo", (Decision.ALLOW, None)),
        ("/etc/shadow", (Decision.DENY, Decision.DENY)),
        ("/usr/share/x/id_rsa", (Decision.DENY, Decision.DENY)),
        (".env", (Decision.DENY, Decision.DENY)),
        ("~/.ssh/id_rsa", (Decision.DENY, Decision.DENY)),
        ("/dev/mem", (Decision.DENY, Decision.DENY)),
        ("$HOME/x", (Decision.CONFIRM, Decision.CONFIRM)),
        ("\u202ex", (Decision.DENY, Decision.DENY)),
    ],
)
def test_reading_a_file(
    judging: EvaluationContext, path: str | None, expected: tuple[Decision, Decision | None]
) -> None:
    assert decided(judging, Read("file", arg="path"), path=path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.txt", (Decision.CONFIRM, None)),
        ("new/a.txt", (Decision.CONFIRM, None)),
        ("../a.txt", (Decision.CONFIRM, Decision.CONFIRM)),
        (".git/hooks/pre-commit", (Decision.CONFIRM, Decision.CONFIRM)),
        (".env", (Decision.CONFIRM, Decision.CONFIRM)),
        ("~/.bashrc", (Decision.DENY, Decision.DENY)),
        ("~/.ssh/authorized_keys", (Decision.DENY, Decision.DENY)),
        ("/etc/cron.d/x", (Decision.DENY, Decision.DENY)),
        ("/sys/power/state", (Decision.DENY, Decision.DENY)),
        ("../config/config.toml", (Decision.DENY, Decision.DENY)),
        ("../config", (Decision.DENY, Decision.DENY)),
    ],
)
def test_writing_a_file(judging: EvaluationContext, path: str, expected: tuple[Decision, Decision | None]) -> None:
    assert decided(judging, Write("file", arg="path"), path=path) == expected


def test_accept_edits_allows_plain_writing_in_the_workspace_and_nothing_else(judging: EvaluationContext) -> None:
    eager = replace(judging, mode=Mode.ACCEPT_EDITS)
    assert decided(eager, Write("file", arg="path"), path="a.txt") == (Decision.ALLOW, None)
    assert decided(eager, Write("file", arg="path"), path=".envrc") == (Decision.CONFIRM, Decision.CONFIRM)
    assert decided(eager, Write("file", arg="path"), path="../a.txt") == (Decision.CONFIRM, Decision.CONFIRM)


KEPT = pytest.mark.parametrize("undoable", [True, False])


@KEPT
@pytest.mark.parametrize("effect", [Write("file", arg="path"), Write("folder", arg="path"), Delete("file", arg="path")])
def test_a_change_in_the_workspace_is_allowed_where_undo_keeps_what_was_there(
    judging: EvaluationContext, effect: Effect, *, undoable: bool
) -> None:
    view = opinion(replace(judging, undoable=undoable), effect, path="src/a.txt")
    assert view is not None
    assert (view.suggestion, view.floor) == (Decision.ALLOW if undoable else Decision.CONFIRM, None)
    assert view.relies_on_undo == undoable


@KEPT
@pytest.mark.parametrize(
    "path", ["../a.txt", ".git/hooks/pre-commit", ".env", "~/.bashrc", "/etc/cron.d/x", "../config/config.toml", "$X/a"]
)
@pytest.mark.parametrize("effect", [Write("file", arg="path"), Delete("file", arg="path")])
def test_undo_opens_no_place_that_is_closed(
    judging: EvaluationContext, effect: Effect, path: str, *, undoable: bool
) -> None:
    view = opinion(replace(judging, undoable=undoable), effect, path=path)
    assert view is not None
    assert view.floor in (Decision.CONFIRM, Decision.DENY)
    assert not view.relies_on_undo


def test_undo_does_not_let_the_whole_workspace_be_deleted(judging: EvaluationContext) -> None:
    assert decided(replace(judging, undoable=True), Delete("folder", arg="path"), path=".") == (
        Decision.CONFIRM,
        Decision.CONFIRM,
    )


@pytest.mark.parametrize("mode", [Mode.DEFAULT, Mode.ACCEPT_EDITS])
def test_accept_edits_does_not_rely_on_undo(judging: EvaluationContext, mode: Mode) -> None:
    view = opinion(replace(judging, undoable=True, mode=mode), Write("file", arg="path"), path="a.txt")
    assert view is not None
    assert view.relies_on_undo == (mode is Mode.DEFAULT)


@KEPT
@pytest.mark.parametrize("other", [Send("network"), Input("desktop"), Run("code"), Write("settings")])
def test_undo_allows_no_writing_that_does_something_else_as_well(
    judging: EvaluationContext, other: Effect, *, undoable: bool
) -> None:
    kept = replace(judging, undoable=undoable)
    assert decided(kept, Write("file", arg="path"), other, path="a.txt") == (Decision.CONFIRM, None)


@pytest.mark.parametrize("effect", [Read, Write, Delete])
def test_what_a_person_has_opened_to_commands_is_open_to_file_tools(
    judging: EvaluationContext, tmp_path: Path, effect: type[Effect]
) -> None:
    cache = tmp_path / "cache"
    opened = replace(judging, writable=(cache,), readable=(tmp_path / "tools",))
    allowed = Decision.ALLOW, None
    assert decided(opened, effect("file", arg="path"), path=str(cache / "a.bin")) == allowed
    assert decided(opened, effect("file", arg="path"), path=str(cache / ".env")) != allowed
    assert (decided(opened, effect("file", arg="path"), path=str(tmp_path / "tools/x.py")) == allowed) == (
        effect is Read
    )
    if effect is not Read:
        assert decided(opened, effect("file", arg="path"), path=str(cache / ".envrc")) == (Decision.CONFIRM,) * 2
        assert decided(opened, Delete("folder", arg="path"), path=str(cache)) == (Decision.CONFIRM,) * 2


@pytest.mark.parametrize("effect", [Read, Write, Delete])
def test_the_private_temporary_folder_is_free(judging: EvaluationContext, tmp_path: Path, effect: type[Effect]) -> None:
    private = tmp_path / "box/tmp"
    private.mkdir(parents=True)
    mine = replace(judging, temporary=private)
    view = opinion(mine, effect("file", arg="path"), path="/tmp/handrail-nobody-has-this.txt")
    assert view is not None
    assert (view.suggestion, view.floor) == (Decision.ALLOW, None)
    assert [touch.what for touch in view.parts[0].touches] == [str(private / "handrail-nobody-has-this.txt")]
    assert decided(mine, Delete("folder", arg="path"), path=str(private)) == (Decision.CONFIRM,) * 2


def test_what_only_the_shared_temporary_folder_has_is_somebody_elses(
    judging: EvaluationContext, tmp_path: Path
) -> None:
    mine = replace(judging, temporary=tmp_path / "box/tmp", workspace=(tmp_path / "work",))
    (tmp_path / "there.txt").touch()
    assert str(tmp_path).startswith("/tmp/"), "the tests' folders are expected in /tmp"
    assert decided(mine, Write("file", arg="path"), path=str(tmp_path / "there.txt")) == (Decision.CONFIRM,) * 2
    assert decided(mine, Read("file", arg="path"), path=str(tmp_path / "there.txt")) == (Decision.CONFIRM, None)


@pytest.mark.parametrize("other", [Send("network"), Input("desktop"), Run("code"), Write("settings")])
def test_accept_edits_allows_no_writing_that_does_something_else_as_well(
    judging: EvaluationContext, other: Effect
) -> None:
    eager = replace(judging, mode=Mode.ACCEPT_EDITS)
    assert decided(eager, Write("file", arg="path"), other, path="a.txt") == (Decision.CONFIRM, None)


def test_a_link_out_of_the_workspace_is_not_written_through(judging: EvaluationContext) -> None:
    (judging.cwd / "link").symlink_to("..")
    assert decided(judging, Write("file", arg="path"), path="link/new/x") == (Decision.DENY, Decision.DENY)
    assert decided(judging, Read("file", arg="path"), path="link/x") == (Decision.CONFIRM, None)


def test_of_several_paths_the_worst_decides(judging: EvaluationContext) -> None:
    view = opinion(judging, Read("file", arg="paths"), paths=["a", "~/.ssh/id_rsa", "/etc/hosts"])
    assert view is not None
    assert (view.floor, view.rule) == (Decision.DENY, "effects:secret")


def test_reading_one_file_and_writing_another_is_judged_by_both(judging: EvaluationContext) -> None:
    effects = (Read("file", arg="source"), Write("file", arg="target"))
    assert decided(judging, *effects, source="a", target="~/.bashrc") == (Decision.DENY, Decision.DENY)
    assert decided(judging, *effects, source="~/.ssh/id_rsa", target="a") == (Decision.DENY, Decision.DENY)


def test_a_call_is_one_part_with_all_that_it_touches(judging: EvaluationContext) -> None:
    (judging.cwd / "link.txt").symlink_to(judging.cwd / "real.txt")
    view = opinion(
        judging, Read("file", "source"), Send("network", "url"), source="link.txt", url="https://A.example:8443/x"
    )
    assert view is not None
    assert view.parts == (
        SubCommand(touches=(Access("read", str(judging.cwd / "real.txt")), Access("network", "a.example:8443"))),
    )


@pytest.mark.parametrize(("effect", "touch"), [(Write("file"), Access("write")), (Send("network"), Access("network"))])
def test_what_is_not_known_is_touched_without_a_name(judging: EvaluationContext, effect: Effect, touch: Access) -> None:
    view = opinion(judging, effect)
    assert view is not None
    assert view.parts == (SubCommand(touches=(touch,)),)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("**/*.py", (Decision.ALLOW, None)),
        ("src/*.py", (Decision.ALLOW, None)),
        ("a.py", (Decision.ALLOW, None)),
        ("/**/*.py", (Decision.CONFIRM, None)),
        ("../**", (Decision.CONFIRM, None)),
        ("src/../../*", (Decision.CONFIRM, None)),
        ("**/../../x", (Decision.CONFIRM, None)),
        ("{/etc,src}/*", (Decision.CONFIRM, None)),
        ("{src,../..}/*", (Decision.CONFIRM, None)),
        ("~/.ssh/*", (Decision.DENY, Decision.DENY)),
        ("/etc/shadow*", (Decision.CONFIRM, None)),
    ],
)
def test_a_pattern_is_judged_by_where_it_begins(
    judging: EvaluationContext, pattern: str, expected: tuple[Decision, Decision | None]
) -> None:
    assert decided(judging, Read("glob", arg="pattern"), pattern=pattern) == expected


def test_the_folder_that_a_command_works_in_is_no_reason_to_ask_but_may_be_one_to_refuse(
    judging: EvaluationContext,
) -> None:
    assert opinion(judging, Read("cwd", arg="cwd"), Run("shell", arg="command"), cwd="/srv", command="ls") is None
    effects = (Read("cwd", arg="cwd"), Run("shell", arg="command"))
    assert decided(judging, *effects, cwd="~/.ssh", command="ls") == (Decision.DENY, Decision.DENY)
    assert decided(judging, *effects, cwd="$HOME", command="ls") == (Decision.CONFIRM, Decision.CONFIRM)


def test_the_session_s_own_folder_is_judged_anew_once_it_is_another(judging: EvaluationContext) -> None:
    evaluator = EffectsEvaluator()
    effects = (Read("cwd", arg="cwd"), Run("shell", arg="command"))
    for _ in range(2):
        assert opinion(judging, *effects, evaluator=evaluator, cwd=None, command="ls") is None
    judging.cwd.rename(judging.home / ".ssh")
    judging.cwd.symlink_to(judging.home / ".ssh")
    view = opinion(judging, *effects, evaluator=evaluator, cwd=None, command="ls")
    assert view is not None
    assert view.floor is Decision.DENY


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.txt", (Decision.CONFIRM, None)),
        (".", (Decision.CONFIRM, Decision.CONFIRM)),
        ("..", (Decision.DENY, Decision.DENY)),
        (".git", (Decision.CONFIRM, Decision.CONFIRM)),
        ("/srv/a", (Decision.CONFIRM, Decision.CONFIRM)),
        ("~/.ssh", (Decision.DENY, Decision.DENY)),
    ],
)
def test_deleting_is_asked_about_in_every_mode_that_asks(
    judging: EvaluationContext, path: str, expected: tuple[Decision, Decision | None]
) -> None:
    for mode in (Mode.DEFAULT, Mode.ACCEPT_EDITS):
        assert decided(replace(judging, mode=mode), Delete("file", arg="path"), path=path) == expected


def test_a_link_is_deleted_itself_and_not_what_it_leads_to(judging: EvaluationContext) -> None:
    (judging.cwd / "link").symlink_to("/etc")
    view = opinion(judging, Delete("file", arg="path"), path="link")
    assert view is not None
    assert (view.floor, view.parts[0].touches) == (None, (Access("delete", str(judging.cwd / "link")),))
    assert decided(judging, Delete("file", arg="path"), path="link/hosts") == (Decision.DENY, Decision.DENY)


@pytest.mark.parametrize(
    ("what", "url", "expected"),
    [
        ("fetch", "https://example.org/", (Decision.ALLOW, None)),
        ("network", "https://example.org/", (Decision.CONFIRM, None)),
        ("fetch", "https://example.org:8443/", (Decision.CONFIRM, None)),
        ("fetch", "https://\u0430pple.com/", (Decision.CONFIRM, Decision.CONFIRM)),
        ("fetch", "http://localhost:3000/", (Decision.DENY, Decision.DENY)),
        ("network", "file:///etc/passwd", (Decision.DENY, Decision.DENY)),
        ("fetch", None, (Decision.CONFIRM, None)),
    ],
)
def test_addresses_are_judged_and_only_plain_fetching_needs_no_yes(
    judging: EvaluationContext, what: str, url: str | None, expected: tuple[Decision, Decision | None]
) -> None:
    assert decided(judging, Send(what, arg="url"), url=url) == expected


def test_a_private_host_that_a_person_allowed_is_fetched_from(judging: EvaluationContext) -> None:
    own = replace(judging, allow_private=("printer.lan",))
    assert decided(own, Send("fetch", arg="url"), url="http://printer.lan/") == (Decision.ALLOW, None)
    assert decided(own, Send("fetch", arg="url"), url="http://nas.lan/") == (Decision.DENY, Decision.DENY)


def test_of_several_addresses_the_worst_decides(judging: EvaluationContext) -> None:
    urls = ["https://example.org/", "http://127.0.0.1/"]
    view = opinion(judging, Send("fetch", arg="urls"), urls=urls)
    assert view is not None
    assert (view.floor, view.rule) == (Decision.DENY, "effects:private_address")
    assert [touch.what for touch in view.parts[0].touches] == ["example.org", "127.0.0.1"]


@pytest.mark.parametrize(
    ("effects", "args", "touches"),
    [
        ((Input("desktop"),), {}, [("input", "desktop")]),
        ((Write("windows"),), {}, [("input", "desktop")]),
        ((Run("skill"),), {}, [("execute", "skill")]),
        ((Read("screen"),), {}, []),
        ((Send("fetch", arg="url"), Write("file", arg="path")), {"url": "https://example.org:81/", "path": "/srv/a"},
         [("network", "example.org:81"), ("write", "/srv/a")]),
    ],
)  # fmt: skip
def test_what_a_call_touches_is_one_part(
    judging: EvaluationContext, effects: tuple[Effect, ...], args: dict[str, Any], touches: list[tuple[str, str]]
) -> None:
    view = opinion(judging, *effects, **args)
    assert view is not None
    assert [(touch.kind, touch.what) for part in view.parts for touch in part.touches] == touches
    assert len(view.parts) <= 1


@pytest.mark.parametrize(
    ("platform", "cwd", "path", "kind", "expected"),
    [
        ("darwin", "/Users/user/project", "/users/USER/Project/a", Read, Decision.ALLOW),
        ("linux", "/Users/user/project", "/users/USER/Project/a", Read, Decision.CONFIRM),
        ("darwin", "/Users/user/project", ".Git/hooks/x", Write, Decision.CONFIRM),
        ("darwin", "/Users/user/project", "~/.ZSHRC", Write, Decision.DENY),
        ("darwin", "/Users/user/project", "~/Library/LaunchAgents/x.plist", Write, Decision.DENY),
        ("darwin", "/Users/user/project", "/private/etc/hosts", Write, Decision.DENY),
        ("darwin", "/Users/user/project", "~/.Config/Handrail/config.toml", Write, Decision.DENY),
        ("win32", "C:\\Users\\user\\project", "SRC\\a.txt", Read, Decision.ALLOW),
        ("win32", "C:\\Users\\user\\project", "C:\\Windows\\System32\\drivers\\etc\\hosts", Write, Decision.CONFIRM),
        ("win32", "C:\\Users\\user\\project", "~\\Documents\\PowerShell\\profile.ps1", Write, Decision.DENY),
        ("win32", "C:\\Users\\user\\project", "C:\\windows\\TASKS\\x", Write, Decision.DENY),
        ("win32", "C:\\Users\\user\\project", "C:/Users/user/.CONFIG/handrail/config.toml", Write, Decision.DENY),
    ],
)  # fmt: skip
def test_other_platforms_are_judged_by_their_grammar(
    platform: str, cwd: str, path: str, kind: type[Effect], expected: Decision
) -> None:
    home = cwd[: -len("project") - 1]
    own = Path(home + ("\\" if platform == "win32" else "/") + ".config/handrail/config.toml")
    there = EvaluationContext(Path(cwd), Path(home), "user", {}, (Path(cwd),), platform, protected=(own,))
    assert decided(there, kind("file", arg="path"), path=path)[0] is expected


def test_calls_that_are_judged_together_are_each_judged_as_if_alone(judging: EvaluationContext, tmp_path: Path) -> None:
    work = judging.cwd
    (tmp_path / "out").mkdir()
    (tmp_path / "out/plain").touch()
    (work / "in").mkdir()
    (work / "in/away").symlink_to(tmp_path / "out")
    (work / "in/key").symlink_to(tmp_path / ".ssh/id_rsa")
    named = ["in/a", "in/.env", "in/away/plain", "in/away", "in/key", "in/b", "in/no/such", "../out/plain"]
    together = replace(judging, seen={})
    for text in [*named, *(str(work / name) for name in named)]:
        assert opinion(together, Read("file", arg="path"), path=text) == opinion(
            judging, Read("file", arg="path"), path=text
        )


@pytest.mark.parametrize("path", ["state", "state/console/1.json", "work/link/serve/1.json", "STATE/../state/x"])
@pytest.mark.parametrize("what", ["file", "folder", "glob", "cwd"])
@pytest.mark.parametrize("mode", list(Mode))
def test_no_tool_looks_where_a_person_is_asked(
    judging: EvaluationContext, tmp_path: Path, path: str, what: str, mode: Mode
) -> None:
    (tmp_path / "state/console").mkdir(parents=True)
    (tmp_path / "STATE").mkdir()
    (judging.cwd / "link").symlink_to(tmp_path / "state")
    closed = replace(judging, keys=(tmp_path / "state",), mode=mode)
    assert decided(closed, Read(what, arg="path"), path=f"{tmp_path}/{path}") == (Decision.DENY, Decision.DENY)
    assert decided(closed, Read("file", arg="path"), path=f"{judging.cwd}/states") == (Decision.ALLOW, None)


@KEPT
@pytest.mark.parametrize("last", ["HEAD", "objects/ab/cd", "refs/heads/main"])
def test_what_would_make_a_folder_into_a_repository_is_asked_about(
    judging: EvaluationContext, tmp_path: Path, last: str, *, undoable: bool
) -> None:
    """If this fails, a repository is built file by file, and git on the host obeys its settings."""
    folder = judging.workspace[0] / "vendor/data"
    for name in ("HEAD", "config", "objects/x", "refs/x"):
        if name.partition("/")[0] != last.partition("/")[0]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).touch()
    kept = replace(judging, undoable=undoable)
    assert decided(kept, Write("file", arg="path"), path=f"vendor/data/{last}") == (Decision.CONFIRM, Decision.CONFIRM)
    view = opinion(replace(judging, undoable=True), Write("file", arg="path"), path="vendor/data/config")
    assert view is not None
    assert view.floor is None, "a folder that is no repository yet may have such a file"


def test_a_repository_by_any_name_is_kept_as_it_is(judging: EvaluationContext) -> None:
    folder = judging.workspace[0] / "vendor/data"
    for name in ("HEAD", "objects/x", "refs/x"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()
    for name in ("config", "hooks/post-checkout"):
        decision = decided(replace(judging, undoable=True), Write("file", arg="path"), path=f"vendor/data/{name}")
        assert decision == (Decision.CONFIRM, Decision.CONFIRM)


@pytest.mark.parametrize(
    "place",
    [
        "tools/hooks/pre-commit",
        "tools/gitconfig",
        "real/gitconfig",
        "real/x/convert.sh",
        "scripts/hook",
        "shared/env",
        "docs/agent.md",
        "own/pre-push",
    ],
)
def test_what_an_obeyed_place_leads_to_is_kept_like_it(judging: EvaluationContext, place: str) -> None:
    """If this fails, a file that git or an editor obeys is changed by its other name."""
    work = judging.workspace[0]
    (work / ".git/hooks").mkdir(parents=True)
    (work / ".git/config").write_text("[core]\n\thooksPath = tools/hooks\n[include]\n\tpath = ../tools/gitconfig\n")
    with (work / ".git/config").open("a") as file:
        file.write("[include]\n\tpath = ../link/gitconfig\n[diff]\n\texternal = sh link/x/convert.sh\n")
    (work / "real").mkdir()
    (work / "link").symlink_to("real")
    (work / ".git/hooks/pre-push").symlink_to("../../scripts/hook")
    (work / ".envrc").symlink_to("shared/env")
    (work / "CLAUDE.md").symlink_to("docs/agent.md")
    (judging.home / ".gitconfig").write_text("[core]\n\thooksPath = own\n")
    kept = replace(judging, undoable=True)
    assert decided(kept, Write("file", arg="path"), path=place) == (Decision.CONFIRM, Decision.CONFIRM)
    assert decided(kept, Write("file", arg="path"), path="docs/other.md")[1] is None
