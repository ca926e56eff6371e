"""Text of the reference pages about keys, hooks, events and errors, each read from the code it describes."""

from __future__ import annotations

import dataclasses
import inspect
import json
import re
from collections.abc import Iterator
from typing import Any

from handrail import errors
from handrail.api import events
from handrail.api.events import Event, wire_name
from handrail.errors import HandrailError
from handrail.plugins import hookspecs

Schema = dict[str, Any]

KEYS = """# Every key of the configuration

Made from the code by `make docs`; `handrail config schema` gives the same for what is installed here. Where the files
stand, which of them counts and what an
example looks like is in [configuration.md](configuration.md).

A key without a default has to be given where its table is. `unset` means that nothing is said.
"""

HOOKS = """# Every hook

Made from the code by `make docs`. A plugin implements those that it needs, marked with `@handrail.hookimpl`; each is
called once, at the start, one plugin at a time.
An example of each, with the lines that test it, is in [plugins/hooks.md](plugins/hooks.md).

| hook | returns | what |
|---|---|---|
"""

EVENTS = """# Every event

Made from the code by `make docs`. `session.events()` and `session.bus.subscribe` give them as values of
`handrail.api.events`; `handrail session --jsonl --events`
writes them as lines, with the name given here under `event`. Secrets are taken out of both. How to follow them is in
[observers.md](observers.md).

Each has `call_id`, the call it is about; it is empty for what happens to the session.
"""

ERRORS = """# Every error

Made from the code by `make docs`. What fails in a call is its result, and never raised: `error.code` says which of
these it is. `retryable` is what `error.retryable` says: whether the
same call, or a mended one, may succeed if it is made again at once. Outside a call an error is a line `Error: …` and,
where there is a cure, a line `Hint: …`.

`handrail call` exits with 0 when the status is `success` and with 1 for every other one; any command exits with 1 for
an error, with 2 when it was misused, and with 130 after Ctrl-C.
What `handrail run` exits with is in [run.md](run.md).
"""


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of the configuration: how it is headed in TOML, and its schema."""

    path: str
    node: Schema
    form: str = "[{}]"

    @property
    def heading(self) -> str:
        return f"`{self.form.format(self.path)}`" if self.path else "The top of the file"

    def below(self, schema: Schema) -> Iterator[Table]:
        for name, prop in self.node.get("properties", {}).items():
            if (found := _table_of(prop, schema)) is not None:
                node, form, end = found
                yield Table(f"{self.path}.{name}{end}".lstrip("."), node, form)


def keys_page(schema: Schema) -> str:
    """Return every key of core and of each installed plugin, backend and sandbox: type, default, description."""
    return KEYS + "".join(_sections([Table("", schema)], schema))


def _sections(alike: list[Table], schema: Schema) -> Iterator[str]:
    """Yield the section for tables that have the same keys, and those for their subtables."""
    table = alike[0]
    required = table.node.get("required", ())
    rows = [
        _row(name, prop, schema, required=name in required)
        for name, prop in table.node.get("properties", {}).items()
        if _table_of(prop, schema) is None
    ]
    if rows:
        headings = ", ".join(each.heading for each in alike)
        yield f"\n## {headings}\n\n| key | type | default | what |\n|---|---|---|---|\n" + "".join(rows)
    shared: dict[str, list[Table]] = {}
    for below in table.below(schema):
        shared.setdefault(json.dumps(below.node), []).append(below)
    for group in shared.values():
        yield from _sections(group, schema)


def _table_of(prop: Schema, schema: Schema) -> tuple[Schema, str, str] | None:
    """Return the table that a key holds, the form of its heading, and what follows its name; or None."""
    if "properties" in _resolved(prop, schema):
        return _resolved(prop, schema), "[{}]", ""
    if "properties" in (found := _resolved(prop.get("items", {}), schema)):
        return found, "[[{}]]", ""
    values = [prop.get("additionalProperties"), *prop.get("patternProperties", {}).values()]
    for value in values:
        if isinstance(value, dict) and "properties" in (found := _resolved(value, schema)):
            return found, "[{}]", ".NAME"
    return None


def _resolved(node: Schema, schema: Schema) -> Schema:
    return schema["$defs"][node["$ref"].rpartition("/")[2]] if "$ref" in node else node


def _row(name: str, prop: Schema, schema: Schema, *, required: bool) -> str:
    told = prop.get("description") or _resolved(prop, schema).get("description")
    if not told:
        raise ValueError(f"the key {name!r} has no description: {prop}")
    default = "" if required else _default(prop)
    return f"| `{name}` | {_type(prop, schema)} | {default} | {_cell(told)} |\n"


def _default(prop: Schema) -> str:
    if "default" not in prop:
        return "`{}`" if prop.get("type") == "object" else "`[]`"
    value = prop["default"]
    return "unset" if value is None else f"`{_cell(json.dumps(value, ensure_ascii=False))}`"


def _type(prop: Schema, schema: Schema) -> str:
    prop = _resolved(prop, schema)
    if "enum" in prop or "const" in prop:
        return ", ".join(f"`{value}`" for value in prop.get("enum", [prop.get("const")]))
    if choices := prop.get("anyOf") or prop.get("oneOf"):
        named = [_type(each, schema) for each in choices if each.get("type") != "null"]
        if len(named) > 1 and named[1:] == [f"list of {named[0]}"]:
            return f"{named[0]}, or a list of them"
        return " or ".join(dict.fromkeys(named))
    if prop.get("type") == "array":
        items = prop.get("items") or {}
        return f"list of {_type(items, schema)}" if items else "list"
    names = {"string": "text", "boolean": "true or false", "integer": "whole number", "object": "table"}
    kind = str(prop.get("type", "any"))
    return names.get(kind, kind) + _bounds(prop)


def _bounds(prop: Schema) -> str:
    least, most = prop.get("minimum"), prop.get("maximum")
    above = prop.get("exclusiveMinimum")
    parts = [f"from {least}"] if least is not None else [f"above {above}"] if above is not None else []
    parts += [f"to {most}"] if most is not None else []
    return f", {' '.join(parts)}" if parts else ""


def hooks_page() -> str:
    """Return every hook, with its return value and purpose."""
    hooks = [(name, hook) for name, hook in vars(hookspecs).items() if name.startswith("handrail_register_")]
    return HOOKS + "".join(
        f"| [{name}](plugins/hooks.md#{name}) | `{_cell(hook.__annotations__['return'])}` | {_told(hook)} |\n"
        for name, hook in hooks
    )


def events_page() -> str:
    """Return every event and its fields."""
    found = [each for each in vars(events).values() if inspect.isclass(each) and issubclass(each, Event)]
    return EVENTS + "".join(_event(each) for each in found if each is not Event)


def _event(event: type[Event]) -> str:
    fields = [field for field in dataclasses.fields(event) if field.name != "call_id"]
    rows = "".join(f"| `{field.name}` | `{_cell(str(field.type))}` |\n" for field in fields)
    return f"\n## {event.__name__}\n\n`{wire_name(event)}`: {_told(event)}\n\n| field | type |\n|---|---|\n{rows}"


def errors_page() -> str:
    """Return every error: its code, the status of its call, whether to retry, its meaning and its remedy."""
    found = [each for each in vars(errors).values() if inspect.isclass(each) and issubclass(each, HandrailError)]
    return ERRORS + "".join(_error(each) for each in found if each is not HandrailError)


def _error(error: type[HandrailError]) -> str:
    meaning, cure = _paragraphs(error)
    in_a_call = f"`{error.code}`, status `{error.status}`, {'' if error.retryable else 'not '}retryable"
    return f"\n## {error.__name__}\n\n{in_a_call}\n\n{meaning}\n\nCure: {cure}\n"


def _paragraphs(error: type[HandrailError]) -> tuple[str, str]:
    meaning, mark, cure = _told(error).partition(" Cure: ")
    if not mark:
        raise ValueError(f"{error.__name__} does not say its cure")
    return meaning, cure[0].lower() + cure[1:]


def _told(thing: Any) -> str:
    """Return the docstring on one line."""
    return re.sub(r"\s+", " ", inspect.getdoc(thing) or "").strip()


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|")
