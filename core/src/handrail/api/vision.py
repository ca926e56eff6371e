"""Vision backends: how a desktop is seen. Plugins supply them, one is chosen by name, and the tools follow what it can do."""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from pydantic import BaseModel, ConfigDict

from handrail.api.desktop import Desktop, Tree
from handrail.api.observation import Element, Frame
from handrail.api.result import ToolResult
from handrail.errors import BackendUnavailable

__all__ = ["NetworkAccess"]

# Seconds that a backend has for one answer, unless its class says otherwise.
DEADLINE_S = 30.0


class NoSettings(BaseModel):
    """The settings of something that has none: every key is refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class NetworkAccess(Protocol):
    """Settings of `[network]`."""

    @property
    def allow_private(self) -> tuple[str, ...]:
        """Hosts, addresses and networks of the person's own that may be reached though they are not public."""
        ...

    @property
    def proxy(self) -> str | None:
        """The proxy, as http://host:port, through which public hosts are reached; None when they are reached directly."""
        ...


class BackendContext(Protocol):
    """Context available to a backend while it opens."""

    @property
    def desktop(self) -> Desktop: ...

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment that Handrail was started with."""
        ...

    @property
    def network(self) -> NetworkAccess:
        """Network settings of the configuration."""
        ...

    async def secret(self, name: str) -> str:
        """Return the value of a secret, redacted from results from now on. Raises `NotFound` for an unknown name."""
        ...

    async def service(self, capability: str) -> Any:
        """Return the service that supplies `capability`. Raises `ToolUnavailable` if no plugin does."""
        ...


@dataclass(frozen=True, slots=True)
class Cost:
    """Cost of answers: model tokens, and money if the backend knows its price."""

    input_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
            self.dollars + other.dollars,
        )

    def __sub__(self, other: Cost) -> Cost:
        return Cost(
            self.input_tokens - other.input_tokens,
            self.output_tokens - other.output_tokens,
            self.dollars - other.dollars,
        )


@dataclass(frozen=True, slots=True)
class PlannedAction:
    """Call that a planning backend proposes, not yet judged.

    `tool` and `args` are as the tool takes them, but points are in screen pixels. `name` and `id` are the model's own
    name and id for the request; actions with the same id belong together, and the first failure ends them. `ask` is set
    if the model's own safety check requires the user's approval first: the text of the question. `problem` says why it
    cannot be carried out at all; it is then not called, and the model gets this text. `instead` lists the actions to
    take if no plugin supplies the tool.
    """

    tool: str
    args: Mapping[str, Any]
    id: str = ""
    ask: str | None = None
    name: str = ""
    problem: str | None = None
    instead: tuple[PlannedAction, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """Response of a planning backend to one look at the screen: the next actions in order, its text, and a done flag.

    `ref` is a value that the backend wants returned with the history; opaque to all other code.
    """

    actions: tuple[PlannedAction, ...] = ()
    text: str = ""
    done: bool = False
    ref: Any = None


@dataclass(frozen=True, slots=True)
class Turn:
    """Executed plan: one result for each action that was tried, in order, and what the screen showed afterwards.

    The first failure is the last action that is tried. `frames` holds the screen contents after the actions of an id.
    Pictures that planners no longer need are None, or missing. `urls` holds the URLs of the session's browser at those
    points, if one runs. `note`: additional text for the model, for example if the plan was invalid.
    """

    plan: Plan
    results: tuple[ToolResult, ...] = ()
    frame: Frame | None = None
    note: str = ""
    frames: Mapping[str, Frame] = field(default_factory=dict[str, Frame])
    urls: Mapping[str, str] = field(default_factory=dict[str, str])


class VisionBackend(ABC):
    """One way to see a screen.

    Installed? The entry point says. Usable here? `missing` and `unfit` say. Able to do X? `capabilities` says: `parse_screen`, `ocr`, `understand`,
    `accessibility_tree`, `plan_actions`, or any string a third party agrees on with its tools. Each of those names a method below; a
    backend implements the methods of the capabilities it declares and inherits a clear refusal for the others.

    A method that cannot answer raises `BackendUnavailable`, and the next backend of the session's chain is asked. It may not block the event
    loop, and is cancelled after `deadline` seconds. `config` is an instance of `Config`, read from `[backends.<name>]`.
    """

    name: ClassVar[str]
    capabilities: ClassVar[frozenset[str]] = frozenset()
    Config: ClassVar[type[BaseModel]] = NoSettings
    deadline: float = DEADLINE_S

    def __init__(self, config: BaseModel | None = None) -> None:
        self.config = config if config is not None else self.Config()
        # What all answers together have cost; a backend that pays adds to it.
        self.cost = Cost()
        # What it is at, in a few words, while that takes long; shown to whoever waits.
        self.doing = ""

    @classmethod
    def missing(cls) -> str | None:
        """Return what the backend lacks here, with the remedy, or None if nothing.

        Called before it is instantiated; must be quick and import nothing heavy.
        """
        return None

    @classmethod
    def unfit(cls, config: BaseModel) -> str | None:
        """Return why the backend cannot be used with these settings, an instance of `Config`, or None if it can.

        The reason includes the remedy. Called together with `missing`.
        """
        return None

    async def open(self, context: BackendContext) -> None:
        """Make ready to see `context.desktop`; raises `BackendUnavailable`. Called once, before anything else."""

    async def warm_up(self) -> None:
        """Do what makes the first answer slow: load a model, wake a server. Called in the background once it is chosen; a failure is logged."""

    async def close(self) -> None:
        """Give everything back. Called once, also after a failed `open`."""

    async def tree(self, *, window: str | None = None, budget: int = 500) -> Tree:
        """Capability `accessibility_tree`: what the window (default: the active one) shows, without a picture."""
        raise self._cannot("accessibility_tree")

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        """Capability `parse_screen` or `ocr`: the elements in the picture, their rectangles in screen pixels, without ids.

        `intent` is what the caller looks for, often empty.
        """
        raise self._cannot("parse_screen")

    async def understand(self, frame: Frame, intent: str) -> str:
        """Capability `understand`: a description of the picture in words."""
        raise self._cannot("understand")

    async def plan(self, frame: Frame, instruction: str, history: Sequence[Turn]) -> Plan:
        """Capability `plan_actions`: what to do next towards `instruction`. It touches nothing; `history` holds all turns so far."""
        raise self._cannot("plan_actions")

    def _cannot(self, capability: str) -> BackendUnavailable:
        return BackendUnavailable(f"vision backend {self.name!r} does not offer {capability!r}")
