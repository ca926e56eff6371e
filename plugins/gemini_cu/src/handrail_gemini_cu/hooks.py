"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Evaluator, Service, ServiceContext, Tool, VisionBackend
    from handrail_gemini_cu.config import ComputerUseConfig
    from handrail_gemini_cu.task_runner import SessionTasks


async def open_tasks(context: ServiceContext) -> SessionTasks:
    """Create the service that holds a session's unfinished tasks."""
    from handrail_gemini_cu.task_runner import SessionTasks

    return SessionTasks()


@hookimpl
def handrail_register_vision_backends() -> list[type[VisionBackend]]:
    """Return the vision backend `gemini_computer_use`."""
    from handrail_gemini_cu.backend import GeminiComputerUse

    return [GeminiComputerUse]


@hookimpl
def handrail_register_tools() -> list[Tool]:
    """Return the tool that carries out what a backend plans."""
    from handrail_gemini_cu.tool import execute_computer_use

    return [execute_computer_use]


@hookimpl
def handrail_register_evaluators() -> list[Evaluator]:
    """Return the evaluator that denies certain keys to planning models."""
    from handrail_gemini_cu.blocked_keys import BlockedKeys

    return [BlockedKeys()]


@hookimpl
def handrail_register_config() -> type[ComputerUseConfig]:
    """Return the schema of `[plugins.gemini_cu]`."""
    from handrail_gemini_cu.config import ComputerUseConfig

    return ComputerUseConfig


@hookimpl
def handrail_register_services() -> list[Service]:
    """Return the service that holds a session's unfinished tasks."""
    from handrail import Service

    return [Service("computer_use", open_tasks, "session")]
