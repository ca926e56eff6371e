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

from handrail.files import known_places, paths
from handrail.judging.verdicts import Decision, Judging, Opinion, Part, Reason
from handrail.net import hostnames
from handrail.plain import is_mapping, is_sequence
from handrail.results.texts import texts_in
from handrail.tools.contract import Effect, Input, Run, Send, Write

if TYPE_CHECKING:
    from handrail.calls.invocation import Invocation

SHORTEST = 8
# A statement or a line says something of its own from this length on.
STATEMENT = 16
SOURCES = 64
REMEMBERED = 1_000_000
KNOWN = 500_000
# Of one call, so much is looked at; a longer one is judged by what it begins with.
MOST_NEEDLES = 400
LONGEST = 20_000

INTERPRETERS = frozenset(
    ("sh", "bash", "dash", "zsh", "ksh", "fish", "python", "pypy", "node", "nodejs", "deno", "bun", "perl", "ruby", "php", "lua", "awk", "gawk",
     "mawk", "sed", "tclsh", "osascript", "pwsh", "powershell", "cmd", "rscript", "eval", "exec", "ssh", "xargs", "source", ".")
)  # fmt: skip
SCRIPTS = frozenset(
    (".sh", ".bash", ".zsh", ".fish", ".command", ".desktop", ".bat", ".cmd", ".ps1", ".vbs", ".service")
)
DESKTOP = frozenset(("desktop", "windows", "clipboard"))
LOOPBACK = re.compile(r"localhost|127(?:\.\d+){3}|::1|0\.0\.0\.0")

_TOKEN = re.compile(r"[^\s'\"`()\[\]{}<>|;,]+")
_LITERAL = re.compile(r"'([^'\n]*)'|\"([^\"\n]*)\"|`([^`\n]*)`")
_STATEMENT = re.compile(r"[\n;]|&&|\|\|")
_IMPORT = re.compile(r"(?:from [\w.]+ )?import [\w., *()]+|#include.*|(?:const|let|var) \w+ ?= ?require\(.*")
_DISTINCT = re.compile(r"\d|[:/@=$|&<>{}\\%]")
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]{1,20}://[^\s'\"`<>]+", re.IGNORECASE)
_HEX = re.compile(r"(?:[0-9a-f]{2}){8,}", re.IGNORECASE)
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11,}={0,2}")
_NUMBERED = re.compile(r"[\d.-]*(?:\.exe)?$")

Role = Literal["program", "code", "host", "query", "sent", "remembered"]
TOLD = {
    "program": "the program",
    "code": "the code",
    "host": "the host",
    "query": "the address's data",
    "sent": "what is sent",
    "remembered": "what is to be remembered,",
}


@dataclass(frozen=True, slots=True)
class Remembered:
    """One text of a third party, folded. `origin`: where it came from, in words. `seq`: its place in the order of things."""

    origin: str
    tool: str
    call_id: str
    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class Own:
    """A text that the session had before the third party's text `seq` came, folded: arguments of its calls, its own files and output."""

    seq: int
    text: str


@dataclass(frozen=True, slots=True)
class Needle:
    """A piece of a call that may have come from a third party."""

    role: Role
    text: str


@dataclass(frozen=True)
class Untrusted:
    """What a session has taken in from third parties so far: never changes, a longer one takes its place."""

    sources: tuple[Remembered, ...] = ()
    own: tuple[Own, ...] = ()
    # Files that were downloaded, resolved.
    downloads: frozenset[str] = frozenset()
    # Texts whose links a person has let the session follow, by their `seq`.
    followed: frozenset[int] = frozenset()

    def opinion(self, invocation: Invocation, opinions: Sequence[Opinion], judging: Judging) -> Opinion | None:
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
        addresses = [fold(text) for text in _texts_of(invocation.argument(effects[0]))]
        return frozenset(
            source.seq for source in self.sources if addresses and all(each in source.text for each in addresses)
        )

    def _downloaded(self, parts: Iterable[Part], judging: Judging) -> Reason | None:
        for part in parts if self.downloads else ():
            for path in run_by(part, judging):
                if path in self.downloads:
                    return Reason("taint", f"it runs {path!r}, which was downloaded in this session")
        return None

    def _repeated(self, invocation: Invocation, parts: Sequence[Part], judging: Judging) -> Reason | None:
        seen: set[tuple[str, str]] = set()
        for needle in needles(invocation, parts):
            folded = fold(needle.text[:LONGEST])
            if len(folded) < SHORTEST or (needle.role, folded) in seen:
                continue
            seen.add((needle.role, folded))
            if len(seen) > MOST_NEEDLES:
                break
            source = self.source_of(folded)
            if source is not None and not self._ordinary(needle, judging):
                shown = " ".join(needle.text.split())
                shown = shown if len(shown) <= 60 else f"{shown[:59]}…"
                return Reason(
                    "taint",
                    f"{TOLD[needle.role]} {shown!r} came from {source.origin} ({source.tool}, call {source.call_id})",
                )
        return None

    def source_of(self, folded: str) -> Remembered | None:
        """The newest third party's text that holds these words, unless the session had them before."""
        for source in reversed(self.sources):
            if folded in source.text and not any(own.seq <= source.seq and folded in own.text for own in self.own):
                return source
        return None

    def _ordinary(self, needle: Needle, judging: Judging) -> bool:
        """Whether it is there to be found without any third party: an installed program, or a path of the workspace."""
        text = needle.text.strip()
        if needle.role == "host":
            return LOOPBACK.fullmatch(text) is not None or text in judging.granted_hosts
        if needle.role == "program" and "/" not in text and "\\" not in text:
            return shutil.which(text, path=judging.environment.get("PATH")) is not None
        if len(text) > 1_000 or "\n" in text or "://" in text:
            return False
        found = paths.resolve(text, cwd=judging.cwd, home=judging.home, platform=judging.platform)
        if found.refused is not None or found.real in self.downloads:
            return False
        if needle.role == "program" and str(PurePath(found.real).parent) in judging.environment.get("PATH", "").split(
            os.pathsep
        ):
            return True
        return paths.inside(found.real, judging.workspace) and os.path.lexists(found.real)


def fold(text: str) -> str:
    """The text as it is compared: case and kinds of blanks do not count."""
    return " ".join(text.casefold().split())


def needles(invocation: Invocation, parts: Sequence[Part]) -> Iterator[Needle]:
    """The pieces of a call that matter, weightiest first."""
    for part in parts:
        yield from _of_part(part)
    effects = invocation.tool.effects
    for effect in effects:
        for value in _texts_of(invocation.argument(effect)):
            yield from _of_effect(effect, value, invocation, parts)
    if any(_interprets(part) for part in parts):
        for text in _others(invocation):
            yield from _of_code(text)
    if invocation.tool.layer == "mcp" or any(_sends(effect) for effect in effects):
        others = list(_others(invocation))
        yield Needle("sent", "".join(others))
        for text in others:
            yield from _of_sent(text)


def _of_effect(effect: Effect, value: str, invocation: Invocation, parts: Sequence[Part]) -> Iterator[Needle]:
    """Yield what matters of one text of the argument that an effect names."""
    match effect:
        case Run() if not parts or effect.what != "shell":
            yield from _of_code(value)
        case Run() if "<<" in value and any(_interprets(part) for part in parts):
            yield from _of_code(value.partition("<<")[2].partition("\n")[2])
        case Send():
            yield from _of_sent(value)
        case Input() if effect.what in DESKTOP:
            yield from _of_addresses(value)
        case Input():
            yield from _of_sent(value)
        case Write(what="file") if _is_script(value):
            for text in _others(invocation):
                yield from _of_code(text)
        case Write(what="memory"):
            yield from _phrases("remembered", value)
        case _:
            pass


def _texts_of(argument: Any) -> Iterator[str]:
    """Yield the texts of an argument, of whatever type: one that is no plain data is taken as it prints itself."""
    plain = argument is None or isinstance(argument, str | int | float) or is_mapping(argument) or is_sequence(argument)
    yield from texts_in(argument) if plain else (str(argument),)


def _sends(effect: Any) -> bool:
    return isinstance(effect, Send) or (
        isinstance(effect, Input) and effect.what not in DESKTOP and effect.what != "process"
    )


def _others(invocation: Invocation) -> Iterator[str]:
    """The texts among the arguments that no effect names."""
    named = {effect.arg for effect in invocation.tool.effects}
    for name, value in invocation.args.items():
        if name not in named:
            yield from texts_in(value)


def _is_script(path: str) -> bool:
    named = PurePath(path)
    return named.suffix.lower() in SCRIPTS or known_places.autorun(named) is not None


def _of_part(part: Part) -> Iterator[Needle]:
    if not part.argv or part.argv[0] in ("?", ">") or (len(part.argv) == 1 and "=" in part.argv[0]):
        return
    program, *words = part.argv
    yield Needle("program", program)
    if _interprets(part):
        yield from _of_code("".join(words))
        for word in words:
            yield from _of_code(word)
    said = unicodedata.normalize("NFKC", " ".join(part.argv)).translate(hostnames.DOTS).casefold()
    # An address may be written in other ways than the host that it leads to: `http://1.2.3/`.
    named = names_address(part)
    for touch in part.touches:
        if touch.kind == "network" and touch.what:
            host = touch.what.rpartition(":")[0] if touch.what.count(":") == 1 else touch.what
            # A page may show the letters that the name in ASCII stands for. What a program connects to by itself is nobody's idea.
            yield from (
                Needle("host", name) for name in dict.fromkeys((host, hostnames.written(host))) if named or name in said
            )
    networked = any(touch.kind == "network" for touch in part.touches)
    for word in words:
        yield from _of_sent(word) if networked else _of_addresses(word)
    if networked and len(words) > 1:
        yield from _phrases("sent", "".join(words))


def names_address(part: Part) -> bool:
    """Whether an address is among the words of a command."""
    return any(_ADDRESS.search(word) for word in part.argv)


def _interprets(part: Part) -> bool:
    return bool(part.argv) and _NUMBERED.sub("", PurePath(part.argv[0]).name.lower()) in INTERPRETERS


def run_by(part: Part, judging: Judging) -> Iterator[str]:
    """The files that a command runs, resolved: the program, and what an interpreter is given to read."""
    named = [touch.what for touch in part.touches if touch.kind == "execute" and touch.what]
    if part.argv:
        named += [part.argv[0]] if "/" in part.argv[0] else []
        named += [word for word in part.argv[1:] if word[:1] != "-"] if _interprets(part) else []
    for text in named:
        if "\0" not in text and len(text) < 4_096:
            yield paths.resolve(text, cwd=judging.cwd, home=judging.home, platform=judging.platform).real


def _of_code(code: str) -> Iterator[Needle]:
    """A program as a whole, its statements that say something of their own, its literals, and the addresses in it."""
    code = code.strip()
    if len(code) < SHORTEST:
        return
    yield from _of_addresses(code)
    # A word alone is a name, an option or a file.
    if " " in code or "(" in code or "\n" in code:
        yield Needle("code", code)
    for statement in _STATEMENT.split(code[:LONGEST]):
        statement = statement.strip()
        if len(statement) >= STATEMENT and _IMPORT.fullmatch(statement) is None and _DISTINCT.search(statement):
            yield Needle("code", statement)
    for match in _LITERAL.finditer(code[:LONGEST]):
        literal = match[1] or match[2] or match[3] or ""
        if _says_something(literal):
            yield Needle("code", literal)
        yield from _decoded("code", literal)


def _of_addresses(text: str) -> Iterator[Needle]:
    """The hosts and the data of the addresses in a text."""
    for match in _ADDRESS.finditer(text):
        try:
            parts = urlsplit(match[0])
            host = parts.hostname
        except ValueError:
            yield Needle("host", match[0])
            continue
        if host:
            yield Needle("host", host)
        values = [
            unquote(field.partition("=")[2] or field) for field in f"{parts.query}&{parts.fragment}".split("&") if field
        ]
        for value in ("".join(values), *values):
            yield from _phrases("query", value.replace("+", " "))


def _of_sent(text: str) -> Iterator[Needle]:
    yield from _of_addresses(text)
    if _ADDRESS.fullmatch(text) is None:
        yield from _phrases("sent", text)


def _phrases(role: Role, text: str) -> Iterator[Needle]:
    """A text as a whole, its longer lines, and those of its words that are no plain ones; each also decoded."""
    if _says_something(text) or len(text.split()) > 2:
        yield Needle(role, text)
    for line in text[:LONGEST].split("\n"):
        if len(line) >= STATEMENT and len(line.split()) > 2:
            yield Needle(role, line)
    for token in _TOKEN.findall(text[:LONGEST]):
        if _says_something(token):
            yield Needle(role, token)
        yield from _decoded(role, token)


def _says_something(text: str) -> bool:
    """Whether it is more than a plain word or a number."""
    bare = text.strip().strip("-+.")
    return (
        len(bare) >= SHORTEST
        and (len(bare) >= 3 * SHORTEST or _DISTINCT.search(bare) is not None)
        and not _is_number(bare)
    )


def _is_number(text: str) -> bool:
    return not any(letter.isalpha() for letter in text)


def _decoded(role: Role, token: str) -> Iterator[Needle]:
    """What a word says behind base64, hexadecimal or percent signs."""
    if "%" in token and (plain := unquote(token)) != token:
        yield Needle(role, plain)
    if _HEX.fullmatch(token):
        yield from _as_text(role, bytes.fromhex(token))
    if _BASE64.fullmatch(token):
        bare = token.rstrip("=").replace("-", "+").replace("_", "/")
        try:
            yield from _as_text(role, base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True))
        except (binascii.Error, ValueError):
            return


def _as_text(role: Role, data: bytes) -> Iterator[Needle]:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return
    if len(text) >= SHORTEST and text.isprintable():
        yield Needle(role, text)
