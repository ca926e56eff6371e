"""Approval requests and questions as MCP elicitation forms, and the parsing of the answers."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import anyio
from mcp import types

from handrail import Answer, AnswerKind, Approval, Choice, Inquiry, Question, Reply, Session
from handrail.approval.rendering import format_inline_data, question, render_data
from handrail.errors import DeniedByUser
from handrail.json_types import is_object

log = logging.getLogger(__name__)

CHOICE_MEANINGS: Mapping[Choice, str] = {
    Choice.ONCE: "yes, this time",
    Choice.SESSION: "yes, and what is chosen under grant from now on in this session",
    Choice.ALWAYS: "yes, and what is chosen under grant from now on",
    Choice.EDIT: "do it with the arguments given below",
    Choice.DENY: "no; the feedback is told to the model",
}


class ElicitingClient(Protocol):
    """The client of a call, who puts questions to its person."""

    async def confirm(self, approval: Approval) -> Answer:
        """Prompt the user to approve a call; return the answer."""
        ...

    async def ask(self, inquiry: Inquiry) -> Sequence[Reply]:
        """Ask the user the questions of a call; return the replies."""
        ...


class ClientConfirmer:
    """Confirmer of a served session.

    Prompts the user through the client, or leaves the request to the user at this machine if `[serve] approvals` is set
    to that.
    """

    def __init__(self, session: Session, client: ElicitingClient) -> None:
        self._session = session
        self._client = client

    async def __call__(self, approval: Approval) -> Answer:
        await self._here()
        return await self._client.confirm(approval)

    async def ask(self, inquiry: Inquiry) -> Sequence[Reply]:
        """Ask the user questions; return the replies."""
        await self._here()
        return await self._client.ask(inquiry)

    async def _here(self) -> None:
        """Wait forever if the user at this machine is to answer.

        The request is left there, as every request is.
        """
        if self._local:
            log.warning("a question waits for a person at this machine: handrail approvals, or handrail console")
            await anyio.sleep_forever()

    @property
    def _local(self) -> bool:
        return self._session.settings.serve.approvals == "local"


def can_show_forms(capabilities: types.ClientCapabilities | None) -> bool:
    """Return True if the client can show forms to its user.

    A client that names no mode supports forms, as was the case before there were other modes.
    """
    asking = capabilities.elicitation if capabilities is not None else None
    return asking is not None and (asking.form is not None or asking.url is None)


def build_approval_form(approval: Approval) -> types.ElicitRequestFormParams:
    """Build the approval request, with every part of the action to be approved."""
    return types.ElicitRequestFormParams(message=question(approval), requested_schema=build_answer_schema(approval))


def build_answer_schema(approval: Approval) -> dict[str, Any]:
    """Build the schema of an answer; grants are offered only if the approval has any."""
    fields: dict[str, Any] = {
        "answer": {
            "type": "string",
            "title": "Answer",
            "description": "; ".join(f"{choice}: {CHOICE_MEANINGS[choice]}" for choice in approval.choices),
            "enum": [choice.value for choice in approval.choices],
        }
    }
    if approval.grants:
        fields["grant"] = {
            "type": "string",
            "title": "Grant",
            "description": "What session and always mean; the first one when nothing is chosen.",
            "enum": _list_grant_labels(approval),
        }
    fields["feedback"] = {"type": "string", "title": "Feedback", "description": "With deny: what to tell the model."}
    fields["arguments"] = {
        "type": "string",
        "title": "Arguments",
        "description": f"With edit: a JSON object of what changes. Now: {_format_arguments(approval)}",
    }
    return {"type": "object", "properties": fields, "required": ["answer"]}


def parse_answer(given: object, approval: Approval) -> Answer:
    """Parse the user's answer to an approval request.

    Anything but a clear approval in the form denies the call: declined, dismissed, empty, or a choice not offered.
    """
    if not isinstance(given, types.ElicitResult) or given.action != "accept":
        return Answer(Choice.DENY)
    content: Mapping[str, Any] = given.content or {}
    chosen = content.get("answer")
    if not isinstance(chosen, str) or chosen not in list(approval.choices):
        return Answer(Choice.DENY)
    match Choice(chosen):
        case Choice.DENY:
            feedback = content.get("feedback")
            return Answer(Choice.DENY, feedback=feedback if isinstance(feedback, str) else "")
        case Choice.EDIT:
            return _parse_edited_answer(content.get("arguments"), approval)
        case Choice.ONCE:
            return Answer(Choice.ONCE)
        case choice:
            return _parse_lasting_answer(choice, content.get("grant"), approval)


def _parse_lasting_answer(choice: Choice, label: object, approval: Approval) -> Answer:
    """Return a lasting approval with the grant of that label; deny for a label that was not offered."""
    if label in (None, ""):
        return Answer(choice)
    labels: list[object] = [*_list_grant_labels(approval)]
    return Answer(choice, grant=approval.grants[labels.index(label)]) if label in labels else Answer(Choice.DENY)


def _parse_edited_answer(text: object, approval: Approval) -> Answer:
    try:
        changed = json.loads(text) if isinstance(text, str) else None
    except (ValueError, RecursionError):
        changed = None
    if not is_object(changed):
        return Answer(Choice.DENY, feedback="the changed arguments were no JSON object")
    return Answer(Choice.EDIT, args={**approval.args, **changed})


def _list_grant_labels(approval: Approval) -> list[str]:
    """Return the labels of the grants, numbered so that each is unique."""
    return [f"{number}. {format_inline_data(grant.label)}" for number, grant in enumerate(approval.grants, 1)]


def _format_arguments(approval: Approval) -> str:
    return format_inline_data(json.dumps(dict(approval.args), ensure_ascii=False, default=str))


def build_inquiry_form(inquiry: Inquiry) -> types.ElicitRequestFormParams:
    """Build the form for the questions of a call.

    All fields are optional: an empty one leaves its question unanswered.
    """
    fields = {
        key: value
        for number, each in enumerate(inquiry.questions, 1)
        for key, value in _build_question_fields(f"q{number}", each)
    }
    message = "\n".join(_format_inquiry(inquiry))
    return types.ElicitRequestFormParams(message=message, requested_schema={"type": "object", "properties": fields})


def _format_inquiry(inquiry: Inquiry) -> Iterator[str]:
    yield "The agent asks you something. What you answer is told to the model."
    for number, each in enumerate(inquiry.questions, 1):
        yield f"Question {number}:"
        yield from render_data(each.question)
        for option in each.options:
            yield f"  - {format_inline_data(option)}"


def _build_question_fields(key: str, asked: Question) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the form fields that answer one question.

    All clients support text, a choice from a list, and yes or no; a multiple choice therefore becomes one boolean per
    option.
    """
    title = format_inline_data(asked.question, 60)
    match asked.kind:
        case AnswerKind.YES_NO:
            yield key, {"type": "boolean", "title": title}
        case AnswerKind.TEXT:
            yield key, {"type": "string", "title": title}
        case AnswerKind.CHOICE:
            labels = _list_option_labels(asked)
            if asked.several:
                for number, label in enumerate(labels, 1):
                    yield f"{key}_{number}", {"type": "boolean", "title": label}
            else:
                yield key, {"type": "string", "title": title, "enum": labels}
            yield f"{key}_own", {"type": "string", "title": "Or in your own words"}


def parse_replies(given: object, inquiry: Inquiry) -> Sequence[Reply]:
    """Parse the user's replies; `DeniedByUser` if the form was declined or dismissed, or never came back."""
    if not isinstance(given, types.ElicitResult) or given.action != "accept":
        raise DeniedByUser("a person was asked and did not answer")
    content: Mapping[str, Any] = given.content or {}
    return [_parse_reply(f"q{number}", each, content) for number, each in enumerate(inquiry.questions, 1)]


def _parse_reply(key: str, asked: Question, content: Mapping[str, Any]) -> Reply:
    """Parse the reply to one question; None if it does not fit the question."""
    own = content.get(f"{key}_own")
    reply: Any = content.get(key)
    if asked.kind is AnswerKind.CHOICE:
        labels = _list_option_labels(asked)
        if asked.several:
            taken = [label for number, label in enumerate(labels, 1) if content.get(f"{key}_{number}") is True]
        else:
            taken = [label for label in labels if label == reply]
        words = [asked.options[labels.index(label)] for label in taken]
        if isinstance(own, str) and own.strip():
            words = [*words, own] if asked.several else [own]
        reply = (tuple(words) if asked.several else words[0]) if words else None
    return reply if asked.misfit(reply) is None else None


def _list_option_labels(asked: Question) -> list[str]:
    return [format_inline_data(option) for option in asked.options]
