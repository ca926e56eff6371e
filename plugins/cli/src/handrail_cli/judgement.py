"""What one command line for bash is worth: reads it whole, and says what speaks against running it.

Programs that a repository's own configuration names (`core.fsmonitor`, drivers of diffs) cannot be known without opening a file; a repository
inside the workspace is taken as one that the person trusts.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from handrail import Decision, Judging, Opinion, Part, Reason, paths
from handrail_cli.analysis import analyse
from handrail_cli.catastrophe import Scene, catastrophes
from handrail_cli.commandline import Analysis, Command, Word
from handrail_cli.reading import Reading, View
from handrail_cli.wrappers import inside, reads_code

RULE = "shell"
MAX_CODE = 4
# Programs that act with another's power or on another machine, whatever they run.
PRIVILEGE = frozenset(
    ("sudo", "doas", "su", "pkexec", "runuser", "run0", "runas", "ssh", "nsenter", "chroot", "sudoedit", "visudo")
)
# Programs whose words are not names of files.
TELLING = frozenset(("echo", "printf", "git", "test", "[", "[["))
# Shells whose language is bash's, or a part of it.
LIKE_BASH = frozenset(("bash", "sh", "dash"))
UNSURE = ("?",)
# What Handrail judges by may not be written by what it judges.
OVERWRITES_OWN = "own_files"
KEPT = "files by which Handrail judges are named in it"
HARMLESS_OF_HANDRAIL = frozenset(("--help", "--version", "tools", "doctor", "plugins"))
READS = re.compile(r"(ls|cat|cd|which|whereis|type|man|pgrep|pidof|grep|rg|find|stat|file|du|head|tail|wc)$")
WRITERS = frozenset((
    "rm", "mv", "cp", "ln", "tee", "dd", "sed", "truncate", "install", "touch", "chmod", "chown", "shred", "unlink", "rmdir", "rsync",
))  # fmt: skip
# What was not read to its end: nothing but a person's yes may stand for that.
UNREAD = frozenset(("too_long", "too_much", "too_deep", "syntax", "strange_character", "indirect", "hidden"))


def judge(text: str, judging: Judging, *, cwd: PurePath | None = None, stdin: str | None = None) -> Opinion:
    """The opinion on one command line for bash, run in `cwd` (default: the session's) with `stdin` on its standard input."""
    cwd = cwd if cwd is not None else judging.cwd
    variables = _variables(judging, cwd)
    analysis = analyse(text, variables=variables)
    scene = Scene(str(cwd), str(judging.home))
    fatal = tuple(dict.fromkeys(catastrophes(analysis, scene, variables=variables)))
    if stdin is not None and any(reads_code(command.guess) for command in analysis.commands):
        fatal += tuple(catastrophes(analyse(stdin, variables=variables), scene, variables=variables))
    if fatal:
        return Opinion(RULE, floor=Decision.DENY, suggestion=Decision.DENY, catastrophic=True, reasons=fatal)
    views = list(_views(analysis, judging, (cwd,), variables, MAX_CODE))
    parts = tuple(map(Part, _argvs(analysis, variables)))
    if not views and analysis.commands:
        return Opinion(RULE, suggestion=Decision.ALLOW, parts=parts)
    floors = tuple(dict.fromkeys(view.reason for view in views if view.floor))
    if floors:
        if any(reason.code == OVERWRITES_OWN for reason in floors):
            return Opinion(RULE, Decision.DENY, Decision.DENY, reasons=floors, parts=parts)
        return Opinion(f"{RULE}:{floors[0].code}", Decision.CONFIRM, Decision.CONFIRM, reasons=floors, parts=parts)
    return _asked(tuple(dict.fromkeys(view.reason for view in views)) or (EMPTY,), parts)


EMPTY = Reason("empty", "there is no command in it")


def _asked(reasons: tuple[Reason, ...], parts: tuple[Part, ...] = ()) -> Opinion:
    return Opinion(RULE, suggestion=Decision.CONFIRM, reasons=reasons, parts=parts)


def _variables(judging: Judging, cwd: PurePath) -> dict[str, str]:
    """The variables whose value is certain whatever the host has set."""
    return {
        "HOME": str(judging.home),
        "PWD": str(cwd),
        "USER": judging.user,
        "LOGNAME": judging.user,
        "TMPDIR": judging.environment.get("TMPDIR", "/tmp"),
    }


def _views(
    analysis: Analysis, judging: Judging, cwds: Sequence[PurePath], variables: Mapping[str, str], depth: int
) -> Iterator[View]:
    """Everything that speaks against plain reading."""
    for reason in analysis.opaque:
        yield View(reason, floor=reason.code in UNREAD)
    reading = Reading(judging, *cwds)
    for name, word in analysis.assigned:
        if (view := reading.assigned(name, word)) is not None:
            yield view
    for command in analysis.commands:
        yield from _own(command, reading)
        code = _literal_code(command)
        if code is not None and depth and (view := reading.words_of_shell(command)) is not None:
            yield view
        if code is not None and depth:
            for redirect in command.redirects:
                if (view := reading.redirect(redirect)) is not None:
                    yield view
            if command.assignments:
                yield View(Reason("variable", "it sets variables for a shell", command.span))
            certain = ("HOME", "PWD") if len(reading.cwds) == 1 else ("HOME",)
            inner = analyse(code, variables={name: variables[name] for name in certain})
            found = list(_views(inner, judging, reading.cwds, variables, depth - 1))
            yield from (View(Reason(view.reason.code, view.reason.text, command.span), view.floor) for view in found)
            if not inner.commands:
                yield View(EMPTY)
        elif (view := reading.command(command)) is not None:
            yield view
            yield from _alarms(command, reading)


def _literal_code(command: Command) -> str | None:
    """The code of `bash -c 'code'`, when it stands there and nothing else does."""
    argv = command.argv
    if argv is None or command.program not in LIKE_BASH or argv[0] != command.program or len(argv) != 3:
        return None
    return argv[2] if argv[1] in ("-c", "-lc", "-ec") and not command.words[2].glob else None


def _own(command: Command, reading: Reading) -> Iterator[View]:
    """What touches the files and settings of Handrail itself, by which it judges."""
    guess = command.guess
    for at, word in enumerate(guess):
        named = word.rpartition("/")[2] == "handrail" and command.program not in TELLING
        if named and at + 1 < len(guess) and guess[at + 1] not in HARMLESS_OF_HANDRAIL and not READS.match(guess[0]):
            yield View(Reason("own", "it may change how commands are judged", command.span), floor=True)
    if not reading.judging.protected or (command.program in TELLING - {"git"} and not command.redirects):
        return
    for redirect in command.redirects:
        if redirect.target is not None and reading.protects(redirect.target, holding=False):
            writes = redirect.operator not in ("<", "<&")
            yield View(Reason(OVERWRITES_OWN if writes else "own", KEPT, command.span), floor=True)
    writes = any(words[0].rpartition("/")[2] in WRITERS for words in _chain(guess))
    if any(reading.protects(word, holding=writes) for word in command.words[1:]):
        yield View(Reason(OVERWRITES_OWN if writes else "own", KEPT, command.span), floor=True)


def _alarms(command: Command, reading: Reading) -> Iterator[View]:
    """What a person has to see each time: power over more than one's own, and secrets."""
    names = {words[0].rpartition("/")[2] for words in _chain(command.guess)}
    if privileged := names & PRIVILEGE:
        yield View(Reason("privilege", f"it acts through {', '.join(sorted(privileged))}", command.span), floor=True)
    if command.program in TELLING:
        return
    words = [*command.words[1:], *(r.target for r in command.redirects if r.target is not None)]
    for word in words:
        if word.guess not in reading.secrets:
            reading.secrets[word.guess] = _secret_in(word, reading)
        if (what := reading.secrets[word.guess]) is not None:
            yield View(Reason("secret", f"{word.guess!r} keeps {what}", word.span), floor=True)


def _secret_in(word: Word, reading: Reading) -> str | None:
    text = word.guess.partition("=")[2] if word.guess.startswith("-") else word.guess
    text = text.removeprefix("@").removeprefix("file://")
    if not text or " " in text or len(text) > 400:
        return None
    return next(
        (what for cwd in reading.cwds if (what := paths.secret(_joined(cwd, text, reading.judging.home)))), None
    )


def _joined(cwd: PurePath, text: str, home: Path) -> str:
    return os.path.join(str(home), text[2:]) if text.startswith("~/") else os.path.join(str(cwd), text)


def _chain(argv: Sequence[str], depth: int = 6) -> Iterator[Sequence[str]]:
    """The command and those it runs in its turn, as words."""
    if not argv or not depth:
        return
    yield argv
    for part in inside(argv):
        if part.argv:
            yield from _chain(part.argv, depth - 1)


def _argvs(analysis: Analysis, variables: Mapping[str, str], depth: int = MAX_CODE) -> Iterator[tuple[str, ...]]:
    """The words of every command for rules and grants. What must not be covered by an allow of the command alone (an unknown word, a
    file written, a variable set) is one more entry, which no rule for a command names by chance.
    """
    for command in analysis.commands:
        if command.argv is None:
            yield UNSURE
        yield from (tuple(words) for words in _chain(command.guess))
        for redirect in command.redirects:
            if (
                redirect.target is not None
                and redirect.operator not in ("<", "<&")
                and redirect.target.text != "/dev/null"
            ):
                yield (redirect.operator, redirect.target.guess)
        yield from ((f"{name}={word.guess}",) for name, word in command.assignments)
        for part in inside(command.guess):
            if part.code is not None and depth:
                yield from _argvs(analyse(part.code, variables=variables), variables, depth - 1)
    if analysis.opaque:
        yield UNSURE
