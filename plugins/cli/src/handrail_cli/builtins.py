"""The builtins of bash that change what later commands mean, or run code: each says what it does to the session."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from handrail import Decision, Reason, Touch
from handrail_cli.commandline import Word
from handrail_cli.placing import Doubt, Effects
from handrail_cli.producing import NOTHING
from handrail_cli.variables import EXECUTING, RISKY, harmless, is_tame, unindexed

if TYPE_CHECKING:
    from handrail_cli.weighing import Weighing

Builtin = Callable[["Weighing", Sequence[Word], Effects], None]

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
VARIABLE = re.compile(r"[A-Za-z_]\w*", re.ASCII)
MEANING = "it changes what later commands mean"
CHANGED_SHELL = "it changes what the shell makes of later commands"


def _harmless(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    """Nothing outlives the line, and nothing is run."""


def _cd(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    rest = [word for word in words[1:] if word.text not in ("-P", "-L", "--", "-e")]
    places = weighing.places
    effects.touches.append(Touch("session", "PWD"))
    if len(rest) > 1:
        effects.ask("option", "cd takes one folder", rest[1])
        return
    if not rest:
        _enter(weighing, [weighing.judging.home], words[0], effects)
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
        _enter(
            weighing,
            [place for found in places.resolved(text) for place in (found.path, found.named)],
            rest[0],
            effects,
        )


def _enter(weighing: Weighing, folders: Sequence[object], word: Word, effects: Effects) -> None:
    from pathlib import PurePath

    weighing.alarms.forget()
    if not weighing.places.enter([folder for folder in folders if isinstance(folder, PurePath)]):
        effects.warn("unknown_path", "it goes through more folders than are followed", word)


def _set(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
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


def _shopt(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    names = [word for word in words[1:] if word.text not in ("-s", "-u", "-q")]
    wrong = next((word for word in names if word.text not in SHOPT_NAMES), None)
    if wrong is not None:
        (effects.ask if (wrong.text or "").startswith("-") else effects.warn)("session", CHANGED_SHELL, wrong)


def _declare(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    """`export`, `declare`, `local`, `readonly`: harmless variables, of the line or of the session."""
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
        effects.touches.append(Touch("session", variable))
        if _computes(word, text if text is None or not equals else variable):
            effects.warn("indirect", f"which variable {word.guess!r} sets is computed", word)
            continue
        if lists:
            weighing.lists.add(variable)
        if exports and not is_tame(variable, value):
            weighing.leads = weighing.exports = True
            effects.leads = effects.obeys_workspace = True
            weighing.may_lead(variable, word)
        if equals and (variable in weighing.lists or RISKY.fullmatch(variable)) and _expands_list(word, value):
            effects.warn(
                "hidden_code", f"{variable} may be a list, and what stands in its value is expanded again", word
            )
        if not VARIABLE.fullmatch(variable) or not harmless(
            variable, value if text is not None and equals else None if equals else ""
        ):
            executes = EXECUTING.fullmatch(unindexed(variable)) is not None
            told = f"it sets {variable}, which changes what later commands do"
            effects.doubts.append(Doubt(Reason("variable", told, word.span), Decision.CONFIRM if executes else None))
        elif weighing.judging.environment.get(variable) is not None:
            effects.ask("variable", f"it changes {variable}, which other programs may obey", word)
    if shows:
        effects.warn("secret", "it shows variables that may be credentials", words[0])


def _computes(word: Word, name: str | None) -> bool:
    """True if which variable a word names, or which element of it, is found out by computing, which may run commands.

    `name` is the name as far as it is certain, None where it is not.
    """
    if name is None:
        return re.match(r"[A-Za-z_]\w*\+?=", word.start, re.ASCII) is None
    _, bracket, subscript = name.partition("[")
    return bool(bracket) and re.fullmatch(r"\d+\]|[@*]\]", subscript) is None


def _expands_list(word: Word, value: str) -> bool:
    """True if bash may take the value for a list in parentheses, written as text, and expand what stands in it."""
    if word.text is None:
        # `name=(…)` is read with the rest of the line.
        return not word.start.endswith("=(")
    return value.startswith("(") and re.search(r"[$`]", value) is not None


def _unset(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    for word in words[1:]:
        name = word.text
        if name in ("-v", "-f", "-n"):
            continue
        effects.touches.append(Touch("session", name or ""))
        if name is not None and name.startswith("HIST"):
            effects.warn("history", "it keeps commands out of the history", word)
        elif _computes(word, name):
            effects.warn("indirect", f"which variable {word.guess!r} names is computed", word)
        elif name is None or not harmless(name, "") or name in weighing.judging.environment:
            effects.ask("variable", "it takes away a variable, which changes what later commands do", word)


def _read(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    """`read` and `mapfile` into variables that nothing else obeys."""
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
        if _computes(word, word.text):
            effects.warn("indirect", f"which variable {word.guess!r} names is computed", word)
        elif word.text is None or not VARIABLE.fullmatch(word.text) or not harmless(word.text, ""):
            executes = EXECUTING.fullmatch(unindexed(word.guess)) is not None
            told = f"it sets {word.guess}, which may change what later commands do"
            (effects.warn if executes else effects.ask)("variable", told, word)
        elif word.text in weighing.judging.environment:
            effects.ask("variable", f"it changes {word.text}, which other programs may obey", word)
            effects.obeys_workspace = True


def _eval(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    rest = [word for at, word in enumerate(words[1:]) if at or word.text != "--"]
    texts = [word.text for word in rest]
    if None in texts or any(word.glob for word in rest):
        effects.warn("hidden_code", "it runs text that cannot be seen as code", words[0])
    elif rest:
        weighing.code(" ".join(text for text in texts if text is not None), words[0].span, effects)


def _source(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    if len(words) < 2 or words[1].process or words[1].text in (None, "-", "/dev/stdin"):
        effects.warn("hidden_code", "it runs code that cannot be seen", words[0])
        return
    effects.touches.append(Touch("session"))
    weighing.execute(words[1], words[1].text, effects, by="bash")


def _trap(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
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


def _exec(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    rest = list(words[1:])
    while rest and rest[0].text in ("-c", "-l", "-a", "--"):
        # Without the variables that keep git to one repository.
        weighing.histories.mixed = weighing.histories.mixed or rest[0].text == "-c"
        rest = rest[2 if rest[0].text == "-a" else 1 :]
    if rest:
        weighing.words(rest, NOTHING, words[0].span)


def _jobs(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    """`jobs -x COMMAND` runs a command; otherwise it lists what runs in the background."""
    for at, word in enumerate(words[1:], 1):
        if word.text is None or re.fullmatch(r"-[a-z]*x[a-z]*", word.text):
            effects.warn("runs_program", "it runs a command in the place of a job", word)
            if words[at + 1 :]:
                weighing.words(words[at + 1 :], NOTHING, words[0].span)
            return


def _wait(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    """`wait -p NAME` sets a variable to the number of the process that ended."""
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
            if word.text is None or not VARIABLE.fullmatch(name) or not harmless(name, None):
                effects.warn(
                    "indirect", f"it sets {name or 'something unknown'}, which may be computed or obeyed", word
                )
            return


def _alias(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    """`alias NAME=CODE`: the code is judged as if it ran, and commands by that name are not what they seem from then on."""
    effects.touches.append(Touch("session", "alias"))
    given = [word for word in words[1:] if word.text is None or "=" in word.text]
    if not given:
        effects.ask("session", MEANING, words[0])
        return
    effects.warn("session", MEANING, words[0])
    for word in given:
        if word.text is None:
            effects.warn("hidden_code", "it gives a name to code that cannot be seen", word)
        else:
            weighing.code(word.text.partition("=")[2], word.span, effects)


def _coproc(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    """`coproc COMMAND`, whose groups are not parsed as such."""
    effects.warn("construct", "it starts a command beside the line, which is not analysed", words[0])
    rest = [word for word in words[1:] if word.text not in ("{", "(")]
    if rest:
        weighing.words(rest, NOTHING, words[0].span)


def _command(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    rest = list(words[1:])
    while rest and rest[0].text is not None and re.fullmatch(r"-p|--|-p?[vV]p?", rest[0].text):
        if "v" in rest[0].text.lower():
            if any(word.text is None for word in rest[1:]) or len(rest) > 2:
                effects.ask("option", "what it looks up is not analysed", words[0])
            return
        rest = rest[1:]
    if rest:
        weighing.words(rest, NOTHING, words[0].span)


def _builtin(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    if len(words) > 1:
        weighing.words(words[1:], NOTHING, words[0].span)


def _changes_session(code: str, text: str, *, floor: bool = False) -> Builtin:
    def judge(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
        effects.touches.append(Touch("session", words[0].guess))
        (effects.warn if floor else effects.ask)(code, text, words[0])

    return judge


def _history(weighing: Weighing, words: Sequence[Word], effects: Effects) -> None:
    effects.warn("history", "it shows or changes the history of commands", words[0])


OF_THE_LINE = (
    "true", "false", ":", "exit", "return", "break", "continue", "shift", "disown", "dirs", "times", "umask", "caller", "bg", "fg",
)  # fmt: skip
DECLARING = ("export", "declare", "typeset", "local", "readonly")
UNFOLLOWED = ("unalias", "getopts", "ulimit")
BUILTINS: Mapping[str, Builtin] = {
    **dict.fromkeys(OF_THE_LINE, _harmless),
    **dict.fromkeys(DECLARING, _declare),
    **dict.fromkeys(("read", "mapfile", "readarray"), _read),
    **dict.fromkeys(("source", "."), _source),
    **dict.fromkeys(UNFOLLOWED, _changes_session("session", MEANING)),
    **dict.fromkeys(
        ("enable", "hash", "bind", "complete", "compopt"), _changes_session("session", MEANING, floor=True)
    ),
    **dict.fromkeys(
        ("pushd", "popd"), _changes_session("unknown_path", "which folder it goes to is not followed", floor=True)
    ),
    "let": _changes_session("arithmetic", "it computes, and a value that is computed may run commands", floor=True),
    "alias": _alias,
    "coproc": _coproc,
    "jobs": _jobs,
    "wait": _wait,
    **dict.fromkeys(("history", "fc"), _history),
    "cd": _cd,
    "set": _set,
    "shopt": _shopt,
    "unset": _unset,
    "eval": _eval,
    "trap": _trap,
    "exec": _exec,
    "command": _command,
    "builtin": _builtin,
}
