"""One call, from its words to its recorded result: whatever a handler does, the agent gets a result and the session goes on."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any

import pytest
from pydantic import Field

from handrail import (
    ConfigError,
    Failsafe,
    Media,
    NotFound,
    Session,
    Tool,
    ToolCall,
    ToolContext,
    ToolError,
    ToolResult,
    Write,
    tool,
)
from handrail.audit.writer import verify_audit
from handrail.testing import Always, ScriptedConfirmer, open_test_session
from handrail.tools.builtin import get_action_history


def returning(value: Any, **declared: Any) -> Tool:
    async def handler() -> Any:
        return value

    return tool(name="give", description="Give it.", **declared)(handler)


def raising(error: BaseException) -> Tool:
    async def handler() -> None:
        raise error

    return tool(name="give", description="Raise it.")(handler)


async def call(made: Tool, args: Mapping[str, Any] | None = None, **session: Any) -> ToolResult:
    async with open_test_session(tools=[made], **session) as opened:
        result = await opened.call(made.name, args)
        # Whatever it was: recorded, and the next call works.
        assert opened.history.last()[-1].call.name == made.name
        assert (await opened.call("wait", {"seconds": 0.1})).ok
    audit = verify_audit(opened.runtime.places.audit / f"{opened.id}.jsonl") if "folder" in session else None
    assert audit is None or (audit.ok and audit.ended and not audit.unfinished)
    return result


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param(None, {}, id="nothing"),
        pytest.param("words", {"content": "words"}, id="text"),
        pytest.param("", {"content": ""}, id="empty-text"),
        pytest.param({"a": 1}, {"a": 1}, id="mapping"),
        pytest.param(MappingProxyType({"a": 1}), {"a": 1}, id="any-mapping"),
        pytest.param({}, {}, id="empty-mapping"),
    ],
)
async def test_what_a_handler_returns_becomes_the_result(value: Any, expected: dict[str, Any]) -> None:
    result = await call(returning(value))
    assert result.ok
    assert {key: item for key, item in result.items() if key not in ("status", "duration_ms")} == expected


async def test_media_pass_through_and_go_on_the_wire_as_base64() -> None:
    picture = Media("image", "image/png", data=b"\x89PNG")
    for given in (picture, [picture, picture]):
        result = await call(returning(given))
        assert all(media is picture for media in result["media"])
        assert result.wire()["media"][0] == {"type": "image", "mime_type": "image/png", "data_b64": "iVBORw=="}


async def test_media_kept_in_a_file_go_on_the_wire_by_path() -> None:
    result = await call(returning(Media("audio", "audio/wav", path=Path("/tmp/a.wav"), text="a beep")))
    assert result.wire()["media"] == [
        {"type": "audio", "mime_type": "audio/wav", "path": "/tmp/a.wav", "text": "a beep"}
    ]


async def test_a_result_on_the_wire_is_plain_data() -> None:
    wire = (await call(returning({"path": Path("/a"), "set": {"b", "a"}, "deep": [{"t": (1, 2)}]}))).wire()
    assert (wire["path"], wire["set"], wire["deep"]) == ("/a", ["a", "b"], [{"t": [1, 2]}])


class Unprintable:
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def cyclic() -> dict[str, Any]:
    loop: dict[str, Any] = {}
    loop["again"] = loop
    return loop


def deep() -> dict[str, Any]:
    node: dict[str, Any] = {}
    top = node
    for _ in range(5_000):
        node["in"] = {}
        node = node["in"]
    return top


@pytest.mark.parametrize(
    "value",
    [
        pytest.param(42, id="number"),
        pytest.param([], id="empty-list"),
        pytest.param([Media("image", "image/png", data=b""), "mixed"], id="mixed-list"),
        pytest.param({"status": "great"}, id="unknown-status"),
        pytest.param({"status": None}, id="no-status"),
        pytest.param({"status": ["success"]}, id="list-as-status"),
        pytest.param(object(), id="object"),
    ],
)
async def test_junk_becomes_an_error_result(value: Any, caplog: pytest.LogCaptureFixture) -> None:
    result = await call(returning(value))
    assert (result.status, result.error_code) == ("error", "downstream_error")
    assert "give" in caplog.text


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(cyclic, id="cyclic"),
        pytest.param(deep, id="deep"),
        pytest.param(lambda: {"thing": Unprintable()}, id="unprintable"),
    ],
)
@pytest.mark.parametrize("audited", [True, False])
async def test_a_result_that_cannot_be_written_down_ends_nothing(make: Callable[[], Any], audited: bool) -> None:
    async with open_test_session(tools=[returning(make())], settings={"audit": {"enabled": audited}}) as session:
        await session.call("give")
        history = await session.call("get_action_history")
    assert [action["tool"] for action in history["actions"]] == ["give"]


async def test_status_of_the_handler_counts_and_failures_are_whole() -> None:
    result = await call(returning({"status": "error", "exit_code": 2}))
    assert (result.status, result["exit_code"]) == ("error", 2)
    assert set(result["error"]) == {"code", "message", "retryable", "details"}
    assert result["voice_message"]


async def test_a_tool_error_reaches_the_model_word_by_word() -> None:
    error = NotFound("there is no window 'Notes'", hint="open it", details={"windows": ["Mail"]}, voice="No Notes.")
    result = await call(raising(error))
    assert result["error"] == {
        "code": "not_found",
        "message": "there is no window 'Notes'; open it",
        "retryable": False,
        "details": {"windows": ["Mail"]},
    }
    assert result["voice_message"] == "No Notes."


async def test_any_other_error_is_masked_and_logged_whole(caplog: pytest.LogCaptureFixture) -> None:
    result = await call(raising(ValueError("password=hunter2 in /home/ada/.netrc")))
    assert result["error"]["message"] == "give failed inside: ValueError"
    assert "hunter2" not in str(dict(result))
    assert "hunter2" in caplog.text


@pytest.mark.parametrize("error", [ConfigError("wrong"), Failsafe("stopped"), ToolError("no")])
async def test_every_error_of_the_tree_has_its_own_status_and_code(error: Any) -> None:
    result = await call(raising(error))
    assert (result.status, result.error_code) == (error.status, error.code)


@pytest.mark.parametrize("error", [SystemExit(3), StopAsyncIteration(), BaseExceptionGroup("two", [ValueError()])])
async def test_a_handler_cannot_end_the_program(error: BaseException) -> None:
    result = await call(raising(error))
    assert result.error_code == "downstream_error"


async def test_an_unknown_tool_is_answered_with_those_there_are_and_the_nearest() -> None:
    async with open_test_session() as session:
        result = await session.call("wiat", {"seconds": 1})
    assert result.error_code == "unknown_tool"
    assert "did you mean 'wait'" in result["error"]["message"]
    assert result["error"]["details"]["available"] == ["wait", "get_action_history"]


@pytest.mark.parametrize("name", ["", "../wait", "WAIT", "w" * 500, "wait\n"])
async def test_a_strange_name_is_an_unknown_tool(name: str) -> None:
    async with open_test_session() as session:
        assert (await session.call(name, {})).error_code == "unknown_tool"


async def test_every_result_says_how_long_it_took() -> None:
    assert isinstance((await call(returning("x")))["duration_ms"], int)
    async with open_test_session() as session:
        assert isinstance((await session.call("nothing_like_it"))["duration_ms"], int)


async def test_voice_messages_are_one_sentence_without_secrets_or_paths() -> None:
    result = await call(raising(ToolError("cannot read /home/ada/.ssh/id_rsa: token ghp_abcdefghijklmnop")))
    voice = result["voice_message"]
    assert voice.endswith(".")
    assert "/" not in voice
    assert "ghp" not in voice


@tool()
async def echo(text: str = "", deep: dict[str, int] | None = None) -> str:
    """Return the text."""
    return text


async def hash_of(session: Session, args: Mapping[str, Any]) -> str:
    await session.call("echo", args)
    invocation = session.history.last(1)[0].invocation
    assert invocation is not None
    return invocation.call_hash


async def test_equal_calls_have_equal_hashes_whatever_the_order_of_keys() -> None:
    async with open_test_session(tools=[echo]) as session:
        one = await hash_of(session, {"text": "a", "deep": {"x": 1, "y": 2}})
        other = await hash_of(session, {"deep": {"y": 2, "x": 1}, "text": "a"})
        assert one == other
        assert len(one) == 64
        assert one != await hash_of(session, {"text": "b", "deep": {"x": 1, "y": 2}})


async def test_the_hash_is_of_the_arguments_as_they_were_sent() -> None:
    async with open_test_session(tools=[echo]) as session:
        assert await hash_of(session, {"deep": {"x": "1"}}) != await hash_of(session, {"deep": {"x": 1}})
        assert await hash_of(session, {"text": ""}) != await hash_of(session, {})


async def test_the_hosts_own_name_for_a_call_is_kept() -> None:
    async with open_test_session(tools=[echo]) as session:
        await session.call("echo", {}, call_id="host-7")
        assert session.history.last()[0].call.call_id == "host-7"


async def test_hosts_that_change_their_arguments_afterwards_change_no_call() -> None:
    seen: list[str] = []

    @tool(effects=[Write("settings")])
    async def slow(words: list[str], context: ToolContext) -> None:
        """Write."""
        seen.extend(words)

    args = {"words": ["harmless"]}

    class Swapping(ScriptedConfirmer):
        async def __call__(self, approval: Any) -> Any:
            args["words"] = ["harmful"]
            return await super().__call__(approval)

    async with open_test_session(tools=[slow], confirm=Swapping("once")) as session:
        assert (await session.call("slow", args)).ok
    assert seen == ["harmless"]


async def test_a_subscriber_that_fails_ends_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def broken(event: object) -> None:
        raise RuntimeError("no ears")

    heard: list[object] = []
    async with open_test_session(tools=[echo]) as session:
        session.bus.subscribe(broken)
        session.bus.subscribe(heard.append)
        assert (await session.call("echo", {})).ok
    assert heard
    assert "no ears" in caplog.text


async def test_meta_is_kept_and_never_read() -> None:
    from handrail import Bag

    made = tool(meta=Bag({"mail": {"folder": "inbox"}}))(get_described)
    assert made.meta.get("mail.folder") == "inbox"
    assert made.meta.get("mail.nothing", 3) == 3


async def get_described(n: Annotated[int, Field(description="How many.")] = 1) -> None:
    """Do nothing."""


def test_handlers_are_private() -> None:
    assert not [name for name in vars(get_action_history) if not name.startswith("_") and name in ("handler", "run")]
    with pytest.raises(AttributeError):
        get_action_history.handler  # pyright: ignore # noqa: B018


async def test_nothing_is_written_to_the_root_logger_by_a_good_call(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        await call(returning("fine"))
    assert not caplog.records


async def test_the_cure_for_a_judge_that_crashes_is_no_rule() -> None:
    async with open_test_session(tools=[returning("x")], evaluators=[Always(RuntimeError("broken"))]) as session:
        result = await session.call("give")
    assert result.status == "denied"
    assert "no rule can allow it" in result["error"]["message"]
    assert "lifts" not in result["error"]["message"]


async def test_a_cancellation_that_nobody_asked_for_is_a_failure_of_the_tool() -> None:
    @tool(name="give")
    async def waits() -> None:
        """Wait for something that somebody has cancelled."""
        never = asyncio.get_running_loop().create_future()
        never.cancel()
        await never

    assert (await call(waits)).error_code == "downstream_error"
    async with open_test_session(tools=[waits]) as session:
        results = await session.batch([ToolCall("give", {}, "1"), ToolCall("wait", {"seconds": 0.1}, "2")])
    assert [result.status for result in results] == ["error", "success"]
