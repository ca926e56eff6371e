"""Verdicts on hypothetical calls."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.api.call import Invocation
from handrail.api.verdict import EvaluationContext, RegisteredEvaluator, Verdict
from handrail.errors import PluginError
from handrail.fs.small_files import read_small_text
from handrail.policy.engine import PolicyEngine, evaluate_call
from handrail.text import format_suggestion
from handrail.tools.registry import OwnedTool

if TYPE_CHECKING:
    from handrail.policy.explain import VerdictExplanation
    from handrail.session.runtime import Runtime


# What stands for the private /tmp of a session that there is not: nothing is there.
DRY_RUN_TEMPORARY = Path("/tmp/handrail-box-none/tmp")


class DryRunPolicy:
    """Judges with the rules, evaluators and sandbox of a runtime. What toolsets bring is a session's, and not known here."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._config = runtime.config
        self._seats: dict[str, tuple[RegisteredEvaluator, ...]] = {}
        # Circumstances, with what they are for commands and for tools that name files.
        self._offered: tuple[EvaluationContext, EvaluationContext, EvaluationContext] | None = None

    async def evaluate(self, name: str, args: Mapping[str, Any], judging: EvaluationContext) -> Verdict:
        """Return the verdict on a hypothetical call in a given context; nothing is run."""
        owned, invocation, judging = await self._supposed(name, args, judging)
        return await evaluate_call(
            invocation, seats=self._seats_of(owned), policy=PolicyEngine(self._runtime.rules), judging=judging
        )

    async def explain(self, name: str, args: Mapping[str, Any], judging: EvaluationContext) -> VerdictExplanation:
        """Return the verdict on a call and everything that led to it, including permanent grants; nothing is run."""
        owned, invocation, judging = await self._supposed(name, args, judging)
        judging = replace(judging, read_text=read_small_text)
        policy = PolicyEngine(self._runtime.rules)
        policy.lasting = self._runtime.grants
        from handrail.policy.explain import explain_verdict

        return await explain_verdict(invocation, seats=self._seats_of(owned), policy=policy, judging=judging)

    async def _supposed(
        self, name: str, args: Mapping[str, Any], judging: EvaluationContext
    ) -> tuple[OwnedTool, Invocation, EvaluationContext]:
        """Return a hypothetical call with its tool and the context it would be judged in."""
        if self._config is not self._runtime.config:
            self._config, self._seats, self._offered = self._runtime.config, {}, None
        owned = self._runtime.registry.get(name)
        if owned is None:
            raise PluginError(f"there is no tool {name!r}{format_suggestion(name, self._runtime.registry.names())}")
        invocation = Invocation(owned.tool, args, owned.tool.validate(args), "evaluate")
        if owned.tool.confinable or owned.tool.names_files:
            judging = await self._with_sandbox(judging, confinable=owned.tool.confinable)
        return owned, invocation, judging

    def _seats_of(self, owned: OwnedTool) -> tuple[RegisteredEvaluator, ...]:
        name = owned.tool.name
        if name not in self._seats:
            self._seats[name] = self._runtime.seats_for(owned.tool)
        return self._seats[name]

    async def _with_sandbox(self, judging: EvaluationContext, *, confinable: bool) -> EvaluationContext:
        """Return the context with the sandbox's offer for a command, or its opened folders for a tool that names files.

        Cached for repeated requests with the same context.
        """
        if self._offered is None or self._offered[0] is not judging:
            offer = await self._runtime.offer(judging)
            readable, writable = self._runtime.opened_folders(judging, self._runtime.settings.sandbox)
            opened = replace(judging, readable=readable, writable=writable)
            private = offer is not None and offer.private_tmp
            named = replace(opened, temporary=DRY_RUN_TEMPORARY) if private else opened
            self._offered = judging, replace(opened, sandbox=offer), named
        return self._offered[1] if confinable else self._offered[2]
