"""State of a Handrail session, saved in the ADK session to resume a run after the program restarts."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Set
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.errors import HandrailError

if TYPE_CHECKING:
    from handrail import Session
    from handrail.api.service import SkillsService

log = logging.getLogger(__name__)


def state_key(agent: str) -> str:
    """Return the state key of an agent's session. Agents of one ADK session do not share it."""
    return f"_handrail_{agent}"


def skill_key(agent: str, skill: str) -> str:
    """Return the state key that marks a skill as loaded.

    Each skill has its own key, because ADK keeps only one of the values that calls of one step write under a key.
    """
    return f"_handrail_skill_{agent}_{skill}"


def asked_key(agent: str, call_id: str) -> str:
    """Return the state key for the hash of an open question."""
    return f"_handrail_asked_{agent}_{call_id}"


async def build_snapshot(session: Session, agent: str, state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values to save in the state: the session itself, and the place of each loaded skill in their order.

    The place of a skill that has been unloaded is 0.
    """
    skills = await _get_skills(session)
    active: Mapping[str, str] = {} if skills is None else skills.active
    places = {skill_key(agent, name): place for place, name in enumerate(active, start=1)}
    gone = {skill_key(agent, name): 0 for name in _list_loaded_skills(agent, state) if name not in active}
    return {state_key(agent): _serialize_session(session, set(active.values())), **places, **gone}


def _serialize_session(session: Session, skills: Set[str]) -> str:
    """Return the session's backend, working directory, loaded tools and stash as JSON text.

    It is text because ADK merges the mappings of calls that run together.
    """
    loaded = session.listing.pool.loaded.items()
    return json.dumps(
        {
            "backend": session.backend,
            "cwd": str(session.cwd),
            "loaded": {source: sorted(names) for source, names in loaded if source not in skills},
            "stash": _filter_json_values(session.stash.all()),
        },
        sort_keys=True,
    )


async def _get_skills(session: Session) -> SkillsService | None:
    """Return the service that holds the session's skills, or None if it is missing or unavailable."""
    try:
        skills: SkillsService = await session.service("skills")
        return skills
    except HandrailError:
        return None


def _list_loaded_skills(agent: str, state: Mapping[str, Any]) -> list[str]:
    """Return the skills that the state marks as loaded, in order.

    Names of skills contain no underscore; those of agents may.
    """
    prefix = skill_key(agent, "")
    places = {
        key.removeprefix(prefix): place
        for key, place in state.items()
        if key.startswith(prefix) and "_" not in key.removeprefix(prefix) and isinstance(place, int) and place > 0
    }
    return sorted(places, key=lambda name: places[name])


def _filter_json_values(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values that JSON can represent. The others live only as long as the program."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        try:
            json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            continue
        found[name] = value
    return found


async def restore_session(session: Session, agent: str, state: Mapping[str, Any]) -> None:
    """Restore a new session to the saved state. Omits what no longer exists or may no longer be loaded."""
    text = state.get(state_key(agent))
    if isinstance(text, str):
        await _restore_position(session, text)
    names = _list_loaded_skills(agent, state)
    if not names or (skills := await _get_skills(session)) is None:
        return
    for name in names:
        try:
            await skills.load(name)
        except HandrailError as exc:
            log.warning("the skill %r is not loaded as it was before: %s", name, exc)


async def _restore_position(session: Session, text: str) -> None:
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
