"""Inbox of questions for users of this machine, who answer with `handrail approvals` or in the console.

Each question is a file in the state folder that only the same user can read, and so is its answer. The first process to
take the question away is the one whose answer counts. An answer is valid once, for the question whose nonce it carries.
A missing, unreadable or invalid answer counts as a denial.

Next to each question is a file that its asker keeps locked. The kernel releases the lock with the process, however that
ends: a question whose asker is gone is removed by the first process that notices.
"""

from __future__ import annotations

import json
import os
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import anyio

from handrail.api.approval import Answer, Approval, Choice
from handrail.approval.ask_user import Inquiry, InquiryReplies, Question, Reply, find_misfit, parse_reply
from handrail.approval.rendering import question
from handrail.errors import NotFound
from handrail.fs.app_dirs import AppDirs, ensure_private_folder, read_private_json, write_private_file
from handrail.fs.file_locks import is_held, lock_open_file
from handrail.json_types import is_list, is_object

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["PendingApproval", "PendingInquiry", "answer_approval", "answer_inquiry", "list_pending_questions"]

T = TypeVar("T")

INBOX_FOLDER = "approvals"
ANSWER_POLL_S = 0.2
# A question or an answer that is longer is none.
MAX_QUESTION_BYTES = 4 * 2**20
# Terminals have at least so many columns; a line that wraps could pass for one of ours.
WIDE_COLUMNS = 79
# What a telephone shows in one line.
NARROW_COLUMNS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingQuestion:
    """One question as it is left. `expires` is the time when it is over, in seconds since 1970."""

    id: str
    session: str
    nonce: str
    call_id: str
    call_hash: str
    expires: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingApproval(PendingQuestion):
    """Approval request in the inbox: its text (`narrow`: the same for a phone), and the permitted answers."""

    tool: str
    text: str
    narrow: str
    args: Mapping[str, Any]
    choices: tuple[str, ...]
    grants: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingInquiry(PendingQuestion):
    """Questions of an agent in its own words."""

    questions: tuple[Question, ...]

    def misfit(self, replies: Sequence[Reply]) -> str | None:
        """Return why the replies do not fit the questions, or None if they fit."""
        return find_misfit(self.questions, replies)


def post_question(asked: Approval | Inquiry, *, places: AppDirs, session: str) -> PostedQuestion[Any]:
    """Post the question to the inbox and return it. Raises OSError on failure."""
    common: dict[str, Any] = {
        "id": asked.id,
        "session": session,
        "nonce": secrets.token_urlsafe(32),
        "call_id": asked.call_id,
        "call_hash": asked.call_hash,
        "expires": time.time() + asked.expires,
    }
    if isinstance(asked, Inquiry):
        pending = PendingInquiry(**common, questions=asked.questions)
        left = PostedQuestion(
            pending,
            _question_files(_inbox_folder(places) / session, asked.id),
            lambda given: _parse_replies(given, pending),
        )
    else:
        shown = PendingApproval(
            **common,
            tool=asked.tool,
            text=question(asked, width=WIDE_COLUMNS),
            narrow=question(asked, width=NARROW_COLUMNS),
            args=asked.args,
            choices=tuple(choice.value for choice in asked.choices),
            grants=tuple(grant.label for grant in asked.grants),
        )
        left = PostedQuestion(
            shown, _question_files(_inbox_folder(places) / session, asked.id), lambda given: _parse_answer(given, asked)
        )
    left.write()
    return left


class PostedQuestion(Generic[T]):
    """Question in the inbox. `understand` parses the given answer; an invalid one (None) counts as a denial."""

    def __init__(
        self, pending: PendingQuestion, files: QuestionFiles, understand: Callable[[Mapping[str, Any] | None], T]
    ) -> None:
        self._pending = pending
        self._files = files
        self._understand = understand
        self._held: int | None = None

    def write(self) -> None:
        """Leave it. Its asker is seen to live before it is seen itself."""
        try:
            ensure_private_folder(self._files.asker.parent)
            self._held = os.open(self._files.asker, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            lock_open_file(self._held)
            write_private_file(self._files.question, json.dumps(asdict(self._pending), default=str))
        except OSError:
            self.close()
            raise

    def take(self) -> bool:
        """Take it away, as it is answered here; False when somebody else was first."""
        try:
            self._files.question.unlink()
        except FileNotFoundError:
            return False
        return True

    async def given(self) -> T:
        """Wait for the answer and return it."""
        while (given := read_private_json(self._files.answer, most=MAX_QUESTION_BYTES)) is None:
            await anyio.sleep(ANSWER_POLL_S)
        nonce = given.get("nonce")
        ours = isinstance(nonce, str) and secrets.compare_digest(nonce.encode(), self._pending.nonce.encode())
        return self._understand(given if ours else None)

    def close(self) -> None:
        """Remove the question's files, and release the lock."""
        if self._held is not None:
            os.close(self._held)
            self._held = None
        self._files.clear()


@dataclass(frozen=True, slots=True)
class QuestionFiles:
    """Files of one question: pending, taken, its answer, and the asker's lock file."""

    question: Path
    taken: Path
    answer: Path
    asker: Path

    def clear(self) -> None:
        """Remove all of it."""
        for each in (self.question, self.taken, self.answer, self.asker):
            each.unlink(missing_ok=True)
        try:
            self.question.parent.rmdir()
        except OSError:
            # Another question of the session waits.
            return

    def asked(self) -> bool:
        """Return True if the asker's process still exists."""
        return is_held(self.asker)


def _question_files(folder: Path, id: str) -> QuestionFiles:
    return QuestionFiles(*(folder / f"{id}.{kind}" for kind in ("question", "taken", "answer", "asker")))


def list_pending_questions(places: AppDirs) -> list[PendingApproval | PendingInquiry]:
    """Return the pending questions, oldest first."""
    return sorted(_iter_open_questions(places), key=lambda left: left.expires)


def answer_approval(
    places: AppDirs,
    left: PendingApproval,
    choice: Choice,
    *,
    grant: int | None = None,
    args: Mapping[str, Any] | None = None,
    feedback: str = "",
    by: str = "at this machine",
) -> None:
    """Answer a question about a call; `grant` is an index into its grants, `by` says where the user is.

    Raises `NotFound` if it is no longer open: it was answered or cancelled, or has expired.
    """
    _write_answer(places, left, {"choice": choice.value, "grant": grant, "args": args, "feedback": feedback, "by": by})


def answer_inquiry(
    places: AppDirs, left: PendingInquiry, replies: Sequence[Reply] | None, *, by: str = "at this machine"
) -> None:
    """Answer questions in words; None when the person would not. Raises `NotFound` as `answer_approval` does."""
    _write_answer(places, left, {"replies": replies, "by": by})


def _write_answer(places: AppDirs, left: PendingQuestion, told: Mapping[str, Any]) -> None:
    files = _question_files(_inbox_folder(places) / left.session, left.id)
    gone = NotFound(f"no question {left.id!r} is open in the session {left.session}")
    if left not in list_pending_questions(places):
        raise gone
    try:
        # Only one can take it away.
        files.question.rename(files.taken)
    except FileNotFoundError as exc:
        raise gone from exc
    try:
        write_private_file(files.answer, json.dumps({"nonce": left.nonce, **told}))
    except OSError:
        # A full disk: it waits on, for whoever can answer.
        files.taken.rename(files.question)
        raise


@cache
def _question_adapter() -> TypeAdapter[PendingApproval | PendingInquiry]:
    # Only who looks for questions waits for this.
    from pydantic import TypeAdapter

    return TypeAdapter(PendingApproval | PendingInquiry)


def _iter_open_questions(places: AppDirs) -> Iterator[PendingApproval | PendingInquiry]:
    adapter = _question_adapter()
    for asker in _inbox_folder(places).glob("*/*.asker"):
        files = _question_files(asker.parent, asker.stem)
        if not files.asked():
            files.clear()
            continue
        try:
            left = adapter.validate_python(read_private_json(files.question, most=MAX_QUESTION_BYTES) or {})
        # Pydantic's complaints are ValueErrors.
        except ValueError:
            continue
        if left.expires > time.time():
            yield left


def _parse_answer(given: Mapping[str, Any] | None, approval: Approval) -> Answer:
    """Parse an answer; anything but a valid answer to this question is a denial."""
    if given is None:
        return Answer(Choice.DENY, feedback="the answer belonged to another question")
    try:
        choice = Choice(given.get("choice", ""))
        number = given.get("grant")
        grant = approval.grants[number] if isinstance(number, int) and number >= 0 else None
    except (ValueError, IndexError):
        return Answer(Choice.DENY, feedback="the answer was none that was offered")
    args = given.get("args")
    edited = args if is_object(args) else None
    told = {key: str(given.get(key) or "") for key in ("feedback", "by")}
    answer = Answer(choice, grant=grant, args=edited, **told)
    return answer if approval.misfit(answer) is None else Answer(Choice.DENY)


def _parse_replies(given: Mapping[str, Any] | None, left: PendingInquiry) -> InquiryReplies:
    """Parse the replies; if they do not fit these questions, all questions count as left open."""
    nothing = InquiryReplies((None,) * len(left.questions), str((given or {}).get("by") or ""))
    told = (given or {}).get("replies")
    if not is_list(told):
        return nothing
    replies = tuple(parse_reply(each) for each in told)
    return nothing if left.misfit(replies) else InquiryReplies(replies, nothing.by)


def _inbox_folder(places: AppDirs) -> Path:
    return ensure_private_folder(places.state) / INBOX_FOLDER
