"""Every function of Gemini's computer use tool, and what it means in calls of Handrail's tools.

Two dialects share one table, since their names do not collide: that of the models up to Gemini 3.1 (`click_at`), and that of Gemini 3.5 and
later (`click`). Source: "Supported actions" of https://cloud.google.com/vertex-ai/generative-ai/docs/computer-use and
https://ai.google.dev/gemini-api/docs/computer-use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, Protocol
from urllib.parse import urlsplit

from handrail import TO_999, Frame, OutOfRange, PlannedAction, Size, Transform
from handrail.json_types import is_mapping

# What the model is told that it works on.
Environment = Literal["desktop", "browser", "mobile"]
GUI_TOOL: Final = "execute_gui"
BROWSER_TOOL: Final = "execute_browser"

# The model counts lengths in thousandths, as it does places. A notch of a wheel is about so many pixels.
THOUSAND: Final = 1000
# What a model counts is never as many.
MAX_NUMBER: Final = 1_000_000
PIXELS_PER_NOTCH: Final = 100
MAX_NOTCHES: Final = 100
# What a safety check says that has nothing to ask.
ALLOWING_WORDS: Final = frozenset({"regular", "allow", "allowed"})
DIRECTIONS: Final = ("up", "down", "left", "right")
MIN_WAIT_S, MAX_WAIT_S = 0.1, 60.0


class UnmappableCall(Exception):
    """A call of the model that cannot be carried out; the text tells the model why."""


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """One function call of the model. `id` is unique in its turn; `given_id` is what the API gave, if it gave one."""

    id: str
    name: str
    args: Mapping[str, Any]
    given_id: str | None = None


@dataclass(slots=True)
class HeldKeys:
    """The keys that the model holds down. They are pressed together with the next key, and not before: nothing stays pressed in between."""

    used: dict[str, bool] = field(default_factory=dict[str, bool])

    @property
    def keys(self) -> list[str]:
        return list(self.used)

    def press(self) -> None:
        """Record that a key was pressed together with the held ones."""
        self.used = dict.fromkeys(self.used, True)


class CallSettings(Protocol):
    """User settings on which calls depend."""

    @property
    def environment(self) -> Environment: ...
    @property
    def browser(self) -> str: ...
    @property
    def search_url(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ModelSurface:
    """Coordinate system of the model's numbers: the picture that was sent, and its position on the screen.

    `platform` is a `sys.platform`.
    """

    frame: Frame
    sent: Size
    settings: CallSettings
    platform: str
    held: HeldKeys = field(default_factory=HeldKeys)

    @property
    def environment(self) -> Environment:
        return self.settings.environment

    @property
    def main_key(self) -> str:
        """The modifier used in shortcuts with letters."""
        return "command" if self.platform == "darwin" else "ctrl"

    def place(self, call: FunctionCall, x: str = "x", y: str = "y") -> tuple[int, int]:
        """Return the screen pixel given by two arguments."""
        values = [_get_number(call, name) for name in (x, y)]
        try:
            inside = TO_999.point(values[0], values[1], self.sent)
        except OutOfRange as exc:
            raise UnmappableCall(str(exc)) from exc
        return Transform(self.frame.screen, self.sent.width, self.sent.height).to_screen(*inside)

    def notches(self, call: FunctionCall, direction: str, default: int, *names: str) -> int:
        """Return the wheel notches for the length given by the first argument present."""
        if "magnitude_in_wheel_clicks" in call.args:
            wanted = _get_number(call, "magnitude_in_wheel_clicks")
        else:
            name = next((name for name in names if name in call.args), "")
            screen = self.frame.screen
            length = screen.height if direction in ("up", "down") else screen.width
            wanted = (_get_number(call, name) if name else default) * length / THOUSAND / PIXELS_PER_NOTCH
        return min(MAX_NOTCHES, max(1, round(wanted)))


MappedActions = Sequence[PlannedAction]
ActionMapper = Callable[[FunctionCall, ModelSurface], MappedActions]


def map_call(call: FunctionCall, surface: ModelSurface) -> tuple[PlannedAction, ...]:
    """Return the actions for a call of the model; empty if it only looks.

    A call that cannot be carried out becomes one action with its `problem`.
    """
    try:
        mapper = FUNCTIONS.get(call.name)
        if mapper is None:
            raise UnmappableCall(f"there is no function {call.name!r}")
        ask = _build_question(call)
        actions = mapper(call, surface)
        if ask is not None and not actions:
            # A question needs a call that it is about.
            actions = [PlannedAction("wait", {"seconds": MIN_WAIT_S})]
    except UnmappableCall as exc:
        return (PlannedAction(call.name, dict(call.args), call.id, name=call.name, problem=str(exc)),)
    named = [replace(action, id=call.id, name=call.name) for action in actions]
    # A person is asked once about a function, before the first of its actions.
    return tuple(replace(action, ask=ask if place == 0 else None) for place, action in enumerate(named))


def is_approval_needed(call: FunctionCall) -> bool:
    """Return True if the model's safety check requires the user's approval.

    Any decision counts as requiring it unless it clearly allows the call.
    """
    decision = _get_safety_decision(call)
    return decision is not None and decision[0] not in ALLOWING_WORDS


def _build_question(call: FunctionCall) -> str | None:
    decision = _get_safety_decision(call)
    if decision is None or not is_approval_needed(call):
        return None
    said, explained = decision
    if said.startswith(("block", "den")):
        raise UnmappableCall(f"the model's safety check blocks it: {explained or 'no reason is given'}")
    return f"the model's safety check asks: {explained or f'may it carry out {call.name}?'}"


def _get_safety_decision(call: FunctionCall) -> tuple[str, str] | None:
    """Return the safety check's decision on a call and its explanation, or None."""
    given = call.args.get("safety_decision")
    if given is None:
        return None
    said = given if is_mapping(given) else {"decision": given}
    return str(said.get("decision") or "").lower(), str(said.get("explanation") or "").strip()


# Pointer


def _gui_action(action: str, **args: Any) -> PlannedAction:
    return PlannedAction(GUI_TOOL, {"action": action, **args})


def _check_no_keys_held(call: FunctionCall, surface: ModelSurface) -> None:
    if keys := surface.held.keys:
        raise UnmappableCall(f"{call.name} cannot be done while {', '.join(keys)} is held; call key_up first")


def _create_pointer_mapper(action: str) -> ActionMapper:
    def mapped(call: FunctionCall, surface: ModelSurface) -> MappedActions:
        _check_no_keys_held(call, surface)
        x, y = surface.place(call)
        return [_gui_action(action, x=x, y=y)]

    return mapped


def _map_long_press(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    x, y = surface.place(call)
    seconds = _get_seconds(call, 2)
    return [
        _gui_action("mouse_down", x=x, y=y),
        PlannedAction("wait", {"seconds": seconds}),
        _gui_action("mouse_up", x=x, y=y),
    ]


def _map_drag(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    """Both dialects have it, under different names of its arguments."""
    _check_no_keys_held(call, surface)
    start, end = (("start_x", "start_y"), ("end_x", "end_y"))
    if "start_x" not in call.args and "x" in call.args:
        start, end = (("x", "y"), ("destination_x", "destination_y"))
    x, y = surface.place(call, *start)
    to_x, to_y = surface.place(call, *end)
    return [_gui_action("drag", x=x, y=y, to_x=to_x, to_y=to_y)]


def _create_scroll_mapper(default: int) -> ActionMapper:
    def mapped(call: FunctionCall, surface: ModelSurface) -> MappedActions:
        _check_no_keys_held(call, surface)
        x, y = surface.place(call)
        direction = _get_direction(call)
        clicks = surface.notches(call, direction, default, "magnitude_in_pixels", "magnitude")
        return [_gui_action("scroll", x=x, y=y, direction=direction, clicks=clicks)]

    return mapped


def _map_scroll_document(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    direction = _get_direction(call)
    if direction in ("up", "down"):
        return [_gui_action("press_key", key=f"page{direction}")]
    x, y = surface.frame.screen.center
    return [
        _gui_action("scroll", x=x, y=y, direction=direction, clicks=surface.notches(call, direction, THOUSAND // 2))
    ]


# Keyboard


def _map_type(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    _check_no_keys_held(call, surface)
    typed = [_gui_action("type", text=_get_text(call, "text"))] if call.args.get("text") != "" else []
    return [*typed, *_build_enter(call, default=False)]


def _map_type_at(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    """Map a call that types at a point.

    Models are told that Enter follows and that the field is cleared first, unless they say otherwise. `replace_text`
    clears only verified text fields, so that clearing never reaches the cells of a sheet or the files of a folder.
    """
    _check_no_keys_held(call, surface)
    x, y = surface.place(call)
    clear = bool(call.args.get("clear_before_typing", True))
    text = "" if call.args.get("text") == "" else _get_text(call, "text")
    typed = [_gui_action("replace_text", text=text)] if clear else [_gui_action("type", text=text)] if text else []
    return [_gui_action("click", x=x, y=y), *typed, *_build_enter(call, default=True)]


def _build_enter(call: FunctionCall, *, default: bool) -> MappedActions:
    return [_gui_action("press_key", key="enter")] if call.args.get("press_enter", default) else []


def _map_key_press(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    return _build_chord([_get_text(call, "key")], surface)


def _map_hotkey(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    given = call.args.get("keys")
    keys = [given] if isinstance(given, str) else given
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and key for key in keys):  # pyright: ignore[reportUnknownVariableType] # what a model wrote
        raise UnmappableCall(f"{call.name} needs keys, not {given!r}")
    return _build_chord([str(key) for key in keys], surface)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _build_chord(keys: Sequence[str], surface: ModelSurface) -> MappedActions:
    keys = [*surface.held.keys, *keys]
    surface.held.press()
    return (
        [_gui_action("press_key", key=keys[0])]
        if len(keys) == 1 and "+" not in keys[0][:-1]
        else [_gui_action("hotkey", keys=keys)]
    )


def _map_key_down(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    surface.held.used.setdefault(_get_text(call, "key").lower(), False)
    return []


def _map_key_up(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    key = _get_text(call, "key").lower()
    used = surface.held.used.pop(key, None)
    if used is None:
        raise UnmappableCall(f"{key} is not held")
    return [] if used else _build_chord([key], surface)


# Time and looks


def _create_wait_mapper(default: float) -> ActionMapper:
    def mapped(call: FunctionCall, surface: ModelSurface) -> MappedActions:
        return [PlannedAction("wait", {"seconds": _get_seconds(call, default)})]

    return mapped


def _map_look(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    return []


# Browser


def _map_open_browser(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    program = PlannedAction("launch_app", {"app_name": surface.settings.browser})
    return _prefer_browser_tool(surface, {"action": "open_tab"}, [program])


def _map_navigate(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    return _build_navigation(_check_address(_get_text(call, "url")), surface)


def _map_search(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    return _build_navigation(surface.settings.search_url, surface)


def _build_navigation(url: str, surface: ModelSurface) -> MappedActions:
    keys = [
        _gui_action("hotkey", keys=[surface.main_key, "l"]),
        _gui_action("type", text=url),
        _gui_action("press_key", key="enter"),
    ]
    return _prefer_browser_tool(surface, {"action": "navigate", "url": url}, keys)


def _map_back(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    if surface.environment == "mobile":
        # What emulators of a phone take for its back button.
        return [_gui_action("press_key", key="esc")]
    return _prefer_browser_tool(surface, {"action": "back"}, [_build_history_hotkey(surface, "left", "[")])


def _map_forward(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    return _prefer_browser_tool(surface, {"action": "forward"}, [_build_history_hotkey(surface, "right", "]")])


def _build_history_hotkey(surface: ModelSurface, arrow: str, bracket: str) -> PlannedAction:
    return _gui_action("hotkey", keys=["command", bracket] if surface.platform == "darwin" else ["alt", arrow])


def _prefer_browser_tool(
    surface: ModelSurface, args: Mapping[str, Any], by_hand: Sequence[PlannedAction]
) -> MappedActions:
    """Return a call of the browser's own tool, with manual actions as a fallback; outside a browser, only these."""
    return [PlannedAction(BROWSER_TOOL, args, instead=tuple(by_hand))] if surface.environment == "browser" else by_hand


def _check_address(text: str) -> str:
    """Return the address of a page; raise `UnmappableCall` for anything else.

    A bare host or `host:port` is accepted; schemes other than http and https, and passwords, are not.
    """
    text = text.strip()
    scheme, separator, rest = text.partition("://")
    if separator and scheme.lower() not in ("http", "https"):
        raise UnmappableCall(f"only http and https addresses are opened, not {text!r}")
    rest = rest if separator else text.removeprefix("//")
    try:
        found = urlsplit(f"https://{rest}")
        # Reading the port is what finds out that `javascript:alert(1)` has none.
        host, _, plain = found.hostname, found.port, found.username is None
    except ValueError:
        host, plain = None, False
    if not host or not plain or any(letter.isspace() for letter in rest):
        raise UnmappableCall(f"{text!r} is no address of a page")
    # Programs that are tried out on this machine have no certificate.
    return text if separator else f"{'http' if host == 'localhost' else 'https'}://{rest}"


# Mobile


def _map_open_app(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    return [PlannedAction("launch_app", {"app_name": _get_text(call, "app_name")})]


def _map_list_apps(call: FunctionCall, surface: ModelSurface) -> MappedActions:
    return [PlannedAction("window_list", {})]


# Arguments


def _get_number(call: FunctionCall, name: str) -> float:
    value = call.args.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
        raise UnmappableCall(f"{call.name} needs a number as {name}, not {value!r:.60}")
    return value


def _get_seconds(call: FunctionCall, default: float) -> float:
    wanted = _get_number(call, "seconds") if "seconds" in call.args else default
    return min(MAX_WAIT_S, max(MIN_WAIT_S, wanted))


def _get_text(call: FunctionCall, name: str) -> str:
    value = call.args.get(name)
    if not isinstance(value, str) or not value:
        raise UnmappableCall(f"{call.name} needs a text as {name}, not {value!r}")
    return value


def _get_direction(call: FunctionCall) -> str:
    value = str(call.args.get("direction", "")).lower()
    if value not in DIRECTIONS:
        raise UnmappableCall(f"{call.name} needs a direction, one of {', '.join(DIRECTIONS)}, not {value!r}")
    return value


FUNCTIONS: Final[Mapping[str, ActionMapper]] = {
    # Gemini 3.5 and later
    "click": _create_pointer_mapper("click"),
    "double_click": _create_pointer_mapper("double_click"),
    "triple_click": _create_pointer_mapper("triple_click"),
    "middle_click": _create_pointer_mapper("middle_click"),
    "right_click": _create_pointer_mapper("right_click"),
    "mouse_down": _create_pointer_mapper("mouse_down"),
    "mouse_up": _create_pointer_mapper("mouse_up"),
    "move": _create_pointer_mapper("move_mouse"),
    "type": _map_type,
    "drag_and_drop": _map_drag,
    "wait": _create_wait_mapper(1),
    "press_key": _map_key_press,
    "key_down": _map_key_down,
    "key_up": _map_key_up,
    "hotkey": _map_hotkey,
    "take_screenshot": _map_look,
    "scroll": _create_scroll_mapper(300),
    "go_back": _map_back,
    "go_forward": _map_forward,
    "navigate": _map_navigate,
    "open_app": _map_open_app,
    "list_apps": _map_list_apps,
    "long_press": _map_long_press,
    # Before that
    "open_web_browser": _map_open_browser,
    "wait_5_seconds": _create_wait_mapper(5),
    "search": _map_search,
    "click_at": _create_pointer_mapper("click"),
    "hover_at": _create_pointer_mapper("move_mouse"),
    "type_text_at": _map_type_at,
    "key_combination": _map_hotkey,
    "scroll_document": _map_scroll_document,
    "scroll_at": _create_scroll_mapper(800),
}
