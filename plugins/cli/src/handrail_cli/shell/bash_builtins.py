"""The builtins of bash that change what later commands mean, or run code: each says what it does to the session."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from handrail import Access, Decision, Reason
from handrail_cli.shell.bash.constant_output import NO_INPUT
from handrail_cli.shell.bash.syntax import ShellWord
from handrail_cli.shell.bash.variable_rules import (
    EXECUTING_VARIABLE,
    RISKY_VARIABLE,
    is_harmless_value,
    is_tame_variable,
    strip_subscript,
)
from handrail_cli.shell.path_effects import CommandEffects, Finding

if TYPE_CHECKING:
    from handrail_cli.shell.analyzer import LineAnalyzer

BuiltinHandler = Callable[["LineAnalyzer", Sequence[ShellWord], CommandEffects], None]

# Options of `set` that change how a line runs and nothing else.
SET_LETTERS = re.compile(r"[-+][euxvfCnbhmBE]*o?")
SET_NAMES = frozenset((
    "errexit", "nounset", "xtrace", "verbose", "pipefail", "noclobber", "noglob", "noexec", "errtrace", "functrace", "monitor", "notify",
    "braceexpand", "hashall",
))  # fmt: skip
SHOPT_NAMES = frozenset((
    "globstar", "nullglob", "failglob", "nocaseglob", "nocasematch", "extglob", "lastpipe", "inherit_errexit", "checkwinsize", "huponexit",
))  # fmt: skip
READ_OPTION = re.compile(r"-[rse]+|-r?[antpdNui].*|-[rs]*[ntpdN]")
VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
CHANGES_MEANING = "it changes what later commands mean"
CHANGED_SHELL = "it changes what the shell makes of later commands"


def _handle_harmless(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    """Accept a builtin that runs nothing and whose effects do not outlive the line."""


def _handle_cd(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    rest = [word for word in words[1:] if word.text not in ("-P", "-L", "--", "-e")]
    places = weighing.places
    effects.touches.append(Access("session", "PWD"))
    if len(rest) > 1:
        effects.ask("option", "cd takes one folder", rest[1])
        return
    if not rest:
        _enter_folders(weighing, [weighing.judging.home], words[0], effects)
        return
    text = rest[0].text
    if text is None or rest[0].glob or text == "-":
        effects.warn("unknown_path", "which folder it goes to depends on something unknown", rest[0])
        return
    before, files = len(effects.doubts), effects.files
    places.read(rest[0], effects, listing=True)
    # The shell alone goes there, and opens nothing.
    effects.files = files
    if len(effects.doubts) == before:
        # Without following links, too: `cd link/..` is where it was.
        _enter_folders(
            weighing,
            [place for found in places.resolved(text) for place in (found.path, found.named)],
            rest[0],
            effects,
        )


def _enter_folders(weighing: LineAnalyzer, folders: Sequence[object], word: ShellWord, effects: CommandEffects) -> None:
    from pathlib import PurePath

    weighing.alarms.forget()
    if not weighing.places.enter([folder for folder in folders if isinstance(folder, PurePath)]):
        effects.warn("unknown_path", "it goes through more folders than are followed", word)


def _handle_set(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    at = 1
    while at < len(words):
        text = words[at].text or ""
        if not SET_LETTERS.fullmatch(text) or len(text) < 2:
            # What follows `--` are the parameters of the line; other options may make other commands of what was read.
            (effects.ask if text == "--" or text[:1] not in "-+" else effects.warn)("session", CHANGED_SHELL, words[at])
            return
        if text.endswith("o"):
            at += 1
            if at >= len(words) or words[at].text not in SET_NAMES:
                effects.warn("session", CHANGED_SHELL, words[at - 1])
                return
        at += 1
    if len(words) == 1:
        effects.warn("secret", "it shows variables that may be credentials", words[0])


def _handle_shopt(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    names = [word for word in words[1:] if word.text not in ("-s", "-u", "-q")]
    wrong = next((word for word in names if word.text not in SHOPT_NAMES), None)
    if wrong is not None:
        (effects.ask if (wrong.text or "").startswith("-") else effects.warn)("session", CHANGED_SHELL, wrong)


def _handle_declare(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    """Handle `export`, `declare`, `local`, `readonly`: harmless variables, of the line or of the session."""
    name = words[0].text or ""
    shows, lists, exports = True, False, name == "export"
    for word in words[1:]:
        text = word.text
        if text is not None and text.startswith(("-", "+")):
            lists = lists or bool(re.fullmatch(r"-\w*[aA]\w*", text))
            exports = exports or "x" in text
            if re.fullmatch(r"[-+]\w*[in]\w*", text) and name != "export":
                effects.warn(
                    "indirect", f"{name} {text}: what the variable is set to is computed, or names another", word
                )
            elif not re.fullmatch(r"-[xrlgutaA]+", text) or (name == "export" and text != "-x"):
                effects.ask("session", f"what {name} does with {word.guess!r} is not analysed", word)
            continue
        shows = False
        variable, equals, value = word.guess.partition("=")
        variable = variable.removesuffix("+")
        effects.touches.append(Access("session", variable))
        if _is_name_computed(word, text if text is None or not equals else variable):
            effects.warn("indirect", f"which variable {word.guess!r} sets is computed", word)
            continue
        if lists:
            weighing.lists.add(variable)
        if exports and not is_tame_variable(variable, value):
            weighing.leads = weighing.exports = True
            effects.leads = effects.obeys_workspace = True
            weighing.may_lead(variable, word)
        if (
            equals
            and (variable in weighing.lists or RISKY_VARIABLE.fullmatch(variable))
            and _may_expand_list(word, value)
        ):
            effects.warn(
                "hidden_code", f"{variable} may be a list, and what stands in its value is expanded again", word
            )
        if not VARIABLE_NAME.fullmatch(variable) or not is_harmless_value(
            variable, value if text is not None and equals else None if equals else ""
        ):
            executes = EXECUTING_VARIABLE.fullmatch(strip_subscript(variable)) is not None
            told = f"it sets {variable}, which changes what later commands do"
            effects.doubts.append(Finding(Reason("variable", told, word.span), Decision.CONFIRM if executes else None))
        elif weighing.judging.environment.get(variable) is not None:
            effects.ask("variable", f"it changes {variable}, which other programs may obey", word)
    if shows:
        effects.warn("secret", "it shows variables that may be credentials", words[0])


def _is_name_computed(word: ShellWord, name: str | None) -> bool:
    """Return True if the variable that a word names, or its element, is computed, which may run commands.

    `name` is the name as far as it is certain, else None.
    """
    if name is None:
        return re.match(r"[A-Za-z_]\w*\+?=", word.start, re.ASCII) is None
    _, bracket, subscript = name.partition("[")
    return bool(bracket) and re.fullmatch(r"\d+\]|[@*]\]", subscript) is None


def _may_expand_list(word: ShellWord, value: str) -> bool:
    """Return True if bash may read the value as a parenthesized list, written as text, and expand its contents."""
    if word.text is None:
        # `name=(…)` is read with the rest of the line.
        return not word.start.endswith("=(")
    return value.startswith("(") and re.search(r"[$`]", value) is not None


def _handle_unset(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    for word in words[1:]:
        name = word.text
        if name in ("-v", "-f", "-n"):
            continue
        effects.touches.append(Access("session", name or ""))
        if name is not None and name.startswith("HIST"):
            effects.warn("history", "it keeps commands out of the history", word)
        elif _is_name_computed(word, name):
            effects.warn("indirect", f"which variable {word.guess!r} names is computed", word)
        elif name is None or not is_harmless_value(name, "") or name in weighing.judging.environment:
            effects.ask("variable", "it takes away a variable, which changes what later commands do", word)


def _handle_read(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    """Handle `read` and `mapfile` into variables that nothing else obeys."""
    at = 1
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-"):
        if text.startswith("-C"):
            effects.warn("hidden_code", "it runs code for every few lines", words[at])
            return
        if not READ_OPTION.fullmatch(text) or text.startswith(("-e", "-u")):
            effects.ask("option", f"{text!r} is not known to be harmless here", words[at])
            return
        if text == "-a" and at + 1 < len(words):
            weighing.lists.add(words[at + 1].guess)
        at += 2 if re.fullmatch(r"-[rs]*[antpdNiOsc]", text) and not re.fullmatch(r"-[rst]+", text) else 1
        if (
            text.endswith(("-t", "-s"))
            and text == "-t"
            and at < len(words)
            and re.fullmatch(r"[\d.]+", words[at].text or "")
        ):
            at += 1
    for word in words[at:]:
        if words[0].text != "read":
            weighing.lists.add(word.guess)
        if _is_name_computed(word, word.text):
            effects.warn("indirect", f"which variable {word.guess!r} names is computed", word)
        elif word.text is None or not VARIABLE_NAME.fullmatch(word.text) or not is_harmless_value(word.text, ""):
            executes = EXECUTING_VARIABLE.fullmatch(strip_subscript(word.guess)) is not None
            told = f"it sets {word.guess}, which may change what later commands do"
            (effects.warn if executes else effects.ask)("variable", told, word)
        elif word.text in weighing.judging.environment:
            effects.ask("variable", f"it changes {word.text}, which other programs may obey", word)
            effects.obeys_workspace = True


def _handle_eval(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    rest = [word for at, word in enumerate(words[1:]) if at or word.text != "--"]
    texts = [word.text for word in rest]
    if None in texts or any(word.glob for word in rest):
        effects.warn("hidden_code", "it runs text that cannot be seen as code", words[0])
    elif rest:
        weighing.code(" ".join(text for text in texts if text is not None), words[0].span, effects)


def _handle_source(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    if len(words) < 2 or words[1].process or words[1].text in (None, "-", "/dev/stdin"):
        effects.warn("hidden_code", "it runs code that cannot be seen", words[0])
        return
    effects.touches.append(Access("session"))
    weighing.execute(words[1], words[1].text, effects, by="bash")


def _handle_trap(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    rest = [word for word in words[1:] if word.text != "--"]
    if len(rest) < 2 or rest[0].text in ("-", "", "-l", "-p"):
        return
    if rest[0].text is None:
        effects.warn("hidden_code", "it runs text that cannot be seen as code", rest[0])
    else:
        before = list(weighing.places.cwds)
        weighing.trap(rest[0].text, words[0].span, effects)
        if weighing.places.cwds != before and any(word.text not in ("EXIT", "0") for word in rest[1:]):
            effects.ask("unknown_path", "it changes the folder whenever the trap is sprung", rest[0])


def _handle_exec(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    rest = list(words[1:])
    while rest and rest[0].text in ("-c", "-l", "-a", "--"):
        # Without the variables that keep git to one repository.
        weighing.histories.mixed = weighing.histories.mixed or rest[0].text == "-c"
        rest = rest[2 if rest[0].text == "-a" else 1 :]
    if rest:
        weighing.words(rest, NO_INPUT, words[0].span)


def _handle_jobs(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    """Handle `jobs`: `jobs -x COMMAND` runs a command; otherwise it lists background jobs."""
    for at, word in enumerate(words[1:], 1):
        if word.text is None or re.fullmatch(r"-[a-z]*x[a-z]*", word.text):
            effects.warn("runs_program", "it runs a command in the place of a job", word)
            if words[at + 1 :]:
                weighing.words(words[at + 1 :], NO_INPUT, words[0].span)
            return


def _handle_wait(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    """Handle `wait`: `wait -p NAME` sets a variable to the id of the process that ended."""
    for at, word in enumerate(words[1:], 1):
        if word.text is None and not word.start:
            told = "it may set a variable whose name is not known"
            if weighing.has_own_jobs:
                # `wait $!`: whatever a name that is computed would run, it runs in the sandbox like any code of the workspace.
                effects.changes = weighing.runs_code = weighing.histories.mixed = True
                effects.warn_on_host("indirect", told, word)
                continue
            effects.warn("indirect", told, word)
        elif (option := re.match(r"-[fn]*p(.*)", word.guess, re.DOTALL)) is not None:
            name = option[1] or (words[at + 1].text or "" if at + 1 < len(words) else "")
            if word.text is None or not VARIABLE_NAME.fullmatch(name) or not is_harmless_value(name, None):
                effects.warn(
                    "indirect", f"it sets {name or 'something unknown'}, which may be computed or obeyed", word
                )
            return


def _handle_alias(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    """Handle `alias NAME=CODE`.

    The code is judged as if it ran; from then on, commands of that name are not what they seem.
    """
    effects.touches.append(Access("session", "alias"))
    given = [word for word in words[1:] if word.text is None or "=" in word.text]
    if not given:
        effects.ask("session", CHANGES_MEANING, words[0])
        return
    effects.warn("session", CHANGES_MEANING, words[0])
    for word in given:
        if word.text is None:
            effects.warn("hidden_code", "it gives a name to code that cannot be seen", word)
        else:
            weighing.code(word.text.partition("=")[2], word.span, effects)


def _handle_coproc(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    """Handle `coproc COMMAND`, whose groups are not parsed as such."""
    effects.warn("construct", "it starts a command beside the line, which is not analysed", words[0])
    rest = [word for word in words[1:] if word.text not in ("{", "(")]
    if rest:
        weighing.words(rest, NO_INPUT, words[0].span)


def _handle_command(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    rest = list(words[1:])
    while rest and rest[0].text is not None and re.fullmatch(r"-p|--|-p?[vV]p?", rest[0].text):
        if "v" in rest[0].text.lower():
            if any(word.text is None for word in rest[1:]) or len(rest) > 2:
                effects.ask("option", "what it looks up is not analysed", words[0])
            return
        rest = rest[1:]
    if rest:
        weighing.words(rest, NO_INPUT, words[0].span)


def _handle_builtin(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    if len(words) > 1:
        weighing.words(words[1:], NO_INPUT, words[0].span)


def _create_session_handler(code: str, text: str, *, floor: bool = False) -> BuiltinHandler:
    def judge(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
        effects.touches.append(Access("session", words[0].guess))
        (effects.warn if floor else effects.ask)(code, text, words[0])

    return judge


def _handle_history(weighing: LineAnalyzer, words: Sequence[ShellWord], effects: CommandEffects) -> None:
    effects.warn("history", "it shows or changes the history of commands", words[0])


LINE_LOCAL_BUILTINS = (
    "true", "false", ":", "exit", "return", "break", "continue", "shift", "disown", "dirs", "times", "umask", "caller", "bg", "fg",
)  # fmt: skip
DECLARING_BUILTINS = ("export", "declare", "typeset", "local", "readonly")
UNFOLLOWED_BUILTINS = ("unalias", "getopts", "ulimit")
BUILTINS: Mapping[str, BuiltinHandler] = {
    **dict.fromkeys(LINE_LOCAL_BUILTINS, _handle_harmless),
    **dict.fromkeys(DECLARING_BUILTINS, _handle_declare),
    **dict.fromkeys(("read", "mapfile", "readarray"), _handle_read),
    **dict.fromkeys(("source", "."), _handle_source),
    **dict.fromkeys(UNFOLLOWED_BUILTINS, _create_session_handler("session", CHANGES_MEANING)),
    **dict.fromkeys(
        ("enable", "hash", "bind", "complete", "compopt"),
        _create_session_handler("session", CHANGES_MEANING, floor=True),
    ),
    **dict.fromkeys(
        ("pushd", "popd"),
        _create_session_handler("unknown_path", "which folder it goes to is not followed", floor=True),
    ),
    "let": _create_session_handler(
        "arithmetic", "it computes, and a value that is computed may run commands", floor=True
    ),
    "alias": _handle_alias,
    "coproc": _handle_coproc,
    "jobs": _handle_jobs,
    "wait": _handle_wait,
    **dict.fromkeys(("history", "fc"), _handle_history),
    "cd": _handle_cd,
    "set": _handle_set,
    "shopt": _handle_shopt,
    "unset": _handle_unset,
    "eval": _handle_eval,
    "trap": _handle_trap,
    "exec": _handle_exec,
    "command": _handle_command,
    "builtin": _handle_builtin,
}
