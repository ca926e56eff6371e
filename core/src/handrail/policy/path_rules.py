"""Core evaluator's opinions on the paths that a call names, by what the tool does with them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import PurePosixPath

from handrail.api.call import Invocation, list_argument_paths
from handrail.api.verdict import Decision, EvaluationContext, Mode, Opinion, Reason
from handrail.fs import path_resolution
from handrail.policy import place_kinds
from handrail.policy.effect_opinions import allow_opinion, confirm_opinion, floor_opinion
from handrail.policy.place_kinds import PlaceKind

READING = allow_opinion("read_inside")
READING_OPEN = allow_opinion("read_open")
EDITING = allow_opinion("write_inside")
EDITING_KEPT = allow_opinion("write_inside", relies_on_undo=True)
CHANGING_OPEN = allow_opinion("write_open")
DELETING_KEPT = allow_opinion("delete_inside", relies_on_undo=True)
WRITE_INSIDE = confirm_opinion("write_inside", "it changes a file of the workspace")
DELETE_INSIDE = confirm_opinion("delete_inside", "it deletes in the workspace")
READ_OUTSIDE = confirm_opinion("read_outside", "it reads a file outside the workspace")
# Where a pattern stops naming one place.
WILDCARD_PATTERN = re.compile(r"[*?\[{]")

# What was looked at is looked at once for a call.
PathEvaluator = Callable[
    [str, path_resolution.ResolvedPath, EvaluationContext, path_resolution.PathCache], Opinion | None
]


def resolve_path(
    text: str, judging: EvaluationContext, seen: path_resolution.PathCache, *, follow_last: bool = True
) -> path_resolution.ResolvedPath:
    """Return the location to which a path of the call resolves."""
    found = path_resolution.resolve_path(
        text, cwd=judging.cwd, home=judging.home, platform=judging.platform, seen=seen, follow_last=follow_last
    )
    if found.refused is None and path_resolution.is_inside_roots(
        found.place, judging.protected, seen=seen, platform=judging.platform
    ):
        return found
    return path_resolution.map_to_private_tmp(
        found, temporary=judging.temporary, workspace=judging.workspace, seen=seen
    )


def has_temporary_path(invocation: Invocation, judging: EvaluationContext) -> bool:
    """Return True if a call names a file that would be in a private /tmp, if there were one."""
    named = (
        text
        for effect in invocation.tool.effects
        if effect.arg is not None and effect.what in ("file", "folder", "glob")
        for text in list_argument_paths(invocation.argument(effect))
        if text.startswith(("/tmp/", "/var/tmp/"))
    )
    return any(_is_in_private_tmp(fixed_folder(text), judging) for text in named)


def _is_in_private_tmp(text: str, judging: EvaluationContext) -> bool:
    own = PurePosixPath("/var/empty")
    found = path_resolution.resolve_path(text, cwd=judging.cwd, home=judging.home, platform=judging.platform)
    return path_resolution.map_to_private_tmp(found, temporary=own, workspace=judging.workspace) is not found


def fixed_folder(pattern: str) -> str:
    """Return the folder that contains all matches of a pattern, as far as the pattern itself determines it."""
    found = WILDCARD_PATTERN.search(pattern)
    if found is None:
        return pattern
    start = re.match(r"(.*[/\\])?", pattern[: found.start()], re.DOTALL)
    assert start is not None
    return start[0] or "."


def evaluate_reading(
    text: str, found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> Opinion:
    """Return the opinion on reading the file or folder that `text` names."""
    if (view := _evaluate_unreadable(text, found, judging, seen)) is not None:
        return view
    if found.doubtful is not None:
        return floor_opinion(Decision.CONFIRM, found.doubtful)
    opened = place_kinds.find_opening_kind(found, judging, "read", seen)
    if opened is not None:
        return READING if opened is PlaceKind.WORKSPACE else READING_OPEN
    if found.linked:
        return confirm_opinion("read_outside", f"{text!r} leads to {found.real!r}, outside the workspace")
    return READ_OUTSIDE


def evaluate_pattern(
    text: str, found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> Opinion:
    """Return the opinion on reading everything that matches a pattern; `found` is its fixed prefix."""
    wild = WILDCARD_PATTERN.search(text)
    rest = text[wild.start() :] if wild else ""
    view = evaluate_reading(text, found, judging, seen)
    if view.suggestion is Decision.ALLOW and (".." in re.split(r"[/\\{},]", rest) or re.search(r"[{,][/\\~]", rest)):
        return confirm_opinion("climbing_pattern", f"the pattern {text!r} may lead out of where it begins")
    return view


def evaluate_working_folder(
    text: str, found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> Opinion | None:
    """Return the opinion on working in a folder, or None if only the actions there matter."""
    if (view := _evaluate_unreadable(text, found, judging, seen)) is not None:
        return view
    return None if found.doubtful is None else floor_opinion(Decision.CONFIRM, found.doubtful)


def evaluate_writing(
    text: str, found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> Opinion:
    """Return the opinion on writing the file or folder that `text` names."""
    if (view := _evaluate_change(text, found, judging, seen)) is not None:
        return view
    if place_kinds.find_opening_kind(found, judging, "write", seen) is not PlaceKind.WORKSPACE:
        return CHANGING_OPEN
    if judging.mode is Mode.ACCEPT_EDITS:
        return EDITING
    return EDITING_KEPT if judging.undoable else WRITE_INSIDE


def evaluate_deleting(
    text: str, found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> Opinion:
    """Return the opinion on deleting the file or folder that `text` names; of a symlink, the link itself."""
    if (view := _evaluate_change(text, found, judging, seen)) is not None:
        return view
    if any(
        path_resolution.is_inside_roots(root, (found.path,), platform=judging.platform)
        for root in _writable_roots(found, judging)
    ):
        return floor_opinion(
            Decision.CONFIRM, Reason("whole_workspace", f"{text!r} is the whole workspace, or all of an opened folder")
        )
    if place_kinds.find_opening_kind(found, judging, "delete", seen) is not PlaceKind.WORKSPACE:
        return CHANGING_OPEN
    return DELETING_KEPT if judging.undoable else DELETE_INSIDE


def _evaluate_change(
    text: str, found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> Opinion | None:
    """Return the objection to changing a path at all, or None for ordinary paths in writable folders."""
    if (closed := _evaluate_closed(found, seen) or _evaluate_protected(found, text, judging, seen)) is not None:
        return closed
    opened = place_kinds.find_opening_kind(found, judging, "write", seen)
    floor = Decision.CONFIRM if opened is not None else Decision.DENY
    if (view := _evaluate_secret(text, found, judging, floor)) is not None:
        return view
    if found.doubtful is not None:
        return floor_opinion(Decision.CONFIRM, found.doubtful)
    if opened is not PlaceKind.TEMPORARY and (who := place_kinds.find_obeying_program(found, judging)) is not None:
        return floor_opinion(
            Decision.CONFIRM, Reason("autorun", f"{text!r} is run or obeyed by {who} without being asked")
        )
    if opened is None:
        return floor_opinion(Decision.CONFIRM, Reason("write_outside", f"{text!r} is outside the workspace"))
    return None


def _writable_roots(
    found: path_resolution.ResolvedPath, judging: EvaluationContext
) -> list[path_resolution.PathOrText]:
    own = () if judging.temporary is None else (judging.temporary,)
    return [found.kind(str(root)) for root in (*judging.workspace, *judging.writable, *own)]


def _evaluate_secret(
    text: str, found: path_resolution.ResolvedPath, judging: EvaluationContext, floor: Decision
) -> Opinion | None:
    what = place_kinds.describe_resolved_secret(found, judging.workspace)
    return None if what is None else floor_opinion(floor, Reason("secret", f"{text!r} keeps {what}"))


def _evaluate_unreadable(
    text: str, found: path_resolution.ResolvedPath, judging: EvaluationContext, seen: path_resolution.PathCache
) -> Opinion | None:
    """Return the objection to reading a path: closed paths, Handrail's answer keys and secrets; None for others."""
    if (closed := _evaluate_closed(found, seen)) is not None:
        return closed
    if path_resolution.is_inside_roots(found.place, judging.keys, seen=seen, platform=judging.platform):
        return floor_opinion(
            Decision.DENY, Reason("keys", f"{text!r} is where Handrail keeps what lets a person answer it")
        )
    return _evaluate_secret(text, found, judging, Decision.DENY)


def _evaluate_closed(found: path_resolution.ResolvedPath, seen: path_resolution.PathCache) -> Opinion | None:
    """Return the objection to both reading and changing a path, such as a device, or None."""
    if found.refused is not None:
        return floor_opinion(Decision.DENY, found.refused)
    if (what := path_resolution.describe_device(found.place, seen=seen)) is not None:
        return floor_opinion(Decision.DENY, Reason("device", f"{str(found.path)!r} is {what}"))
    return None


def _evaluate_protected(
    found: path_resolution.ResolvedPath, text: str, judging: EvaluationContext, seen: path_resolution.PathCache
) -> Opinion | None:
    """Return the objection to changing a path that no tool may change, such as Handrail's own files; else None."""
    if path_resolution.is_protected_path(found.path, judging.protected, seen=seen, platform=judging.platform):
        return floor_opinion(
            Decision.DENY, Reason("protected", f"{text!r} is one of Handrail's own files, or of those that it starts")
        )
    if path_resolution.is_kernel_path(found.path):
        return floor_opinion(Decision.DENY, Reason("kernel", f"{text!r} is a setting of the running system"))
    if (who := path_resolution.describe_startup(found.path, home=judging.home)) is not None:
        return floor_opinion(
            Decision.DENY, Reason("startup", f"{text!r} is run or obeyed by {who} without being asked")
        )
    named = found._replace(real=found.written)
    leaves = found.linked and place_kinds.find_opening_kind(found, judging, "write", seen) is None
    if leaves and place_kinds.find_opening_kind(named, judging, "write", seen) is not None:
        return floor_opinion(
            Decision.DENY, Reason("link_out", f"{text!r} goes through a link that leaves the workspace")
        )
    return None
