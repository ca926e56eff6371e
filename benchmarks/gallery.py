"""`python -m benchmarks.gallery`: docs/toolkits.md and its pictures, made from the programs of `benchmarks.applications` as they are here."""

from __future__ import annotations

import asyncio
import base64
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from benchmarks.applications import APPLICATIONS, PATIENCE_S, running
from benchmarks.measure import Absent
from benchmarks.sessions import succeed
from handrail import Element

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "gallery"
WIDTH, QUALITY = 960, 55
HEAD = """# Roles and actions by toolkit

`python -m benchmarks.gallery` generates this page and its pictures from real programs on a private desktop: a text editor for GTK 3, the widget
factory of GTK 4, a form for Qt, LibreOffice, and a page in Chromium. For more about each toolkit, see [accessibility.md](accessibility.md).

## Elements by role

The number of elements with each role that a program reports, and the actions of `execute_accessible` that they accept. An empty cell means that
the program shows no such element.
"""
GALLERY = """
## Annotated screenshots

Pictures from `observe_screen` with `image: "annotated"`: each id is next to its element and covers nothing.
"""


async def main() -> None:
    """Make the page; a program that is not installed is left out and named."""
    PICTURES.mkdir(exist_ok=True)
    seen: dict[str, Sequence[Element]] = {}
    pictures: list[str] = []
    for name in APPLICATIONS:
        try:
            async with running(name) as (session, _):
                seen[name] = (await (await session.service("accessibility")).tree(deadline=PATIENCE_S)).elements
                result = await succeed(session, "observe_screen", {"image": "annotated"})
                (PICTURES / f"{name}.jpg").write_bytes(_small(base64.b64decode(result["image_b64"])))
        except Absent as exc:
            print(f"{name}: {exc}")
        else:
            pictures.append(f"### {name}\n\n![{name} with the ids of its elements](gallery/{name}.jpg)\n")
    (DOCS / "toolkits.md").write_text("\n".join([HEAD, *_table(seen), GALLERY, *pictures]))


def _table(seen: dict[str, Sequence[Element]]) -> Iterable[str]:
    roles = sorted({element.role for elements in seen.values() for element in elements})
    yield f"| role | {' | '.join(seen)} |"
    yield f"|---|{'---|' * len(seen)}"
    for role in roles:
        yield f"| {role} | {' | '.join(_told(elements, role) for elements in seen.values())} |"


def _told(elements: Sequence[Element], role: str) -> str:
    """Return the number of elements, and their actions, the most frequent first."""
    own = [element for element in elements if element.role == role]
    actions: Counter[str] = Counter(action for element in own for action in element.actions)
    grouped: defaultdict[int, list[str]] = defaultdict(list)
    for action, count in actions.items():
        grouped[count].append(action)
    told = ", ".join(action for count in sorted(grouped, reverse=True) for action in grouped[count])
    return f"{len(own)}: {told}" if told else str(len(own) or "")


def _small(picture: bytes) -> bytes:
    import cv2
    import numpy as np

    image = cv2.imdecode(np.frombuffer(picture, np.uint8), cv2.IMREAD_COLOR)
    if image is None:
        raise ValueError("the picture cannot be read")
    height = image.shape[0] * WIDTH // image.shape[1]
    small = cv2.resize(image, (WIDTH, height), interpolation=cv2.INTER_AREA)
    return cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, QUALITY])[1].tobytes()


if __name__ == "__main__":
    asyncio.run(main())
