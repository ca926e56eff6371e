"""What one session takes in from third parties: which results are theirs, and what is remembered of them for judging later calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from handrail.calls.invocation import Invocation, paths_in
from handrail.files import paths
from handrail.judging.verdicts import Judging, Verdict
from handrail.records.history import BULKY, History
from handrail.results.texts import texts_in
from handrail.results.values import Source, ToolResult
from handrail.tools.contract import Read, Run, Send, Tool, Write
from handrail.untrusted.taint import KNOWN, REMEMBERED, SOURCES, Own, Remembered, Untrusted, fold, names_address, run_by

# What a computer tells of itself, and a session of its own state. Everything else that a tool looks at was written by somebody.
OURS = frozenset(
    ("session", "artifact", "history", "todos", "time", "system", "monitors", "processes", "settings", "memory")
)
FILES = frozenset(("file", "folder", "glob"))
# Where a tool works is no text of anybody's.
PLACES = FILES | {"cwd"}
WORDS: Mapping[str, str] = {
    "screen": "the screen",
    "tree": "the screen",
    "windows": "the screen",
    "clipboard": "the clipboard",
}
NETWORK = "the network"
OUTSIDE = "a file outside the workspace"
DOWNLOAD = "a download"
# Keys of every result that hold no tool's text.
FRAME = frozenset((*BULKY, "status", "duration_ms", "voice_message", "code", "data_b64"))
DOWNLOADS = 1_000
# What is remembered of the text of one result, in characters.
TAKEN = 102_400
DEPENDS: Final = "depends"
HELD: Final = "held"


class Intake:
    """The memory of one session. `seen` is None until a third party's text came. `held` says whose text an artifact is."""

    def __init__(self, history: History, held: Callable[[str], Source | None]) -> None:
        self.seen: Untrusted | None = None
        # Tools whose results are never a third party's, as far as they have been called.
        self.own: set[str] = set()
        self._history = history
        self._held = held
        self._kinds: dict[str, str | None] = {}
        self._noted = 0
        self._foreign: set[str] = set()

    def origin(self, invocation: Invocation, verdict: Verdict | None, judging: Judging) -> str | None:
        """Which third party the result of a call may speak for, in words; None when it is the session's own."""
        tool = invocation.tool
        try:
            kind = self._kinds[tool.name]
        except KeyError:
            kind = self._kinds[tool.name] = _kind(tool)
            if kind is None:
                self.own.add(tool.name)
        if kind == HELD:
            source = self.held_by(invocation)
            return source.origin if source is not None else None
        return self._of_places(invocation, verdict, judging) if kind == DEPENDS else kind

    def held_by(self, invocation: Invocation) -> Source | None:
        """Whose text the artifact is that a call reads; None for one that reads none, or one that is Handrail's own."""
        read = invocation.tool.reads_artifact
        return None if read is None else self._held(str(invocation.argument(read)))

    def _of_places(self, invocation: Invocation, verdict: Verdict | None, judging: Judging) -> str | None:
        """The same for a call that reads files or runs commands: by the places it touches."""
        downloads = self.seen.downloads if self.seen is not None else frozenset[str]()
        read = list(_files_read(invocation, judging))
        for part in verdict.parts if verdict is not None else ():
            if any(touch.kind == "network" for touch in part.touches) or (not part.touches and names_address(part)):
                return NETWORK
            read += [_real(touch.what, judging) for touch in part.touches if touch.kind == "read" and touch.what]
            if downloads:
                read += run_by(part, judging)
        if not downloads.isdisjoint(read):
            return DOWNLOAD
        return None if all(paths.inside(place, judging.workspace) for place in read) else OUTSIDE

    def take(
        self, invocation: Invocation, verdict: Verdict | None, result: ToolResult, origin: str, judging: Judging
    ) -> None:
        """Remember a third party's text, and what the session had of its own before."""
        before = self.seen or Untrusted()
        seq = before.sources[-1].seq + 1 if before.sources else 1
        own = (*before.own, *self._own_since(invocation, seq))
        text = fold("\n".join(texts_in(result, leave_out=FRAME))[:TAKEN])
        source = Remembered(origin, invocation.tool.name, invocation.call_id, seq, text)
        downloads = before.downloads
        if origin == NETWORK:
            downloads |= frozenset(_downloaded(invocation, verdict, judging))
        self.seen = replace(
            before,
            sources=_newest((*before.sources, source), REMEMBERED)[-SOURCES:],
            own=_newest(own, KNOWN),
            downloads=downloads if len(downloads) <= DOWNLOADS else before.downloads,
        )
        self._foreign.add(invocation.call_id)

    def vouched(self, invocation: Invocation) -> None:
        """A person has said yes to this call: what it says is theirs from now on, and a page's links are once one of them was followed."""
        if self.seen is not None:
            own = Own(0, fold("\n".join(texts_in(invocation.args))))
            self.seen = replace(
                self.seen,
                own=_newest((*self.seen.own, own), KNOWN),
                followed=self.seen.followed | self.seen.linked_from(invocation),
            )

    def _own_since(self, invocation: Invocation, seq: int) -> Iterator[Own]:
        """The calls since the last time, and the arguments of this one."""
        new = min(self._history.total - self._noted, len(self._history.last()))
        self._noted = self._history.total
        for record in self._history.last(new):
            own = [record.call.args] if record.call.call_id in self._foreign else [record.call.args, record.result]
            yield Own(seq, fold("\n".join(texts_in(own, leave_out=FRAME))[:TAKEN]))
        self._foreign.clear()
        yield Own(seq, fold("\n".join(texts_in(invocation.args))[:TAKEN]))


def _kind(tool: Tool) -> str | None:
    """The third party that every result of a tool speaks for; `DEPENDS` when that is the call's affair, None when there is never one."""
    if tool.trusted:
        return None
    if tool.layer == "mcp" or tool.server:
        return f"the server {tool.server}" if tool.server else "another server"
    if tool.layer == "web" or any(isinstance(effect, Send) for effect in tool.effects):
        return NETWORK
    if tool.reads_artifact is not None:
        return HELD
    read = [effect.what for effect in tool.effects if isinstance(effect, Read)]
    looked_at = [what for what in read if what not in PLACES | OURS]
    if looked_at:
        return WORDS.get(looked_at[0], looked_at[0])
    depends = any(isinstance(effect, Read | Run) and effect.what not in OURS for effect in tool.effects)
    return DEPENDS if depends else None


def _files_read(invocation: Invocation, judging: Judging) -> Iterator[str]:
    for effect in invocation.tool.effects:
        if isinstance(effect, Read) and effect.what in FILES:
            for text in paths_in(invocation.argument(effect)):
                yield _real(text, judging)


def _downloaded(invocation: Invocation, verdict: Verdict | None, judging: Judging) -> Iterator[str]:
    """The files that a call which reached the network has written."""
    for part in verdict.parts if verdict is not None else ():
        yield from (_real(touch.what, judging) for touch in part.touches if touch.kind == "write" and touch.what)
    for effect in invocation.tool.effects:
        if isinstance(effect, Write) and effect.what in FILES:
            yield from (_real(text, judging) for text in paths_in(invocation.argument(effect)))


def _real(text: str, judging: Judging) -> str:
    return paths.resolve(text, cwd=judging.cwd, home=judging.home, platform=judging.platform).real


def _newest(texts: tuple[Any, ...], most: int) -> tuple[Any, ...]:
    """The last of the texts, so many characters in all; the oldest go first."""
    size = 0
    for index in range(len(texts) - 1, -1, -1):
        size += len(texts[index].text)
        if size > most:
            return texts[index + 1 :]
    return texts
