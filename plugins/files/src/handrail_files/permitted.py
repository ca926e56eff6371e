"""Which files below a judged folder may be read: those that `read_file` would be let read, by every rule there is."""

from __future__ import annotations

from pathlib import Path

from handrail import Decision, Invocation, ToolContext, Verdict

# A person who let the folder be looked at has let what lies in it be looked at; what more speaks against a file still counts.
OUTSIDE = "read_outside"


class Permitted:
    """One call's view of what it may show. Asked again for the same path, it answers from memory."""

    def __init__(self, context: ToolContext) -> None:
        self._context = context
        self._answers: dict[Path, bool] = {}

    async def may_read(self, path: Path) -> bool:
        """Whether the file or folder at this real path may be shown without a further question."""
        if path not in self._answers:
            self._answers[path] = await self._judged(path)
        return self._answers[path]

    async def is_open(self, path: Path) -> bool:
        """Whether anybody may read the file without a question at all."""
        return (await self._verdict(path)).decision is Decision.ALLOW

    async def _judged(self, path: Path) -> bool:
        verdict = await self._verdict(path)
        if verdict.decision is Decision.CONFIRM:
            return bool(verdict.reasons) and all(reason.code == OUTSIDE for reason in verdict.reasons)
        return verdict.decision is Decision.ALLOW

    async def _verdict(self, path: Path) -> Verdict:
        session, own = self._context.session, self._context.invocation
        tool = await session.callable_tool("read_file", nested=True)
        args = {"file_path": str(path)}
        return await session.judge(Invocation(tool, args, tool.validate(args), own.call_id, own))
