"""The pictures of a conversation: only the newest stay with what a model is sent, in the form that it takes."""

from __future__ import annotations

from collections.abc import Sequence

from google.genai import types

# Before these, function responses hold no pictures; there they stand beside the response.
INSIDE_FAMILIES = frozenset({"gemini-3"})
BESIDE_FAMILIES = frozenset({"gemini"})


def keep_newest_pictures(contents: Sequence[types.Content], *, keep: int, family: str) -> list[types.Content]:
    """Return the contents with pictures only in the `keep` newest function responses that have any.

    The given contents are not changed.
    """
    left = keep
    sent: list[types.Content] = []
    for content in reversed(contents):
        parts: list[types.Part] = []
        for part in reversed(content.parts or []):
            response = part.function_response
            if response is None or not response.parts:
                parts.append(part)
                continue
            shown = response.parts if left > 0 else []
            left -= 1
            # The list is turned round again below.
            parts += reversed(_rebuild_part(part, response, shown, beside=family in BESIDE_FAMILIES))
        sent.append(content.model_copy(update={"parts": parts[::-1]}) if content.parts else content)
    return sent[::-1]


def _rebuild_part(
    part: types.Part, response: types.FunctionResponse, shown: list[types.FunctionResponsePart], *, beside: bool
) -> list[types.Part]:
    """Return the part with these media inside it or, if `beside` is true, next to it."""
    said = dict(response.response or {})
    if not shown:
        said["media_note"] = "pictures of this result are no longer shown; newer ones are"
    inside = None if beside or not shown else shown
    first = part.model_copy(
        update={"function_response": response.model_copy(update={"response": said, "parts": inside})}
    )
    return [first, *(_inline_part(medium) for medium in shown)] if beside else [first]


def _inline_part(medium: types.FunctionResponsePart) -> types.Part:
    blob = medium.inline_data
    if blob is None:
        return types.Part(text="[a medium that cannot be shown here]")
    return types.Part(inline_data=types.Blob(data=blob.data, mime_type=blob.mime_type))
