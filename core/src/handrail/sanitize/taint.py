"""Whether a call says again what a third party said first.

A page, a screen, another server or a file from elsewhere may tell an agent what to run and where to send things. The session remembers such
text, and a call in which it turns up as a program, as code, as the host or query of an address, as data that is sent, or as a fact that is
to be remembered, needs a yes.

Remembered are the last 64 texts and at most a million characters of them, and half a million of what the session had seen of its own before.
Text of fewer than 8 characters, plain words, numbers, programs that are installed and paths of the workspace are nobody's in particular.
"""

from __future__ import annotations

import base64
import binascii
import os
import re
import shutil
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote, urlsplit

from handrail.api.tool import Effect, Input, Run, Send, Write
from handrail.api.verdict import Decision, EvaluationContext, Opinion, Reason, SubCommand
from handrail.fs import path_resolution, sensitive_paths
from handrail.json_types import is_mapping, is_sequence, iter_texts
from handrail.net import hostnames

if TYPE_CHECKING:
    from handrail.api.call import Invocation

MIN_NEEDLE_CHARS = 8
# A statement or a line says something of its own from this length on.
MIN_STATEMENT_CHARS = 16
MAX_SOURCES = 64
MAX_REMEMBERED_CHARS = 1_000_000
MAX_KNOWN_CHARS = 500_000
# Of one call, so much is looked at; a longer one is judged by what it begins with.
MAX_NEEDLES = 400
MAX_SCANNED_CHARS = 20_000

INTERPRETER_NAMES = frozenset(
    ("sh", "bash", "dash", "zsh", "ksh", "fish", "python", "pypy", "node", "nodejs", "deno", "bun", "perl", "ruby", "php", "lua", "awk", "gawk",
     "mawk", "sed", "tclsh", "osascript", "pwsh", "powershell", "cmd", "rscript", "eval", "exec", "ssh", "xargs", "source", ".")
)  # fmt: skip
SCRIPT_SUFFIXES = frozenset(
    (".sh", ".bash", ".zsh", ".fish", ".command", ".desktop", ".bat", ".cmd", ".ps1", ".vbs", ".service")
)
DESKTOP_KINDS = frozenset(("desktop", "windows", "clipboard"))
LOOPBACK_HOST = re.compile(r"localhost|127(?:\.\d+){3}|::1|0\.0\.0\.0")

_TOKEN_PATTERN = re.compile(r"[^\s'\"`()\[\]{}<>|;,]+")
_STRING_LITERAL = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"|`([^`\n]*)`")
_STATEMENT_END = re.compile(r"[\n;]|&&|\|\|")
_IMPORT_STATEMENT = re.compile(r"(?:from [\w.]+ )?import [\w., *()]+|#include.*|(?:const|let|var) \w+ ?= ?require\(.*")
_DISTINCTIVE_CHAR = re.compile(r"\d|[:/@=$|&<>{}\\%]")
_URL_PATTERN = re.compile(r"[a-z][a-z0-9+.-]{1,20}://[^\s'\"`<>]+", re.IGNORECASE)
_HEX_TEXT = re.compile(r"(?:[0-9a-f]{2}){8,}", re.IGNORECASE)
_BASE64_TEXT = re.compile(r"[A-Za-z0-9+/_-]{11,}={0,2}")
_VERSION_SUFFIX = re.compile(r"[\d.-]*(?:\.exe)?$")

NeedleRole = Literal["program", "code", "host", "query", "sent", "remembered"]
ROLE_DESCRIPTIONS = {
    "program": "the program",
    "code": "the code",
    "host": "the host",
    "query": "the address's data",
    "sent": "what is sent",
    "remembered": "what is to be remembered,",
}


@dataclass(frozen=True, slots=True)
class RememberedText:
    """One text of a third party, folded. `origin`: where it came from, in words. `seq`: its place in the order of things."""

    origin: str
    tool: str
    call_id: str
    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class OwnText:
    """A text that the session had before the third party's text `seq` came, folded: arguments of its calls, its own files and output."""

    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class TaintNeedle:
    """A piece of a call that may have come from a third party."""

    role: NeedleRole
    text: str


@dataclass(frozen=True)
class UntrustedSources:
    """What a session has taken in from third parties so far: never changes, a longer one takes its place."""

    sources: tuple[RememberedText, ...] = ()
    own: tuple[OwnText, ...] = ()
    # Files that were downloaded, resolved.
    downloads: frozenset[str] = frozenset()
    # Texts whose links a person has let the session follow, by their `seq`.
    followed: frozenset[int] = frozenset()

    def opinion(
        self, invocation: Invocation, opinions: Sequence[Opinion], judging: EvaluationContext
    ) -> Opinion | None:
        """The floor `taint` when the call repeats a third party's text where that matters, or runs a file that was downloaded."""
        parts = [part for opinion in opinions for part in opinion.parts]
        if self.linked_from(invocation) & self.followed:
            return None
        reason = self._downloaded(parts, judging) or self._repeated(invocation, parts, judging)
        return Opinion("taint", floor=Decision.CONFIRM, reasons=(reason,)) if reason is not None else None

    def linked_from(self, invocation: Invocation) -> frozenset[int]:
        """The texts that hold the whole address of a call which does nothing but fetch it: the session adds nothing to it."""
        effects = invocation.tool.effects
        if len(effects) != 1 or effects[0].what != "fetch" or len(invocation.args) > 1:
            return frozenset()
        addresses = [fold_text(text) for text in _iter_argument_texts(invocation.argument(effects[0]))]
        return frozenset(
            source.seq for source in self.sources if addresses and all(each in source.text for each in addresses)
        )

    def _downloaded(self, parts: Iterable[SubCommand], judging: EvaluationContext) -> Reason | None:
        for part in parts if self.downloads else ():
            for path in iter_run_files(part, judging):
                if path in self.downloads:
                    return Reason("taint", f"it runs {path!r}, which was downloaded in this session")
        return None

    def _repeated(
        self, invocation: Invocation, parts: Sequence[SubCommand], judging: EvaluationContext
    ) -> Reason | None:
        seen: set[tuple[str, str]] = set()
        for needle in iter_needles(invocation, parts):
            folded = fold_text(needle.text[:MAX_SCANNED_CHARS])
            if len(folded) < MIN_NEEDLE_CHARS or (needle.role, folded) in seen:
                continue
            seen.add((needle.role, folded))
            if len(seen) > MAX_NEEDLES:
                break
            source = self.source_of(folded)
            if source is not None and not self._ordinary(needle, judging):
                shown = " ".join(needle.text.split())
                shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
                return Reason(
                    "taint",
                    f"{ROLE_DESCRIPTIONS[needle.role]} {shown!r} came from {source.origin} ({source.tool}, call {source.call_id})",
                )
        return None

    def source_of(self, folded: str) -> RememberedText | None:
        """The newest third party's text that holds these words, unless the session had them before."""
        for source in reversed(self.sources):
            if folded in source.text and not any(own.seq <= source.seq and folded in own.text for own in self.own):
                return source
        return None

    def _ordinary(self, needle: TaintNeedle, judging: EvaluationContext) -> bool:
        """Whether it is there to be found without any third party: an installed program, or a path of the workspace."""
        text = needle.text.strip()
        if needle.role == "host":
            return LOOPBACK_HOST.fullmatch(text) is not None or text in judging.granted_hosts
        if needle.role == "program" and "/" not in text and "\\" not in text:
            return shutil.which(text, path=judging.environment.get("PATH")) is not None
        if len(text) > 1_000 or "\n" in text or "://" in text:
            return False
        found = path_resolution.resolve_path(text, cwd=judging.cwd, home=judging.home, platform=judging.platform)
        if found.refused is not None or found.real in self.downloads:
            return False
        if needle.role == "program" and str(PurePath(found.real).parent) in judging.environment.get("PATH", "").split(
            os.pathsep
        ):
            return True
        return path_resolution.is_inside_roots(found.real, judging.workspace) and os.path.lexists(found.real)


def fold_text(text: str) -> str:
    """The text as it is compared: case and kinds of blanks do not count."""
    return " ".join(text.casefold().split())


def iter_needles(invocation: Invocation, parts: Sequence[SubCommand]) -> Iterator[TaintNeedle]:
    """The pieces of a call that matter, weightiest first."""
    for part in parts:
        yield from _iter_command_needles(part)
    effects = invocation.tool.effects
    for effect in effects:
        for value in _iter_argument_texts(invocation.argument(effect)):
            yield from _iter_effect_needles(effect, value, invocation, parts)
    if any(_is_interpreter(part) for part in parts):
        for text in _iter_other_texts(invocation):
            yield from _iter_code_needles(text)
    if invocation.tool.layer == "mcp" or any(_is_sending(effect) for effect in effects):
        others = list(_iter_other_texts(invocation))
        yield TaintNeedle("sent", "".join(others))
        for text in others:
            yield from _iter_sent_needles(text)


def _iter_effect_needles(
    effect: Effect, value: str, invocation: Invocation, parts: Sequence[SubCommand]
) -> Iterator[TaintNeedle]:
    """Yield what matters of one text of the argument that an effect names."""
    match effect:
        case Run() if not parts or effect.what != "shell":
            yield from _iter_code_needles(value)
        case Run() if "<<" in value and any(_is_interpreter(part) for part in parts):
            yield from _iter_code_needles(value.partition("<<")[2].partition("\n")[2])
        case Send():
            yield from _iter_sent_needles(value)
        case Input() if effect.what in DESKTOP_KINDS:
            yield from _iter_address_needles(value)
        case Input():
            yield from _iter_sent_needles(value)
        case Write(what="file") if _is_script(value):
            for text in _iter_other_texts(invocation):
                yield from _iter_code_needles(text)
        case Write(what="memory"):
            yield from _iter_phrases("remembered", value)
        case _:
            pass


def _iter_argument_texts(argument: Any) -> Iterator[str]:
    """Yield the texts of an argument, of whatever type: one that is no plain data is taken as it prints itself."""
    plain = argument is None or isinstance(argument, str | int | float) or is_mapping(argument) or is_sequence(argument)
    yield from iter_texts(argument) if plain else (str(argument),)


def _is_sending(effect: Any) -> bool:
    return isinstance(effect, Send) or (
        isinstance(effect, Input) and effect.what not in DESKTOP_KINDS and effect.what != "process"
    )


def _iter_other_texts(invocation: Invocation) -> Iterator[str]:
    """The texts among the arguments that no effect names."""
    named = {effect.arg for effect in invocation.tool.effects}
    for name, value in invocation.args.items():
        if name not in named:
            yield from iter_texts(value)


def _is_script(path: str) -> bool:
    named = PurePath(path)
    return named.suffix.lower() in SCRIPT_SUFFIXES or sensitive_paths.describe_autorun(named) is not None


def _iter_command_needles(part: SubCommand) -> Iterator[TaintNeedle]:
    if not part.argv or part.argv[0] in ("?", ">") or (len(part.argv) == 1 and "=" in part.argv[0]):
        return
    program, *words = part.argv
    yield TaintNeedle("program", program)
    if _is_interpreter(part):
        yield from _iter_code_needles("".join(words))
        for word in words:
            yield from _iter_code_needles(word)
    said = unicodedata.normalize("NFKC", " ".join(part.argv)).translate(hostnames.DOT_TRANSLATION).casefold()
    # An address may be written in other ways than the host that it leads to: `http://1.2.3/`.
    named = is_address_named(part)
    for touch in part.touches:
        if touch.kind == "network" and touch.what:
            host = touch.what.rpartition(":")[0] if touch.what.count(":") == 1 else touch.what
            # A page may show the letters that the name in ASCII stands for. What a program connects to by itself is nobody's idea.
            yield from (
                TaintNeedle("host", name)
                for name in dict.fromkeys((host, hostnames.decode_punycode(host)))
                if named or name in said
            )
    networked = any(touch.kind == "network" for touch in part.touches)
    for word in words:
        yield from _iter_sent_needles(word) if networked else _iter_address_needles(word)
    if networked and len(words) > 1:
        yield from _iter_phrases("sent", "".join(words))


def is_address_named(part: SubCommand) -> bool:
    """Whether an address is among the words of a command."""
    return any(_URL_PATTERN.search(word) for word in part.argv)


def _is_interpreter(part: SubCommand) -> bool:
    return bool(part.argv) and _VERSION_SUFFIX.sub("", PurePath(part.argv[0]).name.lower()) in INTERPRETER_NAMES


def iter_run_files(part: SubCommand, judging: EvaluationContext) -> Iterator[str]:
    """The files that a command runs, resolved: the program, and what an interpreter is given to read."""
    named = [touch.what for touch in part.touches if touch.kind == "execute" and touch.what]
    if part.argv:
        named += [part.argv[0]] if "/" in part.argv[0] else []
        named += [word for word in part.argv[1:] if word[:1] != "-"] if _is_interpreter(part) else []
    for text in named:
        if "\0" not in text and len(text) < 4_096:
            yield path_resolution.resolve_path(text, cwd=judging.cwd, home=judging.home, platform=judging.platform).real


def _iter_code_needles(code: str) -> Iterator[TaintNeedle]:
    """A program as a whole, its statements that say something of their own, its literals, and the addresses in it."""
    code = code.strip()
    if len(code) < MIN_NEEDLE_CHARS:
        return
    yield from _iter_address_needles(code)
    # A word alone is a name, an option or a file.
    if " " in code or "(" in code or "\n" in code:
        yield TaintNeedle("code", code)
    for statement in _STATEMENT_END.split(code[:MAX_SCANNED_CHARS]):
        statement = statement.strip()
        if (
            len(statement) >= MIN_STATEMENT_CHARS
            and _IMPORT_STATEMENT.fullmatch(statement) is None
            and _DISTINCTIVE_CHAR.search(statement)
        ):
            yield TaintNeedle("code", statement)
    for match in _STRING_LITERAL.finditer(code[:MAX_SCANNED_CHARS]):
        literal = match[1] or match[2] or match[3] or ""
        if _is_distinctive(literal):
            yield TaintNeedle("code", literal)
        yield from _iter_decoded("code", literal)


def _iter_address_needles(text: str) -> Iterator[TaintNeedle]:
    """The hosts and the data of the addresses in a text."""
    for match in _URL_PATTERN.finditer(text):
        try:
            parts = urlsplit(match[0])
            host = parts.hostname
        except ValueError:
            yield TaintNeedle("host", match[0])
            continue
        if host:
            yield TaintNeedle("host", host)
        values = [
            unquote(field.partition("=")[2] or field) for field in f"{parts.query}&{parts.fragment}".split("&") if field
        ]
        for value in ("".join(values), *values):
            yield from _iter_phrases("query", value.replace("+", " "))


def _iter_sent_needles(text: str) -> Iterator[TaintNeedle]:
    yield from _iter_address_needles(text)
    if _URL_PATTERN.fullmatch(text) is None:
        yield from _iter_phrases("sent", text)


def _iter_phrases(role: NeedleRole, text: str) -> Iterator[TaintNeedle]:
    """A text as a whole, its longer lines, and those of its words that are no plain ones; each also decoded."""
    if _is_distinctive(text) or len(text.split()) > 2:
        yield TaintNeedle(role, text)
    for line in text[:MAX_SCANNED_CHARS].split("\n"):
        if len(line) >= MIN_STATEMENT_CHARS and len(line.split()) > 2:
            yield TaintNeedle(role, line)
    for token in _TOKEN_PATTERN.findall(text[:MAX_SCANNED_CHARS]):
        if _is_distinctive(token):
            yield TaintNeedle(role, token)
        yield from _iter_decoded(role, token)


def _is_distinctive(text: str) -> bool:
    """Whether it is more than a plain word or a number."""
    bare = text.strip().strip("-+.")
    return (
        len(bare) >= MIN_NEEDLE_CHARS
        and (len(bare) >= 3 * MIN_NEEDLE_CHARS or _DISTINCTIVE_CHAR.search(bare) is not None)
        and not _is_without_letters(bare)
    )


def _is_without_letters(text: str) -> bool:
    return not any(letter.isalpha() for letter in text)


def _iter_decoded(role: NeedleRole, token: str) -> Iterator[TaintNeedle]:
    """What a word says behind base64, hexadecimal or percent signs."""
    if "%" in token and (plain := unquote(token)) != token:
        yield TaintNeedle(role, plain)
    if _HEX_TEXT.fullmatch(token):
        yield from _iter_text_needle(role, bytes.fromhex(token))
    if _BASE64_TEXT.fullmatch(token):
        bare = token.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            yield from _iter_text_needle(role, base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True))
        except (binascii.Error, ValueError):
            return


def _iter_text_needle(role: NeedleRole, data: bytes) -> Iterator[TaintNeedle]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if len(text) >= MIN_NEEDLE_CHARS and text.isprintable():
        yield TaintNeedle(role, text)
