"""Which sandbox is used here: the first in order that has all it needs, withholds all that it must, and really starts a command."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from handrail.config.settings import NO_SANDBOXES, Settings
from handrail.errors import HandrailError
from handrail.plugins.registering import validated
from handrail.running.programs import HostPrograms, own_programs
from handrail.sandboxing.sandboxes import WHOLE, Sandbox
from handrail.words import nearest

log = logging.getLogger(__name__)

CURE = "`handrail doctor` says how to get one"


@dataclass(frozen=True, slots=True)
class Chosen:
    """The sandbox that is used; None when there is none. `refused`: what was tried before it and why it was not taken, as (name, why)."""

    sandbox: Sandbox | None
    refused: tuple[tuple[str, str], ...] = ()

    @property
    def why_none(self) -> str:
        """Why there is none, in one line."""
        return "; ".join(f"{name}: {why}" for name, why in self.refused) or "no plugin supplies one"


def in_order(registered: Mapping[str, type[Sandbox]], settings: Settings) -> Sequence[str]:
    """The names to be tried."""
    wanted = settings.sandbox.use
    if NO_SANDBOXES in wanted:
        return ()
    return wanted or tuple(registered)


async def choose(
    registered: Mapping[str, type[Sandbox]], settings: Settings, programs: Callable[[], HostPrograms] = own_programs
) -> Chosen:
    """Try one after another; each one's smallest command is started. `programs`: those that may be, asked for each time."""
    if NO_SANDBOXES in settings.sandbox.use:
        return Chosen(None, ((NO_SANDBOXES, 'the configuration wants none (sandbox.use = ["none"])'),))
    refused: list[tuple[str, str]] = []
    for name in in_order(registered, settings):
        found = registered.get(name)
        if found is None:
            refused.append((name, f"no plugin supplies it{nearest(name, registered)}"))
            continue
        made = await tried(found, settings, programs)
        if isinstance(made, Sandbox):
            return Chosen(made, tuple(refused))
        refused.append((name, made))
    return Chosen(None, tuple(refused))


async def tried(
    found: type[Sandbox], settings: Settings, programs: Callable[[], HostPrograms] = own_programs
) -> Sandbox | str:
    """The sandbox, which has started a command; else why it is not used."""
    if (why := lacks(found)) is not None:
        return why
    made = found(validated(found.Config, settings.sandboxes.get(found.name, {}), table=f"sandboxes.{found.name}"))
    made.programs = programs
    return await _check(made) or made


def lacks(sandbox: type[Sandbox]) -> str | None:
    """What keeps a sandbox from being used here, as far as that can be told without starting it."""
    try:
        missing = sandbox.missing()
    # A sandbox is plugin code; its failure must not keep the others from being chosen.
    except Exception as exc:
        log.exception("sandbox %s could not say what it lacks", sandbox.name)
        return f"its check failed ({type(exc).__name__})"
    if missing is not None:
        return missing
    if left := sorted(WHOLE - sandbox.confines):
        return f"it does not confine {', '.join(left)}, so nothing may run in it without a question"
    return None


async def _check(sandbox: Sandbox) -> str | None:
    try:
        await sandbox.check()
    except HandrailError as exc:
        return f"{exc}; {exc.hint}" if exc.hint else str(exc)
    # Plugin code, as above.
    except Exception as exc:
        log.exception("sandbox %s failed its check", sandbox.name)
        return f"its check failed ({type(exc).__name__})"
    return None
