"""`handrail session`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from handrail.commands._common import Choices, open_runtime_for, run, session_options

if TYPE_CHECKING:
    from handrail.asking.confirm import Confirmer


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
    context: click.Context, jsonl: bool, answer: str | None, events: bool, record: Path | None, choices: Choices
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
    caught = run(lambda: _work(choices, answer, record, events=events))
    context.exit(128 + caught if caught else 0)


async def _work(choices: Choices, answer: str | None, record: Path | None, *, events: bool) -> int:
    from handrail.asking import confirm
    from handrail.commands._conversation import Asking, converse
    from handrail.commands._stdio import Writer, own_stdio
    from handrail.commands.record import recorded, tell
    from handrail.records.recording import Tape, Wishes

    with own_stdio() as (stdin, stdout):
        writer = Writer(stdout)
        asking = Asking(writer)
        confirmers: dict[str | None, Confirmer | None] = {
            "yes": confirm.yes,
            "deny": confirm.no,
            "ask": asking,
            None: None,
        }
        async with (
            open_runtime_for(choices) as runtime,
            runtime.session(confirm=confirmers[answer]) as session,
        ):
            if record is None:
                return await converse(session, stdin, writer, asking, events=events)
            tape = session.recorder.tape = Tape()
            caught = await converse(session, stdin, writer, asking, events=events)
            recording = await recorded(tape.made, session, Wishes(record.stem, str(session.workspace[0])))
            tell(recording, recording.write(record))
            return caught
