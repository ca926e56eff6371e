"""A result on its way to the model: cleaned, kept to a size, and remembered as the text of whoever it comes from."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from handrail.api.call import Invocation
from handrail.api.result import TextSource, ToolResult, has_text
from handrail.api.verdict import Verdict

if TYPE_CHECKING:
    from handrail.pipeline.call_session import CallSession


def sanitize_result(
    session: CallSession, invocation: Invocation, verdict: Verdict | None, result: ToolResult
) -> ToolResult:
    """Return the result in displayable form: external content is cleaned, size-limited and recorded by source."""
    texts = has_text(result)
    # Most calls end here: what is numbers alone, and our own, is neither cleaned nor remembered.
    own = invocation.tool.name in session.intake.own and not session.artifacts.unclaimed
    if not texts and own and (verdict is None or not verdict.reasons):
        return result
    query = invocation.tool.reads_artifact is not None
    if query and session.intake.held_by(invocation) is None:
        return result
    origin = session.intake.origin(invocation, verdict, session.court.judging)
    source = TextSource(invocation.tool.name, invocation.call_id, origin)
    if session.artifacts.unclaimed:
        session.artifacts.claim(invocation.call_id, source)
    if texts:
        from handrail.sanitize.result_cleaning import clean_result

        limit, keep = session.settings.output.max_bytes, partial(session.artifacts.keep, source=source)
        result = clean_result(
            result,
            limit=limit,
            foreign=origin is not None,
            keep=None if query else keep,
        )
    if verdict is None or result["status"] == "denied":
        return result
    if texts or origin is not None:
        result.come_from(source)
    if origin is None and not verdict.reasons:
        return result
    tainted = any(reason.code == "taint" for reason in verdict.reasons)
    if origin is not None:
        session.intake.take(invocation, verdict, result, origin, session.court.judging)
    if tainted:
        session.intake.vouched(invocation)
    if tainted or origin is not None:
        session.court.judge_anew()
    return result
