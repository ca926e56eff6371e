"""Progress of a run at a terminal: finished steps above, and a live view of what is running below."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.console import Console, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from handrail.api.events import (
    ApprovalAnswered,
    ApprovalAsked,
    Event,
    Finished,
    InquiryAnswered,
    InquiryAsked,
    Output,
    Proposed,
    Started,
)
from handrail.text import make_visible
from handrail_adk.run_events import Begun, Ended, ModelTextPiece, PictureReceived, Retried, Said, Spent, Thought
from handrail_adk.run_output import describe_ending, format_event, write_line
from handrail_adk.thumbnails import render_thumbnail

if TYPE_CHECKING:
    from handrail_adk.budgets import RunBudget
    from handrail_adk.thumbnails import GraphicsProtocol

# Lines of what the model is saying, and characters of any line below.
MAX_OUTPUT_LINES, MAX_WIDTH = 4, 200
STATUS_COLORS = {"success": "green", "denied": "yellow", "cancelled": "yellow"}
ASKED_EVENTS = (ApprovalAsked, InquiryAsked)
ANSWERED_EVENTS = (ApprovalAnswered, InquiryAnswered)


@dataclass(slots=True)
class CallRow:
    """Row of a call that has not finished."""

    tool: str
    description: str
    spinner: Spinner = field(default_factory=lambda: Spinner("dots"))
    began: float = field(default_factory=time.monotonic)
    running: bool = False
    output: str = ""

    def __rich__(self) -> Spinner:
        state = f"{time.monotonic() - self.began:.0f} s" if self.running else "waits"
        said = f"  {self.output}" if self.output else ""
        self.spinner.update(text=_format_line(f"{self.tool}: {self.description} ({state}){said}"))
        return self.spinner


class ProgressDisplay:
    """Display of a run on stderr, which is a terminal. The model's text goes to `descriptor` unless that is a terminal.

    Nothing is redrawn while the user is prompted.
    """

    def __init__(self, descriptor: int, budget: RunBudget, *, way: GraphicsProtocol | None) -> None:
        self._descriptor = descriptor
        self._budget = budget
        self._way: GraphicsProtocol | None = way
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._rows: dict[str, CallRow] = {}
        self._draft = ""
        self._spent: Spent | None = None
        self._began = time.monotonic()
        # Questions that are open.
        self._asked = 0
        self._begun = False
        self._live: Live | None = None

    def hear(self, event: Event) -> None:
        """Something happened."""
        if isinstance(event, ASKED_EVENTS):
            self._asked += 1
            self._rest()
        elif isinstance(event, ANSWERED_EVENTS):
            self._asked -= 1
        self._note(event)
        # Text above is shown with what stood below before; output and words come too often to draw each time.
        if self._live is not None and not isinstance(event, Output | ModelTextPiece):
            self._live.refresh()
        self._tell(event)
        if isinstance(event, Ended):
            self._rest()
        elif self._begun and self._asked == 0:
            self._move()

    def _note(self, event: Event) -> None:
        """Keep what is shown below as it is now."""
        row = self._rows.get(event.call_id)
        match event:
            case Proposed(parent=None):
                self._rows[event.call_id] = CallRow(event.tool, event.description)
            case Started() if row is not None:
                row.running, row.began = True, time.monotonic()
            case Output() if row is not None:
                row.output = event.text.strip().rpartition("\n")[2][:MAX_WIDTH]
            case Finished():
                self._rows.pop(event.call_id, None)
            case ModelTextPiece():
                self._draft += event.text
            case Said() | Thought() | Retried():
                self._draft = ""
            case Spent():
                self._spent = event
            case _:
                pass

    def _tell(self, event: Event) -> None:
        """Say what stays."""
        match event:
            case Said() if os.isatty(self._descriptor):
                self._console.print(Text(make_visible(event.text), style="bold"))
            case Said():
                write_line(self._descriptor, event.text)
            case Thought():
                self._console.print(Text(make_visible(event.text), style="dim italic"))
            case PictureReceived() if self._way is not None:
                self._show(event.data, self._way)
            case Finished() if (line := format_event(event)) is not None:
                self._console.print(_format_line(line, STATUS_COLORS.get(event.status, "red")))
            case Ended() if not event.done:
                for line in describe_ending(event):
                    self._console.print(_format_line(line))
            case Begun():
                self._begun, self._began = True, time.monotonic()
                self._console.print(_format_line(f"{event.model} begins.", "dim"))
            case _ if (line := format_event(event)) is not None:
                self._console.print(_format_line(line))
            case _:
                pass

    def _show(self, data: bytes, way: GraphicsProtocol) -> None:
        try:
            picture = render_thumbnail(data, way)
        except OSError:
            return
        self._rest()
        self._console.file.flush()
        os.write(self._console.file.fileno(), picture)

    def _move(self) -> None:
        if self._live is None:
            self._live = Live(
                get_renderable=self._below,
                console=self._console,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
            )
            self._live.start()

    def _rest(self) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def _below(self) -> Group:
        draft = [_format_line(line) for line in self._draft.splitlines()[-MAX_OUTPUT_LINES:]]
        return Group(*draft, *self._rows.values(), _format_line(self._used()))

    def _used(self) -> str:
        spent, budget = self._spent, self._budget
        parts = [f"{time.monotonic() - self._began:.0f} of {budget.seconds:g} s"]
        if spent is not None:
            parts = [f"step {spent.steps} of {budget.steps}", *parts]
            parts.append(f"{spent.tokens_read + spent.tokens_written:,} tokens")
            parts += [f"{spent.dollars:.3f} dollars"] if spent.dollars is not None else []
        return "  ".join([*parts, "Ctrl-C stops the step"])


def _format_line(text: str, style: str = "") -> Text:
    return Text(make_visible(text.replace("\n", " "))[:MAX_WIDTH], style, no_wrap=True, overflow="ellipsis")
