"""Hands for LLM agents, with a rail.

The names here are what plugins and hosts may import. They are loaded on first use, so that importing `handrail` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handrail.asking.confirm import (
        Answer as Answer,
        Approval as Approval,
        Choice as Choice,
        Confirmer as Confirmer,
    )
    from handrail.asking.inquiries import (
        Asked as Asked,
        Inquiry as Inquiry,
        Question as Question,
        Reply as Reply,
        Respondent as Respondent,
    )
    from handrail.bag import Bag as Bag
    from handrail.calls.context import ToolContext as ToolContext
    from handrail.calls.invocation import (
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
    from handrail.desktops.desktop import (
        Accessibility as Accessibility,
        Desktop as Desktop,
        Desktops as Desktops,
        Focusing as Focusing,
        Glance as Glance,
        Screen as Screen,
        Tree as Tree,
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
    from handrail.hookspecs import hookimpl as hookimpl
    from handrail.judging.rules import (
        Rule as Rule,
    )
    from handrail.judging.verdicts import (
        CommandStep as CommandStep,
        Decision as Decision,
        Evaluator as Evaluator,
        Focus as Focus,
        Judging as Judging,
        Mode as Mode,
        Offer as Offer,
        Opinion as Opinion,
        Part as Part,
        Reach as Reach,
        Reason as Reason,
        Route as Route,
        Touch as Touch,
        Verdict as Verdict,
        View as View,
    )
    from handrail.opening import open as open
    from handrail.plugins.services import (
        Finding as Finding,
        Memory as Memory,
        Service as Service,
        ServiceContext as ServiceContext,
    )
    from handrail.results.values import (
        Media as Media,
        TailCall as TailCall,
        ToolResult as ToolResult,
    )
    from handrail.running.traces import Trace as Trace
    from handrail.sandboxing.confining import Confinement as Confinement
    from handrail.sandboxing.denials import Denial as Denial
    from handrail.sandboxing.sandboxes import (
        Bounds as Bounds,
        Confined as Confined,
        Limits as Limits,
        PreparedSandbox as PreparedSandbox,
        Sandbox as Sandbox,
    )
    from handrail.session import Session as Session
    from handrail.tools.contract import (
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
    from handrail.tools.declarations import (
        declare as declare,
        without_nulls as without_nulls,
    )
    from handrail.tools.families import (
        Variation as Variation,
        family_of as family_of,
    )
    from handrail.vision.backend import (
        BackendContext as BackendContext,
        Cost as Cost,
        NoSettings as NoSettings,
        Plan as Plan,
        PlannedAction as PlannedAction,
        Turn as Turn,
        VisionBackend as VisionBackend,
    )
    from handrail.vision.coordinates import (
        PIXELS as PIXELS,
        TO_999 as TO_999,
        TO_1000 as TO_1000,
        UNIT as UNIT,
        Dialect as Dialect,
        Size as Size,
    )
    from handrail.vision.observation import (
        Element as Element,
        Frame as Frame,
        Observation as Observation,
        Observations as Observations,
        Rect as Rect,
        Transform as Transform,
        Window as Window,
        element_wire as element_wire,
    )
    from handrail.vision.seeing import (
        Answered as Answered,
        Vision as Vision,
    )
    from handrail.watching.observers import (
        Change as Change,
        Observer as Observer,
        Remark as Remark,
    )

__version__ = "0.1.0"

_HOMES = {
    "asking.confirm": (
        "Answer",
        "Approval",
        "Choice",
        "Confirmer",
    ),
    "asking.inquiries": (
        "Asked",
        "Inquiry",
        "Question",
        "Reply",
        "Respondent",
    ),
    "bag": ("Bag",),
    "calls.context": ("ToolContext",),
    "calls.invocation": (
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
    "desktops.desktop": (
        "Accessibility",
        "Desktop",
        "Desktops",
        "Focusing",
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
    "hookspecs": ("hookimpl",),
    "judging.rules": ("Rule",),
    "judging.verdicts": (
        "CommandStep",
        "Decision",
        "Evaluator",
        "Focus",
        "Judging",
        "Mode",
        "Offer",
        "Opinion",
        "Part",
        "Reach",
        "Reason",
        "Route",
        "Touch",
        "Verdict",
        "View",
    ),
    "opening": ("open",),
    "plugins.services": (
        "Finding",
        "Memory",
        "Service",
        "ServiceContext",
    ),
    "results.values": (
        "Media",
        "TailCall",
        "ToolResult",
    ),
    "running.traces": ("Trace",),
    "sandboxing.confining": ("Confinement",),
    "sandboxing.denials": ("Denial",),
    "sandboxing.sandboxes": (
        "Bounds",
        "Confined",
        "Limits",
        "PreparedSandbox",
        "Sandbox",
    ),
    "session": ("Session",),
    "tools.contract": (
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
    "tools.families": (
        "Variation",
        "family_of",
    ),
    "vision.backend": (
        "BackendContext",
        "Cost",
        "NoSettings",
        "Plan",
        "PlannedAction",
        "Turn",
        "VisionBackend",
    ),
    "vision.coordinates": (
        "Dialect",
        "PIXELS",
        "Size",
        "TO_1000",
        "TO_999",
        "UNIT",
    ),
    "vision.observation": (
        "Element",
        "Frame",
        "Observation",
        "Observations",
        "Rect",
        "Transform",
        "Window",
        "element_wire",
    ),
    "vision.seeing": (
        "Answered",
        "Vision",
    ),
    "watching.observers": (
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
