"""A plan's run as one HTML file that needs nothing beside it: every call, verdict, effect, picture and the history."""

from __future__ import annotations

import base64
import json
import platform
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from handrail import __version__
from handrail.config.places import write_private
from handrail.errors import HandrailError
from handrail.files import opened
from handrail.records.audit import parts_of, verify
from handrail.records.history import BULKY
from handrail.records.plans import Plan
from handrail.records.redaction import redact
from handrail.records.replaying import StepDone
from handrail.results.values import PICTURES, Media, is_picture, picture_type
from handrail.session import Session

# What is said under each picture of a result.
CAPTIONS = dict(zip(PICTURES, ("as the agent sees it", "the screen itself"), strict=True))
SHOWN = 6_000
# A recorded picture is not larger.
MOST_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture as a data address, and what it shows."""

    address: str
    caption: str


@dataclass(frozen=True, slots=True)
class Row:
    """A step as the page shows it; all fields are text or pictures."""

    number: str
    title: str
    tool: str
    outcome: str
    status: str
    decision: str
    rule: str
    reasons: tuple[str, ...]
    effect: str
    seconds: str
    attempts: int
    args: str
    result: str
    message: str
    pictures: tuple[Picture, ...]


def write_report(
    path: Path,
    plan: Plan,
    steps: Sequence[StepDone],
    session: Session,
    *,
    beside: Path | None = None,
    by: str = "",
) -> Path:
    """Write the report of a plan's run to `path`, readable by its owner only, and give the path back.

    `beside`: the folder of the plan, where the pictures of its steps are. `by`: who made the calls, where no plan did, and how it ended.
    """
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("handrail"), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True
    )
    page = environment.get_template("report.html").render(
        plan=plan,
        by=by,
        rows=[row(done, beside) for done in steps],
        failed=[done.number for done in steps if done.failure is not None],
        undone=plan.count - len(steps),
        history=[redact(record.wire()) for record in session.history.last()],
        total=session.history.total,
        audit=_audit_line(session),
        facts=_facts(session),
    )
    write_private(path, page)
    return path


def row(done: StepDone, beside: Path | None = None) -> Row:
    """One step in the page's words. Of one that failed, how the screen was when it was recorded and how it is."""
    result: Mapping[str, Any] = done.result or {}
    error: Mapping[str, Any] = result.get("error") or {}
    verdict = done.verdict
    return Row(
        number=done.number,
        title=done.step.title,
        tool=done.step.tool,
        outcome="skipped" if done.skipped else "failed" if done.failure is not None else "as expected",
        status=result.get("status", "not run"),
        decision=verdict.decision if verdict else "none",
        rule=verdict.rule if verdict else "",
        reasons=tuple(reason.text for reason in verdict.reasons) if verdict else (),
        effect=str(result.get("effect", "")),
        seconds=f"{done.seconds:.2f} s",
        attempts=done.attempts,
        args=_pretty(redact(done.args)),
        result=_pretty({key: value for key, value in redact(result).items() if key not in BULKY}),
        message=done.failure or error.get("message", ""),
        pictures=(*_pictures(result), *(() if done.failure is None else _both(done, beside))),
    )


def _pictures(result: Any) -> Iterator[Picture]:
    for key, caption in CAPTIONS.items():
        if isinstance(data := result.get(key), str):
            yield Picture(f"data:{picture_type(data)};base64,{data}", caption)
    for media in result.get("media", ()):
        if isinstance(media, Media) and media.type == "image" and media.data is not None:
            encoded = base64.b64encode(media.data).decode("ascii")
            yield Picture(f"data:{media.mime_type};base64,{encoded}", media.text or media.mime_type)


def _both(done: StepDone, beside: Path | None) -> Iterator[Picture]:
    before, now = before_and_now(done, beside)
    for data, caption in ((before, "before this step, as it was recorded"), (now, "now")):
        if data is not None:
            encoded = base64.b64encode(data).decode("ascii")
            yield Picture(f"data:{picture_type(encoded)};base64,{encoded}", caption)


def before_and_now(done: StepDone, beside: Path | None) -> tuple[bytes | None, bytes | None]:
    """The screen before the step as it was recorded, in the plan's folder, and as it is now; None for what there is no picture of."""
    before = _recorded(beside, done.step.picture) if beside is not None and done.step.picture else None
    now: Mapping[str, Any] = done.now or {}
    found = now.get(PICTURES[-1]) or now.get(PICTURES[0])
    return before, _decoded(found) if isinstance(found, str) else None


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def _recorded(folder: Path, picture: str) -> bytes | None:
    """A picture below the plan's folder, where agents may write; None for one behind a link, and for what is no picture."""
    try:
        with opened.reading(folder.resolve() / picture) as file, open(file.fd, "rb", closefd=False) as data:
            read = data.read(MOST_BYTES)
    except (OSError, HandrailError):
        return None
    return read if is_picture(read) else None


def _pretty(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}\n… {len(text)} characters in all"


def _audit_line(session: Session) -> str:
    path = session.runtime.places.audit / f"{session.id}.jsonl"
    if not path.exists():
        return "The audit is off."
    parts = [verify(part) for part in parts_of(path)]
    if problems := [problem for part in parts for problem in part.problems]:
        return f"The audit does not hold: {problems[0]}"
    return f"{sum(part.lines for part in parts)} lines of the audit {path.name} form an unbroken chain."


def _facts(session: Session) -> list[tuple[str, str]]:
    return [
        ("Handrail", __version__),
        ("Python", platform.python_version()),
        ("System", f"{platform.system()} {platform.release()} ({sys.platform})"),
        ("Desktop", session.settings.desktop),
        ("Backend", session.backend or "none"),
        ("Mode", session.mode),
        ("Session", session.id),
        ("Written", datetime.now(UTC).isoformat(timespec="seconds")),
    ]
