"""The user's git settings as sandboxed commands see them, without those that hold credentials or point to them."""

from __future__ import annotations

import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from handrail.redaction import KEY_WORDS, is_credential, is_secret_name, redact_text

MAX_GIT_CONFIG_BYTES = 2**20
# Sections that keep credentials, or lead to them.
CREDENTIAL_SECTIONS = re.compile(
    r"(?i)credential|http|url|sendemail|github|gitlab|hub|gpg|include|includeif|protocol|remote|imap"
)
SECTION_HEADER = re.compile(r'\s*\[\s*(?P<section>[^\]\s"]+)\s*(?:"(?P<named>(?:[^"\\]|\\.)*)")?\s*\](?P<rest>.*)')
# A line that goes on: no backslash before the last one takes its meaning.
ENDS_OPEN = re.compile(r"(?<!\\)(?:\\\\)*\\$")
# A line up to its comment: quotes and backslashes take the meaning of what follows.
UNCOMMENTED_PART = re.compile(r'(?:[^"\\#;]|\\.|"(?:[^"\\]|\\.)*")*')
# Keys of git that sound like secrets and name something public.
PUBLIC_KEYS = frozenset(("user.signingkey",))
# Words joined without a mark (`accesstoken`), as keys of git have no case.
IN_SECRET_NAMES = re.compile(
    r"(?i)token|secret|passw|passphrase|credential|bearer|cookie|authori[sz]ation|(?:^|[._-])keys?$"
    r"|(?:api|access|auth|private|encryption|master|client|service|account|license|shared|ssh|deploy)keys?$"
)
SECRET_OPTIONS = frozenset(("pw", "pwd", "pass", "auth", "oauth", "otp", "pin"))
# `--name value`, `-name=value`, `NAME=value`, `name: value`; each may be the value of the one before.
NAMED_VALUES = re.compile(
    r"(?<![\w.-])(?=(?P<name>-{1,2}[A-Za-z][\w.-]*)(?:=|\s+)(?P<value>[^\s;|&]+)"
    r"|(?P<set>[A-Za-z_][\w.-]*)\s*(?:=|:(?!//))\s*(?P<to>[^\s;|&]+))"
)
# What stands in a command for a value that is found elsewhere: a variable, a path, another option; and columns, as of `sort --key`.
STAND_IN = re.compile(r"[$~/@%-]|\.{1,2}/|\d{1,2}(?:[.,]\d{1,2})*[a-zA-Z]{0,3}(?:,|$)")
# Name and password of an address, or a name alone where that may be a token.
ADDRESS_CREDENTIALS = re.compile(r"(?i)://[^\s/@]*:[^\s/@]+@|\bhttps?://[^\s/@]+@")
# `-u name:password`, and a password joined to its option, for programs that take them so.
JOINED_PASSWORDS = re.compile(
    r"\s(?:-[uU]\s*|--(?:proxy-)?user[ =])(?!\d+:\d+\b)[^\s:/]+:[^\s/]|\bsshpass\s+-p|\b(?:mysql|mariadb)\S*\s.*\s-p\S"
)


@dataclass
class _GitSetting:
    """A key of a section with its value, and the lines that it is written in."""

    section: str
    name: str
    value: str
    lines: list[str] = field(default_factory=list[str])


def read_git_settings(home: Path) -> str:
    """Return the git settings of a home directory without those that hold credentials or point to them."""
    files = (home / ".config/git/config", home / ".gitconfig")
    return "".join(f"{line}\n" for file in files for line in _iter_shown_lines(_read_settings_file(file)))


def _read_settings_file(file: Path) -> str:
    try:
        found = file.stat()
        if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_GIT_CONFIG_BYTES:
            return ""
        return file.read_text(encoding="utf-8-sig", errors="replace")
    except OSError:
        return ""


def _iter_shown_lines(text: str) -> Iterator[str]:
    header: str | None = None
    section = ""
    lines = iter(text.replace("\r\n", "\n").split("\n"))
    for line in lines:
        rest = line
        if line.lstrip().startswith("["):
            read = SECTION_HEADER.match(line)
            section = ".".join(filter(None, read.group("section", "named"))) if read else ""
            header = line[: read.start("rest")] if read and not _is_credential_section(section) else None
            if header is not None:
                yield header
            rest = read["rest"] if read else ""
        setting = _parse_setting(section, rest, lines)
        if header is not None and setting is not None and not _is_withheld(setting):
            yield from setting.lines
        if setting is not None and any(more.lstrip().startswith("[") for more in setting.lines[1:]):
            # That may be a header, after a comment that ends like a line which goes on.
            header = None


def _parse_setting(section: str, line: str, following: Iterator[str]) -> _GitSetting | None:
    """Read a setting with its continuation lines; return None for an empty line or a comment."""
    read = UNCOMMENTED_PART.match(line)
    if read and line[read.end() :].startswith(("#", ";")):
        line = read[0].rstrip()
    name, _, value = line.strip().partition("=")
    if not name:
        return None
    setting = _GitSetting(section, name.strip(), value, [line])
    while ENDS_OPEN.search(setting.value) and (more := next(following, None)) is not None:
        setting.value = setting.value[:-1] + more
        setting.lines.append(more)
    return setting


def _is_credential_section(section: str) -> bool:
    return CREDENTIAL_SECTIONS.match(section) is not None or any(_is_secret_key(part) for part in section.split("."))


def _is_withheld(setting: _GitSetting) -> bool:
    if f"{setting.section}.{setting.name}".lower() in PUBLIC_KEYS:
        return False
    # How a value is quoted does not count.
    value = re.sub(r"[\"'\\]", "", setting.value)
    return (
        _is_secret_key(setting.name)
        or is_credential(setting.name.replace("-", "_"), value)
        or redact_text(value) != value
        or ADDRESS_CREDENTIALS.search(value) is not None
        or JOINED_PASSWORDS.search(f" {value}") is not None
        or any(_is_secret_assignment(match) for match in NAMED_VALUES.finditer(value))
    )


def _is_secret_key(name: str) -> bool:
    return is_secret_name(name) or IN_SECRET_NAMES.search(name) is not None


def _is_secret_assignment(match: re.Match[str]) -> bool:
    name, value = match["name"] or match["set"], match["value"] or match["to"]
    words = set(re.split(r"[-_.]", name.lower()))
    secret = _is_secret_key(name) or not words.isdisjoint(SECRET_OPTIONS | KEY_WORDS)
    return secret and STAND_IN.match(value) is None
