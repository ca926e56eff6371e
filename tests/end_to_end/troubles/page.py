"""docs/troubleshooting.md: errors that new users meet, reproduced for real; `python -m tests.end_to_end.troubles.page` writes it."""

from __future__ import annotations

import inspect
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from tests.end_to_end.troubles import command_line, configuration, machine, models, plugins, screens
from tests.end_to_end.troubles.place import Met, Place

PAGE = Path(__file__).parents[3] / "docs" / "troubleshooting.md"
CHAPTERS = (command_line, configuration, plugins, screens, models, machine)

HEAD = """# Troubleshooting

The messages below are actual output of the program; a test reproduces each of them. Search this page for words of your message. A failure prints
one line on stderr that begins with `Error:`, and the remedy there or after `Hint:`. The exit code is 1 if something failed, 2 if the command
line is invalid. In Python the same error is raised as a `HandrailError` with its `hint`, and a tool's result has both in `error.message`.
`handrail doctor` checks what is missing in advance, and `handrail --debug …` shows the traceback.
"""


@dataclass(frozen=True)
class Trouble:
    """One thing that goes wrong: a function of a chapter that runs into it. Its docstring is the title, and what there is to say."""

    chapter: str
    meet: Callable[[Place], Met]

    @property
    def name(self) -> str:
        return self.meet.__name__

    @property
    def title(self) -> str:
        return "### " + inspect.cleandoc(self.meet.__doc__ or "").partition("\n")[0].removesuffix(".")

    def section(self, met: Met) -> str:
        """As the page shows it."""
        more = inspect.cleandoc(self.meet.__doc__ or "").partition("\n")[2].strip()
        parts = [self.title, more, met.before, f"```\n$ {met.typed}\n{met.said.strip()}\n```\n"]
        return "\n".join(part if part.endswith("\n") else f"{part}\n" for part in parts if part)


def troubles() -> Iterator[Trouble]:
    """All of them, in the order of the page."""
    for chapter in CHAPTERS:
        for name, function in vars(chapter).items():
            if inspect.isfunction(function) and function.__module__ == chapter.__name__ and name[0] != "_":
                yield Trouble(_title(chapter), function)


def _title(chapter: ModuleType) -> str:
    return (chapter.__doc__ or "").strip().removesuffix(".")


def page(sections: Iterator[tuple[str, str]]) -> str:
    """The text of the page, by chapter and section."""
    parts, last = [HEAD], ""
    for chapter, section in sections:
        if chapter != last:
            parts.append(f"\n## {chapter}\n")
        parts.append(f"\n{section}")
        last = chapter
    return "".join(parts)


def _met() -> Iterator[tuple[str, str]]:
    for trouble in troubles():
        with tempfile.TemporaryDirectory() as folder:
            yield trouble.chapter, trouble.section(trouble.meet(Place(Path(folder))))


if __name__ == "__main__":
    PAGE.write_text(page(_met()), encoding="utf-8")
