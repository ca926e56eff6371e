"""Checks that follow a row, for what options alone do not say."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handrail.redaction import is_credential
from handrail_cli.programs.grammars.arg_matching import ArgumentMatch, assign_operands, note_role
from handrail_cli.programs.rows import RowOperand
from handrail_cli.shell.bash.syntax import ShellWord

FOREIGN_ADDRESS = re.compile(
    r"(?i)(git\+|https?:|ftp:|file:|svn\+|hg\+|ssh:|git:|git@|github:|gist:|bitbucket:|gitlab:|\w[\w.-]*@[\w.-]+:).*|.*@(https?|git|file|ssh)[:+].*"
)
UNARY_TEST = re.compile(r"-[abcdefghknprstuwxzGLNOS]")
COMPARISON_OPERATOR = re.compile(r"=|==|!=|-nt|-ot|-ef|=~|-(eq|ne|lt|le|gt|ge)")
VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
TAME_VARIABLE = re.compile(r"[a-zA-Z]\w*=[\w .,:%/+-]*", re.ASCII)
NUMERIC_OPERATOR = re.compile(r"-(eq|ne|lt|le|gt|ge)")
SECRET_SETTING = re.compile(r"(?i)token|passw|secret|cred|auth|header|key|url|proxy|cookie")


def check_date(taking: ArgumentMatch) -> None:
    """Check `date`: an operand that is not a format would set the clock."""
    for at in taking.operands:
        if not (taking.words[at].text or "").startswith("+"):
            taking.worsen("dangerous", code="system_change", why="date sets the clock", at=at)


def check_printf(taking: ArgumentMatch) -> None:
    """Check `printf`: `-v NAME` sets a variable, which may determine what another program runs."""
    words = taking.words
    if len(words) > 1 and words[1].text != "--":
        if (words[1].text is None and not words[1].start) or (
            words[1].guess.startswith("-v") and not _is_plain_assignment(words)
        ):
            taking.unread(1)
        elif words[1].guess.startswith("-"):
            taking.doubt(1)


def _is_plain_assignment(words: Sequence[ShellWord]) -> bool:
    """Return True if `printf -v NAME` names a variable rather than an array element, whose subscript is evaluated."""
    option = words[1].text
    if option is None:
        return False
    name = option.removeprefix("-v") or (words[2].text if len(words) > 2 else None)
    return VARIABLE_NAME.fullmatch(name or "") is not None


def check_printenv(taking: ArgumentMatch) -> None:
    """Check `printenv`: without a name it shows all variables, some of which hold credentials."""
    if not taking.operands:
        taking.worsen("dangerous", code="secret", why="it shows all variables, credentials among them", at=0)
    for at in taking.operands:
        text = taking.words[at].text
        if text is None or is_credential(text, "") or SECRET_SETTING.search(text):
            taking.worsen("dangerous", code="secret", why=f"{taking.words[at].guess!r} may be a credential", at=at)


def check_test_expression(taking: ArgumentMatch) -> None:
    """Check a test expression: tests evaluate the values of variables and inspect variables by name."""
    words = taking.words
    guesses = [word.guess for word in words]
    wrong = next((at for at, guess in enumerate(guesses) if at and guess in ("-R", "-o", "-t")), None)
    if wrong is not None:
        taking.doubt(wrong)
    for at, guess in enumerate(guesses):
        # Whether an element is set: its subscript is computed.
        if at and guess == "-v" and not (at + 1 < len(words) and VARIABLE_NAME.fullmatch(words[at + 1].text or "")):
            taking.unread(at)
        sides = [words[n].text or "?" for n in (at - 1, at + 1) if 0 < n < len(words)]
        # `test` takes a number for a number; `[[` computes, and what is computed may hold commands.
        if (
            guesses[0] == "[["
            and NUMERIC_OPERATOR.fullmatch(guess)
            and not all(re.fullmatch(r"[+-]?\d+", side) for side in sides)
        ):
            taking.unread(at)
    if guesses[0] == "[[":
        return
    inner = [word for word in words[1:] if word.guess != "]"]
    if inner[:1] and inner[0].text == "!":
        inner = inner[1:]
    unknown = [n for n, word in enumerate(inner) if word.text is None]
    operator = inner[0].text if len(inner) == 2 else inner[1].text if len(inner) == 3 else None
    plain = len(inner) <= 1 or (
        operator is not None and (UNARY_TEST if len(inner) == 2 else COMPARISON_OPERATOR).fullmatch(operator)
    )
    if unknown and (not plain or any(inner[n].glob for n in unknown)):
        # It may hold operators, `-v` among them.
        taking.unread(0)


def check_ln(taking: ArgumentMatch) -> None:
    """Check `ln`: `ln TARGET` creates a link of that name in the working directory; a hard link is the file itself."""
    if len(taking.operands) == 1 and not taking.given("-t", "--target-directory"):
        taking.named = [one for one in taking.named if one.role == "dest"]
        note_role(taking, "target", taking.operands[0])


def check_cp(taking: ArgumentMatch) -> None:
    """Check `cp`: with `-l` and `-s` it creates links to existing files instead of copies."""
    if taking.given("-l", "--link"):
        check_hard_links(taking)
    if taking.given("-s", "--symbolic-link"):
        for at in _list_sources(taking):
            note_role(taking, "target", at)


def check_hard_links(taking: ArgumentMatch) -> None:
    """Take down that a file changes when something is written to another name of it."""
    for at in _list_sources(taking):
        note_role(taking, "change", at)


def _list_sources(taking: ArgumentMatch) -> Sequence[int]:
    return [one.word_index for one in taking.named if one.role == "read" and one.value is None]


def check_chmod(taking: ArgumentMatch) -> None:
    """Check `chmod`: a mode with a leading dash looks like options; giving others the owner's power is dangerous."""
    rights = [at for option, at, _ in taking.options if re.fullmatch(r"-[rwxXstugoa0-9]", option.name)]
    if rights and taking.operands:
        taking.named = [one for one in taking.named if one.role not in ("change", "change_tree")]
        role = "change_tree" if taking.given("-R", "--recursive") else "change"
        assign_operands(taking, (RowOperand(role, "..."),), taking.operands)
    mode = taking.words[taking.operands[0]].text if taking.operands and not rights else None
    if (
        mode is not None
        and re.search(r"[+=][rwxXt]*s|^[2-7][0-7]{3}$|^0[2-7][0-7]{3}$", mode)
        and not re.fullmatch(r"[01]?1\d{3}", mode)
    ):
        taking.worsen(
            "dangerous", code="privilege", why=f"the mode {mode!r} lets others act as the owner", at=taking.operands[0]
        )


def check_sed(taking: ArgumentMatch) -> None:
    """Check `sed`: with `-i` it writes its files, and a suffix may name another directory."""
    for option, at, value in taking.options:
        if option.name in ("-i", "--in-place"):
            if value is not None and re.search(r"[/*]", value):
                taking.doubt(at)
            files = [one.word_index for one in taking.named if one.role == "read" and one.value is None]
            taking.named = [one for one in taking.named if one.word_index not in files or one.value is not None]
            for file in files:
                note_role(taking, "write", file)


def check_awk(taking: ArgumentMatch) -> None:
    """Check `awk`: a variable may be given any text; only with a tame one is it certain to be a filter."""
    for option, at, value in taking.options:
        if option.name in ("-v", "--assign") and not TAME_VARIABLE.fullmatch(value or taking.words[at].text or ""):
            taking.needs.discard("filters")


def check_recursive_search(taking: ArgumentMatch) -> None:
    """Note that a recursive search reads everything below its directories or, without any, the working directory."""
    program = taking.path.partition(" ")[0]
    whole = program in ("rg", "ag", "ack") or taking.given("-r", "-R", "--recursive", "--dereference-recursive")
    if whole and not any(one.role == "read" and one.value is None for one in taking.named):
        taking.name("read", 0, ".")


def check_foreign_address(taking: ArgumentMatch, at: int, value: str | None = None) -> None:
    """Check a program to run: it may be an address, which is fetched first."""
    text = value if value is not None else taking.words[at].text
    if text is not None and FOREIGN_ADDRESS.fullmatch(text):
        taking.worsen("dangerous", code="foreign_source", why=f"it runs what it finds at {text!r}", at=at)
