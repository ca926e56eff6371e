"""Building blocks of configuration tables."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, GetJsonSchemaHandler, StringConstraints
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

NonEmptyStr = Annotated[str, StringConstraints(min_length=1)]
NonEmptyStrings = tuple[NonEmptyStr, ...]
T = TypeVar("T")


def _wrap_in_list(value: Any) -> Any:
    return [value] if isinstance(value, str) else value


class _OneOrList:
    """Annotation that declares in the JSON Schema that a single value is accepted for a list with one item."""

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        listed = handler(schema)
        return {"anyOf": [listed["items"], listed]}


# One, or a list of them.
OneOrMany = Annotated[tuple[T, ...], BeforeValidator(_wrap_in_list), _OneOrList()]


class ConfigSection(BaseModel):
    """A table of the configuration: unknown keys are errors, and nothing changes after loading."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)
