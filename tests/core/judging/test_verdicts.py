"""The algebra of verdicts: floors, suggestions, trust and modes, in any order."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st

from handrail import (
    Decision,
    EvaluationContext,
    Invocation,
    Mode,
    Opinion,
    Read,
    Reason,
    Route,
    SandboxOffer,
    SubCommand,
    Tool,
    Verdict,
    Write,
    tool,
)
from handrail.api.verdict import STRICTNESS, RegisteredEvaluator, strictest_decision
from handrail.policy.engine import PolicyEngine, evaluate_call
from handrail.policy.rules import Rule
from handrail.testing import Always

ALLOW, CONFIRM, DENY = Decision.ALLOW, Decision.CONFIRM, Decision.DENY


@tool(effects=[Write("file", arg="path")])
async def edit(path: str = "a.txt") -> None:
    """Edit a file."""


@tool(effects=[Read("screen")])
async def look() -> None:
    """Look."""


def verdict(
    *opinions: Opinion | Decision | Exception | None,
    mode: Mode = Mode.DEFAULT,
    trusted: bool | Sequence[bool] = True,
    policy: PolicyEngine | None = None,
    of: Tool = edit,
    remembered: frozenset[str] = frozenset(),
    sandbox: SandboxOffer | None = None,
) -> Verdict:
    trust = [trusted] * len(opinions) if isinstance(trusted, bool) else trusted
    seats = [
        RegisteredEvaluator(Always(o, name=f"judge{i}"), t)
        for i, (o, t) in enumerate(zip(opinions, trust, strict=True))
    ]
    judging = EvaluationContext(
        cwd=Path("/work"),
        home=Path("/home/ada"),
        user="ada",
        environment={},
        workspace=(Path("/work"),),
        platform="linux",
        mode=mode,
        remembered=remembered,
        sandbox=sandbox,
    )
    invocation = Invocation(of, {}, of.validate({}), "1")
    return asyncio.run(evaluate_call(invocation, seats=seats, policy=policy or PolicyEngine(), judging=judging))


def floor(decision: Decision, rule: str = "floor", **more: Any) -> Opinion:
    return Opinion(rule, floor=decision, reasons=(Reason(rule, f"{rule} says {decision}"),), **more)


def suggest(decision: Decision, rule: str = "view", **more: Any) -> Opinion:
    return Opinion(rule, suggestion=decision, reasons=(Reason(rule, f"{rule} says {decision}"),), **more)


CATASTROPHE = Opinion("end", catastrophic=True, reasons=(Reason("end", "it ends the world"),))


@pytest.mark.parametrize(
    ("opinions", "expected"),
    [
        pytest.param([], CONFIRM, id="nobody-asks"),
        pytest.param([None, None], CONFIRM, id="silence-asks"),
        pytest.param([Opinion("mute")], CONFIRM, id="an-empty-opinion-is-silence"),
        pytest.param([suggest(ALLOW)], ALLOW, id="one-allow-allows"),
        pytest.param([suggest(ALLOW), None], ALLOW, id="silence-beside-an-allow-is-no-veto"),
        pytest.param([suggest(ALLOW), suggest(CONFIRM)], CONFIRM, id="confirm-beats-allow"),
        pytest.param([suggest(CONFIRM), suggest(DENY)], DENY, id="deny-beats-confirm"),
        pytest.param([suggest(ALLOW), floor(CONFIRM)], CONFIRM, id="a-floor-lifts-an-allow"),
        pytest.param([suggest(ALLOW), floor(DENY)], DENY, id="a-deny-floor-denies"),
        pytest.param([suggest(DENY), floor(ALLOW)], DENY, id="a-floor-never-loosens"),
        pytest.param([floor(ALLOW)], CONFIRM, id="an-allow-floor-suggests-nothing"),
        pytest.param([floor(CONFIRM), floor(DENY), suggest(ALLOW)], DENY, id="the-strictest-floor-counts"),
        pytest.param([suggest(ALLOW), CATASTROPHE], DENY, id="a-catastrophe-is-denied"),
        pytest.param([Opinion("odd", suggestion=ALLOW, catastrophic=True)], DENY, id="even-one-that-suggests-to-allow"),
        pytest.param([suggest(ALLOW), RuntimeError("broken")], DENY, id="a-crash-denies"),
    ],
)
def test_the_strictest_counts_in_every_order(opinions: list[Any], expected: Decision) -> None:
    for order in itertools.permutations(opinions):
        assert verdict(*order).decision is expected


def test_strictest_of_none_is_none() -> None:
    assert strictest_decision([]) is None
    assert strictest_decision([CONFIRM, ALLOW]) is CONFIRM


@pytest.mark.parametrize(
    ("opinions", "expected"),
    [
        pytest.param([suggest(ALLOW)], CONFIRM, id="an-untrusted-allow-is-not-heard"),
        pytest.param([Opinion("both", suggestion=ALLOW, floor=CONFIRM)], CONFIRM, id="its-floor-is"),
        pytest.param([suggest(CONFIRM)], CONFIRM, id="its-confirm-is"),
        pytest.param([suggest(DENY)], DENY, id="its-deny-is"),
        pytest.param([floor(DENY)], DENY, id="its-deny-floor-is"),
        pytest.param([CATASTROPHE], DENY, id="its-catastrophe-is"),
    ],
)
def test_evaluators_without_trust_can_only_tighten(opinions: list[Opinion], expected: Decision) -> None:
    assert verdict(*opinions, trusted=False).decision is expected


def test_an_untrusted_judge_tightens_a_trusted_allow() -> None:
    assert verdict(suggest(ALLOW), suggest(CONFIRM), trusted=[True, False]).decision is CONFIRM


def test_an_untrusted_judge_cannot_say_which_commands_a_call_runs() -> None:
    policy = PolicyEngine((Rule(("edit",), ALLOW, command=("git",)),))
    lying = suggest(CONFIRM, parts=(SubCommand(("git", "status")),))
    assert verdict(lying, policy=policy, trusted=True).decision is ALLOW
    assert verdict(lying, policy=policy, trusted=False).decision is CONFIRM


def test_an_untrusted_judge_cannot_have_an_answer_remembered() -> None:
    asking = suggest(CONFIRM, remember="anything")
    assert verdict(asking, trusted=False).remember is None
    assert verdict(asking, trusted=False, remembered=frozenset({"anything"})).decision is CONFIRM


@pytest.mark.parametrize("mode", Mode)
@pytest.mark.parametrize("tool_", [edit, look])
def test_a_catastrophe_is_denied_in_every_mode_and_under_every_rule(mode: Mode, tool_: Tool) -> None:
    policy = PolicyEngine((Rule(("*",), ALLOW, tier="admin", lifts=("end",)),))
    for opinions in ([CATASTROPHE], [suggest(ALLOW), CATASTROPHE], [floor(DENY, "end", catastrophic=True)]):
        decided = verdict(*opinions, mode=mode, policy=policy, of=tool_)
        assert decided.decision is DENY
        assert decided.catastrophic
        assert decided.rule == "end"
        assert decided.reasons[0].code == "end"


@pytest.mark.parametrize("mode", Mode)
def test_a_crash_denies_in_every_mode(mode: Mode, caplog: pytest.LogCaptureFixture) -> None:
    decided = verdict(RuntimeError("secret detail"), suggest(ALLOW), mode=mode)
    assert decided.decision is DENY
    assert not decided.grantable
    assert "secret detail" not in decided.reasons[0].text
    assert "secret detail" in caplog.text


MODES: list[tuple[Mode, Opinion | None, Decision, Decision]] = [
    # mode, opinion, what becomes of a change, what becomes of a look
    (Mode.DEFAULT, suggest(ALLOW), ALLOW, ALLOW),
    (Mode.DEFAULT, suggest(CONFIRM), CONFIRM, CONFIRM),
    (Mode.DEFAULT, suggest(DENY), DENY, DENY),
    (Mode.ACCEPT_EDITS, suggest(CONFIRM), CONFIRM, CONFIRM),
    (Mode.PLAN, suggest(ALLOW), DENY, ALLOW),
    (Mode.PLAN, suggest(CONFIRM), DENY, CONFIRM),
    (Mode.PLAN, suggest(DENY), DENY, DENY),
    (Mode.HEADLESS, suggest(ALLOW), ALLOW, ALLOW),
    (Mode.HEADLESS, suggest(CONFIRM), DENY, DENY),
    (Mode.HEADLESS, floor(CONFIRM), DENY, DENY),
    (Mode.HEADLESS, None, DENY, DENY),
    (Mode.PERMISSIVE, suggest(CONFIRM), ALLOW, ALLOW),
    (Mode.PERMISSIVE, suggest(DENY), DENY, DENY),
    (Mode.PERMISSIVE, floor(CONFIRM), CONFIRM, CONFIRM),
    (Mode.PERMISSIVE, floor(DENY), DENY, DENY),
]


@pytest.mark.parametrize(("mode", "opinion", "change", "sight"), MODES)
def test_modes_map_what_is_neither_clearly_allowed_nor_refused(
    mode: Mode, opinion: Opinion | None, change: Decision, sight: Decision
) -> None:
    assert verdict(opinion, mode=mode, of=edit).decision is change
    assert verdict(opinion, mode=mode, of=look).decision is sight


def test_a_mode_says_that_it_was_the_mode() -> None:
    decided = verdict(suggest(CONFIRM), mode=Mode.HEADLESS)
    assert decided.rule == "mode:headless"
    assert [reason.code for reason in decided.reasons] == ["view", "mode_headless"]


def test_permissive_does_not_undo_a_persons_rule() -> None:
    policy = PolicyEngine((Rule(("edit",), CONFIRM),))
    assert verdict(suggest(ALLOW), mode=Mode.PERMISSIVE, policy=policy).decision is CONFIRM


BOX = SandboxOffer("box")


def test_any_sandbox_route_counts() -> None:
    for order in itertools.permutations([suggest(ALLOW), suggest(ALLOW, "other", route=Route.SANDBOX)]):
        assert verdict(*order, sandbox=BOX).route is Route.SANDBOX
    assert verdict(suggest(ALLOW, route=Route.SANDBOX), sandbox=BOX).route is Route.SANDBOX
    assert verdict(suggest(ALLOW), sandbox=BOX).route is Route.HOST


def test_permissive_mode_runs_what_nobody_knows_in_the_sandbox_or_asks() -> None:
    inside = Opinion("view", CONFIRM, route=Route.SANDBOX, unknown_effects=True)
    outside = Opinion("view", CONFIRM, unknown_effects=True)
    decided = verdict(inside, mode=Mode.PERMISSIVE, sandbox=BOX)
    assert (decided.decision, decided.route) == (ALLOW, Route.SANDBOX)
    assert verdict(inside, mode=Mode.PERMISSIVE).decision is CONFIRM
    assert verdict(outside, mode=Mode.PERMISSIVE, sandbox=BOX).decision is CONFIRM
    assert verdict(outside, mode=Mode.PERMISSIVE, sandbox=BOX).grantable
    allowed = PolicyEngine((Rule(("edit",), ALLOW),))
    assert verdict(outside, mode=Mode.PERMISSIVE, sandbox=BOX, policy=allowed).decision is ALLOW
    trust = (True, False)
    assert verdict(suggest(CONFIRM), outside, mode=Mode.PERMISSIVE, sandbox=BOX, trusted=trust).decision is CONFIRM


@pytest.mark.parametrize("policy", [PolicyEngine(), PolicyEngine((Rule(("edit",), ALLOW, route=Route.SANDBOX),))])
def test_what_would_be_sandboxed_is_asked_about_where_no_sandbox_is(policy: PolicyEngine) -> None:
    decided = verdict(suggest(ALLOW, route=Route.SANDBOX), policy=policy)
    assert (decided.decision, decided.route) == (CONFIRM, Route.HOST)
    assert decided.reasons[-1].code == "no_sandbox"
    assert verdict(suggest(ALLOW, route=Route.SANDBOX), policy=policy, mode=Mode.HEADLESS).decision is DENY


@pytest.mark.parametrize(
    ("rule", "route"),
    [
        pytest.param(Rule(("edit",), ALLOW), Route.HOST, id="a-persons-yes-is-for-the-host"),
        pytest.param(Rule(("edit",), ALLOW, route=Route.SANDBOX), Route.SANDBOX, id="unless-it-says-so"),
        pytest.param(Rule(("edit",), CONFIRM), Route.HOST, id="also-when-asked"),
        pytest.param(Rule(("edit",), CONFIRM, route=Route.SANDBOX), Route.SANDBOX, id="asked-for-the-sandbox"),
        pytest.param(Rule(("edit",), ALLOW, tier="plugin"), Route.SANDBOX, id="a-plugin-is-no-person"),
    ],
)
def test_where_a_call_runs_that_a_rule_speaks_of(rule: Rule, route: Route) -> None:
    boxed = suggest(ALLOW, route=Route.SANDBOX)
    assert verdict(boxed, policy=PolicyEngine((rule,)), sandbox=BOX).route is route


RELYING = suggest(ALLOW, "undoable", relies_on_undo=True)


@pytest.mark.parametrize(
    ("opinions", "expected"),
    [
        pytest.param([RELYING], True, id="alone"),
        pytest.param([RELYING, suggest(ALLOW)], True, id="beside-another-allow"),
        pytest.param([suggest(ALLOW)], False, id="nobody-relies-on-it"),
        pytest.param([RELYING, suggest(CONFIRM)], False, id="a-question-relies-on-nothing"),
        pytest.param([RELYING, floor(DENY)], False, id="nor-does-a-no"),
    ],
)
def test_a_verdict_says_whether_it_allows_because_of_undo(opinions: list[Opinion], expected: bool) -> None:
    for order in itertools.permutations(opinions):
        assert verdict(*order).relies_on_undo is expected


def test_what_a_rule_or_a_mode_allows_relies_on_no_undo() -> None:
    rule = Rule(("edit",), ALLOW)
    assert verdict(RELYING, policy=PolicyEngine((rule,))).relies_on_undo is False
    assert verdict(RELYING, suggest(CONFIRM), mode=Mode.PERMISSIVE).relies_on_undo is False


def test_silence_is_asked_about_in_permissive_mode_too() -> None:
    assert verdict(None, mode=Mode.PERMISSIVE).decision is CONFIRM


def test_the_reasons_are_those_of_what_decided() -> None:
    decided = verdict(suggest(ALLOW, "fine"), floor(CONFIRM, "careful"), suggest(CONFIRM, "well"))
    assert {reason.code for reason in decided.reasons} <= {"careful", "well"}
    assert verdict(suggest(ALLOW, "fine"), floor(DENY, "never")).rule == "never"
    assert verdict(None).rule == "silence"


def test_a_remembered_answer_answers_the_same_question_only() -> None:
    hands = suggest(CONFIRM, "hands", remember="hands")
    known = frozenset({"hands"})
    assert verdict(hands, remembered=known).decision is ALLOW
    assert verdict(suggest(ALLOW), hands, remembered=known).decision is ALLOW
    assert verdict(hands, suggest(CONFIRM, "shell"), remembered=known).decision is CONFIRM
    assert verdict(hands, floor(CONFIRM), remembered=known).decision is CONFIRM
    assert verdict(hands, suggest(DENY), remembered=known).decision is DENY
    assert verdict(hands, policy=PolicyEngine((Rule(("edit",), CONFIRM),)), remembered=known).decision is CONFIRM
    assert verdict(hands, remembered=known, mode=Mode.HEADLESS).decision is not CONFIRM


decisions = st.sampled_from(list(Decision))
opinions = st.builds(
    Opinion,
    rule=st.sampled_from(["a", "b", "c"]),
    suggestion=st.none() | decisions,
    floor=st.none() | decisions,
    catastrophic=st.sampled_from([False, False, False, True]),
    route=st.sampled_from(list(Route)),
    remember=st.none() | st.just("word"),
)
seated = st.lists(st.tuples(st.none() | opinions, st.booleans()), max_size=5)
rules = st.lists(
    st.builds(
        Rule,
        tools=st.sampled_from([("edit",), ("*",), ("look",)]),
        decision=decisions,
        tier=st.sampled_from(["plugin", "workspace", "user", "admin"]),
        tightening=st.booleans(),
        priority=st.sampled_from([0, 5]),
        route=st.sampled_from([None, Route.HOST, Route.SANDBOX]),
        lifts=st.sampled_from([(), ("a",), ("b", "c")]),
    ),
    max_size=3,
)
modes = st.sampled_from(list(Mode))


def judged(seats: Sequence[tuple[Opinion | None, bool]], given_rules: Sequence[Rule], mode: Mode) -> Verdict:
    return verdict(
        *(opinion for opinion, _ in seats),
        trusted=[trust for _, trust in seats],
        policy=PolicyEngine(tuple(given_rules)),
        mode=mode,
    )


@given(seats=seated, given_rules=rules, mode=modes, data=st.data())
def test_the_order_of_judges_never_matters(
    seats: list[tuple[Opinion | None, bool]], given_rules: list[Rule], mode: Mode, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(seats))
    one, other = judged(seats, given_rules, mode), judged(shuffled, given_rules, mode)
    assert (one.decision, one.route, one.catastrophic) == (other.decision, other.route, other.catastrophic)


@given(seats=seated, given_rules=rules, mode=modes)
def test_nothing_goes_below_a_floor_but_a_rule_that_names_it(
    seats: list[tuple[Opinion | None, bool]], given_rules: list[Rule], mode: Mode
) -> None:
    decided = judged(seats, given_rules, mode).decision
    lifted = {
        name
        for rule in given_rules
        if rule.tools != ("look",) and rule.tier in ("user", "admin")
        for name in rule.lifts
    }
    for opinion, _ in seats:
        if opinion is None:
            continue
        if opinion.catastrophic:
            assert decided is DENY
        elif opinion.floor is not None and opinion.rule not in lifted:
            assert STRICTNESS[decided] >= STRICTNESS[opinion.floor]


@given(seats=seated, mode=modes, extra=opinions)
def test_another_untrusted_judge_never_loosens(
    seats: list[tuple[Opinion | None, bool]], mode: Mode, extra: Opinion
) -> None:
    # In silence everybody is asked; whoever then speaks may say deny or confirm, and never allow.
    before = judged(seats, [], mode).decision
    after = judged([*seats, (extra, False)], [], mode).decision
    assert STRICTNESS[after] >= STRICTNESS[before]


@given(seats=seated, given_rules=rules)
def test_allow_needs_somebody_who_may_say_so(seats: list[tuple[Opinion | None, bool]], given_rules: list[Rule]) -> None:
    may = any(o is not None and trust and o.suggestion is ALLOW for o, trust in seats)
    ruled = any(rule.decision is ALLOW and rule.tools != ("look",) for rule in given_rules)
    if not may and not ruled:
        assert judged(seats, given_rules, Mode.DEFAULT).decision is not ALLOW


@given(seats=seated, given_rules=rules)
def test_headless_never_asks(seats: list[tuple[Opinion | None, bool]], given_rules: list[Rule]) -> None:
    assert judged(seats, given_rules, Mode.HEADLESS).decision is not CONFIRM


@given(seats=seated, given_rules=rules)
def test_stricter_modes_are_stricter(seats: list[tuple[Opinion | None, bool]], given_rules: list[Rule]) -> None:
    by_mode = [
        STRICTNESS[judged(seats, given_rules, mode).decision]
        for mode in (Mode.PERMISSIVE, Mode.ACCEPT_EDITS, Mode.DEFAULT, Mode.HEADLESS)
    ]
    assert by_mode == sorted(by_mode)
