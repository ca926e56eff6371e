"""Interpreters: `-c CODE` is looked at, a file is run, and code on standard input is not seen."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from handrail_cli.programs.grammars.arg_matching import ArgumentMatch, note_role
from handrail_cli.programs.grammars.code_runners import OUTSIDE_PATH, check_tasks
from handrail_cli.programs.values import UseKind

# Options with which Python looks for no modules where it works.
ISOLATED_OPTION = re.compile(r"-[bBdEhiOqRsSuv]*[IP][bBdEhIiOPqRsSuv]*c?")
PYTHON_PLAIN = re.compile(r"-[bBdEhiIOPqRsSuv]+|--check-hash-based-pycs=\w+")
MODULE_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*", re.ASCII)
# Modules that are programs: what `python -m NAME` is. Of any other it is not known.
PYTHON_MODULES: Mapping[str, str] = {
    "json.tool": "reads", "calendar": "reads", "tokenize": "reads", "ast": "reads", "dis": "reads", "platform": "reads", "site": "reads",
    "sysconfig": "reads", "this": "reads", "base64": "reads", "tabnanny": "reads",
    "py_compile": "writes", "compileall": "writes", "venv": "writes", "virtualenv": "writes", "gzip": "writes",
    "zipfile": "packs", "tarfile": "packs",
    "pydoc": "project", "unittest": "project", "coverage": "project", "build": "project", "doctest": "project",
    "cProfile": "profiles", "profile": "profiles", "timeit": "code", "http.server": "serves",
    **dict.fromkeys(
        ("pip", "pipx", "poetry", "uv", "pytest", "mypy", "ruff", "black", "isort", "flake8", "pylint", "tox", "nox", "pyright", "pre_commit"),
        "inner",
    ),
}  # fmt: skip
PERL_PLAIN = re.compile(r"-[wWtTUXnpalc]+|-[nplawW]*0[0-7xXa-fA-F]*|-F[\w:,;|\t ]|-l[0-7]*")
SCRIPTING_LANGUAGES: Mapping[str, tuple[str, str, str]] = {
    # Program: its language, options that hold code, options that do nothing else.
    "ruby": ("ruby", r"-e", r"-[wWnplas]+|-W\d|-v|--version|-F.+|--disable=\w+|-[Ku]"),
    "jruby": ("ruby", r"-e", r"-[wnplas]+"),
    "node": ("node", r"-e|-p|-pe|--eval|--print", r"--no-warnings|--trace-warnings|--input-type=\w+|--stack-trace-limit=\d+|--test|--watch"),
    "nodejs": ("node", r"-e|-p|-pe|--eval|--print", r"--no-warnings"),
    "php": ("php", r"-r", r"-[nqsCH]+|-d(display_errors|error_reporting|memory_limit)=\w+"),
    "lua": ("lua", r"-e", r"-W|-E"),
    "luajit": ("lua", r"-e", r"-"),
    "lua5.1": ("lua", r"-e", r"-W|-E"),
    "lua5.3": ("lua", r"-e", r"-W|-E"),
    "lua5.4": ("lua", r"-e", r"-W|-E"),
    "Rscript": ("r", r"-e", r"--vanilla|--quiet|--no-\w+|--slave"),
}  # fmt: skip
# Those of `other_interpreter` whose first operand is a task by its name, and no file of code.
TASK_RUNNERS = frozenset((
    "lein", "sbt", "stack", "cabal", "dune", "opam", "mix", "rebar3", "swift", "dart", "flutter", "nim", "zig", "crystal", "kotlinc", "scalac",
    "groovyc", "ocamlc", "swiftc", "ghc",
))  # fmt: skip
VERSION_QUERY = re.compile(r"-v|-V|-VV|--version|--help|-h|-\?")


def take_python(taking: ArgumentMatch, start: int) -> None:
    """Match `python -c CODE`, `-m MODULE`, `FILE`, or code on standard input."""
    words = taking.words
    at = start
    if _take_version_query(taking, start):
        return
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-") and text != "-":
        code = re.fullmatch(r"-[bBdEiIOPqRsSuv]*c(.*)", text, re.DOTALL)
        if code is not None:
            _take_code_option(taking, "python", at, code[1])
            if any(ISOLATED_OPTION.fullmatch(word.text or "") for word in words[start : at + 1]):
                taking.needs.discard("loads_project")
            return
        if text == "-m":
            take_python_module(taking, at + 1)
            return
        if (
            re.fullmatch(r"-[WX]", text)
            and at + 1 < len(words)
            and not (words[at + 1].text or "").startswith("importtime=")
        ):
            at += 1
        elif not (PYTHON_PLAIN.fullmatch(text) or re.fullmatch(r"-[WX][\w:.=]+", text)):
            taking.unread(at)
            return
        at += 1
    _take_script_file(taking, at)


def take_python_module(taking: ArgumentMatch, at: int) -> None:
    """Match `NAME WORD…`, as after `python -m`."""
    words = taking.words
    name = words[at].text if at < len(words) else None
    what = PYTHON_MODULES.get(name or "")
    if name is None or not MODULE_NAME.fullmatch(name):
        taking.unread(min(at, len(words) - 1))
        return
    if what is None:
        taking.doubt(at)
        return
    rest = range(at + 1, len(words))
    if what == "serves":
        taking.worsen("dangerous", code="serves", why="it serves files to whoever asks", at=at)
    elif what == "inner":
        from handrail_cli.programs.values import InnerRun

        taking.inner.append(InnerRun(at, len(words)))
    elif what == "reads" and all(words[n].text is not None for n in rest):
        _note_visible_code(taking)
        files = [n for n in rest if not (words[n].text or "").startswith("-")]
        for number, n in enumerate(files):
            note_role(taking, "write" if name == "json.tool" and number == 1 else "read", n)
        if name not in ("json.tool", "tokenize", "ast", "dis", "base64", "tabnanny"):
            taking.named.clear()
    elif what == "code":
        for n in rest:
            if not (words[n].text or "-").startswith("-"):
                note_role(taking, "code/python", n)
    elif what == "packs":
        _take_archive_module(taking, at + 1)
    elif what == "profiles":
        _take_profiler(taking, at + 1)
    else:
        _note_project_paths(taking, rest, "write" if what == "writes" else "execute")


def _note_project_paths(taking: ArgumentMatch, rest: Iterable[int], role: str) -> None:
    """Note paths among a module's arguments, below which it writes or which it runs."""
    for n in rest:
        text = taking.words[n].text
        if text is None or re.fullmatch(r"-[pbn]\d*|--(rcfile|plugins|config-setting)(=.*)?", text):
            taking.doubt(n)
        elif OUTSIDE_PATH.fullmatch(value := text.partition("=")[2] if text.startswith("-") else text):
            note_role(taking, role, n, value)


def _take_archive_module(taking: ArgumentMatch, at: int) -> None:
    """Match `-l`, `-t`, `-e ARCHIVE [FOLDER]`, `-c ARCHIVE FILE…`."""
    words = taking.words
    files = [n for n in range(at, len(words)) if not (words[n].text or "").startswith("-")]
    texts = {words[n].text for n in range(at, len(words)) if n not in files}
    making = bool(texts & {"-c", "--create"})
    extracting = bool(texts & {"-e", "--extract"})
    if not files or not texts <= {
        "-c",
        "--create",
        "-e",
        "--extract",
        "-l",
        "--list",
        "-t",
        "--test",
        "-v",
        "--verbose",
    }:
        taking.doubt(min(at, len(words) - 1))
    for number, n in enumerate(files):
        writes = number == 0 if making else extracting and number > 0
        note_role(taking, "write" if writes else "read", n)


def _take_profiler(taking: ArgumentMatch, at: int) -> None:
    """Match `[-o FILE] [-s ORDER] FILE` or `-m MODULE`: a program is run and profiled."""
    words = taking.words
    while at < len(words) and (words[at].text or "").startswith("-"):
        if words[at].text == "-m":
            take_python_module(taking, at + 1)
            return
        if words[at].text not in ("-o", "-s") or at + 1 >= len(words):
            taking.doubt(at)
            return
        if words[at].text == "-o":
            note_role(taking, "write", at + 1)
        at += 2
    _take_script_file(taking, at)


def take_perl(taking: ArgumentMatch, start: int) -> None:
    """Match `perl -e CODE`, with `-n`, `-p`, `-i` over files."""
    words = taking.words
    at = start
    if _take_version_query(taking, start):
        return
    has_code = in_place = False
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-") and text not in ("-", "--"):
        code = re.fullmatch(r"-([wWntaplc0-7]*)(i[\w.~]*)?[wWntaplc]*[eE]", text)
        edit = re.fullmatch(r"-[wnpal0]*i[\w.~]*", text)
        if code is not None and at + 1 < len(words):
            at += 1
            in_place |= code[2] is not None
            if not has_code:
                _note_visible_code(taking)
            note_role(taking, "code/perl", at)
            has_code = True
        elif edit is not None:
            in_place = True
        elif not (
            PERL_PLAIN.fullmatch(text)
            or re.fullmatch(
                r"-M(strict|warnings|utf8|List::Util[=\w,]*|POSIX[=\w,]*|Data::Dumper|JSON::PP|Time::HiRes[=\w,]*)",
                text,
            )
        ):
            taking.unread(at)
            return
        at += 1
    if not has_code:
        _take_script_file(taking, at)
        return
    for n in range(at, len(words)):
        if words[n].text != "--":
            note_role(taking, "write" if in_place else "read", n)


def take_scripting(taking: ArgumentMatch, start: int) -> None:
    """Match an interpreter whose options are simple."""
    words = taking.words
    language, codes, plain = SCRIPTING_LANGUAGES[taking.path]
    at = start
    if _take_version_query(taking, start):
        return
    while at < len(words) and (text := words[at].text) is not None and text.startswith("-") and text not in ("-", "--"):
        name, equals, value = text.partition("=")
        if re.fullmatch(codes, text) and at + 1 < len(words):
            _take_code_option(taking, language, at, "")
            return
        if equals and re.fullmatch(codes, name):
            _take_code_option(taking, language, at, value)
            return
        if re.fullmatch(r"-c|--check|-l|--syntax-check", text) and taking.path in ("ruby", "node", "php"):
            _note_visible_code(taking)
            for n in range(at + 1, len(words)):
                note_role(taking, "read", n)
            return
        if text in ("-i", "-m") and taking.path == "php":
            taking.worsen("dangerous", code="secret", why="it shows all variables, credentials among them", at=at)
            return
        if not re.fullmatch(plain, text):
            taking.unread(at)
            return
        at += 1
    _take_script_file(taking, at)


def take_shell(taking: ArgumentMatch, start: int) -> None:
    """Match `bash -c CODE`, `bash FILE`, or a shell that reads its commands from standard input."""
    words = taking.words
    at = start
    if len(words) == start + 1 and words[start].text == "--version":
        _note_visible_code(taking)
        return
    while at < len(words) and (text := words[at].text) is not None and text.startswith(("-", "+")) and text != "-":
        if re.fullmatch(r"-[abefhiklmnprtuvxBCEHPT]*c[abefhklmnprtuvxBCEHPT]*|-Command|--command", text):
            operand = next(
                (n for n in range(at + 1, len(words)) if not re.fullmatch(r"[-+][A-Za-z]+", words[n].text or "x")), None
            )
            if operand is None:
                return
            _note_visible_code(taking)
            language = (
                "bash" if taking.path in ("bash", "sh", "dash", "zsh", "ksh", "mksh", "ash", "rbash") else "other"
            )
            note_role(taking, f"code/{language}", operand)
            if language == "other" or taking.path == "rbash":
                taking.unread(operand)
            return
        if re.fullmatch(r"[-+][oO]", text) and at + 1 < len(words):
            at += 1
        elif re.fullmatch(r"-[a-zA-Z]*s[a-zA-Z]*", text) and taking.fed is not None:
            at = len(words)
            break
        elif re.fullmatch(r"--(rcfile|init-file)(=.*)?", text) or re.fullmatch(r"-[a-zA-Z]*s[a-zA-Z]*", text):
            taking.worsen("dangerous", code="hidden_code", why="it runs code that cannot be seen", at=at)
            return
        elif not re.fullmatch(
            r"[-+][abefhilmnpruvxBCEHPT]+|--(norc|noprofile|login|posix|verbose|restricted|noediting)", text
        ):
            taking.unread(at)
            return
        at += 1
    if at >= len(words) and taking.fed is None:
        taking.worsen("dangerous", code="shell", why=f"{taking.path} is a shell that runs what it is given", at=0)
    else:
        _take_script_file(taking, at)


def take_other_interpreter(taking: ArgumentMatch, start: int) -> None:
    """Match an interpreter whose language is not analyzed: a file is run, code is not understood."""
    words = taking.words
    if _take_version_query(taking, start):
        return
    text = words[start].text if start < len(words) else None
    if text is None or text.startswith("-"):
        taking.unread(min(start, len(words) - 1))
        return
    check_tasks(taking, start)
    if re.search(r"[./]", text):
        note_role(taking, "execute", start)
    elif re.fullmatch(
        r"build|test|run|check|format|fmt|compile|clean|deps\.get|doc|lint|analyze|pub|exec|repl|help|version", text
    ):
        taking.needs.add("code")
    elif taking.path in TASK_RUNNERS:
        taking.doubt(start)
    else:
        taking.unread(start)


def _take_version_query(taking: ArgumentMatch, start: int) -> bool:
    words = taking.words
    if len(words) == start + 1 and VERSION_QUERY.fullmatch(words[start].text or "x"):
        _note_visible_code(taking)
        return True
    return False


def _note_visible_code(taking: ArgumentMatch) -> None:
    """Note that only the analyzed code is run, with the modules that it loads."""
    taking.kind = KIND_OF_NOTHING
    taking.needs = {"loads_project"}


KIND_OF_NOTHING: UseKind = "reads"


def _take_code_option(taking: ArgumentMatch, language: str, at: int, attached: str) -> None:
    """Note the code given with an option; the words after it are its arguments."""
    if not attached and at + 1 >= len(taking.words):
        taking.unread(at)
        return
    _note_visible_code(taking)
    note_role(taking, f"code/{language}", at if attached else at + 1, attached or None)


LANGUAGES: Mapping[str, str] = {
    "python": "python", "pypy": "python", "perl": "perl", "ruby": "ruby", "node": "node", "nodejs": "node", "php": "php", "lua": "lua",
    "Rscript": "r",
    "bash": "bash", "sh": "bash", "dash": "bash", "zsh": "bash", "ksh": "bash",
}  # fmt: skip


def _take_script_file(taking: ArgumentMatch, at: int) -> None:
    words = taking.words
    if at >= len(words) or words[at].text in ("-", "/dev/stdin", "/proc/self/fd/0", "/dev/fd/0"):
        if taking.fed is not None and (language := LANGUAGES.get(taking.path.rstrip("0123456789."))) is not None:
            _note_visible_code(taking)
            note_role(taking, f"code/{language}", min(at, len(words) - 1), taking.fed)
            return
        taking.worsen(
            "dangerous", code="hidden_code", why=f"{taking.path} runs what it reads, which cannot be seen", at=0
        )
        taking.needs.add("input")
        return
    if words[at].text is None:
        taking.doubt(at)
    note_role(taking, "execute", at)
    check_tasks(taking, at + 1)
    if (words[at].text or "").rpartition("/")[2] == "setup.py":
        _check_setup_script(taking, at + 1)


def _check_setup_script(taking: ArgumentMatch, at: int) -> None:
    """Check `setup.py install`, which writes into Python's directories, and `upload`, which publishes."""
    for n in range(at, len(taking.words)):
        if taking.words[n].text in (
            "install",
            "develop",
            "easy_install",
            "install_lib",
            "install_scripts",
            "install_data",
        ):
            taking.worsen("dangerous", code="installs", why="it installs outside the workspace", at=n)
        elif taking.words[n].text in ("upload", "register"):
            taking.worsen("dangerous", code="sends_data", why="it publishes the project", at=n)
