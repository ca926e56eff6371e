"""Words of a command that a symlink resolves outside the workspace, for the prompted user, who sees only the words."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import PurePath

from handrail import EvaluationContext, Reason, SubCommand
from handrail.fs import path_resolution

LEADS_OUT = "leads_out"
MOST_LINKS = 3
# Characters that set a path apart from an option or a field that it is the value of: `--file=x`, `@x`, `f=@x`, `host:x`.
PATH_SEPARATORS = re.compile(r"[=@:,]|^-[A-Za-z]")


def find_link_reasons(
    parts: Iterable[SubCommand], judging: EvaluationContext, told: Iterable[Reason]
) -> tuple[Reason, ...]:
    """Return a reason for each path in the workspace that leads out of it, at most `MOST_LINKS`, without those that `told` names."""
    texts = [reason.text for reason in told]
    found = dict.fromkeys(
        Reason(LEADS_OUT, f"{name!r} leads to {real!r}", part.span)
        for part in parts
        for name, real in _find_leading_out(part, judging)
        if not any(real in text for text in texts)
    )
    return tuple(islice(found, MOST_LINKS))


def _find_leading_out(part: SubCommand, judging: EvaluationContext) -> Iterator[tuple[str, str]]:
    for name in dict.fromkeys(name for word in part.argv for name in _iter_possible_paths(word)):
        for folder in filter(None, part.folders):
            found = path_resolution.resolve_path(name, cwd=PurePath(folder), home=judging.home, platform="linux")
            if found.real == found.written or not os.path.lexists(found.written):
                continue
            if _is_within(found.written, judging.workspace) and not _is_within(found.real, judging.workspace):
                yield name, found.real


def _iter_possible_paths(word: str) -> Iterator[str]:
    """Yield the texts in a word that may be paths: the word itself, and the text after an option or a separator."""
    yield word
    for sign in PATH_SEPARATORS.finditer(word):
        yield word[sign.end() :]


def _is_within(place: str, roots: Sequence[PurePath]) -> bool:
    return any(PurePath(place).is_relative_to(root) for root in roots)
