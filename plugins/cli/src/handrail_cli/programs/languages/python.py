"""Python code that stands in a command line: an allow-list of what computes and prints, with the files that it names.

Names decide, not values: whatever could reach a module, a builtin or an attribute in another way than by its name is not understood.
"""

from __future__ import annotations

import ast
import contextlib
import re
import warnings
from dataclasses import dataclass, field

from handrail.records.redaction import is_credential
from handrail_cli.programs.languages.finding import UNCLEAR, Finding, dangerous
from handrail_cli.programs.languages.python_names import (
    ACTING,
    BUILTINS,
    DANGEROUS_MODULES,
    ENCODING,
    FRAMES,
    KEYWORDS,
    MODULE_LIKE,
    MODULES,
    NODES,
    PATH_ROLES,
    PATHS,
    PUBLIC_DUNDER,
    PURE,
    REACHING,
    ROLES,
    SAME_NAME,
    SOME,
)
from handrail_cli.programs.values import Kind, Role, worse

MAX_CODE = 8000
MAX_NODES = 3000
# Stands for every module that is not of the standard library.
FOREIGN = "?"


class NotUnderstood(Exception):
    """Something about which nothing may be concluded."""


class Dangerous(Exception):
    """Something that a person has to see."""


@dataclass(slots=True)
class Reading:
    """What is known while a program is read. `modules` are names that stand for modules, `members` for what was taken from one."""

    kind: Kind = "reads"
    named: list[tuple[Role, str]] = field(default_factory=list[tuple[Role, str]])
    code: bool = False
    modules: dict[str, str] = field(default_factory=dict[str, str])
    members: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    bound: set[str] = field(default_factory=set[str])
    paths: dict[str, str] = field(default_factory=dict[str, str])
    taken: set[int] = field(default_factory=set[int])
    functions: set[str] = field(default_factory=set[str])
    # Expressions of which an attribute is taken.
    parents: set[int] = field(default_factory=set[int])

    def dotted_on(self, node: ast.Attribute) -> bool:
        """Whether an attribute of it is taken at once."""
        return id(node) in self.parents


def look(text: str) -> Finding:
    """What a program does besides computing and printing."""
    if len(text) > MAX_CODE:
        return UNCLEAR
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return UNCLEAR
    reading = Reading()
    try:
        _read(tree, reading)
    except Dangerous as found:
        return dangerous(str(found))
    except NotUnderstood:
        return _partly(tree)
    except RecursionError:
        return UNCLEAR
    return Finding(
        reading.kind, named=tuple(reading.named), needs=frozenset(("code",)) if reading.code else frozenset()
    )


def _partly(tree: ast.Module) -> Finding:
    """Return what is dangerous in a program of which a part is not understood, or the files that the rest of it names."""
    reading = Reading()
    nodes = list(ast.walk(tree))
    if len(nodes) > MAX_NODES:
        return UNCLEAR
    try:
        for step in (_alarm, _bind):
            for node in nodes:
                with contextlib.suppress(NotUnderstood):
                    step(node, reading)
        _paths(nodes, reading)
        for node in nodes:
            with contextlib.suppress(NotUnderstood):
                _follow(node, reading)
    except Dangerous as found:
        return dangerous(str(found))
    except RecursionError:
        return UNCLEAR
    return Finding(reading.kind, named=tuple(reading.named), doubtful=True)


def _read(tree: ast.Module, reading: Reading) -> None:
    nodes = list(ast.walk(tree))
    if len(nodes) > MAX_NODES:
        raise NotUnderstood
    # What is dangerous is said first, whatever else is not understood.
    for node in nodes:
        _alarm(node, reading)
    for node in nodes:
        _bind(node, reading)
    if reading.bound & (reading.modules.keys() | reading.members.keys() | {"open", "print"}):
        raise NotUnderstood
    _paths(nodes, reading)
    for node in nodes:
        _follow(node, reading)


def _follow(node: ast.AST, reading: Reading) -> None:
    """Take in what a node calls or reaches."""
    if isinstance(node, ast.Call):
        _call(node, reading)
    elif isinstance(node, ast.Attribute):
        _attribute(node, reading)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        _name(node, reading)


def _alarm(node: ast.AST, reading: Reading) -> None:
    """Takes in what a program imports; raises `Dangerous` for what reaches anything by other ways."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        _import(node, reading)
    elif isinstance(node, ast.Name) and node.id in REACHING:
        raise Dangerous(f"uses {node.id!r}")


def _bind(node: ast.AST, reading: Reading) -> None:
    """Takes in the names that a node binds, and what later looks need to know of it."""
    if not isinstance(node, NODES):
        raise NotUnderstood
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        reading.bound.add(node.id)
    elif isinstance(node, ast.arg):
        reading.bound.add(node.arg)
    elif isinstance(node, ast.FunctionDef):
        reading.bound.add(node.name)
        reading.functions.add(node.name)
        if node.decorator_list:
            raise NotUnderstood
    elif isinstance(node, ast.ExceptHandler) and node.name:
        reading.bound.add(node.name)
    elif isinstance(node, ast.Attribute):
        reading.parents.add(id(node.value))
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        _variable(node, reading)
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
        reading.functions.add(node.targets[0].id)


def _import(node: ast.Import | ast.ImportFrom, reading: Reading) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            module = _module(alias.name, reading)
            if alias.asname or "." not in alias.name:
                reading.modules[alias.asname or alias.name] = module
            else:
                reading.modules[alias.name.partition(".")[0]] = alias.name.partition(".")[0]
        return
    if node.level or node.module is None:
        raise NotUnderstood
    for alias in node.names:
        whole = f"{node.module}.{alias.name}"
        if alias.name == "*":
            raise NotUnderstood
        if whole in PURE or whole in SOME:
            reading.modules[alias.asname or alias.name] = _module(whole, reading)
            continue
        module = _module(node.module, reading)
        if module == FOREIGN:
            reading.modules[alias.asname or alias.name] = FOREIGN
        else:
            _member(module, alias.name)
            reading.members[alias.asname or alias.name] = (module, alias.name)


def _module(name: str, reading: Reading) -> str:
    """The module of this name; of one that is not the standard library's, only its version may be asked."""
    if name in PURE or name in SOME or any(known.startswith(f"{name}.") for known in (*PURE, *SOME)):
        return name
    if name.partition(".")[0] in DANGEROUS_MODULES:
        raise Dangerous(f"uses the module {name!r}")
    if name.partition(".")[0] in MODULES:
        raise NotUnderstood
    reading.code = True
    reading.kind = worse(reading.kind, "effect")
    return FOREIGN


def _member(module: str, name: str) -> tuple[str, ...]:
    """The roles of the arguments of a name of a module."""
    if name.startswith("_") and name not in PUBLIC_DUNDER:
        raise Dangerous(f"reaches into the module {module!r}")
    if module in SOME:
        if name in SOME[module]:
            return SOME[module][name]
        if name in PUBLIC_DUNDER:
            return ()
        if module == "os":
            if name in ("environ", "environb"):
                raise Dangerous("reads all variables, which may hold credentials")
            raise Dangerous(f"uses os.{name}")
        raise NotUnderstood
    if module not in PURE or (name in MODULES and f"{module}.{name}" not in SAME_NAME):
        raise NotUnderstood
    return ()


def _dotted(node: ast.expr, reading: Reading) -> tuple[str, str] | None:
    """`module.name` that an expression stands for."""
    if isinstance(node, ast.Name):
        return reading.members.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    inner = node.value
    if isinstance(inner, ast.Name) and inner.id in reading.modules:
        return reading.modules[inner.id], node.attr
    if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id in reading.modules:
        whole = f"{reading.modules[inner.value.id]}.{inner.attr}"
        if whole in PURE or whole in SOME:
            return whole, node.attr
    return None


def _call(node: ast.Call, reading: Reading) -> None:
    target = node.func
    stars = any(isinstance(argument, ast.Starred) for argument in node.args) or any(
        one.arg is None for one in node.keywords
    )
    if isinstance(target, ast.Name) and target.id == "open":
        _open(node.args, node.keywords, reading, stars=stars)
        reading.taken.add(id(target))
    elif _environment(target, node, reading):
        pass
    elif (member := _dotted(target, reading)) is not None:
        if member[0] == FOREIGN:
            raise NotUnderstood
        roles = _member(*member)
        reading.taken.add(id(target))
        if roles and (stars or (node.keywords and not all(one.arg in KEYWORDS for one in node.keywords))):
            raise NotUnderstood
        for role, argument in zip(roles, node.args, strict=False):
            _role(role, argument, reading)
        if member[0] in ("os", "glob") and roles == ("list",) and not node.args:
            reading.named.append(("list", "."))
        if member == ("pathlib", "Path") and stars:
            raise NotUnderstood
    elif isinstance(target, ast.Name):
        if target.id in reading.bound - reading.functions or target.id not in BUILTINS | reading.functions:
            raise NotUnderstood
    elif isinstance(target, ast.Attribute):
        _method(target, node, reading)
    elif not isinstance(target, ast.Lambda):
        raise NotUnderstood


def _variable(node: ast.Subscript, reading: Reading) -> None:
    """`os.environ["NAME"]`."""
    if _dotted(node.value, reading) == ("os", "environ") and isinstance(node.ctx, ast.Load):
        _role("variable", node.slice, reading)
        reading.taken.add(id(node.value))


def _environment(target: ast.expr, node: ast.Call, reading: Reading) -> bool:
    """`os.environ.get("NAME")`."""
    if not (
        isinstance(target, ast.Attribute)
        and target.attr == "get"
        and _dotted(target.value, reading) == ("os", "environ")
    ):
        return False
    if not node.args:
        raise NotUnderstood
    _role("variable", node.args[0], reading)
    reading.taken.add(id(target.value))
    return True


def _open(args: list[ast.expr], keywords: list[ast.keyword], reading: Reading, *, stars: bool) -> None:
    mode: ast.expr = args[1] if len(args) > 1 else ast.Constant("r")
    for keyword in keywords:
        if keyword.arg not in ENCODING:
            raise NotUnderstood
        if keyword.arg == "mode":
            mode = keyword.value
    if stars or not args or not isinstance(mode, ast.Constant) or not isinstance(mode.value, str):
        raise NotUnderstood
    if isinstance(args[0], ast.Constant) and args[0].value in (0, 1, 2):
        return
    _role("write" if set(mode.value) & set("wax+") else "read", args[0], reading)


def _role(role: str, argument: ast.expr, reading: Reading) -> None:
    """A literal path with its role; anything else is not understood."""
    text = _text(argument, reading)
    if text is None:
        raise NotUnderstood
    if role == "variable":
        if is_credential(text, "") or re.search(r"(?i)token|passw|secret|cred|auth|key|cookie", text):
            raise Dangerous(f"reads the variable {text!r}, which may be a credential")
    elif role in ("write", "append", "delete", "delete_tree", "create", "move", "dest", "change"):
        reading.kind = worse(reading.kind, "effect")
    reading.named.append((_as_role(role), text))


def _as_role(role: str) -> Role:
    for known in ROLES:
        if known == role:
            return known
    raise NotUnderstood


def _text(node: ast.expr, reading: Reading) -> str | None:
    """The text of a literal, of a path made of literals, or of a name that holds one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return reading.paths.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
        left, right = _text(node.left, reading), _text(node.right, reading)
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else f"{left}/{right}"
    if isinstance(node, ast.Call) and not node.keywords and (member := _dotted(node.func, reading)) is not None:
        parts = [_text(argument, reading) for argument in node.args]
        if member in PATHS and parts and None not in parts:
            return "/".join(part for part in parts if part is not None)
        if member == ("os.path", "expanduser") and len(parts) == 1:
            return parts[0]
    return None


def _paths(nodes: list[ast.AST], reading: Reading) -> None:
    """Names that hold one literal and never anything else."""
    times: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            times[node.id] = times.get(node.id, 0) + 1
        elif isinstance(node, ast.arg):
            times[node.arg] = times.get(node.arg, 0) + 2
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            text = _text(node.value, reading)
            if text is not None and times[name] == 1:
                reading.paths[name] = text


def _method(target: ast.Attribute, node: ast.Call, reading: Reading) -> None:
    """A method of a value: of a path made of literals, it has a role; of anything else, only what can do nothing."""
    role = PATH_ROLES.get(target.attr)
    if (text := _text(target.value, reading)) is not None and not isinstance(target.value, ast.Constant):
        if role is not None and target.attr not in ("exists", "stat"):
            reading.kind = worse(reading.kind, "reads" if role in ("read", "list") else "effect")
            reading.named.append((role, text))
            return
        if target.attr == "open":
            _open([ast.Constant(text), *node.args], node.keywords, reading, stars=False)
            return
    if "pathlib" in reading.modules.values() or any(module == "pathlib" for module, _ in reading.members.values()):
        if target.attr in ACTING or target.attr == "replace":
            raise NotUnderstood
    elif target.attr in ACTING - {"glob", "walk", "expanduser", "open", "extract"}:
        raise NotUnderstood
    if isinstance(target.value, ast.Attribute) and _dotted(target.value, reading) == ("sys", "path"):
        raise NotUnderstood


def _attribute(node: ast.Attribute, reading: Reading) -> None:
    if node.attr.startswith("_") and node.attr not in PUBLIC_DUNDER:
        if node.attr == "__class__":
            raise NotUnderstood
        raise Dangerous(f"reaches inside by {node.attr!r}")
    if FRAMES.fullmatch(node.attr) or isinstance(node.ctx, ast.Store | ast.Del):
        raise NotUnderstood
    member = _dotted(node, reading)
    if isinstance(node.value, ast.Name) and node.value.id in reading.modules:
        reading.taken.add(id(node.value))
    if member is None:
        if node.attr in MODULE_LIKE:
            raise NotUnderstood
    elif member[0] == FOREIGN:
        if node.attr not in PUBLIC_DUNDER and node.attr not in ("VERSION", "version"):
            raise NotUnderstood
    elif member == ("os", "environ"):
        if id(node) not in reading.taken:
            raise Dangerous("reads all variables, which may hold credentials")
    elif f"{member[0]}.{node.attr}" in PURE or f"{member[0]}.{node.attr}" in SOME:
        # A module by its whole name, of which `_dotted` looks at what follows.
        if id(node) not in reading.taken and not reading.dotted_on(node):
            raise NotUnderstood
    elif _member(*member) and id(node) not in reading.taken:
        raise NotUnderstood


def _name(node: ast.Name, reading: Reading) -> None:
    if id(node) in reading.taken:
        return
    if node.id in reading.modules:
        raise NotUnderstood
    if node.id in reading.members:
        # What does something is only understood where it is called.
        if _member(*reading.members[node.id]):
            raise NotUnderstood
    elif node.id not in BUILTINS and node.id not in reading.bound and node.id not in ("__name__", "__doc__"):
        raise NotUnderstood
