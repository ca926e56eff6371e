"""Questions as they are left for a person at this machine, who answers them with `handrail approvals` or in the console.

Each is a file in the state folder that only the person's own user can read, and so is its answer. Whoever takes the question away was first,
and their answer counts, in whatever process they are. An answer counts once, for the question whose nonce it carries. Nobody there, nothing
read, nothing understood: that is a no.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio

from handrail.asking.confirm import Answer, Approval, Choice
from handrail.asking.questions import question
from handrail.config.places import Places, private_folder, write_private
from handrail.errors import NotFound

if TYPE_CHECKING:
    from pydantic import TypeAdapter

FOLDER = "approvals"
POLL_S = 0.2
# A question or an answer that is longer is none.
MOST_BYTES = 4 * 2**20
# Terminals have at least so many columns; a line that wraps could pass for one of ours.
WIDTH = 79
# What a telephone shows in one line.
NARROW = 40


@dataclass(frozen=True, slots=True)
class Pending:
    """One question as it is left: what a person is shown (`narrow`: the same for a telephone), and what may be answered."""

    id: str
    session: str
    nonce: str
    tool: str
    call_id: str
    call_hash: str
    text: str
    narrow: str
    args: Mapping[str, Any]
    choices: tuple[str, ...]
    grants: tuple[str, ...]
    expires: float
    process: int


def leave(approval: Approval, *, places: Places, session: str) -> Left:
    """The question, left for whoever comes. Raises OSError where it cannot be."""
    pending = Pending(
        id=approval.id,
        session=session,
        nonce=secrets.token_urlsafe(32),
        tool=approval.tool,
        call_id=approval.call_id,
        call_hash=approval.call_hash,
        text=question(approval, width=WIDTH),
        narrow=question(approval, width=NARROW),
        args=approval.args,
        choices=tuple(choice.value for choice in approval.choices),
        grants=tuple(grant.label for grant in approval.grants),
        expires=time.time() + approval.expires,
        process=os.getpid(),
    )
    left = Left(approval, pending, _folder(places) / session)
    left.write()
    return left


class Left:
    """A question that was left."""

    def __init__(self, approval: Approval, pending: Pending, folder: Path) -> None:
        self._approval = approval
        self._pending = pending
        self._question, self._taken, self._answer = _files(folder, approval.id)

    def write(self) -> None:
        """Leave it."""
        write_private(self._question, json.dumps(asdict(self._pending), default=str))

    def take(self) -> bool:
        """Take it away, as it is answered here; False when somebody else was first."""
        try:
            self._question.unlink()
        except FileNotFoundError:
            return False
        return True

    async def given(self) -> Answer:
        """The answer that is given to it, as soon as there is one."""
        while (given := _read(self._answer)) is None:
            await anyio.sleep(POLL_S)
        return _answer(given, self._pending, self._approval)

    def close(self) -> None:
        """Nothing is left of it."""
        for each in (self._question, self._taken, self._answer):
            each.unlink(missing_ok=True)
        try:
            self._question.parent.rmdir()
        except OSError:
            # Another question of the session waits.
            return


def _files(folder: Path, id: str) -> tuple[Path, Path, Path]:
    """The question as it waits, as it is taken, and its answer."""
    return folder / f"{id}.question", folder / f"{id}.taken", folder / f"{id}.answer"


def pending(places: Places) -> list[Pending]:
    """The questions that wait now, oldest first."""
    return sorted(_open(places), key=lambda left: left.expires)


def give(
    places: Places,
    left: Pending,
    choice: Choice,
    *,
    grant: int | None = None,
    args: Mapping[str, Any] | None = None,
    feedback: str = "",
    by: str = "at this machine",
) -> None:
    """Answer a question; `grant` is a place in its grants, `by` says where the person is. Raises `NotFound` when it is no longer open: it was
    answered, cancelled, or its time is over.
    """
    waiting, taken, reply = _files(_folder(places) / left.session, left.id)
    gone = NotFound(f"no question {left.id!r} is open in the session {left.session}")
    if left not in pending(places):
        raise gone
    try:
        # Only one can take it away.
        waiting.rename(taken)
    except FileNotFoundError as exc:
        raise gone from exc
    told = {"nonce": left.nonce, "choice": choice.value, "grant": grant, "args": args, "feedback": feedback, "by": by}
    try:
        write_private(reply, json.dumps(told))
    except OSError:
        # A full disk: it waits on, for whoever can answer.
        taken.rename(waiting)
        raise


@cache
def _questions() -> TypeAdapter[Pending]:
    # Only who looks for questions waits for this.
    from pydantic import TypeAdapter

    return TypeAdapter(Pending)


def _open(places: Places) -> Iterator[Pending]:
    adapter = _questions()
    for file in _folder(places).glob("*/*.question"):
        try:
            left = adapter.validate_python(_read(file) or {})
        # Pydantic's complaints are ValueErrors.
        except ValueError:
            continue
        if left.expires > time.time() and _lives(left.process):
            yield left


def _answer(given: Mapping[str, Any], left: Pending, approval: Approval) -> Answer:
    """What was answered; whatever is no plain answer to this very question is a no."""
    nonce = given.get("nonce")
    if not isinstance(nonce, str) or not secrets.compare_digest(nonce.encode(), left.nonce.encode()):
        return Answer(Choice.DENY, feedback="the answer belonged to another question")
    try:
        choice = Choice(given.get("choice", ""))
        number = given.get("grant")
        grant = approval.grants[number] if isinstance(number, int) and number >= 0 else None
    except (ValueError, IndexError):
        return Answer(Choice.DENY, feedback="the answer was none that was offered")
    args = given.get("args")
    edited = cast("Mapping[str, Any]", args) if isinstance(args, dict) else None
    told = {key: str(given.get(key) or "") for key in ("feedback", "by")}
    answer = Answer(choice, grant=grant, args=edited, **told)
    return answer if approval.misfit(answer) is None else Answer(Choice.DENY)


def _folder(places: Places) -> Path:
    return private_folder(places.state) / FOLDER


def _read(file: Path) -> Mapping[str, Any] | None:
    """What a file of ours says; None when there is none, and nothing at all when it is not a person's own."""
    try:
        descriptor = os.open(file, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return None
    except OSError:
        return {}
    with open(descriptor, "rb") as opened:
        found = os.fstat(descriptor)
        ours = not hasattr(os, "getuid") or found.st_uid == os.getuid()
        if not stat.S_ISREG(found.st_mode) or not ours or found.st_size > MOST_BYTES:
            return {}
        try:
            value = json.loads(opened.read(MOST_BYTES))
        except (ValueError, RecursionError):
            return {}
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _lives(process: int) -> bool:
    """Whether the process that asked is still there; where that cannot be told, the question's expiry alone counts."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except (OSError, OverflowError):
        return False
    return True
