"""Measures how the code is structured: names, import cycles, sizes, and the files that a call passes through.

    python -m scripts.measure_structure [--json]

Prints one row per figure with its target. The figures of calls need bash, and nothing else of the machine.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from types import FrameType
from typing import Any

import handrail

ROOT = Path(__file__).parent.parent
CYCLE_FREE = ("handrail", "handrail_cli", "handrail_gui", "handrail_accessibility")
# The modules at the top of core lie in several layers, from `errors` to what `handrail` itself gives: each counts as a directory of its own.
LAYERED_AT_TOP = "handrail"
WELL_TESTED = ("gui", "accessibility", "vision_ocr", "vision_omniparser", "vision_vlm")
WORD = re.compile(r"[A-Z]?[a-z0-9]+|[A-Z]+(?![a-z])")
# A public name may be defined in so many modules.
SHARED_NAMES = 3


@dataclass(frozen=True, slots=True)
class Figure:
    """Measured figure. `target`: its maximum, or its minimum if `at_least`; None without a target."""

    name: str
    value: float
    target: float | None = None
    unit: str = ""
    at_least: bool = False

    @property
    def is_met(self) -> bool:
        if self.target is None:
            return True
        return self.value >= self.target if self.at_least else self.value <= self.target


@dataclass(frozen=True)
class SourceModule:
    """One module of the product: its dotted name, its file and its syntax tree."""

    name: str
    path: Path

    @cached_property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def is_package(self) -> bool:
        return self.path.name == "__init__.py"

    @property
    def directory(self) -> str:
        """The dotted name of the package that the module is in; a package is in itself."""
        return self.name if self.is_package else self.name.rpartition(".")[0]

    @property
    def import_node(self) -> str:
        """The node of the module in import cycles: its directory, or the module itself at the top of core."""
        return self.name if self.directory == LAYERED_AT_TOP else self.directory

    @property
    def root(self) -> str:
        return self.name.partition(".")[0]


def source_modules(root: Path) -> list[SourceModule]:
    """Return all modules of core and of the plugins."""
    found: list[SourceModule] = []
    for source in (root / "core" / "src", *sorted((root / "plugins").glob("*/src"))):
        for path in sorted(source.rglob("*.py")):
            parts = path.relative_to(source).with_suffix("").parts
            found.append(SourceModule(".".join(parts[:-1] if parts[-1] == "__init__" else parts), path))
    return found


def measure_names(modules: Sequence[SourceModule]) -> Iterator[Figure]:
    """Yield the shares of names of one word, in percent, and the public names that more than three modules define."""
    functions: list[str] = []
    classes: list[str] = []
    homes: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                functions.append(node.name)
            elif isinstance(node, ast.ClassDef):
                classes.append(node.name)
            else:
                continue
            if not node.name.startswith("_"):
                homes[node.name].add(module.name)
    files = [module.path.stem for module in modules if not module.is_package]
    shared = [name for name, where in homes.items() if len(where) > SHARED_NAMES and not name.startswith("handrail_")]
    yield Figure("module functions with a one-word name", _percentage(functions, is_one_word), 30, "%")
    yield Figure("classes with a one-word name", _percentage(classes, is_one_word), 25, "%")
    yield Figure("modules named …ing.py", _percentage(files, lambda name: name.endswith("ing")), 5, "%")
    yield Figure("public names that more than three modules define", len(shared), 0)


def is_one_word(name: str) -> bool:
    return len(WORD.findall(name)) <= 1


def _percentage(names: Sequence[str], counts: Any) -> float:
    return round(100 * sum(map(counts, names)) / len(names), 1)


def measure_imports(modules: Sequence[SourceModule]) -> Iterator[Figure]:
    """Yield the directories in import cycles, and the core names that plugins import without their being documented."""
    for root in CYCLE_FREE:
        found = directory_cycles(modules, root)
        yield Figure(f"directories of {root} in import cycles", sum(map(len, found)), 0)
    yield Figure("core names that plugins import and that are not documented", len(undocumented_imports(modules)), 0)


def undocumented_imports(modules: Sequence[SourceModule]) -> list[str]:
    """Return each import of a core name by a plugin that the name's module does not list in `__all__`, as "plugin module: core name"."""
    known = {module.name: module for module in modules}
    found: list[str] = []
    for module in modules:
        if module.root == "handrail":
            continue
        for target, name in {*imports_of(module, known), *attributes_of(module, known)}:
            core = known[target]
            if core.root == "handrail" and name and name not in exported_names(core):
                found.append(f"{module.name}: {target}.{name}")
    return sorted(found)


def exported_names(module: SourceModule) -> frozenset[str]:
    """Return the names that a module lists in `__all__`."""
    if module.name == "handrail":
        return frozenset((*handrail.__all__, "__version__"))
    for node in module.tree.body:
        if isinstance(node, ast.Assign) and any(
            isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets
        ):
            return frozenset(ast.literal_eval(node.value))
    return frozenset()


def attributes_of(module: SourceModule, known: Mapping[str, SourceModule]) -> Iterator[tuple[str, str]]:
    """Yield (module, name) for each attribute that is used of an imported product module."""
    aliases = {
        alias.asname or alias.name: whole
        for node in ast.walk(module.tree)
        if isinstance(node, ast.ImportFrom) and node.level == 0
        for alias in node.names
        if (whole := f"{node.module}.{alias.name}") in known
    }
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in aliases:
            yield aliases[node.value.id], node.attr


def directory_cycles(modules: Sequence[SourceModule], root: str) -> list[set[str]]:
    """Return the groups of directories of one package that import each other, by any way; all imports count, also lazy ones."""
    known = {module.name: module for module in modules}
    graph: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules:
        if module.root == root:
            imported = (known[target] for target, _ in imports_of(module, known))
            graph[module.import_node] |= {one.import_node for one in imported if one.root == root} - {
                module.import_node
            }
    return cycles(graph)


def imports_of(module: SourceModule, known: Mapping[str, SourceModule]) -> Iterator[tuple[str, str]]:
    """Yield (module, name) for each import of a product module: also lazy ones, and those for type checkers only."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module is not None:
            for alias in node.names:
                if (whole := f"{node.module}.{alias.name}") in known:
                    yield whole, ""
                elif node.module in known:
                    yield node.module, alias.name


def cycles(graph: Mapping[str, Iterable[str]]) -> list[set[str]]:
    """Return the groups of nodes that reach each other, each of two nodes at least."""
    reached = {node: _reachable(graph, node) for node in graph}
    found: list[set[str]] = []
    for node in graph:
        group = {other for other in reached[node] if node in reached.get(other, ())}
        if len(group) > 1 and group not in found:
            found.append(group)
    return found


def _reachable(graph: Mapping[str, Iterable[str]], start: str) -> set[str]:
    found: set[str] = set()
    waiting = [start]
    while waiting:
        for node in graph.get(waiting.pop(), ()):
            if node not in found:
                found.add(node)
                waiting.append(node)
    return found


def measure_size(root: Path, modules: Sequence[SourceModule]) -> Iterator[Figure]:
    """Yield the lines and files of the product, and for some packages the lines of tests per line of code."""
    lines = {module.name: module.text.count("\n") for module in modules}
    yield Figure("lines of product code", sum(lines.values()), 90_000)
    yield Figure("files of product code", len(modules), 500)
    yield Figure("lines of plugins/cli", sum(n for name, n in lines.items() if name.startswith("handrail_cli")), 17_000)
    for plugin in WELL_TESTED:
        code = sum(n for name, n in lines.items() if name.partition(".")[0] == f"handrail_{plugin}")
        tests = (root / "tests" / "plugins" / plugin).rglob("*.py")
        tested = sum(path.read_text(encoding="utf-8").count("\n") for path in tests)
        yield Figure(f"lines of tests per line of {plugin}", round(tested / code, 2), 1, at_least=True)


class FileTracer:
    """Profiler that notes each change from one file of the product to another."""

    def __init__(self) -> None:
        self.visits: list[str] = []

    def __call__(self, frame: FrameType, event: str, arg: object) -> None:
        if event != "call":
            return
        name = frame.f_code.co_filename
        if "/src/handrail" in name and (not self.visits or self.visits[-1] != name):
            self.visits.append(name)

    @property
    def entered(self) -> int:
        """The number of files that were entered."""
        return len(set(self.visits))

    @property
    def entered_again(self) -> int:
        """The number of files that were entered more than once, each time from another file."""
        return sum(self.visits.count(name) > 1 for name in set(self.visits))


async def measure_calls() -> list[Figure]:
    """Return the files that `execute_cli echo hi` enters in a session that has made calls before."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        environment = {"HOME": folder, "PATH": "/usr/local/bin:/usr/bin:/bin", "HANDRAIL_HOME": str(place / "handrail")}
        async with handrail.open(plugins=["cli"], workspace=[place], cwd=place, environment=environment) as session:
            for _ in range(3):
                result = await session.call("execute_cli", {"command": "echo hi"})
                if not result.ok:
                    raise SystemExit(f"execute_cli failed: {result['error']['message']}")
            tracer = FileTracer()
            sys.setprofile(tracer)
            try:
                await session.call("execute_cli", {"command": "echo hi"})
            finally:
                sys.setprofile(None)
    return [
        Figure("files that `execute_cli echo hi` enters", tracer.entered, 35),
        Figure("files that it enters again", tracer.entered_again, 10),
        Figure("changes from file to file", len(tracer.visits)),
    ]


def measure_structure(root: Path = ROOT) -> list[Figure]:
    """Return all figures of a checkout."""
    modules = source_modules(root)
    return [
        *measure_names(modules),
        *measure_imports(modules),
        *measure_size(root, modules),
        *asyncio.run(measure_calls()),
    ]


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="JSON instead of Markdown")
    figures = measure_structure()
    if parser.parse_args().json:
        print(json.dumps([asdict(figure) for figure in figures], indent=2))
        return
    print("| figure | today | target | met |\n|---|---|---|---|")
    for figure in figures:
        sign = ">=" if figure.at_least else "<="
        target = "" if figure.target is None else f"{sign} {figure.target:,}{figure.unit}"
        met = "" if figure.target is None else "yes" if figure.is_met else "**no**"
        print(f"| {figure.name} | {figure.value:,}{figure.unit} | {target} | {met} |")


if __name__ == "__main__":
    main()
