"""What a session holds, as resources."""

from __future__ import annotations

from typing import Any

import anyio
import pytest
from mcp import Client, MCPError, types

from .place import ERAS, LEGACY, MODERN, Place

both_eras = pytest.mark.parametrize("era", ERAS)
LINES = 9_000


async def pages(client: Client, uri: str) -> list[types.TextResourceContents]:
    """Every page of a resource, by what each says of the next."""
    found: list[types.TextResourceContents] = []
    following: str | None = uri
    while following is not None:
        (content,) = (await client.read_resource(following)).contents
        assert isinstance(content, types.TextResourceContents)
        found.append(content)
        following = (content.meta or {})["handrail/page"].get("next")
    return found


def told(content: types.TextResourceContents) -> str:
    """The text between the lines of its envelope."""
    opening, _, rest = content.text.partition("\n")
    text, _, closing = rest.rpartition("\n")
    marked, boundary, *_ = opening.rstrip(">").split(" ")
    assert marked == "<untrusted"
    assert closing == f"</untrusted {boundary}>"
    assert set(content.meta or {}) <= {"handrail/page"}
    return text


@both_eras
async def test_a_long_result_is_a_resource_that_is_read_page_by_page_and_whole(place: Place, era: str):
    async with place.client(era) as client:
        assert (await client.list_resources()).resources == []
        await client.call_tool("lines", {"to": LINES})
        (listed,) = (await client.list_resources()).resources
        read = await pages(client, listed.uri)
        (template,) = (await client.list_resource_templates()).resource_templates
    assert template.uri_template == "handrail://artifacts/{id}{?page}"
    assert len(read) > 3
    assert all(len(told(content).encode()) <= 51_200 + 3 for content in read)
    whole = "".join(map(told, read))
    assert len(whole.encode()) == listed.size
    assert whole == "".join(f"line {number} ä€\U0001f600\n" for number in range(LINES))
    assert listed.mime_type == "text/plain"


ELSEWHERE = (
    "handrail://artifacts/a2",
    "handrail://artifacts/a1?page=0",
    "handrail://artifacts/a1?page=999999",
    "handrail://artifacts/a1?page=1&page=2",
    "handrail://artifacts/../a1",
    "handrail://artifacts/%2e%2e/a1",
    "handrail://memory",
    "file:///etc/passwd",
    "x",
)


@both_eras
async def test_no_other_address_is_read(place: Place, era: str):
    codes: list[int] = []
    async with place.client(era) as client:
        await client.call_tool("lines", {"to": LINES})
        for uri in ELSEWHERE:
            with pytest.raises(MCPError) as refused:
                await client.read_resource(uri)
            codes.append(refused.value.error.code)
        assert (await client.read_resource("handrail://artifacts/a1")).contents
    assert set(codes) == {types.INVALID_PARAMS}


async def test_another_sessions_artifact_is_not_there(place: Place):
    async with place.client(LEGACY) as one, place.client(LEGACY) as other:
        await one.call_tool("lines", {"to": LINES})
        assert (await other.list_resources()).resources == []
        with pytest.raises(MCPError):
            await other.read_resource("handrail://artifacts/a1")


@both_eras
async def test_a_new_resource_is_announced(place: Place, era: str):
    heard = anyio.Event()

    async def hear(message: Any) -> None:
        if isinstance(message, types.ResourceListChangedNotification):
            heard.set()

    async with place.client(era, hear=hear) as client:
        await client.list_resources()
        with anyio.fail_after(30):
            if era == MODERN:
                async with client.listen(resources_list_changed=True) as changes:
                    await client.call_tool("lines", {"to": LINES})
                    await anext(aiter(changes))
            else:
                await client.call_tool("lines", {"to": LINES})
                await heard.wait()


@both_eras
async def test_what_a_plugin_remembers_is_a_resource(place: Place, era: str):
    place.environment["HANDRAIL_PLUGINS"] = "mcp,mcp_stage,mcp_memory"
    async with place.client(era) as client:
        (listed,) = (await client.list_resources()).resources
        (content,) = await pages(client, listed.uri)
    assert (listed.uri, listed.name) == ("handrail://memory", "memory")
    assert told(content) == "- likes tea"


async def test_the_listing_comes_in_pages(place: Place):
    async with place.client(LEGACY) as client:
        for _ in range(3):
            await client.call_tool("lines", {"to": LINES})
        first = await client.list_resources()
        assert first.next_cursor is None
        assert [resource.name for resource in first.resources] == ["a1", "a2", "a3"]
        with pytest.raises(MCPError):
            await client.list_resources(cursor="-1")
