"""Every hook. Hooks only register, one plugin at a time, at start; what is registered does the work."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import pluggy

if TYPE_CHECKING:
    from pathlib import Path

    import click
    from pydantic import BaseModel

    from handrail.api.observer import Observer
    from handrail.api.service import Service
    from handrail.api.tool import Tool, Toolset
    from handrail.api.verdict import Evaluator
    from handrail.api.vision import VisionBackend
    from handrail.policy.rules import Rule
    from handrail.sandbox.interface import Sandbox
    from handrail.workers.external_traces import TraceProvider

__all__ = ["hookimpl"]

hookspec = pluggy.HookspecMarker("handrail")
# Marks a function of a plugin as one of the hooks.
hookimpl = pluggy.HookimplMarker("handrail")


@hookspec
def handrail_register_tools() -> Iterable[Tool | Toolset]:
    """Return the tools this plugin offers, or toolsets whose tools are asked for at each listing."""
    return ()


@hookspec
def handrail_register_evaluators() -> Iterable[Evaluator]:
    """Return judges of tool calls. The strictest opinion wins, in any plugin order."""
    return ()


@hookspec
def handrail_register_rules() -> Iterable[Rule]:
    """Return policy rules that apply unless the user's rules override them; allow rules require `[security] trust`."""
    return ()


@hookspec
def handrail_register_vision_backends() -> Iterable[type[VisionBackend]]:
    """Return backends as classes; only the selected one is instantiated."""
    return ()


@hookspec
def handrail_register_sandboxes() -> Iterable[type[Sandbox]]:
    """Return sandboxes as classes, best first; only a usable one is instantiated.

    Commands, scripts and skill code can be routed to them.
    """
    return ()


@hookspec
def handrail_register_skills() -> Iterable[Path]:
    """Return folders whose subfolders are skills shipped with this plugin."""
    return ()


@hookspec
def handrail_register_services() -> Iterable[Service]:
    """Return services that other plugins may ask for by capability."""
    return ()


@hookspec
def handrail_register_config() -> type[BaseModel] | None:
    """Return the model of this plugin's settings, read from `[plugins.<name>]`."""
    return None


@hookspec
def handrail_register_commands() -> Iterable[click.Command]:
    """Return commands for the `handrail` program."""
    return ()


@hookspec
def handrail_register_observers() -> Iterable[Observer]:
    """Return observers: they see each call of every session before it is judged, and its result before the model does."""
    return ()


@hookspec
def handrail_register_traces() -> Iterable[TraceProvider]:
    """Return functions that say what this plugin wrote into files of other programs, for whoever removes Handrail."""
    return ()
