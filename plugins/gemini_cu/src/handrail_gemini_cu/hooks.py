"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    from handrail import Evaluator, Service, ServiceContext, Tool, VisionBackend
    from handrail_gemini_cu.config import ComputerUseConfig
    from handrail_gemini_cu.task_runner import SessionTasks


async def open_tasks(context: ServiceContext) -> SessionTasks:
    """What a session has not finished."""
    from handrail_gemini_cu.task_runner import SessionTasks

    return SessionTasks()


@hookimpl
def handrail_register_vision_backends() -> list[type[VisionBackend]]:
    """The backend `gemini_computer_use`."""
    from handrail_gemini_cu.backend import GeminiComputerUse

    return [GeminiComputerUse]


@hookimpl
def handrail_register_tools() -> list[Tool]:
    """The tool that carries out what a backend plans."""
    from handrail_gemini_cu.tool import execute_computer_use

    return [execute_computer_use]


@hookimpl
def handrail_register_evaluators() -> list[Evaluator]:
    """Who keeps planning models from certain keys."""
    from handrail_gemini_cu.blocked_keys import BlockedKeys

    return [BlockedKeys()]


@hookimpl
def handrail_register_config() -> type[ComputerUseConfig]:
    """`[plugins.gemini_cu]`."""
    from handrail_gemini_cu.config import ComputerUseConfig

    return ComputerUseConfig


@hookimpl
def handrail_register_services() -> list[Service]:
    """What a session has not finished."""
    from handrail import Service

    return [Service("computer_use", open_tasks, "session")]
