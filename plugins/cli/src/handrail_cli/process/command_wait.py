"""Waiting for a command: its end, its time limit, a window that it opens, and questions that it asks meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from handrail import Downstream, HandrailError, ToolContext
from handrail_cli.process import process_tree
from handrail_cli.process.prompts import READ_KEYS, DetectedPrompt

if TYPE_CHECKING:
    from handrail_cli.process.command_process import CommandProcess
    from handrail_cli.process.config import AnswerRule

# A program that opens a window is not waited for. Most commands are over before anybody looks.
FIRST_LOOK_S = 1.0
NEXT_LOOK_S = 0.5
# What may ask is looked at more often.
ASKED_LOOK_S = 0.2
# A program that has written nothing for so long waits, if it has asked.
QUIET_S = 0.3
# After so long at a question that nobody answers, its input ends.
GIVING_UP_S = 5.0
# So long a program may draw on a whole screen that is not there.
DRAWING_S = 5.0
# A question that comes back so often is not answered by its answer.
MOST_ANSWERS = 20


@dataclass(slots=True)
class PromptWatcher:
    """Looks at what a command asks, and answers where a rule says so. `rules` are those for its program."""

    process: CommandProcess
    rules: Sequence[AnswerRule] = ()
    answered: list[tuple[str, str]] = field(default_factory=list["tuple[str, str]"])
    given_up: DetectedPrompt | None = None

    def look(self) -> None:
        """Answer a question that a rule knows; end the input of a program that has waited long enough for anybody else."""
        if not self.process.fed or self.given_up is not None or self.process.silent_for < QUIET_S:
            return
        prompt = self.process.prompt
        if prompt is None:
            return
        if (rule := self._rule(prompt)) is not None:
            self._answer(prompt, rule)
        elif self.process.silent_for >= GIVING_UP_S and prompt.kind not in READ_KEYS:
            self.given_up = prompt
            self.process.end_input()

    def _rule(self, prompt: DetectedPrompt) -> AnswerRule | None:
        if prompt.kind == "password" or self.process.hides_typing or len(self.answered) >= MOST_ANSWERS:
            return None
        return next((rule for rule in self.rules if rule.prompt in prompt.text), None)

    def _answer(self, prompt: DetectedPrompt, rule: AnswerRule) -> None:
        try:
            self.process.write(f"{rule.answer}\n".encode())
        # It reads no more: that it asked is all there is to tell.
        except Downstream:
            return
        self.answered.append((prompt.text, rule.answer))


async def wait_until_over(
    process: CommandProcess, timeout: float, context: ToolContext, attention: PromptWatcher
) -> tuple[bool, str | None]:
    """Wait for a command to end; return whether it ended in time and the title of a window it opened instead.

    Gives up before the timeout if the command waits for keys that it cannot get.
    """
    if process.shown is not None:
        return False, process.shown
    deadline = monotonic() + timeout
    asked = process.launch.fed or process.launch.terminal is not None
    next_window = monotonic() + FIRST_LOOK_S
    pause = ASKED_LOOK_S if asked else FIRST_LOOK_S
    drawing: float | None = None
    while (left := deadline - monotonic()) > 0:
        if await process.settle(min(pause, left)):
            return True, None
        if asked:
            attention.look()
        else:
            pause = NEXT_LOOK_S
        if process.silent_for >= QUIET_S and process.misses_terminal:
            return False, None
        drawing = (drawing or monotonic()) if process.holds_screen else None
        if drawing is not None and monotonic() - drawing >= DRAWING_S:
            return False, None
        if monotonic() >= next_window:
            if (title := await _find_window_title(process, context)) is not None:
                return False, title
            next_window = monotonic() + NEXT_LOOK_S
    return False, None


async def wait_until_over_or_prompt(process: CommandProcess, seconds: float) -> None:
    """Wait for the end of a command, or until it waits for somebody."""
    deadline = monotonic() + seconds
    while (left := deadline - monotonic()) > 0:
        if await process.settle(min(ASKED_LOOK_S, left)) or find_waiting_prompt(process) is not None:
            return


def find_waiting_prompt(process: CommandProcess) -> DetectedPrompt | None:
    """Return the prompt a running command waits at; None if it is not silent or has not prompted."""
    return process.prompt if process.exit_code is None and process.silent_for >= QUIET_S else None


async def _find_window_title(process: CommandProcess, context: ToolContext) -> str | None:
    """Return the title of a window the command shows on the session's desktop; None without one or if unknown."""
    members = await asyncio.to_thread(process_tree.find_process_tree, process.pid, mark=process.mark)
    if not await asyncio.to_thread(process_tree.has_window_library, members):
        return None
    try:
        screen = await context.service("screen")
        windows = await screen.windows()
    # Without a screen nothing is shown on it, and the command is waited for like any other.
    except HandrailError:
        return None
    return next((window.title for window in windows if window.pid in members), None)
