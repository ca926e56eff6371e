"""The commands of cmd.exe itself: what each does with its words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from handrail_cli.shell.cmd.parser import UNKNOWN_MARK, CmdCommand
from handrail_cli.shell.windows.findings import FindingGrade
from handrail_cli.shell.windows.path_effects import note_delete, note_read, note_write, resolve_path
from handrail_cli.shell.windows.program_call import CallWord, ProgramCall, StdinContent
from handrail_cli.shell.windows.program_rules import judge_by_rule

if TYPE_CHECKING:
    from handrail_cli.shell.windows.cmd_analyzer import CmdAnalyzer

# A command of cmd, as it ends at what no name of a program ends at.
BUILTIN_NAME = re.compile(
    r"(assoc|break|call|cd|chdir|cls|color|copy|date|del|dir|dpath|echo|endlocal|erase|exit|ftype|goto|keys|md|mkdir|mklink|move|path|pause|popd|"
    r"prompt|pushd|rd|rem|ren|rename|rmdir|set|setlocal|shift|start|time|title|type|ver|verify|vol)(?=[\s.,;:=+/\\(\[\]\"]|\Z)",
    re.IGNORECASE,
)


def _list_options(words: Sequence[CallWord]) -> set[str]:
    """Return the letters of options, in lower case, without their values."""
    return {word.guess.lower()[1:].partition(":")[0].lstrip("-") for word in words if word.guess.startswith("/")}


def _list_operands(words: Sequence[CallWord]) -> list[CallWord]:
    return [word for word in words if not word.guess.startswith("/")]


def _judge_harmless(
    line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand
) -> StdinContent:
    return StdinContent("" if name == "rem" else None)


def _judge_echo(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> StdinContent:
    text = rest[1:] if rest[:1] in (" ", ".", ":", "(", ",", ";", "=", "+", "/", "[", "]", "\\") else rest
    return StdinContent(text if UNKNOWN_MARK not in text else None)


def _split_at_slashes(words: Sequence[CallWord]) -> list[CallWord]:
    """Return the words, and those with a slash once more as a path followed by options, as cmd may read them."""
    found = list(words)
    for word in words:
        place, *options = word.guess.split("/")
        if place and options and word.text is not None:
            found.extend(
                [CallWord(place, place, word.span), *(CallWord(f"/{text}", f"/{text}") for text in options if text)]
            )
    return found


def _judge_delete(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> None:
    """Del and erase: files by pattern, with `/s` in all folders below."""
    words = _split_at_slashes(words)
    options = _list_options(words)
    _check_options(line, name, options, {"p", "f", "s", "q", "a"}, item)
    for word in _list_operands(words):
        # `del folder` deletes the files in it; with `/s` those below it too.
        note_delete(line.case, word.text, item.span, guess=word.guess, recursive="s" in options)
    if not _list_operands(words):
        line.case.add(FindingGrade.UNKNOWN, "unresolved", "it is not known what it deletes", item.span)


def _judge_remove_folder(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> None:
    words = _split_at_slashes(words)
    options = _list_options(words)
    _check_options(line, name, options, {"s", "q"}, item)
    for word in _list_operands(words):
        note_delete(line.case, word.text, item.span, guess=word.guess, recursive="s" in options)


def _check_options(line: CmdAnalyzer, name: str, options: set[str], known: set[str], item: CmdCommand) -> None:
    if odd := {option for option in options if not any(option.startswith(good) for good in known)}:
        line.case.add(
            FindingGrade.UNKNOWN, "unknown_option", f"{name} has an option that is not known: {min(odd)!r}", item.span
        )


def _judge_read(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> StdinContent:
    marks = {"file"}
    known = (
        {"a", "b", "c", "d", "l", "n", "o", "p", "q", "r", "s", "t", "w", "x", "4", "-"}
        if name == "dir"
        else set[str]()
    )
    _check_options(line, name, _list_options(words), known, item)
    for word in _list_operands(words):
        if word.text is None:
            line.case.add(FindingGrade.UNKNOWN, "unresolved", "it is not known what it reads", item.span)
            continue
        before = len(line.case.found)
        note_read(line.case, word.text, item.span, listing=name == "dir")
        if any(reason.code == "secret" for _, reason in list(line.case.found)[before:]):
            marks.add("secret")
    return StdinContent(None, frozenset(marks))


def _judge_mkdir(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> None:
    """Judge md, whose words are directories to create."""
    for word in _list_operands(words):
        _note_written(line, word, item)


def _note_written(line: CmdAnalyzer, word: CallWord, item: CmdCommand) -> None:
    if word.text is None:
        line.case.add(FindingGrade.DANGEROUS, "unresolved", "it is not known what it writes", item.span)
        line.case.touch("write", "")
    else:
        note_write(line.case, word.text, item.span)


def _judge_copy(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> None:
    """Judge copy, move and ren: from the first words to the last."""
    _check_options(line, name, _list_options(words), {"a", "b", "d", "v", "n", "y", "-y", "z", "l"}, item)
    loose = [word for text in _list_operands(words) for word in _split_joined_sources(text)]
    if not loose:
        return
    sources, target = (loose[:-1], loose[-1]) if len(loose) > 1 else (loose, None)
    for word in sources:
        if name in ("move", "ren", "rename"):
            _note_moved(line, word, item)
        elif word.text is None:
            line.case.add(FindingGrade.UNKNOWN, "unresolved", "it is not known what it reads", item.span)
        else:
            note_read(line.case, word.text, item.span)
    if target is None:
        target = CallWord(".", ".")
    if name in ("ren", "rename") and sources and target.text is not None and sources[0].text is not None:
        folder = re.sub(r"[^\\/]*$", "", sources[0].text)
        target = CallWord(f"{folder}{target.text}", f"{folder}{target.text}")
    _note_written(line, target, item)


def _split_joined_sources(word: CallWord) -> list[CallWord]:
    """Split `a+b` of copy into its sources."""
    if "+" not in word.guess or word.text is None:
        return [word]
    return [CallWord(text, text, word.span) for text in word.text.split("+") if text]


def _note_moved(line: CmdAnalyzer, word: CallWord, item: CmdCommand) -> None:
    note_delete(line.case, word.text, item.span, guess=word.guess, recursive=True)


def _judge_link(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> None:
    judge_by_rule(line.case, ProgramCall("mklink", tuple(words), span=item.span))


def _judge_folder_change(
    line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand
) -> StdinContent:
    """Cd and pushd: later paths start elsewhere."""
    text = re.sub(r"^\s*/d\b\s*", "", rest, flags=re.IGNORECASE).strip().strip('"')
    if not text:
        return StdinContent(None)
    if UNKNOWN_MARK in text:
        line.case.cwd = None
        return StdinContent(None)
    found = resolve_path(line.case, text)
    line.case.touch("session", found.real if found is not None else "")
    if found is not None and (found.refused or found.doubtful):
        note_read(line.case, text, item.span, listing=True)
    other = found is not None and line.case.cwd is not None and found.path.drive.lower() != line.case.cwd.drive.lower()
    stays = other and name != "pushd" and not re.match(r"\s*/d\b", rest, re.IGNORECASE)
    line.case.cwd = None if found is None or found.refused is not None or stays else found.path
    return StdinContent(None)


def _judge_popd(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> None:
    line.case.cwd = None


def _judge_set(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> StdinContent:
    """Judge set: `name=value`, `/a` arithmetic, `/p` a prompt, or without `=` a list of variables."""
    text = rest.strip()
    option = re.match(r"/([ap])\b\s*", text, re.IGNORECASE)
    body = (text[option.end() :] if option else text).strip()
    if body.startswith('"'):
        body = body[1 : body.rfind('"')] if body.rfind('"') > 0 else body[1:]
    variable, equals, value = body.partition("=")
    if not equals:
        if option is None:
            # It shows each variable whose name begins so.
            line.case.add(FindingGrade.DANGEROUS, "secret", "it shows variables that may hold secrets", item.span)
        return StdinContent(None)
    line.case.touch("session", variable.strip())
    if option is not None or UNKNOWN_MARK in value:
        line.set[variable.strip().lower()] = None
    if variable.strip().lower() in OBEYED_VARIABLES:
        line.case.add(
            FindingGrade.DANGEROUS,
            "variable",
            f"it sets the variable {variable.strip()!r}, which programs obey",
            item.span,
        )
    return StdinContent("")


OBEYED_VARIABLES = frozenset((
    "path", "pathext", "comspec", "psmodulepath", "git_ssh_command", "git_ssh", "git_editor", "git_pager", "git_askpass", "git_external_diff",
    "git_proxy_command",
    "git_exec_path", "git_config_global", "git_config_count", "git_dir", "pager", "editor", "visual", "browser", "node_options", "pythonpath",
    "pythonstartup", "pythonhome",
    "perl5opt", "perl5lib", "rubyopt", "rubylib", "java_tool_options", "_java_options", "classpath", "systemroot", "windir", "http_proxy",
    "https_proxy", "all_proxy",
    "npm_config_script_shell", "cor_profiler", "cor_profiler_path", "cor_enable_profiling", "coreclr_profiler", "dotnet_startup_hooks",
    "rustc_wrapper",
    "ld_preload", "ld_library_path", "home", "userprofile", "appdata", "temp", "tmp", "docker_host", "kubeconfig", "lessopen", "manpager",
    "bash_env", "env",
))  # fmt: skip


def _judge_call(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> StdinContent:
    """Judge call: a label, or a command whose variables are expanded once more."""
    text = rest.strip()
    if text.startswith(":"):
        return StdinContent(None)
    if not text:
        return StdinContent("")
    return line.simple(CmdCommand(text, (), item.span, item.dynamic or _is_own_variable(line, text)), None)


def _is_own_variable(line: CmdAnalyzer, text: str) -> bool:
    """Return True if the first word was a variable that the line sets."""
    first = text.split(maxsplit=1)[0].lower() if text.split() else ""
    return any(value is not None and first and value.strip().lower().startswith(first) for value in line.set.values())


START_OPTIONS = frozenset((
    "b", "i", "min", "max", "wait", "low", "normal", "high", "realtime", "abovenormal", "belownormal", "separate", "shared", "w",
))  # fmt: skip


def _judge_start(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> StdinContent:
    """Judge start: a title in quotes, options, then a program and its words."""
    text = re.sub(r'^\s*"[^"]*"\s*(?=\S)', "", rest).strip()
    while match := re.match(r"/(?:d\s*(\"[^\"]*\"|\S+)|(?:node|affinity|machine)\s+\S+|(\w+))\s*", text, re.IGNORECASE):
        if (match[2] or "").lower() in START_OPTIONS or match[1] or match[2] is None:
            text = text[match.end() :]
            text = re.sub(r'^"[^"]*"\s+(?=\S)', "", text) if not match[1] else text
            continue
        line.case.add(
            FindingGrade.UNKNOWN,
            "unknown_option",
            f"start has an option that is not known: {match[0].strip()!r}",
            item.span,
        )
        text = text[match.end() :]
    if not text:
        line.case.executes = True
        line.case.add(FindingGrade.DANGEROUS, "starts_shell", "it starts a shell", item.span)
        line.case.part(("?",), item.span)
        return StdinContent(None)
    if re.match(r'"?[a-z][a-z0-9+.-]+:(//|\w)', text, re.IGNORECASE) and not re.match(r'"?[a-z]:', text, re.IGNORECASE):
        line.case.add(
            FindingGrade.DANGEROUS, "opens", "it has an address opened by whatever program is set for it", item.span
        )
        line.case.part(("start", text.replace(UNKNOWN_MARK, "")), item.span)
        return StdinContent(None)
    match = BUILTIN_NAME.match(text)
    command = CmdCommand(text, (), item.span, item.dynamic)
    if match:
        return line.builtin(match[1].lower(), text[match.end() :], command, None)
    return line.external(text, command, None, started=True)


def _judge_association(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> None:
    if "=" in rest:
        line.case.add(FindingGrade.DANGEROUS, "persistence", "it changes which program opens a file", item.span)


def _judge_clock(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> None:
    if _list_options(words) != {"t"}:
        line.case.add(
            FindingGrade.DANGEROUS if words else FindingGrade.UNKNOWN,
            "system",
            "it changes the clock, or waits for a person",
            item.span,
        )


def _judge_path(line: CmdAnalyzer, name: str, rest: str, words: Sequence[CallWord], item: CmdCommand) -> None:
    if rest.strip():
        line.case.add(FindingGrade.DANGEROUS, "variable", "it changes where programs are looked for", item.span)


HARMLESS_COMMANDS = (
    "rem", "break", "cls", "color", "endlocal", "setlocal", "exit", "shift", "ver", "verify", "vol", "title", "pause", "goto", "prompt",
)  # fmt: skip
TRANSPARENT_COMMANDS = frozenset(("call", "start"))
BuiltinJudge = Callable[["CmdAnalyzer", str, str, Sequence[CallWord], CmdCommand], "StdinContent | None"]
BUILTINS: Mapping[str, BuiltinJudge] = {
    **dict.fromkeys(HARMLESS_COMMANDS, _judge_harmless),
    "echo": _judge_echo,
    **dict.fromkeys(("del", "erase"), _judge_delete),
    **dict.fromkeys(("rd", "rmdir"), _judge_remove_folder),
    **dict.fromkeys(("dir", "type"), _judge_read),
    **dict.fromkeys(("md", "mkdir"), _judge_mkdir),
    **dict.fromkeys(("copy", "move", "ren", "rename"), _judge_copy),
    "mklink": _judge_link,
    **dict.fromkeys(("cd", "chdir", "pushd"), _judge_folder_change),
    "popd": _judge_popd,
    "set": _judge_set,
    "call": _judge_call,
    "start": _judge_start,
    **dict.fromkeys(("assoc", "ftype"), _judge_association),
    **dict.fromkeys(("date", "time"), _judge_clock),
    **dict.fromkeys(("path", "dpath", "keys"), _judge_path),
}
