"""What a Handrail session leaves in the ADK session, so that a run goes on as it was after a restart of the program."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.errors import HandrailError

if TYPE_CHECKING:
    from handrail import Session

log = logging.getLogger(__name__)


def state_key(agent: str) -> str:
    """Where it stands in the state. Agents of one ADK session do not share."""
    return f"_handrail_{agent}"


def asked_key(agent: str, call_id: str) -> str:
    """Where the mark of an open question stands."""
    return f"_handrail_asked_{agent}_{call_id}"


def kept(session: Session) -> str:
    """The session's backend, working directory, loaded tools and stash, as JSON: ADK merges mappings of calls that run together."""
    return json.dumps(
        {
            "backend": session.backend,
            "cwd": str(session.cwd),
            "loaded": {source: sorted(names) for source, names in session.pool.loaded.items()},
            "stash": _plain(session.stash.all()),
        },
        sort_keys=True,
    )


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those values that JSON can hold; others live as long as the program."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            continue
        found[name] = value
    return found


async def restore(session: Session, text: Any) -> None:
    """Bring a new session to where another one was. What is no longer there is left out."""
    if not isinstance(text, str):
        return
    try:
        was = json.loads(text)
        for name, value in was["stash"].items():
            session.stash.set(name, value)
        cwd = Path(was["cwd"])
        if cwd.is_dir():
            session.keep(cwd=cwd)
        if was["backend"] is not None and was["backend"] != session.backend:
            await session.use_backend(was["backend"])
        for source, names in was["loaded"].items():
            await session.load_tools(names, source=source)
    except (HandrailError, ValueError, KeyError, TypeError, AttributeError) as exc:
        log.warning("a session is not quite as it was before: %s", exc)
