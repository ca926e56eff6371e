"""Tools for a user who operates a desktop remotely: `handrail control`. Agents may not call them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio
from pydantic import Field, SecretStr

from handrail import Input, InvalidArguments, ToolContext, Write, tool
from handrail_gui.platforms.config import GuiConfig
from handrail_gui.tools.screen_tools import LINUX_ONLY

if TYPE_CHECKING:
    from handrail_gui.platforms.input_driver import InputDriver
    from handrail_gui.platforms.x11.device import DesktopDevice

DeviceAction = Literal["lock_screen", "keep_awake_on", "keep_awake_off"]
ManualAction = Literal["move", "click", "right_click", "scroll", "key_combo", "type", "mouse_down", "mouse_up"]
Pixels = Annotated[int | None, Field(ge=-65536, le=65536)]


@tool(
    layer="window",
    title="Control the device",
    effects=[Write("device", arg="action")],
    platforms=LINUX_ONLY,
    by_hand=True,
    timeout=30,
)
async def device_control(
    action: Annotated[DeviceAction, Field(description="What to do.")], *, context: ToolContext
) -> dict[str, Any]:
    """Lock the screen, or keep it from going to sleep until that is taken back. Returns action, description and effect."""
    device: DesktopDevice = await context.service("device")
    config = context.config if isinstance(context.config, GuiConfig) else GuiConfig()
    if action == "lock_screen":
        told = await device.lock(config.lock_command)
    elif action == "keep_awake_on":
        told = await device.keep_awake()
    else:
        told = await device.let_sleep()
    return {"action": action, "description": told, "effect": "confirmed"}


@tool(
    layer="window",
    title="Work mouse and keyboard by hand",
    effects=[Input("desktop")],
    platforms=LINUX_ONLY,
    by_hand=True,
    timeout=30,
)
async def manual_control(
    action: Annotated[ManualAction, Field(description="What to do.")],
    x: Annotated[Pixels, Field(description="Screen pixel to go to first.")] = None,
    y: Annotated[Pixels, Field(description="Likewise.")] = None,
    dx: Annotated[Pixels, Field(description="Pixels to the right of where the pointer is.")] = None,
    dy: Annotated[Pixels, Field(description="Pixels down.")] = None,
    keys: Annotated[str | None, Field(description='key_combo: "ctrl+s".')] = None,
    text: Annotated[SecretStr | None, Field(max_length=10_000, description="type: what to type, by keys.")] = None,
    amount: Annotated[int, Field(ge=-100, le=100, description="scroll: notches down; negative: up.")] = 3,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Move, click, scroll or press keys as a person does from elsewhere. Returns action, and x, y of the pointer afterwards."""
    from handrail.desktop.key_chords import parse_chord

    hands: InputDriver = (await context.service("hands")).by_hand()
    chord = parse_chord(keys) if keys else None
    if action == "key_combo" and chord is None:
        raise InvalidArguments("there is no key to press", hint='give keys, for example "ctrl+s"')
    if action == "type" and not text:
        raise InvalidArguments("there is nothing to type", hint="give text")
    if (to := await _resolve_target(hands, (x, y), (dx, dy))) is not None:
        await hands.move(*to)
    elif action == "move":
        raise InvalidArguments("where to move is not given", hint="give x and y, or dx and dy")
    if chord is not None and action == "key_combo":
        await hands.chord(chord)
    elif text is not None and action == "type":
        await _type_text(hands, text.get_secret_value(), context)
    elif action == "scroll":
        for _ in range(abs(amount)):
            await hands.scroll("down" if amount > 0 else "up")
    else:
        await _use_button(hands, action)
    at = await hands.pointer()
    return {"action": action, "x": at[0], "y": at[1], "description": f"{action.replace('_', ' ')} done"}


async def _type_text(hands: InputDriver, text: str, context: ToolContext) -> None:
    try:
        for piece in await hands.pieces(text):
            context.checkpoint()
            await hands.type_piece(piece)
        await hands.worked_through()
    finally:
        # Keys lent to letters would stay so, and nobody else knows of them.
        with anyio.CancelScope(shield=True):
            await hands.release_all()


async def _use_button(hands: InputDriver, action: ManualAction) -> None:
    """Use a button of the mouse where the action is one of a button's."""
    match action:
        case "click":
            await hands.click("left", 1)
        case "right_click":
            await hands.click("right", 1)
        case "mouse_down":
            await hands.press("left")
        case "mouse_up":
            await hands.release("left")
        case _:
            return


async def _resolve_target(
    hands: InputDriver, place: tuple[int | None, int | None], step: tuple[int | None, int | None]
) -> tuple[int, int] | None:
    """Return the point to move to first; None to stay."""
    given, stepped = (any(number is not None for number in pair) for pair in (place, step))
    if given and stepped:
        raise InvalidArguments("give x and y, or dx and dy, not both")
    if given:
        x, y = place
        if x is None or y is None:
            raise InvalidArguments("a place has both x and y")
        return x, y
    if not stepped:
        return None
    at = await hands.pointer()
    return at[0] + (step[0] or 0), at[1] + (step[1] or 0)
