"""Limits of a run, its usage, and the ways in which it can end."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from handrail import ConfigError, HandrailError

if TYPE_CHECKING:
    from google.genai.types import GenerateContentResponseUsageMetadata as Usage

    from handrail_adk.config import ModelPrice, RunConfig

MILLION = 1_000_000


class RunEnding(StrEnum):
    """Way in which a run ended."""

    DONE = "done"
    DENIED = "denied"
    REFUSED = "refused"
    CUT_OFF = "cut_off"
    FAILED = "failed"
    STEPS = "steps"
    SECONDS = "seconds"
    TOKENS = "tokens"
    DOLLARS = "dollars"
    STOPPED = "stopped"


# What the program exits with. 2 is for misuse, and a run that a signal stopped exits with 128 and its number.
EXIT_CODES: Mapping[RunEnding, int] = {
    RunEnding.DONE: 0,
    RunEnding.DENIED: 1,
    RunEnding.FAILED: 1,
    RunEnding.REFUSED: 3,
    RunEnding.CUT_OFF: 4,
    RunEnding.STEPS: 5,
    RunEnding.SECONDS: 6,
    RunEnding.TOKENS: 7,
    RunEnding.DOLLARS: 8,
    RunEnding.STOPPED: 130,
}


class RunTerminated(HandrailError):
    """End of a run before the model was done, with the reason."""

    def __init__(self, ending: RunEnding, reason: str) -> None:
        super().__init__(reason)
        self.ending = ending


@dataclass(frozen=True, slots=True)
class RunBudget:
    """Limits of a run.

    `dollars` is None if the cost is unlimited; `price` is that of the model, None if it is unknown.
    """

    steps: int
    seconds: float
    tokens: int
    dollars: float | None = None
    price: ModelPrice | None = None


def build_budget(config: RunConfig) -> RunBudget:
    """Return the limits of a run with the configured model.

    Raises `ConfigError` for a limit in dollars if the price of the model is unknown.
    """
    price = config.prices.get(config.model)
    if config.dollars is not None and price is None:
        raise ConfigError(
            f"nobody knows what the model {config.model!r} costs, so that it cannot be kept to {config.dollars:g} dollars",
            hint=f'set input and output under [plugins.adk.prices."{config.model}"], in dollars for a million tokens',
        )
    return RunBudget(config.steps, config.seconds, config.tokens, config.dollars, price)


class UsageMeter:
    """Meter of the usage of a run."""

    def __init__(self, budget: RunBudget) -> None:
        self.budget = budget
        self.steps = 0
        self.read = 0
        self.written = 0
        self._began = time.monotonic()

    @property
    def seconds(self) -> float:
        """Since it began."""
        return time.monotonic() - self._began

    @property
    def dollars(self) -> float | None:
        """Cost so far; None if the price is unknown."""
        price = self.budget.price
        return None if price is None else (self.read * price.input + self.written * price.output) / MILLION

    def begin_step(self) -> None:
        """Count a step before the model is called. Raises `RunTerminated` if the budget is used up."""
        budget, dollars = self.budget, self.dollars
        if self.steps >= budget.steps:
            raise RunTerminated(RunEnding.STEPS, f"its {budget.steps} steps are used up")
        if self.read + self.written >= budget.tokens:
            raise RunTerminated(RunEnding.TOKENS, f"its {budget.tokens} tokens are used up")
        if dollars is not None and budget.dollars is not None and dollars >= budget.dollars:
            raise RunTerminated(RunEnding.DOLLARS, f"its {budget.dollars:g} dollars are used up")
        self.steps += 1

    def count(self, usage: Usage | None) -> None:
        """Add the usage of an attempt of the model that has ended, successfully or not."""
        if usage is not None:
            self.read += usage.prompt_token_count or 0
            self.written += (usage.candidates_token_count or 0) + (usage.thoughts_token_count or 0)
