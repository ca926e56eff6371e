"""The cmdlets that need more than data: those that run code, start programs, go elsewhere, or give names a meaning."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from handrail.files import paths
from handrail_cli.windows import assigning, dotnet, powershell_values as values
from handrail_cli.windows.binding import Bound
from handrail_cli.windows.calls import Call, Stdin, Word, nested
from handrail_cli.windows.cmd_parser import split_arguments
from handrail_cli.windows.findings import Grade, Span
from handrail_cli.windows.members import make
from handrail_cli.windows.parameters import blocks_in, judge_read, judge_write
from handrail_cli.windows.places import WILD, drive_of, reads, resolved, runs, writes
from handrail_cli.windows.powershell_nodes import Invoked, Variable
from handrail_cli.windows.powershell_values import UNKNOWN, Value, known
from handrail_cli.windows.programs import program

if TYPE_CHECKING:
    from handrail_cli.windows.powershell import Shell

NAMES_A_FILE = re.compile(r"[\\/]")


def _expression(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    """Invoke-Expression: its text is code."""
    case = shell.case
    value = bound.one("Command") or UNKNOWN
    if value.block is not None:
        return shell.block(value.block)
    if "network" in value.marks:
        case.add(Grade.CATASTROPHIC, "network_code", "it runs code straight from the network", node.span)
    if value.text is None:
        case.executes = True
        case.add(Grade.DANGEROUS, "opaque_code", "it runs text that is not known before", node.span)
        return Value(marks=value.marks)
    return nested(case, "powershell", value.text, session=shell).marked(value.marks)


def _invoke_command(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    case = shell.case
    case.started += 1
    for name, option in bound.kinds.items():
        if option.beyond:
            case.add(Grade.DANGEROUS, "remoting", f"-{name} makes it act elsewhere, or as somebody else", node.span)
    for name in ("FilePath", "LiteralPath"):
        if (path := bound.one(name)) is not None:
            _run_file(shell, path, node.span)
    result = UNKNOWN
    for name in ("InitializationScript", "ScriptBlock"):
        value = bound.one(name)
        if value is None:
            continue
        if value.block is None:
            case.executes = True
            case.add(Grade.DANGEROUS, "opaque_code", "it runs code that is not known before", node.span)
        for block in blocks_in(value):
            with shell.uncertain():
                arguments = bound.one("ArgumentList")
                result = shell.block(block, piped, values.flat(arguments) if arguments is not None else ())
    return result


def _run_file(shell: Shell, value: Value, span: Span) -> None:
    if value.text is None:
        shell.case.add(Grade.DANGEROUS, "opaque_code", "it is not known what it runs", span)
    else:
        runs(shell.case, value.text, span)


def _start_process(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    case = shell.case
    case.started += 1
    verb = bound.one("Verb")
    if verb is not None and (verb.text is None or verb.text.lower().startswith("runas")):
        case.add(Grade.DANGEROUS, "privilege", "it starts a program with another's power", node.span)
    elif verb is not None:
        case.add(Grade.DANGEROUS, "opens", "it has a file opened by whatever program is set for it", node.span)
    for name in ("Credential", "LoadUserProfile"):
        if name in bound.given:
            case.add(Grade.DANGEROUS, "privilege", "it starts a program as somebody else", node.span)
    if "Environment" in bound.given:
        case.add(Grade.DANGEROUS, "variable", "it sets variables for a program", node.span)
    style = bound.one("WindowStyle")
    if style is not None and (style.text is None or style.text.lower() == "hidden"):
        case.add(Grade.UNKNOWN, "hidden", "it hides the window of a program", node.span)
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
        case.add(Grade.DANGEROUS, "dynamic", "which program it starts is worked out only when it runs", node.span)
        return UNKNOWN
    given = bound.one("ArgumentList")
    words = [
        Word(item.text, item.guess, node.span, item.marks) for item in (values.flat(given) if given is not None else ())
    ]
    if len(words) == 1 and words[0].text is not None:
        words = [Word(text, text, node.span, words[0].marks) for text in split_arguments(words[0].text)]
    stdin = Stdin(None, frozenset(("file",))) if "RedirectStandardInput" in bound.given else None
    return Value(marks=program(case, Call(file.text, tuple(words), stdin, node.span, started=True)))


def _new_object(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    case = shell.case
    if "ComObject" in bound.given:
        case.executes = True
        case.add(Grade.DANGEROUS, "com", "it acts through a component of the system", node.span)
        return UNKNOWN
    name = bound.one("TypeName")
    if name is None or name.text is None:
        case.add(Grade.DANGEROUS, "dynamic", "what it makes is worked out only when it runs", node.span)
        return UNKNOWN
    arguments = bound.one("ArgumentList")
    given = values.flat(arguments) if arguments is not None else ()
    return make(shell, name.text.lower().strip("[]").removeprefix("system."), given, node.span)


def _go(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    """Set-Location and Push-Location: later paths start elsewhere."""
    case = shell.case
    path = bound.one("Path") or bound.one("LiteralPath")
    if path is None:
        return UNKNOWN
    if path.text is None:
        case.cwd = None
        return UNKNOWN
    drive = drive_of(path.text)
    if drive is not None and drive[0] != "filesystem":
        reads(case, path.text, node.span, listing=True)
        case.cwd = None
        return UNKNOWN
    found = resolved(case, path.text)
    case.touch("session", found.real if found is not None else "")
    if found is not None and (found.refused or found.doubtful):
        reads(case, path.text, node.span, listing=True)
    case.cwd = found.path if found is not None and found.refused is None else None
    return UNKNOWN


def _pop(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    shell.case.cwd = None
    return UNKNOWN


def _set_alias(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    name, target = bound.one("Name"), bound.one("Value")
    if name is None or target is None or name.text is None or target.text is None:
        shell.case.add(Grade.DANGEROUS, "redefines", "it gives a command a new meaning that is not known", node.span)
    else:
        shell.aliases[name.text.lower()] = target.text
        shell.functions.pop(name.text.lower(), None)
    return UNKNOWN


def _set_variable(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    name, value = bound.one("Name"), bound.one("Value")
    if name is None or name.text is None or WILD.search(name.text):
        shell.case.add(Grade.DANGEROUS, "variable", "it sets variables whose names are not known", node.span)
    else:
        target = Variable(node.span, name.text.lower().rpartition(":")[2])
        assigning.assign(shell, target, value if value is not None else UNKNOWN, "=")
    return UNKNOWN


def _forget(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    shell.scope.clear()
    return UNKNOWN


def _get_variable(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    name = bound.one("Name")
    if name is not None and name.text and bound.on("ValueOnly") and not WILD.search(name.text):
        return shell.variable(name.text.lower(), node.span)
    marks = frozenset[str]().union(*(value.marks for value in shell.scope.values()))
    return Value(marks=marks)


def _import_module(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    """Importing runs a module's code: a file's, or an installed one's."""
    case = shell.case
    for name, option in bound.kinds.items():
        if option.beyond:
            case.add(Grade.DANGEROUS, "loads_code", f"-{name} loads code that is not seen", node.span)
    for item in values.flat(bound.one("Name") or UNKNOWN):
        if item.text is None:
            case.add(Grade.DANGEROUS, "loads_code", "it is not known which module it loads", node.span)
        elif NAMES_A_FILE.search(item.text) or item.text.lower().endswith((".psm1", ".psd1", ".dll", ".ps1")):
            runs(case, item.text, node.span)
        else:
            case.add(Grade.EFFECT, "loads_module", f"it loads the module {item.text!r}", node.span)
    return UNKNOWN


def _get_clipboard(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    shell.case.add(Grade.UNKNOWN, "clipboard", "it reads your clipboard", node.span)
    return Value(marks=frozenset(("secret",)))


def _new_item(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    """New-Item makes links, too: what they lead to is then reached by another name."""
    kind, target = bound.one("ItemType"), bound.one("Value")
    if kind is None or (kind.text is not None and kind.text.lower() in ("file", "directory", "f", "d", "dir", "fi")):
        return UNKNOWN
    links = kind.text is not None and kind.text.lower() in ("symboliclink", "junction", "hardlink", "symlink")
    found = resolved(shell.case, target.text) if links and target is not None and target.text is not None else None
    if found is None or not paths.inside(found.path, shell.case.judging.workspace):
        shell.case.add(
            Grade.DANGEROUS,
            "link_out",
            "it makes a link that leaves the workspace, or something that is not known",
            node.span,
        )
    return UNKNOWN


def _install_module(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    scope = bound.one("Scope")
    shell.case.touch("network", "")
    if scope is not None and (scope.text is None or scope.text.lower() != "currentuser"):
        shell.case.add(Grade.DANGEROUS, "installs", "it installs for all users", node.span)
    shell.case.add(Grade.EFFECT, "network", "it fetches and installs a module", node.span)
    return UNKNOWN


def _rename_item(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    """The new name is one in the folder of the old."""
    path, new = bound.one("Path") or bound.one("LiteralPath"), bound.one("NewName")
    if path is not None and path.text is not None and new is not None and new.text is not None:
        folder = re.sub(r"[^\\/]*$", "", path.text)
        bound.given["NewName"] = [new if re.search(r"[\\/]", new.text) else known(f"{folder}{new.text}")]
    elif new is not None and new.text is None and path is not None and (path.files or path.text):
        bound.given.pop("NewName")
    return UNKNOWN


def _expand_archive(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    if "DestinationPath" not in bound.given and shell.case.cwd is not None:
        writes(shell.case, str(shell.case.cwd), node.span)
    return UNKNOWN


def _for_each(shell: Shell, bound: Bound, node: Invoked, piped: Value | None) -> Value:
    """ForEach-Object with a name instead of a block: a property, or a method that is called on each."""
    for name in ("MemberName", "Process"):
        for item in values.flat(bound.one(name) or UNKNOWN):
            if item.block is not None or name not in bound.given:
                continue
            if (item.text or "?").lower() not in dotnet.PURE_METHODS | dotnet.PROPERTIES:
                shell.case.add(
                    Grade.DANGEROUS, "method", f"the method {item.text!r} is not known to be harmless", node.span
                )
                if piped is not None and "shadow" in piped.marks:
                    shell.case.add(
                        Grade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", node.span
                    )
    return UNKNOWN


Handler = Callable[["Shell", Bound, Invoked, "Value | None"], Value]
HANDLERS: Mapping[str, Handler] = {
    "invoke-expression": _expression,
    "foreach-object": _for_each,
    "invoke-command": _invoke_command,
    "start-job": _invoke_command,
    "start-threadjob": _invoke_command,
    "start-process": _start_process,
    "new-object": _new_object,
    "set-location": _go,
    "push-location": _go,
    "pop-location": _pop,
    "set-alias": _set_alias,
    "new-alias": _set_alias,
    "set-variable": _set_variable,
    "new-variable": _set_variable,
    "remove-variable": _forget,
    "clear-variable": _forget,
    "get-variable": _get_variable,
    "import-module": _import_module,
    "remove-module": lambda shell, bound, node, piped: UNKNOWN,
    "get-clipboard": _get_clipboard,
    "new-item": _new_item,
    "install-module": _install_module,
    "install-psresource": _install_module,
    "install-script": _install_module,
    "update-module": _install_module,
    "save-module": _install_module,
    "rename-item": _rename_item,
    "expand-archive": _expand_archive,
}
# Whose data counts beside that.
ALSO_BY_DATA = frozenset(("foreach-object", "new-item", "rename-item", "expand-archive", "save-module"))
