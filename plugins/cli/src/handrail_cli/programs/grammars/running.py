"""Programs that run a program of a package, of an address or of the project: where it comes from decides."""

from __future__ import annotations

import re

from handrail_cli.programs.grammars.others import from_elsewhere
from handrail_cli.programs.taking import Taking, role_of


def fetched_program(taking: Taking) -> None:
    """`npx NAME`, `go run ./x`, `go run example.com/x@latest`: a version or an address is fetched first."""
    if not taking.operands:
        return
    at = taking.operands[0]
    text = taking.words[at].text
    if text is None:
        taking.doubt(at)
    elif taking.path == "go run":
        if "@" in text or re.match(r"[\w-]+(\.[\w-]+)+/", text):
            taking.needs.add("network")
    elif "@" in text[1:]:
        taking.needs.add("network")
    from_elsewhere(taking, at)
    for option, word, value in taking.options:
        if option.name in ("--from", "--package", "-p", "--with", "--spec"):
            from_elsewhere(taking, word, value)


def npm_init(taking: Taking) -> None:
    """`npm init NAME` fetches and runs create-NAME."""
    if taking.operands:
        taking.needs |= {"network", "code"}
        fetched_program(taking)


def class_path(taking: Taking) -> None:
    """Each item of a class path is code that may run."""
    for option, at, value in taking.options:
        if option.name in ("-cp", "-classpath", "--class-path", "--module-path", "-p"):
            text = value if value is not None else taking.words[at].text
            for item in (text or "").split(":"):
                if item:
                    role_of(taking, "execute", at, item.removesuffix("*") or ".")


SHELL_VARIABLES = re.compile(r"(SHELL|\.SHELLFLAGS|MAKE|MAKEFLAGS|GNUMAKEFLAGS|MAKEFILES|VPATH)[:+?!]*=.*", re.DOTALL)
INSTALLING = re.compile(r"(un)?install(-strip)?")
COMMANDS = re.compile(r"[;|&`<>\n]|\$[({]")


def make(taking: Taking) -> None:
    """`NAME=VALUE` of the command line goes into the recipes, before whatever the project says."""
    for at in taking.operands:
        text = taking.words[at].text
        if text is not None and INSTALLING.fullmatch(text):
            taking.worsen("dangerous", code="installs", why=f"{text!r} writes outside the workspace", at=at)
        if text is None or "=" not in text:
            continue
        if SHELL_VARIABLES.fullmatch(text) or COMMANDS.search(text.partition("=")[2]):
            taking.worsen("dangerous", code="runs_program", why=f"{text!r} puts commands into the recipes", at=at)
