"""Spans of calls, as OpenTelemetry's own exporter gets them."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

from handrail import ToolContext, ToolError, tool
from handrail.testing import open_test_session

TOKEN = "ghp_" + "0123456789" * 3


@tool()
async def say(text: str) -> str:
    """Say something."""
    return text


@tool()
async def fail() -> None:
    """Fail."""
    raise ToolError("it is broken")


@tool()
async def outer(context: ToolContext) -> None:
    """Call another tool."""
    await context.call("say", {"text": "inside"})


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What is exported with a provider of our own set up, for the length of a test."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


def around(span: ReadableSpan) -> trace.SpanContext:
    context = span.get_span_context()
    assert context is not None
    return context


def attributes(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


async def test_a_call_is_a_span_by_the_conventions(spans: InMemorySpanExporter) -> None:
    async with open_test_session(tools=[say]) as session:
        await session.call("say", {"text": "hi"}, call_id="c7")
        (span,) = spans.get_finished_spans()
        assert (span.name, span.kind) == ("execute_tool say", trace.SpanKind.INTERNAL)
        assert attributes(span) == {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": "say",
            "gen_ai.tool.call.id": "c7",
            "gen_ai.tool.type": "function",
            "gen_ai.conversation.id": session.id,
            "handrail.status": "success",
        }


async def test_a_failure_is_told_by_its_code(spans: InMemorySpanExporter) -> None:
    async with open_test_session(tools=[fail]) as session:
        await session.call("fail")
        await session.call("nothing")
    codes = [(attributes(span)["error.type"], span.status.status_code) for span in spans.get_finished_spans()]
    assert codes == [("tool_error", StatusCode.ERROR), ("unknown_tool", StatusCode.ERROR)]


async def test_nested_calls_are_children_and_a_hosts_span_is_the_parent(spans: InMemorySpanExporter) -> None:
    async with open_test_session(tools=[outer, say]) as session:
        with trace.get_tracer("host").start_as_current_span("agent") as agent:
            await session.call("outer")
    inner, above = spans.get_finished_spans()[:2]
    assert (inner.name, above.name) == ("execute_tool say", "execute_tool outer")
    assert inner.parent is not None
    assert above.parent is not None
    assert inner.parent.span_id == around(above).span_id
    assert above.parent.span_id == agent.get_span_context().span_id


async def test_the_span_that_started_the_program_is_the_parent(spans: InMemorySpanExporter) -> None:
    variables = {"TRACEPARENT": f"00-{'a' * 32}-{'b' * 16}-01"}
    async with open_test_session(tools=[say], environment=variables) as session:
        await session.call("say", {"text": "hi"})
    (span,) = spans.get_finished_spans()
    assert (f"{around(span).trace_id:x}", span.parent and f"{span.parent.span_id:x}") == ("a" * 32, "b" * 16)


async def test_arguments_are_told_where_that_is_wanted_and_hold_no_secret(spans: InMemorySpanExporter) -> None:
    async with open_test_session(tools=[say], settings={"telemetry": {"arguments": True}}) as session:
        await session.call("say", {"text": f"token={TOKEN}"})
    (span,) = spans.get_finished_spans()
    told = attributes(span)
    assert told["gen_ai.tool.call.arguments"] == '{"text": "token=[redacted]"}'
    assert "redacted" in told["gen_ai.tool.call.result"]
    assert TOKEN not in str(told)


@pytest.mark.parametrize(("enabled", "traced"), [(None, False), (True, True), (False, False)])
async def test_without_a_provider_only_who_asks_is_traced(enabled: bool | None, traced: bool) -> None:
    async with open_test_session(tools=[say], settings={"telemetry": {"enabled": enabled}}) as session:
        assert (session.tracing is not None) is traced
        assert (await session.call("say", {"text": "hi"})).ok


def test_nothing_of_it_is_imported_when_nobody_asks() -> None:
    script = (
        "import asyncio, sys\nfrom handrail.testing import open_test_session\n"
        "async def main():\n    async with open_test_session() as session:\n"
        "        assert (await session.call('wait', {'seconds': 0.1})).ok\n"
        "asyncio.run(main())\nassert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
