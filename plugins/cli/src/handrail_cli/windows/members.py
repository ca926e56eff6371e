"""Judges the properties and methods of .NET types and of the objects that a line has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.net import urls
from handrail_cli.windows import dotnet, powershell_values as values
from handrail_cli.windows.binding import Bound
from handrail_cli.windows.calls import nested
from handrail_cli.windows.findings import Grade, Span
from handrail_cli.windows.parameters import (
    blocks_in,
    judge_delete,
    judge_read,
    judge_sent,
    judge_sent_file,
    judge_target,
    judge_write,
)
from handrail_cli.windows.places import deletes, reads, writes
from handrail_cli.windows.powershell_nodes import Member, Variable
from handrail_cli.windows.powershell_values import UNKNOWN, Value, known

if TYPE_CHECKING:
    from handrail_cli.windows.powershell import Shell

# What is done with a connection once it is open.
TALKING = frozenset(("getstream", "read", "write", "flush", "close", "getbytes", "readline", "writeline"))
# What runs code that it is given.
RUNNING = frozenset(("invoke", "invokereturnasis", "run", "exec", "eval", "load", "invokescript", "newscriptblock"))


def make(shell: Shell, kind: str, given: Sequence[Value], span: Span) -> Value:
    """Note the making of an object of a type, by whatever way; the object."""
    case = shell.case
    marks = frozenset[str]().union(*(value.marks for value in given))
    if dotnet.SOCKET.fullmatch(kind):
        case.socket = True
        case.touch("network", urls.place(given[0].text or "") if given else "")
        case.add(Grade.DANGEROUS, "socket", "it opens a connection of its own", span)
        return Value(marks=marks | {"socket", "network"}, kind=kind)
    if kind in dotnet.WEB_TYPES:
        case.touch("network", "")
        case.add(Grade.EFFECT, "network", "it reaches out over the network", span)
        return Value(marks=marks, kind="web")
    if dotnet.pure_object(kind):
        return Value(marks=marks, kind="object", text=given[0].text if kind == "string" and given else None)
    if kind in ("io.streamreader", "io.streamwriter", "io.binaryreader", "io.binarywriter") and "socket" in marks:
        return Value(marks=marks, kind=kind)
    if kind == "io.streamreader" and given and given[0].text is not None:
        reads(case, given[0].text, span)
        return Value(marks=marks | {"file"}, kind="reader")
    if kind == "io.streamreader" and "network" in marks:
        return Value(marks=marks, kind="web")
    case.executes = case.executes or "process" in kind
    case.add(Grade.DANGEROUS, "dotnet", f"it makes a {kind!r}, which is not known to be harmless", span)
    return Value(marks=marks, kind=kind)


def member(shell: Shell, target: Value, name: str, arguments: Sequence[Value], node: Member) -> Value:
    """Note the use of a property or method of a value; what it gives."""
    case = shell.case
    marks = target.marks.union(*(value.marks for value in arguments)) - {"missing"}
    for value in arguments:
        for block in blocks_in(value):
            shell.block(block, target)
    if node.arguments is None:
        return _property(target, name, marks)
    if name in ("invoke", "invokereturnasis") and target.block is not None:
        case.add(Grade.DANGEROUS, "dynamic", "it runs a block of code by another way", node.span)
        return shell.block(target.block, None, arguments)
    if target.kind == "web" or name in dotnet.WEB_READS | dotnet.WEB_FILES | dotnet.WEB_SENDS:
        return _web(shell, target, name, arguments, node, marks)
    worked = values.method(target, name, arguments) if target.kind in ("string", "int", "data") else None
    if worked is not None:
        return worked
    if "socket" in marks and name in TALKING:
        _mark_arguments(shell, node, marks)
        return Value(marks=marks)
    if target.kind == "bytes" or (name == "getstring" and arguments):
        encoding = "utf-16-le" if target.kind == "encoding:unicode" else "utf-8"
        return values.decoded_text(arguments[0], encoding) if len(arguments) == 1 else Value(marks=marks)
    if name in dotnet.PURE_METHODS:
        return Value(marks=marks, files=target.files, kind="data" if not target.files else "")
    _method_not_known(shell, target, name, node, marks)
    return Value(marks=marks)


def _method_not_known(shell: Shell, target: Value, name: str, node: Member, marks: frozenset[str]) -> None:
    """Note a method of which only its name and the marks of what it is given tell something."""
    case = shell.case
    if "shadow" in marks:
        case.add(Grade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", node.span)
    case.executes = case.executes or name in ("start", "invoke", "run", "exec", "shellexecute", "create")
    if "network" in marks and name in RUNNING:
        case.add(Grade.CATASTROPHIC, "network_code", "it runs code straight from the network", node.span)
    if name in ("delete", "deletesubkeytree", "deletesubkey") and target.files:
        judge_delete(shell, target, Bound(), node.span, filtered=False)
    case.add(Grade.DANGEROUS, "method", f"the method {name!r} is not known to be harmless", node.span)


def _property(target: Value, name: str, marks: frozenset[str]) -> Value:
    if target.table is not None:
        return next((item for key, item in target.table if key == name), UNKNOWN).marked(marks)
    if target.files:
        return (
            Value(marks=marks, files=target.files)
            if name in ("fullname", "name", "pspath", "path", "versioninfo")
            else Value(marks=marks, kind="data")
        )
    if name == "path" and target.kind == "string":
        return target
    return Value(marks=marks, kind="data")


def _mark_arguments(shell: Shell, node: Member, marks: frozenset[str]) -> None:
    """What a stream reads into is made of what it reads."""
    for argument in node.arguments or ():
        if isinstance(argument, Variable):
            shell.scope[argument.name] = Value(marks=marks)


def _web(
    shell: Shell, target: Value, name: str, arguments: Sequence[Value], node: Member, marks: frozenset[str]
) -> Value:
    case = shell.case
    if name == "readtoend" and target.kind == "reader":
        return Value(marks=marks)
    if arguments and name not in ("getresponse", "getresponsestream", "readtoend"):
        judge_target(shell, arguments[0], node.span)
    if name in dotnet.WEB_READS:
        return Value(marks=marks | {"network"})
    if name in dotnet.WEB_FILES:
        if len(arguments) > 1 and arguments[1].text is not None:
            writes(case, arguments[1].text, node.span, fetched=True)
        else:
            case.add(Grade.DANGEROUS, "unresolved", "it is not known where the download goes", node.span)
        return UNKNOWN
    if name in dotnet.WEB_SENDS and name != "uploadfile":
        for value in arguments[1:]:
            judge_sent(shell, value, node.span)
        return Value(marks=marks | {"network"})
    if name == "uploadfile":
        for value in arguments[1:]:
            judge_sent_file(shell, value, node.span)
        return UNKNOWN
    if name not in dotnet.PURE_METHODS:
        case.add(Grade.DANGEROUS, "method", f"the method {name!r} is not known to be harmless", node.span)
    return Value(marks=marks | {"network"})


def static_member(shell: Shell, kind: str, name: str, arguments: Sequence[Value], node: Member) -> Value:
    """Note the use of a static member of a type; what it gives."""
    case = shell.case
    marks = frozenset[str]().union(*(value.marks for value in arguments)) - {"missing"}
    for value in arguments:
        for block in blocks_in(value):
            shell.block(block)
    if name == "new" and node.arguments is not None:
        return make(shell, kind, arguments, node.span)
    if kind in dotnet.IO_TYPES:
        return _files(shell, kind, name, arguments, node, marks)
    if kind == "environment":
        return _environment(shell, name, arguments, node, marks)
    if kind == "scriptblock":
        return _script_block(shell, arguments, node, marks)
    if (worked := values.static(kind, name, arguments)) is not None:
        return worked
    if kind in dotnet.PURE_TYPES or (kind, name) in dotnet.PURE_MEMBERS:
        return Value(marks=marks, kind=f"encoding:{name}" if kind == "text.encoding" else "data")
    case.executes = case.executes or "process" in kind or "reflection" in kind or "assembly" in kind
    if "network" in marks:
        case.add(Grade.CATASTROPHIC, "network_code", "it loads code straight from the network", node.span)
    case.add(Grade.DANGEROUS, "dotnet", f"[{kind}]::{name} is not known to be harmless", node.span)
    return Value(marks=marks)


def _files(
    shell: Shell, kind: str, name: str, arguments: Sequence[Value], node: Member, marks: frozenset[str]
) -> Value:
    case = shell.case
    first = arguments[0] if arguments else UNKNOWN
    none = Bound()
    if name in dotnet.IO_READS:
        return Value(marks=marks | judge_read(shell, first, none, node.span))
    if name in dotnet.IO_WRITES:
        judge_write(shell, first, none, node.span)
        return UNKNOWN
    if name == "delete":
        recursive = len(arguments) > 1 and (arguments[1].text or "true").lower() == "true"
        deletes(case, first.text, node.span, guess=first.guess, recursive=recursive)
        case.add(Grade.DANGEROUS, "dotnet", f"[{kind}]::{name} is asked about each time", node.span)
        return UNKNOWN
    if name in ("copy", "move", "replace") and len(arguments) > 1:
        (judge_write if name != "copy" else judge_read)(shell, first, none, node.span)
        judge_write(shell, arguments[1], none, node.span)
        return UNKNOWN
    case.add(Grade.DANGEROUS, "dotnet", f"[{kind}]::{name} is not known to be harmless", node.span)
    return UNKNOWN


def _environment(shell: Shell, name: str, arguments: Sequence[Value], node: Member, marks: frozenset[str]) -> Value:
    if name == "getenvironmentvariable" and len(arguments) == 1 and arguments[0].text is not None:
        return shell.environment(arguments[0].text, node.span)
    if name == "getenvironmentvariables" or name == "getenvironmentvariable":
        shell.case.add(Grade.DANGEROUS, "secret", "it reads variables that may hold secrets", node.span)
        return Value(marks=frozenset(("secret",)))
    if (
        (known_to_read := ("environment", name) in dotnet.PURE_MEMBERS)
        and name == "currentdirectory"
        and shell.case.cwd is not None
    ):
        return known(str(shell.case.cwd))
    if name == "getfolderpath" and arguments and (arguments[0].text or "").lower() == "userprofile":
        return known(str(shell.case.judging.home))
    if name == "username":
        return known(shell.case.judging.user)
    if not known_to_read:
        shell.case.add(Grade.DANGEROUS, "dotnet", f"[environment]::{name} is not known to be harmless", node.span)
    return Value(marks=marks)


def _script_block(shell: Shell, arguments: Sequence[Value], node: Member, marks: frozenset[str]) -> Value:
    case = shell.case
    case.executes = True
    case.add(Grade.DANGEROUS, "dynamic", "it makes a block of code from text", node.span)
    if "network" in marks:
        case.add(Grade.CATASTROPHIC, "network_code", "it runs code straight from the network", node.span)
    if arguments and arguments[0].text is not None:
        nested(case, "powershell", arguments[0].text)
    return Value(marks=marks, kind="scriptblock")
