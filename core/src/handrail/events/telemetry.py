"""Spans of calls by OpenTelemetry's conventions for generative AI, if the API is installed.

No other module imports the API. Conventions:
https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/#execute-tool-span
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
    from handrail.config.settings import TelemetrySettings

# Characters of arguments and of a result in an attribute.
MAX_SHOWN_CHARS = 10_000


class CallTracer:
    """Creator of a session's spans. A call's span is current while it runs, which makes nested calls its children."""

    def __init__(
        self,
        tracer: Tracer,
        *,
        session: str,
        settings: Callable[[], TelemetrySettings],
        environment: Mapping[str, str],
        kept: Callable[[Any], Any],
    ) -> None:
        self._tracer = tracer
        self._session = session
        self._above = _parent_context(environment)
        self._settings = settings
        self._kept = kept

    async def call(
        self, process: Callable[[], Awaitable[ToolResult]], call: ToolCall, parent: Invocation | None
    ) -> ToolResult:
        """Make the call, by `process`, within a span."""
        from opentelemetry import trace

        current = trace.get_current_span().get_span_context().is_valid
        with self._tracer.start_as_current_span(
            f"execute_tool {call.name}",
            context=None if current else self._above,
            kind=trace.SpanKind.INTERNAL,
            attributes=self._begun(call, parent),
        ) as span:
            result = await process()
            self._ended(span, result)
            return result

    def _begun(self, call: ToolCall, parent: Invocation | None) -> dict[str, str]:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": str(call.name),
            "gen_ai.tool.call.id": call.call_id,
            "gen_ai.tool.type": "function",
            "gen_ai.conversation.id": self._session,
        }
        if parent is not None:
            attributes["handrail.parent.call.id"] = parent.call_id
        if self._settings().arguments:
            attributes["gen_ai.tool.call.arguments"] = self._shown(call.args)
        return attributes

    def _ended(self, span: Span, result: ToolResult) -> None:
        from opentelemetry.trace import Status, StatusCode

        span.set_attribute("handrail.status", result.status)
        if self._settings().arguments:
            span.set_attribute("gen_ai.tool.call.result", self._shown(result))
        if not result.ok:
            code = result.error_code or result.status
            span.set_attribute("error.type", code)
            span.set_status(Status(StatusCode.ERROR, code))

    def _shown(self, value: Any) -> str:
        """Return the value as redacted text, or its error's type in brackets if it cannot be serialized."""
        try:
            return json.dumps(redact_value(self._kept(value)), ensure_ascii=False, default=str)[:MAX_SHOWN_CHARS]
        except Exception as exc:  # noqa: BLE001 # handlers and hosts hand over anything
            return f"[cannot be written down: {type(exc).__name__}]"


def create_tracer(
    session: str,
    *,
    settings: Callable[[], TelemetrySettings],
    environment: Mapping[str, str],
    kept: Callable[[Any], Any],
) -> CallTracer | None:
    """Return the tracer of a session's calls; None if tracing is neither on nor set up by the host program.

    `settings` returns the current settings. `kept` redacts from a value the secrets that calls were given.
    """
    wanted = settings().enabled
    if importlib.util.find_spec("opentelemetry") is None:
        return None
    from opentelemetry import trace

    provider = trace.get_tracer_provider()
    if wanted is None and isinstance(provider, trace.ProxyTracerProvider):
        return None
    tracer = provider.get_tracer("handrail", __version__)
    return CallTracer(tracer, session=session, settings=settings, environment=environment, kept=kept)


def _parent_context(environment: Mapping[str, str]) -> Context | None:
    """Return the span that started this program, from TRACEPARENT and TRACESTATE (W3C Trace Context), or None."""
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier = {name: environment[name.upper()] for name in ("traceparent", "tracestate") if name.upper() in environment}
    return TraceContextTextMapPropagator().extract(carrier) if carrier else None
