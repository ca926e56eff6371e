"""The tools `save_memory` and `recall_memory`, and the service that others read the memory by."""

from __future__ import annotations

from typing import Annotated, Any

import anyio.to_thread
from pydantic import Field

from handrail import Read, Service, ServiceContext, ToolContext, Write, tool
from handrail.text import make_visible
from handrail_session.memory_store import MAX_FACT, FactFile, MemoryScope, list_fact_files, recall_facts

# Facts that one answer holds.
MAX_SHOWN_FACTS = 100


class SessionMemory:
    """Memory that outlasts a session (`handrail.Memory`)."""

    def __init__(self, shelves: tuple[FactFile, ...]) -> None:
        self.shelves = shelves

    async def text(self) -> str:
        """Return all facts as Markdown; empty if there are none."""
        return await anyio.to_thread.run_sync(self._text)

    def shelf(self, scope: MemoryScope) -> FactFile:
        """Return the facts of a scope; the user's if the session has no project."""
        return next((shelf for shelf in self.shelves if shelf.scope == scope), self.shelves[0])

    async def close(self) -> None:
        """Do nothing: no resources are held open."""

    def _text(self) -> str:
        held = ((shelf.title, shelf.facts()) for shelf in self.shelves)
        return "\n".join(
            "\n".join([f"# {title}", "", *(f"- {make_visible(fact)}" for fact in facts), ""])
            for title, facts in held
            if facts
        )


async def open_memory(context: ServiceContext) -> SessionMemory:
    """Open the memory of the session's user and project."""
    return SessionMemory(list_fact_files(context.data, context.workspace))


MEMORY_SERVICE = Service("memory", open_memory, scope="session")


@tool(layer="session", title="Remember", effects=[Write("memory", arg="fact")], trusted=True)
async def save_memory(
    fact: Annotated[str, Field(max_length=4 * MAX_FACT, description="One sentence that stands by itself; no secrets.")],
    scope: Annotated[MemoryScope, Field(description="Whom it is about: the person, or this workspace.")] = "user",
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Remember a fact beyond this session, when asked to or when it will matter. Returns fact, and saved: false if known."""
    memories = _create_memory(context)
    kept, saved = await anyio.to_thread.run_sync(memories.shelf(scope).add, fact)
    return {"fact": kept, "saved": saved}


@tool(layer="session", title="Recall", effects=[Read("memory")], trusted=True)
async def recall_memory(
    query: Annotated[
        str | None, Field(max_length=200, description="Words that a fact must hold; default: all.")
    ] = None,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """See what was remembered in earlier sessions. Returns facts (scope, fact), oldest first, and total_count."""
    found = await anyio.to_thread.run_sync(lambda: list(recall_facts(_create_memory(context).shelves, query)))
    shown = [{"scope": scope, "fact": make_visible(fact)} for scope, fact in found[-MAX_SHOWN_FACTS:]]
    return {"facts": shown, "total_count": len(found)}


def _create_memory(context: ToolContext) -> SessionMemory:
    return SessionMemory(list_fact_files(context.data, context.workspace))
