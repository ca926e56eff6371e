"""What is wrong with values that a model did not take, in words for people."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from handrail.words import nearest

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

# Where a value stands: names of keys, and places in lists.
Path = tuple[int | str, ...]
# How the pattern of a key begins that takes the name of a secret.
SECRET = "^secret:"


def first(exc: ValidationError) -> ErrorDetails:
    """The mistake to tell of: a key that is misspelt is the cause where another is then missing."""
    errors = exc.errors(include_url=False)
    return next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])


def told(error: ErrorDetails, model: type[BaseModel], *, table: str = "") -> str:
    """`tools.profile is 3; it should be …`: key, value and what is accepted. `table` is the name of what the model is for."""
    path: Path = error["loc"]
    match error["type"]:
        case "extra_forbidden":
            return unknown(path, model, table=table)
        case "missing":
            return f"{dotted(path[:-1], table)} lacks the key {path[-1]!r}".lstrip()
        case "string_pattern_mismatch" if error.get("ctx", {}).get("pattern", "").startswith(SECRET):
            # What stands there instead is as a rule the secret itself.
            return (
                f"{dotted(path, table)} is not the name of a secret (what it is, is not shown);"
                " it should be 'secret:NAME', and the secret itself in the keyring or in HANDRAIL_SECRET_NAME"
            ).lstrip()
        case _:
            return f"{dotted(path, table)} is {error['input']!r}; {accepted(error)}".lstrip()


def unknown(path: Path, model: type[BaseModel], *, table: str = "") -> str:
    """`unknown key 'tools.profil'; did you mean 'profile'?`"""
    return f"unknown key {dotted(path, table)!r}{near(path, model)}"


def near(path: Path, model: type[BaseModel]) -> str:
    """`; did you mean 'profile'?`, or which keys there are."""
    return nearest(str(path[-1]), keys(model, path[:-1]))


def accepted(error: ErrorDetails) -> str:
    """What would be taken in the place of a value."""
    match error["type"]:
        case "tuple_type":
            return 'it should be a list, as in ["one", "two"]'
        case "dict_type" | "model_type":
            return "it should be a table"
        case _:
            message = error["msg"].removeprefix("Value error, ")
            return f"{message[:1].lower()}{message[1:]}".replace("input should", "it should")


def dotted(path: Path, table: str = "") -> str:
    """`policy.rules[1].tool`."""
    return (table + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)).lstrip(".")


def keys(model: type[BaseModel], path: Path) -> list[str]:
    """The keys that may stand at a path; none where a model does not say."""
    found: Any = model
    named = False
    for part in path:
        if named:
            # The name of a table among tables of one kind.
            named = False
        elif isinstance(part, str):
            annotation = found.model_fields[part].annotation if part in found.model_fields else None
            found = next((kind for kind in _within(annotation) if issubclass(kind, BaseModel)), BaseModel)
            named = get_origin(annotation) is dict
    return [name for name, info in found.model_fields.items() if not info.exclude]


def _within(annotation: Any) -> Iterable[type]:
    """The types in an annotation, also those in a list or a union in it."""
    if isinstance(annotation, type):
        yield annotation
    for inner in get_args(annotation):
        yield from _within(inner)
