"""A question for a person as an MCP client shows it, and what counts as an answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from mcp import types

from handrail import Answer, Approval
from handrail.invocation import confirmation_wire
from handrail.words import visible

# Longer data is shown by its beginning and end, and the person is told.
SHOWN = 20_000


def can_ask(capabilities: types.ClientCapabilities | None) -> bool:
    """Whether the client shows forms to its person. One that names no mode means forms, as it was before there were others."""
    asking = capabilities.elicitation if capabilities is not None else None
    return asking is not None and (asking.form is not None or asking.url is None)


def form(approval: Approval) -> types.ElicitRequestFormParams:
    """The question, with every part of what is to be done."""
    return types.ElicitRequestFormParams(message=message(approval), requested_schema=answers(approval))


def message(approval: Approval) -> str:
    """The question in words. Data is indented and escaped: none of it can look like a line of ours."""
    parts = confirmation_wire(approval.confirmation)
    title = parts.pop("title")
    del parts["kind"]
    lines = [f"Handrail asks: may {approval.tool} do this?", "", _block(title)]
    for name, value in parts.items():
        if value not in (None, "", {}, title):
            lines += [
                "",
                f"{name}:",
                _block(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)),
            ]
    if approval.verdict.reasons:
        lines += ["", "It is asked because:", *(_block(reason.text) for reason in approval.verdict.reasons)]
    return "\n".join(lines)


def answers(approval: Approval) -> dict[str, Any]:
    """The schema of an answer; "session" is offered only where it means something."""
    meanings = {Answer.ONCE: "once: yes, this time"}
    if approval.grants:
        meanings[Answer.SESSION] = f"session: yes, and {visible(approval.grants[0].label)} from now on in this session"
    meanings[Answer.DENY] = "deny: no"
    field = {
        "type": "string",
        "title": "Answer",
        "description": "; ".join(meanings.values()),
        "enum": [answer.value for answer in meanings],
    }
    return {"type": "object", "properties": {"answer": field}, "required": ["answer"]}


def answer(given: object, approval: Approval) -> Answer:
    """A person's answer. Whatever is no plain yes in the form is a no: declined, dismissed, empty, or none that was offered."""
    if not isinstance(given, types.ElicitResult) or given.action != "accept":
        return Answer.DENY
    content: Mapping[str, Any] = given.content or {}
    chosen = content.get("answer")
    offered = answers(approval)["properties"]["answer"]["enum"]
    return Answer(chosen) if isinstance(chosen, str) and chosen in offered else Answer.DENY


def _block(text: str) -> str:
    if len(text) > SHOWN:
        hidden = len(text) - SHOWN
        text = f"{text[: SHOWN // 2]}\n[… {hidden} characters are not shown …]\n{text[-SHOWN // 2 :]}"
    return "\n".join(f"    {line}" for line in visible(text).split("\n"))
