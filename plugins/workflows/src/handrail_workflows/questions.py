"""Questions that a program asks in a dialog of its own: known by their structure, answered by their buttons' roles, in any language.

In every toolkit the default button is marked as such in the accessibility tree: in a question before closing it is the one that saves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from handrail_workflows.steps import Steps, until
from handrail_workflows.windows import Part, Shown, parts, text_of, windows

# A dialog's buttons may come a moment after its window.
DRAWN_S = 2.0
GONE_S = 5.0


@dataclass(frozen=True, slots=True)
class Question:
    """A dialog with buttons and nothing to fill in."""

    window: Shown
    text: str
    buttons: tuple[Part, ...]

    @property
    def default(self) -> Part | None:
        return next((button for button in self.buttons if button.has("default")), None)

    @property
    def others(self) -> tuple[Part, ...]:
        return tuple(button for button in self.buttons if not button.has("default"))

    def wire(self) -> dict[str, Any]:
        return {
            "title": self.window.title,
            "text": self.text,
            "buttons": [{"id": b.id, "name": b.name, "default": b.has("default")} for b in self.buttons],
        }


async def asked(steps: Steps, window: Shown) -> Question | None:
    """The question in the active window; None when that is no question."""

    async def drawn() -> list[Part]:
        shown = await parts(steps)
        return shown if any(part.role == "button" and part.usable for part in shown) else []

    shown = await until(drawn, DRAWN_S)
    found = tuple(part for part in shown if part.role == "button" and part.usable)
    fields = [part for part in shown if part.has("editable") and part.usable]
    menus = [part for part in shown if part.role in ("menu", "menu bar")]
    return Question(window, text_of(shown), found) if found and not fields and not menus else None


async def answer(steps: Steps, question: Question, button: Part) -> bool:
    """Press one of its buttons; whether it went away."""
    await steps.take("execute_accessible", action="click", element_id=button.id)

    async def gone() -> bool:
        return all(window.id != question.window.id for window in await windows(steps))

    return await until(gone, GONE_S)
