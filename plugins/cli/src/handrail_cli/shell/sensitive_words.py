"""Words the user must review each time: secrets in a command, and the files and settings that Handrail judges by."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from itertools import pairwise

from handrail import Decision, EvaluationContext, Reason
from handrail.fs import path_resolution
from handrail.policy import place_kinds
from handrail_cli.shell.bash.syntax import ShellWord, SimpleCommand
from handrail_cli.shell.path_effects import CommandEffects, Finding, PathAnalyzer

# Programs whose words are not names of files.
PRINTING_PROGRAMS = frozenset(("echo", "printf", "git", "test", "[", "[[", ":", "true", "false"))
HARMLESS_SUBCOMMANDS = frozenset(("--help", "--version", "tools", "doctor", "plugins"))
READ_ONLY_PROGRAM = re.compile(
    r"(ls|cat|cd|which|whereis|type|man|pgrep|pidof|grep|rg|find|stat|file|du|head|tail|wc|echo|printf)$"
)
FILE_PREFIX = re.compile(r"^(\w+=)?@?(file://)?")
# Paths that may lead out of the workspace.
AWAY = re.compile(r"(/|~/|(\./)*\.\./)\.?[\w]")
# Text in quotes, in most languages.
LITERAL = re.compile(r"([\"'`])((?:(?!\1)[^\\\n])+)\1")
# A longer word is no path.
MAX_PATH = 400


class SensitiveWordScanner:
    """Scanner of the words of one line's commands, which examines each word once per directory."""

    def __init__(self, judging: EvaluationContext, places: PathAnalyzer) -> None:
        self._judging = judging
        self._places = places
        self._secrets: dict[str, str | None] = {}

    def forget(self) -> None:
        """Forget the secrets found so far, because the same words may resolve elsewhere from now on."""
        self._secrets.clear()

    def look(self, words: Sequence[ShellWord], effects: CommandEffects) -> None:
        """Warn of secrets and Handrail's own files among the words of a command not known to only read."""
        name = words[0].guess.rpartition("/")[2]
        for word in words[1:]:
            if name in PRINTING_PROGRAMS and (
                name != "git" or (word.guess[:1] not in ("/", "~") and ":" not in word.guess)
            ):
                continue
            if word.guess not in self._secrets:
                self._secrets[word.guess] = self._secret_in(_strip_git_revision(word) if name == "git" else word)
            if (what := self._secrets[word.guess]) is not None:
                effects.warn("secret", f"{word.guess!r} keeps {what}", word)
            if self._judging.protected and "/" in word.guess and self._names_own(word):
                effects.warn("own", "files by which Handrail judges are named in it", word)

    def look_at_code(self, word: ShellWord, effects: CommandEffects) -> None:
        """Warn of secrets, Handrail's own files, and places outside the workspace named by literals in code."""
        for text in dict.fromkeys(match[2] for match in LITERAL.finditer(word.guess)):
            literal = ShellWord(text, text, word.span)
            if (what := self._secret_in(literal)) is not None:
                effects.warn("secret", f"{text!r} keeps {what}", word)
            if self._judging.protected and "/" in text and self._names_own(literal):
                effects.warn("own", "files by which Handrail judges are named in it", word)
            if AWAY.match(text) and len(text) <= MAX_PATH and self._is_elsewhere(text):
                effects.warn("outside", f"it names {text!r}, outside the workspace", word)

    def _is_elsewhere(self, text: str) -> bool:
        """Return True for a path that the sandbox does not show.

        Text that begins with no existing directory is an address or a pattern rather than a path.
        """
        for found in self._places.resolved(text):
            shown = (
                self._places.within(found.real) or self._places.passing(found.real) or place_kinds.is_stream(found.real)
            )
            shown = shown or place_kinds.is_public(found.real) or self._places.readable(found.real)
            top = f"/{found.real.split('/')[1]}"
            if not shown and (
                os.path.lexists(top) or path_resolution.is_inside_roots(found.real, (self._judging.home,))
            ):
                return True
        return False

    def _secret_in(self, word: ShellWord) -> str | None:
        text = word.guess.partition("=")[2] if word.guess.startswith("-") else word.guess
        text = FILE_PREFIX.sub("", text)
        if not text or " " in text or len(text) > MAX_PATH:
            return None
        text = f"{self._judging.home}/{text[2:]}" if text.startswith("~/") else text
        places = [text] if text.startswith("/") else [f"{cwd.as_posix()}/{text}" for cwd in self._places.cwds]
        return next((what for place in places if (what := path_resolution.describe_secret(place)) is not None), None)

    def _names_own(self, word: ShellWord) -> bool:
        text = word.guess.partition("=")[2] if re.match(r"-|\w+=", word.guess) else word.guess
        if not text or len(text) > MAX_PATH:
            return False
        return any(
            path_resolution.is_inside_roots(place, self._judging.protected, seen=self._places.seen)
            for found in self._places.resolved(text)
            for place in (found.real, found.written)
        )


def find_handrail_calls(command: SimpleCommand) -> list[Finding]:
    """Return a finding for each place where the command runs Handrail, which may change how commands are judged."""
    guess = command.guess
    if command.program in PRINTING_PROGRAMS or not guess or READ_ONLY_PROGRAM.match(guess[0]):
        return []
    reason = Reason("own", "it may change how commands are judged", command.span)
    return [
        Finding(reason, Decision.CONFIRM)
        for word, argument in pairwise(guess)
        if word.rpartition("/")[2] == "handrail" and argument not in HARMLESS_SUBCOMMANDS
    ]


def _strip_git_revision(word: ShellWord) -> ShellWord:
    """Return the path in `HEAD:.env`, which git reads as an earlier version of a file."""
    commit, colon, path = word.guess.partition(":")
    if not colon or "/" in commit.rstrip("/") or path.startswith("//"):
        return word
    return ShellWord(word.text, path, word.span)
