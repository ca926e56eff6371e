"""Tool contract: what a tool declares, and how a typed function becomes a tool.

A model sees the name, the description and the schema; evaluators see the effects; the handler is hidden from both.
`Session.call` is the only way to run it.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from dataclasses import InitVar, dataclass, field, replace
from functools import cached_property
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Protocol,
    TypedDict,
    Unpack,
    cast,
    get_args,
    get_type_hints,
    runtime_checkable,
)

from pydantic import BaseModel, ValidationError

from handrail import validation_messages
from handrail.api import schema
from handrail.api.context import CallContext
from handrail.api.model_families import Variation, check_families
from handrail.errors import InvalidArguments, PluginError
from handrail.json_types import count_values, has_non_finite_number
from handrail.nested_dict import Bag

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from handrail.api.call import Confirmation, GrantOption, Location
    from handrail.api.verdict import Verdict

TOOL_NAME = re.compile(r"[a-z][a-z0-9_]{0,62}")
DEFAULT_TIMEOUT_S = 60.0
# Values that arguments may hold, at any depth; of more than a few, the first that does not fit is told.
MAX_VALUES = 500_000
MANY_VALUES = 10_000
# Problems with arguments that an error tells, and letters of each.
MAX_PROBLEMS = 20
MAX_PROBLEM = 500

ToolLayer = Literal[
    "core", "file", "window", "document", "system", "workflow", "skill", "session", "web", "artifact", "mcp"
]
CollisionPolicy = Literal["error", "replace", "keep"]
ArtifactKind = Literal["text", "json", "jsonl", "markdown", "xml", "yaml", "csv", "binary"]
# Takes the validated parameters and the call's context.
ToolHandler = Callable[[Any, Any], Coroutine[Any, Any, Any]]
# What plugins call the context; a module of theirs need not import it but for type checkers.
CONTEXT_NAME = "ToolContext"


@dataclass(frozen=True, slots=True)
class Effect:
    """One thing a tool does to the world. `what` is an open word (file, screen, network …); `arg` names the parameter that says which."""

    what: str
    arg: str | None = None


class Read(Effect):
    """It looks at something: `Read("screen")`, `Read("file", arg="path")`, `Read("glob", arg="pattern")`.

    `Read("cwd", arg="cwd")` names the folder that a command or program works in.
    """

    __slots__ = ()


class Write(Effect):
    """It changes something: `Write("file", arg="path")`, `Write("clipboard")`."""

    __slots__ = ()


class Delete(Effect):
    """It takes something away: `Delete("file", arg="path")`."""

    __slots__ = ()


class Run(Effect):
    """Effect of running code: `Run("shell", arg="command")`.

    `Run("steps")` runs nothing itself: it acts only through calls of other tools, each of which is judged.
    """

    __slots__ = ()


class Send(Effect):
    """It sends or fetches something over a network: `Send("network", arg="url")`.

    `Send("fetch", arg="url")` only gets a page to read: nothing is sent but the address, and nothing is kept.
    """

    __slots__ = ()


class Input(Effect):
    """Effect of mouse or keyboard input on the user's behalf: `Input("desktop", arg="text")`."""

    __slots__ = ()


# What a session keeps for itself, and has no meaning outside: changing it leaves no trace.
INNER_STATE = frozenset(("todos", "mode"))

# The word for a tool's kind is that of its weightiest effect.
EFFECT_KINDS: Mapping[type[Effect], str] = {
    Run: "execute",
    Input: "input",
    Delete: "delete",
    Write: "edit",
    Send: "fetch",
    Read: "read",
}

# What is declared to the model under `tools.profile`, by layer; a tool may name its own.
LAYER_PROFILES: Mapping[ToolLayer, frozenset[str]] = {
    "core": frozenset({"files", "shell", "browser", "desktop"}),
    "file": frozenset({"files", "shell", "browser", "desktop"}),
    "artifact": frozenset({"files", "shell", "browser", "desktop"}),
    "session": frozenset({"files", "shell", "browser", "desktop"}),
    "document": frozenset({"files", "shell", "desktop"}),
    "system": frozenset({"shell", "desktop"}),
    "web": frozenset({"browser", "desktop"}),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Tool:
    """Declaration of a tool. Everything but the handler may be inspected.

    `requires`: the chosen vision backend must offer at least one of these capabilities (empty: always available).
    `platforms`: values of `sys.platform` it works on (empty: all).
    `confinable`: its handler starts processes through `context.sandbox` if given; no other tool is ever routed to a
    sandbox.
    `timeout`: seconds, or a function of the validated parameters, or None.
    `exclusive`: a resource that one call holds at a time ("desktop", or any word).
    `profiles`: the profiles in which it is declared to the model.
    `live`: it streams output.
    `trusted`: its output is Handrail's own, not from the outside world.
    `loadable`: a host neither sees nor calls it before its session has loaded it (`Session.load_tools`).
    `ephemeral`: it is available for one step of the model.
    `by_hand`: only the user calls it (`Runtime.session(by_hand=True)`), never an agent, not even in a nested call.
    `on_collision`: the action to take if the name is in use.
    `aliases`: former names by which it may still be called, disabled and judged; they are not declared.
    `server`: the MCP server that runs it, by its name in the configuration.
    `remote`: what that server declares about it.
    `served_by`: for a tool that works on several servers, returns the server a call is for, and what it declares about
    itself; a lasting approval applies to that server.
    `skill`: the skill that provides it.
    `given`: a JSON Schema in place of `params`; the handler gets the arguments as `params.args`, and effects name none
    of them.
    `artifact`: its text or bytes are always stored as an artifact, of that kind or of the class returned by a function
    without arguments.
    `families`: overrides for models of one family.
    `advice`: one or two sentences on how to use it well, which a host adds to its model's instructions, once for all
    tools with the same text; by `sys.platform` if platforms differ.
    `meta`: a bag by dotted path that core never reads.
    `describe`, `locations`, `confirmation` and `grants` take the validated parameters and default to what the effects
    say. `confirmation` also receives the verdict, whose parts list the real files the call would touch; a `ToolError`
    it raises ends the call before the user is prompted.
    `undo` takes the parameters and the result of a successful call, and returns what would reverse it; empty if nothing
    would.
    """

    name: str
    description: str
    handler: InitVar[ToolHandler]
    params: type[BaseModel] = schema.BaseArguments
    layer: ToolLayer = "core"
    effects: Sequence[Effect] = ()
    requires: frozenset[str] = frozenset()
    platforms: frozenset[str] = frozenset()
    timeout: float | Callable[[Any], float | None] | None = DEFAULT_TIMEOUT_S
    exclusive: str | None = None
    title: str = ""
    output: Literal["text", "markdown", "json"] = "json"
    live: bool = False
    trusted: bool = False
    confinable: bool = False
    ephemeral: bool = False
    loadable: bool = False
    by_hand: bool = False
    on_collision: CollisionPolicy = "error"
    profiles: frozenset[str] = frozenset()
    aliases: Sequence[str] = ()
    server: str | None = None
    remote: Remote | None = None
    given: ExternalSchema | None = None
    skill: str | None = None
    artifact: ArtifactKind | Callable[[], type] | None = None
    families: Mapping[str, Variation] = field(default_factory=dict[str, Variation])
    advice: str | Mapping[str, str] = ""
    meta: Bag = field(default_factory=Bag)
    describe: Callable[[Any], str] | None = None
    locations: Callable[[Any], Sequence[Location]] | None = None
    confirmation: Callable[[Any, Verdict], Confirmation] | None = None
    grants: Callable[[Any], Sequence[GrantOption]] | None = None
    served_by: Callable[[Any], tuple[str, Remote]] | None = None
    undo: Callable[[Any, Mapping[str, Any]], str] | None = None
    _run: ToolHandler = field(init=False, repr=False)

    def __post_init__(self, handler: ToolHandler) -> None:
        _check_names(self.name, self.aliases)
        if not self.description.strip():
            raise PluginError(
                f"tool {self.name!r} has no description", hint="say what it does, what it returns and when to use it"
            )
        _check_async(self.name, handler)
        set_field = object.__setattr__
        set_field(self, "params", schema.forbid_extras(self.params))
        set_field(self, "effects", tuple(self.effects))
        set_field(self, "aliases", tuple(self.aliases))
        set_field(self, "requires", frozenset(self.requires))
        set_field(self, "platforms", frozenset(self.platforms))
        set_field(self, "title", self.title or self.name.replace("_", " ").capitalize())
        set_field(self, "profiles", frozenset(self.profiles) or LAYER_PROFILES.get(self.layer, frozenset({"desktop"})))
        set_field(self, "_run", handler)
        self._check_effect_arguments()
        self._check_artifact()
        if self.families:
            check_families(self)

    def _check_effect_arguments(self) -> None:
        names = self.fields
        for effect in self.effects:
            if effect.arg is not None and effect.arg not in names:
                raise PluginError(
                    f"tool {self.name!r}: an effect names the parameter {effect.arg!r}, which it does not have",
                    hint=f"its parameters are {', '.join(names) or 'none'}",
                )

    def _check_artifact(self) -> None:
        given: object = self.artifact
        if isinstance(given, type) or not (given is None or given in get_args(ArtifactKind) or callable(given)):
            raise PluginError(
                f"tool {self.name!r}: artifact is {given!r}",
                hint=f"write one of {', '.join(get_args(ArtifactKind))}, or a function that returns a class of artifacts",
            )

    def advice_on(self, platform: str) -> str:
        """Return its advice for that `sys.platform`; empty if it has none."""
        return self.advice if isinstance(self.advice, str) else self.advice.get(platform, "")

    @cached_property
    def _validate(self) -> Callable[[Any], Any]:
        # Looked up once, and not before the first call: a model that nobody uses need not be built.
        return self.params.__pydantic_validator__.validate_python

    @cached_property
    def _validate_fast(self) -> Callable[[Any], Any]:
        return schema.failing_fast(self.params)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """JSON Schema of the arguments, of type object, without titles."""
        return schema.build_json_schema(self.params) if self.given is None else self.given.json

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """The field of `params` for each argument; they differ where a field has an alias."""
        return schema.fields_by_argument(self.params) if self.given is None else {}

    @cached_property
    def kind(self) -> str:
        """execute, input, delete, edit, fetch, read, or other: its weightiest effect."""
        return next(
            (word for kind, word in EFFECT_KINDS.items() if any(isinstance(e, kind) for e in self.effects)), "other"
        )

    @property
    def names(self) -> tuple[str, ...]:
        """Its name, then its aliases."""
        return (self.name, *self.aliases)

    @property
    def source(self) -> str | None:
        """Origin besides its plugin: `server:docs`, `skill:pdf`; None if there is none."""
        return next((f"{kind}:{name}" for kind, name in (("server", self.server), ("skill", self.skill)) if name), None)

    @cached_property
    def inputs(self) -> bool:
        """True if the tool sends mouse or keyboard input to a desktop on the user's behalf."""
        return any(isinstance(effect, Input) and effect.what == "desktop" for effect in self.effects)

    @cached_property
    def feeds(self) -> bool:
        """True if it writes to a command that an earlier call left running."""
        return any(isinstance(effect, Input) and effect.what == "process" for effect in self.effects)

    @cached_property
    def names_files(self) -> bool:
        """True if a parameter of it names files or folders."""
        return any(effect.what in ("file", "folder", "glob") and effect.arg is not None for effect in self.effects)

    @cached_property
    def reads_artifact(self) -> Effect | None:
        """The effect that says which artifact of the session it looks into; None when it looks into none."""
        reads = (effect for effect in self.effects if isinstance(effect, Read) and effect.what == "artifact")
        return next((effect for effect in reads if effect.arg is not None), None)

    @cached_property
    def takes_text(self) -> bool:
        """True if any argument may contain text."""
        plain = ({"integer"}, {"number"}, {"boolean"})
        return any({prop.get("type")} not in plain for prop in self.input_schema.get("properties", {}).values())

    @cached_property
    def read_only(self) -> bool:
        """True if the tool leaves no trace: no effects, only reads, or only changes of the session's internal state."""
        return all(isinstance(e, Read) or (isinstance(e, Write) and e.what in INNER_STATE) for e in self.effects)

    @cached_property
    def loosens(self) -> bool:
        """True if the tool switches the session back to a less strict mode."""
        return any(isinstance(effect, Write) and effect.what == "mode" for effect in self.effects)

    def validate(self, args: Any) -> BaseModel:
        """Return the arguments as an instance of the tool's model.

        Raises `InvalidArguments`, which lists each invalid field.
        """
        count = count_values(args, MAX_VALUES)
        if count > MAX_VALUES:
            raise InvalidArguments(
                f"{self.name}: the arguments hold more than {MAX_VALUES} values; nothing was run",
                hint="call several times with less, or write the data to a file",
            )
        if self.given is not None:
            return self._fitting(args, self.given)
        try:
            return self._validate(args) if count <= MANY_VALUES else self._validate_fast(args)
        except ValidationError as exc:
            raise build_invalid_arguments(self.name, self.params, exc) from exc

    def _fitting(self, args: Mapping[str, Any], given: ExternalSchema) -> BaseModel:
        if has_non_finite_number(args):
            raise InvalidArguments(f"{self.name}: NaN and infinite numbers are not JSON; nothing was run")
        if problems := given.problems(args):
            raise _build_misfit_error(self.name, problems)
        return schema.ExternalArguments.model_construct(args=dict(args))

    def changed(self, **fields: Unpack[ToolFields]) -> Tool:
        """Return the same tool with other fields, such as the plugin or server that provides it, or its effects."""
        return replace(self, handler=self._run, **fields)

    def timeout_for(self, params: BaseModel) -> float | None:
        """Return the timeout in seconds of a call with these parameters; None for no limit."""
        return self.timeout(params) if callable(self.timeout) else self.timeout


@dataclass(frozen=True, slots=True)
class Remote:
    """Declaration of a tool by the server that runs it.

    `declared` represents the entire declaration: a tool that is declared differently is a different tool. `name`: the
    server's name for the tool. `beside`: `declared` of every tool that the server has at the same time, including this
    one.
    """

    name: str
    declared: str
    beside: frozenset[str] = frozenset()


class ExternalSchema(Protocol):
    """A JSON Schema of arguments that somebody else has written, and the check of arguments against it."""

    @property
    def json(self) -> dict[str, Any]:
        """The schema as models are shown it, of type object."""
        ...

    def problems(self, args: Mapping[str, Any]) -> Sequence[Mapping[str, str]]:
        """Return `{field, problem}` for each invalid argument; an argument that cannot be checked is invalid."""
        ...


class Toolset(Protocol):
    """Tools that come and go: asked again at each listing. `session` is the `handrail.Session` that asks."""

    async def tools(self, session: Any) -> Iterable[Tool]:
        """Return the tools that the session has at present."""
        ...


@runtime_checkable
class NamedToolset(Toolset, Protocol):
    """Toolset that declares the names of its tools in advance, for policy rules to refer to before the tools exist."""

    @property
    def names(self) -> Sequence[str]:
        """Names of the tools; `*` matches any characters."""
        ...


class ToolFields(TypedDict, total=False):
    """Fields of `Tool` that `@tool` accepts as keyword arguments."""

    name: str
    description: str
    layer: ToolLayer
    effects: Sequence[Effect]
    requires: Collection[str]
    platforms: Collection[str]
    timeout: float | Callable[[Any], float | None] | None
    exclusive: str | None
    title: str
    output: Literal["text", "markdown", "json"]
    live: bool
    trusted: bool
    confinable: bool
    ephemeral: bool
    loadable: bool
    by_hand: bool
    on_collision: CollisionPolicy
    profiles: Collection[str]
    aliases: Sequence[str]
    server: str | None
    remote: Remote | None
    skill: str | None
    artifact: ArtifactKind | Callable[[], type] | None
    families: Mapping[str, Variation]
    advice: str | Mapping[str, str]
    meta: Bag
    describe: Callable[[Any], str]
    locations: Callable[[Any], Sequence[Location]]
    confirmation: Callable[[Any, Verdict], Confirmation]
    grants: Callable[[Any], Sequence[GrantOption]]
    served_by: Callable[[Any], tuple[str, Remote]]
    undo: Callable[[Any, Mapping[str, Any]], str]


def tool(**declared: Unpack[ToolFields]) -> Callable[[Callable[..., Coroutine[Any, Any, Any]]], Tool]:
    """Make a `Tool` of a typed async function: its signature is the schema, its docstring the description.

    `name` and `description` default to the function's. A parameter annotated `ToolContext` is given the call's context and left out of the
    schema. Descriptions of parameters come from `Annotated[..., Field(description=…)]` or the docstring.
    """

    def make(function: Callable[..., Coroutine[Any, Any, Any]]) -> Tool:
        name = declared.get("name", function.__name__)
        _check_async(name, function)
        model, handler = _adapt_function(function, name)
        given: dict[str, Any] = {"name": name, "description": schema.extract_summary(function), **declared}
        return Tool(handler=handler, params=model, **given)

    return make


def _check_names(name: str, aliases: Sequence[str]) -> None:
    for each in (name, *aliases):
        if not TOOL_NAME.fullmatch(each):
            raise PluginError(
                f"{each!r} is not a tool name",
                hint="use lower-case letters, digits and underscores, a letter first, at most 63 characters",
            )
    if len({name, *aliases}) <= len(aliases):
        raise PluginError(f"tool {name!r} has one name twice: {', '.join((name, *aliases))}")


def _check_async(name: str, function: Callable[..., Any]) -> None:
    if not inspect.iscoroutinefunction(function):
        raise PluginError(
            f"the handler of tool {name!r} is not an async function",
            hint="write `async def`; move blocking work to `anyio.to_thread.run_sync`",
        )


def _adapt_function(
    function: Callable[..., Coroutine[Any, Any, Any]], name: str
) -> tuple[type[BaseModel], ToolHandler]:
    if (model := schema.find_sole_model(function, injected=CallContext, known_as=CONTEXT_NAME)) is not None:
        return model, _adapt_model_function(function)
    model, context, renamed = schema.model_from_signature(
        function, name=name, injected=CallContext, known_as=CONTEXT_NAME
    )
    fields = {renamed.get(parameter, parameter): parameter for parameter in inspect.signature(function).parameters}

    async def handler(params: BaseModel, given: CallContext) -> Any:
        arguments = {fields[key]: value for key, value in params.__dict__.items()}
        if context is not None:
            arguments[context] = given
        return await function(**arguments)

    async def plain(params: BaseModel, given: CallContext) -> Any:
        return await function(**params.__dict__)

    return model, handler if renamed or context is not None else plain


def _adapt_model_function(function: Callable[..., Coroutine[Any, Any, Any]]) -> ToolHandler:
    hints = get_type_hints(function, localns={CONTEXT_NAME: CallContext})
    context = next((name for name, hint in hints.items() if schema.is_derived_from(hint, CallContext)), None)
    parameters = inspect.signature(function).parameters
    sole = next(name for name in parameters if name != context)
    if list(parameters) == [sole, context] and all(p.kind is p.POSITIONAL_OR_KEYWORD for p in parameters.values()):
        # It has a handler's form already.
        return cast("ToolHandler", function)

    async def handler(params: BaseModel, given: CallContext) -> Any:
        return await function(**{sole: params} if context is None else {sole: params, context: given})

    return handler


def build_invalid_arguments(name: str, params: type[BaseModel], exc: ValidationError) -> InvalidArguments:
    """Build the error for the model: one line for each field, and the same as details."""
    errors = exc.errors(include_url=False, include_input=False, include_context=False)
    problems = [
        {"field": ".".join(map(str, error["loc"])) or "arguments", "problem": _describe_problem(error, params)}
        for error in errors[:MAX_PROBLEMS]
    ]
    return _build_misfit_error(name, problems, more=len(errors) - len(problems))


def _build_misfit_error(name: str, problems: Sequence[Mapping[str, str]], *, more: int = 0) -> InvalidArguments:
    more += max(len(problems) - MAX_PROBLEMS, 0)
    shown = [{key: _cut(text) for key, text in problem.items()} for problem in problems[:MAX_PROBLEMS]]
    told = "; ".join(f"{problem['field']}: {problem['problem']}" for problem in shown)
    rest = f"; and {more} more" if more else ""
    return InvalidArguments(f"{name}: {told}{rest}", details={"problems": shown})


def _cut(text: str) -> str:
    return text if len(text) <= MAX_PROBLEM else f"{text[:MAX_PROBLEM]} …"


def _describe_problem(error: ErrorDetails, params: type[BaseModel]) -> str:
    # The value is left out: it may be long, and the model knows it.
    match error["type"]:
        case "extra_forbidden":
            return f"there is no such argument{validation_messages.suggest_key(error['loc'], params)}"
        case "missing":
            return "it is missing"
        case _:
            return validation_messages.describe_accepted(error)
