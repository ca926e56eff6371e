"""Read permission for files below a judged folder: those that all rules would let `read_file` read."""

from __future__ import annotations

from handrail import Decision, Invocation, Tool, ToolContext, Verdict
from handrail.fs import path_resolution

# A person who let the folder be looked at has let what lies in it be looked at; what more speaks against a file still counts.
OUTSIDE = "read_outside"


class ReadPermission:
    """One call's view of what it may show. Asked again for the same path, it answers from memory."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._answers: dict[str, bool] = {}
        # Files of one search lie in the same folders.
        self._seen: path_resolution.PathCache = {}
        self._reader: Tool | None = None

    async def may_read(self, path: str) -> bool:
        """Return True if the file or folder at this real path may be shown without prompting the user again."""
        if path not in self._answers:
            self._answers[path] = await self._judged(path)
        return self._answers[path]

    async def is_open(self, path: str) -> bool:
        """Return True if the file may be read without any prompt."""
        return (await self._verdict(path)).decision is Decision.ALLOW

    async def _judged(self, path: str) -> bool:
        verdict = await self._verdict(path)
        if verdict.decision is Decision.CONFIRM:
            return bool(verdict.reasons) and all(reason.code == OUTSIDE for reason in verdict.reasons)
        return verdict.decision is Decision.ALLOW

    async def _verdict(self, path: str) -> Verdict:
        session, own = self._context.session, self._context.invocation
        if self._reader is None:
            self._reader = await session.listing.find("read_file", nested=True)
        args = {"file_path": path}
        invocation = Invocation(self._reader, args, self._reader.validate(args), own.call_id, own)
        return await session.court.judge(invocation, seen=self._seen)
