"""Attributes by which git in a sandbox shows no contents of files that keep secrets, wherever they stand in its history."""

from __future__ import annotations

from collections.abc import Iterator

from handrail.files import known_places

# `git log -p`, `git show`, `git diff` and `git grep` say of such a file that it is binary, and that it differs.
HIDDEN, SHOWN = "-diff", "!diff"
# Shapes that stand in functions of `known_places`, as git's patterns.
SHAPES = (
    ".env.*",
    "*.env",
    "*.pem",
    ".*_history",
    ".*-history",
    "ssh_host_*_key",
    "client_secret*.json",
    "service-account*.json",
    "service_account*.json",
)
# What of these is no secret.
PUBLIC = ("*cert*.pem", "*chain*.pem", "*public*.pem", "*ca-*.pem")


def secret_attributes() -> str:
    """Return the lines for git's attributes of the system; those of a repository take precedence, as `-a` and `--binary` do."""
    return "".join(f"{line}\n" for line in _lines())


def _lines() -> Iterator[str]:
    endings = [f"*{ending}" for ending in known_places.KEY_ENDINGS]
    for pattern in (*known_places.SECRET_NAMES, *SHAPES, *endings):
        yield f'"{pattern}" {HIDDEN}'
    templates = [shape for name in known_places.TEMPLATES for shape in (f".env.{name}", f"{name}.env")]
    endings = [f"*{ending}" for ending in known_places.PUBLIC_ENDINGS]
    for pattern in (*PUBLIC, *sorted(templates), *endings, *sorted(known_places.PUBLIC_NAMES)):
        yield f'"{pattern}" {SHOWN}'
