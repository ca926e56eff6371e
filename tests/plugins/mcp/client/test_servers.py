"""Tools of servers that behave, over each way that leads to them."""

from __future__ import annotations

import json
import math
import shutil
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest

from handrail import Answer, Choice, Decision, Media, ToolCall
from handrail.api.approval import no
from handrail.api.events import Progress, ToolsChanged

from .using import HERE, at, deciding, helpful, names, raw, until, using

pytestmark = pytest.mark.anyio


async def test_a_servers_tools_are_called_under_its_name() -> None:
    async with using({"docs": helpful()}) as session:
        assert "mcp_docs_add" in await names(session)
        result = await session.call("mcp_docs_add", {"a": 2, "b": 3})
    assert result["structured"] == {"total": 5}
    assert result.source is not None
    assert result.source.origin == "the server docs"


@pytest.mark.parametrize("transport", [None, "http"])
async def test_a_server_is_reached_over_http(web: str, transport: str | None) -> None:
    async with using({"web": at(web, transport=transport)}) as session:
        result = await session.call("mcp_web_add", {"a": 2, "b": 3})
    assert result["structured"] == {"total": 5}


@pytest.mark.parametrize("transport", [None, "sse"])
async def test_a_server_is_reached_over_sse(sse: str, transport: str | None) -> None:
    async with using({"web": at(sse, transport=transport)}) as session:
        result = await session.call("mcp_web_add", {"a": 2, "b": 3})
    assert result["structured"] == {"total": 5}


async def test_what_does_not_fit_the_schema_never_reaches_the_server(web: str) -> None:
    async with using({"docs": at(web)}) as session:
        wrong = await session.call("mcp_docs_add", {"a": "two"})
    assert wrong.error_code == "invalid_arguments"
    assert {each["field"] for each in wrong["error"]["details"]["problems"]} == {"a", "b"}


async def test_without_a_yes_nothing_is_called(web: str) -> None:
    async with using({"docs": at(web)}, confirm=None) as session:
        nobody = await session.call("mcp_docs_add", {"a": 1, "b": 1})
    async with using({"docs": at(web)}, confirm=no) as session:
        denied = await session.call("mcp_docs_add", {"a": 1, "b": 1})
    assert nobody.error_code == "no_confirmer"
    assert denied.error_code == "denied_by_user"


async def test_the_question_names_server_tool_and_arguments(web: str) -> None:
    confirm, asked = deciding(Answer(Choice.ONCE))
    async with using({"docs": at(web)}, confirm=confirm) as session:
        await session.call("mcp_docs_add", {"a": 1, "b": 1})
    shown = asked[0].confirmation
    assert (shown.kind, shown.server, shown.tool, shown.args) == ("mcp", "docs", "add", {"a": 1, "b": 1})
    assert [option.label for option in asked[0].grants][-1] == "every tool of the server docs"


@pytest.mark.parametrize("args", [{"a": math.nan, "b": 1}, {"a": 1, "b": 1, "more": [{"x": -math.inf}]}])
async def test_numbers_that_json_lacks_are_refused_before_anybody_is_asked(web: str, args: dict[str, Any]) -> None:
    """The server would get null in their place, which is not what the question shows."""
    confirm, asked = deciding(Answer(Choice.ONCE))
    async with using({"docs": at(web)}, confirm=confirm) as session:
        result = await session.call("mcp_docs_add", args)
    assert result.error_code == "invalid_arguments"
    assert "not JSON" in result["error"]["message"]
    assert asked == []


async def test_a_picture_is_media_and_a_failure_is_an_error(web: str) -> None:
    async with using({"docs": at(web)}) as session:
        picture = await session.call("mcp_docs_picture")
        failed = await session.call("mcp_docs_fail")
    (media,) = picture["media"]
    assert isinstance(media, Media)
    assert media.mime_type == "image/png"
    assert media.data is not None
    assert media.data.startswith(b"\x89PNG")
    assert failed.error_code == "downstream_error"
    assert "disk is on fire" in failed["error"]["message"]


async def test_progress_is_passed_on(web: str) -> None:
    async with using({"docs": at(web)}) as session:
        heard: list[Progress] = []
        session.bus.subscribe(lambda event: heard.append(event) if isinstance(event, Progress) else None)
        await session.call("mcp_docs_slow", {"steps": 3})
    assert [event.message for event in heard] == ["step 1", "step 2", "step 3"]
    assert heard[-1].fraction == 1


async def test_a_cancelled_call_is_cancelled_on_the_server(web: str, tmp_path: Path) -> None:
    marker = tmp_path / "done"
    async with using({"docs": at(web)}) as session:
        await session.tools()
        async with anyio.create_task_group() as tasks:
            results: list[str] = []

            async def call() -> None:
                args = {"steps": 10, "marker": str(marker)}
                results.append((await session.call("mcp_docs_slow", args, call_id="x"))["status"])

            tasks.start_soon(call)
            await until(lambda: _running(session, "x"))
            session.cancel("x")
        assert results == ["cancelled"]
        await anyio.sleep(1.5)
        assert (await session.call("mcp_docs_add", {"a": 1, "b": 1})).ok
    assert not marker.exists()


async def _running(session: object, call_id: str) -> bool:
    await anyio.sleep(0.2)
    return call_id in session.running  # pyright: ignore[reportAttributeAccessIssue]


async def test_a_call_ends_at_the_servers_time_limit() -> None:
    async with using({"raw": raw("silent", timeout=0.5)}) as session:
        assert (await session.call("mcp_raw_echo"))["status"] == "timeout"


async def test_calls_of_one_server_run_side_by_side(web: str) -> None:
    async with using({"docs": at(web, read_only=["slow"])}) as session:
        await session.tools()
        calls = [ToolCall("mcp_docs_slow", {"steps": 1}, f"c{number}") for number in range(5)]
        assert [result["content"] for result in await session.batch(calls)] == ["done"] * 5


# Lists that change


async def test_a_tool_that_comes_later_is_there_on_the_next_step() -> None:
    async with using({"docs": helpful()}) as session:
        assert "mcp_docs_late" not in await names(session)
        changed: list[ToolsChanged] = []
        session.bus.subscribe(lambda event: changed.append(event) if isinstance(event, ToolsChanged) else None)
        await session.call("mcp_docs_grow")
        await until(lambda: _has(session, "mcp_docs_late"))
        assert changed
        assert (await names(session))[-3] == "mcp_docs_late" or "mcp_docs_late" in await names(session)
        assert (await session.call("mcp_docs_late"))["content"] == "here I am"


async def _has(session: object, name: str) -> bool:
    return name in await names(session)  # pyright: ignore[reportArgumentType]


async def test_a_yes_for_always_is_asked_for_again_when_the_server_changes_the_tool() -> None:
    asked: list[tuple[str, list[str]]] = []

    async def confirm(approval):
        asked.append((approval.tool, [reason.code for reason in approval.verdict.reasons]))
        if approval.tool != "mcp_docs_fail":
            return Answer(Choice.ONCE)
        option = next(option for option in approval.grants if option.label.startswith("every call"))
        return Answer(Choice.SESSION, grant=option)

    async with using({"docs": helpful()}, confirm=confirm) as session:
        await session.call("mcp_docs_fail")
        await session.call("mcp_docs_fail")
        assert [tool for tool, _ in asked] == ["mcp_docs_fail"]
        await session.call("mcp_docs_mutate")

        async def changed() -> bool:
            found = {tool.name: tool for tool in await session.tools()}
            return "stranger" in found["mcp_docs_fail"].description

        await until(changed)
        await session.call("mcp_docs_fail")
    assert asked[-1][0] == "mcp_docs_fail"
    assert "declared_anew" in asked[-1][1]


# What a server is given


async def test_a_server_gets_no_credentials_save_those_it_is_given() -> None:
    environment = {
        "GITHUB_TOKEN": "ghp_0123456789abcdefghij",
        "PLAIN": "seen",
        "HANDRAIL_SECRET_TICKETS": "s3cret-value",
    }
    settings = helpful(env={"OWN": "given", "PASS": "x secret:tickets"})
    async with using({"docs": settings}, environment=environment) as session:
        told = {}
        for name in ("GITHUB_TOKEN", "PLAIN", "OWN", "PASS"):
            told[name] = (await session.call("mcp_docs_variable", {"name": name}))["content"]
    assert told == {"GITHUB_TOKEN": "(not set)", "PLAIN": "seen", "OWN": "given", "PASS": "x [redacted]"}


async def test_a_server_runs_where_agents_write_nothing_unless_its_table_names_a_folder(tmp_path: Path) -> None:
    servers = {"own": raw("place"), "here": raw("place", cwd="."), "there": raw("place", cwd=str(tmp_path))}
    async with using(servers, folder=tmp_path) as session:
        told = [(await session.call(f"mcp_{name}_echo"))["content"] for name in servers]
    assert told == ["/", str(tmp_path / "work"), str(tmp_path)]


async def test_code_in_the_workspace_is_not_part_of_a_server(tmp_path: Path) -> None:
    work, library = tmp_path / "work", tmp_path / "library"
    for folder in (work, library):
        folder.mkdir()
    shutil.copy(HERE / "raw.py", library / "installed.py")
    marker = tmp_path / "marker"
    (work / "json.py").write_text(f"open({str(marker)!r}, 'w')\nraise SystemExit\n")
    table = {"command": [sys.executable, "-m", "installed", "plain"], "env": {"PYTHONPATH": str(library)}}
    async with using({"raw": table}, folder=tmp_path) as session:
        assert (await session.call("mcp_raw_echo", {"text": "hi"}))["content"] == "hi"
    assert not marker.exists()


@pytest.mark.parametrize(
    ("words", "settings"),
    [
        pytest.param(["./tools/raw.py"], {}, id="with-a-dot"),
        pytest.param(["tools/raw.py"], {"cwd": "."}, id="from-the-folder-it-names"),
    ],
)
async def test_a_server_may_be_a_script_of_the_workspace(
    tmp_path: Path, words: list[str], settings: dict[str, str]
) -> None:
    (tmp_path / "work/tools").mkdir(parents=True)
    shutil.copy(HERE / "raw.py", tmp_path / "work/tools")
    table = {"command": [sys.executable, *words, "plain"], **settings}
    async with using({"raw": table}, folder=tmp_path) as session:
        assert (await session.call("mcp_raw_echo", {"text": "hi"}))["content"] == "hi"


async def test_a_script_that_is_not_found_is_told_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "work/tools").mkdir(parents=True)
    shutil.copy(HERE / "raw.py", tmp_path / "work/tools")
    async with using({"raw": {"command": [sys.executable, "tools/raw.py", "plain"]}}, folder=tmp_path) as session:
        assert await names(session) == []
        [told] = (await session.service("mcp_servers")).states()
    assert "write './tools/raw.py', or name a cwd" in told["problem"]


@pytest.mark.parametrize(("desktop", "display"), [("private", "(not set)"), ("current", ":77")])
async def test_a_server_is_shown_to_no_screen_but_the_sessions(desktop: str, display: str) -> None:
    async with using({"docs": helpful()}, environment={"DISPLAY": ":77"}, desktop=desktop) as session:
        assert (await session.call("mcp_docs_variable", {"name": "DISPLAY"}))["content"] == display


async def test_roots_are_the_workspace_where_the_configuration_says_so() -> None:
    async with using({"raw": raw("rooted", roots=True), "closed": raw("rooted")}) as session:
        told = json.loads((await session.call("mcp_raw_echo"))["content"])
        refused = json.loads((await session.call("mcp_closed_echo"))["content"])
        assert [root["uri"] for root in told["roots"]] == [session.workspace[0].as_uri()]
    assert "roots" not in refused


# Which tools


@pytest.mark.parametrize(
    ("settings", "offered"),
    [
        pytest.param({"include": ["add", "pic*"]}, {"add", "picture"}, id="include"),
        pytest.param({"include": []}, set(), id="an-empty-include-is-none"),
        pytest.param({"include": ["add", "fail"], "exclude": ["f*"]}, {"add"}, id="exclude-wins"),
    ],
)
async def test_which_tools_are_offered(web: str, settings: dict[str, list[str]], offered: set[str]) -> None:
    async with using({"docs": at(web, **settings)}) as session:
        tools = {tool.remote.name for tool in await session.tools() if tool.remote is not None}
    assert tools == offered


async def test_policy_rules_speak_of_a_servers_tools(web: str) -> None:
    rules = [
        {"tool": "mcp_docs_*", "server": "docs", "decision": "allow"},
        {"tool": "picture", "server": "docs", "decision": "deny"},
    ]
    servers = {"docs": at(web), "docs_evil": at(web)}
    async with using(servers, confirm=None, policy={"rules": rules}) as session:
        assert (await session.call("mcp_docs_add", {"a": 1, "b": 1})).ok
        assert (await session.call("mcp_docs_evil_add", {"a": 1, "b": 1})).error_code == "no_confirmer"
        assert "mcp_docs_picture" not in await names(session)
        assert "mcp_docs_evil_picture" in await names(session)


async def test_a_tool_changes_nothing_only_where_a_person_says_so(web: str) -> None:
    servers = {"a": at(web), "b": at(web, trust_hints=True), "c": at(web, read_only=["add"])}
    async with using(servers, mode="plan") as session:
        offered = [name for name in await names(session) if name.startswith("mcp_")]
    assert offered == ["mcp_b_add", "mcp_c_add"]


async def test_a_disabled_server_is_not_started() -> None:
    async with using({"docs": helpful(enabled=False)}) as session:
        assert await names(session) == []


# Resources


async def test_resources_are_listed_and_read_while_a_server_has_any(web: str) -> None:
    async with using({"docs": at(web)}) as session:
        listed = await session.call("list_resources")
        read = await session.call("read_resource", {"server": "docs", "uri": "note://hello"})
        nobody = await session.call("read_resource", {"server": "dox", "uri": "note://hello"})
    assert [each["uri"] for each in listed["resources"]] == ["note://hello"]
    assert read["resources"][0]["text"] == "hello from a note"
    assert nobody.error_code == "not_found"
    async with using({"raw": raw("plain")}) as session:
        assert await names(session) == ["mcp_raw_echo"]


@pytest.mark.parametrize("which", [0, 1, 2], ids=["exactly-this-call", "the-tool", "the-server"])
async def test_a_yes_to_read_from_one_server_is_for_no_other(web: str, which: int) -> None:
    asked: list[str] = []

    async def confirm(approval):
        asked.append(approval.confirmation.server)
        return Answer(Choice.SESSION, grant=approval.grants[which])

    async with using({"docs": at(web), "other": at(web)}, confirm=confirm) as session:
        for server in ("docs", "docs", "other"):
            await session.call("read_resource", {"server": server, "uri": "note://hello"})
    assert asked == ["docs", "other"]


async def test_a_yes_to_read_from_a_server_is_asked_for_again_when_it_changes() -> None:
    asked: list[str] = []

    async def confirm(approval):
        asked.append(approval.tool)
        lasting = approval.tool == "read_resource"
        return Answer(Choice.SESSION, grant=approval.grants[1]) if lasting else Answer(Choice.ONCE)

    async with using({"docs": helpful()}, confirm=confirm) as session:
        read = {"server": "docs", "uri": "note://hello"}
        await session.call("read_resource", read)
        await session.call("read_resource", read)
        await session.call("mcp_docs_mutate")

        async def changed() -> bool:
            found = {tool.name: tool for tool in await session.tools()}
            return "stranger" in found["mcp_docs_fail"].description

        await until(changed)
        await session.call("read_resource", read)
    assert asked == ["read_resource", "mcp_docs_mutate", "read_resource"]


# Questions of a server


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        pytest.param(Answer(Choice.ONCE), "painted blue", id="a-yes-is-the-default"),
        pytest.param(Answer(Choice.EDIT, args={"colour": "red"}), "painted red", id="other-values"),
        pytest.param(Answer(Choice.DENY), "decline", id="a-no"),
    ],
)
async def test_a_server_asks_a_person(web: str, answer: Answer, told: str) -> None:
    confirm, asked = deciding(answer)
    async with using({"docs": at(web)}, confirm=confirm) as session:
        result = await session.call("mcp_docs_paint")
    assert result["content"] == told
    assert "Which colour?" in asked[-1].confirmation.text
    assert asked[-1].grants == ()


@pytest.mark.parametrize(
    ("kind", "answer", "told"),
    [
        pytest.param(
            "asker",
            Answer(Choice.EDIT, args={"password": "x"}),
            {"action": "accept", "content": {"password": "x"}},
            id="a-form",
        ),
        pytest.param("asker", Answer(Choice.ONCE), {"action": "cancel"}, id="a-yes-without-what-is-needed"),
        pytest.param("asker", Answer(Choice.DENY), {"action": "decline"}, id="a-no"),
        pytest.param("address", Answer(Choice.ONCE), {"action": "accept"}, id="an-address"),
    ],
)
async def test_a_server_of_the_older_protocol_asks_a_person(kind: str, answer: Answer, told: dict[str, object]) -> None:
    confirm, asked = deciding(answer)
    async with using({"raw": raw(kind)}, confirm=confirm) as session:
        result = await session.call("mcp_raw_echo")
    assert json.loads(result["content"]) == told
    assert len(asked) == 2
    if kind == "address":
        assert asked[-1].confirmation.url == "https://login.example/x"


async def test_a_yes_sends_the_values_that_were_shown_and_no_others() -> None:
    confirm, asked = deciding(Answer(Choice.ONCE))
    async with using({"raw": raw("suggester")}, confirm=confirm) as session:
        result = await session.call("mcp_raw_echo")
    assert 'a yes sends "secret:TOKEN"' in asked[-1].confirmation.text
    assert json.loads(result["content"]) == {"action": "accept", "content": {"colour": "secret:TOKEN"}}


async def test_no_text_of_a_server_looks_like_a_line_of_its_own_in_the_question() -> None:
    confirm, asked = deciding(Answer(Choice.DENY))
    async with using({"raw": raw("forger")}, confirm=confirm) as session:
        await session.call("mcp_raw_echo")
    *message, field = asked[-1].confirmation.text.split("\n")
    assert message == ["> ok", ">   a yes sends nothing", "> Handrail: this is safe"]
    assert field.count("ok a yes sends nothing Handrail: this is safe") == 4


async def test_where_nobody_can_be_asked_a_servers_question_is_refused() -> None:
    rules = [{"server": "raw", "decision": "allow"}]
    async with using({"raw": raw("asker")}, confirm=None, policy={"rules": rules}) as session:
        assert json.loads((await session.call("mcp_raw_echo"))["content"]) == {"action": "cancel"}


async def test_a_server_gets_no_model() -> None:
    async with using({"raw": raw("sampler")}) as session:
        assert "code" in json.loads((await session.call("mcp_raw_echo"))["content"])


async def test_a_call_is_judged_by_default_as_one_that_is_asked_about(web: str) -> None:
    async with using({"docs": at(web)}) as session:
        tools = {tool.name: tool for tool in await session.tools()}
        from handrail import Invocation

        tool = tools["mcp_docs_add"]
        args = {"a": 1, "b": 1}
        verdict = await session.court.judge(Invocation(tool, args, tool.validate(args), "1"))
    assert verdict.decision is Decision.CONFIRM
