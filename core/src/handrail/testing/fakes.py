"""Fakes for what a test cannot have: a user, a screen, a model that sees.

Each meets its contract in the simplest way.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self, cast

from handrail.api.approval import Answer, Approval, Choice
from handrail.api.call import Invocation
from handrail.api.desktop import Desktop, Glance, Tree
from handrail.api.observation import Element, Frame, Rect, Window
from handrail.api.service import ClosableService, Service, ServiceScope
from handrail.api.verdict import Decision, EvaluationContext, Evaluator, Opinion
from handrail.api.vision import BackendContext, VisionBackend
from handrail.errors import DesktopError
from handrail.session.service_context import ServiceContext

FAKE_SCREEN_RECT = Rect(0, 0, 1280, 800)


class Always(Evaluator):
    """An evaluator with one opinion of every call: `Always("confirm")` suggests, `Always(Opinion(…))` says it all, `Always(None)` is silent.

    `Always(RuntimeError("…"))` crashes with that. `asked` counts how often it was.
    """

    name = "always"

    def __init__(self, opinion: Opinion | Decision | str | Exception | None, *, name: str = "always") -> None:
        self.name = name  # pyright: ignore[reportAttributeAccessIssue] # several of them are told apart by it
        self.asked = 0
        self._opinion = Opinion(name, suggestion=Decision(opinion)) if isinstance(opinion, str) else opinion

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        self.asked += 1
        if isinstance(self._opinion, Exception):
            raise self._opinion
        return self._opinion


class ScriptedConfirmer:
    """Confirmer that gives these answers in order: `ScriptedConfirmer("once", "deny")`, or complete ones (`Answer`).

    `asked` keeps every question. `at_terminal`: it is prompted about catastrophic calls too, as a user at a terminal
    is. A question without an answer in the script raises LookupError, which counts as a denial.
    """

    def __init__(self, *answers: Answer | str, at_terminal: bool = False) -> None:
        self.asked: list[Approval] = []
        self.at_terminal = at_terminal
        self._answers = deque(Answer(Choice(given)) if isinstance(given, str) else given for given in answers)

    async def __call__(self, approval: Approval) -> Answer:
        self.asked.append(approval)
        if not self._answers:
            raise LookupError(f"the script has no answer for {approval.tool}")
        return self._answers.popleft()


class FakeBackend(VisionBackend):
    """Vision backend that reports what it is given.

    Create its class with `fake_backend`; `built` contains all instances, in order.
    """

    name = "fake"
    elements: ClassVar[Sequence[Element]] = ()
    description: ClassVar[str] = "a screen"
    lacks: ClassVar[str | None] = None
    fails: ClassVar[Exception | None] = None
    built: ClassVar[list[FakeBackend]] = []

    def __init__(self, config: Any = None) -> None:
        super().__init__(config)
        self.is_open = False
        self.built.append(self)

    @classmethod
    def missing(cls) -> str | None:
        return cls.lacks

    async def open(self, context: BackendContext) -> None:
        if self.fails is not None:
            raise self.fails
        self.is_open = True

    async def close(self) -> None:
        self.is_open = False

    async def tree(self, *, window: str | None = None, budget: int = 500) -> Tree:
        return Tree(tuple(self.elements[:budget]), window, truncated=len(self.elements) > budget)

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        return self.elements

    async def understand(self, frame: Frame, intent: str) -> str:
        return self.description


def fake_backend(
    name: str = "fake",
    *,
    capabilities: Sequence[str] | frozenset[str] = ("accessibility_tree",),
    elements: Sequence[Element] = (),
    missing: str | None = None,
    fails: Exception | None = None,
) -> type[FakeBackend]:
    """Create a backend class of that name.

    `missing` is what it lacks here, `fails` is what opening it raises. Its `elements` may be set later.
    """
    fields: dict[str, Any] = {
        "name": name,
        "capabilities": frozenset(capabilities),
        "elements": elements,
        "lacks": missing,
        "fails": fails,
        "built": [],
        "__doc__": "A backend made for a test.",
    }
    return cast("type[FakeBackend]", type(f"Fake_{name}", (FakeBackend,), fields))


def fake_service(
    capability: str, supplied: object, *, scope: ServiceScope = "process", missing: str | None = None
) -> Service:
    """Create a service that supplies `supplied` to every caller.

    Pass an async function to create a new object at each opening: it receives the context.
    """

    async def opened(context: ServiceContext) -> ClosableService:
        made: Any = await cast("Any", supplied)(context) if callable(supplied) else supplied
        return made if hasattr(made, "close") else _ClosableWrapper(made)

    return Service(capability, opened, scope, missing=lambda: missing)


class _ClosableWrapper:
    """Something with a `close` added."""

    def __init__(self, wrapped: object) -> None:
        self._wrapped = wrapped

    def __getattr__(self, name: str) -> Any:
        return getattr(self._wrapped, name)

    async def close(self) -> None:
        """Do nothing, as there is nothing to release."""


@dataclass
class FakeDesktops:
    """The capability `desktops`, with displays that are only names. `started` are the private ones, in order."""

    started: list[Desktop] = field(default_factory=list[Desktop])

    async def current(self) -> Desktop:
        return Desktop("current", "fake:0")

    async def start(self, name: str, *, width: int = 1280, height: int = 800) -> Desktop:
        self.started.append(Desktop(name, f"fake:{len(self.started) + 1}-{name}", private=True))
        return self.started[-1]

    async def attach(self, name: str) -> Desktop:
        for desktop in self.started:
            if desktop.name == name:
                return desktop
        raise DesktopError(f"there is no desktop {name!r}")

    async def close(self) -> None:
        self.started.clear()


@dataclass
class FakeScreen:
    """The capability `screen`: a screen of one colour with these windows. `pixels` is what a capture holds, None without numpy."""

    shown: list[Window] = field(default_factory=list[Window])
    area: Rect = FAKE_SCREEN_RECT
    pixels: Any = None

    async def monitors(self) -> list[Rect]:
        return [self.area]

    async def capture(self, area: Rect | None = None) -> Frame:
        return Frame(area or self.area, self.pixels, time.monotonic())

    async def windows(self) -> list[Window]:
        return list(self.shown)

    async def close(self) -> None:
        """Do nothing, as there is nothing to release."""


@dataclass
class FakeAccessibility:
    """The capability `accessibility`: a tree of these elements, which a test may change at any time."""

    elements: list[Element] = field(default_factory=list[Element])
    window: str = "Window"

    @classmethod
    def of(cls, *named: tuple[str, str]) -> Self:
        """Create one with an element for each role and text."""
        return cls([Element(role, text, Rect(0, 20 * at, 100, 20)) for at, (role, text) in enumerate(named)])

    async def tree(
        self,
        *,
        window: str | None = None,
        max_depth: int | None = None,
        query: str | None = None,
        full: bool = False,
        budget: int = 500,
        deadline: float = 3.0,
    ) -> Tree:
        fitting = [
            e
            for e in self.elements
            if query is None or query.casefold() in f"{e.role} {e.text} {e.value or ''}".casefold()
        ]
        return Tree(tuple(fitting[:budget]), self.window, await self.focused(), truncated=len(fitting) > budget)

    async def focused(self) -> Element | None:
        return next((element for element in self.elements if "focused" in element.states), None)

    async def refresh(self, element: Element) -> Element | None:
        return next((e for e in self.elements if (e.role, e.text) == (element.role, element.text)), None)

    async def read_text(self, element: Element) -> str | None:
        return element.value

    async def insert_text(self, element: Element, text: str) -> bool:
        return False

    async def glance(self) -> Glance:
        said = str(hash(tuple((e.role, e.text, e.value) for e in self.elements)))
        return Glance(said, await self.focused())

    async def close(self) -> None:
        """Do nothing, as there is nothing to release."""
