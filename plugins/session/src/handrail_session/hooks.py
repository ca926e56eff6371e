"""Registration hooks of this plugin; lightweight because it is imported at every startup."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from handrail import hookimpl

if TYPE_CHECKING:
    import click

    from handrail import Service, Tool


@hookimpl
def handrail_register_tools() -> Iterable[Tool]:
    """Return `ask_user`, `write_todos`, `save_memory`, `recall_memory`, plan mode, `generate_plan`, `update_topic`."""
    from handrail_session.ask_user_tool import ask_user
    from handrail_session.memory_tools import recall_memory, save_memory
    from handrail_session.plan_mode import enter_plan_mode, exit_plan_mode, generate_plan
    from handrail_session.todos import write_todos
    from handrail_session.topic_tool import update_topic

    return [
        ask_user,
        write_todos,
        save_memory,
        recall_memory,
        enter_plan_mode,
        exit_plan_mode,
        generate_plan,
        update_topic,
    ]


@hookimpl
def handrail_register_services() -> Iterable[Service]:
    """Return `memory`: facts that are remembered across sessions."""
    from handrail_session.memory_tools import MEMORY_SERVICE

    return [MEMORY_SERVICE]


@hookimpl
def handrail_register_commands() -> Iterable[click.Command]:
    """Return `handrail memory`."""
    from handrail_session.memory_command import memory_group

    return [memory_group]
