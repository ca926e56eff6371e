"""Detection of calls that repeat text from a third party.

A page, a screen, another server or a file from elsewhere may tell an agent what to run and where to send data. The
session remembers such text, and a call requires approval if it contains the text as a program, as code, as the host or
query of a URL, as data to be sent, or as a fact to be remembered.

It remembers the last 64 texts, at most a million characters in total, and half a million characters of what the session
itself had seen before. Text of fewer than 8 characters, plain words, numbers, installed programs and workspace paths
are not attributed to anyone.
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
    """Content that a session has received from third parties so far; immutable, replaced by an extended copy."""

    sources: tuple[RememberedText, ...] = ()
    own: tuple[OwnText, ...] = ()
    # Files that were downloaded, resolved.
    downloads: frozenset[str] = frozenset()
    # Texts whose links a person has let the session follow, by their `seq`.
    followed: frozenset[int] = frozenset()

    def opinion(
        self, invocation: Invocation, opinions: Sequence[Opinion], judging: EvaluationContext
    ) -> Opinion | None:
        """Return the opinion `taint` with a floor of confirm if the call repeats third-party text, else None.

        Only repetitions in sensitive places count; running a downloaded file counts, too.
        """
        parts = [part for opinion in opinions for part in opinion.parts]
        if self.linked_from(invocation) & self.followed:
            return None
        reason = self._downloaded(parts, judging) or self._repeated(invocation, parts, judging)
        return Opinion("taint", floor=Decision.CONFIRM, reasons=(reason,)) if reason is not None else None

    def linked_from(self, invocation: Invocation) -> frozenset[int]:
        """Return the `seq` of the texts that contain the full URL of a call that only fetches it.

        The session adds nothing to such a URL.
        """
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
        """Return the newest third-party text that contains these words, unless the session had them before."""
        for source in reversed(self.sources):
            if folded in source.text and not any(own.seq <= source.seq and folded in own.text for own in self.own):
                return source
        return None

    def _ordinary(self, needle: TaintNeedle, judging: EvaluationContext) -> bool:
        """Return True if the text needs no third party: an installed program, a known host or a workspace path."""
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
    """Fold the text for comparison: case and kinds of whitespace do not count."""
    return " ".join(text.casefold().split())


def iter_needles(invocation: Invocation, parts: Sequence[SubCommand]) -> Iterator[TaintNeedle]:
    """Yield the sensitive pieces of a call, most important first."""
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
    """Yield the texts of an argument of any type; an object that is not plain data is converted with `str`."""
    plain = argument is None or isinstance(argument, str | int | float) or is_mapping(argument) or is_sequence(argument)
    yield from iter_texts(argument) if plain else (str(argument),)


def _is_sending(effect: Any) -> bool:
    return isinstance(effect, Send) or (
        isinstance(effect, Input) and effect.what not in DESKTOP_KINDS and effect.what != "process"
    )


def _iter_other_texts(invocation: Invocation) -> Iterator[str]:
    """Yield the texts of the arguments that no effect names."""
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
    """Return True if the words of a command contain a URL."""
    return any(_URL_PATTERN.search(word) for word in part.argv)


def _is_interpreter(part: SubCommand) -> bool:
    return bool(part.argv) and _VERSION_SUFFIX.sub("", PurePath(part.argv[0]).name.lower()) in INTERPRETER_NAMES


def iter_run_files(part: SubCommand, judging: EvaluationContext) -> Iterator[str]:
    """Yield the resolved paths of files that a command runs: the program, and an interpreter's operands."""
    named = [touch.what for touch in part.touches if touch.kind == "execute" and touch.what]
    if part.argv:
        named += [part.argv[0]] if "/" in part.argv[0] else []
        named += [word for word in part.argv[1:] if word[:1] != "-"] if _is_interpreter(part) else []
    for text in named:
        if "\0" not in text and len(text) < 4_096:
            yield path_resolution.resolve_path(text, cwd=judging.cwd, home=judging.home, platform=judging.platform).real


def _iter_code_needles(code: str) -> Iterator[TaintNeedle]:
    """Yield an entire program, its distinctive statements and literals, and the hosts and data of its URLs."""
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
    """Yield the hosts and the data of the URLs in a text."""
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
    """Yield an entire text, its longer lines, and its distinctive words; the words also in decoded form."""
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
    """Return True if the text is more than a plain word or a number."""
    bare = text.strip().strip("-+.")
    return (
        len(bare) >= MIN_NEEDLE_CHARS
        and (len(bare) >= 3 * MIN_NEEDLE_CHARS or _DISTINCTIVE_CHAR.search(bare) is not None)
        and not _is_without_letters(bare)
    )


def _is_without_letters(text: str) -> bool:
    return not any(letter.isalpha() for letter in text)


def _iter_decoded(role: NeedleRole, token: str) -> Iterator[TaintNeedle]:
    """Yield the text that a word encodes in base64, hexadecimal or percent-encoding."""
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
