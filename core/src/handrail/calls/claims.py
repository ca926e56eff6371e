"""What a call uses while it runs, by the effects its tool declares: who may run beside whom is told by nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final
from urllib.parse import urlsplit

from handrail.calls.invocation import Invocation, paths_in
from handrail.files import paths
from handrail.judging.verdicts import Judging
from handrail.tools.contract import Delete, Effect, Read, Send, Write

# A thing that can be used, from the general to the particular: what is below a place is a part of it. The empty one is everything.
Place = tuple[str, ...]

FILES = frozenset(("file", "folder", "glob", "cwd"))
WILD = frozenset("*?[{")


@dataclass(frozen=True, slots=True)
class Claim:
    """The places that a call looks at, and those that it changes or must have for itself."""

    reads: tuple[Place, ...] = ()
    writes: tuple[Place, ...] = ()

    def conflicts(self, other: Claim) -> bool:
        """Whether the two may not run at the same time."""
        return _meet(self.writes, other.writes) or _meet(self.writes, other.reads) or _meet(self.reads, other.writes)

    @property
    def vague(self) -> bool:
        """Whether nobody knows what it may change."""
        return () in self.writes


NOTHING: Final = Claim()
EVERYTHING: Final = Claim(writes=((),))
# What every call looks at, so that none runs beside one that has everything for itself.
SESSION: Final[Place] = ("session",)


def claim_of(invocation: Invocation, judging: Judging) -> Claim:
    """What a bound call uses. An effect that does not say what it changes may change anything."""
    tool = invocation.tool
    reads: list[Place] = [SESSION]
    writes: list[Place] = []
    if tool.exclusive is not None:
        writes.append(("exclusive", tool.exclusive))
    for effect in tool.effects:
        match effect:
            case Read():
                reads += _read(invocation, effect, judging)
            case Send(what="fetch"):
                reads.append(("network",))
            case Send() if (host := _host(invocation.argument(effect))) is not None:
                writes.append(("network", host))
            case Write(what="file") | Delete(what="file") if invocation.argument(effect) is not None:
                writes += _written(invocation, effect, judging)
            case Write() if tool.exclusive is not None and effect.arg is None:
                writes.append((effect.what,))
            case _:
                return EVERYTHING
    return Claim(tuple(reads), tuple(writes))


def _meet(some: tuple[Place, ...], others: tuple[Place, ...]) -> bool:
    return any(one[: len(other)] == other[: len(one)] for one in some for other in others)


def _read(invocation: Invocation, effect: Effect, judging: Judging) -> Iterator[Place]:
    if effect.what not in FILES:
        yield (effect.what,)
        return
    named = paths_in(invocation.argument(effect))
    if not named:
        yield ("file",)
    for text in named:
        yield _file(_fixed(text) if effect.what == "glob" else text, judging)


def _written(invocation: Invocation, effect: Effect, judging: Judging) -> Iterator[Place]:
    for text in paths_in(invocation.argument(effect)):
        yield _file(text, judging)
        if isinstance(effect, Delete):
            # The link, as well as what it leads to.
            yield _file(text, judging, follow_last=False)


def _file(text: str, judging: Judging, *, follow_last: bool = True) -> Place:
    found = paths.resolve(text, cwd=judging.cwd, home=judging.home, platform=judging.platform, follow_last=follow_last)
    real = paths.privately(found, temporary=judging.temporary, workspace=judging.workspace).real
    # Where names may differ by case alone, only Linux surely tells them apart.
    return ("file", *found.kind(real if judging.platform == "linux" else real.casefold()).parts)


def _fixed(pattern: str) -> str:
    """The folder in front of the first wildcard."""
    parts = PurePath(pattern).parts
    wild = next((at for at, part in enumerate(parts) if WILD & set(part)), None)
    return pattern if wild is None else str(PurePath(*parts[:wild]))


def _host(url: object) -> str | None:
    try:
        return urlsplit(url).hostname if isinstance(url, str) else None
    except ValueError:
        return None
