"""The vision backend `ocr`: what is written on the screen, and the boxes and icons around it."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from handrail import BackendContext, Element, Frame, Rect, VisionBackend
from handrail_vision_ocr.reader_process import ReaderProcess
from handrail_vision_ocr.worker_protocol import FoundItem


class OcrConfig(BaseModel):
    """`[backends.ocr]`"""

    model_config = ConfigDict(extra="forbid", frozen=True)

    threads: Annotated[int, Field(ge=1, le=64)] = Field(default=2, description="Processors that reading may use.")
    confidence: Annotated[float, Field(ge=0, le=1)] = Field(
        default=0.5, description="Text that is less sure than this, from 0 to 1, is left out."
    )
    controls: bool = Field(default=True, description="Whether boxes and icons are looked for beside text.")
    deadline: Annotated[float, Field(gt=0, le=600)] = Field(default=30, description="Seconds for one picture.")


class OcrBackend(VisionBackend):
    """Backend that finds text lines, boxes and icons with models running on this machine's processor.

    A separate process does the reading; it is kept running, and killed if a request is cancelled or late.
    """

    name = "ocr"
    capabilities: ClassVar[frozenset[str]] = frozenset({"parse_screen", "ocr"})
    Config = OcrConfig
    config: OcrConfig

    def __init__(self, config: BaseModel | None = None) -> None:
        super().__init__(config)
        self.deadline = self.config.deadline
        self._reader: ReaderProcess | None = None

    @classmethod
    def missing(cls) -> str | None:
        """Return why it cannot be used on this machine, or None."""
        absent = [name for name in ("rapidocr", "onnxruntime", "cv2") if find_spec(name) is None]
        return f"it needs {', '.join(absent)}; handrail install handrail-vision-ocr brings them" if absent else None

    async def open(self, context: BackendContext) -> None:
        """Make ready; the models are loaded with the first picture, or by `warm_up`."""
        self._reader = ReaderProcess(
            context.environment, threads=self.config.threads, confidence=self.config.confidence
        )

    async def warm_up(self) -> None:
        """Load the models."""
        if self._reader is not None:
            await self._reader.warm_up()

    async def close(self) -> None:
        """End the process that reads."""
        if self._reader is not None:
            await self._reader.close()
            self._reader = None

    async def parse(self, frame: Frame, intent: str) -> Sequence[Element]:
        """Text lines from top to bottom, then boxes and icons."""
        assert self._reader is not None, "it is asked before it is open"
        seen = await self._reader.read(frame.pixels, place=frame.screen.corners(), controls=self.config.controls)
        return [_create_element(found, frame.screen) for found in seen]


def _create_element(found: FoundItem, screen: Rect) -> Element:
    x, y, width, height = found.box
    return Element(
        found.role,
        found.text,
        Rect(screen.x + x, screen.y + y, width, height),
        source="ocr" if found.role == "text" else "vision",
        confidence=found.confidence,
        fingerprint=f"{found.role}:{found.text or found.look}",
    )
