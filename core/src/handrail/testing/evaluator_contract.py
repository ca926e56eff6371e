"""The contract of an evaluator: subclass it, give the evaluator and calls that it judges, and every promise of a judge is tested."""

from __future__ import annotations

import asyncio
import dataclasses
import re
import sys
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import pytest

from handrail.api.call import Invocation
from handrail.api.tool import Tool
from handrail.api.verdict import Decision, EvaluationContext, Evaluator, Mode, Opinion
from handrail.errors import InvalidArguments

REASON_CODE = re.compile(r"[a-z][a-z0-9_]*")
# Tries of each kind of spoiled text, made anew from the same seed.
SPOILED_PER_TEXT = 40
LONG_TEXT_CHARS = 10_000
# What a judge may not do, as Python's own audit names it.
WATCHED_EVENTS = frozenset((
    "open", "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.chmod", "os.chown", "os.truncate",
    "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "socket.connect", "socket.bind", "socket.sendto",
    "socket.getaddrinfo", "shutil.rmtree",
))  # fmt: skip
ODD_TEXTS = (
    "",
    " ",
    "\n",
    "\0",
    "\x1b[2J",
    "\ud800",
    "漢字",
    "'",
    '"',
    "\\",
    "$(",
    "`",
    "../" * 50,
    "%00",
    "\u202e",
    "\r\n",
    "-",
    "~",
)


class EvaluatorContract:
    """Contract of every evaluator: it answers, always the same, in words, and has no side effects.

        class TestBudget(EvaluatorContract):
            @pytest.fixture
            def evaluator(self):
                return Budget()

            @pytest.fixture
            def tool(self):
                return buy

            @pytest.fixture
            def asked(self):
                return [{"price": 100}]

    Provide the fixtures `evaluator` and `tool` (a tool that it judges), and any of `allowed`, `asked` and `denied`:
    arguments of calls with the suggestion or floor that they must get. `judging` is the context of the calls
    (`build_test_context(tmp_path)` by default).
    """

    @pytest.fixture
    def evaluator(self) -> Evaluator:
        """Return the evaluator under test."""
        raise NotImplementedError("give a fixture `evaluator` that returns the Evaluator")

    @pytest.fixture
    def tool(self) -> Tool:
        """Return a tool whose calls the evaluator judges."""
        raise NotImplementedError("give a fixture `tool` that returns a Tool which the evaluator judges")

    @pytest.fixture
    def allowed(self) -> Sequence[Mapping[str, Any]]:
        """Return arguments of calls that the evaluator allows."""
        return ()

    @pytest.fixture
    def asked(self) -> Sequence[Mapping[str, Any]]:
        """Return arguments of calls that need the user's approval."""
        return ()

    @pytest.fixture
    def denied(self) -> Sequence[Mapping[str, Any]]:
        """Return arguments of calls that the evaluator denies."""
        return ()

    @pytest.fixture
    def judging(self, tmp_path: Path) -> EvaluationContext:
        """Return the context of the calls."""
        return build_test_context(tmp_path)

    @pytest.fixture
    def bench(self, evaluator: Evaluator, tool: Tool, judging: EvaluationContext) -> EvaluatorBench:
        """Return a bench that queries the evaluator."""
        return EvaluatorBench(evaluator, tool, judging)

    @pytest.fixture
    def calls(
        self,
        allowed: Sequence[Mapping[str, Any]],
        asked: Sequence[Mapping[str, Any]],
        denied: Sequence[Mapping[str, Any]],
    ) -> Sequence[Mapping[str, Any]]:
        """Return the arguments of all calls provided."""
        given = [*allowed, *asked, *denied]
        assert given, "Give at least one of the fixtures `allowed`, `asked` and `denied`."
        return given

    # What it says

    def test_it_wants_to_judge_the_tool(self, evaluator: Evaluator, tool: Tool) -> None:
        assert evaluator.applies(tool), "If this fails, `applies` says no to the tool that it is to judge."

    def test_calls_get_what_they_are_worth(
        self,
        bench: EvaluatorBench,
        allowed: Sequence[Mapping[str, Any]],
        asked: Sequence[Mapping[str, Any]],
        denied: Sequence[Mapping[str, Any]],
    ) -> None:
        wanted = {Decision.ALLOW: allowed, Decision.CONFIRM: asked, Decision.DENY: denied}
        for decision, calls in wanted.items():
            for args in calls:
                found = _effective_decision(bench.opinion(args))
                assert found is decision, f"If this fails, {args!r} gets {found}, and {decision} was to come."

    def test_it_says_why(self, bench: EvaluatorBench, calls: Sequence[Mapping[str, Any]]) -> None:
        for args in calls:
            opinion = bench.opinion(args)
            if opinion is None or _effective_decision(opinion) is Decision.ALLOW:
                continue
            assert opinion.rule, f"If this fails, the opinion on {args!r} names no rule."
            assert opinion.reasons, f"If this fails, the opinion on {args!r} gives no reason."
            for reason in opinion.reasons:
                assert REASON_CODE.fullmatch(reason.code), f"If this fails, make {reason.code!r} a code in snake_case."
                assert reason.text.strip(), f"If this fails, the reason {reason.code!r} has no words."
                assert "\n" not in reason.text, f"If this fails, the reason {reason.code!r} has more than one line."

    def test_spans_lie_in_an_argument(self, bench: EvaluatorBench, calls: Sequence[Mapping[str, Any]]) -> None:
        for args in calls:
            opinion = bench.opinion(args)
            longest = max((len(value) for value in args.values() if isinstance(value, str)), default=0)
            for span in _iter_spans(opinion):
                assert 0 <= span[0] <= span[1] <= longest, (
                    f"If this fails, the span {span} of {args!r} lies outside of it."
                )

    def test_what_is_catastrophic_is_denied(self, bench: EvaluatorBench, calls: Sequence[Mapping[str, Any]]) -> None:
        for args in calls:
            opinion = bench.opinion(args)
            if opinion is not None and opinion.catastrophic:
                assert opinion.floor is Decision.DENY, (
                    f"If this fails, {args!r} is catastrophic: give it the floor DENY."
                )

    # What it never does

    def test_it_always_says_the_same(self, bench: EvaluatorBench, calls: Sequence[Mapping[str, Any]]) -> None:
        first = [bench.opinion(args) for args in calls]
        again = [bench.opinion(args) for args in reversed(calls)][::-1]
        assert first == again, "If this fails, the opinion depends on what was judged before."

    def test_no_mode_makes_it_fail(self, bench: EvaluatorBench, calls: Sequence[Mapping[str, Any]]) -> None:
        for mode in Mode:
            for args in calls:
                dataclasses.replace(bench, judging=dataclasses.replace(bench.judging, mode=mode)).opinion(args)

    def test_no_text_makes_it_fail(self, bench: EvaluatorBench, calls: Sequence[Mapping[str, Any]]) -> None:
        for args in calls:
            for spoiled in _iter_spoiled_arguments(args):
                bench.opinion(spoiled)

    def test_it_opens_changes_and_starts_nothing(
        self, bench: EvaluatorBench, calls: Sequence[Mapping[str, Any]]
    ) -> None:
        # What is imported on first use is read now.
        for args in calls:
            bench.opinion(args)
        with watch_audit_events() as acts:
            for args in calls:
                bench.opinion(args)
        assert not acts, f"If this fails, the judge does something itself: {', '.join(sorted(set(acts)))}."


@dataclasses.dataclass(frozen=True, slots=True)
class EvaluatorBench:
    """An evaluator, and the circumstances in which it is asked."""

    evaluator: Evaluator
    tool: Tool
    judging: EvaluationContext

    def opinion(self, args: Mapping[str, Any]) -> Opinion | None:
        """Return the evaluator's opinion on a call; None also for arguments that the tool refuses.

        No evaluator ever sees such arguments.
        """
        try:
            invocation = Invocation(self.tool, args, self.tool.validate(args), "contract")
        except InvalidArguments:
            return None
        return asyncio.run(self.evaluator.opinion(invocation, self.judging))


def build_test_context(folder: Path) -> EvaluationContext:
    """Return the context of a user with a home and a workspace in `folder`.

    It is for this platform, without a usable sandbox.
    """
    home = folder / "home"
    work = home / "work"
    work.mkdir(parents=True, exist_ok=True)
    environment = {"HOME": str(home), "PATH": "/usr/bin:/bin"}
    return EvaluationContext(work, home, "ada", environment, (work,), sys.platform)


def _effective_decision(opinion: Opinion | None) -> Decision | None:
    if opinion is None:
        return None
    if opinion.catastrophic:
        return Decision.DENY
    given = [decision for decision in (opinion.floor, opinion.suggestion) if decision is not None]
    return max(given, key=list(Decision).index, default=None)


def _iter_spans(opinion: Opinion | None) -> Iterator[tuple[int, int]]:
    if opinion is not None:
        yield from (each.span for each in (*opinion.reasons, *opinion.parts) if each.span is not None)


def _iter_spoiled_arguments(args: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the arguments with each text in turn cut, combined with odd ones, and made long."""
    random = Random(0)
    for name, value in args.items():
        if not isinstance(value, str):
            continue
        yield {**args, name: value * (LONG_TEXT_CHARS // max(1, len(value)) + 1)}
        for _ in range(SPOILED_PER_TEXT):
            at = random.randint(0, len(value))
            yield {**args, name: value[:at] + random.choice(ODD_TEXTS) + value[at + random.randint(0, 3) :]}


@contextmanager
def watch_audit_events() -> Generator[list[str]]:
    """Yield a list of the acts on files, processes and sockets by Python code in the block.

    They are given as names of Python audit events.
    """
    acts: list[str] = []
    listening = True

    def hear(event: str, args: tuple[Any, ...]) -> None:
        if listening and event in WATCHED_EVENTS:
            acts.append(event)

    # A hook stays as long as the program; this one turns deaf.
    sys.addaudithook(hear)
    try:
        yield acts
    finally:
        listening = False
