"""Tools for LLM agents that act on a computer, with guardrails.

This module exports the public API for plugins and hosts. Names are loaded on first use, and importing `handrail` is
therefore cheap.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from handrail.version import __version__ as __version__

if TYPE_CHECKING:
    from handrail.api.approval import (
        Answer as Answer,
        Approval as Approval,
        Choice as Choice,
        Confirmer as Confirmer,
    )
    from handrail.api.call import (
        EditConfirmation as EditConfirmation,
        ExecConfirmation as ExecConfirmation,
        GrantOption as GrantOption,
        GuiConfirmation as GuiConfirmation,
        InfoConfirmation as InfoConfirmation,
        Invocation as Invocation,
        Location as Location,
        McpConfirmation as McpConfirmation,
        ToolCall as ToolCall,
        UrlConfirmation as UrlConfirmation,
    )
    from handrail.api.coordinates import (
        PIXELS as PIXELS,
        TO_999 as TO_999,
        TO_1000 as TO_1000,
        UNIT as UNIT,
        Dialect as Dialect,
        Size as Size,
    )
    from handrail.api.desktop import (
        Accessibility as Accessibility,
        Desktop as Desktop,
        Desktops as Desktops,
        FocusService as FocusService,
        Glance as Glance,
        Screen as Screen,
        Tree as Tree,
    )
    from handrail.api.model_families import Variation as Variation, family_of as family_of
    from handrail.api.observation import (
        Element as Element,
        Frame as Frame,
        Observation as Observation,
        Observations as Observations,
        Rect as Rect,
        Transform as Transform,
        Window as Window,
        element_wire as element_wire,
    )
    from handrail.api.observer import (
        Change as Change,
        Observer as Observer,
        Remark as Remark,
    )
    from handrail.api.result import (
        Media as Media,
        TailCall as TailCall,
        ToolResult as ToolResult,
    )
    from handrail.api.sandbox import (
        Bounds as Bounds,
        Confined as Confined,
        Denial as Denial,
        Limits as Limits,
        PreparedSandbox as PreparedSandbox,
    )
    from handrail.api.service import Finding as Finding, Memory as Memory, Service as Service
    from handrail.api.tool import (
        Delete as Delete,
        Effect as Effect,
        Input as Input,
        NamedToolset as NamedToolset,
        Read as Read,
        Remote as Remote,
        Run as Run,
        Send as Send,
        Tool as Tool,
        Toolset as Toolset,
        Write as Write,
        tool as tool,
    )
    from handrail.api.verdict import (
        Access as Access,
        CommandStep as CommandStep,
        Decision as Decision,
        EvaluationContext as EvaluationContext,
        Evaluator as Evaluator,
        KeyboardTarget as KeyboardTarget,
        Mode as Mode,
        Opinion as Opinion,
        Reach as Reach,
        Reason as Reason,
        Route as Route,
        SandboxOffer as SandboxOffer,
        SubCommand as SubCommand,
        Verdict as Verdict,
        View as View,
    )
    from handrail.api.vision import (
        BackendContext as BackendContext,
        Cost as Cost,
        NoSettings as NoSettings,
        Plan as Plan,
        PlannedAction as PlannedAction,
        Turn as Turn,
        VisionBackend as VisionBackend,
    )
    from handrail.approval.ask_user import (
        AnswerKind as AnswerKind,
        Inquiry as Inquiry,
        Question as Question,
        Reply as Reply,
        Respondent as Respondent,
    )
    from handrail.errors import (
        AmbiguousElement as AmbiguousElement,
        BackendUnavailable as BackendUnavailable,
        ConfigError as ConfigError,
        Denied as Denied,
        DesktopError as DesktopError,
        Downstream as Downstream,
        Failsafe as Failsafe,
        HandrailError as HandrailError,
        InvalidArguments as InvalidArguments,
        NoSandbox as NoSandbox,
        NotFound as NotFound,
        OutOfRange as OutOfRange,
        PersonAtWork as PersonAtWork,
        PluginError as PluginError,
        SandboxDenied as SandboxDenied,
        StaleElement as StaleElement,
        StaleObservation as StaleObservation,
        Stopped as Stopped,
        TimedOut as TimedOut,
        ToolError as ToolError,
        ToolUnavailable as ToolUnavailable,
    )
    from handrail.nested_dict import Bag as Bag
    from handrail.plugins.hookspecs import hookimpl as hookimpl
    from handrail.policy.rules import (
        Rule as Rule,
    )
    from handrail.sandbox.confinement import Confinement as Confinement
    from handrail.sandbox.interface import Sandbox as Sandbox
    from handrail.session.open_session import open as open
    from handrail.session.service_context import ServiceContext as ServiceContext
    from handrail.session.session import Session as Session
    from handrail.session.tool_context import ToolContext as ToolContext
    from handrail.tools.declarations import (
        declare as declare,
        without_nulls as without_nulls,
    )
    from handrail.vision.backend_chain import (
        Answered as Answered,
        Vision as Vision,
    )
    from handrail.workers.external_traces import Trace as Trace

_HOMES = {
    "api.approval": (
        "Answer",
        "Approval",
        "Choice",
        "Confirmer",
    ),
    "approval.ask_user": (
        "AnswerKind",
        "Inquiry",
        "Question",
        "Reply",
        "Respondent",
    ),
    "nested_dict": ("Bag",),
    "session.tool_context": ("ToolContext",),
    "api.call": (
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
    "api.desktop": (
        "Accessibility",
        "Desktop",
        "Desktops",
        "FocusService",
        "Screen",
        "Glance",
        "Tree",
    ),
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
        "PersonAtWork",
        "PluginError",
        "SandboxDenied",
        "StaleElement",
        "StaleObservation",
        "Stopped",
        "TimedOut",
        "ToolError",
        "ToolUnavailable",
    ),
    "plugins.hookspecs": ("hookimpl",),
    "policy.rules": ("Rule",),
    "api.verdict": (
        "CommandStep",
        "Decision",
        "Evaluator",
        "KeyboardTarget",
        "EvaluationContext",
        "Mode",
        "SandboxOffer",
        "Opinion",
        "SubCommand",
        "Reach",
        "Reason",
        "Route",
        "Access",
        "Verdict",
        "View",
    ),
    "session.open_session": ("open",),
    "api.service": (
        "Finding",
        "Memory",
        "Service",
    ),
    "api.result": (
        "Media",
        "TailCall",
        "ToolResult",
    ),
    "workers.external_traces": ("Trace",),
    "sandbox.confinement": ("Confinement",),
    "api.sandbox": (
        "Bounds",
        "Confined",
        "Limits",
        "Denial",
        "PreparedSandbox",
    ),
    "sandbox.interface": ("Sandbox",),
    "session.service_context": ("ServiceContext",),
    "session.session": ("Session",),
    "api.tool": (
        "Delete",
        "Effect",
        "Input",
        "NamedToolset",
        "Read",
        "Remote",
        "Run",
        "Send",
        "Tool",
        "Toolset",
        "Write",
        "tool",
    ),
    "tools.declarations": (
        "declare",
        "without_nulls",
    ),
    "api.model_families": (
        "Variation",
        "family_of",
    ),
    "api.vision": (
        "BackendContext",
        "Cost",
        "NoSettings",
        "Plan",
        "PlannedAction",
        "Turn",
        "VisionBackend",
    ),
    "api.coordinates": (
        "Dialect",
        "PIXELS",
        "Size",
        "TO_1000",
        "TO_999",
        "UNIT",
    ),
    "api.observation": (
        "Element",
        "Frame",
        "Observation",
        "Observations",
        "Rect",
        "Transform",
        "Window",
        "element_wire",
    ),
    "vision.backend_chain": (
        "Answered",
        "Vision",
    ),
    "api.observer": (
        "Change",
        "Observer",
        "Remark",
    ),
}
_HOME_OF = {name: module for module, names in _HOMES.items() for name in names}

__all__ = sorted(_HOME_OF)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name not in _HOME_OF:
        raise AttributeError(f"module 'handrail' has no attribute {name!r}")
    return getattr(importlib.import_module(f"handrail.{_HOME_OF[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
