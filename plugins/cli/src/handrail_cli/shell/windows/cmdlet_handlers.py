"""The cmdlets that need more than data: those that run code, start programs, go elsewhere, or give names a meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from handrail.fs import path_resolution
from handrail_cli.shell.cmd.parser import split_arguments
from handrail_cli.shell.powershell import dotnet, values
from handrail_cli.shell.powershell.nodes import CommandNode, VariableNode
from handrail_cli.shell.powershell.values import UNKNOWN_VALUE, PowerShellValue, create_known_value
from handrail_cli.shell.windows import variable_assignment
from handrail_cli.shell.windows.argument_binding import BoundArguments
from handrail_cli.shell.windows.findings import FindingGrade, Span
from handrail_cli.shell.windows.member_access import create_object
from handrail_cli.shell.windows.parameter_effects import iter_blocks, judge_read, judge_write
from handrail_cli.shell.windows.path_effects import WILDCARD, note_read, note_run, note_write, resolve_path, split_drive
from handrail_cli.shell.windows.program_analyzer import judge_program
from handrail_cli.shell.windows.program_call import CallWord, ProgramCall, StdinContent, judge_nested_text

if TYPE_CHECKING:
    from handrail_cli.shell.windows.powershell_analyzer import PowerShellAnalyzer

PATH_SEPARATOR = re.compile(r"[\\/]")


def _handle_invoke_expression(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    """Invoke-Expression: its text is code."""
    case = shell.case
    value = bound.one("Command") or UNKNOWN_VALUE
    if value.block is not None:
        return shell.block(value.block)
    if "network" in value.marks:
        case.add(FindingGrade.CATASTROPHIC, "network_code", "it runs code straight from the network", node.span)
    if value.text is None:
        case.executes = True
        case.add(FindingGrade.DANGEROUS, "opaque_code", "it runs text that is not known before", node.span)
        return PowerShellValue(marks=value.marks)
    return judge_nested_text(case, "powershell", value.text, session=shell).marked(value.marks)


def _handle_invoke_command(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    case = shell.case
    case.started += 1
    for name, option in bound.kinds.items():
        if option.beyond:
            case.add(
                FindingGrade.DANGEROUS, "remoting", f"-{name} makes it act elsewhere, or as somebody else", node.span
            )
    for name in ("FilePath", "LiteralPath"):
        if (path := bound.one(name)) is not None:
            _run_file(shell, path, node.span)
    result = UNKNOWN_VALUE
    for name in ("InitializationScript", "ScriptBlock"):
        value = bound.one(name)
        if value is None:
            continue
        if value.block is None:
            case.executes = True
            case.add(FindingGrade.DANGEROUS, "opaque_code", "it runs code that is not known before", node.span)
        for block in iter_blocks(value):
            with shell.uncertain():
                arguments = bound.one("ArgumentList")
                result = shell.block(block, piped, values.flatten_value(arguments) if arguments is not None else ())
    return result


def _run_file(shell: PowerShellAnalyzer, value: PowerShellValue, span: Span) -> None:
    if value.text is None:
        shell.case.add(FindingGrade.DANGEROUS, "opaque_code", "it is not known what it runs", span)
    else:
        note_run(shell.case, value.text, span)


def _handle_start_process(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    case = shell.case
    case.started += 1
    verb = bound.one("Verb")
    if verb is not None and (verb.text is None or verb.text.lower().startswith("runas")):
        case.add(FindingGrade.DANGEROUS, "privilege", "it starts a program with another's power", node.span)
    elif verb is not None:
        case.add(FindingGrade.DANGEROUS, "opens", "it has a file opened by whatever program is set for it", node.span)
    for name in ("Credential", "LoadUserProfile"):
        if name in bound.given:
            case.add(FindingGrade.DANGEROUS, "privilege", "it starts a program as somebody else", node.span)
    if "Environment" in bound.given:
        case.add(FindingGrade.DANGEROUS, "variable", "it sets variables for a program", node.span)
    style = bound.one("WindowStyle")
    if style is not None and (style.text is None or style.text.lower() == "hidden"):
        case.add(FindingGrade.UNKNOWN, "hidden", "it hides the window of a program", node.span)
    for name, judge in (
        ("RedirectStandardInput", judge_read),
        ("RedirectStandardOutput", judge_write),
        ("RedirectStandardError", judge_write),
    ):
        if (value := bound.one(name)) is not None:
            judge(shell, value, bound, node.span)
    file = bound.one("FilePath")
    if file is None or file.text is None:
        case.executes = True
        case.add(
            FindingGrade.DANGEROUS, "dynamic", "which program it starts is worked out only when it runs", node.span
        )
        return UNKNOWN_VALUE
    given = bound.one("ArgumentList")
    words = [
        CallWord(item.text, item.guess, node.span, item.marks)
        for item in (values.flatten_value(given) if given is not None else ())
    ]
    if len(words) == 1 and words[0].text is not None:
        words = [CallWord(text, text, node.span, words[0].marks) for text in split_arguments(words[0].text)]
    stdin = StdinContent(None, frozenset(("file",))) if "RedirectStandardInput" in bound.given else None
    return PowerShellValue(
        marks=judge_program(case, ProgramCall(file.text, tuple(words), stdin, node.span, started=True))
    )


def _handle_new_object(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    case = shell.case
    if "ComObject" in bound.given:
        case.executes = True
        case.add(FindingGrade.DANGEROUS, "com", "it acts through a component of the system", node.span)
        return UNKNOWN_VALUE
    name = bound.one("TypeName")
    if name is None or name.text is None:
        case.add(FindingGrade.DANGEROUS, "dynamic", "what it makes is worked out only when it runs", node.span)
        return UNKNOWN_VALUE
    arguments = bound.one("ArgumentList")
    given = values.flatten_value(arguments) if arguments is not None else ()
    return create_object(shell, name.text.lower().strip("[]").removeprefix("system."), given, node.span)


def _handle_set_location(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    """Set-Location and Push-Location: later paths start elsewhere."""
    case = shell.case
    path = bound.one("Path") or bound.one("LiteralPath")
    if path is None:
        return UNKNOWN_VALUE
    if path.text is None:
        case.cwd = None
        return UNKNOWN_VALUE
    drive = split_drive(path.text)
    if drive is not None and drive[0] != "filesystem":
        note_read(case, path.text, node.span, listing=True)
        case.cwd = None
        return UNKNOWN_VALUE
    found = resolve_path(case, path.text)
    case.touch("session", found.real if found is not None else "")
    if found is not None and (found.refused or found.doubtful):
        note_read(case, path.text, node.span, listing=True)
    case.cwd = found.path if found is not None and found.refused is None else None
    return UNKNOWN_VALUE


def _handle_pop_location(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    shell.case.cwd = None
    return UNKNOWN_VALUE


def _handle_set_alias(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    name, target = bound.one("Name"), bound.one("Value")
    if name is None or target is None or name.text is None or target.text is None:
        shell.case.add(
            FindingGrade.DANGEROUS, "redefines", "it gives a command a new meaning that is not known", node.span
        )
    else:
        shell.aliases[name.text.lower()] = target.text
        shell.functions.pop(name.text.lower(), None)
    return UNKNOWN_VALUE


def _handle_set_variable(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    name, value = bound.one("Name"), bound.one("Value")
    if name is None or name.text is None or WILDCARD.search(name.text):
        shell.case.add(FindingGrade.DANGEROUS, "variable", "it sets variables whose names are not known", node.span)
    else:
        target = VariableNode(node.span, name.text.lower().rpartition(":")[2])
        variable_assignment.assign_target(shell, target, value if value is not None else UNKNOWN_VALUE, "=")
    return UNKNOWN_VALUE


def _handle_clear_variables(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    shell.scope.clear()
    return UNKNOWN_VALUE


def _handle_get_variable(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    name = bound.one("Name")
    if name is not None and name.text and bound.on("ValueOnly") and not WILDCARD.search(name.text):
        return shell.variable(name.text.lower(), node.span)
    marks = frozenset[str]().union(*(value.marks for value in shell.scope.values()))
    return PowerShellValue(marks=marks)


def _handle_import_module(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    """Handle Import-Module, which runs the code of a module: a file or an installed one."""
    case = shell.case
    for name, option in bound.kinds.items():
        if option.beyond:
            case.add(FindingGrade.DANGEROUS, "loads_code", f"-{name} loads code that is not seen", node.span)
    for item in values.flatten_value(bound.one("Name") or UNKNOWN_VALUE):
        if item.text is None:
            case.add(FindingGrade.DANGEROUS, "loads_code", "it is not known which module it loads", node.span)
        elif PATH_SEPARATOR.search(item.text) or item.text.lower().endswith((".psm1", ".psd1", ".dll", ".ps1")):
            note_run(case, item.text, node.span)
        else:
            case.add(FindingGrade.EFFECT, "loads_module", f"it loads the module {item.text!r}", node.span)
    return UNKNOWN_VALUE


def _handle_get_clipboard(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    shell.case.add(FindingGrade.UNKNOWN, "clipboard", "it reads your clipboard", node.span)
    return PowerShellValue(marks=frozenset(("secret",)))


def _handle_new_item(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    """Handle New-Item, which also creates links: their targets are then accessible by another name."""
    kind, target = bound.one("ItemType"), bound.one("Value")
    if kind is None or (kind.text is not None and kind.text.lower() in ("file", "directory", "f", "d", "dir", "fi")):
        return UNKNOWN_VALUE
    links = kind.text is not None and kind.text.lower() in ("symboliclink", "junction", "hardlink", "symlink")
    found = resolve_path(shell.case, target.text) if links and target is not None and target.text is not None else None
    if found is None or not path_resolution.is_inside_roots(found.path, shell.case.judging.workspace):
        shell.case.add(
            FindingGrade.DANGEROUS,
            "link_out",
            "it makes a link that leaves the workspace, or something that is not known",
            node.span,
        )
    return UNKNOWN_VALUE


def _handle_install_module(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    scope = bound.one("Scope")
    shell.case.touch("network", "")
    if scope is not None and (scope.text is None or scope.text.lower() != "currentuser"):
        shell.case.add(FindingGrade.DANGEROUS, "installs", "it installs for all users", node.span)
    shell.case.add(FindingGrade.EFFECT, "network", "it fetches and installs a module", node.span)
    return UNKNOWN_VALUE


def _handle_rename_item(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    """Handle Rename-Item, whose new name is in the directory of the old one."""
    path, new = bound.one("Path") or bound.one("LiteralPath"), bound.one("NewName")
    if path is not None and path.text is not None and new is not None and new.text is not None:
        folder = re.sub(r"[^\\/]*$", "", path.text)
        bound.given["NewName"] = [new if re.search(r"[\\/]", new.text) else create_known_value(f"{folder}{new.text}")]
    elif new is not None and new.text is None and path is not None and (path.files or path.text):
        bound.given.pop("NewName")
    return UNKNOWN_VALUE


def _handle_expand_archive(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    if "DestinationPath" not in bound.given and shell.case.cwd is not None:
        note_write(shell.case, str(shell.case.cwd), node.span)
    return UNKNOWN_VALUE


def _handle_for_each(
    shell: PowerShellAnalyzer, bound: BoundArguments, node: CommandNode, piped: PowerShellValue | None
) -> PowerShellValue:
    """ForEach-Object with a name instead of a block: a property, or a method that is called on each."""
    for name in ("MemberName", "Process"):
        for item in values.flatten_value(bound.one(name) or UNKNOWN_VALUE):
            if item.block is not None or name not in bound.given:
                continue
            if (item.text or "?").lower() not in dotnet.PURE_METHODS | dotnet.COMMON_PROPERTIES:
                shell.case.add(
                    FindingGrade.DANGEROUS, "method", f"the method {item.text!r} is not known to be harmless", node.span
                )
                if piped is not None and "shadow" in piped.marks:
                    shell.case.add(
                        FindingGrade.CATASTROPHIC,
                        "deletes_backups",
                        "it deletes what could bring files back",
                        node.span,
                    )
    return UNKNOWN_VALUE


CmdletHandler = Callable[["PowerShellAnalyzer", BoundArguments, CommandNode, "PowerShellValue | None"], PowerShellValue]
CMDLET_HANDLERS: Mapping[str, CmdletHandler] = {
    "invoke-expression": _handle_invoke_expression,
    "foreach-object": _handle_for_each,
    "invoke-command": _handle_invoke_command,
    "start-job": _handle_invoke_command,
    "start-threadjob": _handle_invoke_command,
    "start-process": _handle_start_process,
    "new-object": _handle_new_object,
    "set-location": _handle_set_location,
    "push-location": _handle_set_location,
    "pop-location": _handle_pop_location,
    "set-alias": _handle_set_alias,
    "new-alias": _handle_set_alias,
    "set-variable": _handle_set_variable,
    "new-variable": _handle_set_variable,
    "remove-variable": _handle_clear_variables,
    "clear-variable": _handle_clear_variables,
    "get-variable": _handle_get_variable,
    "import-module": _handle_import_module,
    "remove-module": lambda shell, bound, node, piped: UNKNOWN_VALUE,
    "get-clipboard": _handle_get_clipboard,
    "new-item": _handle_new_item,
    "install-module": _handle_install_module,
    "install-psresource": _handle_install_module,
    "install-script": _handle_install_module,
    "update-module": _handle_install_module,
    "save-module": _handle_install_module,
    "rename-item": _handle_rename_item,
    "expand-archive": _handle_expand_archive,
}
# Whose data counts beside that.
ALSO_DATA_DRIVEN = frozenset(("foreach-object", "new-item", "rename-item", "expand-archive", "save-module"))
