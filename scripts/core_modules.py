"""The page about the modules of core that plugins may import, read from the code."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import takewhile

from scripts.measure_structure import ROOT, SourceModule, exported_names, source_modules

HEAD = """# Core modules for plugins

Made from the code by `make docs`. Most plugins need only [the names of `handrail`](names.md). Those that come with Handrail share more of core:
these modules, which list what they offer in `__all__`. Plugins import nothing else of core, which `make check` verifies for those in this
repository. Before 1.0, a minor version may change these names; what `handrail` itself exports is more stable.
"""
# Characters of a value that are shown where no comment describes it.
MAX_VALUE_CHARS = 100


def core_modules_page(modules: Sequence[SourceModule]) -> str:
    """Return a section for each core module with `__all__`: its purpose, and a table of its names."""
    known = {module.name: module for module in modules}
    documented = sorted(filter(is_documented, modules), key=lambda module: module.name)
    return HEAD + "".join(_section(module, known) for module in documented)


def is_documented(module: SourceModule) -> bool:
    """Return True for a module of core that plugins may import. `handrail` and `handrail.testing` have pages of their own."""
    has_own_page = module.name == "handrail" or module.name.startswith("handrail.testing")
    return module.root == "handrail" and not has_own_page and bool(exported_names(module))


def _section(module: SourceModule, known: Mapping[str, SourceModule]) -> str:
    rows = "".join(
        f"| `{name}` | {_cell(_summary(module, name, known))} |\n" for name in sorted(exported_names(module))
    )
    return f"\n## {module.name}\n\n{_first_paragraph(ast.get_docstring(module.tree) or '')}\n\n| name | what |\n|---|---|\n{rows}"


def _summary(module: SourceModule, name: str, known: Mapping[str, SourceModule]) -> str:
    """Return the first paragraph of a definition's docstring, the comment above a value, or the value."""
    for node in module.tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name == name:
            return _first_paragraph(ast.get_docstring(node) or "")
        if name in _assigned_names(node):
            return _comment_above(module, node.lineno) or _shown_value(node)
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.module in known:
            for alias in node.names:
                if (alias.asname or alias.name) == name:
                    return _summary(known[node.module], alias.name, known)
    return ""


def _shown_value(node: ast.stmt) -> str:
    assert isinstance(node, ast.Assign | ast.AnnAssign)
    assert node.value is not None
    text = ast.unparse(node.value).replace("\\n", " ")
    return f"`{text[:MAX_VALUE_CHARS]}{'…' if len(text) > MAX_VALUE_CHARS else ''}`"


def _assigned_names(node: ast.stmt) -> Iterator[str]:
    if isinstance(node, ast.Assign):
        yield from (each.id for target in node.targets for each in ast.walk(target) if isinstance(each, ast.Name))
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        yield node.target.id


def _comment_above(module: SourceModule, line: int) -> str:
    above = [*takewhile(lambda text: text.startswith("#"), reversed(module.text.splitlines()[: line - 1]))]
    return " ".join(text.removeprefix("#").strip() for text in reversed(above))


def _first_paragraph(text: str) -> str:
    return text.partition("\n\n")[0]


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "\\|").strip()


def load_page() -> str:
    """Return the page for this checkout."""
    return core_modules_page(source_modules(ROOT))
