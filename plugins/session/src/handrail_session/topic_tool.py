"""The tool `update_topic`."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from handrail import ToolContext, tool
from handrail.api.events import TopicChanged
from handrail.text import make_visible


# Few hosts show it, and its declaration would cost every agent.
@tool(layer="session", title="Topic", profiles={"all"}, trusted=True)
async def update_topic(
    title: Annotated[str, Field(min_length=1, max_length=100, description="What you do now, in a few words.")],
    summary: Annotated[str | None, Field(max_length=1_000, description="What was done so far.")] = None,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Tell the person who watches what you are at, when another part of the job begins. Returns title."""
    shown = make_visible(" ".join(title.split()))
    told = make_visible(" ".join((summary or "").split()))
    context.stash.set("topic", {"title": shown, "summary": told})
    context.session.bus.publish(TopicChanged(context.call_id, shown, told))
    return {"title": shown}
