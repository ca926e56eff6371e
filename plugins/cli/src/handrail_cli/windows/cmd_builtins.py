"""The commands of cmd.exe itself: what each does with its words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from handrail_cli.windows import rules
from handrail_cli.windows.calls import Call, Stdin, Word
from handrail_cli.windows.cmd_parser import HIDDEN, Command
from handrail_cli.windows.findings import Grade
from handrail_cli.windows.places import deletes, reads, resolved, writes

if TYPE_CHECKING:
    from handrail_cli.windows.cmd import Line

# A command of cmd, as it ends at what no name of a program ends at.
NAME = re.compile(
    r"(assoc|break|call|cd|chdir|cls|color|copy|date|del|dir|dpath|echo|endlocal|erase|exit|ftype|goto|keys|md|mkdir|mklink|move|path|pause|popd|"
    r"prompt|pushd|rd|rem|ren|rename|rmdir|set|setlocal|shift|start|time|title|type|ver|verify|vol)(?=[\s.,;:=+/\\(\[\]\"]|\Z)",
    re.IGNORECASE,
)


def _options(words: Sequence[Word]) -> set[str]:
    """The letters of options, in lower case, without their values."""
    return {word.guess.lower()[1:].partition(":")[0].lstrip("-") for word in words if word.guess.startswith("/")}


def _loose(words: Sequence[Word]) -> list[Word]:
    return [word for word in words if not word.guess.startswith("/")]


def _harmless(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    return Stdin("" if name == "rem" else None)


def _echo(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    text = rest[1:] if rest[:1] in (" ", ".", ":", "(", ",", ";", "=", "+", "/", "[", "]", "\\") else rest
    return Stdin(text if HIDDEN not in text else None)


def _apart(words: Sequence[Word]) -> list[Word]:
    """The words, and those with a slash in them once more as a place with options behind it: cmd may read them so."""
    found = list(words)
    for word in words:
        place, *options = word.guess.split("/")
        if place and options and word.text is not None:
            found.extend([Word(place, place, word.span), *(Word(f"/{text}", f"/{text}") for text in options if text)])
    return found


def _delete(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    """Del and erase: files by pattern, with `/s` in all folders below."""
    words = _apart(words)
    options = _options(words)
    _check(line, name, options, {"p", "f", "s", "q", "a"}, item)
    for word in _loose(words):
        # `del folder` deletes the files in it; with `/s` those below it too.
        deletes(line.case, word.text, item.span, guess=word.guess, recursive="s" in options)
    if not _loose(words):
        line.case.add(Grade.UNKNOWN, "unresolved", "it is not known what it deletes", item.span)


def _remove_folder(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    words = _apart(words)
    options = _options(words)
    _check(line, name, options, {"s", "q"}, item)
    for word in _loose(words):
        deletes(line.case, word.text, item.span, guess=word.guess, recursive="s" in options)


def _check(line: Line, name: str, options: set[str], known: set[str], item: Command) -> None:
    if odd := {option for option in options if not any(option.startswith(good) for good in known)}:
        line.case.add(
            Grade.UNKNOWN, "unknown_option", f"{name} has an option that is not known: {min(odd)!r}", item.span
        )


def _read(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    marks = {"file"}
    known = (
        {"a", "b", "c", "d", "l", "n", "o", "p", "q", "r", "s", "t", "w", "x", "4", "-"}
        if name == "dir"
        else set[str]()
    )
    _check(line, name, _options(words), known, item)
    for word in _loose(words):
        if word.text is None:
            line.case.add(Grade.UNKNOWN, "unresolved", "it is not known what it reads", item.span)
            continue
        before = len(line.case.found)
        reads(line.case, word.text, item.span, listing=name == "dir")
        if any(reason.code == "secret" for _, reason in list(line.case.found)[before:]):
            marks.add("secret")
    return Stdin(None, frozenset(marks))


def _write(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    """md: its words are folders that it makes."""
    for word in _loose(words):
        _written(line, word, item)


def _written(line: Line, word: Word, item: Command) -> None:
    if word.text is None:
        line.case.add(Grade.DANGEROUS, "unresolved", "it is not known what it writes", item.span)
        line.case.touch("write", "")
    else:
        writes(line.case, word.text, item.span)


def _copy(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    """copy, move, ren: from the first words to the last."""
    _check(line, name, _options(words), {"a", "b", "d", "v", "n", "y", "-y", "z", "l"}, item)
    loose = [word for text in _loose(words) for word in _pieces(text)]
    if not loose:
        return
    sources, target = (loose[:-1], loose[-1]) if len(loose) > 1 else (loose, None)
    for word in sources:
        if name in ("move", "ren", "rename"):
            _moved_away(line, word, item)
        elif word.text is None:
            line.case.add(Grade.UNKNOWN, "unresolved", "it is not known what it reads", item.span)
        else:
            reads(line.case, word.text, item.span)
    if target is None:
        target = Word(".", ".")
    if name in ("ren", "rename") and sources and target.text is not None and sources[0].text is not None:
        folder = re.sub(r"[^\\/]*$", "", sources[0].text)
        target = Word(f"{folder}{target.text}", f"{folder}{target.text}")
    _written(line, target, item)


def _pieces(word: Word) -> list[Word]:
    """`a+b` of copy."""
    if "+" not in word.guess or word.text is None:
        return [word]
    return [Word(text, text, word.span) for text in word.text.split("+") if text]


def _moved_away(line: Line, word: Word, item: Command) -> None:
    deletes(line.case, word.text, item.span, guess=word.guess, recursive=True)


def _link(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    rules.judge(line.case, Call("mklink", tuple(words), span=item.span))


def _go(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    """Cd and pushd: later paths start elsewhere."""
    text = re.sub(r"^\s*/d\b\s*", "", rest, flags=re.IGNORECASE).strip().strip('"')
    if not text:
        return Stdin(None)
    if HIDDEN in text:
        line.case.cwd = None
        return Stdin(None)
    found = resolved(line.case, text)
    line.case.touch("session", found.real if found is not None else "")
    if found is not None and (found.refused or found.doubtful):
        reads(line.case, text, item.span, listing=True)
    other = found is not None and line.case.cwd is not None and found.path.drive.lower() != line.case.cwd.drive.lower()
    stays = other and name != "pushd" and not re.match(r"\s*/d\b", rest, re.IGNORECASE)
    line.case.cwd = None if found is None or found.refused is not None or stays else found.path
    return Stdin(None)


def _pop(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    line.case.cwd = None


def _set(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    """set: `name=value`, `/a` arithmetic, `/p` a question, or without `=` a list of variables."""
    text = rest.strip()
    option = re.match(r"/([ap])\b\s*", text, re.IGNORECASE)
    body = (text[option.end() :] if option else text).strip()
    if body.startswith('"'):
        body = body[1 : body.rfind('"')] if body.rfind('"') > 0 else body[1:]
    variable, equals, value = body.partition("=")
    if not equals:
        if option is None:
            # It shows each variable whose name begins so.
            line.case.add(Grade.DANGEROUS, "secret", "it shows variables that may hold secrets", item.span)
        return Stdin(None)
    line.case.touch("session", variable.strip())
    if option is not None or HIDDEN in value:
        line.set[variable.strip().lower()] = None
    if variable.strip().lower() in OBEYED:
        line.case.add(
            Grade.DANGEROUS, "variable", f"it sets the variable {variable.strip()!r}, which programs obey", item.span
        )
    return Stdin("")


OBEYED = frozenset((
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


def _call(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    """call: a label, or a command that is filled in once more."""
    text = rest.strip()
    if text.startswith(":"):
        return Stdin(None)
    if not text:
        return Stdin("")
    return line.simple(Command(text, (), item.span, item.dynamic or _own_name(line, text)), None)


def _own_name(line: Line, text: str) -> bool:
    """Whether the first word was a variable that the line sets."""
    first = text.split(maxsplit=1)[0].lower() if text.split() else ""
    return any(value is not None and first and value.strip().lower().startswith(first) for value in line.set.values())


START_OPTIONS = frozenset((
    "b", "i", "min", "max", "wait", "low", "normal", "high", "realtime", "abovenormal", "belownormal", "separate", "shared", "w",
))  # fmt: skip


def _start(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> Stdin:
    """start: a title in quotes, options, then a program and its words."""
    text = re.sub(r'^\s*"[^"]*"\s*(?=\S)', "", rest).strip()
    while match := re.match(r"/(?:d\s*(\"[^\"]*\"|\S+)|(?:node|affinity|machine)\s+\S+|(\w+))\s*", text, re.IGNORECASE):
        if (match[2] or "").lower() in START_OPTIONS or match[1] or match[2] is None:
            text = text[match.end() :]
            text = re.sub(r'^"[^"]*"\s+(?=\S)', "", text) if not match[1] else text
            continue
        line.case.add(
            Grade.UNKNOWN, "unknown_option", f"start has an option that is not known: {match[0].strip()!r}", item.span
        )
        text = text[match.end() :]
    if not text:
        line.case.executes = True
        line.case.add(Grade.DANGEROUS, "starts_shell", "it starts a shell", item.span)
        line.case.part(("?",), item.span)
        return Stdin(None)
    if re.match(r'"?[a-z][a-z0-9+.-]+:(//|\w)', text, re.IGNORECASE) and not re.match(r'"?[a-z]:', text, re.IGNORECASE):
        line.case.add(Grade.DANGEROUS, "opens", "it has an address opened by whatever program is set for it", item.span)
        line.case.part(("start", text.replace(HIDDEN, "")), item.span)
        return Stdin(None)
    match = NAME.match(text)
    command = Command(text, (), item.span, item.dynamic)
    if match:
        return line.builtin(match[1].lower(), text[match.end() :], command, None)
    return line.external(text, command, None, started=True)


def _associates(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    if "=" in rest:
        line.case.add(Grade.DANGEROUS, "persistence", "it changes which program opens a file", item.span)


def _clock(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    if _options(words) != {"t"}:
        line.case.add(
            Grade.DANGEROUS if words else Grade.UNKNOWN,
            "system",
            "it changes the clock, or waits for a person",
            item.span,
        )


def _path(line: Line, name: str, rest: str, words: Sequence[Word], item: Command) -> None:
    if rest.strip():
        line.case.add(Grade.DANGEROUS, "variable", "it changes where programs are looked for", item.span)


HARMLESS = (
    "rem", "break", "cls", "color", "endlocal", "setlocal", "exit", "shift", "ver", "verify", "vol", "title", "pause", "goto", "prompt",
)  # fmt: skip
TRANSPARENT = frozenset(("call", "start"))
Builtin = Callable[["Line", str, str, Sequence[Word], Command], "Stdin | None"]
BUILTINS: Mapping[str, Builtin] = {
    **dict.fromkeys(HARMLESS, _harmless),
    "echo": _echo,
    **dict.fromkeys(("del", "erase"), _delete),
    **dict.fromkeys(("rd", "rmdir"), _remove_folder),
    **dict.fromkeys(("dir", "type"), _read),
    **dict.fromkeys(("md", "mkdir"), _write),
    **dict.fromkeys(("copy", "move", "ren", "rename"), _copy),
    "mklink": _link,
    **dict.fromkeys(("cd", "chdir", "pushd"), _go),
    "popd": _pop,
    "set": _set,
    "call": _call,
    "start": _start,
    **dict.fromkeys(("assoc", "ftype"), _associates),
    **dict.fromkeys(("date", "time"), _clock),
    **dict.fromkeys(("path", "dpath", "keys"), _path),
}
