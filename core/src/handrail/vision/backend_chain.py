"""Vision of one session: its chosen backend and the fallbacks after it, each opened on first use.

A request is passed along the chain until one backend answers. The answer includes its name, and why those before it did
not answer. A backend that failed is skipped for a period that grows with each failure, and is then retried, or sooner
if no other is left.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import index
from time import monotonic
from typing import Any, Final, Generic, TypeVar, cast

import anyio

from handrail.api.desktop import Tree
from handrail.api.observation import Element, Frame, Rect
from handrail.api.service import close_safely
from handrail.api.vision import Cost, Plan, Turn, VisionBackend
from handrail.errors import BackendUnavailable, HandrailError
from handrail.vision.element_merge import merge_elements

log = logging.getLogger(__name__)

T = TypeVar("T")

TREE_CAPABILITY: Final = "accessibility_tree"
PARSE_CAPABILITIES: Final = frozenset({"parse_screen", "ocr"})
# Seconds until a backend that failed is tried again: doubled with each failure, up to the last.
BACKOFF_S = 0.5
MAX_BACKOFF_S = 60.0
MAX_CACHED_ANSWERS = 16
MAX_ELEMENTS = 5_000
NO_COST: Final = Cost()


@dataclass(frozen=True, slots=True)
class PassedBackend:
    """A backend of the chain that did not answer, and why."""

    backend: str
    why: str


@dataclass(frozen=True, slots=True)
class Answered(Generic[T]):
    """An answer: the backend that gave it, those that were passed over, how long it took (milliseconds) and what it cost.

    `silent`: those that were to add what they see, and did not answer.
    """

    value: T
    backend: str
    passed: tuple[PassedBackend, ...] = ()
    silent: tuple[PassedBackend, ...] = ()
    ms: float = 0.0
    cost: Cost = NO_COST

    @property
    def note(self) -> str:
        """Why it was not the chosen backend that answered, and who added nothing; empty when all that were asked answered."""
        told = (
            [f"{self.backend} answered, because others could not: {_format_passed(self.passed)}"] if self.passed else []
        )
        told += [f"others could not add what they see: {_format_passed(self.silent)}"] if self.silent else []
        return "; ".join(told)


def _format_passed(passed: Iterable[PassedBackend]) -> str:
    return "; ".join(f"{one.backend}: {one.why}" for one in passed)


@dataclass(frozen=True, slots=True)
class ScreenLook:
    """A picture, and what was made out in it or read from the tree behind it."""

    frame: Frame
    tree: Tree


@dataclass(frozen=True, slots=True)
class BackendHealth:
    """Record of a backend in this session.

    `why` is its last failure, `again_in` the seconds until it regains its place before the others.
    """

    answers: int = 0
    failures_in_a_row: int = 0
    why: str | None = None
    retry_at: float = 0.0
    cost: Cost = NO_COST

    @property
    def again_in(self) -> float:
        return max(0.0, self.retry_at - monotonic())


@dataclass(slots=True)
class _OpenBackend:
    """An open backend, and how many questions it has before it."""

    backend: VisionBackend
    asked: int = 0
    leaving: bool = False


@dataclass(slots=True)
class Vision:
    """Made by the session. `chain` names the backends in order, `opening` opens one."""

    chain: Sequence[str]
    opening: Callable[[str], Awaitable[VisionBackend]]
    # Names the backends whose elements are added to those of the one that answers.
    merge: Callable[[], Sequence[str]] = tuple
    _open: dict[str, _OpenBackend] = field(default_factory=dict[str, _OpenBackend])
    _health: dict[str, BackendHealth] = field(default_factory=dict[str, BackendHealth])
    _locks: dict[str, anyio.Lock] = field(default_factory=dict[str, anyio.Lock])
    _answers: OrderedDict[tuple[str, ...], Any] = field(default_factory=OrderedDict[tuple[str, ...], Any])
    _background: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])
    _warming: dict[str, asyncio.Task[None]] = field(default_factory=dict[str, asyncio.Task[None]])

    # Questions

    async def look(
        self, capture: Callable[[], Awaitable[Frame]], *, intent: str = "", window: str | None = None, budget: int = 500
    ) -> Answered[ScreenLook]:
        """Return the elements on the screen and the picture they belong to, from the first backend that finds elements.

        If no backend of the chain can find elements, and one describes pictures, the elements are empty. `window`: a
        part of the title, for backends that read trees. Elements that the backends to be merged find in the same
        picture are added, and if a tree has none, also those of the rest of the chain.
        """

        async def look(backend: VisionBackend) -> ScreenLook:
            if TREE_CAPABILITY in backend.capabilities:
                tree = await backend.tree(window=window, budget=budget)
                return ScreenLook(await capture(), tree)
            frame = await capture()
            return ScreenLook(frame, Tree(await self._parsed(backend, frame, intent)))

        try:
            return await self._with_others(await self.ask(PARSE_CAPABILITIES | {TREE_CAPABILITY}, look), intent)
        except BackendUnavailable as exc:
            can = [(n, self._open[n].backend.capabilities) for n in self.chain if n in self._open]
            describing = [name for name, capabilities in can if "understand" in capabilities]
            # One that finds elements and failed has not seen that there are none.
            if not describing or any(
                capabilities & (PARSE_CAPABILITIES | {TREE_CAPABILITY}) for _, capabilities in can
            ):
                raise
            return Answered(
                ScreenLook(await capture(), Tree(())), describing[0], (PassedBackend(describing[0], str(exc)),)
            )

    async def _with_others(self, looked: Answered[ScreenLook], intent: str) -> Answered[ScreenLook]:
        """Add the elements that other backends see in the picture.

        A backend that cannot answer is named in `silent`, and does not affect the rest.
        """
        look, silent = looked.value, list[PassedBackend]()
        missed = not any(e.rect and not e.rect.intersect(look.frame.screen).empty for e in look.tree.elements)
        others = [*self.merge(), *(self.chain if missed and not looked.passed else ())]
        elements, seen = look.tree.elements, [looked.backend]
        for name in dict.fromkeys(others):
            if name in seen:
                continue
            try:
                parsed = await self._answer(
                    name, PARSE_CAPABILITIES, lambda backend: self._parsed(backend, look.frame, intent)
                )
            except BackendUnavailable as exc:
                # One of the chain that reads no pictures was not meant to add anything.
                if name in self.merge() or self._sees(name):
                    silent.append(PassedBackend(name, str(exc)))
            else:
                elements = merge_elements(elements, parsed.value)
                seen.append(name)
        if len(seen) == 1 and not silent:
            return looked
        return replace(
            looked,
            value=ScreenLook(look.frame, replace(look.tree, elements=elements)),
            backend="+".join(seen),
            silent=tuple(silent),
        )

    def _sees(self, name: str) -> bool:
        """Return True if the backend parses pictures, or is not open yet."""
        return name not in self._open or bool(self._open[name].backend.capabilities & PARSE_CAPABILITIES)

    async def tree(self, *, window: str | None = None, budget: int = 500) -> Answered[Tree]:
        """Return the contents of a window, from the first backend that reads trees."""
        return await self.ask({TREE_CAPABILITY}, lambda backend: backend.tree(window=window, budget=budget))

    async def parse(self, frame: Frame, intent: str = "") -> Answered[tuple[Element, ...]]:
        """Return the elements in a picture, from the first backend that parses pictures."""
        return await self.ask(PARSE_CAPABILITIES, lambda backend: self._parsed(backend, frame, intent))

    async def understand(self, frame: Frame, intent: str = "") -> Answered[str]:
        """Return a description of a picture, from the first backend that can describe it."""

        async def describe(backend: VisionBackend) -> str:
            described = await backend.understand(frame, intent)
            if not isinstance(described, str) or not described.strip():  # pyright: ignore[reportUnnecessaryIsInstance] # plugin code
                raise BackendUnavailable("it described nothing")
            return described

        return await self.ask(
            {"understand"}, lambda backend: self._once(backend, "understand", frame, intent, describe)
        )

    async def plan(self, frame: Frame, instruction: str, history: Sequence[Turn]) -> Answered[Plan]:
        """Return the next actions for an instruction, from the first backend that plans."""
        return await self.ask({"plan_actions"}, lambda backend: backend.plan(frame, instruction, tuple(history)))

    async def ask(
        self, capabilities: frozenset[str] | set[str], do: Callable[[VisionBackend], Awaitable[T]]
    ) -> Answered[T]:
        """Return the answer of the first working backend of the chain that has one of the capabilities.

        Backends that failed recently are tried last. Raises `BackendUnavailable`, which says why none answered.
        """
        chain = list(dict.fromkeys(self.chain))
        passed: list[PassedBackend] = []
        # Those that failed lately come last: they are still better than no answer.
        for name in sorted(chain, key=lambda name: self.health(name).again_in > 0):
            try:
                answered = await self._answer(name, capabilities, do)
            except BackendUnavailable as exc:
                passed.append(PassedBackend(name, f"{exc} ({exc.hint})" if exc.hint else str(exc)))
            else:
                return replace(answered, passed=(*self._waiting(chain, name, passed), *passed))
        raise BackendUnavailable(
            _format_passed(passed) or "no vision backend is installed", hint="see `handrail plugins`"
        )

    async def _parsed(self, backend: VisionBackend, frame: Frame, intent: str) -> tuple[Element, ...]:
        async def parse(backend: VisionBackend) -> tuple[Element, ...]:
            return clip_elements(await backend.parse(frame, intent), frame)

        return await self._once(backend, "parse", frame, intent, parse)

    async def _once(
        self,
        backend: VisionBackend,
        question: str,
        frame: Frame,
        intent: str,
        do: Callable[[VisionBackend], Awaitable[T]],
    ) -> T:
        """Return the cached answer to the same question about an equal picture, or get a new one."""
        if (picture := hash_frame(frame)) is None:
            return await do(backend)
        key = (backend.name, question, intent, picture)
        if key not in self._answers:
            self._answers[key] = await do(backend)
            while len(self._answers) > MAX_CACHED_ANSWERS:
                self._answers.popitem(last=False)
        return cast("T", self._answers[key])

    # Backends

    def choosing(self, chain: Sequence[str]) -> Vision:
        """Return a copy with another chain; it shares the open backends and what is known about each."""
        return replace(self, chain=tuple(chain))

    def keep_only(self, names: Collection[str]) -> None:
        """Close the others that are open, each when the questions before it are answered."""
        for name in [name for name in self._warming if name not in names]:
            self._warming.pop(name).cancel()
        for name in [name for name in self._open if name not in names]:
            self._retire(name)

    async def ready(self) -> str:
        """Open the first backend of the chain that opens; its name. `BackendUnavailable` says why none does."""
        passed: dict[str, BackendUnavailable] = {}
        for name in dict.fromkeys(self.chain):
            try:
                await self._opened(name)
                return name
            except BackendUnavailable as exc:
                passed[name] = exc
        if not passed:
            raise BackendUnavailable("no vision backend is installed", hint="see `handrail plugins`")
        hint = next((exc.hint for exc in passed.values() if exc.hint), None)
        raise BackendUnavailable("; ".join(f"{name}: {exc}" for name, exc in passed.items()), hint=hint)

    def warm_up(self, name: str) -> None:
        """Open and warm up a backend in the background, to speed up its first answer."""

        async def warm() -> None:
            try:
                await (await self._opened(name)).backend.warm_up()
            # A backend is plugin code; the first question will tell whether it works.
            except Exception:
                log.info("vision backend %s did not warm up", name, exc_info=True)

        self._warming[name] = self._start(warm())

    def doing(self) -> str:
        """Return what the busy backends are doing, in words; empty if none is busy."""
        busy = ((name, opened.backend) for name, opened in self._open.items() if opened.asked)
        return "; ".join(f"{name} {backend.doing or 'is looking'}" for name, backend in busy)

    def health(self, name: str) -> BackendHealth:
        """Return the record of a backend so far."""
        return self._health.get(name, BackendHealth())

    def forget(self, name: str) -> None:
        """Retire a backend whose settings changed: new requests open a new one, running ones finish on the old."""
        self._health.pop(name, None)
        for key in [key for key in self._answers if key[0] == name]:
            del self._answers[key]
        self._retire(name)

    def _retire(self, name: str) -> None:
        if (opened := self._open.pop(name, None)) is not None:
            opened.leaving = True
            self._start(self._leave(name, opened))

    async def close(self) -> None:
        """Close what was opened."""
        for task in tuple(self._background):
            task.cancel()
        if self._background:
            await asyncio.wait(self._background)
        while self._open:
            name, opened = self._open.popitem()
            await close_safely(opened.backend, f"vision backend {name}")

    async def _answer(
        self, name: str, capabilities: frozenset[str] | set[str], do: Callable[[VisionBackend], Awaitable[T]]
    ) -> Answered[T]:
        opened = await self._opened(name)
        if not opened.backend.capabilities & capabilities:
            raise BackendUnavailable(f"it does not offer {' or '.join(sorted(capabilities))}")
        opened.asked += 1
        began, spent = monotonic(), opened.backend.cost
        try:
            value = await self._within(opened.backend, do)
        except BackendUnavailable as exc:
            self._failed(name, str(exc))
            raise
        finally:
            opened.asked -= 1
            await self._leave(name, opened)
        ms, cost = (monotonic() - began) * 1000, opened.backend.cost - spent
        before = self.health(name)
        self._health[name] = BackendHealth(before.answers + 1, cost=before.cost + cost)
        return Answered(value, name, ms=ms, cost=cost)

    async def _within(self, backend: VisionBackend, do: Callable[[VisionBackend], Awaitable[T]]) -> T:
        """Return the backend's answer within its deadline.

        An unexpected exception or a timeout becomes `BackendUnavailable`; a Handrail error is raised unchanged.
        """
        try:
            with anyio.fail_after(backend.deadline):
                return await do(backend)
        except HandrailError:
            raise
        except TimeoutError as exc:
            raise BackendUnavailable(f"it did not answer within {backend.deadline:g} s") from exc
        # A backend is plugin code; whatever goes wrong in it, the next of the chain may work.
        except Exception as exc:
            log.warning("vision backend %s failed", backend.name, exc_info=True)
            raise BackendUnavailable(f"it failed inside ({type(exc).__name__})") from exc

    async def _opened(self, name: str) -> _OpenBackend:
        async with self._locks.setdefault(name, anyio.Lock()):
            if name not in self._open:
                try:
                    self._open[name] = _OpenBackend(await self.opening(name))
                except BackendUnavailable as exc:
                    self._failed(name, str(exc))
                    raise
            return self._open[name]

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    async def _leave(self, name: str, opened: _OpenBackend) -> None:
        if opened.leaving and opened.asked == 0:
            opened.leaving = False
            await close_safely(opened.backend, f"vision backend {name}")

    def _failed(self, name: str, why: str) -> None:
        before = self.health(name)
        failures = before.failures_in_a_row + 1
        wait = min(MAX_BACKOFF_S, BACKOFF_S * math.ldexp(1, min(failures - 1, 16)))
        self._health[name] = replace(before, failures_in_a_row=failures, why=why, retry_at=monotonic() + wait)

    def _waiting(self, chain: Sequence[str], answered: str, passed: Sequence[PassedBackend]) -> list[PassedBackend]:
        """Return the backends before the one that answered that were not asked, since they failed recently."""
        asked = {one.backend for one in passed}
        before = (name for name in chain[: chain.index(answered)] if name not in asked)
        return [
            PassedBackend(name, f"{self.health(name).why} (tried again in {self.health(name).again_in:.0f} s)")
            for name in before
        ]


def clip_elements(elements: object, frame: Frame) -> tuple[Element, ...]:
    """Return a backend's elements clipped to the picture, without those outside.

    Raises `BackendUnavailable` for anything but a list of elements.
    """
    if not isinstance(elements, Sequence) or isinstance(elements, str | bytes):
        raise BackendUnavailable(f"it gave {type(elements).__name__} instead of a list of elements")
    found: list[Element] = []
    for element in cast("Sequence[object]", elements)[:MAX_ELEMENTS]:
        if not isinstance(element, Element):
            raise BackendUnavailable(f"it gave {type(element).__name__} among its elements")
        if not (isinstance(element.role, str) and isinstance(element.text, str)):  # pyright: ignore[reportUnnecessaryIsInstance] # plugin code
            raise BackendUnavailable(f"it gave an element with the role {element.role!r} and the text {element.text!r}")
        rect = _to_whole_rect(element.rect).intersect(frame.screen) if element.rect is not None else Rect(0, 0, 0, 0)
        if not rect.empty:
            found.append(replace(element, rect=rect, id=""))
    return tuple(found)


def _to_whole_rect(rect: Rect) -> Rect:
    """Return the rectangle with Python ints, from any integer type. Raises `BackendUnavailable` for other values."""
    try:
        return Rect(index(rect.x), index(rect.y), index(rect.width), index(rect.height))
    except (AttributeError, TypeError) as exc:
        raise BackendUnavailable(f"it gave the rectangle {rect!r}, which is none of whole pixels") from exc


def hash_frame(frame: Frame) -> str | None:
    """Return a hash of the picture and its place, equal for equal ones; None if the picture cannot be hashed."""
    try:
        view = memoryview(frame.pixels)
    except TypeError:
        return None
    # 128 bits, of the pixels as they lie in memory.
    pixels = hashlib.blake2b(view if view.c_contiguous else view.tobytes(), digest_size=16)
    return f"{frame.screen.corners()} {pixels.hexdigest()}"
