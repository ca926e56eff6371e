"""A program that publishes whatever a test wants on the accessibility bus: what toolkits do rarely, or only when they are ill."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from dbus_fast import Message, MessageType, Variant
from dbus_fast.aio import MessageBus

A11Y = "org.a11y.atspi."
REGISTRY = "org.a11y.atspi.Registry"
ROOT = "/org/a11y/atspi/accessible/root"
UNKNOWN = "org.freedesktop.DBus.Error.UnknownMethod"

ENABLED, FOCUSABLE, FOCUSED, EDITABLE, SENSITIVE, SHOWING, VISIBLE, ACTIVE = 8, 11, 12, 7, 24, 25, 30, 1
FIELD = ("Accessible", "Component", "Text", "EditableText")
USABLE = frozenset({ENABLED, FOCUSABLE, SENSITIVE, SHOWING, VISIBLE})

APPLICATION, FRAME, BUTTON, ENTRY, PASSWORD, LIST, LABEL, PANEL = 75, 23, 43, 79, 40, 31, 29, 39


@dataclass(slots=True)
class Thing:
    """One object. `taken` is what becomes of a text that is set; `pressed` is called when its action is done."""

    role: int
    name: str
    children: list[str] = field(default_factory=list[str])
    child_count: int | None = None
    states: frozenset[int] = USABLE
    interfaces: tuple[str, ...] = ("Accessible", "Component")
    text: str = ""
    taken: Callable[[str], str] = str
    pressed: Callable[[], None] | None = None
    accessible_id: str = ""


@dataclass(slots=True)
class Published:
    """The program: its objects by path, and every call it was asked. What is in `slow` is never answered, nor anything while it hangs."""

    bus: MessageBus
    things: dict[str, Thing]
    slow: frozenset[str] = frozenset()
    hangs: bool = False
    asked: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])

    @classmethod
    async def start(cls, session_address: str) -> Published:
        """Connect and register, with one empty active window "Published"."""
        session = await MessageBus(bus_address=session_address).connect()
        where = Message(destination="org.a11y.Bus", path="/org/a11y/bus", interface="org.a11y.Bus", member="GetAddress")
        address = (await session.call(where)).body[0]
        session.disconnect()
        await session.wait_for_disconnect()
        bus = await MessageBus(bus_address=address.partition(",guid=")[0]).connect()
        window = Thing(FRAME, "Published", states=USABLE | {ACTIVE})
        program = cls(bus, {ROOT: Thing(APPLICATION, "published", children=["/window"]), "/window": window})
        bus.add_message_handler(program.answer)
        embed = Message(
            destination=REGISTRY,
            path=ROOT,
            interface=A11Y + "Socket",
            member="Embed",
            signature="(so)",
            body=[(bus.unique_name, ROOT)],
        )
        reply = await bus.call(embed)
        assert reply.message_type is MessageType.METHOD_RETURN, reply.body
        return program

    def hang(self) -> None:
        self.hangs = True

    async def close(self) -> None:
        self.bus.disconnect()
        await self.bus.wait_for_disconnect()

    def show(self, path: str, thing: Thing) -> None:
        """Put an object into the window, or another one in its place."""
        self.things[path] = thing
        if path not in self.things["/window"].children:
            self.things["/window"].children.append(path)

    def hide(self, path: str) -> None:
        self.things["/window"].children.remove(path)
        del self.things[path]

    def answer(self, message: Message) -> Message | bool:
        if message.message_type is not MessageType.METHOD_CALL:
            return False
        self.asked.append((message.path or "", message.member or ""))
        if self.hangs or message.member in self.slow:
            return True
        thing = self.things.get(message.path or "")
        reply = self._reply(thing, message) if thing is not None else None
        if reply is None:
            return Message.new_error(message, UNKNOWN, "no such object or method")
        signature, body = reply
        return Message.new_method_return(message, signature, body)

    def _reply(self, thing: Thing, message: Message) -> tuple[str, list[Any]] | None:
        name, body = self.bus.unique_name, message.body
        low = sum(1 << bit for bit in thing.states if bit < 32)
        answers: dict[str, Callable[[], tuple[str, list[Any]]]] = {
            "GetChildren": lambda: ("a(so)", [[(name, path) for path in thing.children]]),
            "GetChildAtIndex": lambda: ("(so)", [(name, thing.children[body[0] % max(1, len(thing.children))])]),
            "GetRole": lambda: ("u", [thing.role]),
            "GetState": lambda: ("au", [[low, 0]]),
            "GetInterfaces": lambda: ("as", [[A11Y + interface for interface in thing.interfaces]]),
            "GetRelationSet": lambda: ("a(ua(so))", [[]]),
            "GetExtents": lambda: ("(iiii)", [(10, 10, 100, 20)]),
            "GetAll": lambda: ("a{sv}", [self._properties(thing)]),
            "Get": lambda: ("v", [self._properties(thing)[body[1]]]),
            "GetText": lambda: ("s", [thing.text[body[0] : None if body[1] < 0 else body[1]]]),
            "SetTextContents": lambda: self._set_text(thing, body[0]),
            "InsertText": lambda: self._set_text(thing, thing.text[: body[0]] + body[1] + thing.text[body[0] :]),
            "DeleteText": lambda: self._set_text(thing, thing.text[: body[0]] + thing.text[body[1] :]),
            "GetActions": lambda: ("a(sss)", [[("click", "", "")]]),
            "DoAction": lambda: self._press(thing),
        }
        asked = answers.get(message.member or "")
        try:
            return asked() if asked is not None else None
        except KeyError:
            return None

    def _properties(self, thing: Thing) -> dict[str, Variant]:
        count = len(thing.children) if thing.child_count is None else thing.child_count
        return {
            "Name": Variant("s", thing.name),
            "Description": Variant("s", ""),
            "ChildCount": Variant("i", count),
            "Parent": Variant("(so)", (self.bus.unique_name, "/window")),
            "AccessibleId": Variant("s", thing.accessible_id),
            "CharacterCount": Variant("i", len(thing.text)),
        }

    def _set_text(self, thing: Thing, text: str) -> tuple[str, list[Any]]:
        thing.text = thing.taken(text)
        return "b", [True]

    def _press(self, thing: Thing) -> tuple[str, list[Any]]:
        if thing.pressed is not None:
            thing.pressed()
        return "b", [True]
