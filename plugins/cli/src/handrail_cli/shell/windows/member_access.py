"""Judges the properties and methods of .NET types and of the objects that a line has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.net import urls
from handrail_cli.shell.powershell import dotnet, values
from handrail_cli.shell.powershell.nodes import MemberAccess, VariableNode
from handrail_cli.shell.powershell.values import UNKNOWN_VALUE, PowerShellValue, create_known_value
from handrail_cli.shell.windows.argument_binding import BoundArguments
from handrail_cli.shell.windows.findings import FindingGrade, Span
from handrail_cli.shell.windows.parameter_effects import (
    iter_blocks,
    judge_delete,
    judge_read,
    judge_sent_file,
    judge_sent_value,
    judge_target,
    judge_write,
)
from handrail_cli.shell.windows.path_effects import note_delete, note_read, note_write
from handrail_cli.shell.windows.program_call import judge_nested_text

if TYPE_CHECKING:
    from handrail_cli.shell.windows.powershell_analyzer import PowerShellAnalyzer

# What is done with a connection once it is open.
CONNECTION_METHODS = frozenset(("getstream", "read", "write", "flush", "close", "getbytes", "readline", "writeline"))
# What runs code that it is given.
RUNNING_METHODS = frozenset(
    ("invoke", "invokereturnasis", "run", "exec", "eval", "load", "invokescript", "newscriptblock")
)


def create_object(
    shell: PowerShellAnalyzer, kind: str, given: Sequence[PowerShellValue], span: Span
) -> PowerShellValue:
    """Note the creation of an object of a type, by any means, and return the object."""
    case = shell.case
    marks = frozenset[str]().union(*(value.marks for value in given))
    if dotnet.SOCKET_TYPE.fullmatch(kind):
        case.socket = True
        case.touch("network", urls.find_url_place(given[0].text or "") if given else "")
        case.add(FindingGrade.DANGEROUS, "socket", "it opens a connection of its own", span)
        return PowerShellValue(marks=marks | {"socket", "network"}, kind=kind)
    if kind in dotnet.WEB_TYPES:
        case.touch("network", "")
        case.add(FindingGrade.EFFECT, "network", "it reaches out over the network", span)
        return PowerShellValue(marks=marks, kind="web")
    if dotnet.is_pure_type(kind):
        return PowerShellValue(marks=marks, kind="object", text=given[0].text if kind == "string" and given else None)
    if kind in ("io.streamreader", "io.streamwriter", "io.binaryreader", "io.binarywriter") and "socket" in marks:
        return PowerShellValue(marks=marks, kind=kind)
    if kind == "io.streamreader" and given and given[0].text is not None:
        note_read(case, given[0].text, span)
        return PowerShellValue(marks=marks | {"file"}, kind="reader")
    if kind == "io.streamreader" and "network" in marks:
        return PowerShellValue(marks=marks, kind="web")
    case.executes = case.executes or "process" in kind
    case.add(FindingGrade.DANGEROUS, "dotnet", f"it makes a {kind!r}, which is not known to be harmless", span)
    return PowerShellValue(marks=marks, kind=kind)


def access_member(
    shell: PowerShellAnalyzer,
    target: PowerShellValue,
    name: str,
    arguments: Sequence[PowerShellValue],
    node: MemberAccess,
) -> PowerShellValue:
    """Note the use of a property or method of a value; what it gives."""
    case = shell.case
    marks = target.marks.union(*(value.marks for value in arguments)) - {"missing"}
    for value in arguments:
        for block in iter_blocks(value):
            shell.block(block, target)
    if node.arguments is None:
        return _read_property(target, name, marks)
    if name in ("invoke", "invokereturnasis") and target.block is not None:
        case.add(FindingGrade.DANGEROUS, "dynamic", "it runs a block of code by another way", node.span)
        return shell.block(target.block, None, arguments)
    if target.kind == "web" or name in dotnet.WEB_READS | dotnet.WEB_FILES | dotnet.WEB_SENDS:
        return _access_web(shell, target, name, arguments, node, marks)
    worked = values.call_method(target, name, arguments) if target.kind in ("string", "int", "data") else None
    if worked is not None:
        return worked
    if "socket" in marks and name in CONNECTION_METHODS:
        _mark_arguments(shell, node, marks)
        return PowerShellValue(marks=marks)
    if target.kind == "bytes" or (name == "getstring" and arguments):
        encoding = "utf-16-le" if target.kind == "encoding:unicode" else "utf-8"
        return values.decode_text(arguments[0], encoding) if len(arguments) == 1 else PowerShellValue(marks=marks)
    if name in dotnet.PURE_METHODS:
        return PowerShellValue(marks=marks, files=target.files, kind="data" if not target.files else "")
    _note_unknown_method(shell, target, name, node, marks)
    return PowerShellValue(marks=marks)


def _note_unknown_method(
    shell: PowerShellAnalyzer, target: PowerShellValue, name: str, node: MemberAccess, marks: frozenset[str]
) -> None:
    """Note a method of which only its name and the marks of what it is given tell something."""
    case = shell.case
    if "shadow" in marks:
        case.add(FindingGrade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", node.span)
    case.executes = case.executes or name in ("start", "invoke", "run", "exec", "shellexecute", "create")
    if "network" in marks and name in RUNNING_METHODS:
        case.add(FindingGrade.CATASTROPHIC, "network_code", "it runs code straight from the network", node.span)
    if name in ("delete", "deletesubkeytree", "deletesubkey") and target.files:
        judge_delete(shell, target, BoundArguments(), node.span, filtered=False)
    case.add(FindingGrade.DANGEROUS, "method", f"the method {name!r} is not known to be harmless", node.span)


def _read_property(target: PowerShellValue, name: str, marks: frozenset[str]) -> PowerShellValue:
    if target.table is not None:
        return next((item for key, item in target.table if key == name), UNKNOWN_VALUE).marked(marks)
    if target.files:
        return (
            PowerShellValue(marks=marks, files=target.files)
            if name in ("fullname", "name", "pspath", "path", "versioninfo")
            else PowerShellValue(marks=marks, kind="data")
        )
    if name == "path" and target.kind == "string":
        return target
    return PowerShellValue(marks=marks, kind="data")


def _mark_arguments(shell: PowerShellAnalyzer, node: MemberAccess, marks: frozenset[str]) -> None:
    """Mark the variables that a stream reads into as made from its data."""
    for argument in node.arguments or ():
        if isinstance(argument, VariableNode):
            shell.scope[argument.name] = PowerShellValue(marks=marks)


def _access_web(
    shell: PowerShellAnalyzer,
    target: PowerShellValue,
    name: str,
    arguments: Sequence[PowerShellValue],
    node: MemberAccess,
    marks: frozenset[str],
) -> PowerShellValue:
    case = shell.case
    if name == "readtoend" and target.kind == "reader":
        return PowerShellValue(marks=marks)
    if arguments and name not in ("getresponse", "getresponsestream", "readtoend"):
        judge_target(shell, arguments[0], node.span)
    if name in dotnet.WEB_READS:
        return PowerShellValue(marks=marks | {"network"})
    if name in dotnet.WEB_FILES:
        if len(arguments) > 1 and arguments[1].text is not None:
            note_write(case, arguments[1].text, node.span, fetched=True)
        else:
            case.add(FindingGrade.DANGEROUS, "unresolved", "it is not known where the download goes", node.span)
        return UNKNOWN_VALUE
    if name in dotnet.WEB_SENDS and name != "uploadfile":
        for value in arguments[1:]:
            judge_sent_value(shell, value, node.span)
        return PowerShellValue(marks=marks | {"network"})
    if name == "uploadfile":
        for value in arguments[1:]:
            judge_sent_file(shell, value, node.span)
        return UNKNOWN_VALUE
    if name not in dotnet.PURE_METHODS:
        case.add(FindingGrade.DANGEROUS, "method", f"the method {name!r} is not known to be harmless", node.span)
    return PowerShellValue(marks=marks | {"network"})


def access_static_member(
    shell: PowerShellAnalyzer, kind: str, name: str, arguments: Sequence[PowerShellValue], node: MemberAccess
) -> PowerShellValue:
    """Note the use of a static member of a type; what it gives."""
    case = shell.case
    marks = frozenset[str]().union(*(value.marks for value in arguments)) - {"missing"}
    for value in arguments:
        for block in iter_blocks(value):
            shell.block(block)
    if name == "new" and node.arguments is not None:
        return create_object(shell, kind, arguments, node.span)
    if kind in dotnet.IO_TYPES:
        return _access_files(shell, kind, name, arguments, node, marks)
    if kind == "environment":
        return _access_environment(shell, name, arguments, node, marks)
    if kind == "scriptblock":
        return _create_script_block(shell, arguments, node, marks)
    if (worked := values.call_static_method(kind, name, arguments)) is not None:
        return worked
    if kind in dotnet.PURE_TYPES or (kind, name) in dotnet.PURE_MEMBERS:
        return PowerShellValue(marks=marks, kind=f"encoding:{name}" if kind == "text.encoding" else "data")
    case.executes = case.executes or "process" in kind or "reflection" in kind or "assembly" in kind
    if "network" in marks:
        case.add(FindingGrade.CATASTROPHIC, "network_code", "it loads code straight from the network", node.span)
    case.add(FindingGrade.DANGEROUS, "dotnet", f"[{kind}]::{name} is not known to be harmless", node.span)
    return PowerShellValue(marks=marks)


def _access_files(
    shell: PowerShellAnalyzer,
    kind: str,
    name: str,
    arguments: Sequence[PowerShellValue],
    node: MemberAccess,
    marks: frozenset[str],
) -> PowerShellValue:
    case = shell.case
    first = arguments[0] if arguments else UNKNOWN_VALUE
    none = BoundArguments()
    if name in dotnet.IO_READS:
        return PowerShellValue(marks=marks | judge_read(shell, first, none, node.span))
    if name in dotnet.IO_WRITES:
        judge_write(shell, first, none, node.span)
        return UNKNOWN_VALUE
    if name == "delete":
        recursive = len(arguments) > 1 and (arguments[1].text or "true").lower() == "true"
        note_delete(case, first.text, node.span, guess=first.guess, recursive=recursive)
        case.add(FindingGrade.DANGEROUS, "dotnet", f"[{kind}]::{name} is asked about each time", node.span)
        return UNKNOWN_VALUE
    if name in ("copy", "move", "replace") and len(arguments) > 1:
        (judge_write if name != "copy" else judge_read)(shell, first, none, node.span)
        judge_write(shell, arguments[1], none, node.span)
        return UNKNOWN_VALUE
    case.add(FindingGrade.DANGEROUS, "dotnet", f"[{kind}]::{name} is not known to be harmless", node.span)
    return UNKNOWN_VALUE


def _access_environment(
    shell: PowerShellAnalyzer,
    name: str,
    arguments: Sequence[PowerShellValue],
    node: MemberAccess,
    marks: frozenset[str],
) -> PowerShellValue:
    if name == "getenvironmentvariable" and len(arguments) == 1 and arguments[0].text is not None:
        return shell.environment(arguments[0].text, node.span)
    if name == "getenvironmentvariables" or name == "getenvironmentvariable":
        shell.case.add(FindingGrade.DANGEROUS, "secret", "it reads variables that may hold secrets", node.span)
        return PowerShellValue(marks=frozenset(("secret",)))
    if (
        (known_to_read := ("environment", name) in dotnet.PURE_MEMBERS)
        and name == "currentdirectory"
        and shell.case.cwd is not None
    ):
        return create_known_value(str(shell.case.cwd))
    if name == "getfolderpath" and arguments and (arguments[0].text or "").lower() == "userprofile":
        return create_known_value(str(shell.case.judging.home))
    if name == "username":
        return create_known_value(shell.case.judging.user)
    if not known_to_read:
        shell.case.add(
            FindingGrade.DANGEROUS, "dotnet", f"[environment]::{name} is not known to be harmless", node.span
        )
    return PowerShellValue(marks=marks)


def _create_script_block(
    shell: PowerShellAnalyzer, arguments: Sequence[PowerShellValue], node: MemberAccess, marks: frozenset[str]
) -> PowerShellValue:
    case = shell.case
    case.executes = True
    case.add(FindingGrade.DANGEROUS, "dynamic", "it makes a block of code from text", node.span)
    if "network" in marks:
        case.add(FindingGrade.CATASTROPHIC, "network_code", "it runs code straight from the network", node.span)
    if arguments and arguments[0].text is not None:
        judge_nested_text(case, "powershell", arguments[0].text)
    return PowerShellValue(marks=marks, kind="scriptblock")
