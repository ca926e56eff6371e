"""Git attributes that hide the contents of secret files from git in a sandbox, anywhere in the history."""

from __future__ import annotations

from collections.abc import Iterator

from handrail.fs import sensitive_paths

# `git log -p`, `git show`, `git diff` and `git grep` say of such a file that it is binary, and that it differs.
HIDDEN_ATTRIBUTE, SHOWN_ATTRIBUTE = "-diff", "!diff"
# Shapes that stand in functions of `known_places`, as git's patterns.
SECRET_SHAPES = (
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
PUBLIC_PATTERNS = ("*cert*.pem", "*chain*.pem", "*public*.pem", "*ca-*.pem")


def create_secret_attributes() -> str:
    """Return the lines for git's attributes of the system; those of a repository take precedence, as `-a` and `--binary` do."""
    return "".join(f"{line}\n" for line in _iter_attribute_lines())


def _iter_attribute_lines() -> Iterator[str]:
    endings = [f"*{ending}" for ending in sensitive_paths.KEY_ENDINGS]
    for pattern in (*sensitive_paths.SECRET_NAMES, *SECRET_SHAPES, *endings):
        yield f'"{pattern}" {HIDDEN_ATTRIBUTE}'
    templates = [shape for name in sensitive_paths.TEMPLATE_SUFFIXES for shape in (f".env.{name}", f"{name}.env")]
    endings = [f"*{ending}" for ending in sensitive_paths.PUBLIC_ENDINGS]
    for pattern in (*PUBLIC_PATTERNS, *sorted(templates), *endings, *sorted(sensitive_paths.PUBLIC_NAMES)):
        yield f'"{pattern}" {SHOWN_ATTRIBUTE}'
