"""Judges cmdlets by their data, the few that need more than data, and the members of .NET types."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from handrail_cli.windows import dotnet
from handrail_cli.windows import powershell_values as values
from handrail_cli.windows.cmdlets import ACTING_VERBS, DESTRUCTIVE, FATAL, NOUNS, Cmdlet, Option
from handrail_cli.windows.findings import Grade, Span
from handrail_cli.windows.places import WILD, deletes, drive_of, reads, resolved, runs, secret, writes
from handrail_cli.windows.powershell_nodes import Block, Invoked, Member, Node, Parameter, Variable, Verbatim
from handrail_cli.windows.powershell_values import NOTHING, UNKNOWN, Files, Value, known
from handrail_cli.windows.programs import Call, Stdin, Word, host_of, nested, program

if TYPE_CHECKING:
    from handrail_cli.windows.powershell import Shell

# What passes on what is piped into it, and what keeps only some of it.
PASSING = frozenset(("sort-object", "write-output", "out-string", "tee-object", "get-unique", "out-host", "resolve-path", "convert-path",
"foreach-object",
                     "group-object", "get-item", "out-default"))  # fmt: skip
CHOOSING = frozenset(("where-object", "select-object"))
# Classes of WMI whose objects are what backups consist of.
SHADOW = re.compile(r"win32_shadow\w*|msft_shadow\w*", re.IGNORECASE)
SECRET_MODULE = re.compile(r"[\\/]")
FALSE = frozenset(("false", "0", ""))


@dataclass(slots=True)
class Bound:
    """The arguments of a cmdlet by parameter. `words` are its words with the names of parameters written out."""

    given: dict[str, list[Value]] = field(default_factory=dict[str, list[Value]])
    kinds: dict[str, Option] = field(default_factory=dict[str, Option])
    spans: dict[str, Span] = field(default_factory=dict[str, Span])
    words: list[str] = field(default_factory=list[str])
    odd: bool = False

    def on(self, name: str) -> bool:
        """Whether a switch is set."""
        return any(value.text is None or value.text.lower() not in FALSE for value in self.given.get(name, ()))

    def one(self, name: str) -> Value | None:
        """The value of a parameter; of several, all."""
        found = self.given.get(name)
        return None if not found else found[0] if len(found) == 1 else values.listed(found)


def run(shell: Shell, cmdlet: Cmdlet, node: Invoked, piped: Value | None) -> Value:
    """Judge a cmdlet that is listed; what it gives."""
    case = shell.case
    before = len(case.touches)
    lowered = cmdlet.name.lower()
    worst = len(case.found)
    bound = bind(shell, cmdlet, node)
    if piped is not None:
        _take_piped(cmdlet, bound, piped, node.span)
    dry = bound.on("WhatIf")
    if lowered in DESTRUCTIVE and not dry:
        case.add(Grade.DANGEROUS, "destructive", f"{cmdlet.name} is asked about each time", node.span)
    if bound.odd:
        case.add(Grade.UNKNOWN, "unknown_option", f"{cmdlet.name} has a parameter that is not known", node.span)
    handler = HANDLERS.get(lowered)
    value = handler(shell, bound, node, piped) if handler is not None else UNKNOWN
    if handler is None or lowered in ALSO_BY_DATA:
        by_data = _by_data(shell, cmdlet, bound, node, piped, dry=dry)
        value = by_data if handler is None or lowered == "foreach-object" else value
    if cmdlet.grade is Grade.EFFECT and not dry and len(case.found) == worst:
        case.add(Grade.EFFECT, "changes", f"{cmdlet.name} changes something", node.span)
    case.part((cmdlet.name, *bound.words), node.span, before)
    case.narrowed.append((cmdlet.name,))
    for name in ("OutVariable", "PipelineVariable", "ErrorVariable", "ResponseHeadersVariable", "SessionVariable"):
        if (target := bound.one(name)) is not None and target.text:
            shell.scope[target.text.lstrip("+").lower()] = Value(marks=value.marks)
    return value


def unlisted(shell: Shell, name: str, node: Invoked, piped: Value | None) -> Value:
    """Judge a command with the name of a cmdlet that is not listed; what it gives."""
    case = shell.case
    before = len(case.touches)
    arguments = [shell.argument(item) for item in node.arguments]
    verb, _, noun = name.partition("-")
    marks = frozenset[str]().union(*(value.marks for value in arguments), piped.marks if piped is not None else ())
    if name in DESTRUCTIVE:
        case.add(Grade.DANGEROUS, "destructive", f"{name} is asked about each time", node.span)
    if name in FATAL:
        code, text = FATAL[name]
        case.add(Grade.CATASTROPHIC, code, text, node.span)
    elif "shadow" in marks and verb in ("remove", "invoke", "set"):
        case.add(Grade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", node.span)
    elif verb in ACTING_VERBS:
        code, text = NOUNS.get(noun, ("acts", f"{name} changes more than files of the workspace"))
        case.add(Grade.DANGEROUS, code, text, node.span)
    else:
        case.add(Grade.UNKNOWN, "unknown_command", f"{name} is not known", node.span)
    if name == "add-type":
        case.executes = True
    for value in arguments:
        if value.text and (what := secret(case, value.text)) is not None:
            case.add(Grade.DANGEROUS, "secret", f"{value.text!r} keeps {what}", node.span)
    case.part((name, *(value.guess for value in arguments)), node.span, before)
    return Value(marks=marks)


# -- arguments


def bind(shell: Shell, cmdlet: Cmdlet, node: Invoked) -> Bound:
    """Which parameter each argument goes to."""
    bound = Bound()
    loose: list[tuple[Value, Span]] = []
    waiting = list(node.arguments)
    while waiting:
        item = waiting.pop(0)
        if isinstance(item, Verbatim):
            bound.odd = True
        elif isinstance(item, Parameter):
            _bind_named(shell, cmdlet, bound, item, waiting)
        elif isinstance(item, Variable) and item.splat:
            _bind_splat(cmdlet, bound, shell.variable(item.name, item.span), item.span, loose)
        else:
            loose.append((shell.value(item), item.span))
    _bind_loose(cmdlet, bound, loose)
    return bound


def _bind_named(shell: Shell, cmdlet: Cmdlet, bound: Bound, item: Parameter, waiting: list[Node]) -> None:
    option = cmdlet.option(item.name)
    if option is None:
        bound.odd = True
        bound.words.append(f"-{item.name}")
        if item.value is not None:
            shell.argument(item.value)
        return
    if (not option.kind and not option.beyond) or not option.kind:
        value = shell.value(item.value) if item.value is not None else known("True")
    elif item.value is not None:
        value = shell.value(item.value)
    elif waiting and not isinstance(waiting[0], Parameter | Verbatim):
        value = shell.value(waiting.pop(0))
    else:
        bound.odd = True
        return
    _give(bound, option, value, item.span)


def _bind_splat(cmdlet: Cmdlet, bound: Bound, value: Value, span: Span, loose: list[tuple[Value, Span]]) -> None:
    if value.table is not None:
        for name, item in value.table:
            option = cmdlet.option(name)
            if option is None:
                bound.odd = True
            else:
                _give(bound, option, item, span)
    elif value.items is not None:
        loose.extend((item, span) for item in value.items)
    else:
        bound.odd = True
        # What is not seen may name anything.
        loose.append((UNKNOWN, span))


def _bind_loose(cmdlet: Cmdlet, bound: Bound, loose: Sequence[tuple[Value, Span]]) -> None:
    free = [option for option in cmdlet.positions if option.name not in bound.given]
    for value, span in loose:
        block = value.block is not None
        option = next((o for o in free if (o.kind == "x") == block), None) or next(iter(free), None)
        if option is not None:
            # Parameters of one position are of different sets: the one that is taken rules the others out.
            free = [other for other in free if other.position != option.position]
        else:
            option = cmdlet.positions[-1] if cmdlet.positions else None
        if option is None:
            bound.odd = True
            continue
        _give(bound, option, value, span)


def _give(bound: Bound, option: Option, value: Value, span: Span) -> None:
    bound.given.setdefault(option.name, []).append(value)
    bound.kinds[option.name] = option
    bound.spans.setdefault(option.name, span)
    if option.kind:
        if option.position is None or option.position > 0 or option.kind in "vx":
            bound.words.append(f"-{option.name}") if option.position is None else None
        bound.words.extend(item.guess for item in values.flat(value))
    else:
        bound.words.append(f"-{option.name}")


def _take_piped(cmdlet: Cmdlet, bound: Bound, piped: Value, span: Span) -> None:
    taking = [option for option in dict.fromkeys(cmdlet.options.values()) if option.piped]
    free = [option for option in taking if option.name not in bound.given]
    option = next((o for o in free if o.kind in "rwdu"), None) or next(iter(free), None)
    if option is not None:
        bound.given[option.name] = [piped]
        bound.kinds[option.name] = option
        bound.spans[option.name] = span


# -- by data


def _by_data(shell: Shell, cmdlet: Cmdlet, bound: Bound, node: Invoked, piped: Value | None, *, dry: bool) -> Value:
    case = shell.case
    marks = piped.marks if piped is not None else frozenset[str]()
    result: Value = piped if piped is not None else UNKNOWN
    filtered = any(name in bound.given for name in ("Filter", "Include"))
    for name, given in bound.given.items():
        option, span = bound.kinds[name], bound.spans[name]
        if option.beyond and (option.kind or bound.on(name)):
            case.add(Grade.DANGEROUS, "option", f"-{name} goes beyond what {cmdlet.name} does", span)
        for value in given:
            for item in values.flat(value) if value.items is not None else (value,):
                marks |= _judge_value(shell, option, item, bound, span, filtered=filtered, dry=dry)
                for block in blocks_in(item):
                    result = shell.block(block, piped)
                    marks |= result.marks
    if any(option.kind == "u" for option in bound.kinds.values()):
        marks |= {"network"}
    return _result(cmdlet, bound, result, piped, marks, filtered=filtered)


def blocks_in(value: Value) -> Iterator[Block]:
    """The blocks of code in a value, wherever they stand in it."""
    if value.block is not None:
        yield value.block
    for item in value.items or ():
        yield from blocks_in(item)
    for _, item in value.table or ():
        yield from blocks_in(item)


def _judge_value(
    shell: Shell, option: Option, value: Value, bound: Bound, span: Span, *, filtered: bool, dry: bool
) -> frozenset[str]:
    """Note what becomes of one value of a parameter; the marks it leaves on what the cmdlet gives."""
    marks = value.marks - {"missing"}
    match option.kind:
        case "r" | "R":
            return marks | _judge_read(shell, value, bound, span)
        case "w" if not dry:
            _judge_write(shell, value, bound, span)
        case "d" if not dry:
            judge_delete(shell, value, bound, span, filtered=filtered)
        case "u":
            _judge_address(shell, value, span)
            return marks | {"network"}
        case "b":
            judge_sent(shell, value, span)
        case "i":
            _judge_sent_file(shell, value, span)
        case _:
            pass
    return marks


def _judge_read(shell: Shell, value: Value, bound: Bound, span: Span) -> frozenset[str]:
    case = shell.case
    if value.files:
        for file in value.files:
            if file.text is not None and secret(case, file.text) is not None:
                return frozenset(("file", "secret"))
        return frozenset(("file",))
    if value.text is None:
        if value.kind not in ("data", "bytes") or value.guess:
            case.add(Grade.UNKNOWN, "unresolved", "it is not known what it reads", span)
            case.touch("read", "")
        return frozenset(("file",))
    count = len(case.found)
    reads(case, value.text, span, recursive=bound.on("Recurse") and "Pattern" in bound.given)
    found = any(reason.code == "secret" for _, reason in list(case.found)[count:]) or _is_secret(shell, value.text)
    return frozenset(("file", "secret")) if found else frozenset(("file",))


def _is_secret(shell: Shell, text: str) -> bool:
    drive = drive_of(text)
    return drive is None and secret(shell.case, text) is not None


def _judge_write(shell: Shell, value: Value, bound: Bound, span: Span) -> None:
    case = shell.case
    if value.files:
        for file in value.files:
            if file.text is None:
                case.add(Grade.DANGEROUS, "unresolved", "it is not known what it writes", span)
            else:
                writes(case, file.text, span)
        return
    if value.text is None:
        case.add(Grade.DANGEROUS, "unresolved", "it is not known what it writes", span)
        case.touch("write", "")
        return
    text = value.text
    name = bound.one("Name")
    if name is not None and name.text and drive_of(text) is not None:
        text = f"{text}\\{name.text}"
    elif name is not None and name.text and "ItemType" in bound.given:
        text = f"{text}\\{name.text}" if case.windows else f"{text}/{name.text}"
    writes(case, text, span, fetched="Uri" in bound.given or "Source" in bound.given)


def judge_delete(shell: Shell, value: Value, bound: Bound, span: Span, *, filtered: bool) -> None:
    """Note the deleting of what a value names."""
    case, recursive = shell.case, bound.on("Recurse")
    separator = "\\" if case.windows else "/"
    for file in value.files:
        if file.text is None:
            deletes(case, None, span, recursive=recursive or file.recursive)
            continue
        inner = f"{file.text}{separator}" if file.text else ""
        if file.filtered:
            deletes(case, f"{inner}some" if file.within else file.text, span)
        else:
            deletes(
                case,
                f"{inner}*" if file.within else file.text,
                span,
                recursive=recursive or file.recursive,
                bulk=file.within,
            )
    if value.files:
        return
    if value.text is None:
        guess = value.guess if value.guess[:1] not in ("", "\\", "/") or value.guess[1:] else ""
        deletes(case, None, span, guess=guess, recursive=recursive)
        return
    text = value.text
    if filtered and (WILD.search(text) or not recursive):
        text = re.sub(r"[*?]+$", "some", text)
        deletes(case, text, span)
        return
    deletes(case, text, span, recursive=recursive)


def _judge_address(shell: Shell, value: Value, span: Span) -> None:
    case = shell.case
    case.touch("network", host_of(value.guess))
    if "secret" in value.marks:
        case.add(Grade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", span)
    elif "file" in value.marks:
        case.add(Grade.DANGEROUS, "sends_data", "it sends what it has read to another machine", span)
    elif value.text is None:
        case.add(Grade.DANGEROUS, "unresolved", "it is not known where it sends its request, or what is in it", span)
    elif value.text.lower().startswith(("file:", "\\\\")):
        case.add(Grade.DANGEROUS, "network_path", f"{value.text!r} is not an address of the web", span)
    case.add(Grade.EFFECT, "network", "it reaches out over the network", span)


def judge_sent(shell: Shell, value: Value, span: Span) -> None:
    """Note what sending a value to another machine amounts to."""
    case = shell.case
    marks = value.marks
    if "secret" in marks:
        case.add(Grade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", span)
    elif value.table is not None:
        for _, item in value.table:
            judge_sent(shell, item, span)
    elif value.items is not None:
        for item in value.items:
            judge_sent(shell, item, span)
    elif value.text is None or "file" in marks:
        case.add(Grade.DANGEROUS, "sends_data", "it sends what it has read to another machine", span)


def _judge_sent_file(shell: Shell, value: Value, span: Span) -> None:
    case = shell.case
    if value.text is None:
        case.add(Grade.DANGEROUS, "unresolved", "it is not known what it sends", span)
        return
    reads(case, value.text, span)
    if secret(case, value.text) is not None:
        case.add(Grade.CATASTROPHIC, "leaks_credentials", "it sends credentials to another machine", span)
    else:
        case.add(Grade.DANGEROUS, "sends_data", "it sends a file to another machine", span)


def _result(
    cmdlet: Cmdlet, bound: Bound, result: Value, piped: Value | None, marks: frozenset[str], *, filtered: bool
) -> Value:
    name = cmdlet.name.lower()
    if name == "get-childitem":
        return Value(marks=marks - {"secret"} | _listing(bound), files=tuple(_listed_files(bound, filtered=filtered)))
    if name in ("get-item", "resolve-path", "convert-path", "get-location"):
        path = bound.one("Path") or bound.one("LiteralPath")
        if path is not None and not path.files:
            return Value(path.text, path.guess, path.items, marks - {"file"}, kind="string")
        return (path or UNKNOWN).marked(marks)
    if name in ("write-output", "get-content") and name == "write-output":
        return (bound.one("InputObject") or NOTHING).marked(marks)
    if name == "join-path":
        return _joined_path(bound).marked(marks)
    if name in ("get-cimclass", "get-ciminstance", "get-wmiobject"):
        words = " ".join(value.guess for given in bound.given.values() for value in given)
        return Value(marks=marks | {"shadow"}) if SHADOW.search(words) else Value(marks=marks)
    if name in CHOOSING and piped is not None:
        files = tuple(replace(file, filtered=True) for file in piped.files)
        return Value(marks=marks, files=files, text=piped.text if name == "select-object" else None, guess=piped.guess)
    if name in PASSING:
        return result.marked(marks)
    if name == "get-clipboard":
        return Value(marks=marks | {"secret"})
    return Value(marks=marks)


def _listing(bound: Bound) -> frozenset[str]:
    path = bound.one("Path") or bound.one("LiteralPath")
    drive = drive_of(path.guess) if path is not None else None
    return frozenset(("secret",)) if drive is not None and drive[0] == "env" else frozenset()


def _listed_files(bound: Bound, *, filtered: bool) -> Iterator[Files]:
    path = bound.one("Path") or bound.one("LiteralPath")
    recursive = bound.on("Recurse") or "Depth" in bound.given
    for item in values.flat(path) if path is not None else (known("."),):
        if item.files:
            yield from (replace(file, recursive=file.recursive or recursive) for file in item.files)
            continue
        text = item.text
        wild = text is not None and re.search(r"[*?]", text) is not None
        yield Files(text, within=not wild, recursive=recursive, filtered=filtered)


def _joined_path(bound: Bound) -> Value:
    first, second = bound.one("Path"), bound.one("ChildPath")
    if first is None or second is None or "AdditionalChildPath" in bound.given:
        return UNKNOWN
    rest = known(second.text.lstrip("\\/"), second.marks) if second.text is not None else second
    start = (
        known(first.text.rstrip("\\/") + ("\\" if "\\" in first.text or ":" in first.text else "/"), first.marks)
        if first.text is not None
        else first
    )
    return values.joined((start, rest))


# -- cmdlets that need more than data


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
        ("RedirectStandardInput", _judge_read),
        ("RedirectStandardOutput", _judge_write),
        ("RedirectStandardError", _judge_write),
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


def split_arguments(text: str) -> list[str]:
    """The words in one text of arguments, as the C library of Windows splits them."""
    words: list[str] = []
    word: list[str] = []
    quoted = begun = False
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\" and (match := re.compile(r'(\\+)"').match(text, at)):
            word.append("\\" * (len(match[1]) // 2))
            if len(match[1]) % 2:
                word.append('"')
                at = match.end()
            else:
                at = match.end() - 1
            begun = True
            continue
        if char == '"':
            quoted, begun = not quoted, True
        elif char in " \t" and not quoted:
            if begun:
                words.append("".join(word))
                word, begun = [], False
        else:
            word.append(char)
            begun = True
        at += 1
    return [*words, "".join(word)] if begun else words


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


def make(shell: Shell, kind: str, given: Sequence[Value], span: Span) -> Value:
    """Note the making of an object of a type, by whatever way; the object."""
    case = shell.case
    marks = frozenset[str]().union(*(value.marks for value in given))
    if dotnet.SOCKET.fullmatch(kind):
        case.socket = True
        case.touch("network", host_of(given[0].guess) if given else "")
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
        reads(case, path.text, node.span)
        case.cwd = None
        return UNKNOWN
    found = resolved(case, path.text)
    case.touch("session", found.real if found is not None else "")
    if found is not None and (found.refused or found.doubtful):
        reads(case, path.text, node.span)
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
        shell.assign_variable(target, value if value is not None else UNKNOWN, "=")
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
        elif SECRET_MODULE.search(item.text) or item.text.lower().endswith((".psm1", ".psd1", ".dll", ".ps1")):
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
    from handrail import paths

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


# -- members of objects and types


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
    if "socket" in marks and name in (
        "getstream",
        "read",
        "write",
        "flush",
        "close",
        "getbytes",
        "readline",
        "writeline",
    ):
        _mark_arguments(shell, node, marks)
        return Value(marks=marks)
    if target.kind == "bytes" or (name == "getstring" and arguments):
        encoding = "utf-16-le" if target.kind == "encoding:unicode" else "utf-8"
        return values.decoded_text(arguments[0], encoding) if len(arguments) == 1 else Value(marks=marks)
    if name in dotnet.PURE_METHODS:
        return Value(marks=marks, files=target.files, kind="data" if not target.files else "")
    if "shadow" in marks:
        case.add(Grade.CATASTROPHIC, "deletes_backups", "it deletes what could bring files back", node.span)
    case.executes = case.executes or name in ("start", "invoke", "run", "exec", "shellexecute", "create")
    if "network" in marks and name in (
        "invoke",
        "invokereturnasis",
        "run",
        "exec",
        "eval",
        "load",
        "invokescript",
        "newscriptblock",
    ):
        case.add(Grade.CATASTROPHIC, "network_code", "it runs code straight from the network", node.span)
    if name in ("delete", "deletesubkeytree", "deletesubkey") and target.files:
        judge_delete(shell, target, Bound(), node.span, filtered=False)
    case.add(Grade.DANGEROUS, "method", f"the method {name!r} is not known to be harmless", node.span)
    return Value(marks=marks)


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
        _judge_address(shell, arguments[0], node.span)
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
            _judge_sent_file(shell, value, node.span)
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
        return Value(marks=marks | _judge_read(shell, first, none, node.span))
    if name in dotnet.IO_WRITES:
        _judge_write(shell, first, none, node.span)
        return UNKNOWN
    if name == "delete":
        recursive = len(arguments) > 1 and (arguments[1].text or "true").lower() == "true"
        deletes(case, first.text, node.span, guess=first.guess, recursive=recursive)
        case.add(Grade.DANGEROUS, "dotnet", f"[{kind}]::{name} is asked about each time", node.span)
        return UNKNOWN
    if name in ("copy", "move", "replace") and len(arguments) > 1:
        (_judge_write if name != "copy" else _judge_read)(shell, first, none, node.span)
        _judge_write(shell, arguments[1], none, node.span)
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
