"""Instruction for the agent of a run. The tools add advice of their own."""

from __future__ import annotations

import platform
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from handrail import Session

ROLE = """\
You carry out one task on a computer with the tools you are given, and nobody talks with you meanwhile. Do what the task says and nothing beyond it. \
Look at what a step did before the next one. Calls that need nothing of each other may be made at once. When the task is done, or cannot be done, \
say so in a sentence or two, and call nothing more.
"""
SYSTEMS = {"linux": "Linux", "darwin": "macOS", "win32": "Windows"}


def build_instruction(session: Session) -> str:
    """Return the instruction for an agent in this session as it is now.

    It stays the same from step to step as long as nothing changes.
    """
    where = f"The computer runs {SYSTEMS.get(sys.platform, sys.platform)} ({platform.machine()})."
    folders = ", ".join(map(str, session.workspace))
    may = f"Your files belong in {folders}." if folders else ""
    planning = (
        "This is plan mode: nothing may be changed. Look, and say what you would do." if session.mode == "plan" else ""
    )
    return " ".join(part for part in (ROLE + where, may, planning) if part)
