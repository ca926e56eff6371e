"""Error responses to lines that are not valid messages, so that a waiting client does not wait forever."""

from __future__ import annotations

import json
import re
from typing import Any

from pydantic import ValidationError

PARSE_ERROR, INVALID_REQUEST = -32700, -32600

# Strings, brackets, and what stands between them. A string that is not ended is one, too: to look for its end from each letter takes long.
JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}:,]|[^\s"\[\]{}:,]+')


def build_error_response(line: str) -> str | None:
    """Return the JSON-RPC error for a line that is not a valid message.

    Returns None for a valid message, an empty line, and anything that needs no response. The error carries the ID of
    the request if that can be read, else null. Source: JSON-RPC 2.0, section 5.1.
    """
    # The SDK has loaded it already.
    from mcp.types import jsonrpc_message_adapter

    if not line.strip():
        return None
    try:
        jsonrpc_message_adapter.validate_json(line, by_name=False)
    except ValidationError as exc:
        unreadable = exc.errors(include_url=False, include_input=False)[0]
        given = _scan_outermost_object(line)
        # The ids of answers are ours: sent back, they would be taken for the client's own.
        if "result" in given or "error" in given or ("method" in given and "id" not in given):
            return None
        code = PARSE_ERROR if unreadable["type"] == "json_invalid" else INVALID_REQUEST
        error = {"code": code, "message": f"this is no message of the protocol: {unreadable['msg']}"}
        return json.dumps({"jsonrpc": "2.0", "id": given.get("id"), "error": error})
    return None


def _scan_outermost_object(line: str) -> dict[str, Any]:
    """Return the keys of the outermost object, with the value of `id` and None for all others.

    The line is scanned without a parser, because the parser has failed on it.
    """
    depth = 0
    found: dict[str, Any] = {}
    key, before = "", ""
    for token in JSON_TOKEN.findall(line):
        depth += (token in "[{") - (token in "]}")
        if depth == 1 and token == ":":
            key = before.strip('"')
            found[key] = None
        elif depth == 1 and before == ":" and key == "id":
            found["id"] = _parse_id(token)
        before = token
    return found


def _parse_id(token: str) -> str | int | None:
    try:
        value = json.loads(token)
        # A text with half a character in it cannot be sent back.
        return value if isinstance(value, int) or value.encode() else None
    except (ValueError, AttributeError):
        return None
