"""Checks the names that modules export, and that directories import in one direction: run by `make check`.

    python -m scripts.check_structure

A public function has a name of at least two words, and no public name is defined in more than three modules. In the packages of `CYCLE_FREE`, no
directory is in an import cycle. Plugins import only names of core that their modules list in `__all__` (docs/core-modules.md).
"""

from __future__ import annotations

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator, Sequence

from scripts.measure_structure import (
    CYCLE_FREE,
    ROOT,
    SHARED_NAMES,
    SourceModule,
    directory_cycles,
    is_one_word,
    source_modules,
    undocumented_imports,
)

import handrail
import handrail.testing

# Functions that may have a name of one word, and why.
SINGLE_WORDS = {
    "callback": "documented for hosts, like `yes` and `no`",
    "command": "a module of the `handrail` program is one command, which the program finds by this name",
    "main": "`python -m` and console scripts start it",
    "no": "documented for hosts: denies all",
    "patch": "the tool of the example plugin has its name",
    "question": "documented for hosts that show questions themselves",
    "tools": "documented: the tools of a session for LangChain; and one of the completions below",
    "wait": "the tool has its name",
    "yes": "documented for hosts and tests: approves all",
}
# Names that many modules define, and why.
SHARED = {"command": SINGLE_WORDS["command"], "main": SINGLE_WORDS["main"]}


def exported_definitions(module: SourceModule) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    """Yield the functions and classes that a module defines for others. Hook implementations are the specifications' names."""
    for node in module.tree.body:
        is_definition = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
        if is_definition and not node.name.startswith(("_", "handrail_")):
            yield node


def find_name_faults(modules: Sequence[SourceModule]) -> Iterator[str]:
    """Yield one line for each name that breaks a rule."""
    documented = {*handrail.__all__, *handrail.testing.__all__}
    homes: defaultdict[str, list[str]] = defaultdict(list)
    for module in modules:
        for node in exported_definitions(module):
            homes[node.name].append(module.name)
            is_function = not isinstance(node, ast.ClassDef)
            if is_function and is_one_word(node.name) and node.name not in {*documented, *SINGLE_WORDS}:
                yield f"{module.path.relative_to(ROOT)}:{node.lineno}: {node.name}() needs a name of at least two words"
    for name, where in homes.items():
        if len(where) > SHARED_NAMES and name not in SHARED:
            yield f"{name} is defined in {len(where)} modules: {', '.join(where)}"


def find_cycle_faults(modules: Sequence[SourceModule]) -> Iterator[str]:
    """Yield one line for each group of directories that import each other."""
    for root in CYCLE_FREE:
        for group in directory_cycles(modules, root):
            yield f"{root} has an import cycle between directories: {', '.join(sorted(group))}"


def main() -> None:
    """Print the faults; the exit code is 1 if there are any."""
    modules = source_modules(ROOT)
    undocumented = [f"{each} is not in __all__ of its module" for each in undocumented_imports(modules)]
    faults = [*find_name_faults(modules), *find_cycle_faults(modules), *undocumented]
    print("\n".join(faults))
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
