"""Opinions and verdicts: how a call is judged.

An evaluator gives an opinion: a `floor` (only a rule by the user or an administrator that names it goes below; nothing
goes below a catastrophic floor) and a `suggestion`. The decision is the strictest of all floors and of the matching
policy rule or grant, or, without one, of the strictest suggestion. Without any opinion, the user is asked. A crash
denies.
"""

from __future__ import annotations

import logging
import math
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol

if TYPE_CHECKING:
    from handrail.api.call import Confirmation, Invocation
    from handrail.api.tool import Tool

__all__ = ["OPAQUE_COMMAND", "Access", "AccessKind", "Decision", "Reason", "Verdict"]

log = logging.getLogger(__name__)


class Decision(StrEnum):
    """allow, confirm or deny; in order of strictness."""

    ALLOW = "allow"
    CONFIRM = "confirm"
    DENY = "deny"


class Route(StrEnum):
    """Environment where a call may run."""

    HOST = "host"
    SANDBOX = "sandbox"


class View(StrEnum):
    """The surroundings that a command gets when it runs without approval; `docs/sandbox.md` describes each."""

    SHELL = "shell"
    """On the host: builtins of the shell alone, which start no program and open no file."""
    SYSTEM = "system"
    """On the host, in an empty directory and a clean environment: programs that inspect the running system."""
    FILES = "files"
    """On the host where no sandbox is usable: programs that read the files they name, which are opened for them."""
    READ = "read"
    """In the sandbox: the workspace read-only, without secrets and without the network."""
    WORK = "work"
    """In the sandbox: the workspace writable."""


class Mode(StrEnum):
    """Session mode: treatment of calls that are neither clearly allowed nor clearly denied."""

    DEFAULT = "default"
    ACCEPT_EDITS = "accept_edits"
    PLAN = "plan"
    PERMISSIVE = "permissive"
    HEADLESS = "headless"


# From the loosest to the strictest.
MODES: Sequence[Mode] = (Mode.PERMISSIVE, Mode.ACCEPT_EDITS, Mode.DEFAULT, Mode.HEADLESS, Mode.PLAN)

STRICTNESS: Mapping[Decision, int] = {Decision.ALLOW: 0, Decision.CONFIRM: 1, Decision.DENY: 2}


def strictest_decision(decisions: Sequence[Decision]) -> Decision | None:
    """Return the strictest of the decisions, or None if there are none."""
    return max(decisions, key=STRICTNESS.__getitem__, default=None)


@dataclass(frozen=True, slots=True)
class Reason:
    """Reason for a decision.

    `code` is stable, for programs, `text` is for people, and `span` is the (start, end) in the argument it refers to.
    """

    code: str
    text: str
    span: tuple[int, int] | None = None


# What a part of a call does: `session` changes what later calls mean (cd, export), `unknown` could not be told.
AccessKind = Literal["read", "write", "delete", "execute", "network", "privilege", "session", "input", "unknown"]


@dataclass(frozen=True, slots=True)
class Access:
    """One thing that a call would do. `what` is an absolute path, `host` or `host:port`, a program, a variable; empty when it is not known."""

    kind: AccessKind
    what: str = ""


@dataclass(frozen=True, slots=True)
class SubCommand:
    """One simple command of a call as parsed, or the entire call of a tool that runs no command (`argv` is empty).

    `argv` are the words as the shell will see them. Words that do not name a program represent what no rule may cover
    unseen: `("?",)` for a part that was not understood, `(">", "file")` for a redirection, `("NAME=value",)` for an
    assignment. `span` is its position in the argument. `harmless`: taken alone it may run on the host without approval;
    a rule or grant for the other parts need not cover it. `view`: the environment in which it alone would run without
    approval; None if it needs approval. `folders`: the directories that it may run in, as absolute paths, an empty one
    if unknown; no entries for a tool that runs no command. `unlisted`: it contains an unknown word, and the beginning
    of the command therefore says little about its effect. `obeys_workspace`: on the host it runs or loads files that
    sandboxed commands may change without approval. `varies`: a word of it is not constant (it comes from a variable, a
    substitution, a glob, or the output of another command or a file), or it reads and may obey a file that sandboxed
    commands may change; the same text may therefore have another meaning later. `changes`: it changes something, or
    may.
    """

    argv: tuple[str, ...] = ()
    touches: tuple[Access, ...] = ()
    span: tuple[int, int] | None = None
    harmless: bool = False
    view: View | None = None
    folders: tuple[str, ...] = ()
    unlisted: bool = False
    obeys_workspace: bool = False
    varies: bool = False
    changes: bool = False


@dataclass(frozen=True, slots=True)
class Reach:
    """Hosts that a command connects to, each `name` or `name:port`, so that a sandbox can limit its network to them.

    `needed`: the command is known to connect to them, and requires approval unless all of them are allowed. Otherwise
    it may connect to them, and runs with those that are allowed.
    """

    hosts: tuple[str, ...] = ()
    needed: bool = False


# What stands for a part that was not understood. No rule and no grant covers it, save a grant of exactly the same call.
OPAQUE_COMMAND: tuple[str, ...] = ("?",)


@dataclass(frozen=True, slots=True)
class SandboxOffer:
    """Capabilities that the available sandbox offers to a call routed to it."""

    name: str
    network: bool = False
    # What it may write beside the workspace and its own private temporary folders (/tmp, /var/tmp), resolved.
    writable: tuple[str, ...] = ()
    # Whether those temporary folders are the session's private one for its file tools, too.
    private_tmp: bool = False
    # Whether it can limit the network to some hosts, and those that every command which needs the network may reach.
    filters: bool = False
    hosts: tuple[str, ...] = ()
    # True if a command in it sees and reaches no processes but its own.
    own_processes: bool = False


@dataclass(frozen=True, slots=True)
class CommandStep:
    """Part of a command line that runs in a separate shell and sandbox, after the parts before it."""

    text: str
    operator: str
    """The operator between the part before it and this one: `&&`, `||` or `;`, which also stands for a line end."""
    changes_repositories: tuple[str, ...] = ()
    """The `.git` that this part alone may change, as in `Opinion`."""


@dataclass(frozen=True)
class Opinion:
    """Opinion of one evaluator about a call.

    `parts`: every simple command in it, for a shell command, or what the call accesses; rules and grants match nothing
    else. `remember`: the user's approval applies to the session under this key. `narrowed`: the scopes to which "always
    allow" may be narrowed, as command prefixes, one for each part that the user would be asked about; empty if nothing
    narrower than this call is safe.
    """

    rule: str
    suggestion: Decision | None = None
    floor: Decision | None = None
    catastrophic: bool = False
    route: Route = Route.HOST
    reasons: tuple[Reason, ...] = ()
    parts: tuple[SubCommand, ...] = ()
    remember: str | None = None
    narrowed: tuple[tuple[str, ...], ...] = ()
    # False for what is left of the opinion of an evaluator that may only tighten.
    trusted: bool = True
    # The surroundings of a command that this opinion allows, or that it gets after an approval where hosts are all it lacks; None for other tools.
    view: View | None = None
    # The `.git` of each repository that it is known to work on; where they are one, a command in the sandbox can change that, and no other.
    changes_repositories: tuple[str, ...] = ()
    # The parts that an allowed command line is run in, one after the other; empty for one that is run whole.
    steps: tuple[CommandStep, ...] = ()
    # True where it allows the call only because undo keeps what the call changes (`EvaluationContext.undoable`).
    relies_on_undo: bool = False
    # The hosts that a command in the sandbox connects to; None for one that has no use for the network, or needs more of it than hosts.
    reach: Reach | None = None
    # True where not all that the call does is known: without an approval, in permissive mode, it runs in the sandbox or not at all.
    unknown_effects: bool = False

    @cached_property
    def allowing(self) -> Verdict | None:
        """The verdict where this opinion alone counts and lets the call pass; None when it does not. Made once for opinions that are given again."""
        if self.suggestion is not Decision.ALLOW or self.floor is not None or self.catastrophic:
            return None
        return Verdict(
            Decision.ALLOW,
            self.route,
            self.rule,
            self.reasons,
            parts=self.parts,
            view=self.view,
            changes_repositories=self.changes_repositories,
            steps=self.steps,
            relies_on_undo=self.relies_on_undo,
            reach=self.reach,
        )


@dataclass(frozen=True, slots=True)
class Verdict:
    """Decision on a call, with its rule and reasons.

    `rule` is an evaluator's rule, a policy rule's name, `grant`, or `mode:…`.
    """

    decision: Decision
    route: Route = Route.HOST
    rule: str = ""
    reasons: tuple[Reason, ...] = ()
    catastrophic: bool = False
    remember: str | None = None
    grantable: bool = True
    parts: tuple[SubCommand, ...] = ()
    narrowed: tuple[tuple[str, ...], ...] = ()
    # The ids of the grants that allowed it.
    grants: tuple[str, ...] = ()
    # What a person was shown and said yes to; None when nobody was asked.
    approved: Confirmation | None = None
    # The surroundings of a command that an evaluator allowed, or that lacked nothing but hosts which were approved; None for what else a person,
    # a rule or a grant allowed.
    view: View | None = None
    # The `.git` of each repository that it is known to work on; where they are one, a command in the sandbox can change that, and no other.
    changes_repositories: tuple[str, ...] = ()
    # The parts that a command line is run in, one after the other; empty for one that is run whole.
    steps: tuple[CommandStep, ...] = ()
    # True where the call is allowed only because undo keeps what it changes: if that cannot be kept, the call is not run.
    relies_on_undo: bool = False
    # What an evaluator says of the hosts that it connects to, and the hosts that it is given in the sandbox beside those of the settings.
    reach: Reach | None = None
    hosts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeyboardTarget:
    """A terminal, or a command that an earlier call started, to which the keys of a call would go: there, text is a command for the host.

    `window` names it, `program` is what reads the keys (a shell, or what runs in it), `shell` whether that is a shell of this user whose
    language is like bash's, `cwd` its folder. `lines` are the commands that this call would have it run, with what was typed before; `rest`
    is what would then stand on the line. Both hold only what is known: `unknown` says what is not, as reasons' code and text.
    `earlier`: how many characters of `lines`, each with its line end, and `rest` were there before this call.
    `judged`: an evaluator here reads commands; set where the call is judged.
    """

    window: str
    program: str
    shell: bool
    cwd: Path
    lines: tuple[str, ...] = ()
    rest: str | None = ""
    unknown: tuple[Reason, ...] = ()
    earlier: int = 0
    judged: bool = False


class UntrustedText(Protocol):
    """Text that a session got from third parties."""

    def opinion(
        self, invocation: Invocation, opinions: Sequence[Opinion], judging: EvaluationContext
    ) -> Opinion | None:
        """Return the opinion on a call that does what that text wants; None where nothing points to it."""


@dataclass(frozen=True, slots=True)
class EvaluationContext:
    """Context in which a call is judged: plain data, for `handrail evaluate` to judge calls for another machine.

    `workspace` are the roots that file tools may write. `protected` are files that no tool may write: policy,
    configuration, audit log; `keys` are those of them that no tool may read either, since their contents allow
    answering in the user's place.
    """

    cwd: Path
    home: Path
    user: str
    environment: Mapping[str, str]
    workspace: tuple[Path, ...]
    platform: str
    mode: Mode = Mode.DEFAULT
    private_desktop: bool = False
    shell: str = "bash"
    protected: tuple[Path, ...] = ()
    keys: tuple[Path, ...] = ()
    remembered: frozenset[str] = field(default_factory=frozenset[str])
    # Hosts, addresses and networks of the person's own that may be reached though they are not public.
    allow_private: tuple[str, ...] = ()
    # None: no sandbox is usable here, or the tool's calls cannot run in one.
    sandbox: SandboxOffer | None = None
    # Set for input to a desktop, where its keys go to a terminal, and for input to a command that runs on the host.
    focus: KeyboardTarget | None = None
    # Whether anybody can be asked at all, and whether that is a person at the terminal that Handrail was started at.
    interactive: bool = True
    at_terminal: bool = False
    # The session's private folder that sandboxed commands have as /tmp and /var/tmp; None before there is one.
    temporary: Path | None = None
    # Folders outside the workspace that sandboxed commands can read (toolchains on PATH, `sandbox.readable`) and write (`sandbox.writable`), so
    # that file tools may, too.
    readable: tuple[Path, ...] = ()
    writable: tuple[Path, ...] = ()
    # What was looked at for other judgements of the same call (`path_resolution.PathCache`); None: each looks for itself.
    seen: dict[str, tuple[int, str | None] | None] | None = None
    # Hosts, as `SandboxOffer.hosts`, that a person has allowed to commands in the sandbox, in this session or always.
    granted_hosts: tuple[str, ...] = ()
    # What third parties told the session; None as long as there is nothing of them.
    untrusted: UntrustedText | None = None
    # True when undo is on and has room for what calls change in the workspace (`docs/undo.md`).
    undoable: bool = False
    # Unix time in seconds at which the session began: what has changed since may be the agent's work. Infinity where there is no session.
    began: float = math.inf
    # Sites that each secret may be given to without approval, by normalized name, each with all its subdomains.
    secret_sites: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    # Returns the value of a secret, None for an unknown name. Where it is not set, every name counts as known.
    find_secret: Callable[[str], Awaitable[str | None]] | None = None
    # Gives the text of a small configuration file, None where there is none. Where it is not set, no file is opened to judge a call.
    read_text: Callable[[Path], str | None] | None = None


class Evaluator(ABC):
    """A judge of calls. The strictest opinion wins, in any order; only trusted ones are heard when they suggest to allow."""

    name: ClassVar[str]
    # Whether it reads commands, also those that a call types into a terminal (`EvaluationContext.focus`). Where nobody does, a person is asked.
    reads_commands: ClassVar[bool] = False

    def applies(self, tool: Tool) -> bool:
        """Return True if the evaluator may have an opinion on the tool's calls; asked once for each tool."""
        return True

    @abstractmethod
    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        """Return an opinion on the call, or None. Must change nothing, and open files only by `EvaluationContext.read_text`."""


@dataclass(frozen=True, slots=True)
class RegisteredEvaluator:
    """An evaluator and whether it may suggest to allow."""

    evaluator: Evaluator
    trusted: bool


NO_OPINION = Verdict(Decision.CONFIRM, rule="silence", reasons=(Reason("no_opinion", "nothing vouches for this call"),))
