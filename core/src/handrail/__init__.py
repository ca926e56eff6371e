"""Hands for LLM agents, with a rail.

The names here are what plugins and hosts may import. They are loaded on first use, so that importing `handrail` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handrail.bag import Bag as Bag
    from handrail.confining import Confinement as Confinement
    from handrail.confirm import (
        Answer as Answer,
    )
    from handrail.confirm import (
        Approval as Approval,
    )
    from handrail.confirm import (
        Choice as Choice,
    )
    from handrail.confirm import (
        Confirmer as Confirmer,
    )
    from handrail.context import ToolContext as ToolContext
    from handrail.coordinates import (
        PIXELS as PIXELS,
    )
    from handrail.coordinates import (
        TO_999 as TO_999,
    )
    from handrail.coordinates import (
        TO_1000 as TO_1000,
    )
    from handrail.coordinates import (
        UNIT as UNIT,
    )
    from handrail.coordinates import (
        Dialect as Dialect,
    )
    from handrail.coordinates import (
        Size as Size,
    )
    from handrail.declarations import (
        declare as declare,
    )
    from handrail.declarations import (
        without_nulls as without_nulls,
    )
    from handrail.denials import Denial as Denial
    from handrail.desktop import (
        Accessibility as Accessibility,
    )
    from handrail.desktop import (
        Desktop as Desktop,
    )
    from handrail.desktop import (
        Desktops as Desktops,
    )
    from handrail.desktop import (
        Focusing as Focusing,
    )
    from handrail.desktop import (
        Screen as Screen,
    )
    from handrail.desktop import (
        Tree as Tree,
    )
    from handrail.errors import (
        AmbiguousElement as AmbiguousElement,
    )
    from handrail.errors import (
        BackendUnavailable as BackendUnavailable,
    )
    from handrail.errors import (
        ConfigError as ConfigError,
    )
    from handrail.errors import (
        Denied as Denied,
    )
    from handrail.errors import (
        DesktopError as DesktopError,
    )
    from handrail.errors import (
        Downstream as Downstream,
    )
    from handrail.errors import (
        Failsafe as Failsafe,
    )
    from handrail.errors import (
        HandrailError as HandrailError,
    )
    from handrail.errors import (
        InvalidArguments as InvalidArguments,
    )
    from handrail.errors import (
        NoSandbox as NoSandbox,
    )
    from handrail.errors import (
        NotFound as NotFound,
    )
    from handrail.errors import (
        OutOfRange as OutOfRange,
    )
    from handrail.errors import (
        PluginError as PluginError,
    )
    from handrail.errors import (
        SandboxDenied as SandboxDenied,
    )
    from handrail.errors import (
        StaleElement as StaleElement,
    )
    from handrail.errors import (
        StaleObservation as StaleObservation,
    )
    from handrail.errors import (
        Stopped as Stopped,
    )
    from handrail.errors import (
        TimedOut as TimedOut,
    )
    from handrail.errors import (
        ToolError as ToolError,
    )
    from handrail.errors import (
        ToolUnavailable as ToolUnavailable,
    )
    from handrail.families import (
        Variation as Variation,
    )
    from handrail.families import (
        family_of as family_of,
    )
    from handrail.hookspecs import hookimpl as hookimpl
    from handrail.inquiries import (
        Asked as Asked,
    )
    from handrail.inquiries import (
        Inquiry as Inquiry,
    )
    from handrail.inquiries import (
        Question as Question,
    )
    from handrail.inquiries import (
        Reply as Reply,
    )
    from handrail.inquiries import (
        Respondent as Respondent,
    )
    from handrail.invocation import (
        EditConfirmation as EditConfirmation,
    )
    from handrail.invocation import (
        ExecConfirmation as ExecConfirmation,
    )
    from handrail.invocation import (
        GrantOption as GrantOption,
    )
    from handrail.invocation import (
        GuiConfirmation as GuiConfirmation,
    )
    from handrail.invocation import (
        InfoConfirmation as InfoConfirmation,
    )
    from handrail.invocation import (
        Invocation as Invocation,
    )
    from handrail.invocation import (
        Location as Location,
    )
    from handrail.invocation import (
        McpConfirmation as McpConfirmation,
    )
    from handrail.invocation import (
        ToolCall as ToolCall,
    )
    from handrail.invocation import (
        UrlConfirmation as UrlConfirmation,
    )
    from handrail.judging import (
        Decision as Decision,
    )
    from handrail.judging import (
        Evaluator as Evaluator,
    )
    from handrail.judging import (
        Focus as Focus,
    )
    from handrail.judging import (
        Judging as Judging,
    )
    from handrail.judging import (
        Mode as Mode,
    )
    from handrail.judging import (
        Offer as Offer,
    )
    from handrail.judging import (
        Opinion as Opinion,
    )
    from handrail.judging import (
        Part as Part,
    )
    from handrail.judging import (
        Reason as Reason,
    )
    from handrail.judging import (
        Route as Route,
    )
    from handrail.judging import (
        Touch as Touch,
    )
    from handrail.judging import (
        Verdict as Verdict,
    )
    from handrail.observation import (
        Element as Element,
    )
    from handrail.observation import (
        Frame as Frame,
    )
    from handrail.observation import (
        Observation as Observation,
    )
    from handrail.observation import (
        Observations as Observations,
    )
    from handrail.observation import (
        Rect as Rect,
    )
    from handrail.observation import (
        Transform as Transform,
    )
    from handrail.observation import (
        Window as Window,
    )
    from handrail.observation import (
        element_wire as element_wire,
    )
    from handrail.observers import (
        Change as Change,
    )
    from handrail.observers import (
        Observer as Observer,
    )
    from handrail.observers import (
        Remark as Remark,
    )
    from handrail.opening import open as open
    from handrail.results import (
        Media as Media,
    )
    from handrail.results import (
        TailCall as TailCall,
    )
    from handrail.results import (
        ToolResult as ToolResult,
    )
    from handrail.rules import (
        Rule as Rule,
    )
    from handrail.sandboxes import (
        Bounds as Bounds,
    )
    from handrail.sandboxes import (
        Confined as Confined,
    )
    from handrail.sandboxes import (
        Limits as Limits,
    )
    from handrail.sandboxes import (
        Sandbox as Sandbox,
    )
    from handrail.seeing import (
        Answered as Answered,
    )
    from handrail.seeing import (
        Vision as Vision,
    )
    from handrail.services import (
        Finding as Finding,
    )
    from handrail.services import (
        Memory as Memory,
    )
    from handrail.services import (
        Service as Service,
    )
    from handrail.services import (
        ServiceContext as ServiceContext,
    )
    from handrail.session import Session as Session
    from handrail.tools import (
        Delete as Delete,
    )
    from handrail.tools import (
        Effect as Effect,
    )
    from handrail.tools import (
        Input as Input,
    )
    from handrail.tools import (
        Read as Read,
    )
    from handrail.tools import (
        Remote as Remote,
    )
    from handrail.tools import (
        Run as Run,
    )
    from handrail.tools import (
        Send as Send,
    )
    from handrail.tools import (
        Tool as Tool,
    )
    from handrail.tools import (
        Toolset as Toolset,
    )
    from handrail.tools import (
        Write as Write,
    )
    from handrail.tools import (
        tool as tool,
    )
    from handrail.vision import (
        BackendContext as BackendContext,
    )
    from handrail.vision import (
        Cost as Cost,
    )
    from handrail.vision import (
        NoSettings as NoSettings,
    )
    from handrail.vision import (
        Plan as Plan,
    )
    from handrail.vision import (
        PlannedAction as PlannedAction,
    )
    from handrail.vision import (
        Turn as Turn,
    )
    from handrail.vision import (
        VisionBackend as VisionBackend,
    )

__version__ = "0.1.0"

_HOMES = {
    "bag": ("Bag",),
    "confirm": ("Answer", "Approval", "Choice", "Confirmer"),
    "context": ("ToolContext",),
    "desktop": ("Accessibility", "Desktop", "Desktops", "Focusing", "Screen", "Tree"),
    "errors": (
        "AmbiguousElement",
        "BackendUnavailable",
        "ConfigError",
        "Denied",
        "DesktopError",
        "Downstream",
        "Failsafe",
        "HandrailError",
        "InvalidArguments",
        "NoSandbox",
        "NotFound",
        "OutOfRange",
        "PluginError",
        "StaleElement",
        "StaleObservation",
        "Stopped",
        "TimedOut",
        "SandboxDenied",
        "ToolError",
        "ToolUnavailable",
    ),
    "families": ("Variation", "family_of"),
    "hookspecs": ("hookimpl",),
    "inquiries": ("Asked", "Inquiry", "Question", "Reply", "Respondent"),
    "invocation": (
        "EditConfirmation",
        "ExecConfirmation",
        "GrantOption",
        "GuiConfirmation",
        "InfoConfirmation",
        "Invocation",
        "Location",
        "McpConfirmation",
        "ToolCall",
        "UrlConfirmation",
    ),
    "judging": (
        "Decision",
        "Evaluator",
        "Focus",
        "Judging",
        "Mode",
        "Offer",
        "Opinion",
        "Part",
        "Reason",
        "Route",
        "Touch",
        "Verdict",
    ),
    "observation": ("Element", "Frame", "Observation", "Observations", "Rect", "Transform", "Window", "element_wire"),
    "observers": ("Change", "Observer", "Remark"),
    "opening": ("open",),
    "results": ("Media", "TailCall", "ToolResult"),
    "confining": ("Confinement",),
    "declarations": ("declare", "without_nulls"),
    "denials": ("Denial",),
    "rules": ("Rule",),
    "sandboxes": ("Bounds", "Confined", "Limits", "Sandbox"),
    "services": ("Finding", "Memory", "Service", "ServiceContext"),
    "session": ("Session",),
    "coordinates": ("PIXELS", "TO_1000", "TO_999", "UNIT", "Dialect", "Size"),
    "seeing": ("Answered", "Vision"),
    "tools": ("Delete", "Effect", "Input", "Read", "Remote", "Run", "Send", "Tool", "Toolset", "Write", "tool"),
    "vision": ("BackendContext", "Cost", "NoSettings", "Plan", "PlannedAction", "Turn", "VisionBackend"),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'handrail' has no attribute {name!r}")
    return getattr(importlib.import_module(f"handrail.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
