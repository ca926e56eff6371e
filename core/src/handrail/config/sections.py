"""What tables of the configuration are made of."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, StringConstraints
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

Word = Annotated[str, StringConstraints(min_length=1)]
Words = tuple[Word, ...]
T = TypeVar("T")


def _listed(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class _OneOrList:
    """Says in the JSON Schema that one stands for a list of one."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        listed = handler(schema)
        return {"anyOf": [listed["items"], listed]}


# One, or a list of them.
Several = Annotated[tuple[T, ...], BeforeValidator(_listed), _OneOrList()]


class Section(BaseModel):
    """A table of the configuration: unknown keys are errors, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
