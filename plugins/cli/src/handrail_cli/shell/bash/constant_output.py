"""Output of a pipeline that its text determines: `echo` and `printf` of constants, through decoders."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from handrail_cli.shell.bash.syntax import is_constant_word

if TYPE_CHECKING:
    from handrail_cli.shell.bash.syntax import ShellWord, SimpleCommand

MAX_OUTPUT = 20_000
FORMAT_DIRECTIVE = re.compile(r"%(?:%|[-+ #0]*\d*(?:\.\d+)?(?P<kind>[sbqcdiouxX]))")
LETTER_RANGE = re.compile(r"([ -~])-([ -~])")


@dataclass(frozen=True, slots=True)
class StdinSource:
    """Standard input of a command: a `document` of the line itself, or the output of the commands before it."""

    document: ShellWord | None = None
    producers: tuple[SimpleCommand, ...] = ()
    given: bool = False

    @property
    def text(self) -> str | None:
        """The text itself, where it can be told."""
        if self.document is not None:
            return self.document.text
        return compute_constant_output(self.producers) if self.producers else None

    @property
    def constant(self) -> bool:
        """Return True if the text is the same each time."""
        words = (word for producer in self.producers for word in producer.words)
        return self.text is not None and all(map(is_constant_word, words))


NO_INPUT = StdinSource()


def compute_constant_output(commands: Sequence[SimpleCommand]) -> str | None:
    """Return the output of these commands, each fed by the one before; None if it cannot be determined."""
    text: str | None = None
    for command in commands:
        words = command.guess
        if not words:
            return None
        fed = next((r.body.guess for r in command.redirects if r.body is not None), text)
        produce = PRODUCERS.get(words[0].rpartition("/")[2])
        if produce is None:
            return None
        text = produce(words[1:], fed)
        if text is None or len(text) > MAX_OUTPUT:
            return None
    return text


def _run_echo(words: Sequence[str], fed: str | None) -> str | None:
    from handrail_cli.shell.bash.quoting import unescape_ansi_c

    options = [word for word in words if word in ("-n", "-e", "-E", "-ne", "-en")]
    text = " ".join(words[len(options) :])
    return unescape_ansi_c(text) if any("e" in option for option in options) else text


def _run_printf(words: Sequence[str], fed: str | None) -> str | None:
    """Return the output of `printf`, which repeats the format as long as there are words for it."""
    from handrail_cli.shell.bash.quoting import unescape_ansi_c

    if not words or words[0] == "-v":
        return None
    form, *left = words[1:] if words[0] == "--" and len(words) > 1 else words
    text = ""
    while True:
        before = len(left)
        text += FORMAT_DIRECTIVE.sub(lambda match: _format_argument(match, left), unescape_ansi_c(form))
        if not left or len(left) == before:
            return text


def _format_argument(match: re.Match[str], left: list[str]) -> str:
    from handrail_cli.shell.bash.quoting import unescape_ansi_c

    if match["kind"] is None:
        return "%"
    value = left.pop(0) if left else ""
    if match["kind"] in "sq":
        return value
    if match["kind"] in "bc":
        return unescape_ansi_c(value) if match["kind"] == "b" else value[:1]
    return format(int(value), match["kind"].replace("i", "d")) if value.isdecimal() and len(value) < 10 else value


def _decode_base64(words: Sequence[str], fed: str | None) -> str | None:
    if fed is None or not any(word in ("-d", "-D", "--decode", "-di") for word in words):
        return None
    return _decode_bytes(lambda: base64.b64decode(fed.strip() + "==", validate=False))


def _decode_base32(words: Sequence[str], fed: str | None) -> str | None:
    if fed is None or not any(word in ("-d", "-D", "--decode") for word in words):
        return None
    return _decode_bytes(lambda: base64.b32decode(fed.strip()))


def _decode_xxd(words: Sequence[str], fed: str | None) -> str | None:
    flags = "".join(words)
    if fed is None or "r" not in flags or "p" not in flags:
        return None
    return _decode_bytes(lambda: bytes.fromhex("".join(fed.split())))


def _reverse_lines(words: Sequence[str], fed: str | None) -> str | None:
    return None if fed is None else "\n".join(line[::-1] for line in fed.split("\n"))


def _pass_through(words: Sequence[str], fed: str | None) -> str | None:
    return fed if not [word for word in words if not word.startswith("-")] else None


def _copy_input(words: Sequence[str], fed: str | None) -> str | None:
    return fed


def _translate_letters(words: Sequence[str], fed: str | None) -> str | None:
    if fed is None or len(words) != 2:
        return None
    if words[0] == "-d":
        return "".join(letter for letter in fed if letter not in _expand_letters(words[1]))
    some, others = _expand_letters(words[0]), _expand_letters(words[1])
    return fed.translate(str.maketrans(some, others.ljust(len(some), others[-1])[: len(some)])) if others else None


def _expand_letters(word: str) -> str:
    r"""Return the letters that a word means to `tr`: `a-z`, `[:upper:]`, `\n`."""
    from handrail_cli.shell.bash.quoting import unescape_ansi_c

    word = unescape_ansi_c(word.replace("[:lower:]", "a-z").replace("[:upper:]", "A-Z").replace("[:digit:]", "0-9"))
    return LETTER_RANGE.sub(lambda match: "".join(map(chr, range(ord(match[1]), ord(match[2]) + 1))), word)


def _decode_bytes(decode: Callable[[], bytes]) -> str | None:
    try:
        return decode().decode("utf-8", "replace")
    except (ValueError, binascii.Error):
        return None


PRODUCERS: Mapping[str, Callable[[Sequence[str], str | None], str | None]] = {
    "echo": _run_echo,
    "printf": _run_printf,
    "base64": _decode_base64,
    "base32": _decode_base32,
    "xxd": _decode_xxd,
    "rev": _reverse_lines,
    "cat": _pass_through,
    "tee": _copy_input,
    "tr": _translate_letters,
}
