"""The actions of `execute_gui`: each aims, acts in atomic steps, waits until it is quiet, and says what it saw."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Any

import anyio

from handrail import (
    Accessibility,
    Denied,
    Downstream,
    InvalidArguments,
    KeyboardTarget,
    Rect,
    Screen,
    StaleObservation,
    ToolContext,
    ToolUnavailable,
)
from handrail.desktop.key_chords import KeyChord, find_blocked_chord, parse_chord
from handrail_gui.act import dialogs, targeting, wait_settled
from handrail_gui.act.action_types import GuiAction, MouseButton, ScrollDirection
from handrail_gui.act.focus_restore import CompletedAction, FocusRestorer
from handrail_gui.act.held_buttons import HeldButtons
from handrail_gui.act.keyboard_target import KeyboardTargetTracker
from handrail_gui.act.targeting import ActionTarget
from handrail_gui.act.text_entry import DELETE_CHORD, SELECT_ALL_CHORD, TextEntryResult, TextWriter
from handrail_gui.act.text_fields import is_focused_field
from handrail_gui.observe import outline
from handrail_gui.platforms.config import GuiConfig
from handrail_gui.platforms.input_driver import InputDriver, SurfaceCheck

# Button and number of presses of each kind of click; None takes the button that was asked for.
CLICK_BUTTONS: dict[str, tuple[MouseButton | None, int]] = {
    "click": (None, 1),
    "double_click": (None, 2),
    "triple_click": (None, 3),
    "right_click": ("right", 1),
    "middle_click": ("middle", 1),
}

EFFECT_TEXTS = {
    "confirmed": "it took effect",
    "partial": "it took effect in part",
    "none": "nothing changed",
    "unverified": "done, the effect is not known",
}

# They go where the focus is, unless a place is given.
KEYBOARD_ACTIONS = frozenset({"type", "replace_text", "hotkey", "press_key"})

# Where the pointer is afterwards is what these are about.
POINTER_KEEPING_ACTIONS = frozenset({"move_mouse", "mouse_down"})

# A key may do what nobody sees, such as copying, and so may a button that is only held.
INVISIBLE_ACTIONS = frozenset({"hotkey", "press_key", "mouse_down", "mouse_up"})

# Controls but tab and line ends, and halves of characters.
UNTYPABLE_CHARS = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

# Seconds for what a program shows under a pointer that has just come.
HOVER_S = 0.04


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """The arguments of one call, checked for their form."""

    action: GuiAction
    point: tuple[int, int] | None = None
    to: tuple[int, int] | None = None
    element_id: str | None = None
    observation_id: str | None = None
    text: str | None = None
    chord: KeyChord | None = None
    direction: ScrollDirection | None = None
    clicks: int = 5
    button: MouseButton = "left"
    settle: bool = True

    def told(self) -> str:
        """Describe on one line what will be done."""
        where = self.element_id or (f"({self.point[0]}, {self.point[1]})" if self.point else "")
        match self.action:
            case "type" | "replace_text":
                how = "type" if self.action == "type" else "replace the text by"
                told = f"{how} {len(self.text or '')} characters" + (f" at {where}" if where else "")
            case "hotkey" | "press_key":
                told = f"press {self.chord}"
            case "scroll":
                told = f"scroll {self.direction} by {self.clicks}" + (f" at {where}" if where else "")
            case "drag":
                told = f"drag from {where} to {self.to}"
            case _:
                told = f"{self.action.replace('_', ' ')}" + (f" at {where}" if where else "")
        return told


@dataclass(slots=True)
class ActionExecutor:
    """One call under way: what it needs of the desktop, and what it found out."""

    context: ToolContext
    request: ActionRequest
    hands: InputDriver
    screen: Screen
    accessibility: Accessibility | None
    target: ActionTarget | None = None
    written: TextEntryResult | None = None
    before: wait_settled.ScreenSnapshot | None = None
    # Where the pointer was moved last.
    at: tuple[int, int] | None = None

    async def run(self) -> dict[str, Any]:
        """Carry out the action and return its result. If anything fails, no key or button stays pressed."""
        try:
            await self.hands.check()
            self.target = await self._aim()
            lent: FocusRestorer = await self.context.service("lent")
            await lent.take(keys=self.target is None and self.request.action in KEYBOARD_ACTIONS)
            await self._do()
            result = await self._outcome()
            if given := await lent.give_back(self._done()):
                result["given_back"] = given
            return result
        except BaseException:
            # A screen that is gone holds nothing, and is not what went wrong first.
            with anyio.CancelScope(shield=True), contextlib.suppress(Downstream):
                await self.hands.release_all()
            raise

    def _done(self) -> CompletedAction:
        action = self.request.action
        return CompletedAction(
            self.at,
            clicked=self.at is not None and action != "scroll",
            keeps=action in POINTER_KEEPING_ACTIONS or not self.request.settle,
        )

    async def _aim(self) -> ActionTarget | None:
        request = self.request
        if request.element_id is not None and request.point is not None:
            raise InvalidArguments("give element_id or x and y, not both")
        if request.element_id is not None:
            return await targeting.resolve_element(
                self.context, self.hands, self.screen, self.accessibility, request.element_id
            )
        if request.point is not None:
            return await targeting.resolve_point(self.context, self.hands, *request.point, request.observation_id)
        return None

    async def _do(self) -> None:
        match self.request.action:
            case "click" | "double_click" | "triple_click" | "right_click" | "middle_click":
                await self._click()
            case "type" | "replace_text":
                await self._type()
            case "scroll":
                await self._scroll()
            case "hotkey" | "press_key":
                await self._press()
            case "move_mouse":
                await self._go()
            case "drag":
                await self._drag()
            case "mouse_down" | "mouse_up":
                await self._hold()

    async def _go(self) -> None:
        """Move to the target, and look at the screen once the program has shown that the pointer is there."""
        if self.target is not None:
            self.context.checkpoint()
            await self.hands.move(self.target.x, self.target.y)
            self.at = (self.target.x, self.target.y)
            if self.request.settle:
                await self.hands.worked_through()
                await anyio.sleep(HOVER_S)
        await self._remember()

    async def _remember(self) -> None:
        if self.request.settle:
            self.before = await wait_settled.take_snapshot(self.screen, self.accessibility)

    async def _click(self) -> None:
        self._need_target()
        await self._go()
        button, times = CLICK_BUTTONS[self.request.action]
        self.context.checkpoint()
        # The middle button pastes.
        async with self._into_terminal():
            await self.hands.click(button or self.request.button, times, self._sure())

    async def _type(self) -> None:
        text, replaces = self.request.text or "", self.request.action == "replace_text"
        if not text and (self.request.text is None or not replaces):
            raise InvalidArguments("there is no text to type", hint="give text")
        if (bad := UNTYPABLE_CHARS.search(text)) is not None:
            raise InvalidArguments(
                f"the text holds the character U+{ord(bad[0]):04X}, which nobody can type",
                hint="leave it out, or press_key",
            )
        if self.target is not None and not self._is_focused(self.target):
            await self._go()
            self.context.checkpoint()
            await self.hands.click("left", 1, self._sure())
            await wait_settled.wait_until_settled(
                self.before or await wait_settled.take_snapshot(self.screen, None),
                self.screen,
                self.hands,
                self.accessibility,
            )
        await self._remember()
        async with self._into_terminal() as focus:
            writer = TextWriter(self.context, self.hands, self.screen, self.accessibility, terminal=focus is not None)
            if not replaces:
                self.written = await writer.write(text)
                return
            for chord in (SELECT_ALL_CHORD, DELETE_CHORD):
                self._refuse_blocked(chord)
            element = self.target.element if self.target is not None else None
            self.written = await writer.replace(
                text, element if element and element.source == "accessibility" else None
            )

    def _is_focused(self, target: ActionTarget) -> bool:
        """Return True if the action replaces the text of an element that already has the focus: no click is needed."""
        return self.request.action == "replace_text" and target.element is not None and is_focused_field(target.element)

    async def _scroll(self) -> None:
        if self.request.direction is None:
            raise InvalidArguments("where to scroll is not given", hint="give direction: up, down, left or right")
        await self._go()
        for _ in range(self.request.clicks):
            self.context.checkpoint()
            await self.hands.scroll(self.request.direction)

    async def _press(self) -> None:
        if self.request.chord is None:
            raise InvalidArguments("there is no key to press", hint='give key, for example "ctrl+s"')
        self._refuse_blocked(self.request.chord)
        await self._remember()
        self.context.checkpoint()
        async with self._into_terminal():
            await self.hands.chord(self.request.chord)

    def _refuse_blocked(self, chord: KeyChord) -> None:
        """Raise `Denied` for keys that the settings block."""
        if (rule := find_blocked_chord(chord, self._config().blocked_keys)) is not None:
            raise Denied(
                f"the keys {chord} are blocked",
                hint="a person can change plugins.gui.blocked_keys",
                details={"rule": rule},
            )

    @contextlib.asynccontextmanager
    async def _into_terminal(self) -> AsyncGenerator[KeyboardTarget | None]:
        """Around keys: the terminal that they go to, as it was judged; None when they go to none. Keys into a terminal are commands."""
        focusing: KeyboardTargetTracker = await self.context.service("focus")
        focus = await focusing.still(self.context.invocation)
        if focus is not None and self._config().terminals == "refuse":
            raise Denied(
                "the active window is a terminal, where keys are commands, and the settings refuse them",
                hint='use execute_cli; a person may set [plugins.gui] terminals = "judge"',
            )
        whole = False
        try:
            yield focus
            whole = True
        finally:
            focusing.pressed(focus, whole=whole)

    def _config(self) -> GuiConfig:
        config = self.context.config
        return config if isinstance(config, GuiConfig) else GuiConfig()

    async def _drag(self) -> None:
        self._need_target()
        if self.request.to is None:
            raise InvalidArguments("where to drag to is not given", hint="give to_x and to_y")
        end = await targeting.resolve_point(self.context, self.hands, *self.request.to, self.request.observation_id)
        await self._go()
        self.context.checkpoint()
        await self.hands.press(self.request.button, self._sure())
        self.context.checkpoint()
        await self.hands.drag_over(end.x, end.y)
        self.at = (end.x, end.y)
        await self.hands.release(self.request.button)

    async def _hold(self) -> None:
        await self._go()
        held: HeldButtons = await self.context.service("held_input")
        self.context.checkpoint()
        if self.request.action == "mouse_down":
            await held.press(self.request.button, self._sure())
        else:
            await held.release(self.request.button)

    def _sure(self) -> SurfaceCheck | None:
        """Return the check made right before a button is pressed, or None without a target.

        Moving the pointer there takes a moment, as does reading the screen beforehand; another window may have come up
        meanwhile.
        """
        target = self.target
        return None if target is None else lambda surfaces: targeting.ensure_same_surface(surfaces, target)

    def _need_target(self) -> None:
        if self.target is None:
            raise InvalidArguments(
                f"{self.request.action} needs a place", hint="give element_id, or x and y of an observation's picture"
            )

    async def _outcome(self) -> dict[str, Any]:
        result: dict[str, Any] = {
            "action": self.request.action,
            "target": await self._target_told(),
            "coordinates": self._coordinates(),
            "effect": "unverified",
            "route": self._route(),
            "settled": None,
        }
        settled = None
        if self.before is not None:
            settled = await wait_settled.wait_until_settled(
                self.before,
                self.screen,
                self.hands,
                self.accessibility,
                patient=self.request.action not in INVISIBLE_ACTIONS,
                acted_on=self._acted_on(self.before),
            )
            result |= {"settled": settled.settled, "changed": self._for_picture(settled.changed)}
            if (
                dialog := await dialogs.describe_opened_dialog(self.context, self.accessibility, settled.changed)
            ) is not None:
                result["dialog"] = dialog
        result["effect"] = await self._effect(settled)
        if result["effect"] == "none" and (way := self._in_the_way()) is not None:
            result["in_the_way"] = way
            if (dialog := await dialogs.describe_dialog(self.context, self.accessibility, way)) is not None:
                result["dialog"] = dialog
        result["description"] = f"{self.request.told()}: {EFFECT_TEXTS[result['effect']]}"
        return result

    def _acted_on(self, before: wait_settled.ScreenSnapshot) -> list[Rect]:
        """Return the window that was clicked or had the keyboard focus, and the point where the pointer was left.

        Either is left out if it is not known.
        """
        if self.target is None:
            return [window.frame or window.rect for window in before.windows if window.active]
        surface = self.target.surface
        point = self.at or (self.target.x, self.target.y)
        return [*([surface.rect] if surface else []), Rect(*point, 1, 1)]

    async def _effect(self, settled: wait_settled.SettleResult | None) -> str:
        """Return confirmed, partial, none or unverified, claiming no more than is known."""
        if self.written is not None:
            return self.written.effect
        if self.request.action == "move_mouse":
            there = self.target is not None and await self.hands.pointer() == (self.target.x, self.target.y)
            return "confirmed" if there else "none"
        if settled is None:
            return "unverified"
        invisible = self.request.action in INVISIBLE_ACTIONS
        return "unverified" if invisible and settled.effect == "none" else settled.effect

    def _in_the_way(self) -> str | None:
        """Return the title of the active window if a different window was clicked.

        A dialog keeps the window it belongs to from responding.
        """
        clicked = self.target.surface if self.target is not None else None
        active = next((window for window in self.before.windows if window.active), None) if self.before else None
        if clicked is None or active is None or clicked.state == "popup" or clicked.id == active.id:
            return None
        return outline.format_window_title(active)

    def _route(self) -> str:
        if self.written is not None:
            return self.written.route
        return "keys" if self.request.action in ("hotkey", "press_key") else "pointer"

    def _coordinates(self) -> dict[str, Any] | None:
        if self.target is None:
            return None
        x, y = self.target.image or (None, None)
        return {"x": x, "y": y, "screen": [self.target.x, self.target.y]}

    async def _target_told(self) -> str | None:
        if self.target is not None:
            return self.target.what
        if self.before is None:
            return None
        active = next((outline.format_window_title(window) for window in self.before.windows if window.active), None)
        focused = outline.describe_element(self.before.focused) if self.before.focused else None
        return " in ".join(part for part in (focused, f'"{active}"' if active else None) if part) or None

    def _for_picture(self, changed: dict[str, Any]) -> dict[str, Any]:
        """Convert the changed region to pixels of the latest picture.

        Without such a picture, or if it shows another part of the screen, `screen_changed` replaces the region.
        """
        if "region" not in changed:
            return changed
        told = {key: value for key, value in changed.items() if key != "region"}
        try:
            transform = self.context.observations.get().transform
        except StaleObservation:
            return told | {"screen_changed": True}
        x1, y1, x2, y2 = changed["region"]
        region = transform.to_image(Rect(x1, y1, x2 - x1, y2 - y1)) if transform else None
        return told | ({"region": region.corners()} if region and not region.empty else {"screen_changed": True})


async def find_accessibility(context: ToolContext) -> Accessibility | None:
    """Return the desktop's accessibility tree, or None if no plugin supplies one."""
    try:
        return await context.service("accessibility")
    except ToolUnavailable:
        return None


def build_request(
    action: GuiAction,
    *,
    x: int | None,
    y: int | None,
    to_x: int | None,
    to_y: int | None,
    key: str | None,
    keys: list[str] | None,
    **rest: Any,
) -> ActionRequest:
    """Build the request for a call's arguments; raise `InvalidArguments` for half a point or an unknown key."""
    chord = parse_chord([*([key] if key else []), *(keys or [])]) if key or keys else None
    point = targeting.parse_point(x, y, names="x and y")
    return ActionRequest(
        action, point=point, to=targeting.parse_point(to_x, to_y, names="to_x and to_y"), chord=chord, **rest
    )
