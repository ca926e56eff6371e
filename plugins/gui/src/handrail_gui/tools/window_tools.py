"""The Window & Clipboard tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

import anyio.to_thread
from pydantic import Field

from handrail import Downstream, InvalidArguments, Read, ToolContext, Window, Write, tool
from handrail_gui.observe import capture
from handrail_gui.observe.outline import format_title, format_window_title
from handrail_gui.tools.screen_tools import LINUX_ONLY

if TYPE_CHECKING:
    from handrail_gui.act.focus_restore import FocusRestorer
    from handrail_gui.platforms.input_driver import ClipboardDriver, InputDriver

# Of the clipboard's text.
MAX_SHOWN_BYTES = 51_200

# Written out here: a tool's annotations are read at start, and `handrail_gui.platforms.input_driver` is not needed then.
ClipboardSelection = Literal["clipboard", "primary"]
SELECTION_DESCRIPTION = "primary: what is selected."

WindowName = Annotated[
    str, Field(min_length=1, description="Its id, or a part of the title, unique among the windows.")
]
WindowLayout = Literal["left_half", "right_half", "top_half", "bottom_half", "maximize", "minimize", "restore"]


@tool(
    layer="window",
    title="List windows",
    effects=[Read("windows")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=10,
)
async def window_list(*, context: ToolContext) -> dict[str, Any]:
    """All windows, topmost first: id, title, process, pid, x, y, width, height, frame, monitor, state, active; and the monitors.

    Screen pixels; `frame` [x1, y1, x2, y2] includes the decoration.
    """
    screen = await context.service("screen")
    monitors = [monitor.corners() for monitor in await screen.monitors()]
    return {"windows": [_build_window_entry(window) for window in await screen.windows()], "monitors": monitors}


@tool(
    layer="window",
    title="Focus window",
    effects=[Write("windows")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=10,
)
async def window_focus(title: WindowName, *, context: ToolContext) -> dict[str, Any]:
    """Bring a window to the front and give it the keyboard, also when it is minimized. Fails if it does not get it."""
    screen, hands = await context.service("screen"), await context.service("hands")
    window = capture.find_window(await screen.windows(), title)
    context.checkpoint()
    if not await hands.activate(window.id):
        raise Downstream(
            f"the window {format_window_title(window)!r} did not get the focus",
            hint="an open menu or dialog may hold it: press esc by execute_gui, then try again",
        )
    lent: FocusRestorer = await context.service("lent")
    lent.forget()
    return {"focused": True, "title": format_window_title(window)}


@tool(
    layer="window",
    title="Close window",
    effects=[Write("windows")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=10,
    loadable=True,
)
async def window_close(title: WindowName, *, context: ToolContext) -> dict[str, Any]:
    """Ask a window to close, as a click on its cross does. Returns closed: false when its program asks something first, or takes longer."""
    screen, hands = await context.service("screen"), await context.service("hands")
    window = capture.find_window(await screen.windows(), title)
    context.checkpoint()
    return {"closed": await hands.ask_to_close(window.id), "title": format_window_title(window)}


@tool(
    layer="window",
    title="Resize window",
    effects=[Write("windows")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=15,
)
async def resize_window(
    width: Annotated[int | None, Field(ge=1, le=16384, description="Screen pixels, without decoration.")] = None,
    height: Annotated[int | None, Field(ge=1, le=16384, description="Likewise.")] = None,
    x: Annotated[int | None, Field(description="Left edge, screen pixels.")] = None,
    y: Annotated[int | None, Field(description="Top edge.")] = None,
    title: Annotated[str | None, Field(description="Part of the title. Default: the active window.")] = None,
    layout: Annotated[WindowLayout | None, Field(description="Instead of numbers.")] = None,
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Move or resize a window; returns resized and its bounds as they are afterwards."""
    numbers = (x, y, width, height)
    if (layout is None) == (all(number is None for number in numbers)):
        raise InvalidArguments("give either a layout or some of width, height, x and y")
    screen, hands = await context.service("screen"), await context.service("hands")
    window = await _resolve_window(screen, title)
    context.checkpoint()
    if layout in ("maximize", "minimize", "restore"):
        done = await _change_state(hands, window.id, layout)
        now = next((found for found in await screen.windows() if found.id == window.id), None)
        return _build_resize_result(now, window, done=done)
    if layout is not None:
        placed = await hands.place_in(window.id, layout)
    else:
        from handrail_gui.platforms.input_driver import WindowPlacement

        placed = await hands.place(window.id, WindowPlacement(x, y, width, height))
    return _build_resize_result(placed.window, window, done=placed.done)


@tool(
    layer="window",
    title="Read clipboard",
    effects=[Read("clipboard")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=30,
)
async def clipboard_read(
    selection: Annotated[ClipboardSelection, Field(description=SELECTION_DESCRIPTION)] = "clipboard",
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """The clipboard's text as content (null when it holds none) and the formats it has.

    Of a text beyond 50 KB the whole is kept as an artifact.
    """
    clipboard: ClipboardDriver = await context.service("clipboard")
    text = await clipboard.clipboard_text(selection)
    formats = [format_title(name) for name in await clipboard.clipboard_formats(selection)]
    # No character has more bytes than four: what may be too long is measured.
    data = text.encode("utf-8", "replace") if text and len(text) * 4 > MAX_SHOWN_BYTES else b""
    if len(data) <= MAX_SHOWN_BYTES:
        return {"content": text, "formats": formats, "truncated": False}
    artifact = context.artifacts.create()
    await anyio.to_thread.run_sync(artifact.write, data)
    shown = data[:MAX_SHOWN_BYTES].decode("utf-8", "ignore")
    return {"content": shown, "formats": formats, "truncated": True, "artifact": artifact.wire()}


@tool(
    layer="window",
    title="Write clipboard",
    effects=[Write("clipboard")],
    platforms=LINUX_ONLY,
    exclusive="desktop",
    timeout=15,
)
async def clipboard_write(
    text: Annotated[str, Field(max_length=10_000_000, description="The new content.")],
    selection: Annotated[ClipboardSelection, Field(description=SELECTION_DESCRIPTION)] = "clipboard",
    *,
    context: ToolContext,
) -> dict[str, Any]:
    """Replace the clipboard's content by text; returns written and length (characters)."""
    clipboard: ClipboardDriver = await context.service("clipboard")
    await clipboard.write_clipboard(text, selection)
    if await clipboard.clipboard_text(selection) != text:
        raise Downstream("another program took the clipboard at once; the text is not in it")
    return {"written": True, "length": len(text)}


async def _change_state(hands: InputDriver, window: str, layout: Literal["maximize", "minimize", "restore"]) -> bool:
    change = {"maximize": hands.maximize, "minimize": hands.minimize, "restore": hands.restore}
    return await change[layout](window)


async def _resolve_window(screen: Any, title: str | None) -> Window:
    windows: list[Window] = await screen.windows()
    if title is not None:
        return capture.find_window(windows, title)
    active = next((window for window in windows if window.active), None)
    if active is None:
        raise Downstream("no window is active", hint="give its title")
    return active


def _build_resize_result(now: Window | None, before: Window, *, done: bool) -> dict[str, Any]:
    if now is None:
        raise Downstream(f"the window {format_window_title(before)!r} was closed meanwhile")
    return {
        "resized": done,
        "title": format_window_title(now),
        "state": now.state,
        "bounds": {"x": now.rect.x, "y": now.rect.y, "width": now.rect.width, "height": now.rect.height},
    }


def _build_window_entry(window: Window) -> dict[str, Any]:
    return {
        "id": window.id,
        "title": format_window_title(window),
        "process": format_title(window.process),
        "pid": window.pid,
        "x": window.rect.x,
        "y": window.rect.y,
        "width": window.rect.width,
        "height": window.rect.height,
        "frame": window.frame.corners() if window.frame else None,
        "monitor": window.monitor,
        "state": window.state,
        "active": window.active,
    }
