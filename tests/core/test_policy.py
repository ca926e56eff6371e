"""Rules of people: which one counts, what it covers, and what it may lift."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from handrail import Decision, Evaluator, Invocation, Judging, Opinion, Part, Reason, Run, ToolResult, tool
from handrail.testing import ScriptedConfirmer, open_test_session

ALLOW, CONFIRM, DENY = Decision.ALLOW, Decision.CONFIRM, Decision.DENY


@tool(effects=[Run("shell", arg="command")])
async def run(command: str) -> str:
    """Run a command."""
    return f"ran {command}"


class Words(Evaluator):
    """Reads commands that are joined by `;`, and finds `rm` dangerous."""

    name = "words"

    async def opinion(self, invocation: Invocation, judging: Judging) -> Opinion | None:
        commands = tuple(tuple(part.split()) for part in invocation.args.get("command", "").split(";"))
        dangerous = any(words[:1] == ("rm",) for words in commands)
        return Opinion(
            "words:danger" if dangerous else "words",
            suggestion=CONFIRM,
            floor=DENY if dangerous else None,
            reasons=(Reason("danger", "it deletes"),) if dangerous else (),
            parts=tuple(map(Part, commands)),
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
    return {"tool": tool, "decision": decision, "command": command, **more}


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
        pytest.param("ls", [rule(ALLOW, tool="other")], "confirm", id="another-tool"),
        pytest.param("ls", [rule(DENY)], "hidden", id="a-deny-of-all-calls-hides-the-tool"),
        pytest.param("ls", [rule(ALLOW), rule(CONFIRM)], "allow", id="of-one-tier-the-first-counts"),
        pytest.param(
            "ls", [rule(ALLOW, tier="admin"), rule(CONFIRM, tier="project")], "confirm", id="of-several-the-strictest"
        ),
        pytest.param("ls", [rule(ALLOW, tier="project"), rule(CONFIRM, tier="admin")], "confirm", id="whichever-it-is"),
        pytest.param("rm x", [rule(ALLOW, "rm")], "deny", id="an-allow-does-not-lift-a-floor"),
        pytest.param("rm x", [rule(ALLOW, "rm", lifts=["words:danger"])], "allow", id="unless-it-names-it"),
        pytest.param("rm x", [rule(CONFIRM, "rm", lifts=["words:danger"])], "confirm", id="to-be-asked-instead"),
        pytest.param("rm x", [rule(ALLOW, "rm", lifts=["other"])], "deny", id="another-name-lifts-nothing"),
        pytest.param(
            "rm x", [rule(ALLOW, "rm", lifts=["words:danger"], tier="project")], "deny", id="a-project-lifts-nothing"
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
