"""Settings of git that hold commands: which of them git may run while it can write to a repository, and which are overridden then."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable
from pathlib import Path, PurePath

# A longer value counts as a command that nobody can tell.
MAX_VALUE = 4_096
# Settings by which git runs nothing, with those of programs that git does not read. Any other key counts as one that holds a command.
INERT_SETTINGS = re.compile(
    r"""(?isx)
    (?: add | advice | alias | am | apply | attr | bitmappseudomerge | blame | branch | bundle | checkout | clean | clone | color | column
      | commit | commitgraph | completion | difftool | extensions | fastimport | feature | fetch | format | fsck | fsmonitor | gitcvs | gitweb
      | grep | gui | guitool | http | i18n | imap | index | log | lsrefs | mailinfo | mailmap | maintenance | mergetool | notes | pack
      | promisor | protocol | pull | push | rebase | reftable | repack | rerere | revert | safe | sendemail | showbranch | sideband
      | sparse | splitindex | ssh | stash | status | tag | trace2 | transfer | uploadarchive | url | user | versionsort | worktree
      | bash | branchless | codespaces | delta | gerrit | gh | ghq | gist | git-town | github | gitflow | gitlab | gitreview | graphite | hub
      | magit | oh-my-zsh | svn | svn-remote | tig | vscode )\..+
    | core\.(?: repositoryformatversion | filemode | bare | logallrefupdates | ignorecase | precomposeunicode | symlinks | autocrlf | eol | safecrlf
      | checkstat | trustctime | quotepath | hidedotfiles | protecthfs | protectntfs | ignorestat | prefersymlinkrefs | worktree | sharedrepository
      | warnambiguousrefs | compression | loosecompression | packedgitwindowsize | packedgitlimit | deltabasecachelimit | bigfilethreshold
      | excludesfile | attributesfile | commentchar | commentstring | filesreflocktimeout | packedrefstimeout | whitespace | fsync | fsyncmethod
      | fsyncobjectfiles | preloadindex | fscache | longpaths | unsetenvvars | restrictinheritedhandles | createobject | notesref | sparsecheckout
      | sparsecheckoutcone | abbrev | maxtreedepth | multipackindex | commitgraph | usereplacerefs | untrackedcache | splitindex
      | checkroundtripencoding | fsmonitorhookversion | alternaterefsprefixes | disambiguate | hookspath )
    | (?: diff | merge ) \. (?!external$) [^.]+
    | diff\..+\.(?: binary | funcname | xfuncname | wordregex | algorithm | cachetextconv | trustexitcode )
    | merge\..+\.(?: name | recursive ) | filter\..+\.required | trailer\.[^.]+ | trailer\..+\.(?: key | where | ifexists | ifmissing )
    | gc\.(?!recentobjectshook$).+ | receive\..+ | uploadpack\.(?!packobjectshook$).+ | init\.(?!templatedir$).+
    | gpg\.(?: format | mintrustlevel ) | gpg\.ssh\.(?: allowedsignersfile | revocationfile ) | interactive\.singlekey
    | remote\.(?!.*\.(?: uploadpack | receivepack | vcs )$).+ | submodule\.(?!.*\.update$).+ | help\.(?: autocorrect | format | htmlpath )
    | lfs\.(?!extension\.|customtransfer\.).+ | tar\.umask | web\.browser | man\.viewer
    """
)
# Settings that git obeys no more once others are given after them, and what is given. Those of the first table are given always.
ALWAYS_OVERRIDDEN = {
    "core.pager": "cat",
    "core.askPass": "",
    "credential.helper": "",
    "protocol.ext.allow": "never",
}
OVERRIDDEN = (
    (re.compile(r"(?i)core\.fsmonitor"), "false"),
    (re.compile(r"(?i)core\.sshcommand"), "ssh"),
    (re.compile(r"(?i)interactive\.difffilter"), "cat"),
    # A name that is escaped in the settings would have to be given as it is meant.
    (re.compile(r"(?is)diff\.[^\\\n]+\.textconv"), "cat"),
)
# Those that need nothing of their own: by what is always given, and by variables that say which editor and pager there is.
ELSEWHERE = re.compile(r"(?is)core\.(?:editor|pager|askpass)|sequence\.editor|pager\..+|credential\..+")
# Programs that run what they read, what a word names, or what lies in the current folder. Their names may end with a version.
INTERPRETERS = frozenset(
    (".", "ant", "ash", "awk", "bash", "bazel", "bb", "build", "bun", "bundle", "bunx", "busybox", "cabal", "cargo", "clisp", "cmake", "cmd",
     "command", "composer", "conda", "corepack", "cscript", "csh", "dash", "deno", "direnv", "doas", "docker", "dotnet", "ed", "elixir", "emacs",
     "env", "erl", "escript", "eval", "ex", "exec", "expect", "find", "fish", "gawk", "gdb", "gjs", "gmake", "go", "gradle", "groovy", "gsed",
     "guile", "hatch", "iex", "ionice", "ipython", "java", "jruby", "jshell", "julia", "just", "kotlin", "ksh", "lua", "luajit", "m", "m4",
     "make", "mamba", "maven", "mawk", "meson", "mix", "mksh", "mono", "mvn", "mypy", "nawk", "nice", "ninja", "nix", "node", "nodejs", "nohup",
     "npm", "npx", "nvim", "octave", "osascript", "parallel", "pdm", "perl", "php", "pipx", "pixi", "pnpm", "podman", "poetry", "powershell",
     "pwsh", "py", "pypy", "python", "r", "racket", "rake", "rscript", "ruby", "runghc", "runhaskell", "rye", "sbcl", "sbt", "scala", "scheme",
     "screen", "script", "sed", "setsid", "sh", "source", "ssh", "stack", "stdbuf", "strace", "su", "sudo", "swift", "task", "tcl", "tclsh",
     "tcsh", "time", "timeout", "tmux", "ts-node", "tsx", "unbuffer", "uv", "uvx", "vi", "view", "vim", "watch", "wish", "wscript", "xargs",
     "yarn", "yash", "zsh")
)  # fmt: skip
VERSION = re.compile(r"[\d.-]*(?:\.exe)?$")
# What only a shell understands; a program takes no part in it.
SHELL_SYNTAX = re.compile(r"[$`|&;<>(){}*?\[\]!#^\x00-\x08\x0a-\x1f\x7f]")
BARE_NAME = re.compile(r"\w[\w.+-]*", re.ASCII)
OPTION = re.compile(r"--?|--?[A-Za-z0-9][A-Za-z0-9-]*(?:=(?:[\w,:+-]*|%[A-Za-z]))?", re.ASCII)
PLACEHOLDER = re.compile(r"%[A-Za-z]")
PLAIN_WORD = re.compile(r"\w[\w-]*", re.ASCII)
# What is there for the process that looks, or for everybody.
PASSING_FOLDERS = tuple(Path(folder) for folder in ("/proc", "/dev", "/tmp", "/var/tmp", "/run/user"))


def run_command(key: str, value: str) -> str | None:
    """Return the command that a setting can make git run, or None if it holds none or is always overridden."""
    if INERT_SETTINGS.fullmatch(key) or ELSEWHERE.fullmatch(key):
        return None
    if key.startswith("submodule."):
        return value[1:] if value.startswith("!") else None
    if key.startswith("remote.") and key.endswith(".vcs"):
        # Git puts a name in front.
        return f"git-remote-{value}"
    return value


def override_value(key: str) -> str | None:
    """Return what a setting that holds a command can be given in place of it; None where git would then do something else."""
    return next((value for pattern, value in OVERRIDDEN if pattern.fullmatch(key)), None)


def is_fixed_command(command: str, writable: Iterable[Path]) -> bool:
    """Return True if a command runs one program, which is in no `writable` folder, and names nothing else that it could run.

    Only options and placeholders may follow the program, and plain words where it is git's own. A bare name is looked for on PATH.
    """
    command = command.strip()
    if not command:
        return True
    if len(command) > MAX_VALUE or SHELL_SYNTAX.search(command) or "~" in command[1:]:
        return False
    try:
        program, *words = shlex.split(command)
    except ValueError:
        return False
    name = PurePath(program).name.lower()
    takes_words = name == "git" or name.startswith("git-")
    return _is_outside(program, writable) and all(
        OPTION.fullmatch(word) or PLACEHOLDER.fullmatch(word) or (takes_words and PLAIN_WORD.fullmatch(word))
        for word in words
    )


def is_interpreter(program: str) -> bool:
    """Return True for a program that runs what it reads, or what its words name."""
    return VERSION.sub("", PurePath(program).name.lower()) in INTERPRETERS


def _is_outside(program: str, writable: Iterable[Path]) -> bool:
    if "/" not in program:
        return BARE_NAME.fullmatch(program) is not None and not is_interpreter(program)
    place = os.path.expanduser(program)
    if not os.path.isabs(place):
        return False
    names = [Path(os.path.normpath(place)), Path(os.path.realpath(place))]
    folders = (*PASSING_FOLDERS, *writable)
    return not any(is_interpreter(str(name)) or any(map(name.is_relative_to, folders)) for name in names)
