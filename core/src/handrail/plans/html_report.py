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

from handrail.api.result import Media, detect_picture_type, is_picture
from handrail.audit.history import BULKY_KEYS
from handrail.audit.writer import list_parts, verify_audit
from handrail.errors import HandrailError
from handrail.fs import safe_open
from handrail.fs.app_dirs import write_private_file
from handrail.json_types import PICTURE_KEYS
from handrail.plans.plan_file import ReplayPlan
from handrail.plans.replay import StepResult
from handrail.redaction import redact_value
from handrail.session.session import Session
from handrail.version import __version__

__all__ = ["write_report"]

# What is said under each picture of a result.
PICTURE_CAPTIONS = dict(zip(PICTURE_KEYS, ("as the agent sees it", "the screen itself"), strict=True))
MAX_JSON_CHARS = 6_000
# A recorded picture is not larger.
MAX_PICTURE_BYTES = 16 * 2**20


@dataclass(frozen=True, slots=True)
class ReportPicture:
    """A picture as a data address, and what it shows."""

    address: str
    caption: str


@dataclass(frozen=True, slots=True)
class ReportRow:
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
    pictures: tuple[ReportPicture, ...]


def write_report(
    path: Path,
    plan: ReplayPlan,
    steps: Sequence[StepResult],
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
        rows=[build_row(done, beside) for done in steps],
        failed=[done.number for done in steps if done.failure is not None],
        undone=plan.count - len(steps),
        history=[redact_value(record.wire()) for record in session.history.last()],
        total=session.history.total,
        audit=_describe_audit(session),
        facts=_list_facts(session),
    )
    write_private_file(path, page)
    return path


def build_row(done: StepResult, beside: Path | None = None) -> ReportRow:
    """Build one step's row of the page; a failed step shows the screen as it was when recorded and as it is now."""
    result: Mapping[str, Any] = done.result or {}
    error: Mapping[str, Any] = result.get("error") or {}
    verdict = done.verdict
    return ReportRow(
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
        args=_format_json(redact_value(done.args)),
        result=_format_json({key: value for key, value in redact_value(result).items() if key not in BULKY_KEYS}),
        message=done.failure or error.get("message", ""),
        pictures=(*_iter_pictures(result), *(() if done.failure is None else _iter_before_and_now(done, beside))),
    )


def _iter_pictures(result: Any) -> Iterator[ReportPicture]:
    for key, caption in PICTURE_CAPTIONS.items():
        if isinstance(data := result.get(key), str):
            yield ReportPicture(f"data:{detect_picture_type(data)};base64,{data}", caption)
    for media in result.get("media", ()):
        if isinstance(media, Media) and media.type == "image" and media.data is not None:
            encoded = base64.b64encode(media.data).decode("ascii")
            yield ReportPicture(f"data:{media.mime_type};base64,{encoded}", media.text or media.mime_type)


def _iter_before_and_now(done: StepResult, beside: Path | None) -> Iterator[ReportPicture]:
    before, now = read_before_and_now(done, beside)
    for data, caption in ((before, "before this step, as it was recorded"), (now, "now")):
        if data is not None:
            encoded = base64.b64encode(data).decode("ascii")
            yield ReportPicture(f"data:{detect_picture_type(encoded)};base64,{encoded}", caption)


def read_before_and_now(done: StepResult, beside: Path | None) -> tuple[bytes | None, bytes | None]:
    """Return the screen before the step as it was recorded in the plan's directory, and as it is now.

    None for a picture that does not exist.
    """
    before = _read_recorded_picture(beside, done.step.picture) if beside is not None and done.step.picture else None
    now: Mapping[str, Any] = done.now or {}
    found = now.get(PICTURE_KEYS[-1]) or now.get(PICTURE_KEYS[0])
    return before, _decode_base64(found) if isinstance(found, str) else None


def _decode_base64(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except ValueError:
        return None


def _read_recorded_picture(folder: Path, picture: str) -> bytes | None:
    """Read a picture below the plan's directory, where agents may write.

    None for a path behind a symlink, and for data that is not a picture.
    """
    try:
        with safe_open.open_for_reading(folder.resolve() / picture) as file, open(file.fd, "rb", closefd=False) as data:
            read = data.read(MAX_PICTURE_BYTES)
    except (OSError, HandrailError):
        return None
    return read if is_picture(read) else None


def _format_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=2, default=str)
    return text if len(text) <= MAX_JSON_CHARS else f"{text[:MAX_JSON_CHARS]}\n… {len(text)} characters in all"


def _describe_audit(session: Session) -> str:
    path = session.runtime.places.audit / f"{session.id}.jsonl"
    if not path.exists():
        return "The audit is off."
    parts = [verify_audit(part) for part in list_parts(path)]
    if problems := [problem for part in parts for problem in part.problems]:
        return f"The audit does not hold: {problems[0]}"
    return f"{sum(part.lines for part in parts)} lines of the audit {path.name} form an unbroken chain."


def _list_facts(session: Session) -> list[tuple[str, str]]:
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
