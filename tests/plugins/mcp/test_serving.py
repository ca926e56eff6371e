"""`handrail serve` over a real pipe, with the SDK's own clients of both eras."""

from __future__ import annotations

import base64
import re
from typing import Any

import anyio
import pytest
from mcp import types

from .place import ERAS, LEGACY, MODERN, Place, result_fields, result_text, wait_for
from .test_ending import serving

pytestmark = pytest.mark.usefixtures("without_undo")

both_eras = pytest.mark.parametrize("era", ERAS)
ENVELOPE = re.compile(
    r'<untrusted (?P<boundary>[0-9a-f]{12}) tool="(?P<tool>\w+)" call="\w+"(?: from="(?P<origin>[^"]+)")?>\n'
    r"\{.*\}\n</untrusted (?P=boundary)>"
)


async def test_the_plain_session_of_the_sdk_lists_and_calls(place: Place):
    async with place.session() as session:
        listed = (await session.list_tools()).tools
        result = await session.call_tool("wait", {"seconds": 0.1})
    assert [tool.name for tool in listed][:2] == ["wait", "get_action_history"]
    assert not result.is_error
    assert result_fields(result)["waited_seconds"] >= 0.1


@both_eras
async def test_tools_are_listed_with_schema_title_and_hints(place: Place, era: str):
    async with place.client(era) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert tools["scribble"].title == "Scribble"
    assert tools["scribble"].input_schema["required"] == ["word"]
    assert tools["see_tree"].input_schema == {"type": "object", "properties": {}}
    assert hints(tools["pictures"]) == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert hints(tools["scribble"]) == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }
    assert hints(tools["arrange"]) == {
        "readOnlyHint": False,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }
    assert hints(tools["post"]) == {
        "readOnlyHint": False,
        "destructiveHint": True,
        "idempotentHint": False,
        "openWorldHint": True,
    }


def hints(tool: types.Tool) -> dict[str, Any]:
    assert tool.annotations is not None
    return tool.annotations.model_dump(by_alias=True, exclude_none=True)


async def test_both_eras_are_really_served(place: Place):
    async with place.client(LEGACY) as client:
        assert client.protocol_version == "2025-11-25"
    async with place.client(MODERN) as client:
        assert client.protocol_version == "2026-07-28"


@both_eras
async def test_instructions_say_what_denied_means(place: Place, era: str):
    async with place.client(era) as client:
        assert "denied_by_user: a person said no" in (client.instructions or "")


async def test_the_order_of_tools_is_the_same_at_every_listing(place: Place):
    async with place.client(LEGACY) as client:
        first = [tool.name for tool in (await client.list_tools()).tools]
        await client.call_tool("wait", {"seconds": 0.1})
        assert [tool.name for tool in (await client.list_tools()).tools] == first


@both_eras
@pytest.mark.parametrize(("name", "code"), [("plan_it", "tool_unavailable"), ("plan_its", "unknown_tool")])
async def test_a_hidden_and_an_unknown_tool_are_refused_as_results(place: Place, era: str, name: str, code: str):
    async with place.client(era) as client:
        assert name not in [tool.name for tool in (await client.list_tools()).tools]
        result = await client.call_tool(name, {})
        assert (await client.call_tool("see_tree", {})).is_error is False
    assert result.is_error
    assert result_fields(result)["error"]["code"] == code


async def test_arguments_that_do_not_fit_are_a_result_that_names_them(place: Place):
    async with place.client(LEGACY) as client:
        result = await client.call_tool("wait", {"seconds": "soon", "until": None, "extra": 1})
    assert result_fields(result)["error"]["code"] == "invalid_arguments"
    assert {problem["field"] for problem in result_fields(result)["error"]["details"]["problems"]} == {
        "seconds",
        "extra",
    }


@both_eras
async def test_a_changed_backend_reaches_the_client_by_itself(place: Place, era: str):
    async with place.client(era) as client:
        assert "see_tree" in [tool.name for tool in (await client.list_tools()).tools]
        if era == MODERN:
            async with client.listen(tools_list_changed=True) as changes:
                place.configure('backend = "planner"\n')
                with anyio.fail_after(20):
                    await anext(aiter(changes))
        else:
            place.configure('backend = "planner"\n')
            with anyio.fail_after(20):
                await place.changes.wait()
        names = [tool.name for tool in (await client.list_tools()).tools]
        refused = await client.call_tool("see_tree", {})
    assert "plan_it" in names
    assert "see_tree" not in names
    assert result_fields(refused)["error"]["code"] == "tool_unavailable"


async def test_a_change_that_leaves_the_list_as_it_was_is_not_announced(place: Place):
    async with place.client(LEGACY) as client:
        await client.list_tools()
        place.configure('backend = "treeish"\nmode = "headless"\n')
        # The mode shows that the file was taken over.
        await wait_until_denied_by(client, "mode:headless")
        assert not place.changes.is_set()


async def wait_until_denied_by(client: Any, rule: str) -> None:
    with anyio.fail_after(30):
        while True:
            result = result_fields(await client.call_tool("scribble", {"word": "x"}))
            if result["error"]["details"]["rule"] == rule:
                return
            await anyio.sleep(0.05)


async def test_a_broken_configuration_changes_nothing_and_ends_nothing(place: Place):
    async with place.client(LEGACY) as client:
        before = (await client.list_tools()).tools
        place.configure("backend = [\n")
        place.configure('backend = "treeish"\nmode = "headless"\n')
        await wait_until_denied_by(client, "mode:headless")
        assert (await client.list_tools()).tools == before


@both_eras
async def test_pictures_are_given_once_and_as_pictures(place: Place, era: str):
    async with place.client(era) as client:
        result = await client.call_tool("pictures", {})
    _, shot, kept, sound = result.content
    assert isinstance(shot, types.ImageContent)
    assert isinstance(kept, types.ImageContent)
    assert isinstance(sound, types.AudioContent)
    assert shot.data == kept.data
    assert {shot.mime_type, kept.mime_type} == {"image/png"}
    assert base64.b64decode(sound.data) == b"RIFF"
    assert shot.data not in result_text(result)
    image, audio, document = result_fields(result)["media"]
    assert image == {"type": "image", "mime_type": "image/png", "text": "a red dot"}
    assert audio == {"type": "audio", "mime_type": "audio/wav"}
    assert document["path"].endswith(".pdf")


@both_eras
async def test_untrusted_text_is_in_an_envelope_that_names_its_source(place: Place, era: str):
    async with place.client(era) as client:
        results = [await client.call_tool(name, {}) for name in ("see_tree", "see_tree", "oddities")]
        ours = await client.call_tool("wait", {"seconds": 0.1})
    envelopes = [ENVELOPE.fullmatch(result_text(result)) for result in results]
    named = [(found["tool"], found["origin"]) for found in envelopes if found is not None]
    assert named == [("see_tree", "the screen"), ("see_tree", "the screen"), ("oddities", None)]
    assert len({found["boundary"] for found in envelopes if found is not None}) == 3
    assert result_text(ours).startswith("{")


EVERY_KIND_OF_RESULT = {
    "own-result": ("wait", {"seconds": 0.1}),
    "untrusted-text": ("see_tree", {}),
    "pictures": ("pictures", {}),
    "error": ("wait", {"seconds": "soon"}),
    "denial": ("scribble", {"word": "hello"}),
    "hidden-tool": ("plan_it", {}),
}


@pytest.mark.parametrize(("name", "args"), EVERY_KIND_OF_RESULT.values(), ids=EVERY_KIND_OF_RESULT)
def test_a_result_sends_nothing_beside_its_content(place: Place, name: str, args: dict[str, Any]):
    with serving(place) as server:
        server.call(2, name, args)
        sent = server.answer(2)["result"]
    assert set(sent) == {"content", "isError"}
    # Claude Code passes on the first block alone when a call failed.
    assert [block["type"] for block in sent["content"]].index("text") == 0


@both_eras
async def test_no_tool_declares_an_output_schema(place: Place, era: str):
    async with place.client(era) as client:
        tools = (await client.list_tools()).tools
    assert tools
    assert not [tool.name for tool in tools if tool.output_schema is not None]


@both_eras
async def test_the_text_of_a_denial_and_of_an_error_is_complete(place: Place, era: str):
    async with place.client(era) as client:
        denied = await client.call_tool("scribble", {"word": "hello"})
        failed = await client.call_tool("wait", {"seconds": "soon"})
    assert denied.is_error
    assert failed.is_error
    for result, status, code in ((denied, "denied", "no_confirmer"), (failed, "error", "invalid_arguments")):
        fields = result_fields(result)
        assert set(fields) == {"status", "error", "voice_message", "duration_ms"}
        assert set(fields["error"]) == {"code", "message", "retryable", "details"}
        assert (fields["status"], fields["error"]["code"]) == (status, code)


async def test_what_json_cannot_say_does_not_end_the_server(place: Place):
    async with place.client(LEGACY) as client:
        result = await client.call_tool("oddities", {})
        assert result_fields(result) | {"duration_ms": 0} == {
            "status": "success",
            "name": "lone \ufffd",
            "removed": {"invalid_utf8": 1},
            "ratio": None,
            "list": [None],
            "duration_ms": 0,
        }
        assert not (await client.call_tool("see_tree", {})).is_error


@both_eras
async def test_progress_only_ever_rises_and_ends_before_the_result(place: Place, era: str):
    told: list[tuple[float, float | None, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        told.append((progress, total, message))

    async with place.client(era) as client:
        result = await client.call_tool("count", {"to": 12}, progress_callback=hear)
        await wait_for(lambda: any("11" in (message or "") for _, _, message in told))
    values = [value for value, _, _ in told]
    assert not result.is_error
    assert len(values) >= 3
    assert values == sorted(set(values))
    assert {total for _, total, _ in told} == {100.0}
