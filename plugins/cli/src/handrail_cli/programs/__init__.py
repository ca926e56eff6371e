"""Behavior of programs, as data: the kind of each command line, its operands, its needs and the commands it runs."""

from __future__ import annotations

from handrail_cli.programs.values import InnerRun, NamedOperand, ProgramUse, UseKind

__all__ = ["InnerRun", "NamedOperand", "ProgramUse", "UseKind"]
