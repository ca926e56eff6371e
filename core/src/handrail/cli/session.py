"""`handrail session`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from handrail.cli._common import SessionOptions, open_runtime_for, run_async, session_options

if TYPE_CHECKING:
    from handrail.api.approval import Confirmer


@click.command("session")
@click.option("--jsonl", is_flag=True, required=True, help="JSON lines on stdin and stdout.")
@click.option("--yes", "answer", flag_value="yes", help="Say yes to ordinary questions, never to a catastrophic one.")
@click.option("--deny", "answer", flag_value="deny", help="Say no to every question.")
@click.option("--ask", "answer", flag_value="ask", help="Write questions as lines, and wait for answers.")
@click.option("--events", is_flag=True, help="Write what happens as lines, too.")
@click.option("--record", metavar="FILE", type=click.Path(path_type=Path), help="Make a plan of it, with its pictures.")
@session_options
@click.pass_context
def command(
    context: click.Context, jsonl: bool, answer: str | None, events: bool, record: Path | None, choices: SessionOptions
) -> None:
    """Work in one session, a JSON line at a time.

    \b
    {"id": 1, "tool": "wait", "args": {"seconds": 1}}     {"id": 1, "result": {…}}
    [{…}, {…}]                                            a line an item; they may run together
    {"batch": [{…}, {…}], "stop_on": ["denied"]}          the same; a denied item cancels the rest
    {"control": "cancel", "id": 2, "call": 1}             {"id": 2, "ok": true}; a list: several, without "call" all
    {"control": "backend", "id": 3, "name": "ocr"}        {"id": 3, "ok": true}
    {"control": "tools", "id": 4}                         {"id": 4, "tools": […]}
    {"control": "answer", "id": 5, "approval": "a1", "answer": "once"}
    {"control": "reply", "id": 6, "inquiry": "a2", "answers": ["blue", true]}

    Calls run in the order read, a line at a time; control lines act at once: what a call changes in the list of tools is in it when the
    result is there. With --ask a question is {"approval", "id", "confirmation"}; it is answered with once, session, always, edit or deny, and
    denied without an answer. What the agent asks in words is {"inquiry", "id", "questions"}; null in an answer's place leaves it open. A bad
    line gives {"id": null, "error"}. At the end of the input what was read is still done.
    """
    if record is not None and record.exists():
        raise click.UsageError(f"--record {str(record)!r} is there already")
    caught = run_async(lambda: _run_session(choices, answer, record, events=events))
    context.exit(128 + caught if caught else 0)


async def _run_session(choices: SessionOptions, answer: str | None, record: Path | None, *, events: bool) -> int:
    from handrail.api import approval
    from handrail.audit.step_recorder import StepRecorder
    from handrail.cli._jsonl_session import JsonlConfirmer, run_conversation
    from handrail.cli.record import build_recording, print_recording_summary
    from handrail.plans.plan_recorder import RecordingOptions
    from handrail.terminal.stdio import LineWriter, take_over_stdio

    with take_over_stdio() as (stdin, stdout):
        writer = LineWriter(stdout)
        asking = JsonlConfirmer(writer)
        confirmers: dict[str | None, Confirmer | None] = {
            "yes": approval.yes,
            "deny": approval.no,
            "ask": asking,
            None: None,
        }
        async with (
            open_runtime_for(choices) as runtime,
            runtime.session(confirm=confirmers[answer]) as session,
        ):
            if record is None:
                return await run_conversation(session, stdin, writer, asking, events=events)
            tape = session.recorder.tape = StepRecorder()
            caught = await run_conversation(session, stdin, writer, asking, events=events)
            recording = await build_recording(
                tape.made, session, RecordingOptions(record.stem, str(session.workspace[0]))
            )
            print_recording_summary(recording, recording.write(record))
            return caught
