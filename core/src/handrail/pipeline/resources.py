"""Resources that a call uses, derived only from its tool's declared effects; they decide which calls may overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final
from urllib.parse import urlsplit

from handrail.api.call import Invocation, list_argument_paths
from handrail.api.tool import Delete, Effect, Read, Send, Write
from handrail.api.verdict import EvaluationContext
from handrail.fs import path_resolution

# A thing that can be used, from the general to the particular: what is below a place is a part of it. The empty one is everything.
ResourcePath = tuple[str, ...]

PATH_KINDS = frozenset(("file", "folder", "glob", "cwd"))
GLOB_CHARS = frozenset("*?[{")


@dataclass(frozen=True, slots=True)
class ResourceClaim:
    """The places that a call looks at, and those that it changes or must have for itself."""

    reads: tuple[ResourcePath, ...] = ()
    writes: tuple[ResourcePath, ...] = ()

    def conflicts(self, other: ResourceClaim) -> bool:
        """Return True if the two must not run at the same time."""
        return (
            _is_overlapping(self.writes, other.writes)
            or _is_overlapping(self.writes, other.reads)
            or _is_overlapping(self.reads, other.writes)
        )

    @property
    def vague(self) -> bool:
        """True if it is unknown what the call may change."""
        return () in self.writes


NO_CLAIM: Final = ResourceClaim()
FULL_CLAIM: Final = ResourceClaim(writes=((),))
# What every call looks at, so that none runs beside one that has everything for itself.
SESSION_RESOURCE: Final[ResourcePath] = ("session",)


def build_claim(invocation: Invocation, judging: EvaluationContext) -> ResourceClaim:
    """Return the resources a bound call uses; an effect that does not say what it changes claims everything."""
    tool = invocation.tool
    reads: list[ResourcePath] = [SESSION_RESOURCE]
    writes: list[ResourcePath] = []
    if tool.exclusive is not None:
        writes.append(("exclusive", tool.exclusive))
    for effect in tool.effects:
        match effect:
            case Read():
                reads += _iter_read_paths(invocation, effect, judging)
            case Send(what="fetch"):
                reads.append(("network",))
            case Send() if (host := _parse_host(invocation.argument(effect))) is not None:
                writes.append(("network", host))
            case Write(what="file") | Delete(what="file") if invocation.argument(effect) is not None:
                writes += _iter_written_paths(invocation, effect, judging)
            case Write() if tool.exclusive is not None and effect.arg is None:
                writes.append((effect.what,))
            case _:
                return FULL_CLAIM
    return ResourceClaim(tuple(reads), tuple(writes))


def _is_overlapping(some: tuple[ResourcePath, ...], others: tuple[ResourcePath, ...]) -> bool:
    return any(one[: len(other)] == other[: len(one)] for one in some for other in others)


def _iter_read_paths(invocation: Invocation, effect: Effect, judging: EvaluationContext) -> Iterator[ResourcePath]:
    if effect.what not in PATH_KINDS:
        yield (effect.what,)
        return
    named = list_argument_paths(invocation.argument(effect))
    if not named:
        yield ("file",)
    for text in named:
        yield _resolve_file(_fixed_prefix(text) if effect.what == "glob" else text, judging)


def _iter_written_paths(invocation: Invocation, effect: Effect, judging: EvaluationContext) -> Iterator[ResourcePath]:
    for text in list_argument_paths(invocation.argument(effect)):
        yield _resolve_file(text, judging)
        if isinstance(effect, Delete):
            # The link, as well as what it leads to.
            yield _resolve_file(text, judging, follow_last=False)


def _resolve_file(text: str, judging: EvaluationContext, *, follow_last: bool = True) -> ResourcePath:
    found = path_resolution.resolve_path(
        text, cwd=judging.cwd, home=judging.home, platform=judging.platform, follow_last=follow_last
    )
    real = path_resolution.map_to_private_tmp(found, temporary=judging.temporary, workspace=judging.workspace).real
    # Where names may differ by case alone, only Linux surely tells them apart.
    return ("file", *found.kind(real if judging.platform == "linux" else real.casefold()).parts)


def _fixed_prefix(pattern: str) -> str:
    """Return the folder that precedes the first wildcard."""
    parts = PurePath(pattern).parts
    wild = next((at for at, part in enumerate(parts) if GLOB_CHARS & set(part)), None)
    return pattern if wild is None else str(PurePath(*parts[:wild]))


def _parse_host(url: object) -> str | None:
    try:
        return urlsplit(url).hostname if isinstance(url, str) else None
    except ValueError:
        return None
