"""Details added to a command's confirmation: its real folder and the session variables that it uses."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.calls.invocation import Confirmation, ExecConfirmation, Invocation
from handrail.judging.verdicts import Verdict
from handrail.records.redaction import is_secret_name

if TYPE_CHECKING:
    from handrail.session import Session


def full_confirmation(session: Session, invocation: Invocation, verdict: Verdict) -> Confirmation:
    """Return what a person is shown before saying yes to a call of the session."""
    shown = invocation.confirmation(verdict)
    if not isinstance(shown, ExecConfirmation):
        return shown
    # What is typed into a running program uses the variables of that.
    variables = _variables_shown(session, shown.command) if invocation.tool.confinable else dict[str, str]()
    return replace(shown, cwd=_folder_shown(session, verdict) or shown.cwd, variables=variables)


def names_variable(command: str, name: str) -> bool:
    """Return True if the text of a command uses the variable (`$NAME`, `${NAME…}`)."""
    return re.search(rf"\$\{{?[!#]?{re.escape(name)}(?!\w)", command) is not None


def _variables_shown(session: Session, command: str) -> Mapping[str, str]:
    """Return the variables that the command uses and that the session has set, with their values; those of secrets are not shown."""
    own = session.runtime.environment
    return {
        name: "[a secret, which the command is not given]" if is_secret_name(name) else value
        for name, value in sorted(session.environment.items())
        if own.get(name) != value and names_variable(command, name)
    }


def _folder_shown(session: Session, verdict: Verdict) -> str | None:
    """Return the real folders that the first part of a command may run in; None where that is the workspace itself."""
    folders = next((part.folders for part in verdict.parts if part.folders), (str(session.cwd),))
    real = dict.fromkeys(os.path.realpath(folder) if os.path.isabs(folder) else "not known" for folder in folders)
    shown = " or ".join(real)
    return shown if shown != os.path.realpath(session.workspace[0]) else None
