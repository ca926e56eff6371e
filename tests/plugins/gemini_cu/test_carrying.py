"""`execute_computer_use` with any backend that plans: what is judged, done, told, and when it ends."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
import numpy as np
import pytest

from handrail import (
    BackendUnavailable,
    Cost,
    Downstream,
    Frame,
    Input,
    Plan,
    PlannedAction,
    Rect,
    Session,
    ToolContext,
    Turn,
    VisionBackend,
    Window,
    tool,
)
from handrail.testing import ScriptedConfirmer, fake_service, open_test_session
from handrail_gemini_cu import hooks

pytestmark = pytest.mark.anyio

SCREEN = Rect(0, 0, 2560, 1600)
WINDOW = Window("0x1", "Editor", "editor", 1, SCREEN)
Next = Callable[[Sequence[Turn]], Plan]


class Desk:
    """A screen whose every picture is another one, and hands that note what they are given."""

    def __init__(self) -> None:
        self.taken = 0
        self.closed = False

    async def capture(self, area: Rect | None = None) -> Frame:
        self.taken += 1
        return Frame(SCREEN, np.zeros((1, 1, 3), np.uint8), time.monotonic())

    async def surfaces(self) -> list[Window]:
        return [WINDOW]

    async def close(self) -> None:
        self.closed = True


class Planner(VisionBackend):
    """Plans what a test says. `asked` keeps what it was given."""

    name = "planner"
    capabilities = frozenset({"plan_actions"})
    next: Next
    asked: list[tuple[str, Sequence[Turn], Frame]]
    price = Cost()

    async def plan(self, frame: Frame, instruction: str, history: Sequence[Turn]) -> Plan:
        self.asked.append((instruction, tuple(history), frame))
        self.cost += self.price
        return self.next(history)


def planner(next: Next | Sequence[Plan], *, price: Cost = Cost(), chosen: str = "planner") -> type[Planner]:  # noqa: B008 # frozen
    """A backend that gives these plans in turn, or what a function of the history says."""
    plans = next if callable(next) else lambda history: next[len(history)]
    return type("P", (Planner,), {"name": chosen, "next": staticmethod(plans), "asked": [], "price": price})


def click(x: int = 640, y: int = 400, **more: Any) -> PlannedAction:
    return PlannedAction("execute_gui", {"action": "click", "x": x, "y": y}, name="click", **more)


def press(key: str, **more: Any) -> PlannedAction:
    return PlannedAction("execute_gui", {"action": "press_key", "key": key}, name="press_key", **more)


def plan(*actions: PlannedAction, text: str = "", done: bool = False) -> Plan:
    return Plan(actions, text, done)


DONE = plan(text="All is done.", done=True)


class Hands:
    """A stand-in for the tool that works mouse and keyboard."""

    def __init__(self, *failures: Exception | None) -> None:
        self.did: list[dict[str, Any]] = []
        self.failures = list(failures)
        # How many actions it does before it hangs.
        self.most: int | None = None
        self.hanging = anyio.Event()

        @tool(effects=[Input("desktop", arg="text")], requires={"parse_screen"}, exclusive="desktop")
        async def execute_gui(
            action: str,
            x: int | None = None,
            y: int | None = None,
            to_x: int | None = None,
            to_y: int | None = None,
            text: str | None = None,
            key: str | None = None,
            keys: list[str] | None = None,
            observation_id: str | None = None,
            *,
            context: ToolContext,
        ) -> dict[str, Any]:
            """Note it."""
            if len(self.did) == self.most:
                self.hanging.set()
                await anyio.sleep(60)
            if self.failures and (failure := self.failures.pop(0)) is not None:
                raise failure
            given = {
                "action": action,
                "x": x,
                "y": y,
                "text": text,
                "key": key or keys,
                "observation_id": observation_id,
            }
            self.did.append({name: value for name, value in given.items() if value is not None})
            return {"effect": "confirmed"}

        self.tool = execute_gui


@asynccontextmanager
async def working(
    backend: type[Planner], hands: Hands | None = None, **given: Any
) -> AsyncIterator[tuple[Session, Desk]]:
    """A session in which the planner is chosen."""
    desk = Desk()
    settings = {"backend": backend.name, "desktop": "private", **given.pop("settings", {})}
    services = [fake_service("screen", desk), fake_service("hands", desk), fake_service("held_input", desk)]
    tools = [(hands or Hands()).tool, *given.pop("tools", ())]
    async with open_test_session(
        plugins={"gemini_cu": hooks}, tools=tools, backends=[backend], services=services, settings=settings, **given
    ) as session:
        yield session, desk


async def use(session: Session, instruction: str = "do it", **args: Any) -> Any:
    return await session.call("execute_computer_use", {"instruction": instruction, **args})


async def test_each_action_is_a_nested_call_in_pixels_of_the_picture_it_was_planned_from() -> None:
    hands, backend = Hands(), planner([plan(click()), plan(press("enter")), DONE])
    async with working(backend, hands) as (session, _):
        result = await use(session)
    assert result.ok, result
    assert result["description"] == "All is done."
    assert result["effect"] == "unverified"
    # The picture is at most 1280 pixels wide, and the screen 2560.
    assert hands.did[0] == {"action": "click", "x": 320, "y": 200, "observation_id": "o1"}
    assert hands.did[1] == {"action": "press_key", "key": "enter"}
    assert [(taken["function"], taken["result"]["status"]) for taken in result["actions_taken"]] == [
        ("click", "success"),
        ("press_key", "success"),
    ]
    assert result["steps"] == 2


async def test_the_planner_sees_the_screen_anew_after_each_turn_and_what_came_of_its_actions() -> None:
    backend = planner([plan(click(id="a"), press("x", id="b")), DONE])
    async with working(backend) as (session, _):
        await use(session, "write x")
    (instruction, history, frame) = backend.asked[1]
    (turn,) = history
    assert instruction == "write x"
    assert [result["effect"] for result in turn.results] == ["confirmed", "confirmed"]
    assert set(turn.frames) == {"a", "b"}
    assert turn.frame is turn.frames["b"] is frame
    assert turn.frames["a"] is not frame


async def test_what_fails_ends_the_turn_and_is_told_and_the_task_goes_on() -> None:
    hands = Hands(None, Downstream("the button is gone"))
    backend = planner([plan(click(), click(1, 1), click(2, 2)), plan(click(3, 3)), DONE])
    async with working(backend, hands) as (session, _):
        result = await use(session)
    assert result.ok
    assert [taken["result"]["status"] for taken in result["actions_taken"]] == ["success", "error", "success"]
    turn = backend.asked[1][1][0]
    assert [r.status for r in turn.results] == ["success", "error"]
    assert turn.results[1]["error"]["message"] == "the button is gone"


async def test_what_belongs_together_ends_with_its_first_failure() -> None:
    hands = Hands(Downstream("no"))
    together = plan(PlannedAction("execute_gui", {"action": "type", "text": "rm"}, "1"), press("enter", id="1"))
    async with working(planner([together, DONE]), hands) as (session, _):
        assert (await use(session)).ok
    assert hands.did == []


async def test_an_action_that_cannot_be_carried_out_is_called_nowhere_and_told() -> None:
    hands, backend = Hands(), planner([plan(PlannedAction("fly", {}, problem="there is no function 'fly'")), DONE])
    async with working(backend, hands) as (session, _):
        result = await use(session)
    assert result["actions_taken"][0]["result"]["error"]["message"] == "there is no function 'fly'"
    assert backend.asked[1][1][0].results[0].error_code == "invalid_arguments"
    assert hands.did == []


@pytest.mark.parametrize(
    "key",
    [
        "win+r",
        "Windows+R",
        "super+r",
        "meta_l+r",
        "cmd+R",
        "Control+Alt+Del",
        "ctrl+alt+Delete",
        "alt+F4",
        "Option+F4",
        "shift+alt+f4",
    ],
)
async def test_blocked_chords_are_denied_in_any_spelling_and_told(key: str) -> None:
    hands, backend = Hands(), planner([plan(press(key)), DONE])
    async with working(backend, hands) as (session, _):
        result = await use(session)
        assert hands.did == []
        assert result["actions_taken"][0]["result"]["error"]["code"] == "denied_by_policy"
        assert "never pressed" in backend.asked[1][1][0].results[0]["error"]["message"]


async def test_the_same_chords_are_not_denied_to_others() -> None:
    hands = Hands()

    @tool()
    async def closes(context: ToolContext) -> dict[str, Any]:
        """Close the window."""
        return dict(await context.call("execute_gui", {"action": "hotkey", "keys": ["alt", "f4"]}))

    async with working(planner([DONE]), hands, tools=[closes], trusted=True) as (session, _):
        assert (await session.call("closes")).ok
    assert hands.did[0]["key"] == ["alt", "f4"]


async def test_policy_decides_on_each_action() -> None:
    rules = [{"tool": "execute_gui", "decision": "deny"}]
    hands, backend = Hands(), planner([plan(click()), DONE])
    async with working(backend, hands, settings={"policy": {"rules": rules}}) as (session, _):
        result = await use(session)
    assert hands.did == []
    assert "the policy rule 'execute_gui' denies it" in result["actions_taken"][0]["result"]["error"]["message"]


async def test_a_call_takes_at_most_fifteen_steps_and_goes_on_in_the_next() -> None:
    hands, backend = Hands(), planner(lambda history: plan(click()) if len(history) < 20 else DONE)
    async with working(backend, hands) as (session, _):
        first = await use(session)
        assert (first.status, first.error_code, len(hands.did), len(backend.asked)) == (
            "error",
            "limit_reached",
            15,
            15,
        )
        assert "15 steps are taken" in first["error"]["message"]
        second = await use(session)
    assert second.ok
    assert len(hands.did) == 20
    assert len(second["actions_taken"]) == 5


async def test_a_turn_that_is_longer_than_the_budget_goes_on_where_it_was() -> None:
    hands, backend = Hands(), planner([plan(*(click(number, 0, id=str(number)) for number in range(0, 40, 2))), DONE])
    async with working(backend, hands) as (session, _):
        first = await use(session)
        second = await use(session)
    assert (first.error_code, second.status) == ("limit_reached", "success")
    assert [did["x"] for did in hands.did] == list(range(20))
    assert len(backend.asked) == 2
    assert len(backend.asked[1][1][0].results) == 20


async def test_looks_count_as_steps() -> None:
    backend = planner(lambda history: plan(text="looking"))
    async with working(backend) as (session, _):
        assert (await use(session)).error_code == "limit_reached"
    assert len(backend.asked) == 15


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ({"max_tokens": 2000}, "2000 tokens are spent"),
        ({"max_dollars": 0.02}, "0.02 dollars are spent"),
        ({"max_steps": 2}, "2 steps are taken"),
    ],
)
async def test_what_a_call_may_spend_is_limited(limits: dict[str, Any], why: str) -> None:
    backend = planner(lambda history: plan(click()), price=Cost(900, 100, 0.01))
    async with working(backend, settings={"plugins": {"gemini_cu": limits}}) as (session, _):
        result = await use(session)
    assert why in result["error"]["message"]
    assert result["cost"] == {"input_tokens": 1800, "output_tokens": 200, "dollars": 0.02}


async def test_a_model_that_thinks_too_long_ends_the_call() -> None:
    class Slow(planner([])):
        async def plan(self, frame: Frame, instruction: str, history: Sequence[Turn]) -> Plan:
            await anyio.sleep(60)
            return DONE

    async with working(Slow, settings={"plugins": {"gemini_cu": {"max_seconds": 0.05}}}) as (session, _):
        result = await use(session)
    assert "the time is over" in result["error"]["message"]


async def test_a_backend_that_fails_says_why_and_what_was_done() -> None:
    def fails(history: Sequence[Turn]) -> Plan:
        if history:
            raise BackendUnavailable("the model is down")
        return plan(click())

    async with working(planner(fails)) as (session, _):
        result = await use(session)
    assert (result.error_code, len(result["actions_taken"])) == ("backend_unavailable", 1)
    assert "the model is down" in result["error"]["message"]


# Safety


ASKED = click(ask="the model's safety check asks: It buys something.")


async def test_a_safety_decision_is_asked_and_after_a_yes_it_goes_on() -> None:
    person, hands, backend = ScriptedConfirmer("once"), Hands(), planner([plan(ASKED), DONE])
    async with working(backend, hands, confirm=person) as (session, _):
        result = await use(session)
    assert result.ok
    assert len(hands.did) == 1
    (question,) = person.asked
    assert question.tool == "execute_gui"
    assert question.verdict.reasons[-1].text == "the model's safety check asks: It buys something."


async def test_an_earlier_yes_for_the_session_does_not_answer_the_next_safety_decision() -> None:
    person = ScriptedConfirmer("session", "deny")
    async with working(planner([plan(ASKED), plan(ASKED), DONE]), confirm=person) as (session, _):
        result = await use(session)
    assert len(person.asked) == 2
    assert result.error_code == "denied_by_user"


async def test_a_no_to_a_safety_decision_ends_the_call() -> None:
    person, hands, backend = ScriptedConfirmer("deny"), Hands(), planner([plan(ASKED, click()), DONE])
    async with working(backend, hands, confirm=person) as (session, _):
        result = await use(session)
    assert (result.status, result.error_code) == ("denied", "denied_by_user")
    assert hands.did == []
    assert len(backend.asked) == 1


async def test_with_nobody_there_it_waits_and_the_next_call_goes_on_from_there() -> None:
    hands, backend = (
        Hands(),
        planner([plan(click(2, 0, id="a"), click(4, 0, id="b", ask="Buy?"), click(6, 0, id="c")), DONE]),
    )
    async with working(backend, hands) as (session, _):
        waits = await use(session)
        assert (waits.status, waits.error_code) == ("denied", "no_confirmer")
        assert waits["confirmation_request"]["question"] == "Buy?"
        assert [did["x"] for did in hands.did] == [1]
        still = await use(session)
        assert "confirmation_request" in still
        session.confirmer = ScriptedConfirmer("once")
        result = await use(session)
    assert result.ok, result
    assert [did["x"] for did in hands.did] == [1, 2, 3]
    assert len({did["observation_id"] for did in hands.did}) == 1
    assert len(backend.asked) == 2
    assert [r.status for r in backend.asked[1][1][0].results] == ["success"] * 3


async def test_another_instruction_begins_anew() -> None:
    hands = Hands()
    backend = planner(lambda history: plan(click(ask="Buy?")))
    async with working(backend, hands) as (session, _):
        await use(session, "buy it")
        await use(session, "look at it")
    assert [instruction for instruction, _, _ in backend.asked] == ["buy it", "look at it"]
    assert all(not history for _, history, _ in backend.asked)


# Ends


async def test_cancelling_stops_at_once_and_leaves_nothing_pressed() -> None:
    hands, backend = Hands(), planner([plan(click()), plan(click(), click()), DONE])
    hands.most = 1
    results: list[Any] = []
    async with working(backend, hands) as (session, desk), anyio.create_task_group() as group:

        async def call() -> None:
            results.append(await use(session))

        group.start_soon(call)
        with anyio.fail_after(20):
            await hands.hanging.wait()
            session.cancel()
            while not (results and desk.closed):
                await anyio.sleep(0.001)
    assert results[0].status == "cancelled"
    assert len(hands.did) == 1


async def test_plan_only_returns_what_is_planned_and_does_nothing() -> None:
    hands, backend = Hands(), planner([plan(click(id="1"), ASKED, text="I click.")])
    async with working(backend, hands) as (session, _):
        result = await use(session, plan_only=True)
    assert [each["args"]["action"] for each in result["planned"]] == ["click", "click"]
    assert result["planned"][1]["ask"].endswith("It buys something.")
    assert (result["actions_taken"], result["description"]) == ([], "I click.")
    assert hands.did == []


async def test_pictures_that_no_planner_is_sent_are_not_kept() -> None:
    backend = planner(lambda history: plan(click(id="a")) if len(history) < 8 else DONE)
    async with working(backend) as (session, _):
        assert (await use(session)).ok
    kept = [
        frame
        for turn in backend.asked[-1][1]
        for frame in {id(f): f for f in (*turn.frames.values(), turn.frame) if f}.values()
    ]
    assert len(kept) == 3


# The browser


def browsing(**by_hand: Any) -> PlannedAction:
    return PlannedAction(
        "execute_browser",
        {"action": "navigate", "url": "https://example.org/"},
        name="navigate",
        instead=(PlannedAction("execute_gui", {"action": "hotkey", "keys": ["ctrl", "l"]}), press("enter")),
        **by_hand,
    )


async def test_a_browsers_own_tool_opens_pages_where_it_is_there() -> None:
    opened: list[tuple[str, str | None]] = []

    @tool()
    async def execute_browser(
        action: str, url: str | None = None, params: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        """Open a page."""
        opened.append((action, url))
        return {"content": "", "url": url, "tab_id": "t1", "effect": "confirmed"}

    hands, backend = Hands(), planner([plan(browsing()), DONE])
    async with working(backend, hands, tools=[execute_browser], trusted=True) as (session, _):
        assert (await use(session)).ok
    assert opened == [("navigate", "https://example.org/")]
    assert hands.did == []
    assert backend.asked[1][1][0].results[0]["url"] == "https://example.org/"


async def test_where_there_is_none_it_is_done_by_hand() -> None:
    hands = Hands()
    async with working(planner([plan(browsing()), DONE]), hands) as (session, _):
        result = await use(session)
    assert [did["key"] for did in hands.did] == [["ctrl", "l"], "enter"]
    assert result["steps"] == 1
