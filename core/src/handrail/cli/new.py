"""`handrail new`"""

from __future__ import annotations

import re
import shlex
import sys
from keyword import iskeyword
from pathlib import Path
from typing import Any

import click

from handrail.errors import HandrailError
from handrail.plugins.known_plugins import find_supplier, is_reserved_name

TEMPLATE_FOLDER = Path(__file__).parents[1] / "templates" / "plugin"
TEST_SUFFIX = "_test.py.jinja"
PLUGIN_KINDS = sorted(part.name.removesuffix(TEST_SUFFIX) for part in TEMPLATE_FOLDER.glob(f"parts/*{TEST_SUFFIX}"))
PLUGIN_NAME = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
OTHER_NAME_HINT = "choose another name"


@click.command("new")
@click.argument("kind", type=click.Choice(PLUGIN_KINDS), metavar=f"[{'|'.join(PLUGIN_KINDS)}]")
@click.argument("name")
@click.option(
    "--into", type=click.Path(path_type=Path, file_okay=False), default=Path(), help="Folder to make it in (this one)."
)
def command(kind: str, name: str, into: Path) -> None:
    """Start a plugin: a package that works, with a test.

    NAME is the plugin's, in lower-case letters, digits and underscores.

    Example: handrail new backend night_vision
    """
    if not PLUGIN_NAME.fullmatch(name) or iskeyword(name):
        raise click.UsageError(
            f"{name!r} is no name for a plugin; take lower-case letters, digits and underscores, and no keyword of Python, "
            f"like {_suggest_name(name)!r}"
        )
    folder = into / f"handrail-{name.replace('_', '-')}"
    if is_reserved_name(name):
        raise HandrailError(
            f"{folder.name!r} is a package of Handrail's own, and yours would take its place", hint=OTHER_NAME_HINT
        )
    if kind == "backend" and (plugin := find_supplier("backends", name)) is not None:
        raise HandrailError(f"the plugin {plugin!r} supplies a backend {name!r} already", hint=OTHER_NAME_HINT)
    if folder.exists():
        raise HandrailError(f"{str(folder)!r} exists already, and nothing was written", hint=OTHER_NAME_HINT)
    _render_template(folder, kind, name)
    python = shlex.quote(sys.executable)
    click.echo(f"made {folder}; next: cd {folder} && handrail install -e '.[test]' && {python} -m pytest")


def _render_template(folder: Path, kind: str, name: str) -> None:
    try:
        # An extra, as few who run Handrail write plugins.
        from copier import run_copy
    except ImportError as exc:
        raise HandrailError(
            "the package 'copier' is not installed, which fills the template in",
            hint="handrail install 'handrail-core[new]'",
        ) from exc
    given: dict[str, Any] = {
        "kind": kind,
        "name": name,
        "title": "".join(word.title() for word in name.split("_")),
        "distribution": folder.name,
        "package": f"handrail_{name}",
        "core": _core_range(),
    }
    run_copy(str(TEMPLATE_FOLDER), folder, data=given, defaults=True, quiet=True)


def _core_range() -> str:
    """Return the range of handrail-core versions that a plugin written for this one supports.

    Before 1.0, a minor version may break it.
    """
    from importlib.metadata import version

    major, minor = (int(part) for part in version("handrail-core").split(".")[:2])
    return f">={major}.{minor},<{major}.{minor + 1}" if major == 0 else f">={major}.{minor},<{major + 1}"


def _suggest_name(name: str) -> str:
    plain = re.sub(r"[^a-z0-9]+", "_", name.lower()).strip("_").lstrip("0123456789_")
    return f"my_{plain}" if iskeyword(plain) else plain or "night_vision"
