"""Queries: what can be asked of artifacts, and the tool that asks it, with the handles of those that fit as an enum.

A query is a function of an artifact, whose class says which artifacts fit, and of the model's arguments. It runs in a thread, reads, and gives a
mapping within `artifact.limit` bytes. What it gives back is as trusted as the artifact, and never becomes an artifact itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Annotated, Any, Literal, Protocol, cast, get_type_hints

import anyio
from pydantic import BaseModel, WithJsonSchema, create_model

from handrail.api import schema
from handrail.api.context import CallContext
from handrail.api.tool import Read, Tool
from handrail.artifacts.store import Artifact, CallArtifacts
from handrail.errors import NotFound, PluginError

TIMEOUT_S = 120.0
HANDLE_ARGUMENT = "artifact"


class ArtifactContext(CallContext, Protocol):
    """Context of a call as tools for artifacts use it."""

    @property
    def artifacts(self) -> CallArtifacts: ...


@dataclass(frozen=True, eq=False)
class ArtifactQuery:
    """Query of artifacts of the class `fits`, created by `artifact_query`."""

    name: str
    title: str
    description: str
    fits: type[Artifact]
    ask: Callable[..., Mapping[str, Any]]

    @cached_property
    def arguments(self) -> tuple[type[BaseModel], Mapping[str, str]]:
        """The model of its arguments but for the handle, and its fields whose parameter has another name."""
        model, _, renamed = schema.model_from_signature(self.ask, name=self.name, injected=self.fits)
        return model, renamed

    def tool(self, handles: Sequence[str]) -> Tool:
        """Return the query as a tool for the artifacts with these handles."""
        model, renamed = self.arguments
        # Of one handle, the schema of a literal would say `const`, which fewer models and clients know.
        shown = WithJsonSchema({"type": "string", "enum": list(handles), "description": "Its handle."})
        handle: Any = (Annotated[Literal[tuple(handles)], shown], ...)
        fields: dict[str, Any] = {name: (info.annotation, info) for name, info in model.model_fields.items()}
        params = cast(
            "type[BaseModel]",
            create_model(model.__name__, __base__=schema.BaseArguments, **{HANDLE_ARGUMENT: handle, **fields}),
        )

        async def run(params: BaseModel, context: ArtifactContext) -> Mapping[str, Any]:
            given = {renamed.get(name, name): value for name, value in params.__dict__.items()}
            held = context.artifacts.get(given.pop(HANDLE_ARGUMENT))
            if held is None:
                raise NotFound("the artifact is not there any more")
            reader = held.reader()
            try:
                ask = partial(self.ask, reader, **given)
                return await anyio.to_thread.run_sync(ask, abandon_on_cancel=True)
            finally:
                reader.stop()

        return Tool(
            name=self.name,
            title=self.title,
            description=self.description,
            params=params,
            handler=run,
            layer="artifact",
            effects=[Read("artifact", arg=HANDLE_ARGUMENT)],
            timeout=TIMEOUT_S,
        )


def artifact_query(title: str) -> Callable[[Callable[..., Mapping[str, Any]]], ArtifactQuery]:
    """Make a `ArtifactQuery` of a function whose first parameter is an artifact of the class that fits; its docstring is the description."""

    def make(function: Callable[..., Mapping[str, Any]]) -> ArtifactQuery:
        hints = get_type_hints(function)
        fits = next(iter(hints.values()), None)
        if not (isinstance(fits, type) and issubclass(fits, Artifact)):
            raise PluginError(
                f"the query {function.__name__!r} takes no artifact",
                hint="annotate its first parameter with the class of artifacts that fit",
            )
        return ArtifactQuery(function.__name__, title, schema.extract_summary(function), fits, function)

    return make
