"""The capability `focus`: what a call's keys would do to a terminal, before it is judged, and whether that still holds when they are pressed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic

from handrail import Invocation, KeyboardTarget, Reason, ServiceContext, StaleObservation
from handrail.desktop.key_chords import parse_chord
from handrail_gui.act.focus_restore import FocusRestorer
from handrail_gui.act.shell_line import PASTE_REASON, KeystrokeEffect, apply_chord, apply_text
from handrail_gui.platforms.input_driver import InputDriver
from handrail_gui.platforms.terminals import TerminalWindow

# Seconds by which clocks and counters may differ before somebody else has typed.
IDLE_TOLERANCE_S = 0.3
# Calls whose view of the focus is kept until they act.
MAX_JUDGED_CALLS = 64


@dataclass(slots=True)
class TerminalLine:
    """State of a terminal's input line as this session knows it.

    Its text (None: unknown), the process id that reads it, and the time this session last typed (monotonic seconds).
    """

    text: str | None
    reader: int | None
    at: float = field(default_factory=monotonic)


class KeyboardTargetTracker:
    """The terminals of one desktop as one session knows them. What it has not typed itself, it does not know."""

    def __init__(self, hands: InputDriver, lent: FocusRestorer, *, private: bool) -> None:
        self._hands = hands
        self._lent = lent
        self._private = private
        self._lines: dict[str, TerminalLine] = {}
        self._judged: dict[str, KeyboardTarget | None] = {}
        # The terminals that a paste under way may go to.
        self._pasted: tuple[str, ...] = ()

    async def focus(self, invocation: Invocation) -> KeyboardTarget | None:
        """Return the terminal that would receive this call's keys and what they would do there; None without one.

        Also None if the call clicks a place first, because the current focus then says nothing.
        """
        # Where a place is given, it is clicked first: what has the focus now says nothing.
        focus = None if _has_click_place(invocation) else await self._looked(invocation)
        while len(self._judged) >= MAX_JUDGED_CALLS:
            del self._judged[next(iter(self._judged))]
        self._judged[invocation.call_id] = focus
        return focus

    async def still(self, invocation: Invocation) -> KeyboardTarget | None:
        """Determine the keyboard target again, just before keys are pressed.

        Raises `StaleObservation` if it differs from the one that was judged.
        """
        judged = self._judged.get(invocation.call_id)
        now = await self._looked(invocation)
        if now != judged:
            raise StaleObservation(
                "the keys would go to a terminal now, in another state than the one that was judged; nothing was pressed"
                if now is not None
                else "the terminal that the keys were judged for is not active any more; nothing was pressed",
                hint="activate the terminal's window first (click it, or window_focus), then call again without a place",
            )
        pastes = now is not None and PASTE_REASON in now.unknown
        self._pasted = tuple(found.window for found in await self._hands.terminals()) if pastes else ()
        return now

    def pressed(self, focus: KeyboardTarget | None, *, whole: bool) -> None:
        """Remember the line's content after keys were pressed; it is unknown unless all of them were (`whole`)."""
        if focus is not None:
            for window in {focus.window, *self._pasted}:
                line = self._lines.get(window)
                self._lines[window] = TerminalLine(focus.rest if whole else None, line.reader if line else None)

    async def close(self) -> None:
        """Do nothing; there is nothing to release."""

    async def _looked(self, invocation: Invocation) -> KeyboardTarget | None:
        keys = _build_key_effect(invocation)
        terminals = await self._hands.terminals() if keys is not None else []
        # The window that gets the keys becomes the active one for them.
        lent = await self._lent.window() if terminals else None
        # A paste goes where the pointer is; any terminal that is open may be there.
        terminal = next(
            (found for found in terminals if keys is _apply_paste or (found.window == lent if lent else found.active)),
            None,
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
        return KeyboardTarget(
            terminal.window, terminal.program, terminal.shell, Path(terminal.cwd), typed.lines, typed.rest, unknown
        )

    async def _line(self, terminal: TerminalWindow) -> str | None:
        """Return the text on the terminal's line; None if someone else may have typed there."""
        line = self._lines.get(terminal.window)
        if line is None:
            # Nobody sits at a private desktop: what this session did not type there, nobody did.
            line = self._lines[terminal.window] = TerminalLine("" if self._private else None, terminal.pid)
            return line.text
        if line.reader != terminal.pid:
            # Another program reads now, which never saw what was typed to the one before.
            line.text, line.reader = ("" if line.text == "" else None), terminal.pid
        if line.text is None or self._private:
            return line.text
        idle = await self._hands.idle()
        untouched = idle is not None and idle + IDLE_TOLERANCE_S >= monotonic() - line.at
        return line.text if untouched else None


def _has_click_place(invocation: Invocation) -> bool:
    given = invocation.params.__dict__
    return given.get("action") in ("type", "replace_text") and (
        given.get("x") is not None or given.get("element_id") is not None
    )


def _apply_paste(line: str | None) -> KeystrokeEffect:
    return KeystrokeEffect((), None, (PASTE_REASON,))


def _build_key_effect(invocation: Invocation) -> Callable[[str | None], KeystrokeEffect] | None:
    """Return a function that maps a line to the effect of the call's keys on it; None if the call presses no keys.

    `execute_accessible` types through `execute_gui`, in a call of its own.
    """
    given = invocation.params.__dict__
    action = str(given.get("action", ""))
    names = [*([given["key"]] if given.get("key") else []), *(given.get("keys") or ())]
    if action in ("hotkey", "press_key") and names:
        chord = parse_chord(names)
        return lambda line: apply_chord(line, chord)
    if action == "middle_click" or given.get("button") == "middle":
        return _apply_paste
    if action in ("type", "replace_text") and isinstance(text := given.get("text"), str):
        return lambda line: apply_text(line, text)
    return None


async def open_keyboard_target(context: ServiceContext) -> KeyboardTargetTracker:
    """Create the service for one session."""
    hands: InputDriver = await context.service("hands")
    return KeyboardTargetTracker(hands, await context.service("lent"), private=hands.private)
