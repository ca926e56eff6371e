"""Rules of people: which one counts, what it covers, and what it may lift."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from handrail import (
    Access,
    Decision,
    EvaluationContext,
    Evaluator,
    GrantOption,
    Invocation,
    Mode,
    Opinion,
    Reason,
    Run,
    SubCommand,
    ToolResult,
    Verdict,
    tool,
)
from handrail.api.verdict import STRICTNESS, RegisteredEvaluator
from handrail.config.rule_settings import RuleSettings
from handrail.policy.engine import PolicyEngine, evaluate_call
from handrail.policy.grants import Grant
from handrail.policy.rules import build_rule
from handrail.testing import ScriptedConfirmer, open_test_session

ALLOW, CONFIRM, DENY = Decision.ALLOW, Decision.CONFIRM, Decision.DENY


@tool(effects=[Run("shell", arg="command")])
async def run(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


class Words(Evaluator):
    """Reads commands that are joined by `;`, and finds `rm` dangerous."""

    name = "words"

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        commands = tuple(tuple(part.split()) for part in invocation.args.get("command", "").split(";"))
        dangerous = any(words[:1] == ("rm",) for words in commands)
        return Opinion(
            "words:danger+loud" if dangerous and "LOUD" in str(commands) else "words:danger" if dangerous else "words",
            suggestion=CONFIRM,
            floor=DENY if dangerous else None,
            reasons=(Reason("danger", "it deletes"),) if dangerous else (),
            parts=tuple(map(SubCommand, commands)),
        )


async def call(command: str, *rules: dict[str, Any], answers: Sequence[str] = ()) -> ToolResult:
    async with open_test_session(
        tools=[run],
        evaluators=[Words()],
        trusted=True,
        settings={"policy": {"rules": list(rules)}},
        confirm=ScriptedConfirmer(*answers) if answers else None,
    ) as session:
        return await session.call("run", {"command": command})


def rule(decision: Decision, *command: str, tool: str = "run", **more: Any) -> dict[str, Any]:
    words = {"command": command} if command else {}
    return {"tool": tool, "decision": decision, **words, **more}


def outcome(result: ToolResult) -> str:
    """allow, confirm or deny: what became of a call where nobody answers."""
    return {None: "allow", "no_confirmer": "confirm", "denied_by_policy": "deny", "tool_unavailable": "hidden"}[
        result.error_code
    ]


@pytest.mark.parametrize(
    ("command", "rules", "expected"),
    [
        pytest.param("git push", [], "confirm", id="without-a-rule-the-suggestion-counts"),
        pytest.param("git push", [rule(ALLOW, "git", "push")], "allow", id="an-allow-allows"),
        pytest.param("git push --force", [rule(ALLOW, "git", "push")], "allow", id="a-rule-is-a-prefix-of-words"),
        pytest.param("git pushy", [rule(ALLOW, "git", "push")], "confirm", id="and-not-of-letters"),
        pytest.param("git", [rule(ALLOW, "git", "push")], "confirm", id="a-shorter-command-is-another"),
        pytest.param("git push; curl x", [rule(ALLOW, "git", "push")], "confirm", id="an-allow-must-cover-all"),
        pytest.param("git push; git push x", [rule(ALLOW, "git", "push")], "allow", id="and-may-cover-several"),
        pytest.param("ls; git push", [rule(ALLOW, "ls"), rule(DENY, "git")], "deny", id="a-deny-needs-only-one"),
        pytest.param("ls; git push", [rule(DENY, "git")], "deny", id="wherever-it-stands"),
        pytest.param("ls", [rule(ALLOW)], "allow", id="a-rule-for-all-calls"),
        pytest.param("ls", [rule(ALLOW, tool="*")], "allow", id="a-rule-for-all-tools"),
        pytest.param("ls", [rule(ALLOW, tool="r*n")], "allow", id="a-pattern"),
        pytest.param("ls", [rule(ALLOW, tool="artifact_other")], "confirm", id="another-tool"),
        pytest.param("ls", [rule(DENY)], "hidden", id="a-deny-of-all-calls-hides-the-tool"),
        pytest.param("ls", [rule(ALLOW), rule(CONFIRM)], "confirm", id="of-equal-priority-the-stricter-counts"),
        pytest.param("ls", [rule(CONFIRM), rule(ALLOW)], "confirm", id="in-any-order"),
        pytest.param("ls", [rule(ALLOW, priority=1), rule(DENY)], "allow", id="else-the-higher-priority"),
        pytest.param("ls", [rule(ALLOW, "ls", priority=1), rule(DENY, "ls")], "allow", id="also-of-narrow-ones"),
        pytest.param("ls", [rule(ALLOW, tier="admin"), rule(DENY, "ls")], "allow", id="a-higher-tier-answers-first"),
        pytest.param("ls", [rule(ALLOW), rule(CONFIRM, tier="admin")], "confirm", id="whatever-it-says"),
        pytest.param(
            "ls", [rule(ALLOW, priority=9), rule(DENY, tier="admin")], "hidden", id="priority-is-inside-a-tier"
        ),
        pytest.param("ls", [rule(ALLOW, tier="workspace")], "allow", id="a-trusted-folder-may-allow"),
        pytest.param("ls", [rule(ALLOW), rule(DENY, "ls", tier="workspace")], "allow", id="a-person-over-a-folder"),
        pytest.param("ls", [rule(DENY, "ls", tier="workspace", tightening=True)], "deny", id="an-untrusted-one-denies"),
        pytest.param(
            "git push; rm x",
            [rule(ALLOW, "git", priority=5), rule(DENY, "rm")],
            "deny",
            id="one-denied-part-denies-all",
        ),
        pytest.param("rm x", [rule(ALLOW, "rm")], "deny", id="an-allow-does-not-lift-a-floor"),
        pytest.param("rm x", [rule(ALLOW, "rm", lifts=["words:danger"])], "allow", id="unless-it-names-it"),
        pytest.param("rm x", [rule(CONFIRM, "rm", lifts=["words:danger"])], "confirm", id="to-be-asked-instead"),
        pytest.param("rm x", [rule(ALLOW, "rm", lifts=["other"])], "deny", id="another-name-lifts-nothing"),
        pytest.param("rm LOUD", [rule(ALLOW, "rm", lifts=["words:danger"])], "deny", id="one-of-two-floors-lifts-none"),
        pytest.param(
            "rm LOUD", [rule(ALLOW, "rm", lifts=["words:danger", "words:loud"])], "allow", id="both-of-two-floors"
        ),
        pytest.param(
            "rm x",
            [rule(ALLOW, "rm", lifts=["words:danger"], tier="workspace", tightening=True)],
            "deny",
            id="a-project-lifts-nothing",
        ),
        pytest.param(
            "rm x", [rule(ALLOW, "rm", lifts=["words:danger"], tier="admin")], "allow", id="an-administrator-may"
        ),
        pytest.param(
            "git push; rm x",
            [rule(CONFIRM, "git", lifts=["words:danger"])],
            "deny",
            id="a-rule-lifts-only-what-it-covers",
        ),
        pytest.param(
            "git push; rm x",
            [rule(ALLOW, "git", lifts=["words:danger"])],
            "deny",
            id="an-allow-lifts-only-what-it-covers",
        ),
    ],
)
async def test_rules(command: str, rules: list[dict[str, Any]], expected: str) -> None:
    assert outcome(await call(command, *rules)) == expected


async def test_a_result_names_the_rule_that_decided() -> None:
    result = await call("git push", rule(DENY, "git", "push", name="no pushing"))
    assert result["error"]["details"] == {"rule": "policy:no pushing"}
    assert "'no pushing'" in result["error"]["message"]


async def test_a_hidden_tool_is_neither_listed_nor_callable() -> None:
    async with open_test_session(tools=[run], settings={"policy": {"rules": [rule(DENY, name="no shell")]}}) as session:
        assert "run" not in [tool.name for tool in await session.tools()]
        listed = next(listed for listed in await session.all_tools() if listed.tool.name == "run")
        assert listed.reason is not None
        assert "no shell" in listed.reason
        result = await session.call("run", {"command": "ls"})
    assert result.error_code == "tool_unavailable"
    assert "no shell" in result["error"]["message"]


async def test_a_rule_that_asks_is_asked_each_time() -> None:
    person = ScriptedConfirmer("once", "once")
    async with open_test_session(
        tools=[run],
        evaluators=[Words()],
        trusted=True,
        settings={"policy": {"rules": [rule(CONFIRM)]}, "mode": "permissive"},
        confirm=person,
    ) as session:
        assert (await session.call("run", {"command": "ls"})).ok
        assert (await session.call("run", {"command": "ls"})).ok
    assert len(person.asked) == 2


# Compounds


class Shell(Evaluator):
    """Reads commands joined by `;`; `echo` and `ls` are harmless, `> x` is a redirection, and `(` is not understood."""

    name = "shell"

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        texts = [text.strip() for text in invocation.args["command"].split(";")]
        parts = tuple(map(self._part, texts))
        harmless = all(part.harmless for part in parts)
        catastrophic = any(part.argv[:2] == ("rm", "/") for part in parts)
        return Opinion(
            "shell:read" if harmless else "shell:effect",
            suggestion=ALLOW if harmless else CONFIRM,
            catastrophic=catastrophic,
            reasons=() if harmless else (Reason("effect", "it changes something"),),
            parts=parts,
        )

    def _part(self, text: str) -> SubCommand:
        words: tuple[str, ...] = ("?",) if "(" in text else tuple(text.split())
        touches = [Access("write", f"/work/{word}") for word in words[1:] if words[0] == ">"]
        touches += [Access("delete", word) for word in words[1:] if words[0] == "rm"]
        touches += [Access("network", word) for word in words[1:] if words[0] == "curl"]
        return SubCommand(words, tuple(touches), harmless=words[0] in ("echo", "ls"))


def shell_verdict(
    command: str,
    *rules: dict[str, Any],
    mode: Mode = Mode.DEFAULT,
    interactive: bool = True,
    at_terminal: bool = False,
    grants: Sequence[GrantOption] = (),
) -> Verdict:
    judging = EvaluationContext(
        cwd=Path("/work"),
        home=Path("/home/ada"),
        user="ada",
        environment={},
        workspace=(Path("/work"),),
        platform="linux",
        mode=mode,
        interactive=interactive,
        at_terminal=at_terminal,
    )
    ruled = [RuleSettings.model_validate(each) for each in rules]
    held = [Grant.given(option, judging) for option in grants]
    invocation = Invocation(run, {"command": command}, run.validate({"command": command}), "1")
    policy = PolicyEngine(map(build_rule, ruled), held)
    return asyncio.run(
        evaluate_call(invocation, seats=[RegisteredEvaluator(Shell(), trusted=True)], policy=policy, judging=judging)
    )


GIT = rule(ALLOW, "git")
PUSH_ASKED = rule(CONFIRM, "git", "push", priority=1)


@pytest.mark.parametrize(
    ("command", "rules", "expected"),
    [
        pytest.param("echo x; git log", [GIT], ALLOW, id="harmless-parts-need-no-rule"),
        pytest.param("git log; make", [GIT], CONFIRM, id="other-parts-do"),
        pytest.param("git log; make", [GIT, rule(ALLOW, "make")], ALLOW, id="each-by-some-rule"),
        pytest.param("git log; make", [GIT, rule(ALLOW, "make", tier="workspace")], ALLOW, id="of-any-tier"),
        pytest.param("git log; > out", [GIT], CONFIRM, id="a-redirection-needs-its-own"),
        pytest.param("git log; > out", [GIT, rule(ALLOW, paths="out")], ALLOW, id="which-names-its-file"),
        pytest.param("git log; > out", [GIT, rule(ALLOW, paths="o*")], ALLOW, id="or-a-pattern-of-it"),
        pytest.param("git log; > src/out", [GIT, rule(ALLOW, paths="*")], CONFIRM, id="a-star-is-one-name"),
        pytest.param("git log; > src/out", [GIT, rule(ALLOW, paths="**")], ALLOW, id="two-are-any"),
        pytest.param("A=1; git log", [GIT], CONFIRM, id="an-assignment-needs-its-own"),
        pytest.param("echo (; git log", [GIT], CONFIRM, id="what-is-not-understood-is-not-covered"),
        pytest.param("echo (", [rule(ALLOW)], CONFIRM, id="by-no-rule-at-all"),
        pytest.param("echo (", [rule(DENY, "git"), rule(ALLOW)], CONFIRM, id="nor-is-it-cleared-of-a-deny"),
        pytest.param("git push; git log", [GIT, PUSH_ASKED], CONFIRM, id="one-asked-part-asks"),
        pytest.param("echo x; git push", [rule(DENY, "git", "push")], DENY, id="one-denied-part-denies"),
        pytest.param("echo x", [rule(DENY, "echo")], DENY, id="a-harmless-one-too"),
        pytest.param("git -C x push", [GIT, rule(DENY, "git", "push", priority=1)], CONFIRM, id="not-behind-options"),
        pytest.param("ls -R push", [rule(DENY, "ls", "push")], CONFIRM, id="even-where-they-may-be-its-own"),
        pytest.param("make /work/a", [rule(ALLOW, paths="**")], CONFIRM, id="paths-cover-no-program"),
        pytest.param("rm /work/a", [rule(ALLOW, "rm", paths="a")], ALLOW, id="a-program-in-its-place"),
        pytest.param("rm /work/a /etc/b", [rule(ALLOW, "rm", paths="**")], CONFIRM, id="and-nowhere-else"),
        pytest.param("rm /work/a /etc/b", [rule(ALLOW, "rm"), rule(DENY, paths="/etc")], DENY, id="any-path-denies"),
        pytest.param("rm /etc", [rule(ALLOW, "rm"), rule(DENY, paths="/etc/b/*")], DENY, id="a-folder-above-it-too"),
        pytest.param("curl a.example", [rule(ALLOW, "curl", hosts="*.example")], ALLOW, id="a-host"),
        pytest.param("curl a.example b.org", [rule(ALLOW, "curl", hosts="*.example")], CONFIRM, id="all-hosts"),
        pytest.param("curl a.example b.org", [rule(ALLOW, "curl"), rule(DENY, hosts="b.org")], DENY, id="any-denies"),
    ],
)
def test_rules_of_compound_commands(command: str, rules: list[dict[str, Any]], expected: Decision) -> None:
    assert shell_verdict(command, *rules).decision is expected


@given(
    commands=st.lists(st.sampled_from(["echo x", "git log", "git push", "make", "> out", "("]), min_size=1, max_size=4),
    given_rules=st.lists(
        st.builds(
            lambda decision, command, priority: rule(decision, *command, priority=priority),
            st.sampled_from(Decision),
            st.sampled_from([("git",), ("git", "push"), ("make",)]),
            st.sampled_from([0, 1]),
        ),
        max_size=4,
    ),
)
@settings(deadline=None)
def test_more_parts_never_loosen(commands: list[str], given_rules: list[dict[str, Any]]) -> None:
    alone = [STRICTNESS[shell_verdict(command, *given_rules).decision] for command in commands]
    assert STRICTNESS[shell_verdict(";".join(commands), *given_rules).decision] >= max(alone)


@pytest.mark.parametrize(
    ("rules", "mode", "interactive", "expected"),
    [
        pytest.param([rule(ALLOW, modes=["permissive"])], Mode.DEFAULT, True, CONFIRM, id="not-its-mode"),
        pytest.param([rule(ALLOW, modes="default")], Mode.DEFAULT, True, ALLOW, id="its-mode"),
        pytest.param([rule(DENY, "make", interactive=False)], Mode.DEFAULT, True, CONFIRM, id="somebody-is-there"),
        pytest.param([rule(DENY, "make", interactive=False)], Mode.DEFAULT, False, DENY, id="nobody-is-there"),
        pytest.param([rule(CONFIRM)], Mode.PERMISSIVE, True, CONFIRM, id="a-rule-asks-in-permissive-mode-too"),
        pytest.param([], Mode.PERMISSIVE, True, ALLOW, id="which-else-allows"),
        pytest.param([rule(CONFIRM)], Mode.HEADLESS, False, DENY, id="headless-denies-what-is-asked"),
        pytest.param([rule(ALLOW)], Mode.HEADLESS, False, ALLOW, id="and-not-what-is-allowed"),
        pytest.param([rule(ALLOW)], Mode.PLAN, True, DENY, id="plan-changes-nothing"),
        pytest.param([rule(ALLOW, modes="plan")], Mode.PLAN, True, ALLOW, id="unless-a-rule-names-it"),
    ],
)
def test_rules_and_modes(rules: list[dict[str, Any]], mode: Mode, interactive: bool, expected: Decision) -> None:
    assert shell_verdict("make", *rules, mode=mode, interactive=interactive).decision is expected


LIFTING = rule(CONFIRM, "rm", "/", lifts="catastrophic")


def test_a_catastrophic_call_is_asked_about_under_a_rule_that_names_it_at_a_terminal() -> None:
    verdict = shell_verdict("rm /", LIFTING, at_terminal=True)
    assert (verdict.decision, verdict.catastrophic, verdict.grantable) == (CONFIRM, True, False)


@pytest.mark.parametrize(
    ("command", "lifting", "more"),
    [
        pytest.param("rm /", LIFTING, {}, id="nobody-at-a-terminal"),
        pytest.param("rm /; make", LIFTING, {"at_terminal": True}, id="not-the-whole-call"),
        pytest.param("rm /; (", LIFTING, {"at_terminal": True}, id="not-understood"),
        pytest.param("rm /", {**LIFTING, "tier": "workspace"}, {"at_terminal": True}, id="a-folders-rule"),
        pytest.param("rm /", LIFTING, {"at_terminal": True, "mode": Mode.PLAN}, id="plan"),
        pytest.param("rm /", LIFTING, {"at_terminal": True, "mode": Mode.HEADLESS}, id="headless"),
        pytest.param("rm /", rule(ALLOW, "rm", lifts="shell:effect"), {"at_terminal": True}, id="by-its-floors-name"),
    ],
)
def test_else_it_is_denied(command: str, lifting: dict[str, Any], more: dict[str, Any]) -> None:
    verdict = shell_verdict(command, lifting, **more)
    assert (verdict.decision, verdict.catastrophic) == (DENY, True)


@pytest.mark.parametrize("mode", [Mode.PERMISSIVE, Mode.ACCEPT_EDITS, Mode.DEFAULT])
def test_no_mode_and_no_grant_answers_for_it(mode: Mode) -> None:
    every = GrantOption("all", "run")
    verdict = shell_verdict("rm /", LIFTING, at_terminal=True, mode=mode, grants=[every])
    assert verdict.decision is CONFIRM


@pytest.mark.parametrize(
    ("rules", "mode", "hidden"),
    [
        pytest.param([rule(DENY)], "default", True, id="a-deny-of-all-calls-hides"),
        pytest.param([rule(DENY, "git")], "default", False, id="a-narrow-one-does-not"),
        pytest.param([rule(DENY, modes="plan")], "default", False, id="nor-one-of-another-mode"),
        pytest.param([rule(ALLOW, priority=2), rule(DENY, priority=1)], "default", False, id="an-allow-above-it"),
        pytest.param([rule(ALLOW, "git", priority=2), rule(DENY)], "default", False, id="also-for-some-calls-only"),
        pytest.param([rule(ALLOW, priority=1), rule(DENY, priority=2)], "default", True, id="an-allow-below-it"),
        pytest.param([], "plan", True, id="plan-mode-hides-what-changes-things"),
        pytest.param([rule(ALLOW, "git", modes="plan")], "plan", False, id="but-for-what-a-rule-allows-in-it"),
        pytest.param([rule(ALLOW, "git")], "plan", True, id="and-names"),
    ],
)
async def test_what_a_rule_on_a_whole_tool_makes_visible(rules: list[dict[str, Any]], mode: str, hidden: bool) -> None:
    async with open_test_session(tools=[run], settings={"mode": mode, "policy": {"rules": rules}}) as session:
        assert ("run" not in [tool.name for tool in await session.tools()]) is hidden
        assert ((await session.call("run", {"command": "x"})).error_code == "tool_unavailable") is hidden


def test_an_untrusted_folders_confirm_does_not_undo_a_deny() -> None:
    denied = rule(DENY, "make", tier="workspace", priority=0)
    loosening = rule(CONFIRM, "make", tier="workspace", tightening=True, priority=9)
    assert shell_verdict("make", denied, loosening).decision is DENY


def test_an_untrusted_folders_rule_is_measured_against_suggestions() -> None:
    tightening = rule(CONFIRM, "ls", tier="workspace", tightening=True)
    assert shell_verdict("ls", tightening).decision is CONFIRM
    assert shell_verdict("ls").decision is ALLOW


def test_it_asks_in_permissive_mode_too() -> None:
    tightening = rule(CONFIRM, "make", tier="workspace", tightening=True)
    assert shell_verdict("make", mode=Mode.PERMISSIVE).decision is ALLOW
    assert shell_verdict("make", tightening, mode=Mode.PERMISSIVE).decision is CONFIRM


def test_what_may_be_denied_is_asked_about_and_no_grant_answers() -> None:
    denied = rule(DENY, "git", "push")
    exactly = GrantOption(
        "", "run", call_hash=Invocation(run, {"command": "("}, run.validate({"command": "("}), "1").call_hash
    )
    assert shell_verdict("(", mode=Mode.PERMISSIVE).decision is ALLOW
    assert shell_verdict("(", denied, mode=Mode.PERMISSIVE).decision is CONFIRM
    assert shell_verdict("(", grants=[exactly]).decision is ALLOW
    assert shell_verdict("(", denied, grants=[exactly]).decision is CONFIRM
    assert shell_verdict("(", LIFTING, grants=[exactly]).decision is ALLOW


def test_the_reason_of_a_rule_is_told() -> None:
    verdict = shell_verdict("make", rule(DENY, "make", reason="builds run elsewhere", name="no builds"))
    assert verdict.rule == "policy:no builds"
    assert [reason.text for reason in verdict.reasons] == ["builds run elsewhere"]
