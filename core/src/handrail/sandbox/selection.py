"""Selection of the sandbox to use.

It is the first in order that has all it needs, withholds all that it must, and really starts a command.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from handrail.api.sandbox import ALL_ASPECTS
from handrail.config.settings import NO_SANDBOXES, Settings
from handrail.config.validation import validate_table
from handrail.errors import HandrailError
from handrail.sandbox.interface import Sandbox
from handrail.text import format_suggestion
from handrail.workers.host_programs import HostPrograms, find_own_programs

log = logging.getLogger(__name__)

DOCTOR_HINT = "`handrail doctor` says how to get one"


@dataclass(frozen=True, slots=True)
class SandboxChoice:
    """Sandbox that is used, or None.

    `refused` lists those tried before it as (name, reason) pairs.
    """

    sandbox: Sandbox | None
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def why_none(self) -> str:
        """Reason for having no sandbox, on one line."""
        return "; ".join(f"{name}: {why}" for name, why in self.refused) or "no plugin supplies one"


def list_in_order(registered: Mapping[str, type[Sandbox]], settings: Settings) -> Sequence[str]:
    """Return the names of the sandboxes to try, in order."""
    wanted = settings.sandbox.use
    if NO_SANDBOXES in wanted:
        return ()
    return wanted or tuple(registered)


async def choose_sandbox(
    registered: Mapping[str, type[Sandbox]],
    settings: Settings,
    programs: Callable[[], HostPrograms] = find_own_programs,
) -> SandboxChoice:
    """Try the sandboxes in order and return the choice; each is checked by starting the smallest command in it.

    `programs` returns the programs that a sandbox may start; it is called each time.
    """
    if NO_SANDBOXES in settings.sandbox.use:
        return SandboxChoice(None, ((NO_SANDBOXES, 'the configuration wants none (sandbox.use = ["none"])'),))
    refused: list[tuple[str, str]] = []
    for name in list_in_order(registered, settings):
        found = registered.get(name)
        if found is None:
            refused.append((name, f"no plugin supplies it{format_suggestion(name, registered)}"))
            continue
        made = await try_sandbox(found, settings, programs)
        if isinstance(made, Sandbox):
            return SandboxChoice(made, tuple(refused))
        refused.append((name, made))
    return SandboxChoice(None, tuple(refused))


async def try_sandbox(
    found: type[Sandbox], settings: Settings, programs: Callable[[], HostPrograms] = find_own_programs
) -> Sandbox | str:
    """Return the sandbox if it has started a command; otherwise return why it is not used."""
    if (why := find_missing_reason(found)) is not None:
        return why
    made = found(validate_table(found.Config, settings.sandboxes.get(found.name, {}), table=f"sandboxes.{found.name}"))
    made.programs = programs
    return await _check_sandbox(made) or made


def find_missing_reason(sandbox: type[Sandbox]) -> str | None:
    """Return why a sandbox cannot be used here, as far as that is known without starting it, or None."""
    try:
        missing = sandbox.missing()
    # A sandbox is plugin code; its failure must not keep the others from being chosen.
    except Exception as exc:
        log.exception("sandbox %s could not say what it lacks", sandbox.name)
        return f"its check failed ({type(exc).__name__})"
    if missing is not None:
        return missing
    if left := sorted(ALL_ASPECTS - sandbox.confines):
        return f"it does not confine {', '.join(left)}, so nothing may run in it without a question"
    return None


async def _check_sandbox(sandbox: Sandbox) -> str | None:
    try:
        await sandbox.check()
    except HandrailError as exc:
        return f"{exc}; {exc.hint}" if exc.hint else str(exc)
    # Plugin code, as above.
    except Exception as exc:
        log.exception("sandbox %s failed its check", sandbox.name)
        return f"its check failed ({type(exc).__name__})"
    return None
