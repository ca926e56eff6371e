"""Provenance of content that a session receives from third parties.

Determines which results are theirs, and what is remembered of them to judge later calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from handrail.api.call import Invocation, list_argument_paths
from handrail.api.result import TextSource, ToolResult
from handrail.api.tool import Read, Run, Send, Tool, Write
from handrail.api.verdict import EvaluationContext, Verdict
from handrail.audit.history import BULKY_KEYS, CallHistory
from handrail.fs import path_resolution
from handrail.json_types import iter_texts
from handrail.sanitize.taint import (
    MAX_KNOWN_CHARS,
    MAX_REMEMBERED_CHARS,
    MAX_SOURCES,
    OwnText,
    RememberedText,
    UntrustedSources,
    fold_text,
    is_address_named,
    iter_run_files,
)

# What a computer tells of itself, and a session of its own state. Everything else that a tool looks at was written by somebody.
OWN_KINDS = frozenset(
    ("session", "artifact", "history", "todos", "time", "system", "monitors", "processes", "settings", "memory")
)
READ_FILE_KINDS = frozenset(("file", "folder", "glob"))
# Where a tool works is no text of anybody's.
PLACE_KINDS = READ_FILE_KINDS | {"cwd"}
KIND_DESCRIPTIONS: Mapping[str, str] = {
    "screen": "the screen",
    "tree": "the screen",
    "windows": "the screen",
    "clipboard": "the clipboard",
}
NETWORK_ORIGIN = "the network"
OUTSIDE_ORIGIN = "a file outside the workspace"
DOWNLOAD_ORIGIN = "a download"
# Keys of every result that hold no tool's text.
FRAME_KEYS = frozenset((*BULKY_KEYS, "status", "duration_ms", "voice_message", "code", "data_b64"))
MAX_DOWNLOADS = 1_000
# What is remembered of the text of one result, in characters.
MAX_TAKEN_CHARS = 102_400
DEPENDS_ON_CALL: Final = "depends"
HELD_BY_ARTIFACT: Final = "held"


class ProvenanceTracker:
    """Memory of one session's third-party content.

    `seen` is None until there is some. `held` returns the source of an artifact's text.
    """

    def __init__(self, history: CallHistory, held: Callable[[str], TextSource | None]) -> None:
        self.seen: UntrustedSources | None = None
        # Tools whose results are never a third party's, as far as they have been called.
        self.own: set[str] = set()
        self._history = history
        self._held = held
        self._kinds: dict[str, str | None] = {}
        self._noted = 0
        self._foreign: set[str] = set()

    def origin(self, invocation: Invocation, verdict: Verdict | None, judging: EvaluationContext) -> str | None:
        """Return a description of the third party behind the result of a call, or None for the session's own."""
        tool = invocation.tool
        try:
            kind = self._kinds[tool.name]
        except KeyError:
            kind = self._kinds[tool.name] = _classify_source(tool)
            if kind is None:
                self.own.add(tool.name)
        if kind == HELD_BY_ARTIFACT:
            source = self.held_by(invocation)
            return source.origin if source is not None else None
        return self._of_places(invocation, verdict, judging) if kind == DEPENDS_ON_CALL else kind

    def held_by(self, invocation: Invocation) -> TextSource | None:
        """Return the source of the artifact that a call reads; None if there is none, or it is Handrail's own."""
        read = invocation.tool.reads_artifact
        return None if read is None else self._held(str(invocation.argument(read)))

    def _of_places(self, invocation: Invocation, verdict: Verdict | None, judging: EvaluationContext) -> str | None:
        """Return the origin for a call that reads files or runs commands, based on the paths and hosts it accesses."""
        downloads = self.seen.downloads if self.seen is not None else frozenset[str]()
        read = list(_iter_read_files(invocation, judging))
        for part in verdict.parts if verdict is not None else ():
            if any(touch.kind == "network" for touch in part.touches) or (not part.touches and is_address_named(part)):
                return NETWORK_ORIGIN
            read += [
                _resolve_real_path(touch.what, judging) for touch in part.touches if touch.kind == "read" and touch.what
            ]
            if downloads:
                read += iter_run_files(part, judging)
        if not downloads.isdisjoint(read):
            return DOWNLOAD_ORIGIN
        return (
            None if all(path_resolution.is_inside_roots(place, judging.workspace) for place in read) else OUTSIDE_ORIGIN
        )

    def take(
        self,
        invocation: Invocation,
        verdict: Verdict | None,
        result: ToolResult,
        origin: str,
        judging: EvaluationContext,
    ) -> None:
        """Remember a third party's text, and the texts that the session had before."""
        before = self.seen or UntrustedSources()
        seq = before.sources[-1].seq + 1 if before.sources else 1
        own = (*before.own, *self._own_since(invocation, seq))
        text = fold_text("\n".join(iter_texts(result, leave_out=FRAME_KEYS))[:MAX_TAKEN_CHARS])
        source = RememberedText(origin, invocation.tool.name, invocation.call_id, seq, text)
        downloads = before.downloads
        if origin == NETWORK_ORIGIN:
            downloads |= frozenset(_iter_downloaded_files(invocation, verdict, judging))
        self.seen = replace(
            before,
            sources=_keep_newest((*before.sources, source), MAX_REMEMBERED_CHARS)[-MAX_SOURCES:],
            own=_keep_newest(own, MAX_KNOWN_CHARS),
            downloads=downloads if len(downloads) <= MAX_DOWNLOADS else before.downloads,
        )
        self._foreign.add(invocation.call_id)

    def vouched(self, invocation: Invocation) -> None:
        """Record the user's approval of a call.

        The text of its arguments counts as the user's own from now on, and if the call follows a link of a page, so do
        the page's other links.
        """
        if self.seen is not None:
            own = OwnText(0, fold_text("\n".join(iter_texts(invocation.args))))
            self.seen = replace(
                self.seen,
                own=_keep_newest((*self.seen.own, own), MAX_KNOWN_CHARS),
                followed=self.seen.followed | self.seen.linked_from(invocation),
            )

    def _own_since(self, invocation: Invocation, seq: int) -> Iterator[OwnText]:
        """Yield the texts of the calls since the last time, and the arguments of this one."""
        new = min(self._history.total - self._noted, len(self._history.last()))
        self._noted = self._history.total
        for record in self._history.last(new):
            own = [record.call.args] if record.call.call_id in self._foreign else [record.call.args, record.result]
            yield OwnText(seq, fold_text("\n".join(iter_texts(own, leave_out=FRAME_KEYS))[:MAX_TAKEN_CHARS]))
        self._foreign.clear()
        yield OwnText(seq, fold_text("\n".join(iter_texts(invocation.args))[:MAX_TAKEN_CHARS]))


def _classify_source(tool: Tool) -> str | None:
    """Return the third party behind every result of a tool.

    Returns `DEPENDS_ON_CALL` or `HELD_BY_ARTIFACT` if that depends on the call or the artifact it reads, None if there
    is never one.
    """
    if tool.trusted:
        return None
    if tool.layer == "mcp" or tool.server:
        return f"the server {tool.server}" if tool.server else "another server"
    if tool.layer == "web" or any(isinstance(effect, Send) for effect in tool.effects):
        return NETWORK_ORIGIN
    if tool.reads_artifact is not None:
        return HELD_BY_ARTIFACT
    read = [effect.what for effect in tool.effects if isinstance(effect, Read)]
    looked_at = [what for what in read if what not in PLACE_KINDS | OWN_KINDS]
    if looked_at:
        return KIND_DESCRIPTIONS.get(looked_at[0], looked_at[0])
    depends = any(isinstance(effect, Read | Run) and effect.what not in OWN_KINDS for effect in tool.effects)
    return DEPENDS_ON_CALL if depends else None


def _iter_read_files(invocation: Invocation, judging: EvaluationContext) -> Iterator[str]:
    for effect in invocation.tool.effects:
        if isinstance(effect, Read) and effect.what in READ_FILE_KINDS:
            for text in list_argument_paths(invocation.argument(effect)):
                yield _resolve_real_path(text, judging)


def _iter_downloaded_files(
    invocation: Invocation, verdict: Verdict | None, judging: EvaluationContext
) -> Iterator[str]:
    """Yield the files written by a call that accessed the network."""
    for part in verdict.parts if verdict is not None else ():
        yield from (
            _resolve_real_path(touch.what, judging) for touch in part.touches if touch.kind == "write" and touch.what
        )
    for effect in invocation.tool.effects:
        if isinstance(effect, Write) and effect.what in READ_FILE_KINDS:
            yield from (_resolve_real_path(text, judging) for text in list_argument_paths(invocation.argument(effect)))


def _resolve_real_path(text: str, judging: EvaluationContext) -> str:
    return path_resolution.resolve_path(text, cwd=judging.cwd, home=judging.home, platform=judging.platform).real


def _keep_newest(texts: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    """Return the last of the texts, at most `most` characters in total; the oldest are dropped first."""
    size = 0
    for index in range(len(texts) - 1, -1, -1):
        size += len(texts[index].text)
        if size > most:
            return texts[index + 1 :]
    return texts
