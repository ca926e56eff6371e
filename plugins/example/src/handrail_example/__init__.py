"""The vision backend `example`: sees the patch of the screen that has one colour."""

from anyio.to_thread import run_sync
from pydantic import BaseModel, Field

from handrail import Element, Frame, Rect, VisionBackend, hookimpl


class ExampleConfig(BaseModel, extra="forbid", frozen=True):
    """`[backends.example]`"""

    colour: str = Field(default="#282828", pattern="^#[0-9a-fA-F]{6}$", description="The colour to look for.")


class Example(VisionBackend):
    """Sees one patch."""

    name = "example"
    capabilities = frozenset({"parse_screen"})
    Config = ExampleConfig
    config: ExampleConfig

    async def parse(self, frame: Frame, intent: str) -> list[Element]:
        return await run_sync(patch, frame, self.config.colour, abandon_on_cancel=True)


def patch(frame: Frame, colour: str) -> list[Element]:
    """Return the smallest rectangle that contains all pixels of the colour, as an element; empty if there are none."""
    rows, columns = (frame.pixels == list(bytes.fromhex(colour[1:]))[::-1]).all(axis=2).nonzero()
    if not len(rows):
        return []
    x, y, right, bottom = (int(edge) for edge in (columns.min(), rows.min(), columns.max(), rows.max()))
    rect = Rect(frame.screen.x + x, frame.screen.y + y, right - x + 1, bottom - y + 1)
    return [Element("patch", colour, rect, source="vision", fingerprint=colour)]


@hookimpl
def handrail_register_vision_backends() -> list[type[VisionBackend]]:
    """Return the backend `example`."""
    return [Example]
