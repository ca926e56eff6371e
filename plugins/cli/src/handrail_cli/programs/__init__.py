"""What programs do, as data: the kind of each command line, what it names, what it needs and what it runs in its turn."""

from __future__ import annotations

from handrail_cli.programs.values import InnerRun, NamedOperand, ProgramUse, UseKind

__all__ = ["InnerRun", "NamedOperand", "ProgramUse", "UseKind"]
