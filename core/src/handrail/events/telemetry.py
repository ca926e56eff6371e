"""Spans of calls by OpenTelemetry's conventions for generative AI, where the API is installed; nothing of it is imported elsewhere.

Conventions: https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/#execute-tool-span
"""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from handrail.redaction import redact_value
from handrail.version import __version__

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span, Tracer

    from handrail.api.call import Invocation, ToolCall
    from handrail.api.result import ToolResult
    from handrail.pipeline.call_task import CallTask
    from handrail.session.session import Session

ProcessCall = Callable[["Session", "ToolCall", "Invocation | None", "CallTask | None"], Awaitable["ToolResult"]]
# Characters of arguments and of a result in an attribute.
MAX_SHOWN_CHARS = 10_000


class CallTracer:
    """What makes the spans of a session. A call's span is the current one while it runs, so that nested calls are its children."""

    def __init__(self, session: Session, tracer: Tracer) -> None:
        self._session = session
        self._tracer = tracer
        self._above = _parent_context(session.runtime.environment)

    async def call(
        self, through: ProcessCall, call: ToolCall, parent: Invocation | None, running: CallTask | None
    ) -> ToolResult:
        """Make the call within a span."""
        from opentelemetry import trace

        current = trace.get_current_span().get_span_context().is_valid
        with self._tracer.start_as_current_span(
            f"execute_tool {call.name}",
            context=None if current else self._above,
            kind=trace.SpanKind.INTERNAL,
            attributes=self._begun(call, parent),
        ) as span:
            result = await through(self._session, call, parent, running)
            self._ended(span, result)
            return result

    def _begun(self, call: ToolCall, parent: Invocation | None) -> dict[str, str]:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": str(call.name),
            "gen_ai.tool.call.id": call.call_id,
            "gen_ai.tool.type": "function",
            "gen_ai.conversation.id": self._session.id,
        }
        if parent is not None:
            attributes["handrail.parent.call.id"] = parent.call_id
        if self._session.settings.telemetry.arguments:
            attributes["gen_ai.tool.call.arguments"] = self._shown(call.args)
        return attributes

    def _ended(self, span: Span, result: ToolResult) -> None:
        from opentelemetry.trace import Status, StatusCode

        span.set_attribute("handrail.status", result.status)
        if self._session.settings.telemetry.arguments:
            span.set_attribute("gen_ai.tool.call.result", self._shown(result))
        if not result.ok:
            code = result.error_code or result.status
            span.set_attribute("error.type", code)
            span.set_status(Status(StatusCode.ERROR, code))

    def _shown(self, value: Any) -> str:
        """The value as text, without secrets; what cannot be written down is named by its error."""
        try:
            return json.dumps(redact_value(self._session.secrets.kept(value)), ensure_ascii=False, default=str)[
                :MAX_SHOWN_CHARS
            ]
        except Exception as exc:  # noqa: BLE001 # handlers and hosts hand over anything
            return f"[cannot be written down: {type(exc).__name__}]"


def create_tracer(session: Session) -> CallTracer | None:
    """What makes spans for the session: where it is turned on, or the program that Handrail is part of has set up a tracer provider."""
    wanted = session.settings.telemetry.enabled
    if importlib.util.find_spec("opentelemetry") is None:
        return None
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    if wanted is None and isinstance(provider, trace.ProxyTracerProvider):
        return None
    return CallTracer(session, provider.get_tracer("handrail", __version__))


def _parent_context(environment: Mapping[str, str]) -> Context | None:
    """The span that started this program, by the variables TRACEPARENT and TRACESTATE (W3C Trace Context)."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {name: environment[name.upper()] for name in ("traceparent", "tracestate") if name.upper() in environment}
    return TraceContextTextMapPropagator().extract(carrier) if carrier else None
