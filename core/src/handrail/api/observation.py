"""Observed screen contents: elements in one id space, and pictures with their mapping to the screen.

Two coordinate spaces, never mixed: *screen* pixels of the entire desktop (may be negative with several monitors) and
*image* pixels of one observation's picture (at most 1280 wide). `Transform` is the only conversion between them.
"""

from __future__ import annotations

import itertools
from collections import Counter, OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from handrail.errors import OutOfRange, StaleElement, StaleObservation

MAX_IMAGE_WIDTH = 1280
MAX_OBSERVATIONS = 50
MAX_ELEMENTS = 20_000

# Source, fingerprint, and which of several alike in one observation.
ElementIdentity = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle in pixels: left and top edge, width and height."""

    x: int
    y: int
    width: int
    height: int

    @property
    def right(self) -> int:
        return self.x + self.width

    @property
    def bottom(self) -> int:
        return self.y + self.height

    @property
    def center(self) -> tuple[int, int]:
        return self.x + self.width // 2, self.y + self.height // 2

    @property
    def empty(self) -> bool:
        return self.width <= 0 or self.height <= 0

    def contains(self, x: float, y: float) -> bool:
        """Return True if the point is inside; points on the right and bottom edges are outside."""
        return self.x <= x < self.right and self.y <= y < self.bottom

    def intersect(self, other: Rect) -> Rect:
        """Return the intersection; empty (width or height 0) if there is none."""
        x, y = max(self.x, other.x), max(self.y, other.y)
        return Rect(x, y, max(0, min(self.right, other.right) - x), max(0, min(self.bottom, other.bottom) - y))

    def corners(self) -> list[int]:
        """Return `[x1, y1, x2, y2]`, the form shown to models."""
        return [self.x, self.y, self.right, self.bottom]


@dataclass(frozen=True, slots=True)
class Transform:
    """Mapping between a picture and the screen: the screen rectangle it shows, and its size in pixels."""

    screen: Rect
    width: int
    height: int

    @classmethod
    def fit(cls, screen: Rect, *, max_width: int = MAX_IMAGE_WIDTH) -> Self:
        """Return the transform of a picture of `screen` that is at most `max_width` wide.

        The picture is never enlarged, and at least one pixel high.
        """
        width = min(screen.width, max_width)
        return cls(screen, width, max(1, round(screen.height * width / screen.width)))

    @property
    def scale(self) -> float:
        """Screen pixels for one image pixel."""
        return self.screen.width / self.width

    def to_screen(self, x: float, y: float) -> tuple[int, int]:
        """Return the screen pixel under the center of image pixel (x, y). Raises `OutOfRange` outside the image."""
        if not (0 <= x < self.width and 0 <= y < self.height):
            raise OutOfRange(
                f"the point ({x}, {y}) is outside the image, which is {self.width} wide and {self.height} high",
                hint="give pixels of the observation's own image",
            )
        return (
            self.screen.x + min(self.screen.width - 1, int((x + 0.5) * self.screen.width / self.width)),
            self.screen.y + min(self.screen.height - 1, int((y + 0.5) * self.screen.height / self.height)),
        )

    def rect_to_screen(self, rect: Rect) -> Rect:
        """Return the screen rectangle that an image rectangle covers, clipped to the image."""
        cut = rect.intersect(Rect(0, 0, self.width, self.height))
        x_scale, y_scale = self.screen.width / self.width, self.screen.height / self.height
        x1, y1 = round(cut.x * x_scale), round(cut.y * y_scale)
        x2, y2 = round(cut.right * x_scale), round(cut.bottom * y_scale)
        return Rect(self.screen.x + x1, self.screen.y + y1, x2 - x1, y2 - y1)

    def to_image(self, rect: Rect) -> Rect:
        """Return the image rectangle of a screen rectangle, clipped to the image."""
        x_scale, y_scale = self.width / self.screen.width, self.height / self.screen.height
        x1, y1 = round((rect.x - self.screen.x) * x_scale), round((rect.y - self.screen.y) * y_scale)
        x2, y2 = round((rect.right - self.screen.x) * x_scale), round((rect.bottom - self.screen.y) * y_scale)
        return Rect(x1, y1, x2 - x1, y2 - y1).intersect(Rect(0, 0, self.width, self.height))


@dataclass(frozen=True, slots=True)
class Frame:
    """Picture of a part of the screen, as it was at `taken` (monotonic seconds).

    `pixels` is a numpy array, height x width x 3, BGR, in screen pixels (not yet scaled); typed `Any` because core does
    not depend on numpy.
    """

    screen: Rect
    pixels: Any
    taken: float


@dataclass(frozen=True, slots=True)
class Window:
    """A top-level window; `rect` in screen pixels without decoration, `frame` with it, `id` as the platform names it."""

    id: str
    title: str
    process: str
    pid: int | None
    rect: Rect
    monitor: int = 0
    state: str = "normal"
    active: bool = False
    frame: Rect | None = None


@dataclass(frozen=True, slots=True)
class Element:
    """User interface element on the screen.

    `rect` is in screen pixels (None if not shown). `source` is where it was seen: accessibility, ocr, vision or dom.
    `ref` is the source's own handle, opaque to all other code. `fingerprint` stays the same for the same element in
    later observations. `id` is empty until the session's `Observations` has numbered it.
    """

    role: str
    text: str
    rect: Rect | None
    states: frozenset[str] = frozenset()
    source: str = "accessibility"
    confidence: float | None = None
    actions: tuple[str, ...] = ()
    value: str | None = None
    automation_id: str = ""
    window: str = ""
    # The `Window.id` of that window, where it is known.
    window_id: str = ""
    depth: int = 0
    ref: Any = None
    fingerprint: str = ""
    id: str = ""
    # The other sources that saw the same thing.
    also: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Observation:
    """Result of one observation of the screen: its elements, and the transform of its image if it has one.

    `windows` are the windows in view, used to check later whether a point still refers to the same target.
    """

    id: str
    elements: tuple[Element, ...]
    transform: Transform | None
    windows: tuple[Window, ...] = ()
    backend: str = ""
    truncated: bool = False


@dataclass(slots=True)
class Observations:
    """A session's memory of what it saw, and the only place where ids are given. Ids rise and are never reused."""

    _element_ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _observation_ids: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _observations: OrderedDict[str, Observation] = field(default_factory=OrderedDict[str, Observation])
    _elements: OrderedDict[str, Element] = field(default_factory=OrderedDict[str, Element])
    _known: dict[ElementIdentity, str] = field(default_factory=dict[ElementIdentity, str])
    _identities: dict[str, ElementIdentity] = field(default_factory=dict[str, ElementIdentity])

    def number(self, elements: Iterable[Element]) -> tuple[Element, ...]:
        """Return the elements with ids: those recognized by fingerprint keep their id, all others get the next one."""
        seen: Counter[tuple[str, str]] = Counter()
        numbered: list[Element] = []
        for element in elements:
            kind = (element.source, element.fingerprint)
            numbered.append(replace(element, id=self._id_for((*kind, seen[kind]))))
            seen[kind] += 1
            self.update(numbered[-1])
        self._forget()
        return tuple(numbered)

    def add(
        self,
        elements: Iterable[Element],
        *,
        transform: Transform | None = None,
        windows: Iterable[Window] = (),
        backend: str = "",
        truncated: bool = False,
    ) -> Observation:
        """Number the elements and remember them as the latest observation."""
        seen = Observation(
            f"o{next(self._observation_ids)}",
            self.number(elements),
            transform,
            tuple(windows),
            backend,
            truncated,
        )
        self._observations[seen.id] = seen
        while len(self._observations) > MAX_OBSERVATIONS:
            self._observations.popitem(last=False)
        return seen

    def get(self, observation_id: str | None = None) -> Observation:
        """Return the named observation, or the latest with an image. Raises `StaleObservation` if there is none."""
        if observation_id is not None:
            if found := self._observations.get(observation_id):
                return found
            raise StaleObservation(
                f"there is no observation {observation_id!r} any more", hint="call observe_screen again"
            )
        for seen in reversed(self._observations.values()):
            if seen.transform is not None:
                return seen
        raise StaleObservation(
            "coordinates need a picture they belong to, and none was taken yet", hint="call observe_screen first"
        )

    def element(self, element_id: str) -> Element:
        """Return the element as last seen. Raises `StaleElement` for an unknown or forgotten id."""
        if found := self._elements.get(element_id):
            return found
        raise StaleElement(
            f"there is no element {element_id!r} in this session", hint="observe again and use an id of the result"
        )

    def showing(self, element_id: str) -> Observation | None:
        """Return the latest observation that contains the element, or None if none is remembered."""
        return next(
            (s for s in reversed(self._observations.values()) if any(e.id == element_id for e in s.elements)), None
        )

    def latest(self) -> Observation | None:
        """Return the latest observation, with or without an image; None if there is none."""
        return next(reversed(self._observations.values()), None)

    def widest(self) -> Observation | None:
        """Return the observation whose image shows most of the screen, or None if none has an image."""
        pictured = [seen for seen in self._observations.values() if seen.transform is not None]
        return max(pictured, key=_shown_area, default=None)

    def update(self, element: Element) -> None:
        """Replace what is remembered of a numbered element by how it is now."""
        self._elements[element.id] = element
        self._elements.move_to_end(element.id)

    def _id_for(self, identity: ElementIdentity) -> str:
        known = self._known.get(identity) if identity[1] else None
        if known is None:
            known = f"e{next(self._element_ids)}"
            if identity[1]:
                self._known[identity] = known
                self._identities[known] = identity
        return known

    def _forget(self) -> None:
        while len(self._elements) > MAX_ELEMENTS:
            gone, _ = self._elements.popitem(last=False)
            if identity := self._identities.pop(gone, None):
                del self._known[identity]


def _shown_area(seen: Observation) -> int:
    """Return the number of screen pixels that the observation's image shows."""
    return seen.transform.screen.width * seen.transform.screen.height if seen.transform is not None else 0


def element_wire(element: Element, transform: Transform | None) -> Mapping[str, Any]:
    """Return an element as models see it, without empty fields.

    `bbox` is `[x1, y1, x2, y2]` in image pixels (screen pixels without an image).
    """
    rect = element.rect
    if rect is not None and transform is not None:
        rect = transform.to_image(rect)
    wire: dict[str, Any] = {
        "id": element.id,
        "role": element.role,
        "text": element.text,
        "bbox": rect.corners() if rect is not None else None,
        "states": sorted(element.states),
        "source": element.source,
    }
    if element.confidence is not None:
        wire["confidence"] = round(element.confidence, 3)
    if element.value is not None:
        wire["value"] = element.value
    if element.also:
        wire["also"] = list(element.also)
    return wire
