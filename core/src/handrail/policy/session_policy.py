"""Judgment of one session's calls: the context, the evaluators, and the rules and grants that apply."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

from handrail.api.desktop import FocusService
from handrail.api.secret_refs import normalize_secret_name
from handrail.api.verdict import EvaluationContext, Mode, RegisteredEvaluator, Verdict
from handrail.errors import HandrailError, NotFound
from handrail.fs.path_resolution import find_link_target
from handrail.fs.small_files import read_small_text
from handrail.policy import path_rules
from handrail.policy.engine import PolicyEngine, collect_opinions, decide_verdict
from handrail.policy.grants import Grant
from handrail.policy.rule_lint import LintContext, find_problems

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from handrail.api.approval import Confirmer
    from handrail.api.call import GrantOption, Invocation
    from handrail.api.tool import Tool
    from handrail.api.verdict import KeyboardTarget, SandboxOffer
    from handrail.config.rule_settings import RuleSettings
    from handrail.config.settings import SandboxSettings, Settings
    from handrail.fs.path_resolution import PathCache
    from handrail.policy.grant_store import GrantStore
    from handrail.policy.rules import Rule, RuleSet
    from handrail.sanitize.provenance import ProvenanceTracker
    from handrail.undo.call_changes import CallChanges

log = logging.getLogger(__name__)


class PolicyRuntime(LintContext, Protocol):
    """Runtime of a session as the judgment of calls uses it."""

    @property
    def judging(self) -> EvaluationContext: ...
    @property
    def environment(self) -> Mapping[str, str]: ...
    @property
    def rules(self) -> RuleSet: ...
    @property
    def grants(self) -> tuple[Grant, ...]: ...
    @property
    def book(self) -> GrantStore: ...
    def read_grants(self) -> None: ...
    def seats_for(self, tool: Tool) -> tuple[RegisteredEvaluator, ...]: ...
    async def offer(self, judging: EvaluationContext, settings: Settings | None = None) -> SandboxOffer | None: ...
    def opened_folders(
        self, judging: EvaluationContext, wanted: SandboxSettings
    ) -> tuple[tuple[Path, ...], tuple[Path, ...]]: ...


class SecretFinder(Protocol):
    """Lookup of secrets by name."""

    async def find(self, name: str) -> str | None:
        """Return the value of a secret, None for an unknown name."""
        ...


class PolicySession(Protocol):
    """Session as the judgment of its calls uses it."""

    @property
    def runtime(self) -> PolicyRuntime: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def confirmer(self) -> Confirmer | None: ...
    @property
    def mode(self) -> Mode: ...
    @property
    def cwd(self) -> Path: ...
    @property
    def environment(self) -> Mapping[str, str]: ...
    @property
    def workspace(self) -> tuple[Path, ...]: ...
    @property
    def temporary(self) -> Path | None: ...
    @property
    def began(self) -> float: ...
    @property
    def intake(self) -> ProvenanceTracker: ...
    @property
    def changes(self) -> CallChanges: ...
    @property
    def secrets(self) -> SecretFinder: ...
    async def open_temporary(self) -> None: ...
    async def service(self, capability: str) -> Any: ...


class SessionPolicy:
    """Judges a session's calls. `judging` are the circumstances of now: whoever changes one of them says `judge_anew`."""

    def __init__(self, session: PolicySession) -> None:
        self._session = session
        self._runtime = session.runtime
        self.policy = PolicyEngine(self._runtime.rules)
        self.policy.lasting = self._runtime.grants
        self._remembered: frozenset[str] = frozenset()
        # How often each grant has let a call pass.
        self._uses: Counter[str] = Counter()
        self._seats: dict[str, tuple[RegisteredEvaluator, ...]] = {}
        # Whether a call was judged that may name files: then the folders that are opened to calls are known.
        self._names_files = False
        self.judge_anew()

    def judge_anew(self) -> None:
        """Update the context for the calls that follow."""
        self.judging = self._circumstances()
        self._confinable: EvaluationContext | None = None
        self._shared: tuple[EvaluationContext, EvaluationContext] | None = None

    def seat_anew(self) -> None:
        """Other tools or settings are there: who judges a tool is asked again."""
        self._seats.clear()

    def _circumstances(self) -> EvaluationContext:
        session, confirmer = self._session, self._session.confirmer
        judging = replace(
            self._runtime.judging,
            cwd=session.cwd,
            environment={**self._runtime.environment, **session.environment},
            workspace=session.workspace,
            mode=session.mode,
            private_desktop=session.settings.desktop != "current",
            remembered=self._remembered,
            allow_private=session.settings.network.allow_private,
            interactive=confirmer is not None and session.settings.mode is not Mode.HEADLESS,
            at_terminal=getattr(confirmer, "at_terminal", False) is True,
            temporary=session.temporary,
            untrusted=session.intake.seen,
            undoable=session.changes.undoable,
            began=session.began,
            read_text=read_small_text,
            secret_sites={normalize_secret_name(name): each for name, each in session.settings.secrets.sites.items()},
            find_secret=session.secrets.find,
        )
        if self._names_files:
            readable, writable = self._runtime.opened_folders(judging, session.settings.sandbox)
            judging = replace(judging, readable=readable, writable=writable)
        granted = (grant for grant in self.policy.all_grants if grant.holds_in(judging))
        return replace(judging, granted_hosts=tuple(dict.fromkeys(host for each in granted for host in each.hosts)))

    async def judge(self, invocation: Invocation, *, seen: PathCache | None = None) -> Verdict:
        """Return the verdict on a bound call.

        Repeated judgments of one call inspect each path only once if they pass the same dictionary as `seen`.
        """
        seats = self._seats_of(invocation.tool)
        judging = await self._circumstances_of(invocation, seats)
        if seen is not None:
            judging = self._together(judging, seen)
        heard = await collect_opinions(invocation, seats=seats, judging=judging)
        verdict = decide_verdict(invocation, heard, policy=self.policy, judging=judging)
        if verdict.grants:
            self._uses.update(verdict.grants)
        return verdict

    async def suppose(self, invocation: Invocation, *, mode: Mode, rules: Sequence[Rule] = ()) -> Verdict:
        """Return the verdict that a call would get in another mode, or with more rules; no grant counts as used by it."""
        seats = self._seats_of(invocation.tool)
        judging = replace(await self._circumstances_of(invocation, seats), mode=mode)
        policy = PolicyEngine((*self.policy.rules.ranked, *rules), self.policy.grants)
        policy.lasting = self.policy.lasting
        heard = await collect_opinions(invocation, seats=seats, judging=judging)
        return decide_verdict(invocation, heard, policy=policy, judging=judging)

    def takes_rules(self, settings: Sequence[RuleSettings]) -> bool:
        """Return True if a configuration with these rules could be used."""
        return all(problem.severity != "error" for problem in find_problems(settings, self._runtime))

    def _seats_of(self, tool: Tool) -> tuple[RegisteredEvaluator, ...]:
        seats = self._seats.get(tool.name)
        if seats is None:
            seats = self._seats[tool.name] = self._runtime.seats_for(tool)
        return seats

    async def _circumstances_of(
        self, invocation: Invocation, seats: Sequence[RegisteredEvaluator]
    ) -> EvaluationContext:
        """Return the circumstances of one call: with what its tool may use beside what all calls know."""
        tool = invocation.tool
        if tool.names_files or tool.confinable:
            await self._find_folders(invocation)
        judging = await self._with_sandbox() if tool.confinable else self.judging
        if tool.effects:
            # Looking along the roots' paths takes a quarter of the time of a call that touches nothing.
            judging = _drop_moved_roots(judging)
        if (tool.inputs or tool.feeds) and (focus := await self._focus(invocation)) is not None:
            judged = any(seat.evaluator.reads_commands for seat in seats)
            judging = replace(judging, focus=replace(focus, judged=judged))
        return judging

    async def _find_folders(self, invocation: Invocation) -> None:
        """Find the folders that are opened to a call, and make the session's private /tmp where the call names a file there."""
        if not self._names_files:
            self._names_files = True
            self.judge_anew()
        if self.judging.temporary is None and path_rules.has_temporary_path(invocation, self.judging):
            await self._session.open_temporary()

    def _together(self, judging: EvaluationContext, seen: PathCache) -> EvaluationContext:
        """Return the context with the cache of inspected paths; reused for the same context and cache."""
        if self._shared is None or self._shared[0] is not judging or self._shared[1].seen is not seen:
            self._shared = judging, replace(judging, seen=seen)
        return self._shared[1]

    async def _with_sandbox(self) -> EvaluationContext:
        """Return the context of a call that may run in the sandbox, with the sandbox's offer if there is one."""
        if self._confinable is None:
            offer = await self._runtime.offer(self.judging, self._session.settings)
            self._confinable = replace(self.judging, sandbox=offer)
        return self._confinable

    async def _focus(self, invocation: Invocation) -> KeyboardTarget | None:
        """Return the terminal or command that the call's keys would go to, or None if there is none or it is unknown.

        The code that types checks again, which keeps it from typing into a target that was unknown here.
        """
        try:
            focusing = await self._session.service("focus" if invocation.tool.inputs else "shell")
            return await focusing.focus(invocation) if isinstance(focusing, FocusService) else None
        except NotFound:
            if not invocation.tool.inputs:
                # There is no such command: nothing can come of the call, whatever a person says.
                raise
            return None
        except HandrailError as exc:
            log.debug("nobody can tell where the keys of %s would go: %s", invocation.tool.name, exc)
            return None

    # What people have said

    def grant(self, option: GrantOption, *, always: bool = False) -> None:
        """Let calls that fit the option pass from now on: in this session, or always."""
        grant = Grant.given(option, self.judging, always=always, days=self._session.settings.policy.grant_days)
        if always:
            self._runtime.book.add(grant)
            self._runtime.read_grants()
        else:
            self.policy.grants = (*self.policy.grants, grant)

    def approved(self, verdict: Verdict, grant: GrantOption | None, *, always: bool = False) -> None:
        """Remember the user's approval for its scope beyond this one call: in this session, or `always`."""
        if verdict.remember is not None:
            self._remembered |= {verdict.remember}
        if grant is not None:
            self.grant(grant, always=always)
        self.judge_anew()

    def close(self) -> None:
        """Record at the end of the session how often it has used permanent grants."""
        lasting = {grant.id for grant in self.policy.lasting}
        if used := {id: uses for id, uses in self._uses.items() if id in lasting}:
            self._runtime.book.used(used)


def _drop_moved_roots(judging: EvaluationContext) -> EvaluationContext:
    """Return the circumstances without roots of the workspace that lead elsewhere since the session began, by a link in their path."""
    roots = tuple(root for root in judging.workspace if find_link_target(root) is None)
    return judging if len(roots) == len(judging.workspace) else replace(judging, workspace=roots)
