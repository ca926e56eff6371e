"""Detection of programs waiting for input (questions, passwords, pagers, editors) by the end of their output.

Each pattern is data: a kind of prompt and a regular expression for the last line. Only the end of the output is
examined, and only once the program is silent: a question in the middle of a log is not a prompt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from handrail.sanitize.terminal import render_terminal_text

PromptKind = Literal["password", "question", "key", "pager", "editor", "screen", "input", "shell"]
# These read keys, not lines: no end of an input means anything to them.
READ_KEYS: frozenset[PromptKind] = frozenset(("pager", "editor", "screen"))
# So much of the end of an output is looked at, in bytes, and so much of a prompt is told.
SCANNED_BYTES = 2_000
MAX_PROMPT_CHARS = 300
# What is written to draw anywhere on a terminal: its other screen, or a place by row and column.
DRAWING_SEQUENCE = re.compile(rb"\x1b\[(?:\?(?:1049|1047|47)h|\d+;\d+[Hf])")
# To the other screen of a terminal, and back from it.
OTHER_SCREEN = re.compile(rb"\x1b\[\?(?:1049|1047|47)([hl])")
# What programs say that want to be seen on a terminal.
NO_TERMINAL = re.compile(rb"\bnot (?:to |from |on )?a (?:terminal|tty)\b", re.IGNORECASE)
# What programs write after a question when they find their input at its end.
ABORT_MESSAGE = re.compile(r"[ \t]*\n?(?:Abort(?:ed|ing)?\b[.!]*|EOF|\^[CD])\s*\Z", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PromptPattern:
    """One way to ask. `open`: only where the line has not been ended, because ended lines often look so."""

    kind: PromptKind
    line: re.Pattern[str]
    open: bool = False


def _create_pattern(kind: PromptKind, line: str, *, open: bool = False) -> PromptPattern:
    return PromptPattern(kind, re.compile(line, re.IGNORECASE), open=open)


SECRET_WORDS = r"\b(?:pass ?(?:word|phrase|code)s?|passwd|pin(?: code)?|otp|(?:one-time|verification|2fa) code|secret|api key|token)\b"
SECRET_TEXT = re.compile(SECRET_WORDS, re.IGNORECASE)

# The first that matches says what kind it is.
PROMPT_PATTERNS: tuple[PromptPattern, ...] = (
    # sudo, su, ssh, passwd, gpg, git: `Password for 'https://…': `, `Enter passphrase for key '…': `.
    _create_pattern("password", rf"{SECRET_WORDS}[^\n]*[:>?]\s*$", open=True),
    # apt `[Y/n]`, fsck `<y>`, rsync `[y/N/a]`, ssh `(yes/no/[fingerprint])?`.
    _create_pattern("question", r"[\[(<]\s*y(?:es)?\s*[/|,]\s*n(?:o)?\b[^\n]{0,40}[\])>]\s*[?:]?\s*$"),
    _create_pattern("question", r"[\[(<]\s*n(?:o)?\s*[/|,]\s*y(?:es)?\b[^\n]{0,40}[\])>]\s*[?:]?\s*$"),
    # npm `Ok to proceed? (y)`, `Is this OK? (yes)`, keytool `[no]:`.
    _create_pattern("question", r"[\[(]\s*(?:y|yes|n|no)\s*[\])]\s*[?:]?\s*$", open=True),
    # unzip `replace a? [y]es, [n]o, [A]ll`.
    _create_pattern("question", r"\[y\]es,? \[n\]o\b[^\n]*[:?]\s*$"),
    # dpkg: `*** sshd_config (Y/I/N/O/D/Z) [default=N] ? `.
    _create_pattern("question", r"\[default=\w+\]\s*\?\s*$"),
    _create_pattern("question", r"\bdo you (?:want|wish|really want|accept|agree)\b[^\n]*\?\s*$"),
    _create_pattern("question", r"\bare you (?:really )?sure\b[^\n]*[?:]\s*$"),
    _create_pattern("question", r"\b(?:continue|proceed|is this ok(?:ay)?|ok to proceed)\s*\?\s*$"),
    # rm, cp and mv with -i.
    _create_pattern("question", r"\b(?:overwrite|replace|remove|delete|descend into)\b[^\n]*\?\s*$", open=True),
    # terraform, heroku, GitHub's command: `Type 'yes' to confirm`.
    _create_pattern("question", r"\b(?:type|enter)\s+['\"`]?(?:yes|y)['\"`]?\b[^\n]*[:.>]?\s*$"),
    _create_pattern("key", r"\b(?:press|hit|strike)\s+(?:\[?(?:any key|a key|enter|return|space|ctrl-\w|q)\b)[^\n]*$"),
    # more, and less's ways to say where it is.
    _create_pattern("pager", r"--\s?more\s?--(?:\s*\(\d+%\))?[^\n]*$"),
    _create_pattern("pager", r"^\(END\)\s*$|^[^\n]*\(END\)\s*$|^\s*lines \d+-\d+(?:/\d+)?(?: \d+%)?[^\n]*$", open=True),
    _create_pattern("pager", r"^[^\n]*(?:\bManual page \S+ line \d+|\(press h for help or q to quit\))[^\n]*$", open=True),
    _create_pattern("pager", r"^:\s?$", open=True),
    # vi's empty rows and status lines; nano's.
    _create_pattern("editor", r"^~\s*$|^-- (?:INSERT|NORMAL|VISUAL|REPLACE) --", open=True),
    _create_pattern("editor", r'^"[^"\n]*" (?:\[New(?: File)?\]|\[readonly\] )?\s*(?:\d+L, \d+[BC])?(?:\s[^\n]*)?$', open=True),
    _create_pattern("editor", r"^\s*\^[GX] (?:Help|Get Help|Exit)\b[^\n]*$|^hint: Waiting for your editor to close", open=True),
    # Shells of languages, databases and debuggers.
    _create_pattern("shell", r"^(?:>>>|\.\.\.|In \[\d+\]:|\(\w*db\)|\(Pdb\)|\w+[=-]?[>#$]|>|irb\([^\n]*\)[^\n]*>|[^\n]{0,60}[$#%])\s$", open=True),
    # bash's `select`, menus.
    _create_pattern("input", r"^#\?\s*$|\b(?:choose|select|enter|choice|selection|option|pick|input)\b[^\n]{0,80}[:>?]\s*$", open=True),
    _create_pattern("input", r"\b(?:user ?name|login|e-?mail)\b[^\n]{0,120}:\s*$", open=True),
    # npm init `package name: (work) `.
    _create_pattern("input", r"\w[^\n]{0,120}[:?]\s*[(\[][^()\n]{0,80}[)\]]\s*$", open=True),
    # Any other question at the end of an open line: `Name? `, `Port: `.
    _create_pattern("input", r"^[^\n]*\w[^\n]{0,200}[:?]\s?$", open=True),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class DetectedPrompt:
    """Last prompt of a program: its line, its stream and its kind."""

    kind: PromptKind
    text: str
    stream: str

    def wire(self) -> dict[str, str]:
        """Return the prompt as represented in a result."""
        return {"kind": self.kind, "text": self.text, "stream": self.stream}


def names_secret(text: str) -> bool:
    """Return True if a text names a password or a similar secret."""
    return SECRET_TEXT.search(text) is not None


def find_prompt(output: bytes, *, stream: str) -> DetectedPrompt | None:
    """Return the prompt at the end of an output, or None."""
    if not output:
        return None
    seen = render_terminal_text(output[-SCANNED_BYTES:].decode("utf-8", "replace"), Counter())
    gave_up = ABORT_MESSAGE.search(seen)
    said = seen if gave_up is None else f"{seen[: gave_up.start()].rstrip()} "
    ended = said.endswith("\n")
    line = said.rstrip("\n").rpartition("\n")[2][-MAX_PROMPT_CHARS:]
    if not line.strip():
        return None
    for pattern in PROMPT_PATTERNS:
        if not (ended and pattern.open) and pattern.line.search(line) is not None:
            return DetectedPrompt(pattern.kind, line.strip(), stream)
    return None


def find_screen_prompt(output: bytes, *, stream: str) -> DetectedPrompt:
    """Return the prompt of a silent program that has drawn on the full screen.

    It waits for keys, no matter what the screen shows.
    """
    line = output.decode("utf-8", "replace").rstrip().rpartition("\n")[2]
    return find_prompt(output, stream=stream) or DetectedPrompt("screen", line.strip()[-MAX_PROMPT_CHARS:], stream)


def find_drawn_prompt(output: bytes, *, stream: str) -> DetectedPrompt | None:
    """Return the prompt of a program that draws as on a full terminal without having one, or None.

    It waits for keys that it will not get.
    """
    looked_at = output[-SCANNED_BYTES:]
    return (
        find_screen_prompt(
            render_terminal_text(looked_at.decode("utf-8", "replace"), Counter()).encode(), stream=stream
        )
        if DRAWING_SEQUENCE.search(looked_at)
        else None
    )


def is_alternate_screen(*pieces: bytes) -> bool:
    """Return True if an output, given in pieces in order, has switched to the alternate screen and not back."""
    last = [found[-1] for piece in pieces if (found := OTHER_SCREEN.findall(piece))]
    return bool(last) and last[-1] == b"h"


def is_terminal_missed(output: bytes) -> bool:
    """Return True if a program reports that it has no terminal."""
    return NO_TERMINAL.search(output[-SCANNED_BYTES:]) is not None


def find_gravest_prompt(outputs: Sequence[tuple[str, bytes]]) -> DetectedPrompt | None:
    """Return the prompt at the end of any of the outputs, which are pairs of stream name and data.

    If several outputs end with a prompt, return the most serious one.
    """
    found = [prompt for name, output in outputs if (prompt := find_prompt(output, stream=name)) is not None]
    order = [pattern.kind for pattern in PROMPT_PATTERNS]
    return min(found, key=lambda prompt: order.index(prompt.kind), default=None)
