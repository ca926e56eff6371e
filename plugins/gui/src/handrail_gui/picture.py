"""Pictures for models: scaled, passwords covered, elements marked with their ids, as JPEG. Blocking; a few milliseconds."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from handrail import Downstream, Element, Frame, Rect, Transform
from handrail_gui.opencv import cv2

if TYPE_CHECKING:
    from cv2.typing import MatLike

QUALITY = 80

FONT = cv2.FONT_HERSHEY_SIMPLEX
FONT_SCALE = 0.36
# Pixels of an id's tag around its letters.
PADDING = 2

# Neighbours get different colours (BGR), all dark enough for white letters.
COLOURS = ((180, 60, 0), (40, 40, 200), (30, 120, 20), (150, 30, 130), (0, 95, 170), (120, 100, 0))
COVER = (90, 90, 90)


def scaled(frame: Frame, transform: Transform) -> MatLike:
    """The frame's pixels at the transform's size: the frame's own array where nothing has to be scaled."""
    pixels: MatLike = frame.pixels
    height, width = pixels.shape[:2]
    if (width, height) == (transform.width, transform.height):
        return pixels
    return cv2.resize(pixels, (transform.width, transform.height), interpolation=cv2.INTER_AREA)


def without_passwords(pixels: MatLike, elements: Iterable[Element], transform: Transform) -> MatLike:
    """The same pixels; a copy with every password field painted over, where there is one."""
    boxes = [transform.to_image(e.rect) for e in elements if "password" in e.states and e.rect is not None]
    if not boxes:
        return pixels
    covered = pixels.copy()
    for box in boxes:
        cv2.rectangle(covered, (box.x, box.y), (box.right, box.bottom), COVER, cv2.FILLED)
    return covered


def encoded(pixels: MatLike) -> str:
    """The picture as a JPEG in base64."""
    done, data = cv2.imencode(".jpg", pixels, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
    if not done:
        raise Downstream("the picture could not be encoded")
    return base64.b64encode(data.tobytes()).decode("ascii")


def interactive(element: Element) -> bool:
    """Whether a person would click it or type into it."""
    able = bool(element.actions) or "editable" in element.states
    return able and not element.states & {"disabled", "offscreen"}


def marked(pixels: MatLike, elements: Sequence[Element], transform: Transform) -> MatLike:
    """A copy with a box around every interactive element and its id beside it, where it hides the least.

    What holds others and cannot be typed into is left out: in Chromium every part of a page can be clicked.
    """
    picture = pixels.copy()
    found = [(e, transform.to_image(e.rect)) for e in elements if e.rect and interactive(e)]
    found = [(element, box) for element, box in found if not box.empty]
    boxes = [
        (element.id, box)
        for element, box in found
        if "editable" in element.states or not any(other != box and _holds(box, other) for _, other in found)
    ]
    for index, (_, box) in enumerate(boxes):
        cv2.rectangle(picture, (box.x, box.y), (box.right - 1, box.bottom - 1), COLOURS[index % len(COLOURS)], 1)
    tags = _Tags(Rect(0, 0, transform.width, transform.height), [box for _, box in boxes])
    for index, (id, box) in enumerate(boxes):
        tags.draw(picture, id, box, COLOURS[index % len(COLOURS)])
    return picture


@dataclass(slots=True)
class _Tags:
    """Places for tags that are still free."""

    image: Rect
    boxes: Sequence[Rect]
    taken: list[Rect] = field(default_factory=list[Rect])

    def draw(self, picture: MatLike, id: str, box: Rect, colour: tuple[int, int, int]) -> None:
        (width, height), _ = cv2.getTextSize(id, FONT, FONT_SCALE, 1)
        place = self._best(box, width + 2 * PADDING, height + 2 * PADDING)
        self.taken.append(place)
        cv2.rectangle(picture, (place.x, place.y), (place.right - 1, place.bottom - 1), colour, cv2.FILLED)
        at = (place.x + PADDING, place.bottom - PADDING - 1)
        cv2.putText(picture, id, at, FONT, FONT_SCALE, (255, 255, 255), 1, cv2.LINE_AA)

    def _best(self, box: Rect, width: int, height: int) -> Rect:
        inside = [place for place in _around(box, width, height) if place.intersect(self.image) == place]
        places = inside or [Rect(max(0, min(box.x, self.image.width - width)), max(0, box.y), width, height)]
        return min(places, key=lambda place: self._hidden(place, box))

    def _hidden(self, place: Rect, box: Rect) -> int:
        """How much a tag would hide there: another tag is worst, another element bad, the element itself least bad."""
        tags = sum(_area(place.intersect(other)) for other in self.taken)
        others = sum(_area(place.intersect(other)) for other in self.boxes if other != box)
        return 100 * tags + 4 * others + _area(place.intersect(box))


def _around(box: Rect, width: int, height: int) -> Iterator[Rect]:
    """Places for a tag: on the upper edge from the left, on the lower edge, beside it; then in its corners."""
    for y in (box.y - height, box.bottom):
        yield Rect(box.x, y, width, height)
        yield Rect(box.right - width, y, width, height)
    yield Rect(box.right, box.y, width, height)
    yield Rect(box.x - width, box.y, width, height)
    for x in (box.x, box.right - width):
        yield Rect(x, box.y, width, height)
        yield Rect(x, box.bottom - height, width, height)


def _area(rect: Rect) -> int:
    return rect.width * rect.height


def _holds(outer: Rect, inner: Rect) -> bool:
    return outer.intersect(inner) == inner
