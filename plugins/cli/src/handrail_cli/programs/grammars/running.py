"""Programs that run a program of a package, of an address or of the project: where it comes from decides."""

from __future__ import annotations

import re
from collections.abc import Sequence

from handrail_cli.programs.grammars.usual import from_elsewhere
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
    tasks(taking, at + 1)
    for word in range(at + 1, len(taking.words) if taking.path != "go run" else 0):
        outside(taking, word, (taking.words[word].text or "").rpartition("=")[2])
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


# Tasks by whose name data is destroyed (`db:drop`, `ecto.reset`, `migrate:fresh`), or work leaves for elsewhere (`deploy`).
DATA = r"(db|data(base)?|ecto|schema|migrations?|migrate|tables?|storage|volumes?)"
DESTROYING = (
    r"(drop|reset|wipe|fresh|refresh|purge|destroy|truncate|nuke|flush|rollback|schema[:._-]load|load[:._-]schema)"
)
DESTROYS = re.compile(
    rf"(?i)(.*[:._-])?({DATA}[:._-](.*[:._-])?{DESTROYING}|(drop|reset|wipe|purge|destroy|truncate|nuke)[:._-]?{DATA})([:._-].*)?|flush|reset_db|dropdb"
)
# The same in two words, or more: `db downgrade`, `downgrade base`, `migrate APP zero`, `db push --force-reset`.
DESTROYS_IN_WORDS = re.compile(
    rf"(?i)(.* )?({DATA} ({DESTROYING}|downgrade)|downgrade [^ ]+|migrate [^ ]+ zero|(db|schema) push .*--(force-reset|accept-data-loss))( .*)?"
)
PUBLISHES = re.compile(r"deploy(:.*)?|site-deploy|publish(?!ToMavenLocal).*|uploadArchives|release:perform")
OUTSIDE = re.compile(r"(/|~|(.*/)?\.\.(/|$)).*", re.DOTALL)
# Variables of cmake that name what it runs.
CMAKE_RUNS = re.compile(
    r"\w*(_FILE|_INCLUDE|_INCLUDE_BEFORE|_LAUNCHER|_COMPILER|_PROGRAM|_MODULE_PATH|_COMMAND)(:\w+)?=.*"
)
# Build tools whose `install` writes into the system.
INSTALLS = frozenset(("meson", "ninja", "samu", "waf", "scons", "xmake"))


def destroying(texts: Sequence[str | None]) -> int | None:
    """Which of the words that a task runner is given names a task that destroys data."""
    at = next((at for at, text in enumerate(texts) if text is not None and DESTROYS.fullmatch(text)), None)
    if at is None and DESTROYS_IN_WORDS.fullmatch(" ".join(text or "?" for text in texts)):
        return 0
    return at


def tasks(taking: Taking, start: int = 1) -> None:
    """`db:drop` and the like say what they do."""
    texts = [word.text for word in taking.words[start:]]
    if texts and (at := destroying(texts)) is not None:
        taking.worsen("dangerous", code="destructive", why=f"{texts[at]!r} destroys data", at=start + at)


def project(taking: Taking) -> None:
    """A file or project outside the workspace that a build tool is pointed at is code from there."""
    tasks(taking)
    program = taking.path.partition(" ")[0]
    for at in taking.operands:
        text = taking.words[at].text or ""
        outside(taking, at, text)
        if PUBLISHES.fullmatch(text) and program in ("mvn", "mvnw", "gradle", "gradlew", "mill", "ant", "sbt"):
            taking.worsen("dangerous", code="sends_data", why=f"{text!r} publishes", at=at)
        elif program in INSTALLS and INSTALLING.fullmatch(text):
            taking.worsen("dangerous", code="installs", why=f"{text!r} writes outside the workspace", at=at)
    for option, at, value in taking.options:
        text = value if value is not None else taking.words[at].text or ""
        if option.value == "no" or option.role not in (None, "read"):
            continue
        if program == "cmake" and option.name in ("--target", "-t") and INSTALLING.fullmatch(text):
            taking.worsen("dangerous", code="installs", why=f"{text!r} writes outside the workspace", at=at)
        elif option.name != "-D" or CMAKE_RUNS.fullmatch(text):
            outside(taking, at, text.rpartition("=")[2])


def outside(taking: Taking, at: int, text: str) -> None:
    """A path that may leave the workspace is what is run."""
    if OUTSIDE.fullmatch(text) and text not in ("/dev/null", "/dev/stdin"):
        role_of(taking, "execute", at, text)


def go_tool(taking: Taking) -> None:
    """`go tool NAME`; `pprof` takes an address, too."""
    for at in taking.operands:
        text = taking.words[at].text
        if text is None:
            taking.doubt(at)
        elif "://" in text:
            taking.worsen("dangerous", code="foreign_source", why=f"it takes what it finds at {text!r}", at=at)
        elif re.match(r"-+(http|exec|toolexec|extld|o)\b", text):
            taking.doubt(at)
        else:
            outside(taking, at, text)


def make(taking: Taking) -> None:
    """`NAME=VALUE` of the command line goes into the recipes, before whatever the project says."""
    tasks(taking)
    files = [o for o in taking.options if o[0].name in ("-f", "--file", "--makefile")]
    if any((value or taking.words[at].text) in ("-", "/dev/stdin") for _, at, value in files):
        taking.worsen("dangerous", code="hidden_code", why="it runs recipes from its standard input", at=0)
    for at in taking.operands:
        text = taking.words[at].text
        if text is not None and INSTALLING.fullmatch(text):
            taking.worsen("dangerous", code="installs", why=f"{text!r} writes outside the workspace", at=at)
        if text is None or "=" not in text:
            continue
        if SHELL_VARIABLES.fullmatch(text) or COMMANDS.search(text.partition("=")[2]):
            taking.worsen("dangerous", code="runs_program", why=f"{text!r} puts commands into the recipes", at=at)
