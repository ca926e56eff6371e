"""Tools for artifacts, available while the session holds a suitable one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Protocol

from handrail.api.tool import Tool
from handrail.artifacts.queries import ArtifactQuery
from handrail.artifacts.store import Artifact, ArtifactStore


class ArtifactSession(Protocol):
    """A session, as far as these tools need it."""

    @property
    def artifacts(self) -> ArtifactStore: ...


class ArtifactTools:
    """The toolset of core: `list_artifacts`, and for each kind that a session holds, what can be asked of it."""

    names = ("list_artifacts", "artifact_*")

    async def tools(self, session: ArtifactSession) -> Iterable[Tool]:
        """Return the tools for the held artifacts; the same ones as before while these have not changed."""
        if not len(session.artifacts):
            return ()
        return session.artifacts.forged(_build_tools)


def _build_tools(held: Sequence[Artifact]) -> list[Tool]:
    from handrail.artifacts.text_queries import ARTIFACT_QUERIES, LIST_TOOL

    tools = [LIST_TOOL]
    for each in _deduplicate_queries(
        [*ARTIFACT_QUERIES, *(own for artifact in held for own in type(artifact).queries)]
    ):
        handles = [artifact.id for artifact in held if isinstance(artifact, each.fits)]
        tools += [each.tool(handles)] if handles else []
    return tools


def _deduplicate_queries(queries: Iterable[ArtifactQuery]) -> list[ArtifactQuery]:
    return list({each.name: each for each in queries}.values())
