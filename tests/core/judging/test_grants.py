"""What a yes may be good for: narrowed to what was shown, and nothing where it may not be remembered."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import (
    Access,
    Decision,
    EvaluationContext,
    GrantOption,
    Input,
    Invocation,
    Mode,
    Opinion,
    Remote,
    Rule,
    Run,
    Send,
    SubCommand,
    Tool,
    Verdict,
    Write,
    tool,
)
from handrail.policy.engine import PolicyEngine, evaluate_call
from handrail.policy.grant_store import GrantStore
from handrail.policy.grants import Grant, build_grant_options
from handrail.testing.session_fixtures import open_test_runtime


@tool(effects=[Write("file", arg="path")])
async def edit(path: str = "a.txt") -> None:
    """Edit a file."""


@tool(effects=[Run("shell", arg="command")])
async def run(command: str = "ls") -> None:
    """Run a command."""


@tool(effects=[Write("settings")])
async def change() -> None:
    """Change the settings."""


@tool(effects=[Input("desktop")])
async def click() -> None:
    """Click."""


@tool(effects=[Send("network", arg="url")], server="docs")
async def mcp_docs_search(url: str = "") -> None:
    """Search."""


def offered(
    of: Tool, *parts: SubCommand, grantable: bool = True, narrowed: tuple[tuple[str, ...], ...] = ()
) -> list[str]:
    verdict = Verdict(Decision.CONFIRM, parts=parts, narrowed=narrowed, grantable=grantable)
    return [option.label for option in build_grant_options(Invocation(of, {}, of.validate({}), "1"), verdict)]


def part(*touches: tuple[str, str]) -> SubCommand:
    return SubCommand(touches=tuple(Access(kind, what) for kind, what in touches))  # pyright: ignore[reportArgumentType]


EXACT = "exactly this call"


@pytest.mark.parametrize(
    ("of", "parts", "expected"),
    [
        pytest.param(
            edit,
            [part(("write", "/home/ada/shop/a.txt"))],
            ["edit of /home/ada/shop/a.txt", "edit of everything in /home/ada/shop"],
            id="a-file-and-its-folder",
        ),
        pytest.param(edit, [part(("write", "/home/ada/a"))], ["edit of /home/ada/a"], id="never-a-whole-home"),
        pytest.param(
            edit, [part(("write", "/w/x/y/a"), ("write", "/w/x/z/b"))], ["edit of /w/x/y/a, /w/x/z/b"], id="two-folders"
        ),
        pytest.param(edit, [part(("write", ""))], [], id="a-file-that-is-not-known"),
        pytest.param(edit, [part(("network", "a.example"))], ["edit on a.example"], id="a-host"),
        pytest.param(
            edit,
            [part(("network", "a.example:80"), ("write", "/tmp/f"))],
            ["edit of /tmp/f on a.example:80"],
            id="a-download-is-from-its-host",
        ),
        pytest.param(edit, [part(("write", "/tmp/f"), ("privilege", "root"))], [], id="more-than-files"),
        pytest.param(run, [SubCommand(("rm", "x"), (Access("delete", "/w/x"),))], [], id="no-command-by-its-files"),
        pytest.param(run, [], [], id="no-shell-as-a-whole"),
        pytest.param(click, [], [], id="no-hands-as-a-whole"),
        pytest.param(change, [], ["every call of change"], id="a-tool-with-nothing-to-narrow"),
        pytest.param(
            mcp_docs_search,
            [],
            ["every call of mcp_docs_search on the server docs", "every tool of the server docs"],
            id="a-server",
        ),
    ],
)
def test_a_yes_is_narrowed_to_what_the_call_touches(of: Tool, parts: list[SubCommand], expected: list[str]) -> None:
    assert offered(of, *parts) == [EXACT, *expected]


def test_commands_are_narrowed_to_what_their_judge_says() -> None:
    both = offered(run, SubCommand(("git", "push", "x")), narrowed=(("git", "push"), ("npm", "a b"), ("git", "push")))
    assert both == [EXACT, "commands that start with git push and npm 'a b'"]


@pytest.mark.parametrize("touch", [Access("network"), Access("unknown", "tool"), Access("write")])
def test_a_beginning_is_not_offered_where_it_is_not_known_what_is_touched(touch: Access) -> None:
    assert offered(run, SubCommand(("gh", "run", "list"), (touch,)), narrowed=(("gh", "run"),)) == [EXACT]


def test_nothing_is_offered_where_a_yes_may_not_be_remembered() -> None:
    assert offered(change, grantable=False) == []


def test_a_tool_offers_its_own_after_the_exact_one() -> None:
    own = GrantOption("every small change", "small")
    small = tool(name="small", description="Change.", grants=lambda params: [own])(nothing)
    assert offered(small)[:2] == [EXACT, "every small change"]


async def nothing() -> None: ...


# What a grant answers


WORK = Path("/work")
WORK_HERE = os.path.realpath(WORK / "here")
HERE = EvaluationContext(
    cwd=WORK, home=Path("/home/ada"), user="ada", environment={}, workspace=(WORK,), platform="linux"
)


def call_of(of: Tool, **args: object) -> Invocation:
    return Invocation(of, args, of.validate(args), "1")


EXACTLY = GrantOption(EXACT, "edit", call_hash=call_of(edit, path="a").call_hash)


@pytest.mark.parametrize(
    ("option", "of", "circumstances", "expected"),
    [
        pytest.param(GrantOption("", "edit"), edit, {}, True, id="its-tool"),
        pytest.param(GrantOption("", "edit"), run, {}, False, id="another-tool"),
        pytest.param(GrantOption("", "edit"), edit, {"mode": Mode.PERMISSIVE}, True, id="a-looser-mode"),
        pytest.param(GrantOption("", "edit"), edit, {"mode": Mode.HEADLESS}, False, id="a-stricter-mode"),
        pytest.param(GrantOption("", "edit"), edit, {"workspace": (Path("/other"),)}, False, id="another-workspace"),
        pytest.param(GrantOption("", "edit"), edit, {"cwd": WORK / "deep"}, True, id="another-folder-of-it"),
        pytest.param(EXACTLY, edit, {"cwd": WORK / "deep"}, False, id="the-same-words-elsewhere-are-another-call"),
        pytest.param(EXACTLY, edit, {}, True, id="exactly-this-call"),
        pytest.param(GrantOption("", "*", server="docs"), mcp_docs_search, {}, True, id="any-tool-of-a-server"),
        pytest.param(GrantOption("", "*", server="doc"), mcp_docs_search, {}, False, id="another-server"),
        pytest.param(GrantOption("", "mcp_docs_search"), mcp_docs_search, {}, False, id="a-name-without-its-server"),
        pytest.param(GrantOption("", "*"), edit, {}, False, id="no-grant-is-for-everything"),
    ],
)
def test_a_grant_holds_where_and_for_what_it_was_given(
    option: GrantOption, of: Tool, circumstances: dict[str, Any], expected: bool
) -> None:
    grant = Grant.given(option, HERE)
    args = {"path": "a"} if of is edit else {}
    assert grant.holds(call_of(of, **args), replace(HERE, **circumstances)) is expected


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param([part(("read", "/opt/log"))], True, id="the-same"),
        pytest.param([part(("read", "/opt/log")), SubCommand()], True, id="nothing-more"),
        pytest.param([part(("read", "/opt/private"))], False, id="a-link-that-leads-elsewhere-now"),
        pytest.param([part(("write", "/opt/log"))], False, id="it-does-something-else-with-it"),
    ],
)
def test_a_grant_of_exactly_one_call_is_for_what_that_touched(later: list[SubCommand], *, expected: bool) -> None:
    call = call_of(edit, path="cur")
    exact, *_ = build_grant_options(call, Verdict(Decision.CONFIRM, parts=(part(("read", "/opt/log")),)))
    grant = Grant.given(exact, HERE)
    assert grant.holds(call, HERE)
    assert all(grant.covers(each, HERE) for each in later) is expected


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        pytest.param((WORK_HERE,), True, id="there"),
        pytest.param(("/work/other",), False, id="elsewhere"),
        pytest.param((WORK_HERE, "/work/other"), False, id="perhaps-elsewhere"),
        pytest.param(("",), False, id="nobody-knows-where"),
        pytest.param((), False, id="not-told"),
    ],
)
def test_a_grant_for_commands_holds_where_they_were_to_run(later: tuple[str, ...], *, expected: bool) -> None:
    push = SubCommand(("git", "push"), folders=(WORK_HERE,))
    option = build_grant_options(call_of(run), Verdict(Decision.CONFIRM, parts=(push,), narrowed=(("git", "push"),)))[1]
    assert option.label == f"commands that start with git push in {WORK_HERE}"
    assert Grant.given(option, HERE).covers(replace(push, folders=later), HERE) is expected


def test_a_grant_for_commands_that_only_look_covers_none_that_changes_something() -> None:
    """If this fails, options and operands behind the words that were shown turn a look into a change."""
    look, change = SubCommand(("x", "ls")), SubCommand(("x", "add"), changes=True)
    verdict = Verdict(Decision.CONFIRM, parts=(look, change), narrowed=(("x", "ls"), ("x", "add")))
    grant = Grant.given(build_grant_options(call_of(run), verdict)[1], HERE)
    covered = [grant.covers(part, HERE) for part in (look, change, replace(look, changes=True))]
    assert covered == [True, True, False]


def test_nothing_that_lasts_is_offered_on_the_host_for_an_option_that_is_not_known() -> None:
    part = SubCommand(("x", "--plugin", "./e.so"), unlisted=True)
    assert offered(run, part, narrowed=(("x",),)) == []
    known = replace(part, unlisted=False)
    grant = Grant.given(build_grant_options(call_of(run), Verdict(Decision.CONFIRM, parts=(known,)))[0], HERE)
    assert (grant.covers(known, HERE), grant.covers(part, HERE)) == (True, False)


def test_exactly_one_call_is_another_one_where_its_folder_leads_elsewhere(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    (tmp_path / "link").symlink_to("a")
    part = SubCommand(("git", "push"), folders=(str(tmp_path / "link"),))
    grant = Grant.given(build_grant_options(call_of(run), Verdict(Decision.CONFIRM, parts=(part,)))[0], HERE)
    assert grant.covers(part, HERE)
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("b")
    assert not grant.covers(part, HERE)


def test_a_repository_that_came_to_be_since_is_another_one(tmp_path: Path) -> None:
    """If this fails, what is granted for a folder of a project is pushed to where a repository made inside it says."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "deep").mkdir()
    push = SubCommand(("git", "push"), folders=(str(tmp_path / "deep"),))
    for option in build_grant_options(
        call_of(run), Verdict(Decision.CONFIRM, parts=(push,), narrowed=(("git", "push"),))
    ):
        grant = Grant.given(replace(option, touches=push.touches), HERE)
        assert grant.covers(push, HERE)
        (tmp_path / "deep/.git").mkdir()
        assert not grant.covers(push, HERE)
        (tmp_path / "deep/.git").rmdir()


def test_commands_are_not_narrowed_where_it_is_not_known_in_which_folder_they_run() -> None:
    assert offered(run, SubCommand(("git", "push"), folders=("",)), narrowed=(("git", "push"),)) == [EXACT]


def declared(as_: str, *, beside: tuple[str, ...] = ()) -> Tool:
    return replace(mcp_docs_search, remote=Remote("search", as_, frozenset((as_, *beside))), handler=search_nothing)


async def search_nothing(params: Any, context: Any) -> None: ...


@pytest.mark.parametrize("which", [0, 1, 2], ids=["exactly-this-call", "the-tool", "the-server"])
def test_a_grant_is_for_a_servers_tool_as_it_was_declared(which: int) -> None:
    before = call_of(declared("a"))
    grant = Grant.given(build_grant_options(before, Verdict(Decision.CONFIRM))[which], HERE)
    after = call_of(declared("b"))
    assert grant.holds(before, HERE)
    assert not grant.outdated(before, HERE)
    assert not grant.holds(after, HERE)
    assert grant.outdated(after, HERE)


def test_a_grant_for_a_server_is_for_the_tools_it_had() -> None:
    whole = build_grant_options(call_of(declared("a", beside=("b",))), Verdict(Decision.CONFIRM))[2]
    grant = Grant.given(whole, HERE)
    assert grant.holds(call_of(declared("b")), HERE)
    assert not grant.holds(call_of(declared("c")), HERE)


async def test_a_question_says_that_the_server_has_changed_the_tool() -> None:
    option = build_grant_options(call_of(declared("a")), Verdict(Decision.CONFIRM))[1]
    policy = PolicyEngine(grants=[Grant.given(option, HERE)])
    same = await evaluate_call(call_of(declared("a")), seats=(), policy=policy, judging=HERE)
    other = await evaluate_call(call_of(declared("b")), seats=(), policy=policy, judging=HERE)
    assert same.decision is Decision.ALLOW
    assert other.decision is Decision.CONFIRM
    assert "declared_anew" in [reason.code for reason in other.reasons]


def test_a_grant_for_always_ends() -> None:
    grant = Grant.given(GrantOption("", "edit"), HERE, always=True, days=30)
    assert grant.expires is not None
    assert timedelta(days=29) < grant.expires - datetime.now(UTC) < timedelta(days=31)
    assert not replace(grant, expires=datetime.now(UTC)).holds(call_of(edit), HERE)
    assert Grant.given(GrantOption("", "edit"), HERE, always=True).expires is None


LOG = (Access("read", "/work/a"),)
# The unknown host was shown, too: what is not known is never the same.
SHOWN = GrantOption("", "run", commands=(("log",),), touches=(*LOG, Access("network")))


@pytest.mark.parametrize(
    ("option", "covered", "expected"),
    [
        pytest.param(
            GrantOption("", "run", commands=(("git", "log"),)), SubCommand(("git", "log", "x")), True, id="words"
        ),
        pytest.param(
            GrantOption("", "run", commands=(("git", "log"),)), SubCommand(("git", "logs")), False, id="whole-words"
        ),
        pytest.param(GrantOption("", "run", commands=(("git",),)), SubCommand(("/tmp/git", "x")), False, id="a-path"),
        pytest.param(SHOWN, SubCommand(("log",), LOG), True, id="what-was-shown"),
        pytest.param(SHOWN, SubCommand(("log", "-v")), True, id="less-than-was-shown"),
        pytest.param(SHOWN, SubCommand(("log",), (Access("write", "/work/a"),)), False, id="a-change-of-what-was-read"),
        pytest.param(
            SHOWN, SubCommand(("log",), (*LOG, Access("read", "/work/b"))), False, id="another-file-of-the-workspace"
        ),
        pytest.param(SHOWN, SubCommand(("log",), (*LOG, Access("execute", "sh"))), False, id="a-program"),
        pytest.param(SHOWN, SubCommand(("log",), (Access("network"),)), False, id="a-host-that-is-not-known"),
        pytest.param(SHOWN, SubCommand(("PAGER=x",)), False, id="a-variable"),
        pytest.param(GrantOption("", "edit", paths=("/w/a",)), part(("write", "/w/a")), True, id="a-file"),
        pytest.param(GrantOption("", "edit", paths=("/w/a",)), part(("write", "/w/ab")), False, id="another-file"),
        pytest.param(GrantOption("", "edit", paths=("/w",)), part(("write", "/w/x/y")), True, id="a-folder"),
        pytest.param(GrantOption("", "edit", paths=("/w/*",)), part(("write", "/w/x")), False, id="a-star-is-a-name"),
        pytest.param(GrantOption("", "edit", paths=("/w",)), part(("write", "")), False, id="an-unknown-file"),
        pytest.param(GrantOption("", "edit", paths=("/w",)), part(("network", "a.b")), False, id="not-a-host"),
        pytest.param(GrantOption("", "edit", hosts=("a.b",)), part(("network", "a.b")), True, id="a-host"),
        pytest.param(GrantOption("", "edit", hosts=("*",)), part(("network", "a.b")), False, id="a-host-called-star"),
        pytest.param(GrantOption("", "edit", hosts=("a.b",)), part(("network", "a.b:8")), False, id="another-port"),
        pytest.param(GrantOption("", "edit", hosts=("a.b",)), SubCommand(), False, id="nothing-that-is-known"),
    ],
)
def test_a_grant_covers_what_was_shown_word_for_word(option: GrantOption, covered: SubCommand, expected: bool) -> None:
    assert Grant.given(option, HERE).covers(covered, HERE) is expected


# Grants for always


@pytest.fixture
def book(tmp_path: Path) -> GrantStore:
    return GrantStore(tmp_path / "data/grants.json")


def lasting(word: str, **more: Any) -> Grant:
    return replace(Grant.given(GrantOption(word, word), HERE, always=True), **more)


def test_of_too_many_the_oldest_are_given_up(tmp_path: Path) -> None:
    book = GrantStore(tmp_path / "grants.json", most=3)
    for word in "abcde":
        book.add(lasting(word))
    assert [grant.option.tool for grant in book.read()] == ["c", "d", "e"]


def test_a_file_of_megabytes_is_kept_aside(book: GrantStore, caplog: pytest.LogCaptureFixture) -> None:
    book.add(lasting("a"))
    with book.file.open("ab") as file:
        file.write(b" " * 5_000_000)
    assert book.read() == ()
    assert "at most 4,194,304 are read" in caplog.text
    assert len(list(book.file.parent.glob("*.broken-*"))) == 1


def test_what_is_added_is_read_again(book: GrantStore) -> None:
    assert book.read() == ()
    full = GrantOption("l", "t", (("a", "b c"),), ("/w/ü",), ("h:1",), "s", "0" * 64)
    given = [book.add(Grant.given(full, HERE, always=True, days=3)), book.add(lasting("b"))]
    assert list(book.read()) == given


def test_the_same_grant_is_renewed_and_not_doubled(book: GrantStore) -> None:
    first = book.add(lasting("a", uses=3, created=datetime(2020, 1, 1, tzinfo=UTC)))
    again = book.add(lasting("a"))
    assert (again.id, again.uses) == (first.id, 3)
    assert again.created > first.created
    assert book.read() == (again,)


def test_one_that_has_expired_is_gone(book: GrantStore) -> None:
    book.add(lasting("old", expires=datetime(2020, 1, 1, tzinfo=UTC)))
    assert book.read() == ()


@pytest.mark.parametrize("text", ["", "{", "[{}]", '{"a": 1}', "[1]", "\x00"])
def test_a_broken_file_is_kept_aside_and_grants_nothing(
    book: GrantStore, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    book.file.parent.mkdir()
    book.file.write_text(text)
    assert book.read() == ()
    (kept,) = book.file.parent.glob("grants.json.broken-*")
    assert kept.read_text() == text
    assert str(kept) in caplog.text
    assert book.add(lasting("a")) in book.read()


def test_a_file_that_others_can_write_grants_nothing(book: GrantStore, caplog: pytest.LogCaptureFixture) -> None:
    book.add(lasting("a"))
    book.file.chmod(0o666)
    assert book.read() == ()
    assert "other users can change it" in caplog.text


def test_what_is_no_file_is_not_waited_for(book: GrantStore, caplog: pytest.LogCaptureFixture) -> None:
    book.file.parent.mkdir(parents=True, exist_ok=True)
    os.mkfifo(book.file, 0o600)
    assert book.read() == ()
    assert "it is no ordinary file" in caplog.text


def test_those_who_add_at_once_lose_nothing(book: GrantStore) -> None:
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda at: book.add(lasting(f"t{at}")), range(24)))
    assert len(book.read()) == 24


async def test_sessions_that_run_take_a_grant_over_and_give_it_up(tmp_path: Path) -> None:
    async with open_test_runtime(tools=[change], folder=tmp_path) as runtime, runtime.session() as session:
        assert (await session.call("change")).error_code == "no_confirmer"
        workspace = tuple(map(str, session.workspace))
        grant = lasting("change", workspace=workspace)
        runtime.book.add(grant)
        with anyio.fail_after(30):
            while not (await session.call("change")).ok:
                await anyio.sleep(0.02)
        runtime.book.revoke(grant.id)
        with anyio.fail_after(30):
            while (await session.call("change")).ok:
                await anyio.sleep(0.02)


async def test_a_yes_for_always_holds_in_the_next_session_and_its_uses_are_counted(tmp_path: Path) -> None:
    for uses in (0, 2):
        async with open_test_runtime(tools=[change], folder=tmp_path) as runtime, runtime.session() as session:
            if not uses:
                session.court.grant(GrantOption("every call of change", "change"), always=True)
            assert [(await session.call("change")).ok for _ in range(2)] == [True, True]
        (grant,) = runtime.book.read()
        assert grant.uses == uses + 2


async def test_a_verdict_names_the_grant() -> None:
    async with open_test_runtime(tools=[change]) as runtime, runtime.session() as session:
        session.court.grant(GrantOption("every call of change", "change"))
        verdict = await session.court.judge(call_of(change))
    assert verdict.rule == "grant"
    assert verdict.grants == (session.court.policy.grants[0].id,)
    assert verdict.reasons[0].text.startswith("every call of change: allowed for this session on ")


DENY_OR_ASK = [
    pytest.param(Rule(("edit",), Decision.CONFIRM), Decision.ALLOW, id="answers-a-rule-of-its-person-that-asks"),
    pytest.param(Rule(("edit",), Decision.CONFIRM, tier="admin"), Decision.CONFIRM, id="not-an-administrators"),
    pytest.param(Rule(("edit",), Decision.DENY, ("x",), tier="plugin"), Decision.ALLOW, id="nor-what-does-not-fit"),
    pytest.param(Rule(("edit",), Decision.DENY), Decision.DENY, id="never-a-deny"),
]


@pytest.mark.parametrize(("rule", "expected"), DENY_OR_ASK)
def test_a_grant_beside_a_rule(rule: Rule, expected: Decision) -> None:
    policy = PolicyEngine((rule,), (Grant.given(GrantOption("", "edit"), HERE),))
    verdict = policy.decide(call_of(edit), [Opinion("view", suggestion=Decision.CONFIRM)], HERE)
    assert verdict.decision is expected
    assert verdict.grantable is (rule.tier != "admin")
