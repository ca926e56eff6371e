"""Programs that run a program of a package, of an address or of the project: where it comes from decides."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handrail_cli.programs.grammars.arg_matching import ArgumentMatch, note_role
from handrail_cli.programs.grammars.common_checks import check_foreign_address


def check_fetched_program(taking: ArgumentMatch) -> None:
    """Check `npx NAME`, `go run ./x`, `go run example.com/x@latest`: a version or an address is fetched first."""
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
    check_foreign_address(taking, at)
    check_tasks(taking, at + 1)
    for word in range(at + 1, len(taking.words) if taking.path != "go run" else 0):
        check_outside_path(taking, word, (taking.words[word].text or "").rpartition("=")[2])
    for option, word, value in taking.options:
        if option.name in ("--from", "--package", "-p", "--with", "--spec"):
            check_foreign_address(taking, word, value)


def check_npm_init(taking: ArgumentMatch) -> None:
    """Check `npm init NAME`, which fetches and runs create-NAME."""
    if taking.operands:
        taking.needs |= {"network", "code"}
        check_fetched_program(taking)


def check_class_path(taking: ArgumentMatch) -> None:
    """Note each item of a class path as code that may run."""
    for option, at, value in taking.options:
        if option.name in ("-cp", "-classpath", "--class-path", "--module-path", "-p"):
            text = value if value is not None else taking.words[at].text
            for item in (text or "").split(":"):
                if item:
                    note_role(taking, "execute", at, item.removesuffix("*") or ".")


SHELL_VARIABLES = re.compile(r"(SHELL|\.SHELLFLAGS|MAKE|MAKEFLAGS|GNUMAKEFLAGS|MAKEFILES|VPATH)[:+?!]*=.*", re.DOTALL)
INSTALL_TASK = re.compile(r"(un)?install(-strip)?")
SHELL_SYNTAX = re.compile(r"[;|&`<>\n]|\$[({]")


# Tasks by whose name data is destroyed (`db:drop`, `ecto.reset`, `migrate:fresh`), or work leaves for elsewhere (`deploy`).
DATA_NAMES = r"(db|data(base)?|ecto|schema|migrations?|migrate|tables?|storage|volumes?)"
DESTROYING = (
    r"(drop|reset|wipe|fresh|refresh|purge|destroy|truncate|nuke|flush|rollback|schema[:._-]load|load[:._-]schema)"
)
DESTRUCTIVE_TASK = re.compile(
    rf"(?i)(.*[:._-])?({DATA_NAMES}[:._-](.*[:._-])?{DESTROYING}|(drop|reset|wipe|purge|destroy|truncate|nuke)[:._-]?{DATA_NAMES})([:._-].*)?|flush|reset_db|dropdb"
)
# The same in two words, or more: `db downgrade`, `downgrade base`, `migrate APP zero`, `db push --force-reset`.
DESTRUCTIVE_WORDS = re.compile(
    rf"(?i)(.* )?({DATA_NAMES} ({DESTROYING}|downgrade)|downgrade [^ ]+|migrate [^ ]+ zero|(db|schema) push .*--(force-reset|accept-data-loss))( .*)?"
)
PUBLISHING_TASK = re.compile(r"deploy(:.*)?|site-deploy|publish(?!ToMavenLocal).*|uploadArchives|release:perform")
OUTSIDE_PATH = re.compile(r"(/|~|(.*/)?\.\.(/|$)).*", re.DOTALL)
# Variables of cmake that name what it runs.
CMAKE_PROGRAM_VARIABLE = re.compile(
    r"\w*(_FILE|_INCLUDE|_INCLUDE_BEFORE|_LAUNCHER|_COMPILER|_PROGRAM|_MODULE_PATH|_COMMAND)(:\w+)?=.*"
)
# Build tools whose `install` writes into the system.
INSTALLING_TOOLS = frozenset(("meson", "ninja", "samu", "waf", "scons", "xmake"))


def find_destructive_task(texts: Sequence[str | None]) -> int | None:
    """Return the index of the first word given to a task runner that names a destructive task, or None."""
    at = next((at for at, text in enumerate(texts) if text is not None and DESTRUCTIVE_TASK.fullmatch(text)), None)
    if at is None and DESTRUCTIVE_WORDS.fullmatch(" ".join(text or "?" for text in texts)):
        return 0
    return at


def check_tasks(taking: ArgumentMatch, start: int = 1) -> None:
    """Mark tasks whose names say that they destroy data, such as `db:drop`, as dangerous."""
    texts = [word.text for word in taking.words[start:]]
    if texts and (at := find_destructive_task(texts)) is not None:
        taking.worsen("dangerous", code="destructive", why=f"{texts[at]!r} destroys data", at=start + at)


def check_project(taking: ArgumentMatch) -> None:
    """Check a build tool's operands: a file or project outside the workspace is code run from there."""
    check_tasks(taking)
    program = taking.path.partition(" ")[0]
    for at in taking.operands:
        text = taking.words[at].text or ""
        check_outside_path(taking, at, text)
        if PUBLISHING_TASK.fullmatch(text) and program in ("mvn", "mvnw", "gradle", "gradlew", "mill", "ant", "sbt"):
            taking.worsen("dangerous", code="sends_data", why=f"{text!r} publishes", at=at)
        elif program in INSTALLING_TOOLS and INSTALL_TASK.fullmatch(text):
            taking.worsen("dangerous", code="installs", why=f"{text!r} writes outside the workspace", at=at)
    for option, at, value in taking.options:
        text = value if value is not None else taking.words[at].text or ""
        if option.value == "no" or option.role not in (None, "read"):
            continue
        if program == "cmake" and option.name in ("--target", "-t") and INSTALL_TASK.fullmatch(text):
            taking.worsen("dangerous", code="installs", why=f"{text!r} writes outside the workspace", at=at)
        elif option.name != "-D" or CMAKE_PROGRAM_VARIABLE.fullmatch(text):
            check_outside_path(taking, at, text.rpartition("=")[2])


def check_outside_path(taking: ArgumentMatch, at: int, text: str) -> None:
    """Note a path that may lie outside the workspace as code that is run."""
    if OUTSIDE_PATH.fullmatch(text) and text not in ("/dev/null", "/dev/stdin"):
        note_role(taking, "execute", at, text)


def check_go_tool(taking: ArgumentMatch) -> None:
    """Check `go tool NAME`; `pprof` also accepts an address."""
    for at in taking.operands:
        text = taking.words[at].text
        if text is None:
            taking.doubt(at)
        elif "://" in text:
            taking.worsen("dangerous", code="foreign_source", why=f"it takes what it finds at {text!r}", at=at)
        elif re.match(r"-+(http|exec|toolexec|extld|o)\b", text):
            taking.doubt(at)
        else:
            check_outside_path(taking, at, text)


def check_make(taking: ArgumentMatch) -> None:
    """Check `make`: `NAME=VALUE` on the command line enters the recipes and overrides the project's own values."""
    check_tasks(taking)
    files = [o for o in taking.options if o[0].name in ("-f", "--file", "--makefile")]
    if any((value or taking.words[at].text) in ("-", "/dev/stdin") for _, at, value in files):
        taking.worsen("dangerous", code="hidden_code", why="it runs recipes from its standard input", at=0)
    for at in taking.operands:
        text = taking.words[at].text
        if text is not None and INSTALL_TASK.fullmatch(text):
            taking.worsen("dangerous", code="installs", why=f"{text!r} writes outside the workspace", at=at)
        if text is None or "=" not in text:
            continue
        if SHELL_VARIABLES.fullmatch(text) or SHELL_SYNTAX.search(text.partition("=")[2]):
            taking.worsen("dangerous", code="runs_program", why=f"{text!r} puts commands into the recipes", at=at)
