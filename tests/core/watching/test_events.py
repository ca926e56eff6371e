"""The events of a session, as values, as JSON and as a stream."""

from __future__ import annotations

import gc
import json

import anyio
import anyio.lowlevel
import pytest

from handrail import Access, Decision, Question, Reason, SubCommand, ToolContext as Context, Verdict, tool
from handrail.api import events
from handrail.api.approval import yes
from handrail.api.call import EditConfirmation
from handrail.api.events import (
    ApprovalAnswered,
    ApprovalAsked,
    BackendChanged,
    Dropped,
    Event,
    EventBus,
    Finished,
    InquiryAnswered,
    InquiryAsked,
    Judged,
    ModeChanged,
    Observed,
    Output,
    Progress,
    Proposed,
    Queued,
    Scheduled,
    SessionEnded,
    Started,
    ToolsChanged,
    TopicChanged,
    event_wire,
)
from handrail.api.tool import Write
from handrail.events.event_stream import MAX_CHARACTERS, MAX_EVENTS, EventStream
from handrail.testing import open_test_session

TOKEN = "ghp_" + "0123456789" * 3
VERDICT = Verdict(
    Decision.CONFIRM,
    rule="x",
    reasons=(Reason("a", f"because {TOKEN}", (1, 2)),),
    parts=(SubCommand(("curl", TOKEN), (Access("network", "example.org"),)),),
    approved=EditConfirmation("t", "/a", f"+{TOKEN}"),
)
EXAMPLES: list[Event] = [
    Proposed("c", "t", f"do {TOKEN}", "parent"),
    Judged("c", "t", VERDICT),
    ApprovalAsked("c", "t", EditConfirmation("t", "/a", f"+{TOKEN}"), "a1"),
    ApprovalAnswered("c", "t", "once", "a1"),
    InquiryAsked("c", (Question(question=f"Is it {TOKEN}?"),), "a2"),
    InquiryAnswered("c", True, "a2", "in the console"),
    Queued("c", "t", "b"),
    Scheduled("c", "t"),
    Started("c", "t"),
    Output("c", "stdout", f"token={TOKEN}\n"),
    Progress("c", 0.5, f"sent {TOKEN}"),
    Observed("c", "t", "guard", "blocked", f"it holds {TOKEN}"),
    Finished("c", "t", "success", 3, None, "verified"),
    ToolsChanged("", "because"),
    BackendChanged("", "ocr"),
    ModeChanged("", "plan"),
    TopicChanged("c", f"sending {TOKEN}", "half"),
    Dropped("", 7),
    SessionEnded("", "s"),
]


@tool(effects=[Write("settings")])
async def change(context: Context) -> str:
    """Change something."""
    context.progress(0.5, "half")
    return "changed"


def test_there_is_an_example_of_every_event() -> None:
    kinds = {kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, Event)}
    assert {type(event) for event in EXAMPLES} == kinds - {Event}


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: type(event).__name__)
def test_an_event_is_the_same_after_json_and_holds_no_secret(event: Event) -> None:
    wire = event_wire(event)
    text = json.dumps(wire)
    assert json.loads(text) == wire
    assert TOKEN not in text


async def test_a_session_tells_the_states_of_a_call_in_order() -> None:
    async with open_test_session(tools=[change], confirm=yes) as session:
        stream = session.events()
        await session.call("change")
    told = [event_wire(event)["event"] async for event in stream]
    expected = ["proposed", "judged", "approval_asked", "approval_answered", "started", "progress", "finished"]
    assert [name for name in told if name != "scheduled"] == [*expected, "session_ended"]


async def test_a_slow_reader_loses_the_oldest_output_and_is_told_how_much() -> None:
    bus = EventBus()
    stream = EventStream(bus)
    bus.publish(Started("c", "t"))
    for number in range(MAX_EVENTS + 5):
        bus.publish(Output("c", "stdout", f"{number}"))
    bus.publish(Finished("c", "t", "success", 1))
    bus.publish(SessionEnded("", "s"))
    read = [event async for event in stream]
    assert read[:2] == [Dropped("", 8), Started("c", "t")]
    assert read[2] == Output("c", "stdout", "8")
    assert [type(event) for event in read[-2:]] == [Finished, SessionEnded]


async def test_what_waits_is_bounded_by_its_size_too() -> None:
    bus = EventBus()
    stream = EventStream(bus)
    for _ in range(50):
        bus.publish(Output("c", "stdout", "x" * (MAX_CHARACTERS // 10)))
    await stream.aclose()
    read = [event async for event in stream]
    assert read[0] == Dropped("", 40)
    assert len(read) == 11


async def test_without_output_the_oldest_events_are_dropped() -> None:
    bus = EventBus()
    stream = EventStream(bus)
    for number in range(MAX_EVENTS + 3):
        bus.publish(Started(f"c{number}", "t"))
    await stream.aclose()
    read = [event async for event in stream]
    assert read[:2] == [Dropped("", 3), Started("c3", "t")]
    assert len(read) == MAX_EVENTS + 1


async def test_a_reader_waits_for_what_is_not_there_yet() -> None:
    read: list[Event] = []
    async with open_test_session(tools=[change], confirm=yes) as session:
        stream = session.events()

        async def follow() -> None:
            async for event in stream:
                read.append(event)
                if isinstance(event, Finished):
                    break

        with anyio.fail_after(30):
            async with anyio.create_task_group() as group:
                group.start_soon(follow)
                await anyio.lowlevel.checkpoint()
                await session.call("change")
    assert isinstance(read[-1], Finished)


async def test_a_stream_that_nobody_holds_costs_nothing_more() -> None:
    async with open_test_session(tools=[change], confirm=yes) as session:
        stream = session.events()
        await session.call("change")
        async for _ in stream:
            break
        del stream
        gc.collect()
        assert not session.bus.listening
