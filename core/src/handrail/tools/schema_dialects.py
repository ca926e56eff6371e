"""JSON Schema dialects of the vendors, and conversion of a schema to what a dialect supports.

Unsupported parts are expressed in the description instead, which keeps the model informed; arguments are validated
against the tool's own schema in any case.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from handrail.errors import PluginError
from handrail.json_types import is_list, is_mapping, is_object

JsonSchema = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaDialect:
    """Capabilities of one declaration format.

    `name`, `key`: patterns of a tool's name and of a parameter's. `keywords`: the supported schema keywords; None for
    all, including `$ref` and unions of any kind. `formats`: values of `format`. `nullable`: null is expressed by a
    keyword of that name. `word_enums`: only strings may be enumerated. `closed`: every property is required and
    additional ones are forbidden. `sole_unions`: no other keyword is allowed next to `anyOf`. `capitals`: type names
    are in capitals. `root_unions`: the arguments object itself may be a union.
    """

    name: re.Pattern[str] = re.compile(r"[a-zA-Z0-9_-]{1,64}")
    key: re.Pattern[str] | None = None
    keywords: frozenset[str] | None = None
    formats: frozenset[str] | None = None
    nullable: bool = False
    word_enums: bool = False
    closed: bool = False
    sole_unions: bool = False
    capitals: bool = False
    root_unions: bool = False


_COMMON_KEYWORDS = frozenset(
    {"type", "description", "enum", "properties", "required", "items", "anyOf", "minimum", "maximum", "pattern"}
    | {"format", "minItems", "maxItems"}
)
OPENAI = SchemaDialect()
# https://platform.openai.com/docs/guides/structured-outputs#supported-schemas
OPENAI_STRICT = SchemaDialect(
    keywords=_COMMON_KEYWORDS | {"const", "additionalProperties", "multipleOf", "exclusiveMinimum", "exclusiveMaximum"},
    formats=frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}),
    closed=True,
)
# https://docs.claude.com/en/docs/agents-and-tools/tool-use/implement-tool-use
ANTHROPIC = SchemaDialect(name=re.compile(r"[a-zA-Z0-9_-]{1,128}"), key=re.compile(r"[a-zA-Z0-9_.-]{1,64}"))
# https://ai.google.dev/api/caching#Schema
GEMINI = SchemaDialect(
    name=re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,63}"),
    keywords=_COMMON_KEYWORDS | {"nullable", "minLength", "maxLength", "minProperties", "maxProperties"},
    formats=frozenset({"date-time", "float", "double", "int32", "int64"}),
    nullable=True,
    word_enums=True,
    sole_unions=True,
    capitals=True,
)
# https://modelcontextprotocol.io/specification/draft/server/tools
MCP = SchemaDialect(name=re.compile(r"[A-Za-z0-9_.-]{1,128}"), root_unions=True)

# What is said only where a dialect wants it said.
LENGTH_KEYWORDS = frozenset({"minLength", "maxLength"})
CLOSED_KEYWORDS = frozenset({"additionalProperties"})
# Keywords that say nothing to a model.
SILENT_KEYWORDS = frozenset(
    {
        "$schema",
        "$id",
        "$comment",
        "$defs",
        "definitions",
        "title",
        "discriminator",
        "readOnly",
        "writeOnly",
        "nullable",
    }
)
KEYWORD_SENTENCES = {
    "default": "Default: {}.",
    "multipleOf": "A multiple of {}.",
    "exclusiveMinimum": "More than {}.",
    "exclusiveMaximum": "Less than {}.",
    "minLength": "At least {} characters.",
    "maxLength": "At most {} characters.",
    "enum": "One of {}.",
    "format": "Format: {}.",
    "examples": "For example {}.",
}
JSON_TYPES = ("string", "number", "boolean", "object", "array")
TYPE_NAMES: Mapping[type[Any], str] = {str: "string", bool: "boolean", int: "integer", float: "number"}


def _drop_redundant(node: Any) -> Any:
    """Return the schema without what models take for granted: no additional keys, and string lengths.

    Calls are validated here in any case.
    """
    if is_object(node):
        closed = node.get("additionalProperties") is False
        gone = LENGTH_KEYWORDS if node.get("type") == "string" else CLOSED_KEYWORDS if closed else frozenset[str]()
        return {key: _drop_redundant(value) for key, value in node.items() if key not in gone}
    return [_drop_redundant(each) for each in node] if is_list(node) else node


def fit_schema(schema: Mapping[str, Any], dialect: SchemaDialect, *, tool: str) -> JsonSchema:
    """Return the schema of a tool's arguments in a dialect. Raises `PluginError` for what it cannot express."""
    for key in schema.get("properties", {}):
        if dialect.key is not None and not dialect.key.fullmatch(key):
            raise PluginError(
                f"tool {tool!r}: the parameter {key!r} cannot be declared; names fit {dialect.key.pattern!r}"
            )
    given = dict(schema) if dialect.root_unions else _merge_shapes(schema)
    if dialect.keywords is None:
        return _drop_redundant(given)
    return _SchemaFitter(dialect, given, tool).node(given)


def _merge_shapes(schema: Mapping[str, Any]) -> JsonSchema:
    """Merge a union of argument objects into one, with a sentence on which arguments belong together."""
    root = _merge_all_of(dict(schema), "allOf")
    choices: list[JsonSchema] = [*root.pop("anyOf", ()), *root.pop("oneOf", ())]
    if not choices:
        return root
    needed = [list(choice.get("required", ())) for choice in choices]
    shared = [name for name in needed[0] if all(name in others for others in needed)]
    properties: JsonSchema = {}
    for choice in (root, *choices):
        properties |= {key: value for key, value in choice.get("properties", {}).items() if key not in properties}
    root |= {"properties": properties, "required": [*root.get("required", ()), *shared]}
    told = "; or ".join(", ".join(names) or "nothing" for names in needed)
    return _append_description(root, [f"One of these is needed: {told}."])


def _merge_all_of(node: JsonSchema, keyword: str) -> JsonSchema:
    """Return the node with the schemas of `allOf` merged into it."""
    for part in cast("list[JsonSchema]", node.pop(keyword, [])):
        properties = {**node.get("properties", {}), **part.get("properties", {})}
        required = [*node.get("required", ()), *part.get("required", ())]
        node = {**part, **node}
        node |= {"properties": properties} if properties else {}
        node |= {"required": list(dict.fromkeys(required))} if required else {}
    return node


def _append_description(node: JsonSchema, sentences: Iterable[str]) -> JsonSchema:
    """Return the node with sentences appended to its description."""
    said = [str(node.get("description", "")), *sentences]
    text = " ".join(part if part[-1] in ".!?:)" else f"{part}." for part in said if part)
    return {**node, "description": text} if text or "description" in node else node


def resolve_ref(ref: str, root: Mapping[str, Any]) -> JsonSchema | None:
    """Return the target of a `$ref` in a schema, or None if it is not found there."""
    node: Any = root
    for part in ref.removeprefix("#").strip("/").split("/"):
        key = part.replace("~1", "/").replace("~0", "~")
        if not is_mapping(node) or key not in node:
            return None
        node = node[key]
    return dict(node) if is_mapping(node) else None


def _format_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class _SchemaFitter:
    """One schema on its way into a dialect that understands only some keywords."""

    def __init__(self, dialect: SchemaDialect, root: JsonSchema, tool: str) -> None:
        self._dialect = dialect
        self._root = root
        self._tool = tool

    def node(self, given: Any, above: Sequence[str] = ()) -> JsonSchema:
        """Return a schema, or a part of one inside the definitions `above`, in the dialect."""
        if not is_object(given) or not given:
            return self._anything()
        node, above = self._found(given, above)
        node = _merge_all_of(node, "allOf")
        node, null = self._without_null(self._as_union(node))
        node = self._alone(node)
        if "$ref" in node:
            fitting = self.node(node, above)
        elif "anyOf" in node:
            fitting = self._union(node, above)
        else:
            fitting = self._plain(node, above)
        return self._or_null(fitting) if null else fitting

    def _found(self, node: JsonSchema, above: Sequence[str]) -> tuple[JsonSchema, Sequence[str]]:
        """Resolve the node's `$ref`, with the node's own keywords taking precedence.

        A recursive or unknown reference becomes a type with a description.
        """
        while (ref := node.get("$ref")) is not None:
            rest = {key: value for key, value in node.items() if key != "$ref"}
            word = str(ref).rpartition("/")[2]
            found = resolve_ref(str(ref), self._root)
            if ref in above or found is None:
                return {
                    "type": (found or {}).get("type", "object"),
                    **_append_description(rest, [f"It is a {word}"]),
                }, above
            node, above = {**found, **rest}, (*above, str(ref))
        return dict(node), above

    def _as_union(self, node: JsonSchema) -> JsonSchema:
        """Return the node with all its alternatives under `anyOf`, including those of a list of types."""
        if "oneOf" in node:
            node["anyOf"] = [*node.get("anyOf", ()), *node.pop("oneOf")]
        if is_list(types := node.get("type")):
            rest = {key: value for key, value in node.items() if key not in ("type", "description")}
            told = {"description": node["description"]} if "description" in node else {}
            others = [{**rest, "type": kind} for kind in types if kind != "null"]
            node = {**told, "anyOf": [*others, *([{"type": "null"}] if "null" in types else [])]}
        if "anyOf" in node and all(set(choice) <= {"required"} for choice in node["anyOf"]):
            needed = "; or ".join(", ".join(choice.get("required", ())) for choice in node.pop("anyOf"))
            node = _append_description(node, [f"One of these is needed: {needed}."])
        return node

    def _without_null(self, node: JsonSchema) -> tuple[JsonSchema, bool]:
        null = node.get("nullable") is True or node.get("type") == "null"
        if None in (values := node.get("enum", ())):
            node, null = {**node, "enum": [value for value in values if value is not None]}, True
        if "anyOf" in node:
            others = [choice for choice in node["anyOf"] if choice.get("type") != "null"]
            node, null = {**node, "anyOf": others}, null or len(others) < len(node["anyOf"])
        return node, null

    def _alone(self, node: JsonSchema) -> JsonSchema:
        """Return the node with a single alternative merged into it."""
        if len(node.get("anyOf", ())) != 1:
            return node
        rest = {key: value for key, value in node.items() if key != "anyOf"}
        return _merge_all_of({**node["anyOf"][0], **rest}, "allOf")

    def _or_null(self, node: JsonSchema) -> JsonSchema:
        if not self._dialect.nullable:
            if "anyOf" in node:
                return {**node, "anyOf": [*node["anyOf"], {"type": "null"}]}
            told = {"description": node.pop("description")} if "description" in node else {}
            return {**told, "anyOf": [node, {"type": "null"}]}
        if "anyOf" in node:
            first, *others = node["anyOf"]
            return {**node, "anyOf": [{**first, "nullable": True}, *others]}
        return {**node, "nullable": True}

    def _union(self, node: JsonSchema, above: Sequence[str]) -> JsonSchema:
        said = ("anyOf", "description", "default")
        beside = {key: value for key, value in node.items() if key not in said and key not in SILENT_KEYWORDS}
        choices = [self.node({**beside, **choice}, above) for choice in node["anyOf"]]
        told = _append_description(
            {"description": node.get("description", "")}, self._notes({"default": node.get("default")})
        )
        if not told["description"]:
            return {"anyOf": choices}
        if not self._dialect.sole_unions:
            return {**told, "anyOf": choices}
        first, *others = choices
        return {"anyOf": [_append_description({**first, **told}, [first.get("description", "")]), *others]}

    def _plain(self, node: JsonSchema, above: Sequence[str]) -> JsonSchema:
        """Return a node of one type in the dialect."""
        node = self._constant(node)
        kind = _find_type(node)
        if kind is None:
            return _append_description(self._anything(), [node.get("description", ""), *self._notes(node)])
        node = self._bounds({**node, "type": kind})
        known: frozenset[str] = self._dialect.keywords or frozenset()
        kept = {key: value for key, value in node.items() if key in known and self._says(key, node)}
        kept["type"] = kind.upper() if self._dialect.capitals else kind
        notes = self._notes({key: value for key, value in node.items() if key not in kept})
        if kind == "array":
            kept["items"] = self._items(node, above)
        if kind == "object":
            kept |= self._object(node, above)
            notes += self._others(node)
        return _append_description(kept, notes)

    def _constant(self, node: JsonSchema) -> JsonSchema:
        if "const" not in node or "const" in (self._dialect.keywords or ()):
            return node
        return {**{key: value for key, value in node.items() if key != "const"}, "enum": [node["const"]]}

    def _bounds(self, node: JsonSchema) -> JsonSchema:
        """Convert exclusive bounds of integers to inclusive ones if the dialect lacks them."""
        for key, inclusive, step in (("exclusiveMinimum", "minimum", 1), ("exclusiveMaximum", "maximum", -1)):
            if key in node and key not in (self._dialect.keywords or ()) and node["type"] == "integer":
                rest = {name: value for name, value in node.items() if name != key}
                node = {**rest, inclusive: int(node[key]) + step}
        return node

    def _says(self, key: str, node: JsonSchema) -> bool:
        """Return True if the dialect supports this value of a supported keyword."""
        if key == "format":
            return self._dialect.formats is None or node[key] in self._dialect.formats
        if key == "enum" and self._dialect.word_enums:
            return node["type"] == "string"
        return key not in ("properties", "required", "items", "additionalProperties")

    def _notes(self, left: Mapping[str, Any]) -> list[str]:
        """Return sentences that describe unsupported keywords."""
        structure = {"type", "description", "properties", "required", "items", "prefixItems", "additionalProperties"}
        notes: list[str] = []
        for key, value in left.items():
            if key in SILENT_KEYWORDS or key in structure or (key == "default" and value is None):
                continue
            if (key, value) == ("minLength", 1):
                notes.append("Not empty.")
                continue
            several = key in ("enum", "examples") and is_list(value)
            shown = ", ".join(map(_format_json, value)) if several else _format_json(value)
            notes.append(KEYWORD_SENTENCES.get(key, f"{key}: {{}}.").format(shown))
        return notes

    def _items(self, node: JsonSchema, above: Sequence[str]) -> JsonSchema:
        if prefix := node.get("prefixItems"):
            fitting = [self.node(item, above) for item in prefix]
            return fitting[0] if all(item == fitting[0] for item in fitting) else {"anyOf": fitting}
        return self.node(node.get("items"), above)

    def _object(self, node: JsonSchema, above: Sequence[str]) -> JsonSchema:
        properties: JsonSchema = {name: self.node(value, above) for name, value in node.get("properties", {}).items()}
        required = [name for name in node.get("required", ()) if name in properties]
        if self._dialect.closed:
            self._check_closed(node)
            properties = {
                name: value if name in required or _is_nullable(value) else self._or_null(value)
                for name, value in properties.items()
            }
            return {"properties": properties, "required": list(properties), "additionalProperties": False}
        return {key: value for key, value in (("properties", properties), ("required", required)) if value}

    def _check_closed(self, node: JsonSchema) -> None:
        if node.get("additionalProperties") not in (None, False) or "properties" not in node:
            raise PluginError(
                f"tool {self._tool!r} cannot be declared strictly: it takes an object with keys that are not named",
                hint="declare it without strict",
            )

    def _others(self, node: JsonSchema) -> list[str]:
        others = node.get("additionalProperties", "properties" not in node)
        if others is False or self._dialect.closed:
            return []
        what = others.get("type") if is_object(others) else None
        keys = "Other keys" if node.get("properties") else "Any keys"
        return [f"{keys}, with values of type {what}."] if isinstance(what, str) else [f"{keys} may be given."]

    def _anything(self) -> JsonSchema:
        if self._dialect.closed:
            raise PluginError(
                f"tool {self._tool!r} cannot be declared strictly: it takes a value of any kind",
                hint="declare it without strict",
            )
        word = str.upper if self._dialect.capitals else str
        kinds: list[JsonSchema] = [{"type": word(kind)} for kind in JSON_TYPES if kind != "array"]
        return {"anyOf": [*kinds, {"type": word("array"), "items": {"type": word("string")}}]}


def _find_type(node: JsonSchema) -> str | None:
    """Return the type of a node, stated or implied by its keywords, or None."""
    if isinstance(kind := node.get("type"), str):
        return kind
    if "properties" in node or "additionalProperties" in node:
        return "object"
    if "items" in node or "prefixItems" in node:
        return "array"
    values: list[Any] = node.get("enum", [node["const"]] if "const" in node else [])
    kinds = {TYPE_NAMES.get(cast("type[Any]", type(value))) for value in values}
    return kinds.pop() if len(kinds) == 1 else None


def _is_nullable(node: JsonSchema) -> bool:
    return {"type": "null"} in node.get("anyOf", ())
