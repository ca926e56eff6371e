"""The capability `clipboard` of a desktop whose hands hold it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from handrail_gui.platforms.input_driver import ClipboardSelection, InputDriver


@dataclass(frozen=True, slots=True)
class DriverClipboard:
    """The clipboard of X11, Windows or macOS."""

    hands: InputDriver

    async def clipboard_text(self, selection: ClipboardSelection = "clipboard") -> str | None:
        return await self.hands.clipboard_text(selection)

    async def clipboard_formats(self, selection: ClipboardSelection = "clipboard") -> list[str]:
        return await self.hands.clipboard_formats(selection)

    async def write_clipboard(self, text: str, selection: ClipboardSelection = "clipboard") -> None:
        await self.hands.write_clipboard(text, selection)

    def borrowed(self) -> AbstractAsyncContextManager[None]:
        """Put all formats back at its end."""
        return self.hands.borrowed()

    async def close(self) -> None:
        """Do nothing; the input driver is closed by its own service."""
