"""What core's own judge makes of a path that a call names, by what the tool does with it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from handrail.calls.invocation import Invocation, paths_in
from handrail.files import paths, place_kinds
from handrail.files.place_kinds import PlaceKind
from handrail.judging.opinions import allowed, asked, kept
from handrail.judging.verdicts import Decision, Judging, Mode, Opinion, Reason

READING = allowed("read_inside")
READING_OPEN = allowed("read_open")
EDITING = allowed("write_inside")
EDITING_KEPT = allowed("write_inside", relies_on_undo=True)
CHANGING_OPEN = allowed("write_open")
DELETING_KEPT = allowed("delete_inside", relies_on_undo=True)
WRITE_INSIDE = asked("write_inside", "it changes a file of the workspace")
DELETE_INSIDE = asked("delete_inside", "it deletes in the workspace")
READ_OUTSIDE = asked("read_outside", "it reads a file outside the workspace")
# Where a pattern stops naming one place.
WILD = re.compile(r"[*?\[{]")

# What was looked at is looked at once for a call.
Judge = Callable[[str, paths.Resolved, Judging, paths.Seen], Opinion | None]


def resolved(text: str, judging: Judging, seen: paths.Seen, *, follow_last: bool = True) -> paths.Resolved:
    """Where a path of the call leads."""
    found = paths.resolve(
        text, cwd=judging.cwd, home=judging.home, platform=judging.platform, seen=seen, follow_last=follow_last
    )
    if found.refused is None and paths.inside(found.place, judging.protected, seen=seen, platform=judging.platform):
        return found
    return paths.privately(found, temporary=judging.temporary, workspace=judging.workspace, seen=seen)


def names_temporary(invocation: Invocation, judging: Judging) -> bool:
    """Return True if a call names a file that would be in a private /tmp, if there were one."""
    named = (
        text
        for effect in invocation.tool.effects
        if effect.arg is not None and effect.what in ("file", "folder", "glob")
        for text in paths_in(invocation.argument(effect))
        if text.startswith(("/tmp/", "/var/tmp/"))
    )
    return any(_is_private(fixed(text), judging) for text in named)


def _is_private(text: str, judging: Judging) -> bool:
    own = PurePosixPath("/var/empty")
    found = paths.resolve(text, cwd=judging.cwd, home=judging.home, platform=judging.platform)
    return paths.privately(found, temporary=own, workspace=judging.workspace) is not found


def fixed(pattern: str) -> str:
    """The folder that everything lies in which fits a pattern, as far as the pattern itself says."""
    found = WILD.search(pattern)
    if found is None:
        return pattern
    start = re.match(r"(.*[/\\])?", pattern[: found.start()], re.DOTALL)
    assert start is not None
    return start[0] or "."


def of_reading(text: str, found: paths.Resolved, judging: Judging, seen: paths.Seen) -> Opinion:
    """The view of reading the file or folder that `text` names."""
    if (view := _unread(text, found, judging, seen)) is not None:
        return view
    if found.doubtful is not None:
        return kept(Decision.CONFIRM, found.doubtful)
    opened = place_kinds.opened_by(found, judging, "read", seen)
    if opened is not None:
        return READING if opened is PlaceKind.WORKSPACE else READING_OPEN
    if found.linked:
        return asked("read_outside", f"{text!r} leads to {found.real!r}, outside the workspace")
    return READ_OUTSIDE


def of_pattern(text: str, found: paths.Resolved, judging: Judging, seen: paths.Seen) -> Opinion:
    """The view of reading all that fits a pattern; `found` is its fixed beginning."""
    wild = WILD.search(text)
    rest = text[wild.start() :] if wild else ""
    view = of_reading(text, found, judging, seen)
    if view.suggestion is Decision.ALLOW and (".." in re.split(r"[/\\{},]", rest) or re.search(r"[{,][/\\~]", rest)):
        return asked("climbing_pattern", f"the pattern {text!r} may lead out of where it begins")
    return view


def of_working(text: str, found: paths.Resolved, judging: Judging, seen: paths.Seen) -> Opinion | None:
    """The view of working in a folder; None where what is done there is all that matters."""
    if (view := _unread(text, found, judging, seen)) is not None:
        return view
    return None if found.doubtful is None else kept(Decision.CONFIRM, found.doubtful)


def of_writing(text: str, found: paths.Resolved, judging: Judging, seen: paths.Seen) -> Opinion:
    """The view of writing the file or folder that `text` names."""
    if (view := _changing(text, found, judging, seen)) is not None:
        return view
    if place_kinds.opened_by(found, judging, "write", seen) is not PlaceKind.WORKSPACE:
        return CHANGING_OPEN
    if judging.mode is Mode.ACCEPT_EDITS:
        return EDITING
    return EDITING_KEPT if judging.undoable else WRITE_INSIDE


def of_deleting(text: str, found: paths.Resolved, judging: Judging, seen: paths.Seen) -> Opinion:
    """The view of deleting the file or folder that `text` names; a link is deleted itself, not what it leads to."""
    if (view := _changing(text, found, judging, seen)) is not None:
        return view
    if any(paths.inside(root, (found.path,), platform=judging.platform) for root in _roots(found, judging)):
        return kept(
            Decision.CONFIRM, Reason("whole_workspace", f"{text!r} is the whole workspace, or all of an opened folder")
        )
    if place_kinds.opened_by(found, judging, "delete", seen) is not PlaceKind.WORKSPACE:
        return CHANGING_OPEN
    return DELETING_KEPT if judging.undoable else DELETE_INSIDE


def _changing(text: str, found: paths.Resolved, judging: Judging, seen: paths.Seen) -> Opinion | None:
    """What speaks against changing a place at all; None for plain ones in the workspace."""
    if (closed := _closed(found, seen) or _out_of_reach(found, text, judging, seen)) is not None:
        return closed
    opened = place_kinds.opened_by(found, judging, "write", seen)
    floor = Decision.CONFIRM if opened is not None else Decision.DENY
    if (view := _secret(text, found, judging, floor)) is not None:
        return view
    if found.doubtful is not None:
        return kept(Decision.CONFIRM, found.doubtful)
    if opened is not PlaceKind.TEMPORARY and (who := place_kinds.obeyed_by(found, judging)) is not None:
        return kept(Decision.CONFIRM, Reason("autorun", f"{text!r} is run or obeyed by {who} without being asked"))
    if opened is None:
        return kept(Decision.CONFIRM, Reason("write_outside", f"{text!r} is outside the workspace"))
    return None


def _roots(found: paths.Resolved, judging: Judging) -> list[paths.Place]:
    own = () if judging.temporary is None else (judging.temporary,)
    return [found.kind(str(root)) for root in (*judging.workspace, *judging.writable, *own)]


def _secret(text: str, found: paths.Resolved, judging: Judging, floor: Decision) -> Opinion | None:
    what = place_kinds.secret_in(found, judging.workspace)
    return None if what is None else kept(floor, Reason("secret", f"{text!r} keeps {what}"))


def _unread(text: str, found: paths.Resolved, judging: Judging, seen: paths.Seen) -> Opinion | None:
    """Places that no tool looks at."""
    if (closed := _closed(found, seen)) is not None:
        return closed
    if paths.inside(found.place, judging.keys, seen=seen, platform=judging.platform):
        return kept(Decision.DENY, Reason("keys", f"{text!r} is where Handrail keeps what lets a person answer it"))
    return _secret(text, found, judging, Decision.DENY)


def _closed(found: paths.Resolved, seen: paths.Seen) -> Opinion | None:
    """Places that are closed to reading and changing alike."""
    if found.refused is not None:
        return kept(Decision.DENY, found.refused)
    if (what := paths.device(found.place, seen=seen)) is not None:
        return kept(Decision.DENY, Reason("device", f"{str(found.path)!r} is {what}"))
    return None


def _out_of_reach(found: paths.Resolved, text: str, judging: Judging, seen: paths.Seen) -> Opinion | None:
    """Places that no tool changes."""
    if paths.protected(found.path, judging.protected, seen=seen, platform=judging.platform):
        return kept(
            Decision.DENY, Reason("protected", f"{text!r} is one of Handrail's own files, or of those that it starts")
        )
    if paths.kernel(found.path):
        return kept(Decision.DENY, Reason("kernel", f"{text!r} is a setting of the running system"))
    if (who := paths.startup(found.path, home=judging.home)) is not None:
        return kept(Decision.DENY, Reason("startup", f"{text!r} is run or obeyed by {who} without being asked"))
    named = found._replace(real=found.written)
    leaves = found.linked and place_kinds.opened_by(found, judging, "write", seen) is None
    if leaves and place_kinds.opened_by(named, judging, "write", seen) is not None:
        return kept(Decision.DENY, Reason("link_out", f"{text!r} goes through a link that leaves the workspace"))
    return None
