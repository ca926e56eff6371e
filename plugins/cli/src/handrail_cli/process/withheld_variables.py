"""Variables of a session that a command on the host is not given: those by which a sandboxed command could lead programs astray."""

from __future__ import annotations

from collections.abc import Mapping

from handrail.pipeline.command_details import is_variable_used
from handrail.redaction import is_secret_name
from handrail_cli.shell.bash.variable_rules import is_tame_variable


def find_withheld_variables(
    session: Mapping[str, str], host: Mapping[str, str], *, command: str, gives_tame: bool = False
) -> frozenset[str]:
    """Return the session's variables that a command on the host is not given, unless its text uses them (`$NAME`).

    All that are not the user's own (`host`): any sandboxed command may have set them, and programs run, load and connect to what more
    variables say than a list could hold (`HGMERGE`, `GNUPGHOME`, `VAULT_ADDR`), or work on what they say (`RAILS_ENV`). A question shows the
    values of those that the text uses, save secrets, which are not given either. `gives_tame`: those that are known to lead nowhere are given.
    """
    return frozenset(
        name
        for name, value in session.items()
        if host.get(name) != value
        and not (gives_tame and is_tame_variable(name, value))
        and (is_secret_name(name) or not is_variable_used(command, name))
    )
