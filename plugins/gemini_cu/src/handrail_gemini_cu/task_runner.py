"""Carrying out what a backend plans: look, ask, have each action judged and done, look again; until it is done or the budget is spent."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from time import monotonic
from typing import Any, Final, Protocol, cast

import anyio

from handrail import (
    BackendUnavailable,
    Cost,
    Frame,
    HandrailError,
    InvalidArguments,
    Plan,
    PlannedAction,
    Screen,
    Stopped,
    ToolContext,
    ToolResult,
    ToolUnavailable,
    Transform,
    Turn,
    Window,
)
from handrail.desktop.load_timeouts import scale_timeout
from handrail.errors import DeniedByUser, LimitReached, NoConfirmer, UnknownTool
from handrail_gemini_cu.config import ComputerUseConfig

# Where nobody supplies a tool, what stands in for it is done.
ABSENT_CODES: Final = frozenset({UnknownTool.code, ToolUnavailable.code})
# Pictures that are kept of what was seen; planners send no more.
MAX_PICTURES: Final = 3
# Seconds that what took effect is given to be seen on the screen, and between two looks for it.
PAINTED_S: Final = 1.0
LOOK_INTERVAL_S: Final = 0.02
POINT_ARGUMENTS: Final = (("x", "y"), ("to_x", "to_y"))
RESUME_HINT: Final = "call again with the same instruction, and it goes on"
PROGRESS_TITLE: Final = "Using the computer"
# What a host is told of each action's result.
RESULT_KEYS: Final = ("status", "description", "target", "coordinates", "effect", "content", "url", "error", "note")


class BrowserAccess(Protocol):
    """Required part of the capability `browser`."""

    async def address(self) -> str | None:
        """Return the address of the active tab; None while no browser is running."""
        ...


class ScreenSurfaces(Protocol):
    """Required part of the capability `hands`."""

    async def surfaces(self) -> list[Window]:
        """Everything that covers a part of the screen, topmost first."""
        ...


@dataclass(slots=True)
class UnfinishedTask:
    """Task that is not finished yet: its turns so far, and an interrupted one.

    `observation`: the observation to which the coordinates of that turn belong.
    """

    instruction: str
    backend: str | None
    turns: list[Turn] = field(default_factory=list[Turn])
    waiting: Turn | None = None
    observation: str = ""


class SessionTasks:
    """The task that a session has not finished. The capability `computer_use` (scope session)."""

    def __init__(self) -> None:
        self.unfinished: UnfinishedTask | None = None

    def take(self, instruction: str, backend: str | None) -> UnfinishedTask:
        """Return the task for an instruction: the unfinished one if it matches, else a new one that replaces it."""
        task = self.unfinished
        if task is None or (task.instruction, task.backend) != (instruction, backend):
            task = self.unfinished = UnfinishedTask(instruction, backend)
        return task

    async def close(self) -> None:
        """Forget it."""
        self.unfinished = None


@dataclass(slots=True)
class CallBudget:
    """Remaining budget of one call."""

    limits: ComputerUseConfig
    began: float = field(default_factory=monotonic)
    steps: int = 0
    cost: Cost = field(default_factory=Cost)

    @property
    def seconds_left(self) -> float:
        return self.limits.max_seconds - (monotonic() - self.began)

    @property
    def spent(self) -> str | None:
        """The part of the budget that is used up, or None."""
        limits, cost = self.limits, self.cost
        if self.steps >= limits.max_steps:
            return f"{limits.max_steps} steps are taken"
        if self.seconds_left <= 0:
            return f"{limits.max_seconds:g} seconds are over"
        if cost.input_tokens + cost.output_tokens >= limits.max_tokens:
            return f"{limits.max_tokens} tokens are spent"
        if limits.max_dollars is not None and cost.dollars >= limits.max_dollars:
            return f"{limits.max_dollars:g} dollars are spent"
        return None


async def plan_actions(instruction: str, context: ToolContext) -> dict[str, Any]:
    """Return the next planned actions without doing anything."""
    screen = cast("Screen", await context.service("screen"))
    answered = await context.vision.plan(await screen.capture(), instruction, ())
    plan = answered.value
    return {
        "planned": [_describe_action(action) for action in plan.actions],
        "actions_taken": [],
        "description": plan.text,
        "actual_backend": answered.backend,
    }


async def run_instruction(instruction: str, context: ToolContext) -> dict[str, Any]:
    """Carry out an instruction, or continue one that was not finished."""
    tasks = cast("SessionTasks", await context.service("computer_use"))
    task = tasks.take(instruction, context.session.backend)
    work = TaskRun(context, tasks, task, await context.service("screen"), await context.service("hands"))
    try:
        return await work.run()
    finally:
        # In a task of its own: whoever cancels the call does not cancel that.
        await asyncio.shield(asyncio.get_running_loop().create_task(work.let_go()))


class CallOver(Exception):
    """The call is over before the task is done; `result` says why."""

    def __init__(self, result: dict[str, Any]) -> None:
        super().__init__()
        self.result = result


class TaskRun:
    """One call under way."""

    def __init__(
        self, context: ToolContext, tasks: SessionTasks, task: UnfinishedTask, screen: Screen, hands: ScreenSurfaces
    ) -> None:
        self._context, self._tasks, self._task, self._screen, self._hands = context, tasks, task, screen, hands
        self._budget = CallBudget(cast("ComputerUseConfig", context.config))
        self._taken: list[dict[str, Any]] = []
        self._observation = ""
        self._shown: Frame | None = None

    async def run(self) -> dict[str, Any]:
        """Turn after turn, until the model is done or the budget is spent."""
        frame = await self._look()
        try:
            while True:
                self._context.checkpoint()
                self._go_on()
                turn = self._task.waiting
                if turn is None:
                    turn = Turn(await self._plan(frame))
                    self._task.observation = self._observation
                plan = turn.plan
                if plan.actions or not plan.done:
                    turn = await self._turn(turn)
                if plan.done and all(result.ok for result in turn.results):
                    self._tasks.unfinished = None
                    return self._told({"description": plan.text, "effect": "unverified"})
                self._remember(turn)
                assert turn.frame is not None
                frame = turn.frame
        except CallOver as over:
            return over.result

    def _go_on(self) -> None:
        """End the call when its budget is spent."""
        if (spent := self._budget.spent) is not None:
            raise CallOver(self._stopped(LimitReached(f"{spent}, and the task is not finished", hint=RESUME_HINT)))

    async def let_go(self) -> None:
        """Leave no button pressed."""
        if not self._taken:
            return
        with contextlib.suppress(HandrailError):
            await (await self._context.service("held_input")).close()

    # Looking and planning

    async def _look(self, *, changed: bool = False) -> Frame:
        """Capture the current screen; coordinates in this picture are valid while its windows stay in place.

        `changed`: an action took effect. A page exists a moment before it is painted.
        """
        frame, late = await self._screen.capture(), monotonic() + scale_timeout(PAINTED_S)
        while changed and self._shows(frame) and monotonic() < late:
            await anyio.sleep(LOOK_INTERVAL_S)
            frame = await self._screen.capture()
        self._shown = frame
        seen = self._context.observations.add(
            (),
            transform=Transform.fit(frame.screen),
            windows=await self._hands.surfaces(),
            backend=self._task.backend or "",
        )
        self._observation = seen.id
        return frame

    def _shows(self, frame: Frame) -> bool:
        """Return True if the screen has not changed since the last capture."""
        import numpy as np

        return self._shown is not None and np.array_equal(self._shown.pixels, frame.pixels)

    async def _address(self) -> str | None:
        """Return the address of the session's browser, which a click on the screen may have changed, too."""
        try:
            pages = cast("BrowserAccess", await self._context.service("browser"))
        except ToolUnavailable:
            return None
        return await pages.address()

    async def _plan(self, frame: Frame) -> Plan:
        try:
            with anyio.fail_after(max(0.0, self._budget.seconds_left)):
                answered = await self._context.vision.plan(frame, self._task.instruction, self._task.turns)
        except TimeoutError:
            raise CallOver(
                self._stopped(LimitReached("the time is over, and the task is not finished", hint=RESUME_HINT))
            ) from None
        except BackendUnavailable as exc:
            raise CallOver(self._stopped(exc)) from exc
        self._budget.cost += answered.cost
        plan = answered.value
        if not plan.actions and not plan.done:
            # A look alone is a step, too.
            self._budget.steps += 1
        if not plan.done:
            self._context.progress(min(1.0, self._budget.steps / self._budget.limits.max_steps), plan.text)
        return plan

    # Acting

    async def _turn(self, begun: Turn) -> Turn:
        """Carry out the turn until something fails; actions already done in an earlier call are not repeated."""
        plan, results, frames, urls = begun.plan, list(begun.results), dict(begun.frames), dict(begun.urls)
        place = 0
        for id, group in _group_actions(plan.actions):
            before, place = place, place + len(group)
            todo = group[max(0, len(results) - before) :]
            if not todo:
                continue
            self._task.waiting = Turn(plan, tuple(results), frames=frames, urls=urls)
            self._go_on()
            self._budget.steps += 1
            for action in todo:
                results.append(await self._acted(action))
                self._task.waiting = Turn(plan, tuple(results), frames=frames, urls=urls)
                if not results[-1].ok:
                    break
            frames[id] = await self._look(changed=results[-1].get("effect") == "confirmed")
            if (url := await self._address()) is not None:
                urls[id] = url
            if not results[-1].ok:
                break
        self._task.waiting = None
        last = list(frames.values())[-1] if frames else await self._look()
        return Turn(plan, tuple(results), last, frames=frames, urls=urls)

    async def _acted(self, action: PlannedAction) -> ToolResult:
        """Carry out one action and return its result.

        Ends the call if a user must be present, denies what the model's safety check asked about, or stops the action.
        """
        self._context.checkpoint()
        result = await self._do(action)
        if result.error_code == NoConfirmer.code:
            raise CallOver(self._waits(action, result))
        self._taken.append(
            _describe_action(action) | {"result": {key: result[key] for key in RESULT_KEYS if key in result}}
        )
        if result.status == Stopped.status:
            raise CallOver(self._told(dict(result)))
        if action.ask is not None and result.error_code == DeniedByUser.code:
            raise CallOver(self._refused(result))
        return result

    async def _do(self, action: PlannedAction) -> ToolResult:
        if action.problem is not None:
            return ToolResult.failure(InvalidArguments(action.problem), title=PROGRESS_TITLE)
        result = await self._called(action)
        if result.error_code in ABSENT_CODES and action.instead:
            for each in action.instead:
                result = await self._called(replace(each, ask=action.ask if each is action.instead[0] else None))
                if not result.ok:
                    break
        return result

    async def _called(self, action: PlannedAction) -> ToolResult:
        try:
            args = self._placed(action)
        except HandrailError as exc:
            return ToolResult.failure(exc, title=PROGRESS_TITLE)
        return await self._context.call(action.tool, args, ask=action.ask)

    def _placed(self, action: PlannedAction) -> Mapping[str, Any]:
        """Return the arguments for an action.

        For tools that accept an observation, coordinates are converted to pixels of the one that the plan was made
        from.
        """
        tool = self._context.session.listing.known(action.tool)
        args = dict(action.args)
        named = [(x, y) for x, y in POINT_ARGUMENTS if _is_number(args.get(x)) and _is_number(args.get(y))]
        if tool is None or "observation_id" not in tool.fields or not named:
            return args
        # All actions of a plan are about the picture that it was made from.
        transform = self._context.observations.get(self._task.observation).transform
        assert transform is not None
        for x, y in named:
            args[x], args[y] = _to_picture_point(args[x], args[y], transform)
        return {**args, "observation_id": self._task.observation}

    # Results

    def _remember(self, turn: Turn) -> None:
        """Keep the turn, and of all turns the newest pictures only."""
        turns = [*self._task.turns, turn]
        pictures = [frame for each in turns for frame in (*each.frames.values(), each.frame) if frame is not None]
        newest = list(dict.fromkeys(id(frame) for frame in reversed(pictures)))[:MAX_PICTURES]
        self._task.turns[:] = [_keep_pictures(each, newest) for each in turns]

    def _waits(self, action: PlannedAction, result: ToolResult) -> dict[str, Any]:
        """Build the result for an action that needs approval when no one can answer.

        The next call asks again and continues from here.
        """
        question = action.ask or result["error"]["message"]
        request = {"action": _describe_action(action), "question": question, "then": RESUME_HINT}
        return self._told({**result, "description": f"it waits for a yes: {question}", "confirmation_request": request})

    def _refused(self, result: ToolResult) -> dict[str, Any]:
        self._tasks.unfinished = None
        return self._told({**result, "description": "a person said no to what the model's safety check asked"})

    def _stopped(self, error: HandrailError) -> dict[str, Any]:
        result = ToolResult.failure(error, title=PROGRESS_TITLE)
        return self._told({**result, "description": result["error"]["message"]})

    def _told(self, result: dict[str, Any]) -> dict[str, Any]:
        cost = self._budget.cost
        spent: dict[str, float] = {"input_tokens": cost.input_tokens, "output_tokens": cost.output_tokens}
        if cost.dollars:
            spent["dollars"] = round(cost.dollars, 6)
        result.pop("duration_ms", None)
        return {"actions_taken": self._taken, **result, "steps": self._budget.steps, "cost": spent}


def _group_actions(actions: Sequence[PlannedAction]) -> list[tuple[str, list[PlannedAction]]]:
    """Group the actions that share an id; each action without an id is a group of its own."""
    named = [(action.id or f"#{place}", action) for place, action in enumerate(actions)]
    return [(id, [action for _, action in group]) for id, group in groupby(named, key=lambda pair: pair[0])]


def _keep_pictures(turn: Turn, pictures: Sequence[int]) -> Turn:
    """Return the turn with only those of its pictures that are in the given list, by identity."""
    frames = {name: frame for name, frame in turn.frames.items() if id(frame) in pictures}
    return replace(turn, frames=frames, frame=turn.frame if id(turn.frame) in pictures else None)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _to_picture_point(x: int, y: int, transform: Transform) -> tuple[int, int]:
    screen = transform.screen
    return int((x - screen.x) / transform.scale), int((y - screen.y) / transform.scale)


def _describe_action(action: PlannedAction) -> dict[str, Any]:
    """Describe a planned action for hosts; its coordinates are screen pixels."""
    shown: dict[str, Any] = {"function": action.name or action.tool, "tool": action.tool, "args": dict(action.args)}
    if action.ask is not None:
        shown["ask"] = action.ask
    if action.problem is not None:
        shown["problem"] = action.problem
    return shown
