"""Where the calls of one session are judged: in what circumstances, by whom, and after which rules and grants."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from handrail.errors import HandrailError
from handrail.judging.grants import Grant
from handrail.judging.policy import Policy
from handrail.judging.verdicts import Judging, Mode, Seat, Verdict, decided, hear

if TYPE_CHECKING:
    from handrail.calls.invocation import GrantOption, Invocation
    from handrail.desktops.desktop import Focusing
    from handrail.files.paths import Seen
    from handrail.judging.verdicts import Focus
    from handrail.session import Session

log = logging.getLogger(__name__)


class Court:
    """Judges a session's calls. `judging` are the circumstances of now: whoever changes one of them says `judge_anew`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._runtime = session.runtime
        self.policy = Policy(self._runtime.rules)
        self.policy.lasting = self._runtime.grants
        self._remembered: frozenset[str] = frozenset()
        # How often each grant has let a call pass.
        self._uses: Counter[str] = Counter()
        self._seats: dict[str, tuple[Seat, ...]] = {}
        self.judge_anew()

    def judge_anew(self) -> None:
        """The calls that follow are judged in other circumstances."""
        self.judging = self._circumstances()
        self._confinable: Judging | None = None
        self._shared: tuple[Judging, Judging] | None = None

    def seat_anew(self) -> None:
        """Other tools or settings are there: who judges a tool is asked again."""
        self._seats.clear()

    def _circumstances(self) -> Judging:
        session, confirmer = self._session, self._session.confirmer
        return replace(
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
        )

    async def judge(self, invocation: Invocation, *, seen: Seen | None = None) -> Verdict:
        """The verdict on a bound call. Judgements that belong to one call look at no place twice when they pass the same dictionary as `seen`."""
        tool = invocation.tool
        seats = self._seats.get(tool.name)
        if seats is None:
            seats = self._seats[tool.name] = self._runtime.seats_for(tool)
        judging = await self._with_sandbox() if tool.confinable else self.judging
        if tool.inputs and (focus := await self._focus(invocation)) is not None:
            judged = any(seat.evaluator.reads_commands for seat in seats)
            judging = replace(judging, focus=replace(focus, judged=judged))
        if seen is not None:
            judging = self._together(judging, seen)
        heard = await hear(invocation, seats=seats, judging=judging)
        verdict = decided(invocation, heard, policy=self.policy, judging=judging)
        if verdict.grants:
            self._uses.update(verdict.grants)
        return verdict

    def _together(self, judging: Judging, seen: Seen) -> Judging:
        """The circumstances with what was looked at, made anew where either is another one than for the judgement before."""
        if self._shared is None or self._shared[0] is not judging or self._shared[1].seen is not seen:
            self._shared = judging, replace(judging, seen=seen)
        return self._shared[1]

    async def _with_sandbox(self) -> Judging:
        """The circumstances of a call that may run in the sandbox, where there is one."""
        if self._confinable is None:
            offer = await self._runtime.offer(self.judging, self._session.settings)
            self._confinable = replace(self.judging, sandbox=offer)
        return self._confinable

    async def _focus(self, invocation: Invocation) -> Focus | None:
        """The terminal that the call's keys would go to. Who types looks again, so that what cannot be told here is not typed there."""
        try:
            focusing: Focusing = await self._session.service("focus")
            return await focusing.focus(invocation)
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
        """Remember what a person's yes is good for beyond this one call: in this session, or `always`."""
        if verdict.remember is not None:
            self._remembered |= {verdict.remember}
        if grant is not None:
            self.grant(grant, always=always)
        self.judge_anew()

    def close(self) -> None:
        """The session is over: write down how often it has used what was granted for always."""
        lasting = {grant.id for grant in self.policy.lasting}
        if used := {id: uses for id, uses in self._uses.items() if id in lasting}:
            self._runtime.book.used(used)
