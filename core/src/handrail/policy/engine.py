"""Verdicts: the combination of rules, grants and the evaluators' opinions.

For each subcommand of a call, the matching rule with the highest rank decides (tier, then priority, then strictness). One denied subcommand denies
the call, one that needs approval makes the call need it, and an allow needs every subcommand allowed or harmless. Where no rule or grant matches,
the strictest suggestion decides. No decision goes below a floor, unless a rule of the user's own lifts it; the mode then maps the decision.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from handrail.api.call import Invocation
from handrail.api.tool import Tool
from handrail.api.verdict import (
    NO_OPINION,
    OPAQUE_COMMAND,
    STRICTNESS,
    Decision,
    EvaluationContext,
    Evaluator,
    Mode,
    Opinion,
    Reach,
    Reason,
    RegisteredEvaluator,
    Route,
    SubCommand,
    Verdict,
    strictest_decision,
)
from handrail.net.allowed_hosts import AllowedHosts
from handrail.policy.grants import Grant
from handrail.policy.rules import CATASTROPHIC, FULL_FIT, PERSONAL_TIERS, Rule, RuleFit, RuleSet
from handrail.sandbox.selection import DOCTOR_HINT

log = logging.getLogger(__name__)

# A tool that runs no command, and of which nobody said more, is one part that touches nothing known.
WHOLE_CALL = (SubCommand(),)


class PolicyEngine:
    """The rules and grants of one session."""

    def __init__(self, rules: RuleSet | Iterable[Rule] = (), grants: Iterable[Grant] = ()) -> None:
        self.rules = rules if isinstance(rules, RuleSet) else RuleSet(rules)
        # Those of the session, and those that were given for always.
        self.grants = tuple(grants)
        self.lasting: tuple[Grant, ...] = ()

    @property
    def all_grants(self) -> tuple[Grant, ...]:
        return (*self.grants, *self.lasting)

    def decide(self, invocation: Invocation, opinions: Sequence[Opinion], judging: EvaluationContext) -> Verdict:
        """Return the verdict: the strictest of the floors and of rule, grant or suggestion, then mapped by the mode."""
        spoken_of = self.grants or self.lasting or self.rules.of(invocation.tool)
        if not spoken_of and len(opinions) == 1 and judging.mode is not Mode.PLAN:
            verdict = opinions[0].allowing
            if verdict is not None and (verdict.route is Route.HOST or judging.sandbox is not None):
                return verdict
        return _CallDecision(self, invocation, opinions, judging).verdict()

    def hides(self, tool: Tool, judging: EvaluationContext) -> str | None:
        """Return why the tool may not be called in this mode with any arguments, or None if it may."""
        planned = judging.mode is not Mode.PLAN or tool.read_only
        for rule in self.rules.of(tool):
            if not rule.of_session(judging).yes:
                continue
            if rule.decision is Decision.DENY:
                if rule.whole:
                    return f"the policy rule {rule.called!r} denies it" + (f": {rule.reason}" if rule.reason else "")
            elif planned or Mode.PLAN in rule.modes:
                return None
        return None if planned else "in plan mode nothing is changed"

    def trail(self, invocation: Invocation, opinions: Sequence[Opinion], judging: EvaluationContext) -> list[RuleMatch]:
        """Return how each rule and grant matches each part of a call, highest rank first."""
        return list(_CallDecision(self, invocation, opinions, judging).trail())


@dataclass(frozen=True, slots=True)
class RuleMatch:
    """Match of one rule or grant with a call.

    `fits`: the fit for each part, in order; a single one if the rule does not apply to the tool or the session.
    """

    said_by: Rule | Grant
    fits: tuple[RuleFit, ...]


@dataclass(frozen=True, slots=True)
class _TighteningRule:
    """Rule that can only tighten: from an untrusted folder or plugin, or with an uncertain match (`doubt`: the key)."""

    rule: Rule
    decision: Decision
    doubt: str = ""


@dataclass(frozen=True, slots=True)
class _PartAnswer:
    """The answer of rules and grants for one part, and the rules that hold it anyway. `grants` are all that are needed to allow it."""

    decision: Decision | None = None
    by: Rule | None = None
    holds: tuple[_TighteningRule, ...] = ()
    grants: tuple[Grant, ...] = ()


@dataclass(frozen=True, slots=True)
class _BaseVerdict:
    """The verdict before floors and mode: that of rules or grants, or else of the suggestions. `held`: a tightening rule asks, too.

    `hosts` are those that rules, or grants of exactly this call, name for it in the sandbox.
    """

    verdict: Verdict
    rules: tuple[Rule, ...] = ()
    held: bool = False
    hosts: tuple[str, ...] = ()


class _CallDecision:
    """One call that is being decided."""

    def __init__(
        self, policy: PolicyEngine, invocation: Invocation, opinions: Sequence[Opinion], judging: EvaluationContext
    ) -> None:
        self.policy = policy
        self.invocation = invocation
        self.opinions = opinions
        self.judging = judging
        self.told = tuple(part for o in opinions for part in o.parts)
        self.parts = self.told or WHOLE_CALL
        self.rules = tuple(r for r in policy.rules.of(invocation.tool) if r.of_session(judging).yes)
        given = policy.all_grants
        filters = judging.sandbox is not None and judging.sandbox.filters
        self.grants = tuple(g for g in given if g.holds(invocation, judging) and (filters or not g.option.confined))
        self.outdated = not self.grants and any(g.outdated(invocation, judging) for g in given)
        self.reach = _join_reaches(o.reach for o in opinions if o.reach is not None)
        self.suggested = _suggest_verdict(opinions)
        # Hosts that commands in the sandbox may reach, and the grant that says so.
        self.granted = {host: grant for grant in self.grants for host in grant.hosts}

    def verdict(self) -> Verdict:
        base = self._base()
        verdict = _confirm_without_sandbox(self._floored(base), self.judging)
        if verdict.decision is Decision.DENY:
            return verdict
        verdict = self._mapped(verdict, base)
        if self.reach is not None:
            verdict = replace(verdict, reach=self.reach, hosts=self._hosts(verdict, base))
        asks_again = self.outdated and verdict.decision is Decision.CONFIRM
        return replace(verdict, reasons=(*verdict.reasons, DECLARED_ANEW)) if asks_again else verdict

    def trail(self) -> Iterator[RuleMatch]:
        for rule in self.policy.rules.ranked:
            fit = rule.of_tool(self.invocation.tool)
            fit = rule.of_session(self.judging) if fit.yes else fit
            yield RuleMatch(rule, tuple(self._fit(rule, part) for part in self.parts) if fit.yes else (fit,))
        for grant in self.policy.all_grants:
            if grant.holds(self.invocation, self.judging):
                yield RuleMatch(
                    grant, tuple(FULL_FIT if self._counts(grant, p) else RuleFit(False, "part") for p in self.parts)
                )
            else:
                yield RuleMatch(grant, (RuleFit(False, "call"),))

    # What people have said

    def _base(self) -> _BaseVerdict:
        suggested = self.suggested
        if not self.rules and not self.grants:
            return _BaseVerdict(suggested)
        answers = [self._answer(part) for part in self.parts]
        base = self._answered(answers, suggested)
        worst = max((h for a in answers for h in a.holds), key=lambda hold: STRICTNESS[hold.decision], default=None)
        if worst is None or STRICTNESS[worst.decision] < STRICTNESS[base.verdict.decision]:
            return base
        if worst.decision is base.verdict.decision:
            return replace(base, held=True)
        held = _verdict_by_rules([worst.rule], worst.decision, doubt=worst.doubt)
        if self.reach is not None and self.reach.needed:
            # Who makes it stricter does not send it to the host.
            held = replace(held, route=base.verdict.route, view=base.verdict.view)
        return _BaseVerdict(held, held=True, hosts=base.hosts)

    def _answered(self, answers: Sequence[_PartAnswer], suggested: Verdict) -> _BaseVerdict:
        """Return the base verdict from the strictest answer; an allow must apply to every part that is not harmless."""
        decision = strictest_decision([a.decision for a in answers if a.decision is not None])
        if decision is None:
            return _BaseVerdict(suggested)
        said = [a for a in answers if a.decision is decision]
        rules = tuple(dict.fromkeys(a.by for a in said if a.by is not None))
        grants = tuple(dict.fromkeys(g for a in said for g in a.grants))
        route = _choose_route(rules, suggested, decision) if rules else _choose_grant_route(grants)
        if decision is Decision.ALLOW and not self._all_allowed(answers, grants, route, by_rules=bool(rules)):
            return _BaseVerdict(suggested)
        hosts = tuple(dict.fromkeys(self._named_hosts(answers))) if route is Route.SANDBOX else ()
        if rules:
            return _BaseVerdict(replace(_verdict_by_rules(rules, decision), route=route), rules, hosts=hosts)
        view = suggested.view if route is Route.SANDBOX else None
        return _BaseVerdict(replace(_verdict_by_grants(grants), route=route, view=view), hosts=hosts)

    def _all_allowed(
        self, answers: Sequence[_PartAnswer], grants: Sequence[Grant], route: Route, *, by_rules: bool
    ) -> bool:
        """Return True if the entire call is allowed, with each part in the environment it is allowed in."""
        confined = route is Route.SANDBOX
        if not confined and any(grant.option.confined for grant in grants):
            return False
        return all(
            answer.decision is Decision.ALLOW
            or part.harmless
            or (confined and part.view is not None and (by_rules or all(map(self._reached, _list_hosts(part)))))
            for answer, part in zip(answers, self.parts, strict=True)
        )

    def _named_hosts(self, answers: Sequence[_PartAnswer]) -> Iterator[str]:
        """Yield the hosts that rules name for parts of the call, and those of grants of exactly this call."""
        for answer, part in zip(answers, self.parts, strict=True):
            if answer.decision is Decision.ALLOW and answer.by is not None and answer.by.hosts:
                yield from _list_hosts(part)
            yield from (host for grant in answer.grants if grant.option.confined for host in grant.option.hosts)

    def _hosts(self, verdict: Verdict, base: _BaseVerdict) -> tuple[str, ...]:
        """Return the hosts that the call may connect to in the sandbox: granted ones, and those to be confirmed."""
        assert self.reach is not None
        if verdict.route is not Route.SANDBOX:
            return ()
        asked = self.reach.hosts if self.reach.needed and base.verdict.decision is Decision.CONFIRM else ()
        return tuple(dict.fromkeys((*asked, *base.hosts, *self.granted)))

    def _answer(self, part: SubCommand) -> _PartAnswer:
        """Return the decision of the highest rule that certainly matches the part, or of a grant in its place.

        Higher rules that only tighten are returned as holds.
        """
        holds: list[_TighteningRule] = []
        found: Rule | None = None
        for rule in self.rules:
            fit = self._fit(rule, part)
            if fit.doubtful:
                # A rule that is there to lift something has nothing to say of what it may not fit.
                holds += [] if rule.lifts else [_TighteningRule(rule, Decision.CONFIRM, fit.key)]
            elif fit.yes and rule.tightening:
                holds.append(_TighteningRule(rule, rule.decision))
            elif fit.yes:
                found = rule
                break
        # What the evaluators allow as it is runs as they say: a grant that happens to fit does not send it to the host.
        grants = () if found is None and self.suggested.decision is Decision.ALLOW else self._grants_for(part)
        # A grant answers whoever only asks, save an administrator; doubts about a deny are not answered by it.
        if grants and (found is None or found.decision is Decision.ALLOW or _is_grant_answerable(found)):
            kept = (h for h in holds if h.rule.decision is Decision.DENY or h.rule.tier == "admin")
            return _PartAnswer(Decision.ALLOW, None, tuple(kept), grants)
        return _PartAnswer(found.decision if found else None, found, tuple(holds))

    def _grants_for(self, part: SubCommand) -> tuple[Grant, ...]:
        """Return the grants that allow a part: one that covers it, or those for all the hosts it lacks.

        Grants for hosts suffice only if the part lacks nothing else.
        """
        one = next((g for g in self.grants if self._granted(g, part)), None)
        if one is not None:
            return (one,)
        if self.reach is None or not self.reach.needed:
            return ()
        hosts = _list_hosts(part)
        if not hosts or part.view is None or part.argv == OPAQUE_COMMAND or not all(map(self._reached, hosts)):
            return ()
        return tuple(dict.fromkeys(self.granted[host] for host in hosts if host in self.granted))

    def _reached(self, host: str) -> bool:
        offer = self.judging.sandbox
        always = offer.hosts if offer is not None and offer.filters else ()
        return host in self.granted or (bool(always) and AllowedHosts.of(always).covers(host))

    def _counts(self, grant: Grant, part: SubCommand) -> bool:
        return self._granted(grant, part) or grant in self._grants_for(part)

    def _fit(self, rule: Rule, part: SubCommand) -> RuleFit:
        return rule.of_part(part, self.invocation.tool, self.judging, self.policy.rules.places)

    def _granted(self, grant: Grant, part: SubCommand) -> bool:
        exact = grant.option.call_hash is not None
        return (exact or part.argv != OPAQUE_COMMAND) and grant.covers(part, self.judging)

    # What nothing goes below

    def _floored(self, base: _BaseVerdict) -> Verdict:
        """Return the base verdict, raised to the strictest floor that no rule of the user or an administrator lifts."""
        lifted = self._lifted()
        floors = [
            o
            for o in self.opinions
            if o.catastrophic or (o.floor is not None and not _split_floor_names(o.rule) <= lifted)
        ]
        catastrophic = any(o.catastrophic for o in floors)
        may_ask = catastrophic and CATASTROPHIC in lifted and self.judging.at_terminal
        levels = [
            (Decision.CONFIRM if may_ask else Decision.DENY) if o.catastrophic else o.floor or Decision.ALLOW
            for o in floors
        ]
        floor = strictest_decision(levels)
        decision = strictest_decision([base.verdict.decision, *levels])
        assert decision is not None
        raised = decision is not base.verdict.decision or (catastrophic and decision is floor)
        weighty = [o for o, level in zip(floors, levels, strict=True) if level is decision] if raised else []
        if any(o.catastrophic for o in weighty):
            weighty = [o for o in weighty if o.catastrophic]
        reasons = tuple(reason for o in weighty for reason in o.reasons) or base.verdict.reasons
        if catastrophic and not may_ask and CATASTROPHIC in lifted:
            reasons = (*reasons, NOT_AT_TERMINAL)
        asked_by_admin = any(r.tier == "admin" and r.decision is Decision.CONFIRM for r in base.rules)
        # A call that lacks nothing but hosts runs in the sandbox, whatever else a person is asked about.
        by_host = base.verdict.view is not None and self.reach is not None and self.reach.needed
        confined = decision is Decision.ALLOW or by_host
        # A yes is remembered under a word only when everybody who asks means the same by it.
        words = {o.remember for o in self.opinions if o.suggestion is decision}
        return replace(
            base.verdict,
            decision=decision,
            rule=weighty[0].rule if weighty else base.verdict.rule,
            reasons=reasons,
            catastrophic=catastrophic,
            remember=words.pop() if len(words) == 1 else None,
            grantable=floor in (None, Decision.ALLOW) and not asked_by_admin,
            parts=self.told,
            narrowed=tuple(words for o in self.opinions for words in o.narrowed),
            # Somebody's yes is for the host, unless the rule that asks says otherwise.
            route=base.verdict.route if confined or base.rules else Route.HOST,
            view=base.verdict.view if confined else None,
            changes_repositories=tuple(dict.fromkeys(place for o in self.opinions for place in o.changes_repositories)),
            steps=next((o.steps for o in self.opinions if o.steps), ()) if confined else (),
            relies_on_undo=decision is Decision.ALLOW
            and (base.verdict.relies_on_undo or (by_host and any(o.relies_on_undo for o in self.opinions))),
        )

    def _lifted(self) -> set[str]:
        """Return the floors lifted by rules of the user or an administrator that match the entire call."""
        lifting = [rule for rule in self.rules if rule.lifts and rule.tier in PERSONAL_TIERS]
        places = self.policy.rules.places
        return {
            name
            for rule in lifting
            if all(part.harmless or rule.covers(part, self.judging, places).yes for part in self.parts)
            for name in rule.lifts
        }

    # What the mode makes of it

    def _mapped(self, verdict: Verdict, base: _BaseVerdict) -> Verdict:
        """Apply the session's mode to a verdict that does not deny. The result never goes below a floor or a rule."""
        mode = self.judging.mode
        if mode is Mode.PLAN and not self.invocation.tool.read_only and not any(mode in r.modes for r in base.rules):
            return _apply_mode(verdict, Decision.DENY, mode, "in plan mode nothing is changed")
        if verdict.decision is Decision.ALLOW:
            return verdict
        if mode is Mode.HEADLESS:
            return _apply_mode(verdict, Decision.DENY, mode, "it needs a yes, and in headless mode nobody is asked")
        # Whoever wrote a rule means it in every mode, and nobody who may allow has vouched for what silence asks about.
        vouched = any(o.trusted and o.suggestion is not None for o in self.opinions)
        if base.rules or base.held or not verdict.grantable or not vouched:
            return verdict
        if mode is Mode.PERMISSIVE:
            # No person says yes here: whoever wished the call shut in is heard where that can be done.
            route = base.verdict.route if self.judging.sandbox is not None else Route.HOST
            if route is Route.SANDBOX or not any(o.unknown_effects for o in self.opinions):
                allowed = replace(verdict, route=route)
                return _apply_mode(allowed, Decision.ALLOW, mode, "permissive mode allows what nothing forbids")
        if verdict.remember in self.judging.remembered:
            return replace(verdict, decision=Decision.ALLOW, rule="grant")
        return verdict


NOT_AT_TERMINAL = Reason(
    "not_at_terminal", "only a person at the terminal that this was started at may be asked about it"
)
DECLARED_ANEW = Reason(
    "declared_anew",
    "a person has allowed it before, and since then its server has added the tool or says something else of it",
)
NO_SANDBOX = Reason("no_sandbox", f"it would run in a sandbox, and none is usable here; {DOCTOR_HINT}")


def _is_grant_answerable(rule: Rule) -> bool:
    return rule.decision is Decision.CONFIRM and rule.tier != "admin"


def _suggest_verdict(opinions: Sequence[Opinion]) -> Verdict:
    """Return a verdict with the strictest suggestion, or one that requires confirmation if there is none."""
    decision = strictest_decision([o.suggestion for o in opinions if o.suggestion is not None])
    # A route without a suggestion is somebody's wish to have the call shut in, too.
    route = Route.SANDBOX if any(o.route is Route.SANDBOX for o in opinions) else Route.HOST
    if decision is None:
        return replace(NO_OPINION, route=route)
    of_it = [o for o in opinions if o.suggestion is decision]
    reasons = tuple(reason for o in of_it for reason in o.reasons)
    view = next((o.view for o in of_it if o.view is not None), None)
    relies = decision is Decision.ALLOW and any(o.relies_on_undo for o in of_it)
    return Verdict(decision, route, of_it[0].rule, reasons, view=view, relies_on_undo=relies)


def _verdict_by_rules(rules: Sequence[Rule], decision: Decision, *, doubt: str = "") -> Verdict:
    reasons = [
        Reason("policy_rule", rule.reason or f"the policy rule {rule.called!r} says {rule.decision}") for rule in rules
    ]
    if doubt:
        reasons.append(
            Reason("policy_doubt", f"it cannot be told whether {doubt} of that rule fits, so it is asked about")
        )
    return Verdict(decision, rule=f"policy:{rules[0].called}", reasons=tuple(reasons))


def _verdict_by_grants(grants: Sequence[Grant]) -> Verdict:
    reasons = tuple(Reason("granted", f"{grant.option.label}: allowed {grant.told}") for grant in grants)
    return Verdict(Decision.ALLOW, rule="grant", reasons=reasons, grants=tuple(grant.id for grant in grants))


def _choose_route(rules: Sequence[Rule], suggested: Verdict, decision: Decision) -> Route:
    """Return where a call allowed by rules runs.

    That is the host, unless one of the rules says sandbox. With a plugin's rule that names no route, the suggested
    route applies.
    """
    if any(rule.route is Route.SANDBOX for rule in rules):
        return Route.SANDBOX
    if decision is Decision.ALLOW and any(rule.tier == "plugin" and rule.route is None for rule in rules):
        return suggested.route
    return Route.HOST


def _choose_grant_route(grants: Sequence[Grant]) -> Route:
    """Return the route of a call that grants allow: the sandbox if none of them is for the host."""
    return Route.SANDBOX if grants and all(grant.option.confined for grant in grants) else Route.HOST


def _list_hosts(part: SubCommand) -> tuple[str, ...]:
    """Return the hosts that a part connects to; an empty name represents an unknown one."""
    return tuple(touch.what for touch in part.touches if touch.kind == "network")


def _join_reaches(reaches: Iterable[Reach]) -> Reach | None:
    found = tuple(reaches)
    if not found:
        return None
    return Reach(tuple(dict.fromkeys(h for r in found for h in r.hosts)), any(r.needed for r in found))


def _confirm_without_sandbox(verdict: Verdict, judging: EvaluationContext) -> Verdict:
    """Require confirmation to run a call on the host if it should run in a sandbox and none is available.

    If nobody can be asked, the verdict is unchanged, and running the call fails with what the sandboxes lack.
    """
    if verdict.route is Route.HOST or judging.sandbox is not None or verdict.decision is Decision.DENY:
        return verdict
    if not judging.interactive and judging.mode is not Mode.HEADLESS:
        return verdict
    return replace(
        verdict, decision=Decision.CONFIRM, route=Route.HOST, reasons=(*verdict.reasons, NO_SANDBOX), remember=None
    )


def _apply_mode(verdict: Verdict, decision: Decision, mode: Mode, text: str) -> Verdict:
    return replace(
        verdict, decision=decision, rule=f"mode:{mode}", reasons=(*verdict.reasons, Reason(f"mode_{mode}", text))
    )


def _split_floor_names(floor: str) -> set[str]:
    """Return the names of a floor's rule: `shell:outside+secret` combines two floors, and both must be lifted."""
    family, colon, codes = floor.partition(":")
    return {f"{family}{colon}{code}" for code in codes.split("+")}


async def evaluate_call(
    invocation: Invocation, *, seats: Sequence[RegisteredEvaluator], policy: PolicyEngine, judging: EvaluationContext
) -> Verdict:
    """Return the verdict on a call, based on every evaluator's opinion, the policy and the mode."""
    return decide_verdict(
        invocation, await collect_opinions(invocation, seats=seats, judging=judging), policy=policy, judging=judging
    )


def decide_verdict(
    invocation: Invocation, heard: Sequence[Opinion] | Verdict, *, policy: PolicyEngine, judging: EvaluationContext
) -> Verdict:
    """Return the verdict that policy and mode give for the result of `collect_opinions`."""
    if isinstance(heard, Verdict):
        return heard
    verdict = policy.decide(invocation, heard, judging)
    if judging.untrusted is not None:
        verdict = _add_reasons([o for o in heard if o.rule == "taint"], verdict)
    return verdict if invocation.seen is None else _add_reasons(invocation.seen.opinions, verdict)


def _add_reasons(opinions: Sequence[Opinion], verdict: Verdict) -> Verdict:
    """Add the reasons of the opinions to a verdict that requires confirmation.

    The user who is prompted for another reason then also learns of third-party text and of observers' objections.
    """
    reasons = [reason for opinion in opinions for reason in opinion.reasons]
    more = tuple(reason for reason in reasons if reason not in verdict.reasons)
    return (
        replace(verdict, reasons=(*verdict.reasons, *more))
        if more and verdict.decision is Decision.CONFIRM
        else verdict
    )


async def collect_opinions(
    invocation: Invocation, *, seats: Sequence[RegisteredEvaluator], judging: EvaluationContext
) -> list[Opinion] | Verdict:
    """Return the opinions of all evaluators, restricted for untrusted ones, or a verdict if one of them crashed."""
    opinions: list[Opinion] = []
    for seat in seats:
        try:
            opinion = await seat.evaluator.opinion(invocation, judging)
        # An evaluator is plugin code, and a judge that crashes must not let anything through.
        except Exception as exc:
            log.exception("evaluator %s crashed on %s", seat.evaluator.name, invocation.tool.name)
            return _crash_verdict(seat.evaluator, exc)
        if opinion is not None:
            opinions.append(opinion if seat.trusted else _restrict_opinion(opinion))
    if (
        judging.untrusted is not None
        and (tainted := judging.untrusted.opinion(invocation, opinions, judging)) is not None
    ):
        opinions.append(tainted)
    if invocation.seen is not None:
        opinions.extend(invocation.seen.opinions)
    return opinions


def _crash_verdict(evaluator: Evaluator, exc: Exception) -> Verdict:
    text = f"the evaluator {evaluator.name} failed ({type(exc).__name__})"
    return Verdict(
        Decision.DENY, rule=f"{evaluator.name}:crash", reasons=(Reason("evaluator_crashed", text),), grantable=False
    )


def _restrict_opinion(opinion: Opinion) -> Opinion:
    """Return the part of an opinion that counts if its evaluator may not allow calls.

    It omits an allow, and the commands and words that a rule, a grant or an approval could match.
    """
    return Opinion(
        opinion.rule,
        suggestion=None if opinion.suggestion is Decision.ALLOW else opinion.suggestion,
        floor=None if opinion.floor is Decision.ALLOW else opinion.floor,
        catastrophic=opinion.catastrophic,
        route=opinion.route,
        reasons=opinion.reasons,
        trusted=False,
        unknown_effects=opinion.unknown_effects,
    )
