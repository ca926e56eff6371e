"""Driving a file dialog, whosever it is: called up, given a path, confirmed, and its questions answered."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from handrail import Downstream, Rect, ToolError
from handrail_workflows import questions
from handrail_workflows.questions import DialogQuestion
from handrail_workflows.steps import WorkflowSteps, wait_for_value
from handrail_workflows.windows import (
    ShownWindow,
    UiElement,
    find_active_window,
    join_label_texts,
    list_windows,
    read_elements,
)

# How long a program may take to show its dialog, to close it, and to do what was asked.
OPEN_TIMEOUT_S = 2.0
DRAW_TIMEOUT_S = 1.5
CONFIRM_TIMEOUT_S = 20.0
# A dialog may be followed by a question a moment later.
QUIET_TIME_S = 0.6
MAX_QUESTIONS = 6
# From the lower corner of a GTK dialog to the middle of its main button, pixels.
CORNER_OFFSET = (46, 24)

# A file dialog lists files.
LIST_ROLES = frozenset(("table", "tree table", "tree", "list", "list box", "icon view"))


class InputService(Protocol):
    """The service `hands`."""

    async def worked_through(self) -> bool:
        """Return True if the active program reports that it has read all input so far."""
        ...


@dataclass(slots=True)
class FileChooser:
    """A file dialog that is open, and the windows that were there without it. `speaks`: it has an accessibility tree."""

    steps: WorkflowSteps
    window: ShownWindow
    others: frozenset[str]
    speaks: bool
    answered: list[dict[str, str]] = field(default_factory=list[dict[str, str]])

    async def name(self, path: str) -> None:
        """Put a path where the name goes."""
        if not self.speaks:
            await self._type(path)
            return
        entry = await self._entry()
        if entry is None:
            # GTK shows where a name can be typed only when it is asked to.
            await self.steps.take("execute_gui", action="hotkey", key="ctrl+l")
            entry = await wait_for_value(self._entry, OPEN_TIMEOUT_S)
        if entry is None:
            raise Downstream(
                f"the dialog {self.window.title!r} has no field for a name", hint="look at it with observe_screen"
            )
        await self.steps.take("execute_accessible", action="set_value", element_id=entry.id, value=path)

    async def confirm(self) -> None:
        """Press what the dialog has as its main button, or enter where nothing says which that is."""
        if not self.speaks:
            for last in (True, True, False, False):
                # The first click may only close the list of names that begin like this one. Nothing is in the other corner,
                # save where the language goes from right to left: there it is the last.
                await self._click_corner(right=last)
                if not await self.stays():
                    return
            return
        # GTK's main button is disabled, and enter is lost, until the folder of the name has been read.
        main = await wait_for_value(self._main, DRAW_TIMEOUT_S)
        if isinstance(main, UiElement):
            await self.steps.take("execute_accessible", action="click", element_id=main.id)
            return
        await self.steps.take("execute_gui", action="press_key", key="enter")

    async def is_open(self) -> bool:
        return any(window.id == self.window.id for window in await list_windows(self.steps))

    async def question(self) -> DialogQuestion | None:
        """Return the question of a newly opened window; None without one."""
        for window in await list_windows(self.steps):
            if window.active and window.id != self.window.id and window.id not in self.others:
                return (
                    await questions.read_question(self.steps, window) if self.speaks else DialogQuestion(window, "", ())
                )
        return None

    async def stays(self) -> bool:
        """Return True if it is still open after a moment, without any question."""

        async def closed_or_asks() -> bool:
            return not await self.is_open() or await self.question() is not None

        return not await wait_for_value(closed_or_asks, QUIET_TIME_S)

    async def give_up(self) -> None:
        """Press Escape to close every dialog that has opened, so that the program is as it was."""
        # What went wrong before is what is told.
        with contextlib.suppress(ToolError):
            for _ in range(MAX_QUESTIONS):
                if (await find_active_window(self.steps)).id in self.others:
                    return
                await self.steps.attempt("execute_gui", action="press_key", key="escape")

    async def _entry(self) -> UiElement | None:
        fields = [
            part
            for part in await read_elements(self.steps)
            if part.role == "text" and part.has("editable") and part.usable and "multiline" not in part.states
        ]
        focused = [part for part in fields if part.has("focused")]
        named = [part for part in fields if part.automation_id.endswith("fileNameEdit")]
        best = named or focused or fields
        return best[0] if len(best) == 1 or focused else None

    async def _main(self) -> UiElement | bool:
        """Return the main button once it can be pressed, False before that; True if no button is marked as main."""
        mains = [part for part in await read_elements(self.steps) if part.role == "button" and part.has("default")]
        return next((part for part in mains if part.usable), not mains)

    async def _click_corner(self, *, right: bool) -> None:
        """Click the button in the bottom corner.

        Chromium's dialog has no default button, and Enter cancels it: its main button is in that corner.
        """
        await self.steps.look("observe_screen", image="none")
        transform = self.steps.context.observations.get().transform
        window = next(w for w in await list_windows(self.steps) if w.id == self.window.id)
        x = window.rect.right - CORNER_OFFSET[0] if right else window.rect.x + CORNER_OFFSET[0]
        corner = Rect(x, window.rect.bottom - CORNER_OFFSET[1], 1, 1)
        point = transform.to_image(corner) if transform is not None else corner
        await self.steps.take("execute_gui", action="click", x=point.x, y=point.y)

    async def _type(self, path: str) -> None:
        """Type the path by keys alone.

        Every such dialog known here is GTK's, where Ctrl+L focuses the path field and selects the name in it without
        its extension. The last character is typed over that extension, which only reaches to the end of the line:
        without an accessibility tree, nothing proves that the keys go to a text field, so no key is sent that selects
        or deletes everything.
        """
        await self.steps.take("execute_gui", action="hotkey", key="ctrl+l")
        await self.steps.take("execute_gui", action="type", text=path[:-1])
        await self.steps.take("execute_gui", action="hotkey", key="shift+end")
        await self.steps.take("execute_gui", action="type", text=path[-1])


async def open_file_chooser(steps: WorkflowSteps, chords: Sequence[str]) -> FileChooser:
    """Return the open file dialog, or open one with the first of these chords that does so."""
    before = await list_windows(steps)
    now = next((window for window in before if window.active), None) or await find_active_window(steps)
    kin = [window for window in before if window.pid == now.pid and window.id != now.id]
    shown = await read_elements(steps)
    if kin and is_file_chooser(shown):
        return FileChooser(steps, now, frozenset(window.id for window in before if window.id != now.id), speaks=True)
    ids = frozenset(window.id for window in before)

    async def opened() -> ShownWindow | None:
        return next((w for w in await list_windows(steps) if w.active and w.id not in ids and w.pid == now.pid), None)

    for chord in chords:
        await steps.take("execute_gui", action="hotkey", key=chord)
        if (window := await wait_for_value(opened, OPEN_TIMEOUT_S)) is not None:
            return await _verify_chooser(steps, window, ids)
    raise Downstream(
        f"{now.title!r} shows no file dialog on {' or '.join(chords)}",
        hint="open the dialog by app_menu, or by a button, and call again: one that is open is used",
    )


async def _verify_chooser(steps: WorkflowSteps, window: ShownWindow, ids: frozenset[str]) -> FileChooser:
    async def drawn() -> bool:
        return is_file_chooser(await read_elements(steps))

    speaks = await wait_for_value(drawn, DRAW_TIMEOUT_S)
    chooser = FileChooser(steps, window, ids, speaks)
    hands: InputService = await steps.context.service("hands")
    if not speaks and not await hands.worked_through():
        # What is typed now would be done some time, unseen.
        raise Downstream(f"{window.title!r} does not answer; nothing was typed into it", hint="wait, and call again")
    if not speaks and (shown := await read_elements(steps)):
        await chooser.give_up()
        raise Downstream(
            f"{window.title!r} is no file dialog; it says {join_label_texts(shown)!r}",
            hint="open the dialog by app_menu, and call again: one that is open is used",
        )
    return chooser


def is_file_chooser(shown: Sequence[UiElement]) -> bool:
    """Return True if this is a file dialog: it lists files, has at least two buttons, and no menus."""
    buttons = [part for part in shown if part.role == "button"]
    return (
        len(buttons) > 1
        and any(part.role in LIST_ROLES for part in shown)
        and all(part.role not in ("menu", "menu bar") for part in shown)
    )


async def complete_file_dialog(
    chooser: FileChooser, *, replace: bool, done: Callable[[], Awaitable[bool]], spared: Collection[str] = ()
) -> None:
    """Confirm the dialog, answer questions, and wait until it is closed and `done` is true, or no more questions come.

    While the dialog is open, a question is about the name: it is answered with the button that closes the dialog, if
    `replace`, and if it does not name a `spared` file: a program that adds an extension to the name asks about a file
    other than the intended one. A question after the dialog has closed is about the format, and its default is
    accepted.
    """
    await chooser.confirm()
    tried: set[str] = set()
    for _ in range(MAX_QUESTIONS):
        question = await wait_for_value(lambda: _next_event(chooser, done), CONFIRM_TIMEOUT_S)
        if not question:
            raise Downstream(f"the dialog {chooser.window.title!r} does not close")
        if question is True:
            return
        meant = replace and not any(name in question.text for name in spared)
        await _answer_question(chooser, question, replace=meant, tried=tried)
    raise Downstream("the program goes on asking", details={"answered": chooser.answered})


async def _next_event(chooser: FileChooser, done: Callable[[], Awaitable[bool]]) -> DialogQuestion | bool | None:
    """Return a question, or True when the dialog is finished; None while neither is the case."""
    if (question := await chooser.question()) is not None:
        return question
    if await chooser.is_open():
        return None
    if await done():
        return True

    async def asked() -> DialogQuestion | None:
        return await chooser.question()

    return await wait_for_value(asked, QUIET_TIME_S) or True


async def _answer_question(chooser: FileChooser, question: DialogQuestion, *, replace: bool, tried: set[str]) -> None:
    was_open = await chooser.is_open()
    if replace and was_open and not question.buttons and not tried:
        # GTK's question of replacing a file, which has the focus on what replaces it.
        tried.add("")
        chooser.answered.append({"question": question.window.title, "answer": "enter"})
        await chooser.steps.take("execute_gui", action="press_key", key="enter")
        return
    if was_open:
        button = _choose_replace_button(question, tried) if replace else None
    else:
        button = question.default
    if button is None:
        raise Downstream(
            f"the program says {question.text!r}" if len(question.buttons) == 1 else f"it asks {question.text!r}",
            hint="every dialog was left by escape; choose another name, or work them by execute_accessible",
            details={"question": question.wire()},
        )
    tried.add(button.name)
    chooser.answered.append({"question": question.text, "answer": button.name})
    await questions.answer_question(chooser.steps, question, button)
    if was_open and await chooser.stays():
        # That button was the one that takes the name back.
        await chooser.confirm()


def _choose_replace_button(question: DialogQuestion, tried: set[str]) -> UiElement | None:
    """Return which of two buttons to try; None unless there are two, one of them untried.

    Neither does harm, because the wrong one returns to the dialog.
    """
    if len(question.buttons) != 2:
        return None
    ordered = [b for b in (question.default, *question.others) if b is not None and b.name not in tried]
    return ordered[0] if ordered else None
