"""Questions that a program asks in a dialog: recognized by structure, answered by button roles, in any language.

Every toolkit marks the default button in the accessibility tree: in a question before closing, it is the one that
saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from handrail_workflows.steps import WorkflowSteps, wait_for_value
from handrail_workflows.windows import ShownWindow, UiElement, join_label_texts, list_windows, read_elements

# A dialog's buttons may come a moment after its window.
DRAW_TIMEOUT_S = 2.0
CLOSE_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class DialogQuestion:
    """A dialog with buttons and nothing to fill in."""

    window: ShownWindow
    text: str
    buttons: tuple[UiElement, ...]

    @property
    def default(self) -> UiElement | None:
        return next((button for button in self.buttons if button.has("default")), None)

    @property
    def others(self) -> tuple[UiElement, ...]:
        return tuple(button for button in self.buttons if not button.has("default"))

    def wire(self) -> dict[str, Any]:
        return {
            "title": self.window.title,
            "text": self.text,
            "buttons": [{"id": b.id, "name": b.name, "default": b.has("default")} for b in self.buttons],
        }


async def read_question(steps: WorkflowSteps, window: ShownWindow) -> DialogQuestion | None:
    """Return the question in the active window; None if it does not show a question."""

    async def drawn() -> list[UiElement]:
        shown = await read_elements(steps)
        return shown if any(part.role == "button" and part.usable for part in shown) else []

    shown = await wait_for_value(drawn, DRAW_TIMEOUT_S)
    found = tuple(part for part in shown if part.role == "button" and part.usable)
    fields = [part for part in shown if part.has("editable") and part.usable]
    menus = [part for part in shown if part.role in ("menu", "menu bar")]
    return DialogQuestion(window, join_label_texts(shown), found) if found and not fields and not menus else None


async def answer_question(steps: WorkflowSteps, question: DialogQuestion, button: UiElement) -> bool:
    """Press one of its buttons; whether it went away."""
    await steps.take("execute_accessible", action="click", element_id=button.id)

    async def gone() -> bool:
        return all(window.id != question.window.id for window in await list_windows(steps))

    return await wait_for_value(gone, CLOSE_TIMEOUT_S)
