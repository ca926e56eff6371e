"""Elicitation requests of a server, presented like Handrail's own prompts and attributed to that server.

The user can approve the default values, enter others, or deny.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from mcp import types

from handrail import (
    Decision,
    InfoConfirmation,
    Invocation,
    Mode,
    Reason,
    Stopped,
    Tool,
    ToolCall,
    ToolContext,
    UrlConfirmation,
    Verdict,
)
from handrail.api.schema import ExternalArguments
from handrail.json_types import is_mapping
from handrail.pipeline.approval_stage import confirm_call
from handrail.pipeline.call_task import CallTask
from handrail.sanitize.envelope import clean_text
from handrail_mcp.client.json_schemas import parse_schema

MAX_MESSAGE = 2_000
# Characters of a value that a yes sends.
MAX_DEFAULT = 500

CANCEL_RESULT = types.ElicitResult(action="cancel")
DECLINE_RESULT = types.ElicitResult(action="decline")


async def handle_elicitation(
    params: types.ElicitRequestParams, *, server: str, context: ToolContext, number: int
) -> types.ElicitResult:
    """Prompt the user and return the answer; cancel without anyone to prompt.

    Declines a URL whose scheme is not http or https.
    """
    session = context.session
    if session.confirmer is None or session.settings.mode is Mode.HEADLESS:
        return CANCEL_RESULT
    if isinstance(params, types.ElicitRequestURLParams) and urlsplit(params.url).scheme not in ("http", "https"):
        return DECLINE_RESULT
    invocation = _build_question(params, server=server, context=context, number=number)
    reason = Reason("elicitation", f"the server {server} asks for it, and gets the answer")
    asked = Verdict(Decision.CONFIRM, rule="mcp:elicitation", reasons=(reason,), grantable=False)

    async def judge(now: Invocation) -> Verdict:
        # Values that a person has written are the answer.
        return asked if now.before is None else Verdict(Decision.ALLOW, rule="mcp:elicitation")

    running = CallTask(ToolCall(invocation.tool.name, invocation.args, invocation.call_id), True)
    session.running[invocation.call_id] = running
    try:
        answered, verdict = await running.drive(confirm_call(session, invocation, asked, judge=judge))
    finally:
        del session.running[invocation.call_id]
    if verdict.decision is not Decision.ALLOW:
        return CANCEL_RESULT if any(reason.code == "no_confirmer" for reason in verdict.reasons) else DECLINE_RESULT
    if isinstance(params, types.ElicitRequestURLParams):
        return types.ElicitResult(action="accept")
    # A plain yes to a form means the values that it came with, which may be too few.
    given = answered.tool.given
    if given is None or given.problems(answered.args):
        return CANCEL_RESULT
    return types.ElicitResult(action="accept", content=cast("Any", dict(answered.args)))


def withdraw_questions(context: ToolContext) -> None:
    """Close the questions that a call has open, as it is over."""
    running = context.session.running
    for question in [running[id] for id in running if id.startswith(f"{context.call_id}.q")]:
        question.stop(Stopped("the call that it belongs to is over"))


def _build_question(params: types.ElicitRequestParams, *, server: str, context: ToolContext, number: int) -> Invocation:
    message = clean_text(params.message).text[:MAX_MESSAGE]
    title = f"The server {server} asks you"
    if isinstance(params, types.ElicitRequestURLParams):
        shown: InfoConfirmation | UrlConfirmation = UrlConfirmation(
            f"{title} to open an address: {message}", params.url
        )
        fields: dict[str, Any] = {"type": "object"}
    else:
        fields = dict(params.requested_schema)
        said = (f"> {line}" for line in message.splitlines())
        shown = InfoConfirmation(title, "\n".join((*said, *_format_fields(fields))))
    args = {name: field["default"] for name, field in _get_properties(fields).items() if _format_default(field)}

    async def nothing(params: Any, context: ToolContext) -> None: ...

    tool = Tool(
        name="mcp_question",
        title=title,
        description="A question of a server to a person.",
        handler=nothing,
        given=parse_schema({**fields, "additionalProperties": False}),
        layer="mcp",
        server=server,
        confirmation=lambda params, verdict: shown,
    )
    params_ = ExternalArguments.model_construct(args=args)
    return Invocation(tool, args, params_, f"{context.call_id}.q{number}", context.invocation)


def _get_properties(fields: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    found = cast("object", fields.get("properties"))
    items = found.items() if is_mapping(found) else ()
    return {name: field for name, field in items if is_mapping(field)}


def _format_fields(fields: Mapping[str, Any]) -> list[str]:
    """Return one line for each requested value, and one for its default if it has one that can be shown."""
    required = fields.get("required", ())
    lines: list[str] = []
    for name, field in _get_properties(fields).items():
        choices: Any = field.get("enum")
        kind = " | ".join(map(str, choices)) if isinstance(choices, list) else str(field.get("type", "any"))  # pyright: ignore[reportUnknownArgumentType]
        words = " ".join(str(field.get(key, "")) for key in ("title", "description"))
        needed = ", needed" if name in required else ""
        lines.append(f"{_to_one_line(name)} ({_to_one_line(kind)}{needed}) {_to_one_line(words)}"[:300].rstrip())
        if default := _format_default(field):
            lines.append(f"  a yes sends {default}")
    return lines


def _to_one_line(text: str) -> str:
    """Return a server's text as one line, so that no part of it can pass for the line of another field."""
    return " ".join(clean_text(text).text.split())


def _format_default(field: Mapping[str, Any]) -> str:
    """Return the default value, which approval without changes sends, as text.

    Empty without a default, or if it cannot be shown in full.
    """
    if "default" not in field:
        return ""
    text = json.dumps(field["default"], ensure_ascii=False)
    return text if len(text) <= MAX_DEFAULT and clean_text(text).text == text else ""
