"""Details added to a command's confirmation: its real folder and the session variables that it uses."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import anyio
import anyio.to_thread

from handrail.api.call import Confirmation, ExecConfirmation, Invocation
from handrail.api.verdict import Verdict
from handrail.errors import TimedOut
from handrail.redaction import is_secret_name

if TYPE_CHECKING:
    from handrail.pipeline.call_session import CallSession

__all__ = ["is_variable_used"]

# Seconds that a tool may take to say what a call would do.
SHOWING_S = 10.0


async def build_full_confirmation(session: CallSession, invocation: Invocation, verdict: Verdict) -> Confirmation:
    """Return what the user sees before approving a call of the session. Raises `TimedOut` if that takes too long."""
    shown = await _shown_in_time(invocation, verdict)
    if not isinstance(shown, ExecConfirmation):
        return shown
    # What is typed into a running program uses the variables of that.
    variables = _collect_used_variables(session, shown.command) if invocation.tool.confinable else dict[str, str]()
    return replace(shown, cwd=_describe_folders(session, verdict) or shown.cwd, variables=variables)


async def _shown_in_time(invocation: Invocation, verdict: Verdict) -> Confirmation:
    if invocation.tool.confirmation is None:
        return invocation.confirmation(verdict)
    # A tool may read files and compare them for it, which no other call has to wait for.
    with anyio.move_on_after(SHOWING_S):
        return await anyio.to_thread.run_sync(invocation.confirmation, verdict, abandon_on_cancel=True)
    raise TimedOut(f"what {invocation.tool.name} would do could not be shown within {SHOWING_S:g} s; nothing was run")


def is_variable_used(command: str, name: str) -> bool:
    """Return True if the text of a command uses the variable (`$NAME`, `${NAME…}`)."""
    return re.search(rf"\$\{{?[!#]?{re.escape(name)}(?!\w)", command) is not None


def _collect_used_variables(session: CallSession, command: str) -> Mapping[str, str]:
    """Return the variables that the command uses and that the session has set, with their values; those of secrets are not shown."""
    own = session.runtime.environment
    return {
        name: "[a secret, which the command is not given]" if is_secret_name(name) else value
        for name, value in sorted(session.environment.items())
        if own.get(name) != value and is_variable_used(command, name)
    }


def _describe_folders(session: CallSession, verdict: Verdict) -> str | None:
    """Return the real folders that the first part of a command may run in; None where that is the workspace itself."""
    folders = next((part.folders for part in verdict.parts if part.folders), (str(session.cwd),))
    real = dict.fromkeys(os.path.realpath(folder) if os.path.isabs(folder) else "not known" for folder in folders)
    shown = " or ".join(real)
    return shown if shown != os.path.realpath(session.workspace[0]) else None
