"""Hands for LLM agents, with a rail.

The names here are what plugins and hosts may import. They are loaded on first use, so that importing `handrail` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from handrail.asking.confirm import (
        Answer as Answer,
    )
    from handrail.asking.confirm import (
        Approval as Approval,
    )
    from handrail.asking.confirm import (
        Choice as Choice,
    )
    from handrail.asking.confirm import (
        Confirmer as Confirmer,
    )
    from handrail.asking.inquiries import (
        Asked as Asked,
    )
    from handrail.asking.inquiries import (
        Inquiry as Inquiry,
    )
    from handrail.asking.inquiries import (
        Question as Question,
    )
    from handrail.asking.inquiries import (
        Reply as Reply,
    )
    from handrail.asking.inquiries import (
        Respondent as Respondent,
    )
    from handrail.bag import Bag as Bag
    from handrail.calls.context import ToolContext as ToolContext
    from handrail.calls.invocation import (
        EditConfirmation as EditConfirmation,
    )
    from handrail.calls.invocation import (
        ExecConfirmation as ExecConfirmation,
    )
    from handrail.calls.invocation import (
        GrantOption as GrantOption,
    )
    from handrail.calls.invocation import (
        GuiConfirmation as GuiConfirmation,
    )
    from handrail.calls.invocation import (
        InfoConfirmation as InfoConfirmation,
    )
    from handrail.calls.invocation import (
        Invocation as Invocation,
    )
    from handrail.calls.invocation import (
        Location as Location,
    )
    from handrail.calls.invocation import (
        McpConfirmation as McpConfirmation,
    )
    from handrail.calls.invocation import (
        ToolCall as ToolCall,
    )
    from handrail.calls.invocation import (
        UrlConfirmation as UrlConfirmation,
    )
    from handrail.desktops.desktop import (
        Accessibility as Accessibility,
    )
    from handrail.desktops.desktop import (
        Desktop as Desktop,
    )
    from handrail.desktops.desktop import (
        Desktops as Desktops,
    )
    from handrail.desktops.desktop import (
        Focusing as Focusing,
    )
    from handrail.desktops.desktop import (
        Screen as Screen,
    )
    from handrail.desktops.desktop import (
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
    from handrail.hookspecs import hookimpl as hookimpl
    from handrail.judging.rules import (
        Rule as Rule,
    )
    from handrail.judging.verdicts import (
        Decision as Decision,
    )
    from handrail.judging.verdicts import (
        Evaluator as Evaluator,
    )
    from handrail.judging.verdicts import (
        Focus as Focus,
    )
    from handrail.judging.verdicts import (
        Judging as Judging,
    )
    from handrail.judging.verdicts import (
        Mode as Mode,
    )
    from handrail.judging.verdicts import (
        Offer as Offer,
    )
    from handrail.judging.verdicts import (
        Opinion as Opinion,
    )
    from handrail.judging.verdicts import (
        Part as Part,
    )
    from handrail.judging.verdicts import (
        Reason as Reason,
    )
    from handrail.judging.verdicts import (
        Route as Route,
    )
    from handrail.judging.verdicts import (
        Touch as Touch,
    )
    from handrail.judging.verdicts import (
        Verdict as Verdict,
    )
    from handrail.opening import open as open
    from handrail.plugins.services import (
        Finding as Finding,
    )
    from handrail.plugins.services import (
        Memory as Memory,
    )
    from handrail.plugins.services import (
        Service as Service,
    )
    from handrail.plugins.services import (
        ServiceContext as ServiceContext,
    )
    from handrail.results.values import (
        Media as Media,
    )
    from handrail.results.values import (
        TailCall as TailCall,
    )
    from handrail.results.values import (
        ToolResult as ToolResult,
    )
    from handrail.sandboxing.confining import Confinement as Confinement
    from handrail.sandboxing.denials import Denial as Denial
    from handrail.sandboxing.sandboxes import (
        Bounds as Bounds,
    )
    from handrail.sandboxing.sandboxes import (
        Confined as Confined,
    )
    from handrail.sandboxing.sandboxes import (
        Limits as Limits,
    )
    from handrail.sandboxing.sandboxes import (
        Sandbox as Sandbox,
    )
    from handrail.session import Session as Session
    from handrail.tools.contract import (
        Delete as Delete,
    )
    from handrail.tools.contract import (
        Effect as Effect,
    )
    from handrail.tools.contract import (
        Input as Input,
    )
    from handrail.tools.contract import (
        Read as Read,
    )
    from handrail.tools.contract import (
        Remote as Remote,
    )
    from handrail.tools.contract import (
        Run as Run,
    )
    from handrail.tools.contract import (
        Send as Send,
    )
    from handrail.tools.contract import (
        Tool as Tool,
    )
    from handrail.tools.contract import (
        Toolset as Toolset,
    )
    from handrail.tools.contract import (
        Write as Write,
    )
    from handrail.tools.contract import (
        tool as tool,
    )
    from handrail.tools.declarations import (
        declare as declare,
    )
    from handrail.tools.declarations import (
        without_nulls as without_nulls,
    )
    from handrail.tools.families import (
        Variation as Variation,
    )
    from handrail.tools.families import (
        family_of as family_of,
    )
    from handrail.vision.backend import (
        BackendContext as BackendContext,
    )
    from handrail.vision.backend import (
        Cost as Cost,
    )
    from handrail.vision.backend import (
        NoSettings as NoSettings,
    )
    from handrail.vision.backend import (
        Plan as Plan,
    )
    from handrail.vision.backend import (
        PlannedAction as PlannedAction,
    )
    from handrail.vision.backend import (
        Turn as Turn,
    )
    from handrail.vision.backend import (
        VisionBackend as VisionBackend,
    )
    from handrail.vision.coordinates import (
        PIXELS as PIXELS,
    )
    from handrail.vision.coordinates import (
        TO_999 as TO_999,
    )
    from handrail.vision.coordinates import (
        TO_1000 as TO_1000,
    )
    from handrail.vision.coordinates import (
        UNIT as UNIT,
    )
    from handrail.vision.coordinates import (
        Dialect as Dialect,
    )
    from handrail.vision.coordinates import (
        Size as Size,
    )
    from handrail.vision.observation import (
        Element as Element,
    )
    from handrail.vision.observation import (
        Frame as Frame,
    )
    from handrail.vision.observation import (
        Observation as Observation,
    )
    from handrail.vision.observation import (
        Observations as Observations,
    )
    from handrail.vision.observation import (
        Rect as Rect,
    )
    from handrail.vision.observation import (
        Transform as Transform,
    )
    from handrail.vision.observation import (
        Window as Window,
    )
    from handrail.vision.observation import (
        element_wire as element_wire,
    )
    from handrail.vision.seeing import (
        Answered as Answered,
    )
    from handrail.vision.seeing import (
        Vision as Vision,
    )
    from handrail.watching.observers import (
        Change as Change,
    )
    from handrail.watching.observers import (
        Observer as Observer,
    )
    from handrail.watching.observers import (
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
    "sandboxing.confining": ("Confinement",),
    "sandboxing.denials": ("Denial",),
    "sandboxing.sandboxes": (
        "Bounds",
        "Confined",
        "Limits",
        "Sandbox",
    ),
    "session": ("Session",),
    "tools.contract": (
        "Delete",
        "Effect",
        "Input",
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
