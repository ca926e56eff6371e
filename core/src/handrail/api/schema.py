"""From a typed function to the pydantic model of its arguments, and from a model to the JSON Schema that models see."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping
from typing import Any, cast, get_type_hints

from pydantic import BaseModel, ConfigDict, RootModel, create_model
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator

from handrail.errors import PluginError
from handrail.json_types import is_list, is_object

__all__ = ["ExternalArguments"]

# How long a text may be is told to whoever breaks it: in a declaration it costs more than it says.
LENGTH_KEYWORDS = frozenset({"minLength", "maxLength"})
# Keys whose values are data, not schemas: nothing in them is a title to be dropped.
DATA_KEYS = frozenset({"default", "const", "enum", "examples", "example"})
# The same for the schemas that pydantic validates by, and the types in them that have items.
CORE_DATA_KEYS = frozenset({"default", "expected", "metadata", "serialization", "config", "function", "members", "cls"})
SEQUENCES = frozenset({"list", "set", "frozenset", "tuple"})

# Without one of these lines a docstring says nothing of parameters in any style, and need not be parsed: the parser is slow to import.
DOC_SECTION = re.compile(r"^\s*(?:[:@]\w|-{3,}|[\w ]+:\s*$)", re.MULTILINE)


class BaseArguments(BaseModel):
    """The base of every model made from a signature."""

    # No name of a parameter is reserved: those that models need for themselves get another field.
    model_config = ConfigDict(extra="forbid", protected_namespaces=(), defer_build=True)


class ExternalArguments(BaseModel):
    """Arguments that fit a JSON Schema which no model of ours describes."""

    args: dict[str, Any]


def model_from_signature(
    function: Callable[..., Any], *, name: str, injected: type, known_as: str = ""
) -> tuple[type[BaseModel], str | None, dict[str, str]]:
    """The model of a function's parameters, the name of its `injected` parameter, and fields whose name differs from the parameter's.

    The injected parameter is annotated with the class `injected` or one derived from it, or with the name `known_as`, which need not be imported.
    A function with one parameter that is a pydantic model takes that model as it is. Raises `PluginError` for `*args`, `**kwargs`,
    positional-only parameters and parameters without a type.
    """
    hints = get_type_hints(function, localns={known_as or injected.__name__: injected}, include_extras=True)
    context = None
    fields: dict[str, Any] = {}
    renamed: dict[str, str] = {}
    described = _parse_parameter_docs(function)
    for parameter in inspect.signature(function).parameters.values():
        if is_derived_from(hints.get(parameter.name), injected):
            context = parameter.name
            continue
        annotation = _require_annotation(parameter, hints, name)
        info = _build_field_info(annotation, parameter)
        if info.description is None and parameter.name in described:
            info.description = described[parameter.name]
        field = _choose_field_name(parameter.name, taken={*fields, *hints})
        if field != parameter.name:
            info.alias = info.validation_alias = info.serialization_alias = parameter.name
            renamed[parameter.name] = field
        fields[field] = (annotation, info)
    model = create_model(f"{name}_arguments", __base__=BaseArguments, **fields)
    return model, context, renamed


def is_derived_from(hint: Any, kind: type) -> bool:
    """True if an annotation is the class or one derived from it; protocols, which `issubclass` refuses, included."""
    return isinstance(hint, type) and kind in hint.__mro__


def find_sole_model(function: Callable[..., Any], *, injected: type, known_as: str = "") -> type[BaseModel] | None:
    """Return the pydantic model that is the function's only parameter besides the injected one, or None."""
    names = list(inspect.signature(function).parameters)
    if len(names) > 2:
        return None
    hints = get_type_hints(function, localns={known_as or injected.__name__: injected})
    own = [hints.get(name) for name in names if not is_derived_from(hints.get(name), injected)]
    if len(own) == 1 and isinstance(own[0], type) and issubclass(own[0], BaseModel):
        return own[0]
    return None


def forbid_extras(model: type[BaseModel]) -> type[BaseModel]:
    """Return the model, set to reject unknown keys. Raises `PluginError` if it allows extras or is a RootModel."""
    if issubclass(model, RootModel):
        raise PluginError(
            f"the parameter model {model.__name__} is a RootModel",
            hint="parameters are an object: use a model with one field for each argument",
        )
    extra = model.model_config.get("extra")
    if extra == "forbid":
        return model
    if extra is not None:
        raise PluginError(
            f"the parameter model {model.__name__} has extra={extra!r}",
            hint='leave `extra` out or set it to "forbid": unknown arguments are errors',
        )
    return cast(
        "type[BaseModel]",
        type(
            model.__name__,
            (model,),
            {
                "model_config": ConfigDict(extra="forbid", defer_build=True),
                "__module__": model.__module__,
                "__doc__": model.__doc__,
            },
        ),
    )


def failing_fast(model: type[BaseModel]) -> Callable[[Any], Any]:
    """Return a validation function for the model that reports only the first invalid item of a list.

    Intended for large arguments: reporting each of many items takes a thousand times the memory of the items.
    """
    model.model_rebuild()
    core: Any = _fail_fast(model.__pydantic_core_schema__)
    try:
        # Otherwise models within the model would validate as they do by themselves.
        validator = SchemaValidator(core, _use_prebuilt=False)
    except TypeError:
        validator = SchemaValidator(core)
    return validator.validate_python


def _fail_fast(node: Any) -> Any:
    if is_list(node):
        return [_fail_fast(item) for item in node]
    if not is_object(node):
        return node
    changed = {key: value if key in CORE_DATA_KEYS else _fail_fast(value) for key, value in node.items()}
    return {**changed, "fail_fast": True} if node.get("type") in SEQUENCES and "items_schema" in node else changed


def build_json_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the model's JSON Schema without titles; `{"type": "object", "properties": {}}` if it has no fields.

    Raises `PluginError` if the schema is not that of an object.
    """
    schema = _strip_titles(model.model_json_schema())
    if schema.get("type") != "object":
        raise PluginError(
            f"the parameters of {model.__name__} are of type {schema.get('type')!r}",
            hint="parameters are an object: use a pydantic model with one field for each argument",
        )
    if not schema.get("properties"):
        return {"type": "object", "properties": {}}
    schema.pop("description", None)
    for part in schema.get("$defs", {}).values():
        # What it is stands with the argument that takes it; a class's docstring is for those who read the code.
        part.pop("description", None)
    return schema


def _require_annotation(parameter: inspect.Parameter, hints: Mapping[str, Any], name: str) -> Any:
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
        raise PluginError(
            f"tool {name!r}: parameter {parameter.name!r} is {parameter.kind.description}",
            hint="name every argument: a model calls tools by keyword",
        )
    if parameter.name not in hints:
        raise PluginError(
            f"tool {name!r}: parameter {parameter.name!r} has no type", hint="annotate it, for example `x: int`"
        )
    return hints[parameter.name]


def _build_field_info(annotation: Any, parameter: inspect.Parameter) -> FieldInfo:
    """Return the pydantic field info of a parameter; its own default overrides one in the annotation."""
    if parameter.default is parameter.empty:
        return FieldInfo.from_annotation(annotation)
    return FieldInfo.from_annotated_attribute(annotation, parameter.default)


def _choose_field_name(parameter: str, *, taken: Collection[str]) -> str:
    """Return the parameter's name, or another if it is a model attribute or pydantic would treat it as private."""
    if not hasattr(BaseArguments, parameter) and not parameter.startswith("_"):
        return parameter
    name = f"{parameter.strip('_')}_argument".lstrip("_")
    while name in taken:
        name = f"{name}_"
    return name


def fields_by_argument(model: type[BaseModel]) -> Mapping[str, str]:
    """Return the model's field for each argument, by the name that callers and the schema use."""
    return {
        info.validation_alias if isinstance(info.validation_alias, str) else info.alias or name: name
        for name, info in model.model_fields.items()
    }


def _parse_parameter_docs(function: Callable[..., Any]) -> dict[str, str]:
    doc = inspect.getdoc(function)
    if not doc or not DOC_SECTION.search(doc):
        return {}
    import docstring_parser

    parsed = docstring_parser.parse(doc)
    return {param.arg_name: " ".join(param.description.split()) for param in parsed.params if param.description}


def extract_summary(function: Callable[..., Any]) -> str:
    """Return a function's docstring without the section on its parameters."""
    doc = inspect.getdoc(function) or ""
    if not DOC_SECTION.search(doc):
        return doc
    import docstring_parser

    parsed = docstring_parser.parse(doc)
    if not parsed.params:
        return doc
    return "\n\n".join(part for part in (parsed.short_description, parsed.long_description) if part)


def _shorten_optional(prop: dict[str, Any]) -> dict[str, Any]:
    """Return an optional property without "or null": omitting the argument has the same meaning, in fewer tokens."""
    choices = prop.get("anyOf")
    if not is_list(choices) or "default" not in prop or prop["default"] is not None:
        return prop
    others = [choice for choice in choices if choice != {"type": "null"}]
    if len(others) != 1:
        return prop
    rest = {key: value for key, value in prop.items() if key not in ("anyOf", "default")}
    return {**others[0], **rest}


def _strip_titles(node: Any) -> Any:
    if is_object(node):
        return {
            key: value
            if key in DATA_KEYS
            else _shorten_properties(value)
            if key == "properties"
            else _strip_titles(value)
            for key, value in node.items()
            # A discriminator is no word of JSON Schema: each of the alternatives says by a constant what it is.
            if not (key == "title" and isinstance(value, str))
            and not (key == "discriminator" and "oneOf" in node)
            and not (key in LENGTH_KEYWORDS and node.get("type") == "string")
        }
    if is_list(node):
        return [_strip_titles(item) for item in node]
    return node


def _shorten_properties(properties: dict[str, Any]) -> dict[str, Any]:
    return {name: _shorten_optional(_strip_titles(prop)) for name, prop in properties.items()}
