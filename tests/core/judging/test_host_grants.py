"""A yes to hosts: commands that lack nothing else then run in the sandbox with the network to these, and to no others."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from handrail import (
    Access,
    Decision,
    EvaluationContext,
    Invocation,
    Mode,
    Opinion,
    Reach,
    Reason,
    Route,
    Rule,
    Run,
    SandboxOffer,
    SubCommand,
    View,
    tool,
)
from handrail.policy.engine import PolicyEngine
from handrail.policy.grants import Grant, build_grant_options

NPM, PIP = "registry.npmjs.org", "pypi.org"


@tool(effects=[Run("shell", arg="command")], confinable=True)
async def run(command: str = "npm ci") -> None:
    """Run a command."""


def call(command: str = "npm ci") -> Invocation:
    return Invocation(run, {"command": command}, run.validate({"command": command}), "1")


HERE = EvaluationContext(
    cwd=Path("/w"),
    home=Path("/home/ada"),
    user="ada",
    environment={},
    workspace=(Path("/w"),),
    platform="linux",
    sandbox=SandboxOffer("box", filters=True),
)


def fetching(*hosts: str, words: tuple[str, ...] = ("npm", "ci")) -> SubCommand:
    """A part of a command that lacks nothing but these hosts."""
    return SubCommand(words, tuple(Access("network", host) for host in hosts), view=View.WORK)


def needing(*parts: SubCommand) -> Opinion:
    """The opinion on a line of such parts."""
    hosts = tuple(touch.what for part in parts for touch in part.touches if touch.kind == "network")
    reasons = (Reason("needs_network", "it needs the network"),)
    return Opinion(
        "shell:needs_network",
        Decision.CONFIRM,
        route=Route.SANDBOX,
        reasons=reasons,
        parts=parts,
        view=View.WORK,
        reach=Reach(hosts, needed=True),
    )


def granted(*hosts: str, judging: EvaluationContext = HERE) -> Grant:
    """The grant that is offered first with a question about these hosts."""
    verdict = PolicyEngine().decide(call(), [needing(fetching(*hosts))], judging)
    return Grant.given(build_grant_options(call(), verdict)[0], judging)


def test_hosts_are_asked_about_and_given_in_the_sandbox() -> None:
    verdict = PolicyEngine().decide(call(), [needing(fetching(NPM))], HERE)
    assert (verdict.decision, verdict.route, verdict.view) == (Decision.CONFIRM, Route.SANDBOX, View.WORK)
    assert verdict.hosts == (NPM,)
    assert [option.label for option in build_grant_options(call(), verdict)] == [
        f"network to {NPM} for commands that run in the sandbox",
        f"exactly this call, in the sandbox with network to {NPM}",
    ]


def test_granted_hosts_are_not_asked_about_again_and_stay_in_the_sandbox() -> None:
    verdict = PolicyEngine(grants=[granted(NPM)]).decide(
        call("npm i"), [needing(fetching(NPM, words=("npm", "i")))], HERE
    )
    assert (verdict.decision, verdict.route, verdict.view) == (Decision.ALLOW, Route.SANDBOX, View.WORK)
    assert verdict.hosts == (NPM,)
    assert verdict.rule == "grant"


def test_hosts_of_several_grants_count_together() -> None:
    policy = PolicyEngine(grants=[granted(NPM), granted(PIP)])
    verdict = policy.decide(call(), [needing(fetching(NPM), fetching(PIP, NPM))], HERE)
    assert verdict.decision is Decision.ALLOW
    assert set(verdict.hosts) == {NPM, PIP}
    assert len(verdict.grants) == 2


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param([fetching(NPM, "evil.example")], id="one-host-more"),
        pytest.param([fetching(NPM), fetching("evil.example")], id="one-part-more"),
        pytest.param([fetching(f"{NPM}:8443")], id="another-port"),
        pytest.param([fetching(f"evil.{NPM}")], id="a-name-below"),
        pytest.param([fetching("")], id="a-host-that-is-not-known"),
        pytest.param([fetching(NPM), SubCommand(("rm", "/x"))], id="a-part-that-needs-more"),
        pytest.param([fetching(NPM), SubCommand(("?",))], id="a-part-that-was-not-understood"),
    ],
)
def test_whatever_is_more_is_asked_about(parts: list[SubCommand]) -> None:
    assert PolicyEngine(grants=[granted(NPM)]).decide(call(), [needing(*parts)], HERE).decision is Decision.CONFIRM


def test_hosts_do_not_answer_for_a_call_that_needs_more_of_the_network() -> None:
    """`ping` names a granted host and has no use for a proxy: what the evaluator says of it holds."""
    ping = _asked(fetching(NPM, words=("ping", NPM)))
    verdict = PolicyEngine(grants=[granted(NPM)]).decide(call(), [ping], HERE)
    assert (verdict.decision, verdict.route, verdict.hosts) == (Decision.CONFIRM, Route.HOST, ())


def test_parts_beside_that_need_nothing_more_are_no_question() -> None:
    beside = SubCommand(("make",), view=View.WORK), SubCommand(("echo",), harmless=True, view=View.SHELL)
    verdict = PolicyEngine(grants=[granted(NPM)]).decide(call(), [needing(fetching(NPM), *beside)], HERE)
    assert (verdict.decision, verdict.route) == (Decision.ALLOW, Route.SANDBOX)


def test_hosts_never_take_a_call_to_the_host() -> None:
    """A grant of commands is for the host: together with one of hosts it would give the whole of it."""
    push = SubCommand(("git", "push"), (Access("network", "git.example"),))
    allowed = Grant.given(build_grant_options(call(), PolicyEngine().decide(call(), [_asked(push)], HERE))[1], HERE)
    policy = PolicyEngine(grants=[granted(NPM), allowed])
    assert policy.decide(call(), [_asked(push)], HERE).route is Route.HOST
    both = replace(_asked(push), parts=(fetching(NPM), push))
    assert policy.decide(call(), [both], HERE).decision is Decision.CONFIRM


def test_a_grant_takes_nothing_to_the_host_that_is_allowed_as_it_is() -> None:
    search = SubCommand(("grep", "x", "/srv/log"), (Access("read", "/srv/log"),))
    grant = Grant.given(build_grant_options(call(), PolicyEngine().decide(call(), [_asked(search)], HERE))[1], HERE)
    less = SubCommand(("grep", "x"), view=View.READ)
    opinion = Opinion("shell", Decision.ALLOW, route=Route.SANDBOX, parts=(less,), view=View.READ)
    policy = PolicyEngine(grants=[grant])
    verdict = policy.decide(call("grep x"), [opinion], HERE)
    assert (verdict.decision, verdict.route, verdict.view) == (Decision.ALLOW, Route.SANDBOX, View.READ)
    assert policy.decide(call(), [_asked(search)], HERE).route is Route.HOST


def _asked(part: SubCommand) -> Opinion:
    return Opinion("shell:x", Decision.CONFIRM, reasons=(Reason("x", "x"),), parts=(part,), narrowed=(part.argv[:2],))


def test_a_floor_is_asked_about_and_the_call_stays_in_the_sandbox() -> None:
    taint = Opinion("taint", floor=Decision.CONFIRM, reasons=(Reason("taint", "it came from a page"),))
    verdict = PolicyEngine(grants=[granted(NPM)]).decide(call(), [needing(fetching(NPM)), taint], HERE)
    assert (verdict.decision, verdict.route, verdict.hosts) == (Decision.CONFIRM, Route.SANDBOX, (NPM,))
    assert not build_grant_options(call(), replace(verdict, grantable=False))


@pytest.mark.parametrize("sandbox", [None, SandboxOffer("box")])
def test_hosts_are_given_by_a_sandbox_that_can_limit_them_only(sandbox: SandboxOffer | None) -> None:
    elsewhere = replace(HERE, sandbox=sandbox)
    opinion = Opinion("shell:needs_network", Decision.CONFIRM, parts=(fetching(NPM),))
    verdict = PolicyEngine(grants=[granted(NPM)]).decide(call(), [opinion], elsewhere)
    assert (verdict.decision, verdict.route) == (Decision.CONFIRM, Route.HOST)


def test_a_command_that_may_need_them_gets_what_was_granted() -> None:
    building = Opinion(
        "shell:effect",
        Decision.ALLOW,
        route=Route.SANDBOX,
        parts=(SubCommand(("cargo", "build"), view=View.WORK),),
        view=View.WORK,
        reach=Reach(("index.crates.io",)),
    )
    assert PolicyEngine().decide(call(), [building], HERE).hosts == ()
    verdict = PolicyEngine(grants=[granted(NPM)]).decide(call(), [building], HERE)
    assert (verdict.decision, verdict.hosts) == (Decision.ALLOW, (NPM,))


def test_exactly_this_call_is_for_the_hosts_it_had() -> None:
    exact = Grant.given(
        build_grant_options(call(), PolicyEngine().decide(call(), [needing(fetching(NPM))], HERE))[1], HERE
    )
    policy = PolicyEngine(grants=[exact])
    verdict = policy.decide(call(), [needing(fetching(NPM))], HERE)
    assert (verdict.decision, verdict.route, verdict.hosts) == (Decision.ALLOW, Route.SANDBOX, (NPM,))
    assert policy.decide(call("npm i"), [needing(fetching(NPM))], HERE).decision is Decision.CONFIRM
    assert policy.decide(call(), [needing(fetching("evil.example"))], HERE).decision is Decision.CONFIRM


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        pytest.param(Rule(("run",), Decision.DENY, hosts=(NPM,)), (Decision.DENY, ()), id="denied"),
        pytest.param(Rule(("run",), Decision.CONFIRM, hosts=(NPM,), tier="admin"), (Decision.CONFIRM, ()), id="asked"),
        pytest.param(
            Rule(("run",), Decision.ALLOW, command=("npm", "ci"), hosts=(NPM,), route=Route.SANDBOX),
            (Decision.ALLOW, (NPM,)),
            id="allowed-by-name",
        ),
        pytest.param(
            Rule(("run",), Decision.ALLOW, command=("npm", "ci"), route=Route.SANDBOX),
            (Decision.ALLOW, ()),
            id="no-hosts",
        ),
    ],
)
def test_rules_speak_of_hosts(rule: Rule, expected: tuple[Decision, tuple[str, ...]]) -> None:
    verdict = PolicyEngine([rule]).decide(call(), [needing(fetching(NPM))], HERE)
    assert verdict.decision is expected[0]
    assert verdict.decision is Decision.DENY or verdict.hosts == expected[1]


def test_a_folder_that_nobody_trusts_sends_nothing_to_the_host() -> None:
    rule = Rule(("run",), Decision.CONFIRM, command=("npm",), tier="workspace", tightening=True)
    verdict = PolicyEngine([rule], [granted(NPM)]).decide(call(), [needing(fetching(NPM))], HERE)
    assert (verdict.decision, verdict.route, verdict.hosts) == (Decision.ALLOW, Route.SANDBOX, (NPM,))
    asked = PolicyEngine([rule]).decide(call(), [needing(fetching(NPM))], HERE)
    assert (asked.decision, asked.route) == (Decision.CONFIRM, Route.SANDBOX)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (Mode.HEADLESS, (Decision.DENY, ())),
        (Mode.PERMISSIVE, (Decision.ALLOW, (NPM,))),
        (Mode.ACCEPT_EDITS, (Decision.CONFIRM, (NPM,))),
    ],
)
def test_modes(mode: Mode, expected: tuple[Decision, tuple[str, ...]]) -> None:
    verdict = PolicyEngine().decide(call(), [needing(fetching(NPM))], replace(HERE, mode=mode))
    assert verdict.decision is expected[0]
    assert verdict.decision is Decision.DENY or (verdict.route, verdict.hosts) == (Route.SANDBOX, expected[1])
