"""Policy rules and grants: what people have said about calls, and how that meets the evaluators' opinions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Literal

from handrail import paths
from handrail.invocation import GrantOption, Invocation
from handrail.judging import NOBODY, Decision, Judging, Mode, Opinion, Reason, Route, Verdict, strictest

Tier = Literal["project", "user", "admin"]
TIERS: tuple[Tier, ...] = ("project", "user", "admin")


@dataclass(frozen=True, slots=True)
class Rule:
    """One `[[policy.rules]]`: for calls of `tool` (a name, `*` stands for any letters), or of those simple commands in it that start with
    the words of `command`. `lifts` names floors (an opinion's rule) that an allow of a user or administrator goes below.
    """

    tool: str
    decision: Decision
    command: tuple[str, ...] = ()
    name: str = ""
    tier: Tier = "user"
    lifts: tuple[str, ...] = ()

    def matches(self, invocation: Invocation, commands: Sequence[tuple[str, ...]]) -> bool:
        """Whether it speaks of this call. An allow must cover every command in it, a confirm or deny only one."""
        if self.decision is Decision.ALLOW or not self.command:
            return self.covers(invocation, commands)
        return fnmatchcase(invocation.tool.name, self.tool) and any(map(self._starts, commands))

    def covers(self, invocation: Invocation, commands: Sequence[tuple[str, ...]]) -> bool:
        """Whether it speaks of the whole call: of every command in it."""
        if not fnmatchcase(invocation.tool.name, self.tool):
            return False
        return not self.command or (bool(commands) and all(map(self._starts, commands)))

    def _starts(self, words: tuple[str, ...]) -> bool:
        return words[: len(self.command)] == self.command


@dataclass(slots=True)
class Policy:
    """The rules of one session and the grants given in it."""

    rules: tuple[Rule, ...] = ()
    grants: list[GrantOption] = field(default_factory=list[GrantOption])

    def decide(self, invocation: Invocation, opinions: Sequence[Opinion], judging: Judging) -> Verdict:
        """The verdict: the strictest of the floors and of rule, grant or suggestion, then mapped by the mode."""
        if len(opinions) == 1 and not self.rules and not self.grants and judging.mode is not Mode.PLAN:
            verdict = opinions[0].allowing
            if verdict is not None:
                return verdict
        return _map_mode(self._weigh(invocation, opinions, judging), invocation, judging)

    def hides(self, tool: str) -> str | None:
        """Why the tool may never be called, whatever its arguments; None when it may."""
        for rule in self.rules:
            if rule.decision is Decision.DENY and not rule.command and fnmatchcase(tool, rule.tool):
                return f"the policy rule {rule.name or rule.tool!r} denies it"
        return None

    def _weigh(self, invocation: Invocation, opinions: Sequence[Opinion], judging: Judging) -> Verdict:
        base = self._base(invocation, opinions, judging)
        lifted = self._lifted(invocation, opinions)
        floors = [o for o in opinions if o.catastrophic or (o.floor is not None and o.rule not in lifted)]
        floor = strictest([o.floor for o in floors if o.floor is not None])
        catastrophic = any(o.catastrophic for o in floors)
        decision = Decision.DENY if catastrophic else strictest([base.decision, *([floor] if floor else [])])
        assert decision is not None
        if catastrophic:
            weighty = [o for o in floors if o.catastrophic]
        else:
            weighty = [o for o in floors if o.floor is decision] if decision is not base.decision else []
        # A yes is remembered under a word only when everybody who asks means the same by it.
        words = {o.remember for o in opinions if o.suggestion is decision}
        return Verdict(
            decision,
            Route.SANDBOX if any(o.route is Route.SANDBOX for o in opinions) else Route.HOST,
            rule=weighty[0].rule if weighty else base.rule,
            reasons=tuple(reason for o in weighty for reason in o.reasons) or base.reasons,
            catastrophic=catastrophic,
            remember=words.pop() if len(words) == 1 else None,
            grantable=floor is None or floor is Decision.ALLOW,
            parts=tuple(part for o in opinions for part in o.parts),
            narrowed=tuple(words for o in opinions for words in o.narrowed),
        )

    def _base(self, invocation: Invocation, opinions: Sequence[Opinion], judging: Judging) -> Verdict:
        """What the matching rule or grant says, else the strictest suggestion, else that somebody must be asked."""
        rule = self._rule(invocation, opinions)
        if rule is not None and rule.decision is Decision.DENY:
            return _by_rule(rule)
        if self._granted(invocation, opinions, judging):
            return Verdict(Decision.ALLOW, rule="grant", reasons=(Reason("granted", "allowed for this session"),))
        suggested = _suggested(opinions)
        if rule is None:
            return suggested
        # What a folder's file says may not loosen what an evaluator suggests, unless it says allow, which only a trusted folder can.
        tightens = rule.tier != "project" or rule.decision is strictest([rule.decision, suggested.decision])
        return _by_rule(rule) if tightens or rule.decision is Decision.ALLOW else suggested

    def _rule(self, invocation: Invocation, opinions: Sequence[Opinion]) -> Rule | None:
        """The strictest of the first matching rule of each tier."""
        matching = list(self._matching(invocation, opinions))
        first = [rule for tier in TIERS if (rule := next((r for r in matching if r.tier == tier), None)) is not None]
        decision = strictest([rule.decision for rule in first])
        return next((rule for rule in first if rule.decision is decision), None)

    def _matching(self, invocation: Invocation, opinions: Sequence[Opinion]) -> Iterator[Rule]:
        commands = _commands(opinions)
        return (rule for rule in self.rules if rule.matches(invocation, commands))

    def _lifted(self, invocation: Invocation, opinions: Sequence[Opinion]) -> set[str]:
        """The floors that rules of a user or administrator go below, when they speak of the whole call."""
        lifting = [rule for rule in self.rules if rule.lifts and rule.tier != "project"]
        commands = _commands(opinions) if lifting else []
        return {name for rule in lifting if rule.covers(invocation, commands) for name in rule.lifts}

    def _granted(self, invocation: Invocation, opinions: Sequence[Opinion], judging: Judging) -> bool:
        commands = _commands(opinions) if self.grants else []
        return any(_covers(grant, invocation, commands, judging) for grant in self.grants)


def _commands(opinions: Sequence[Opinion]) -> list[tuple[str, ...]]:
    return [part.argv for o in opinions for part in o.parts if part.argv]


def _suggested(opinions: Sequence[Opinion]) -> Verdict:
    """The strictest suggestion; without any, that somebody must be asked."""
    decision = strictest([o.suggestion for o in opinions if o.suggestion is not None])
    if decision is None:
        return NOBODY
    of_it = [o for o in opinions if o.suggestion is decision]
    return Verdict(decision, rule=of_it[0].rule, reasons=tuple(reason for o in of_it for reason in o.reasons))


def _by_rule(rule: Rule) -> Verdict:
    name = rule.name or " ".join((rule.tool, *rule.command))
    return Verdict(
        rule.decision,
        rule=f"policy:{name}",
        reasons=(Reason("policy_rule", f"the policy rule {name!r} says {rule.decision}"),),
    )


def _covers(grant: GrantOption, invocation: Invocation, commands: Sequence[tuple[str, ...]], judging: Judging) -> bool:
    if grant.tool != invocation.tool.name:
        return False
    if grant.call_hash is not None:
        return grant.call_hash == invocation.call_hash
    if grant.commands:
        return bool(commands) and all(any(words[: len(c)] == c for c in grant.commands) for words in commands)
    if grant.paths:
        touched = [location.path for location in invocation.locations()]
        return bool(touched) and all(any(_is_below(path, p, judging) for p in grant.paths) for path in touched)
    return True


def _is_below(path: str, folder: str, judging: Judging) -> bool:
    """Whether a path really leads into a folder, whatever links and dots are on the way."""
    real, root = (
        paths.resolve(text, cwd=judging.cwd, home=judging.home, platform=judging.platform) for text in (path, folder)
    )
    return real.refused is None and real.doubtful is None and paths.inside(real.path, (root.path,))


def _map_mode(verdict: Verdict, invocation: Invocation, judging: Judging) -> Verdict:
    """What the session's mode makes of a verdict. Nothing here goes below a floor or a rule."""
    if verdict.decision is Decision.DENY:
        return verdict
    if judging.mode is Mode.PLAN and not invocation.tool.read_only:
        return _by_mode(verdict, Decision.DENY, Mode.PLAN, "in plan mode nothing is changed")
    if verdict.decision is Decision.CONFIRM and judging.mode is Mode.HEADLESS:
        return _by_mode(verdict, Decision.DENY, Mode.HEADLESS, "it needs a yes, and in headless mode nobody is asked")
    asked_by_suggestion = verdict.grantable and not verdict.rule.startswith("policy:")
    if verdict.decision is Decision.CONFIRM and judging.mode is Mode.PERMISSIVE and asked_by_suggestion:
        return _by_mode(verdict, Decision.ALLOW, Mode.PERMISSIVE, "permissive mode allows what nothing forbids")
    if verdict.decision is Decision.CONFIRM and verdict.remember in judging.remembered and asked_by_suggestion:
        return replace(verdict, decision=Decision.ALLOW, rule="grant")
    return verdict


def _by_mode(verdict: Verdict, decision: Decision, mode: Mode, text: str) -> Verdict:
    return replace(
        verdict, decision=decision, rule=f"mode:{mode}", reasons=(*verdict.reasons, Reason(f"mode_{mode}", text))
    )
