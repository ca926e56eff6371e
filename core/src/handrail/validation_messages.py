"""Messages for people about values that a pydantic model rejected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from handrail.text import format_suggestion

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

__all__ = ["describe_error", "select_error"]

# Where a value stands: names of keys, and places in lists.
KeyPath = tuple[int | str, ...]
# How the pattern of a key begins that takes the name of a secret.
SECRET_PATTERN_START = "^secret:"


def select_error(exc: ValidationError) -> ErrorDetails:
    """Return the error to report: a misspelled key takes precedence, since it may be why another key is missing."""
    errors = exc.errors(include_url=False)
    return next((error for error in errors if error["type"] == "extra_forbidden"), errors[0])


def describe_error(error: ErrorDetails, model: type[BaseModel], *, table: str = "") -> str:
    """Return `tools.profile is 3; it should be …`: key, value and what is accepted.

    `table` is the name of the model's table.
    """
    path: KeyPath = error["loc"]
    match error["type"]:
        case "extra_forbidden":
            return describe_unknown_key(path, model, table=table)
        case "missing":
            return f"{format_key_path(path[:-1], table)} lacks the key {path[-1]!r}".lstrip()
        case "string_pattern_mismatch" if error.get("ctx", {}).get("pattern", "").startswith(SECRET_PATTERN_START):
            # What stands there instead is as a rule the secret itself.
            return (
                f"{format_key_path(path, table)} is not the name of a secret (what it is, is not shown);"
                " it should be 'secret:NAME', and the secret itself in the keyring or in HANDRAIL_SECRET_NAME"
            ).lstrip()
        case _:
            return f"{format_key_path(path, table)} is {error['input']!r}; {describe_accepted(error)}".lstrip()


def describe_unknown_key(path: KeyPath, model: type[BaseModel], *, table: str = "") -> str:
    """Return `unknown key 'tools.profil'; did you mean 'profile'?`."""
    return f"unknown key {format_key_path(path, table)!r}{suggest_key(path, model)}"


def suggest_key(path: KeyPath, model: type[BaseModel]) -> str:
    """Return `; did you mean 'profile'?`, or the list of keys."""
    return format_suggestion(str(path[-1]), list_keys(model, path[:-1]))


def describe_accepted(error: ErrorDetails) -> str:
    """Return what would be accepted in place of a value."""
    match error["type"]:
        case "tuple_type":
            return 'it should be a list, as in ["one", "two"]'
        case "dict_type" | "model_type":
            return "it should be a table"
        case _:
            message = error["msg"].removeprefix("Value error, ")
            return f"{message[:1].lower()}{message[1:]}".replace("input should", "it should")


def format_key_path(path: KeyPath, table: str = "") -> str:
    """Return a key path as text: `policy.rules[1].tool`."""
    return (table + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)).lstrip(".")


def list_keys(model: type[BaseModel], path: KeyPath) -> list[str]:
    """Return the keys allowed at a path; empty if the model does not define them."""
    found: Any = model
    named = False
    for part in path:
        if named:
            # The name of a table among tables of one kind.
            named = False
        elif isinstance(part, str):
            annotation = found.model_fields[part].annotation if part in found.model_fields else None
            found = next((kind for kind in _iter_types(annotation) if issubclass(kind, BaseModel)), BaseModel)
            named = get_origin(annotation) is dict
    return [name for name, info in found.model_fields.items() if not info.exclude]


def _iter_types(annotation: Any) -> Iterable[type]:
    """Yield the types in an annotation, including those inside lists and unions."""
    if isinstance(annotation, type):
        yield annotation
    for inner in get_args(annotation):
        yield from _iter_types(inner)
