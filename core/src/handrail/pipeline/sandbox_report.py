"""Notes in a result about the sandbox that its call ran in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from handrail.api.result import ToolResult
from handrail.errors import Downstream

if TYPE_CHECKING:
    from handrail.sandbox.confinement import Confinement

# Unreachable hosts that a result names.
MAX_UNREACHABLE_NOTES = 5
UNSURVEYED_NOTE = (
    "The workspace has more files than are searched before a sandboxed command (`unsurveyed` names folders): secrets there could be read, and files "
    "that other programs run unasked are put aside there only before something runs on the host."
)


def report_sandbox(
    result: ToolResult, sandbox: Confinement, aside: Sequence[str], *, changes_repository: bool, title: str
) -> None:
    """Add to a result which sandbox was used, the hosts it reached, and the files that were renamed when it ended."""
    result |= {"sandbox": sandbox.name, "network": sandbox.network}
    _report_hosts(result, sandbox)
    report_renamed(result, aside, changes_repository=changes_repository, title=title)
    _report_not_renamed(result, sandbox.left)
    if sandbox.unsurveyed:
        result["unsurveyed"] = list(sandbox.unsurveyed)
        result.add_note(UNSURVEYED_NOTE)


def _report_hosts(result: ToolResult, sandbox: Confinement) -> None:
    """Name in the result the hosts that were allowed, and those that were refused."""
    if sandbox.hosts:
        result["hosts"] = list(sandbox.hosts)
    if refused := sandbox.traffic.places:
        result["refused_hosts"] = list(refused)
        if "error" not in result:
            result.add_note(f"The sandbox refused connections to {', '.join(refused)}.")
    for text in sandbox.traffic.unreachable[:MAX_UNREACHABLE_NOTES]:
        result.add_note(f"{text}.")


def _report_not_renamed(result: ToolResult, left: Sequence[str]) -> None:
    """Name in the result what should have been renamed and could not be."""
    if left:
        result["not_put_aside"] = list(left)
        result.add_note(
            f"Other programs run such files unasked, and they could not be renamed: {', '.join(left)}. "
            "Nothing runs on the host until they are gone."
        )


def report_renamed(
    result: ToolResult, aside: Sequence[str], *, changes_repository: bool = False, title: str = ""
) -> None:
    """List in the result what was renamed in the workspace, now or during the call.

    A command that changes the repository then does not count as successful.
    """
    if not (aside := [*result.get("put_aside", ()), *aside]):
        return
    from handrail.sandbox.leftovers import ASIDE_SUFFIX

    result["put_aside"] = aside
    result.add_note(f"Renamed, since other programs run such files unasked (…{ASIDE_SUFFIX}): {', '.join(aside)}.")
    if changes_repository and result["status"] == "success":
        error = Downstream(
            "the command ended well, but files that it or another command brought were renamed, so the work tree is not as git left it",
            hint="look at `git status`; a person can approve `git checkout -f .`, which runs on the host, or give such files their names back",
        )
        result.update(ToolResult.failure(error, title=title))
