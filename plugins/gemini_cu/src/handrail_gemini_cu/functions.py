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
from handrail.plain import is_mapping

# What the model is told that it works on.
Environment = Literal["desktop", "browser", "mobile"]
HANDS: Final = "execute_gui"
BROWSER: Final = "execute_browser"

# The model counts lengths in thousandths, as it does places. A notch of a wheel is about so many pixels.
THOUSAND: Final = 1000
# What a model counts is never as many.
MOST: Final = 1_000_000
NOTCH: Final = 100
MOST_NOTCHES: Final = 100
# What a safety check says that has nothing to ask.
ALLOWS: Final = frozenset({"regular", "allow", "allowed"})
DIRECTIONS: Final = ("up", "down", "left", "right")
SHORTEST_WAIT_S, LONGEST_WAIT_S = 0.1, 60.0


class Unmappable(Exception):
    """What the model asked for cannot be carried out; the text tells it why."""


@dataclass(frozen=True, slots=True)
class Called:
    """One function call of the model. `id` is unique in its turn; `given_id` is what the API gave, if it gave one."""

    id: str
    name: str
    args: Mapping[str, Any]
    given_id: str | None = None


@dataclass(slots=True)
class Held:
    """The keys that the model holds down. They are pressed together with the next key, and not before: nothing stays pressed in between."""

    used: dict[str, bool] = field(default_factory=dict[str, bool])

    @property
    def keys(self) -> list[str]:
        return list(self.used)

    def press(self) -> None:
        """A key was pressed with them."""
        self.used = dict.fromkeys(self.used, True)


class Wishes(Protocol):
    """What a person has set that calls depend on."""

    @property
    def environment(self) -> Environment: ...
    @property
    def browser(self) -> str: ...
    @property
    def search_url(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Surface:
    """What the model's numbers are about: the picture as it was sent, and where it lies on the screen. `platform` is a `sys.platform`."""

    frame: Frame
    sent: Size
    settings: Wishes
    platform: str
    held: Held = field(default_factory=Held)

    @property
    def environment(self) -> Environment:
        return self.settings.environment

    @property
    def main_key(self) -> str:
        """What goes with letters in shortcuts."""
        return "command" if self.platform == "darwin" else "ctrl"

    def place(self, call: Called, x: str = "x", y: str = "y") -> tuple[int, int]:
        """The screen pixel that two arguments name."""
        values = [_number(call, name) for name in (x, y)]
        try:
            inside = TO_999.point(values[0], values[1], self.sent)
        except OutOfRange as exc:
            raise Unmappable(str(exc)) from exc
        return Transform(self.frame.screen, self.sent.width, self.sent.height).to_screen(*inside)

    def notches(self, call: Called, direction: str, default: int, *names: str) -> int:
        """Notches of the wheel for a length that the first of some arguments gives."""
        if "magnitude_in_wheel_clicks" in call.args:
            wanted = _number(call, "magnitude_in_wheel_clicks")
        else:
            name = next((name for name in names if name in call.args), "")
            screen = self.frame.screen
            length = screen.height if direction in ("up", "down") else screen.width
            wanted = (_number(call, name) if name else default) * length / THOUSAND / NOTCH
        return min(MOST_NOTCHES, max(1, round(wanted)))


Mapped = Sequence[PlannedAction]
Mapper = Callable[[Called, Surface], Mapped]


def actions_of(call: Called, surface: Surface) -> tuple[PlannedAction, ...]:
    """What a call of the model means; one action with its `problem` where it cannot be carried out. None for what is but a look."""
    try:
        mapper = FUNCTIONS.get(call.name)
        if mapper is None:
            raise Unmappable(f"there is no function {call.name!r}")
        ask = _question(call)
        actions = mapper(call, surface)
        if ask is not None and not actions:
            # A question needs a call that it is about.
            actions = [PlannedAction("wait", {"seconds": SHORTEST_WAIT_S})]
    except Unmappable as exc:
        return (PlannedAction(call.name, dict(call.args), call.id, name=call.name, problem=str(exc)),)
    named = [replace(action, id=call.id, name=call.name) for action in actions]
    # A person is asked once about a function, before the first of its actions.
    return tuple(replace(action, ask=ask if place == 0 else None) for place, action in enumerate(named))


def needs_yes(call: Called) -> bool:
    """Whether the model's safety check wants a person's yes; whatever it says is taken for that unless it plainly allows."""
    decision = _decision(call)
    return decision is not None and decision[0] not in ALLOWS


def _question(call: Called) -> str | None:
    decision = _decision(call)
    if decision is None or not needs_yes(call):
        return None
    said, explained = decision
    if said.startswith(("block", "den")):
        raise Unmappable(f"the model's safety check blocks it: {explained or 'no reason is given'}")
    return f"the model's safety check asks: {explained or f'may it carry out {call.name}?'}"


def _decision(call: Called) -> tuple[str, str] | None:
    """What the safety check said of a call, and how it explains that."""
    given = call.args.get("safety_decision")
    if given is None:
        return None
    said = given if is_mapping(given) else {"decision": given}
    return str(said.get("decision") or "").lower(), str(said.get("explanation") or "").strip()


# Pointer


def _gui(action: str, **args: Any) -> PlannedAction:
    return PlannedAction(HANDS, {"action": action, **args})


def _free_hands(call: Called, surface: Surface) -> None:
    if keys := surface.held.keys:
        raise Unmappable(f"{call.name} cannot be done while {', '.join(keys)} is held; call key_up first")


def _pointer(action: str) -> Mapper:
    def mapped(call: Called, surface: Surface) -> Mapped:
        _free_hands(call, surface)
        x, y = surface.place(call)
        return [_gui(action, x=x, y=y)]

    return mapped


def _long_press(call: Called, surface: Surface) -> Mapped:
    x, y = surface.place(call)
    seconds = _seconds(call, 2)
    return [_gui("mouse_down", x=x, y=y), PlannedAction("wait", {"seconds": seconds}), _gui("mouse_up", x=x, y=y)]


def _drag(call: Called, surface: Surface) -> Mapped:
    """Both dialects have it, under different names of its arguments."""
    _free_hands(call, surface)
    start, end = (("start_x", "start_y"), ("end_x", "end_y"))
    if "start_x" not in call.args and "x" in call.args:
        start, end = (("x", "y"), ("destination_x", "destination_y"))
    x, y = surface.place(call, *start)
    to_x, to_y = surface.place(call, *end)
    return [_gui("drag", x=x, y=y, to_x=to_x, to_y=to_y)]


def _scroll(default: int) -> Mapper:
    def mapped(call: Called, surface: Surface) -> Mapped:
        _free_hands(call, surface)
        x, y = surface.place(call)
        direction = _direction(call)
        clicks = surface.notches(call, direction, default, "magnitude_in_pixels", "magnitude")
        return [_gui("scroll", x=x, y=y, direction=direction, clicks=clicks)]

    return mapped


def _scroll_document(call: Called, surface: Surface) -> Mapped:
    direction = _direction(call)
    if direction in ("up", "down"):
        return [_gui("press_key", key=f"page{direction}")]
    x, y = surface.frame.screen.center
    return [_gui("scroll", x=x, y=y, direction=direction, clicks=surface.notches(call, direction, THOUSAND // 2))]


# Keyboard


def _type(call: Called, surface: Surface) -> Mapped:
    _free_hands(call, surface)
    typed = [_gui("type", text=_text(call, "text"))] if call.args.get("text") != "" else []
    return [*typed, *_enter(call, default=False)]


def _type_at(call: Called, surface: Surface) -> Mapped:
    """Models are told that Enter follows and that the field is emptied first, unless they say otherwise.

    `replace_text` empties proved text fields only, so that clearing never reaches the cells of a sheet or the files of a folder.
    """
    _free_hands(call, surface)
    x, y = surface.place(call)
    clear = bool(call.args.get("clear_before_typing", True))
    text = "" if call.args.get("text") == "" else _text(call, "text")
    typed = [_gui("replace_text", text=text)] if clear else [_gui("type", text=text)] if text else []
    return [_gui("click", x=x, y=y), *typed, *_enter(call, default=True)]


def _enter(call: Called, *, default: bool) -> Mapped:
    return [_gui("press_key", key="enter")] if call.args.get("press_enter", default) else []


def _press(call: Called, surface: Surface) -> Mapped:
    return _chord([_text(call, "key")], surface)


def _hotkey(call: Called, surface: Surface) -> Mapped:
    given = call.args.get("keys")
    keys = [given] if isinstance(given, str) else given
    if not isinstance(keys, list) or not keys or not all(isinstance(key, str) and key for key in keys):  # pyright: ignore[reportUnknownVariableType] # what a model wrote
        raise Unmappable(f"{call.name} needs keys, not {given!r}")
    return _chord([str(key) for key in keys], surface)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]


def _chord(keys: Sequence[str], surface: Surface) -> Mapped:
    keys = [*surface.held.keys, *keys]
    surface.held.press()
    return (
        [_gui("press_key", key=keys[0])] if len(keys) == 1 and "+" not in keys[0][:-1] else [_gui("hotkey", keys=keys)]
    )


def _key_down(call: Called, surface: Surface) -> Mapped:
    surface.held.used.setdefault(_text(call, "key").lower(), False)
    return []


def _key_up(call: Called, surface: Surface) -> Mapped:
    key = _text(call, "key").lower()
    used = surface.held.used.pop(key, None)
    if used is None:
        raise Unmappable(f"{key} is not held")
    return [] if used else _chord([key], surface)


# Time and looks


def _wait(default: float) -> Mapper:
    def mapped(call: Called, surface: Surface) -> Mapped:
        return [PlannedAction("wait", {"seconds": _seconds(call, default)})]

    return mapped


def _look(call: Called, surface: Surface) -> Mapped:
    return []


# Browser


def _open_browser(call: Called, surface: Surface) -> Mapped:
    program = PlannedAction("launch_app", {"app_name": surface.settings.browser})
    return _browsed(surface, {"action": "open_tab"}, [program])


def _navigate(call: Called, surface: Surface) -> Mapped:
    return _go_to(_address(_text(call, "url")), surface)


def _search(call: Called, surface: Surface) -> Mapped:
    return _go_to(surface.settings.search_url, surface)


def _go_to(url: str, surface: Surface) -> Mapped:
    keys = [_gui("hotkey", keys=[surface.main_key, "l"]), _gui("type", text=url), _gui("press_key", key="enter")]
    return _browsed(surface, {"action": "navigate", "url": url}, keys)


def _back(call: Called, surface: Surface) -> Mapped:
    if surface.environment == "mobile":
        # What emulators of a phone take for its back button.
        return [_gui("press_key", key="esc")]
    return _browsed(surface, {"action": "back"}, [_history(surface, "left", "[")])


def _forward(call: Called, surface: Surface) -> Mapped:
    return _browsed(surface, {"action": "forward"}, [_history(surface, "right", "]")])


def _history(surface: Surface, arrow: str, bracket: str) -> PlannedAction:
    return _gui("hotkey", keys=["command", bracket] if surface.platform == "darwin" else ["alt", arrow])


def _browsed(surface: Surface, args: Mapping[str, Any], by_hand: Sequence[PlannedAction]) -> Mapped:
    """A call of the browser's own tool, or the same by hand where there is none. Elsewhere the hands are all there is."""
    return [PlannedAction(BROWSER, args, instead=tuple(by_hand))] if surface.environment == "browser" else by_hand


def _address(text: str) -> str:
    """The address of a page. A bare host or `host:port` is one; other schemes than http and https, and passwords, are not."""
    text = text.strip()
    scheme, separator, rest = text.partition("://")
    if separator and scheme.lower() not in ("http", "https"):
        raise Unmappable(f"only http and https addresses are opened, not {text!r}")
    rest = rest if separator else text.removeprefix("//")
    try:
        found = urlsplit(f"https://{rest}")
        # Reading the port is what finds out that `javascript:alert(1)` has none.
        host, _, plain = found.hostname, found.port, found.username is None
    except ValueError:
        host, plain = None, False
    if not host or not plain or any(letter.isspace() for letter in rest):
        raise Unmappable(f"{text!r} is no address of a page")
    # Programs that are tried out on this machine have no certificate.
    return text if separator else f"{'http' if host == 'localhost' else 'https'}://{rest}"


# Mobile


def _open_app(call: Called, surface: Surface) -> Mapped:
    return [PlannedAction("launch_app", {"app_name": _text(call, "app_name")})]


def _list_apps(call: Called, surface: Surface) -> Mapped:
    return [PlannedAction("window_list", {})]


# Arguments


def _number(call: Called, name: str) -> float:
    value = call.args.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MOST:
        raise Unmappable(f"{call.name} needs a number as {name}, not {value!r:.60}")
    return value


def _seconds(call: Called, default: float) -> float:
    wanted = _number(call, "seconds") if "seconds" in call.args else default
    return min(LONGEST_WAIT_S, max(SHORTEST_WAIT_S, wanted))


def _text(call: Called, name: str) -> str:
    value = call.args.get(name)
    if not isinstance(value, str) or not value:
        raise Unmappable(f"{call.name} needs a text as {name}, not {value!r}")
    return value


def _direction(call: Called) -> str:
    value = str(call.args.get("direction", "")).lower()
    if value not in DIRECTIONS:
        raise Unmappable(f"{call.name} needs a direction, one of {', '.join(DIRECTIONS)}, not {value!r}")
    return value


FUNCTIONS: Final[Mapping[str, Mapper]] = {
    # Gemini 3.5 and later
    "click": _pointer("click"),
    "double_click": _pointer("double_click"),
    "triple_click": _pointer("triple_click"),
    "middle_click": _pointer("middle_click"),
    "right_click": _pointer("right_click"),
    "mouse_down": _pointer("mouse_down"),
    "mouse_up": _pointer("mouse_up"),
    "move": _pointer("move_mouse"),
    "type": _type,
    "drag_and_drop": _drag,
    "wait": _wait(1),
    "press_key": _press,
    "key_down": _key_down,
    "key_up": _key_up,
    "hotkey": _hotkey,
    "take_screenshot": _look,
    "scroll": _scroll(300),
    "go_back": _back,
    "go_forward": _forward,
    "navigate": _navigate,
    "open_app": _open_app,
    "list_apps": _list_apps,
    "long_press": _long_press,
    # Before that
    "open_web_browser": _open_browser,
    "wait_5_seconds": _wait(5),
    "search": _search,
    "click_at": _pointer("click"),
    "hover_at": _pointer("move_mouse"),
    "type_text_at": _type_at,
    "key_combination": _hotkey,
    "scroll_document": _scroll_document,
    "scroll_at": _scroll(800),
}
