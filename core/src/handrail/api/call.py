"""A call that has been bound to its tool: validated arguments, and everything that can be said of it before it runs."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import BaseModel

from handrail.api.context import CallContext
from handrail.api.tool import EFFECT_KINDS, Delete, Effect, Input, Read, Remote, Run, Send, Tool, Write
from handrail.api.verdict import Access

if TYPE_CHECKING:
    from handrail.api.observer import ObserverOpinions
    from handrail.api.verdict import Verdict

__all__ = ["ToolCall", "compute_call_hash"]

MAX_ARGUMENT_CHARS = 200
# Characters of what a call says of itself.
MAX_LINE_CHARS = 1_000
# What arguments name by a path, and what makes a path a pattern.
PATH_KINDS = frozenset(("file", "folder", "glob"))
WILDCARD_CHARS = frozenset("*?[")
CANONICAL_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str)


@dataclass(frozen=True, init=False)
class ToolCall:
    """Call requested by a host. `call_id` is the host's own name for the call; core never compares it with `call_hash`.

    `wait_for_previous`: start only after all earlier calls have ended. `ask`: the reason to prompt the user first,
    regardless of policy. `by_hand`: the user makes the call through the host, which permits tools that agents may not
    call; it is judged all the same.
    """

    name: str
    args: Mapping[str, Any]
    call_id: str
    wait_for_previous: bool = False
    ask: str | None = None
    by_hand: bool = False

    def __init__(
        self,
        name: str,
        args: Mapping[str, Any],
        call_id: str,
        wait_for_previous: bool = False,
        ask: str | None = None,
        by_hand: bool = False,
    ) -> None:
        # Written out, as for `Invocation`: every call makes one.
        self.__dict__.update(name=name, args=args, call_id=call_id, wait_for_previous=wait_for_previous)
        if ask is not None or by_hand:
            self.__dict__.update(ask=ask, by_hand=by_hand)


@dataclass(frozen=True, slots=True)
class Location:
    """A file that a call touches, and the line where that is known."""

    path: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class GrantOption:
    """Scope of an approval beyond this call. `label` is for the user; a later call must match all other fields.

    `tool`: its name; `*` with a `server` covers every tool of that server. `commands`: prefixes of simple commands, as
    words; every command in the call starts with one of them or is harmless, has no unknown option, and accesses only
    what is in `touches`, nothing unknown. `changing`: the prefixes among them for commands that change something; a
    command that does must start with one of these. `folders`: real directories, and the `.git` of their repositories;
    every such command runs in these. `paths`: real files, or folders with all their contents. `hosts`: `name` or
    `name:port`. `server`: the MCP server that runs the tool, and `declared` what it declared about its tools at the
    time (`Remote.declared`): later changes are not covered by the approval. `call_hash`: exactly this call, as long as
    it accesses no more than `touches`: a link may point elsewhere later, and a variable may have another value. Only
    `tool` set: every call of it. `confined`: valid only in the sandbox, where commands that lack nothing but the
    network can then reach `hosts`; anything else a command needs is not granted.
    """

    label: str
    tool: str
    commands: tuple[tuple[str, ...], ...] = ()
    paths: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    server: str | None = None
    call_hash: str | None = None
    touches: tuple[Access, ...] = ()
    declared: frozenset[str] = frozenset()
    confined: bool = False
    folders: tuple[str, ...] = ()
    changing: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class ExecConfirmation:
    """A command to be run.

    `cwd`: the real folder that it runs in, where that is not the workspace itself. `variables`: those that its text uses and earlier commands
    of the session have set, with their values.
    """

    title: str
    command: str
    cwd: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict[str, str])
    kind: Literal["exec"] = "exec"


@dataclass(frozen=True, slots=True)
class EditConfirmation:
    """A change of a file, with its unified diff."""

    title: str
    path: str
    diff: str
    kind: Literal["edit"] = "edit"


@dataclass(frozen=True, slots=True)
class UrlConfirmation:
    """An address to be fetched or opened."""

    title: str
    url: str
    kind: Literal["url"] = "url"


@dataclass(frozen=True, slots=True)
class GuiConfirmation:
    """Input to a desktop."""

    title: str
    action: str
    kind: Literal["gui"] = "gui"


@dataclass(frozen=True, slots=True)
class McpConfirmation:
    """A call of another server's tool."""

    title: str
    server: str
    tool: str
    args: Mapping[str, Any] = field(default_factory=dict[str, Any])
    kind: Literal["mcp"] = "mcp"


@dataclass(frozen=True, slots=True)
class InfoConfirmation:
    """Anything else, in words."""

    title: str
    text: str
    kind: Literal["info"] = "info"


Confirmation = (
    ExecConfirmation | EditConfirmation | UrlConfirmation | GuiConfirmation | McpConfirmation | InfoConfirmation
)


def confirmation_wire(confirmation: Confirmation) -> dict[str, Any]:
    """Return the confirmation as plain data for a host."""
    return asdict(confirmation)


@dataclass(frozen=True, init=False)
class Invocation:
    """Tool with validated parameters. Immutable: changed arguments require a new invocation.

    `args` are the raw arguments as the host gave them, `parent` the invocation that contains this one. `before` is the
    invocation that was changed into this one, and `changed_by` who changed it: "a person", or "observer NAME". `seen`
    holds the opinions of observers.
    """

    tool: Tool
    args: Mapping[str, Any]
    params: BaseModel
    call_id: str
    parent: Invocation | None = None
    before: Invocation | None = None
    changed_by: str = ""
    seen: ObserverOpinions | None = None

    def __init__(
        self,
        tool: Tool,
        args: Mapping[str, Any],
        params: BaseModel,
        call_id: str,
        parent: Invocation | None = None,
        before: Invocation | None = None,
        changed_by: str = "",
        seen: ObserverOpinions | None = None,
    ) -> None:
        # Written out, since what a frozen dataclass generates takes twice as long, and every call makes one.
        self.__dict__.update(tool=tool, args=args, params=params, call_id=call_id, parent=parent, before=before)
        if changed_by or seen is not None:
            self.__dict__.update(changed_by=changed_by, seen=seen)

    def edited(self, args: Mapping[str, Any], *, by: str) -> Invocation:
        """Return the same call with other arguments, changed `by` someone, not yet judged.

        Raises `InvalidArguments` if the arguments do not fit.
        """
        params = self.tool.validate(args)
        return Invocation(self.tool, args, params, self.call_id, self.parent, self, by, self.seen)

    def observed(self, seen: ObserverOpinions | None) -> Invocation:
        """Return the same call with the observers' opinions."""
        return Invocation(
            self.tool, self.args, self.params, self.call_id, self.parent, self.before, self.changed_by, seen
        )

    def earlier_forms(self) -> Sequence[Invocation]:
        """Return the forms of the call before each change, oldest first; empty if it was never changed."""
        return () if self.before is None else (*self.before.earlier_forms(), self.before)

    def changes(self) -> Sequence[str]:
        """Return who changed the call, in order."""
        return () if self.before is None else (*self.before.changes(), self.changed_by)

    @cached_property
    def call_hash(self) -> str:
        """SHA-256 (hex) of the canonical `{tool, raw args}`: equal for equal calls, regardless of key order."""
        return compute_call_hash(self.tool.name, self.args)

    @cached_property
    def served_by(self) -> tuple[str | None, Remote | None]:
        """The server that the call is for, and what that says of the tool or of itself; None where none is."""
        tool = self.tool
        return tool.served_by(self.params) if tool.served_by is not None else (tool.server, tool.remote)

    @property
    def root(self) -> Invocation:
        """The top-level invocation that this one is part of."""
        return self if self.parent is None else self.parent.root

    @property
    def depth(self) -> int:
        """Number of calls that enclose this one."""
        return 0 if self.parent is None else self.parent.depth + 1

    def argument(self, effect: Effect) -> Any:
        """Return the value of the parameter that the effect names; None if it names none or the call omitted it."""
        return getattr(self.params, self.tool.fields[effect.arg]) if effect.arg else None

    def describe(self) -> str:
        """Return a one-line description, for the user, of what the call will do."""
        if self.tool.describe is not None:
            return _to_single_line(self.tool.describe(self.params))
        given = format_arguments(self.args)
        return f"{self.tool.title}: {given}" if given else self.tool.title

    def locations(self) -> Sequence[Location]:
        """Return the files and folders the call accesses, without duplicates, as the arguments name them.

        Glob patterns that may match several files are left out.
        """
        if self.tool.locations is not None:
            return self.tool.locations(self.params)
        named = (e for e in self.tool.effects if e.what in PATH_KINDS and isinstance(e, Read | Write | Delete | Run))
        paths = ((e.what, path) for e in named for path in list_argument_paths(self.argument(e)))
        plain = (path for what, path in paths if what != "glob" or WILDCARD_CHARS.isdisjoint(path))
        return tuple(map(Location, dict.fromkeys(plain)))

    def confirmation(self, verdict: Verdict) -> Confirmation:
        """Return what the user sees before approving the call, as pure data.

        The verdict's parts list the real files and hosts involved.
        """
        if self.tool.confirmation is not None:
            return self.tool.confirmation(self.params, verdict)
        title = self.describe()
        if self.tool.server is not None:
            return McpConfirmation(title, self.tool.server, self.tool.name, self.args)
        # What weighs most is what a person is asked about, in whatever order it was declared.
        for effect in sorted(self.tool.effects, key=_effect_rank):
            value = self.argument(effect)
            match effect:
                case Run() if value is not None:
                    return ExecConfirmation(title, str(value))
                case Send() if value is not None:
                    return UrlConfirmation(title, str(value))
                case Input(what="desktop") | Write(what="windows" | "clipboard"):
                    return GuiConfirmation(title, str(self.args.get("action", self.tool.name)))
                case _:
                    pass
        return InfoConfirmation(title, title)

    def run(self, context: CallContext) -> Coroutine[Any, Any, Any]:
        """Start the handler. Only the pipeline does this: `context` is what it makes for a call that was judged."""
        return self.tool._run(self.params, context)  # pyright: ignore[reportPrivateUsage]


def compute_call_hash(name: str, args: Any) -> str:
    """Return the `call_hash` of a call that need not be bound."""
    canonical = CANONICAL_ENCODER.encode({"tool": name, "args": args})
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


def _effect_rank(effect: Effect) -> int:
    return next((place for place, kind in enumerate(EFFECT_KINDS) if isinstance(effect, kind)), len(EFFECT_KINDS))


def _to_single_line(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= MAX_LINE_CHARS else f"{text[:MAX_LINE_CHARS]}…"


def list_argument_paths(value: Any) -> tuple[str, ...]:
    """Return the paths in an argument, which may be one, several or None."""
    if value is None:
        return ()
    if isinstance(value, str | PurePath):
        return (str(value),)
    return tuple(str(item) for item in cast("Iterable[Any]", value))


def format_arguments(args: Mapping[str, Any]) -> str:
    """Return all arguments on one line, each with its name and the beginning of its value."""
    return ", ".join(f"{key}={format_argument(value)}" for key, value in args.items())


def format_argument(value: Any) -> str:
    """Return a value as `format_arguments` shows it: on one line, cut where it is long."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    text = " ".join(text.split())
    return text if len(text) <= MAX_ARGUMENT_CHARS else f"{text[:MAX_ARGUMENT_CHARS]}…"
