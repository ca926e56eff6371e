"""The capability `focus`: what a call's keys would do to a terminal, before it is judged, and whether that still holds when they are pressed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from handrail import Focus, Invocation, Reason, ServiceContext, StaleObservation
from handrail.desktops.chords import chord_of
from handrail_gui.hands import Hands
from handrail_gui.lending import Lent
from handrail_gui.lines import PASTED, Typed, after_chord, after_text
from handrail_gui.terminals import Terminal

# Seconds by which clocks and counters may differ before somebody else has typed.
SLACK_S = 0.3
# Calls whose view of the focus is kept until they act.
KEPT = 64


@dataclass(slots=True)
class Line:
    """What this session knows of a terminal's line: its text (None: nothing), who reads it, and when it last typed (monotonic seconds)."""

    text: str | None
    reader: int | None
    at: float = field(default_factory=monotonic)


class Focusing:
    """The terminals of one desktop as one session knows them. What it has not typed itself, it does not know."""

    def __init__(self, hands: Hands, lent: Lent, *, private: bool) -> None:
        self._hands = hands
        self._lent = lent
        self._private = private
        self._lines: dict[str, Line] = {}
        self._judged: dict[str, Focus | None] = {}
        # The terminals that a paste under way may go to.
        self._pasted: tuple[str, ...] = ()

    async def focus(self, invocation: Invocation) -> Focus | None:
        """The terminal that the keys of this call would go to, and what they would do there; None when it is none."""
        # Where a place is given, it is clicked first: what has the focus now says nothing.
        focus = None if _placed(invocation) else await self._looked(invocation)
        while len(self._judged) >= KEPT:
            del self._judged[next(iter(self._judged))]
        self._judged[invocation.call_id] = focus
        return focus

    async def still(self, invocation: Invocation) -> Focus | None:
        """The same once more, just before keys are pressed. Raises `StaleObservation` when it is not what was judged."""
        judged = self._judged.get(invocation.call_id)
        now = await self._looked(invocation)
        if now != judged:
            raise StaleObservation(
                "the keys would go to a terminal now, in another state than the one that was judged; nothing was pressed"
                if now is not None
                else "the terminal that the keys were judged for is not active any more; nothing was pressed",
                hint="activate the terminal's window first (click it, or window_focus), then call again without a place",
            )
        pastes = now is not None and PASTED in now.unknown
        self._pasted = tuple(found.window for found in await self._hands.terminals()) if pastes else ()
        return now

    def pressed(self, focus: Focus | None, *, whole: bool) -> None:
        """Remember what stands on the line after keys were pressed; nothing is known where not all of them were."""
        if focus is not None:
            for window in {focus.window, *self._pasted}:
                line = self._lines.get(window)
                self._lines[window] = Line(focus.rest if whole else None, line.reader if line else None)

    async def close(self) -> None:
        """Nothing to give back."""

    async def _looked(self, invocation: Invocation) -> Focus | None:
        keys = _keys(invocation)
        terminals = await self._hands.terminals() if keys is not None else []
        # The window that gets the keys becomes the active one for them.
        lent = await self._lent.window() if terminals else None
        # A paste goes where the pointer is; any terminal that is open may be there.
        terminal = next(
            (found for found in terminals if keys is _pastes or (found.window == lent if lent else found.active)), None
        )
        if terminal is None or keys is None:
            return None
        typed = keys(await self._line(terminal))
        unknown = typed.unknown
        if not terminal.shell:
            reader = (
                f"{terminal.program!r} reads the keys" if terminal.program else "what reads the keys cannot be told"
            )
            unknown = (Reason("terminal_program", f"in this terminal {reader}, not a shell like bash"), *unknown)
        return Focus(
            terminal.window, terminal.program, terminal.shell, Path(terminal.cwd), typed.lines, typed.rest, unknown
        )

    async def _line(self, terminal: Terminal) -> str | None:
        """What stands on its line; None when others may have typed there."""
        line = self._lines.get(terminal.window)
        if line is None:
            # Nobody sits at a private desktop: what this session did not type there, nobody did.
            line = self._lines[terminal.window] = Line("" if self._private else None, terminal.pid)
            return line.text
        if line.reader != terminal.pid:
            # Another program reads now, which never saw what was typed to the one before.
            line.text, line.reader = ("" if line.text == "" else None), terminal.pid
        if line.text is None or self._private:
            return line.text
        idle = await self._hands.idle()
        untouched = idle is not None and idle + SLACK_S >= monotonic() - line.at
        return line.text if untouched else None


def _placed(invocation: Invocation) -> bool:
    given = invocation.params.__dict__
    return given.get("action") in ("type", "replace_text") and (
        given.get("x") is not None or given.get("element_id") is not None
    )


def _pastes(line: str | None) -> Typed:
    return Typed((), None, (PASTED,))


def _keys(invocation: Invocation) -> Callable[[str | None], Typed] | None:
    """What the keys of a call make of a line, as a function of the line; None when it presses none.

    `execute_accessible` types through `execute_gui`, in a call of its own.
    """
    given = invocation.params.__dict__
    action = str(given.get("action", ""))
    names = [*([given["key"]] if given.get("key") else []), *(given.get("keys") or ())]
    if action in ("hotkey", "press_key") and names:
        chord = chord_of(names)
        return lambda line: after_chord(line, chord)
    if action == "middle_click" or given.get("button") == "middle":
        return _pastes
    if action in ("type", "replace_text") and isinstance(text := given.get("text"), str):
        return lambda line: after_text(line, text)
    return None


async def open_focusing(context: ServiceContext) -> Focusing:
    """The service of one session."""
    hands: Hands = await context.service("hands")
    return Focusing(hands, await context.service("lent"), private=hands.private)
