"""Which sandbox is chosen, what judges are told of it, and that nothing is routed to one that is not there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handrail import (
    Bounds,
    ConfigError,
    Confined,
    Decision,
    EvaluationContext,
    Evaluator,
    Invocation,
    NoSandbox,
    Opinion,
    Route,
    Run,
    Sandbox,
    ToolContext,
    tool,
)
from handrail.api.sandbox import ALL_ASPECTS
from handrail.testing import Always
from handrail.testing.session_fixtures import OpenSession

IN_SANDBOX = Opinion("jailed", Decision.ALLOW, route=Route.SANDBOX)


class Plain(Sandbox):
    """Confines nothing, and says that it does."""

    name = "plain"
    confines = ALL_ASPECTS
    networks = True

    def confine(self, argv: Sequence[str], *, cwd: Path, environment: Mapping[str, str], bounds: Bounds) -> Confined:
        return Confined(tuple(argv), environment)


class Absent(Plain):
    name = "absent"

    @classmethod
    def missing(cls) -> str | None:
        return "it is not here; get it"


class Broken(Plain):
    name = "broken"

    async def check(self) -> None:
        raise NoSandbox("it does not start", hint="mend it")


class Crashing(Plain):
    name = "crashing"

    async def check(self) -> None:
        raise ValueError("a bug")


class Half(Plain):
    name = "half"
    confines = frozenset(("process",))


class Seen(Evaluator):
    """Routes everything to the sandbox, and keeps what it was told."""

    name = "seen"

    def __init__(self) -> None:
        self.judging: EvaluationContext | None = None

    async def opinion(self, invocation: Invocation, judging: EvaluationContext) -> Opinion | None:
        self.judging = judging
        return IN_SANDBOX


@tool(effects=[Run("shell", arg="command")], confinable=True)
async def shell(command: str, context: ToolContext) -> dict[str, Any]:
    """Say where a command would run."""
    return {"where": context.sandbox.name if context.sandbox else "host"}


@tool(effects=[Run("shell", arg="command")])
async def plain_shell(command: str) -> None:
    """Run a command on the host, whatever is asked."""


@pytest.mark.parametrize(
    ("registered", "use", "chosen"),
    [
        pytest.param([Plain], [], "plain", id="the-only-one"),
        pytest.param([Absent, Broken, Crashing, Half, Plain], [], "plain", id="first-that-works"),
        pytest.param([Plain, Absent], ["absent", "plain"], "plain", id="in-the-order-wanted"),
        pytest.param([Absent], [], None, id="none-works"),
        pytest.param([Half], [], None, id="one-that-withholds-too-little-does-not-count"),
        pytest.param([Plain], ["none"], None, id="none-wanted"),
        pytest.param([], [], None, id="none-registered"),
    ],
)
async def test_the_first_that_works_is_chosen(
    handrail_session: OpenSession, registered: list[type[Sandbox]], use: list[str], chosen: str | None
) -> None:
    async with handrail_session(sandboxes=registered, settings={"sandbox": {"use": use}}) as session:
        found = (await session.runtime.sandbox()).sandbox
    assert (found.name if found else None) == chosen


async def test_why_others_were_not_taken_is_known(handrail_session: OpenSession) -> None:
    async with handrail_session(sandboxes=[Absent, Broken, Half]) as session:
        told = dict((await session.runtime.sandbox()).refused)
    assert told["absent"] == "it is not here; get it"
    assert told["broken"] == "it does not start; mend it"
    assert "network, read, write" in told["half"]


async def test_judges_are_told_what_the_sandbox_gives(handrail_session: OpenSession, tmp_path: Path) -> None:
    judge = Seen()
    (tmp_path / "cache").mkdir()
    settings = {"sandbox": {"network": True, "writable": [str(tmp_path / "cache"), "/srv/is-not-there"]}}
    async with handrail_session(
        tools=[shell, plain_shell], evaluators=[judge], sandboxes=[Plain], settings=settings
    ) as s:
        await s.call("shell", {"command": "make"})
        offer = judge.judging and judge.judging.sandbox
        await s.call("plain_shell", {"command": "make"})
    assert offer is not None
    assert (offer.name, offer.network, offer.writable) == ("plain", True, (str(tmp_path / "cache"),))
    assert judge.judging is not None
    assert judge.judging.sandbox is None, "a tool that cannot be confined is offered no sandbox"


async def test_evaluate_is_told_the_same_as_a_session(handrail_session: OpenSession) -> None:
    judge = Seen()
    async with handrail_session(tools=[shell], evaluators=[judge], sandboxes=[Plain]) as session:
        await session.runtime.supposing.evaluate("shell", {"command": "make"}, session.runtime.judging)
        here = judge.judging and judge.judging.sandbox
        await session.runtime.supposing.evaluate(
            "shell", {"command": "make"}, replace(session.runtime.judging, platform="win32")
        )
    assert here is not None
    assert judge.judging is not None
    assert judge.judging.sandbox is None, "the sandbox here says nothing of another platform"


@pytest.mark.parametrize("root", ["/", "/tmp", "/usr/share", "home", "above-home"])
async def test_no_sandbox_is_offered_for_a_workspace_that_is_too_much(handrail_session: OpenSession, root: str) -> None:
    judge = Seen()
    async with handrail_session(tools=[shell], evaluators=[judge], sandboxes=[Plain], trusted=True) as session:
        home = session.runtime.judging.home
        folder = {"home": home, "above-home": home.parent}.get(root, Path(root))
        async with session.runtime.session(workspace=[folder]) as other:
            result = await other.call("shell", {"command": "make"})
    assert judge.judging is not None
    assert judge.judging.sandbox is None
    assert result.error_code == "no_sandbox"


async def test_a_routed_call_runs_in_the_sandbox_and_says_so(handrail_session: OpenSession) -> None:
    async with handrail_session(tools=[shell], evaluators=[Always(IN_SANDBOX)], sandboxes=[Plain], trusted=True) as s:
        result = await s.call("shell", {"command": "make"})
    assert (result["where"], result["sandbox"], result["network"]) == ("plain", "plain", False)


@pytest.mark.parametrize(("name", "sandboxes"), [("shell", []), ("shell", [Broken]), ("plain_shell", [Plain])])
async def test_a_routed_call_never_runs_on_the_host(
    handrail_session: OpenSession, name: str, sandboxes: list[type[Sandbox]]
) -> None:
    judges = [Always(IN_SANDBOX)]
    async with handrail_session(tools=[shell, plain_shell], evaluators=judges, sandboxes=sandboxes, trusted=True) as s:
        result = await s.call(name, {"command": "make"})
    assert (result.status, result.error_code) == ("denied", "no_sandbox")


async def test_an_unknown_sandbox_in_the_configuration_is_an_error(handrail_session: OpenSession) -> None:
    with pytest.raises(ConfigError, match="no sandbox 'plian' here; did you mean 'plain'"):
        async with handrail_session(sandboxes=[Plain], settings={"sandbox": {"use": ["plian"]}}):
            pass
