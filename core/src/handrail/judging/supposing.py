"""The verdicts on calls that nobody makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.calls.invocation import Invocation
from handrail.errors import PluginError
from handrail.files.small_texts import read_small_text
from handrail.judging.policy import Policy
from handrail.judging.verdicts import Judging, Seat, Verdict, judge
from handrail.tools.registry import Owned
from handrail.words import nearest

if TYPE_CHECKING:
    from handrail.judging.explaining import Explained
    from handrail.runtime import Runtime


# What stands for the private /tmp of a session that there is not: nothing is there.
SUPPOSED_TEMPORARY = Path("/tmp/handrail-box-none/tmp")


class Supposing:
    """Judges with the rules, evaluators and sandbox of a runtime. What toolsets bring is a session's, and not known here."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._config = runtime.config
        self._seats: dict[str, tuple[Seat, ...]] = {}
        # Circumstances, with what they are for commands and for tools that name files.
        self._offered: tuple[Judging, Judging, Judging] | None = None

    async def evaluate(self, name: str, args: Mapping[str, Any], judging: Judging) -> Verdict:
        """What would be decided of a call in other circumstances; nothing is run."""
        owned, invocation, judging = await self._supposed(name, args, judging)
        return await judge(invocation, seats=self._seats_of(owned), policy=Policy(self._runtime.rules), judging=judging)

    async def explain(self, name: str, args: Mapping[str, Any], judging: Judging) -> Explained:
        """The verdict on a call with all that led to it, the grants that hold for always among it; nothing is run."""
        owned, invocation, judging = await self._supposed(name, args, judging)
        judging = replace(judging, read_text=read_small_text)
        policy = Policy(self._runtime.rules)
        policy.lasting = self._runtime.grants
        from handrail.judging.explaining import explain

        return await explain(invocation, seats=self._seats_of(owned), policy=policy, judging=judging)

    async def _supposed(
        self, name: str, args: Mapping[str, Any], judging: Judging
    ) -> tuple[Owned, Invocation, Judging]:
        """A call that is not made, with its tool and the circumstances it would be judged in."""
        if self._config is not self._runtime.config:
            self._config, self._seats, self._offered = self._runtime.config, {}, None
        owned = self._runtime.registry.get(name)
        if owned is None:
            raise PluginError(f"there is no tool {name!r}{nearest(name, self._runtime.registry.names())}")
        invocation = Invocation(owned.tool, args, owned.tool.validate(args), "evaluate")
        if owned.tool.confinable or owned.tool.names_files:
            judging = await self._with_sandbox(judging, confinable=owned.tool.confinable)
        return owned, invocation, judging

    def _seats_of(self, owned: Owned) -> tuple[Seat, ...]:
        name = owned.tool.name
        if name not in self._seats:
            self._seats[name] = self._runtime.seats_for(owned.tool)
        return self._seats[name]

    async def _with_sandbox(self, judging: Judging, *, confinable: bool) -> Judging:
        """Return the circumstances with what the sandbox gives to a command, or opens to a tool that names files; made once for those that
        are asked about again.
        """
        if self._offered is None or self._offered[0] is not judging:
            offer = await self._runtime.offer(judging)
            readable, writable = self._runtime.opened_folders(judging, self._runtime.settings.sandbox)
            opened = replace(judging, readable=readable, writable=writable)
            private = offer is not None and offer.private_tmp
            named = replace(opened, temporary=SUPPOSED_TEMPORARY) if private else opened
            self._offered = judging, replace(opened, sandbox=offer), named
        return self._offered[1] if confinable else self._offered[2]
