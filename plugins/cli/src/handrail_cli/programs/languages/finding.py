"""What was found in a script."""

from __future__ import annotations

from dataclasses import dataclass

from handrail_cli.programs.values import Kind, Need, Role


@dataclass(frozen=True, slots=True)
class Finding:
    """What a script does. `why` goes on after "the script …"; `doubtful`: it was not understood, and nothing may be concluded."""

    kind: Kind = "reads"
    why: str = "does something that is not known to be harmless"
    code: str | None = None
    named: tuple[tuple[Role, str], ...] = ()
    needs: frozenset[Need] = frozenset()
    doubtful: bool = False


READS = Finding()
UNCLEAR = Finding(doubtful=True)


def dangerous(why: str, code: str = "runs_program") -> Finding:
    """A script that a person has to see."""
    return Finding("dangerous", why, code)
