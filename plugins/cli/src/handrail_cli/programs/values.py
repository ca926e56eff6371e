"""The values that say what one command line of a program does."""

from __future__ import annotations

from typing import Literal, NamedTuple

from handrail import Reason

UseKind = Literal["reads", "effect", "dangerous"]
KINDS: tuple[UseKind, ...] = ("reads", "effect", "dangerous")
# read            a file or folder whose contents it reads
# list            only names, sizes, kinds are looked at
# write           a file it creates or replaces
# append          a file it adds to
# create          a folder, link or empty file it makes
# dest            a file it writes, or a folder it writes into
# move            goes away from where it is
# delete          a file or an empty folder
# delete_tree     a folder with all that is in it
# change          mode, owner, times, attributes
# change_tree     the same, with all that is in it
# execute         a file it runs
# target          what a link will point to
# folder          where it works
# device          a disk, partition or volume it changes
# revision        a commit or branch that it shows; git takes it for the file of that name where there is one
# branch          a branch it changes to; git puts back the file of that name where there is one
# url, host       what it connects to
# send            a file whose contents it sends away
# variable        a variable of the environment that it shows
# sets            NAME=VALUE, for the command that it runs
# name            a package, branch, process or the like
OperandRole = Literal[
    "read", "list", "write", "append", "create", "dest", "move", "delete", "delete_tree", "change", "change_tree", "execute",
    "target", "folder", "device", "revision", "branch", "url", "host", "send", "variable", "sets", "name",
]  # fmt: skip
# network         it reaches other machines, or a service, socket or credentials of this account that the sandbox does not show
# code            it runs code of the project
# repository      it works on the version history of the directory that it works in
# session         it changes what later commands do
# input           it acts on the desktop
# inspects        it looks at the running system (processes, sockets, services, mounts, users, installed packages): true answers come from the host
#                 only. It reads no file that its arguments, its directory or its environment name
# engine          it asks a container engine or print server, which may be on another machine by the person's settings; then it needs the network
# filters         whatever its words, directory and environment are, it runs nothing (but a command that its words name) and opens no files but
#                 those that its words name with the role `read`; given none, it reads its standard input. No script, and nothing with
#                 settings, modules or plugins; code that it is given has to be simple (see `scripts.SIMPLE_CHECKERS`)
# loads_project   it obeys files of the directory that it works in, or of one above (settings, plugins, hooks, modules)
# reads_list      it opens files that its words do not name: those of a list, or what it finds in a directory or behind links there
# data            what is in the files that it reads makes it neither run nor open anything, whatever its options are
# spares_repository  it reads the repository that it needs, and writes nothing into it
# writes_unnamed  it writes files below the directory that it works in whose names its words do not show
UseNeed = Literal[
    "network", "code", "repository", "session", "input", "inspects", "engine", "filters", "loads_project", "reads_list", "data",
    "writes_unnamed", "spares_repository",
]  # fmt: skip
# Needs with which a program may open files that nobody named, and the needs that say it does not.
OPENING_NEEDS: frozenset[UseNeed] = frozenset(("loads_project", "reads_list"))
CONTAINED_NEEDS: frozenset[UseNeed] = frozenset(("inspects", "filters"))


# Whose hosts a program connects to, where it goes through an HTTP proxy: those of the addresses it is given (`urls`), of a repository's remotes
# (`git`) or submodules, or of a registry (`handrail_cli.shell.package_sources`).
RegistryFamily = Literal[
    "urls", "git", "submodules", "npm", "yarn", "pip", "uv", "cargo", "go", "gem", "composer", "deno",
]  # fmt: skip


class NamedOperand(NamedTuple):
    """Something that a command line names.

    `value` is the text if it is only part of the word (`--file=name`, a path in a script).
    """

    role: OperandRole
    word_index: int
    value: str | None = None


class InnerRun(NamedTuple):
    """Command or code that a program runs: words `start:end` of the command line, or `code` in a language.

    `where`: on this machine, in a container, or on another machine. `gets` is the input that the command line does not
    show: the names of found files (in place of `{}`), or standard input (as more words, or in place of `mark`).
    """

    start: int = 0
    end: int = 0
    code: str | None = None
    language: str = "words"
    where: Literal["here", "container", "remote"] = "here"
    gets: Literal["nothing", "found", "input"] = "nothing"
    mark: str | None = None


class ProgramUse(NamedTuple):
    """Effect of one command line by the program's grammar: the worst of program, subcommand and options.

    `reason` is why it is dangerous. `unknown` is the index of an unlisted word: nothing may be concluded from the rest.
    `unread`: that word determines the code or command that is run. `inline`: it is code in the line with nothing
    evident against it. `reaches` says whose hosts it connects to, where a sandbox can allow that; None if it needs more
    of the network than hosts, or no network.
    """

    kind: UseKind
    named: tuple[NamedOperand, ...] = ()
    needs: frozenset[UseNeed] = frozenset()
    reason: Reason | None = None
    unknown: int | None = None
    inner: tuple[InnerRun, ...] = ()
    unread: bool = False
    inline: bool = False
    reaches: RegistryFamily | None = None
    # How many words name the program and its subcommand or what it runs, with the options before that; 1 without any.
    leading: int = 1


def add_network_need(use: ProgramUse) -> ProgramUse:
    """Return the same for a call that reaches another machine in place of the system it runs on."""
    return use._replace(kind=get_stricter_kind(use.kind, "effect"), needs=(use.needs - {"inspects"}) | {"network"})


def get_stricter_kind(one: UseKind, other: UseKind) -> UseKind:
    """Return the stricter of two kinds."""
    return one if KINDS.index(one) >= KINDS.index(other) else other
