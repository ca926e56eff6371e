"""Variables that a command line may set without changing what programs are or do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

# Variables that only change how things look, for any program.
COSMETIC_VARIABLE = re.compile(
    r"LC_[A-Z]+|LANG|LANGUAGE|TZ|COLUMNS|LINES|TERM|NO_COLOR|CLICOLOR(_FORCE)?|FORCE_COLOR|GREP_COLORS?"
)
# Variables that many programs obey, none of which names a program or a file to load.
ORDINARY_VARIABLE = re.compile(
    r"CI|DEBUG|VERBOSE|LOG_?LEVEL|LOGLEVEL|NODE_ENV|RAILS_ENV|RACK_ENV|APP_ENV|ENVIRONMENT|FLASK_(ENV|DEBUG)|PORT|HOST"
    r"|RUST_(LOG|BACKTRACE)|CARGO_(TERM_COLOR|INCREMENTAL|BUILD_JOBS)|PYTHON(UNBUFFERED|DONTWRITEBYTECODE|HASHSEED|UTF8|IOENCODING|WARNINGS)"
    r"|GO(OS|ARCH|MAXPROCS|FLAGS_NONE)|CGO_ENABLED|JOBS|V|SOURCE_DATE_EPOCH|DJANGO_DEBUG|GIT_(TERMINAL_PROMPT|OPTIONAL_LOCKS)"
    r"|GIT_(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE)|DEBIAN_FRONTEND|HF_HUB_OFFLINE|TOKENIZERS_PARALLELISM|OMP_NUM_THREADS|CUDA_VISIBLE_DEVICES"
)
# Variables that make programs run, load or obey something else, or that the shell itself obeys.
RISKY_VARIABLE = re.compile(
    r"""(?x) PATH|ENV|BASH.*|SHELLOPTS|LD_.*|DYLD_.*|GIT_.*|.*PAGER|.*(EDITOR|VISUAL)|BROWSER|SHELL|LESS.*|PS[0-4]|PROMPT_COMMAND|CDPATH|GLOBIGNORE
    |EXECIGNORE|IFS|HOME|PWD|OLDPWD|HIST.*|.*PATH|.*_?OPT|.*OPTS|.*OPTIONS?|.*FLAGS|.*PRELOAD|.*_COMMAND|.*_CMD|.*_?CONFIG(_.*)?|.*RC|.*HOME|.*_ROOT
    |.*(proxy|PROXY|INDEX_URL|REGISTRY|REPOSITORY)|PERL.*|PYTHON.*|RUBY.*|NODE_.*|NPM_.*|npm_.*|JAVA.*|_JAVA.*|JDK.*|MAVEN.*|GRADLE.*|CARGO.*|RUST.*
    |GO.*|CC|CXX|LD|AR|AS|CPP|MAKE.*|PIP_.*|UV_.*|SSH.*|SSL.*|CURL.*|WGET.*|TAR_.*|GZIP|BZIP2?|XZ_.*|ZIP.*|UNZIP.*|RSYNC.*|TMPDIR|TEMP|TMP|MAIL.*
    |TERMINFO.*|TIMEFORMAT|LOCPATH|NLSPATH|GCONV_PATH|MALLOC_.*|GLIBC_.*|OPENSSL.*|RIPGREP.*|FZF_.*|MANOPT|MANPAGER|GROFF.*|DOCKER.*|KUBE.*|AWS.*|GOOGLE.*
    |AZURE.*|ANSIBLE.*|TF_.*|PG.*|MYSQL.*|R_.*|LUA.*|PHP.*|GUILE.*|TCL.*|QT_.*|GTK_.*|DISPLAY|XAUTHORITY|DBUS.*|XDG_.*|COMP_.*|OPT(IND|ERR|ARG)
    |RANDOM|SRANDOM|SECONDS|LINENO|EPOCH.*|FUNCNAME|DIRSTACK|GROUPS|UID|EUID|PPID|PIPESTATUS|POSIXLY_CORRECT|TMOUT|REPLY|MAPFILE|COPROC.*|READLINE_.*
    |auto_resume|ERL_.*|(G?VIM|EX)INIT|histchars|FIGNORE|FCEDIT|INPUTRC|HOSTFILE|IGNOREEOF|CHILD_MAX|_"""
)
# Those of them that name a program, a library or code that is run, and those whose value bash computes, and runs what stands in it.
EXECUTING_VARIABLE = re.compile(
    r"""(?x) PATH|ENV|BASH_ENV|BASH_FUNC.*|BASH_CMDS|SHELLOPTS|BASHOPTS|LD_.*|DYLD_.*|.*PAGER|.*EDITOR|VISUAL|BROWSER|SHELL|LESSOPEN|LESSCLOSE|PS4
    |PROMPT_COMMAND|GIT_.*|.*_COMMAND|.*_CMD|PERL5.*|PERLLIB|PYTHON(STARTUP|PATH|HOME|INSPECT|BREAKPOINT|USERBASE|EXECUTABLE)|RUBY(OPT|LIB)|NODE_(OPTIONS|PATH)
    |_?JAVA_(TOOL_)?OPTIONS|JDK_JAVA_OPTIONS|MAVEN_OPTS|GRADLE_OPTS|CC|CXX|LD|AR|.*_WRAPPER|MAKEFLAGS|TAR_OPTIONS|RSYNC_RSH|SSH_ASKPASS|SUDO_ASKPASS
    |MANPAGER|MANOPT|FZF_DEFAULT_.*|RIPGREP_CONFIG_PATH|OPENSSL_CONF|GCONV_PATH|MALLOC_.*|HIST.*|CDPATH|IFS|HOME
    |RUSTC|RUSTDOC|GOFLAGS|(npm|NPM)_(config|CONFIG)_.*|LUA_.*|ERL_.*|ELIXIR_ERL_OPTIONS|R_(PROFILE|ENVIRON|LIBS).*|JULIA_.*_PATH|TCLLIBPATH
    |GUILE_LOAD_.*|PHPRC|PHP_INI_SCAN_DIR|AWK(LIB)?PATH|(G?VIM|EX)INIT|EMACSLOADPATH|RANDOM|SRANDOM|SECONDS|LINENO|OPTIND|BASH_(CMDS|ALIASES).*"""
)
# Variables of the host that leave open what a program will do.
UNSETTLING_VARIABLE = re.compile(
    r"BASH_ENV|ENV|LD_.*|DYLD_.*|GIT_.*|.*PAGER|LESSOPEN|LESSCLOSE|BASH_FUNC_.*|SHELLOPTS|BASHOPTS|PS4|CDPATH|GLOBIGNORE|BASH_XTRACEFD|EXECIGNORE"
    r"|RIPGREP_CONFIG_PATH|LOCPATH|TERMINFO|TIMEFORMAT"
)
HARMLESS_THERE = re.compile(
    r"GIT_(SSL_\w+|HTTP_\w+|TERMINAL_PROMPT|OPTIONAL_LOCKS|ASKPASS|EDITOR|SEQUENCE_EDITOR|(AUTHOR|COMMITTER)_(NAME|EMAIL|DATE))"
)
LESSPIPE = re.compile(r"\|\|?-? ?/usr/bin/(lesspipe|lesspipe\.sh|lessopen)( %s)?( %s)?|(/usr/bin/lesspipe %s %s)")
PLAIN_PAGERS = frozenset(("", "cat", "less", "more", "most", "less -R", "less -FRX", "less -FRSX"))
SIMPLE_VALUE = re.compile(r"[\w.,:@%+ -]*", re.ASCII)
# What cosmetic variables hold: numbers, names and lists of colours. A shell that computes with a variable runs what other values say.
PLAIN_VALUE = re.compile(r"[\w./:=,;*+@%<> -]*", re.ASCII)
# Cosmetic variables by which programs find files: of languages, terminals and time zones. With a path in them, files of anybody.
FILE_FINDING_VARIABLE = re.compile(r"LANGUAGE|TERM|TZ")
# Editors of git, and values with which it takes every text as it is.
GIT_EDITORS = frozenset(("GIT_EDITOR", "GIT_SEQUENCE_EDITOR"))
NO_EDITORS = frozenset(("true", ":"))
# In other character sets a letter may end with the byte of a backslash, and the shell that is started next reads quotes elsewhere.
LOCALE_VARIABLE = re.compile(r"LC_[A-Z]+|LANG")
KEEPING_BACKSLASH = re.compile(
    r"(?:C|POSIX|\w*\.(?:utf-?8|iso-?8859-?\d+|koi8-?[ru]|cp125\d)(?:@\w+)?|)", re.ASCII | re.IGNORECASE
)
PLACED = re.compile(r"(?!.*\.\.)[\w.,@+-][\w.,:@+<>-]*(?:/[\w.,@+-]+)*|", re.ASCII)
VARIABLE_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


def strip_subscript(name: str) -> str:
    """Return the variable that `name[subscript]` is an element of."""
    return name.partition("[")[0]


def is_harmless_value(name: str, value: str | None) -> bool:
    """Return True if a variable with this value (None: unknown) changes nothing that a program runs, loads or obeys."""
    if LOCALE_VARIABLE.fullmatch(name):
        return value is not None and KEEPING_BACKSLASH.fullmatch(value) is not None
    if COSMETIC_VARIABLE.fullmatch(name):
        return not FILE_FINDING_VARIABLE.fullmatch(name) or (value is not None and PLACED.fullmatch(value) is not None)
    if ORDINARY_VARIABLE.fullmatch(name):
        return value is not None and SIMPLE_VALUE.fullmatch(value) is not None
    if name in GIT_EDITORS:
        return value in NO_EDITORS
    return VARIABLE_NAME.fullmatch(name) is not None and not RISKY_VARIABLE.fullmatch(name)


def is_tame_variable(name: str, value: str | None) -> bool:
    """Return True for a variable known to name neither a program nor a file to load, with such a value (None: unknown).

    A variable that is merely not known to be obeyed (`is_harmless_value`) may affect some program in any way: on the
    host, programs that run without approval are given only tame variables.
    """
    if COSMETIC_VARIABLE.fullmatch(name):
        return value is not None and PLAIN_VALUE.fullmatch(value) is not None and is_harmless_value(name, value)
    return ORDINARY_VARIABLE.fullmatch(name) is not None and is_harmless_value(name, value)


def find_unsettling_variables(environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the variables already set that may make a plain program do something else."""
    for name, value in environment.items():
        unsettles = (
            name != "LD_LIBRARY_PATH" and UNSETTLING_VARIABLE.fullmatch(name) and not HARMLESS_THERE.fullmatch(name)
        )
        if unsettles and not _has_tame_value(name, value):
            yield name


def _has_tame_value(name: str, value: str) -> bool:
    """Return True if a variable that could name a program names a harmless one, which only displays."""
    if name.endswith("PAGER"):
        return value in PLAIN_PAGERS
    if name == "PS4":
        return not re.search(r"[$`]", value)
    return not value or (name in ("LESSOPEN", "LESSCLOSE") and LESSPIPE.fullmatch(value) is not None)
