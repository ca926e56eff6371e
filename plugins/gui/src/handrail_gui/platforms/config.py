"""The settings of this plugin, `[plugins.gui]`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from handrail.desktop.key_chords import ChordName

# What reaches past the programs on the screen: to a launcher, a secure screen, another console.
DEFAULT_BLOCKED_KEYS = (
    "super+r",
    "ctrl+alt+delete",
    "ctrl+alt+backspace",
    *(f"ctrl+alt+f{number}" for number in range(1, 13)),
)


class GuiConfig(BaseModel):
    """Settings for operating desktops."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    blocked_keys: tuple[ChordName, ...] = Field(
        default=DEFAULT_BLOCKED_KEYS, description="Chords that are never pressed, in any spelling."
    )
    terminals: Literal["judge", "refuse"] = Field(
        default="judge",
        description="Keys into a terminal are commands: judge them as such, or refuse them all.",
    )
    pause: float = Field(
        default=2.0,
        ge=0,
        le=60,
        description="Seconds without a person's own mouse and keyboard before an agent uses them on their desktop; 0: no waiting.",
    )
    give_back: bool = Field(
        default=True,
        description="On a person's own desktop with X11: give the focus and the pointer back after an action that took them.",
    )
    lock_command: tuple[str, ...] | None = Field(
        default=None, description="The program and arguments that lock the screen. Default: what is found here."
    )
