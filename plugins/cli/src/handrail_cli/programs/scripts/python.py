"""Check of Python code in a command line: an allowlist of what computes and prints, with the files that it names.

Names decide, not values: code that could reach a module, a builtin or an attribute other than by its name is not
understood.
"""

from __future__ import annotations

import ast
import contextlib
import re
import warnings
from dataclasses import dataclass, field

from handrail.redaction import is_credential
from handrail_cli.programs.scripts.python_names import (
    ACTING_METHODS,
    ALLOWED_NODES,
    BUILTINS,
    DANGEROUS_MODULES,
    FRAME_ATTRIBUTE,
    HARMLESS_KEYWORDS,
    MEMBER_ROLES,
    MODULE_LIKE,
    NAMESAKE_MODULES,
    OPEN_KEYWORDS,
    PATH_CONSTRUCTORS,
    PATH_ROLES,
    PUBLIC_DUNDER,
    PURE_MODULES,
    REACHING_BUILTINS,
    ROLES,
    STDLIB_MODULES,
)
from handrail_cli.programs.scripts.script_finding import UNCLEAR, ScriptFinding, create_dangerous_finding
from handrail_cli.programs.values import OperandRole, UseKind, get_stricter_kind

MAX_CODE = 8000
MAX_NODES = 3000
# Stands for every module that is not of the standard library.
FOREIGN_MODULE = "?"


class UnsupportedCode(Exception):
    """Something about which nothing may be concluded."""


class DangerousCode(Exception):
    """Error for code that the user must review."""


@dataclass(slots=True)
class CodeState:
    """State collected while a program is read.

    `modules` maps names to the modules they refer to, `members` to what was imported from one.
    """

    kind: UseKind = "reads"
    named: list[tuple[OperandRole, str]] = field(default_factory=list[tuple[OperandRole, str]])
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
        """Return True if an attribute of the node is accessed immediately."""
        return id(node) in self.parents


def check_python_script(text: str) -> ScriptFinding:
    """Check what a program does besides computing and printing."""
    if len(text) > MAX_CODE:
        return UNCLEAR
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return UNCLEAR
    reading = CodeState()
    try:
        _check_tree(tree, reading)
    except DangerousCode as found:
        return create_dangerous_finding(str(found))
    except UnsupportedCode:
        return _partly(tree)
    except RecursionError:
        return UNCLEAR
    return ScriptFinding(
        reading.kind, named=tuple(reading.named), needs=frozenset(("code",)) if reading.code else frozenset()
    )


def _partly(tree: ast.Module) -> ScriptFinding:
    """Return what is dangerous in a program of which a part is not understood, or the files that the rest of it names."""
    reading = CodeState()
    nodes = list(ast.walk(tree))
    if len(nodes) > MAX_NODES:
        return UNCLEAR
    try:
        for step in (_check_import, _note_bindings):
            for node in nodes:
                with contextlib.suppress(UnsupportedCode):
                    step(node, reading)
        _note_constant_paths(nodes, reading)
        for node in nodes:
            with contextlib.suppress(UnsupportedCode):
                _follow(node, reading)
    except DangerousCode as found:
        return create_dangerous_finding(str(found))
    except RecursionError:
        return UNCLEAR
    return ScriptFinding(reading.kind, named=tuple(reading.named), doubtful=True)


def _check_tree(tree: ast.Module, reading: CodeState) -> None:
    nodes = list(ast.walk(tree))
    if len(nodes) > MAX_NODES:
        raise UnsupportedCode
    # What is dangerous is said first, whatever else is not understood.
    for node in nodes:
        _check_import(node, reading)
    for node in nodes:
        _note_bindings(node, reading)
    if reading.bound & (reading.modules.keys() | reading.members.keys() | {"open", "print"}):
        raise UnsupportedCode
    _note_constant_paths(nodes, reading)
    for node in nodes:
        _follow(node, reading)


def _follow(node: ast.AST, reading: CodeState) -> None:
    """Check what a node calls or accesses."""
    if isinstance(node, ast.Call):
        _check_call(node, reading)
    elif isinstance(node, ast.Attribute):
        _check_attribute(node, reading)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        _check_name(node, reading)


def _check_import(node: ast.AST, reading: CodeState) -> None:
    """Record what a program imports; raise `DangerousCode` for a name that reaches anything by other means."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        _note_import(node, reading)
    elif isinstance(node, ast.Name) and node.id in REACHING_BUILTINS:
        raise DangerousCode(f"uses {node.id!r}")


def _note_bindings(node: ast.AST, reading: CodeState) -> None:
    """Record the names that a node binds, and what later checks need to know about it."""
    if not isinstance(node, ALLOWED_NODES):
        raise UnsupportedCode
    if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
        reading.bound.add(node.id)
    elif isinstance(node, ast.arg):
        reading.bound.add(node.arg)
    elif isinstance(node, ast.FunctionDef):
        reading.bound.add(node.name)
        reading.functions.add(node.name)
        if node.decorator_list:
            raise UnsupportedCode
    elif isinstance(node, ast.ExceptHandler) and node.name:
        reading.bound.add(node.name)
    elif isinstance(node, ast.Attribute):
        reading.parents.add(id(node.value))
    elif isinstance(node, ast.Subscript) and isinstance(node.value, ast.Attribute):
        _check_environ_item(node, reading)
    elif isinstance(node, ast.Assign) and isinstance(node.value, ast.Lambda) and isinstance(node.targets[0], ast.Name):
        reading.functions.add(node.targets[0].id)


def _note_import(node: ast.Import | ast.ImportFrom, reading: CodeState) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            module = _resolve_module(alias.name, reading)
            if alias.asname or "." not in alias.name:
                reading.modules[alias.asname or alias.name] = module
            else:
                reading.modules[alias.name.partition(".")[0]] = alias.name.partition(".")[0]
        return
    if node.level or node.module is None:
        raise UnsupportedCode
    for alias in node.names:
        whole = f"{node.module}.{alias.name}"
        if alias.name == "*":
            raise UnsupportedCode
        if whole in PURE_MODULES or whole in MEMBER_ROLES:
            reading.modules[alias.asname or alias.name] = _resolve_module(whole, reading)
            continue
        module = _resolve_module(node.module, reading)
        if module == FOREIGN_MODULE:
            reading.modules[alias.asname or alias.name] = FOREIGN_MODULE
        else:
            _find_member_roles(module, alias.name)
            reading.members[alias.asname or alias.name] = (module, alias.name)


def _resolve_module(name: str, reading: CodeState) -> str:
    """Return the module of this name.

    A program may only query the version of a module outside the standard library.
    """
    if (
        name in PURE_MODULES
        or name in MEMBER_ROLES
        or any(known.startswith(f"{name}.") for known in (*PURE_MODULES, *MEMBER_ROLES))
    ):
        return name
    if name.partition(".")[0] in DANGEROUS_MODULES:
        raise DangerousCode(f"uses the module {name!r}")
    if name.partition(".")[0] in STDLIB_MODULES:
        raise UnsupportedCode
    reading.code = True
    reading.kind = get_stricter_kind(reading.kind, "effect")
    return FOREIGN_MODULE


def _find_member_roles(module: str, name: str) -> tuple[str, ...]:
    """Return the roles of the arguments of a module's member."""
    if name.startswith("_") and name not in PUBLIC_DUNDER:
        raise DangerousCode(f"reaches into the module {module!r}")
    if module in MEMBER_ROLES:
        if name in MEMBER_ROLES[module]:
            return MEMBER_ROLES[module][name]
        if name in PUBLIC_DUNDER:
            return ()
        if module == "os":
            if name in ("environ", "environb"):
                raise DangerousCode("reads all variables, which may hold credentials")
            raise DangerousCode(f"uses os.{name}")
        raise UnsupportedCode
    if module not in PURE_MODULES or (name in STDLIB_MODULES and f"{module}.{name}" not in NAMESAKE_MODULES):
        raise UnsupportedCode
    return ()


def _resolve_dotted(node: ast.expr, reading: CodeState) -> tuple[str, str] | None:
    """Return the module and name that an expression refers to as `module.name`, or None."""
    if isinstance(node, ast.Name):
        return reading.members.get(node.id)
    if not isinstance(node, ast.Attribute):
        return None
    inner = node.value
    if isinstance(inner, ast.Name) and inner.id in reading.modules:
        return reading.modules[inner.id], node.attr
    if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id in reading.modules:
        whole = f"{reading.modules[inner.value.id]}.{inner.attr}"
        if whole in PURE_MODULES or whole in MEMBER_ROLES:
            return whole, node.attr
    return None


def _check_call(node: ast.Call, reading: CodeState) -> None:
    target = node.func
    stars = any(isinstance(argument, ast.Starred) for argument in node.args) or any(
        one.arg is None for one in node.keywords
    )
    if isinstance(target, ast.Name) and target.id == "open":
        _check_open(node.args, node.keywords, reading, stars=stars)
        reading.taken.add(id(target))
    elif _check_environ_get(target, node, reading):
        pass
    elif (member := _resolve_dotted(target, reading)) is not None:
        if member[0] == FOREIGN_MODULE:
            raise UnsupportedCode
        roles = _find_member_roles(*member)
        reading.taken.add(id(target))
        if roles and (stars or (node.keywords and not all(one.arg in HARMLESS_KEYWORDS for one in node.keywords))):
            raise UnsupportedCode
        for role, argument in zip(roles, node.args, strict=False):
            _note_argument_role(role, argument, reading)
        if member[0] in ("os", "glob") and roles == ("list",) and not node.args:
            reading.named.append(("list", "."))
        if member == ("pathlib", "Path") and stars:
            raise UnsupportedCode
    elif isinstance(target, ast.Name):
        if target.id in reading.bound - reading.functions or target.id not in BUILTINS | reading.functions:
            raise UnsupportedCode
    elif isinstance(target, ast.Attribute):
        _check_method(target, node, reading)
    elif not isinstance(target, ast.Lambda):
        raise UnsupportedCode


def _check_environ_item(node: ast.Subscript, reading: CodeState) -> None:
    """Check `os.environ["NAME"]`."""
    if _resolve_dotted(node.value, reading) == ("os", "environ") and isinstance(node.ctx, ast.Load):
        _note_argument_role("variable", node.slice, reading)
        reading.taken.add(id(node.value))


def _check_environ_get(target: ast.expr, node: ast.Call, reading: CodeState) -> bool:
    """Check `os.environ.get("NAME")`; return False for any other call."""
    if not (
        isinstance(target, ast.Attribute)
        and target.attr == "get"
        and _resolve_dotted(target.value, reading) == ("os", "environ")
    ):
        return False
    if not node.args:
        raise UnsupportedCode
    _note_argument_role("variable", node.args[0], reading)
    reading.taken.add(id(target.value))
    return True


def _check_open(args: list[ast.expr], keywords: list[ast.keyword], reading: CodeState, *, stars: bool) -> None:
    mode: ast.expr = args[1] if len(args) > 1 else ast.Constant("r")
    for keyword in keywords:
        if keyword.arg not in OPEN_KEYWORDS:
            raise UnsupportedCode
        if keyword.arg == "mode":
            mode = keyword.value
    if stars or not args or not isinstance(mode, ast.Constant) or not isinstance(mode.value, str):
        raise UnsupportedCode
    if isinstance(args[0], ast.Constant) and args[0].value in (0, 1, 2):
        return
    _note_argument_role("write" if set(mode.value) & set("wax+") else "read", args[0], reading)


def _note_argument_role(role: str, argument: ast.expr, reading: CodeState) -> None:
    """Record a literal path with its role; anything else raises `UnsupportedCode`."""
    text = _evaluate_text(argument, reading)
    if text is None:
        raise UnsupportedCode
    if role == "variable":
        if is_credential(text, "") or re.search(r"(?i)token|passw|secret|cred|auth|key|cookie", text):
            raise DangerousCode(f"reads the variable {text!r}, which may be a credential")
    elif role in ("write", "append", "delete", "delete_tree", "create", "move", "dest", "change"):
        reading.kind = get_stricter_kind(reading.kind, "effect")
    reading.named.append((_convert_role(role), text))


def _convert_role(role: str) -> OperandRole:
    for known in ROLES:
        if known == role:
            return known
    raise UnsupportedCode


def _evaluate_text(node: ast.expr, reading: CodeState) -> str | None:
    """Return the text of a literal, of a path composed of literals, or of a name bound to one; else None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return reading.paths.get(node.id)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Div):
        left, right = _evaluate_text(node.left, reading), _evaluate_text(node.right, reading)
        if left is None or right is None:
            return None
        return left + right if isinstance(node.op, ast.Add) else f"{left}/{right}"
    if isinstance(node, ast.Call) and not node.keywords and (member := _resolve_dotted(node.func, reading)) is not None:
        parts = [_evaluate_text(argument, reading) for argument in node.args]
        if member in PATH_CONSTRUCTORS and parts and None not in parts:
            return "/".join(part for part in parts if part is not None)
        if member == ("os.path", "expanduser") and len(parts) == 1:
            return parts[0]
    return None


def _note_constant_paths(nodes: list[ast.AST], reading: CodeState) -> None:
    """Record the names that are bound to one literal and never to anything else."""
    times: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            times[node.id] = times.get(node.id, 0) + 1
        elif isinstance(node, ast.arg):
            times[node.arg] = times.get(node.arg, 0) + 2
    for node in nodes:
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            text = _evaluate_text(node.value, reading)
            if text is not None and times[name] == 1:
                reading.paths[name] = text


def _check_method(target: ast.Attribute, node: ast.Call, reading: CodeState) -> None:
    """Check a method call on a value.

    A method of a path composed of literals has a role; on any other value, only harmless methods are allowed.
    """
    role = PATH_ROLES.get(target.attr)
    if (text := _evaluate_text(target.value, reading)) is not None and not isinstance(target.value, ast.Constant):
        if role is not None and target.attr not in ("exists", "stat"):
            reading.kind = get_stricter_kind(reading.kind, "reads" if role in ("read", "list") else "effect")
            reading.named.append((role, text))
            return
        if target.attr == "open":
            _check_open([ast.Constant(text), *node.args], node.keywords, reading, stars=False)
            return
    if "pathlib" in reading.modules.values() or any(module == "pathlib" for module, _ in reading.members.values()):
        if target.attr in ACTING_METHODS or target.attr == "replace":
            raise UnsupportedCode
    elif target.attr in ACTING_METHODS - {"glob", "walk", "expanduser", "open", "extract"}:
        raise UnsupportedCode
    if isinstance(target.value, ast.Attribute) and _resolve_dotted(target.value, reading) == ("sys", "path"):
        raise UnsupportedCode


def _check_attribute(node: ast.Attribute, reading: CodeState) -> None:
    if node.attr.startswith("_") and node.attr not in PUBLIC_DUNDER:
        if node.attr == "__class__":
            raise UnsupportedCode
        raise DangerousCode(f"reaches inside by {node.attr!r}")
    if FRAME_ATTRIBUTE.fullmatch(node.attr) or isinstance(node.ctx, ast.Store | ast.Del):
        raise UnsupportedCode
    member = _resolve_dotted(node, reading)
    if isinstance(node.value, ast.Name) and node.value.id in reading.modules:
        reading.taken.add(id(node.value))
    if member is None:
        if node.attr in MODULE_LIKE:
            raise UnsupportedCode
    elif member[0] == FOREIGN_MODULE:
        if node.attr not in PUBLIC_DUNDER and node.attr not in ("VERSION", "version"):
            raise UnsupportedCode
    elif member == ("os", "environ"):
        if id(node) not in reading.taken:
            raise DangerousCode("reads all variables, which may hold credentials")
    elif f"{member[0]}.{node.attr}" in PURE_MODULES or f"{member[0]}.{node.attr}" in MEMBER_ROLES:
        # A module by its whole name, of which `_resolve_dotted` looks at what follows.
        if id(node) not in reading.taken and not reading.dotted_on(node):
            raise UnsupportedCode
    elif _find_member_roles(*member) and id(node) not in reading.taken:
        raise UnsupportedCode


def _check_name(node: ast.Name, reading: CodeState) -> None:
    if id(node) in reading.taken:
        return
    if node.id in reading.modules:
        raise UnsupportedCode
    if node.id in reading.members:
        # What does something is only understood where it is called.
        if _find_member_roles(*reading.members[node.id]):
            raise UnsupportedCode
    elif node.id not in BUILTINS and node.id not in reading.bound and node.id not in ("__name__", "__doc__"):
        raise UnsupportedCode
