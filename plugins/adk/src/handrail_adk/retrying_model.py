"""Model wrapper that retries failed or empty responses."""

from __future__ import annotations

import asyncio
import logging
import math
import re
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

from google.adk.models._capabilities import LlmCapabilities
from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from pydantic import PrivateAttr

from handrail.json_types import is_list, is_mapping
from handrail_adk.budgets import RunEnding, RunTerminated, UsageMeter

if TYPE_CHECKING:
    from handrail_adk.config import RunConfig

log = logging.getLogger(__name__)

# Answers of a service that hold for the moment only.
TRANSIENT_STATUSES = frozenset((408, 429, 500, 502, 503, 504, 529))
TOO_MANY_REQUESTS = 429
# What a model wrote down wrongly it may write rightly the next time.
RETRYABLE_REASONS = frozenset(("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "MALFORMED_RESPONSE"))
# Reasons to stop that are neither the model's end nor a refusal.
NORMAL_REASONS = frozenset(("STOP", "FINISH_REASON_UNSPECIFIED"))
DELAY_PATTERN = re.compile(r"(\d+(?:\.\d+)?)s")
# Characters of what a service says that a person is told.
MAX_ERROR_LENGTH = 300


class FailedAttempt(Exception):
    """Failure of an attempt that may succeed when repeated.

    `pause` is how many seconds the service asks to wait, if it does.
    """

    def __init__(self, reason: str, pause: float | None = None) -> None:
        super().__init__(reason)
        self.pause = pause


class RetryingModel(BaseLlm):
    """`inner`, held to the budget of `meter`. `told` hears of each further attempt: its number, the seconds before it, and why."""

    _inner: BaseLlm = PrivateAttr()
    _config: RunConfig = PrivateAttr()
    _meter: UsageMeter = PrivateAttr()
    _told: Callable[[int, float, str], None] = PrivateAttr()

    @classmethod
    def of(
        cls, inner: BaseLlm, config: RunConfig, meter: UsageMeter, told: Callable[[int, float, str], None]
    ) -> RetryingModel:
        """Wrap a model in one that retries."""
        patient = cls(model=inner.model)
        patient._inner, patient._config, patient._meter, patient._told = inner, config, meter, told
        return patient

    @property
    def capabilities(self) -> LlmCapabilities:
        """Those of the model."""
        return self._inner.capabilities

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield one answer, preceded by its pieces as they arrive. Raises `RunTerminated` if no attempt succeeds."""
        self._meter.begin_step()
        attempt = 1
        while True:
            try:
                async with aclosing(self._attempt(llm_request, stream)) as answers:
                    async for answer in answers:
                        yield answer
                return
            except FailedAttempt as exc:
                pause = self._pause(attempt, exc)
                if attempt >= self._config.attempts:
                    raise RunTerminated(
                        RunEnding.FAILED, f"the model gave no answer in {attempt} attempts: {exc}"
                    ) from exc
                attempt += 1
                self._told(attempt, pause, str(exc))
                await asyncio.sleep(pause)

    async def _attempt(self, request: LlmRequest, stream: bool) -> AsyncGenerator[LlmResponse, None]:
        usage, whole = None, False
        try:
            async with aclosing(self._inner.generate_content_async(request, stream)) as answers:
                async for answer in answers:
                    usage = answer.usage_metadata or usage
                    if not answer.partial:
                        self._check(answer)
                        whole = True
                    yield answer
            if not whole:
                raise FailedAttempt("its answer was empty")
        except (FailedAttempt, RunTerminated):
            raise
        # Each client has errors of its own; what the service says is final ends the run, all else may be otherwise the next time.
        except Exception as exc:
            log.debug("the model gave no answer", exc_info=True)
            raise _classify_error(exc) from exc
        finally:
            self._meter.count(usage)

    def _check(self, answer: LlmResponse) -> None:
        """Check that a response is an answer, before any call in it is made.

        Raises `FailedAttempt` if another attempt may succeed, otherwise `RunTerminated`.
        """
        reason = _get_reason_name(answer.finish_reason or answer.error_code)
        said = f"{reason}: {answer.error_message}" if answer.error_message else reason
        if reason in RETRYABLE_REASONS:
            raise FailedAttempt(f"it wrote a call that is none ({said})")
        if reason == "MAX_TOKENS":
            raise RunTerminated(
                RunEnding.CUT_OFF, "the answer was cut off: it is longer than the model may write (MAX_TOKENS)"
            )
        if reason and reason not in NORMAL_REASONS:
            raise RunTerminated(RunEnding.REFUSED, f"the model refused to answer ({said})")
        if not reason and isinstance(self._inner, Gemini):
            raise FailedAttempt("its answer broke off")
        if not _has_content(answer):
            raise FailedAttempt("its answer was empty")

    def _pause(self, attempt: int, exc: FailedAttempt) -> float:
        longest = self._config.longest_pause
        if exc.pause is None:
            return min(self._config.pause * 2 ** (attempt - 1), longest)
        if exc.pause > longest:
            raise RunTerminated(RunEnding.FAILED, f"{exc}; the service asks to wait {exc.pause:g} s") from exc
        return exc.pause


def _get_reason_name(reason: object) -> str:
    """Return the name of a reason, including one that the client does not know."""
    return str(getattr(reason, "value", reason) or "")


def _has_content(answer: LlmResponse) -> bool:
    parts = (answer.content.parts if answer.content else None) or []
    return any(
        part.function_call or part.inline_data or ((part.text or "").strip() and not part.thought) for part in parts
    )


def _classify_error(exc: Exception) -> FailedAttempt | RunTerminated:
    """Convert an error of a client to a failed attempt, or to the end of the run."""
    given = getattr(exc, "code", None) or getattr(exc, "status_code", None)
    code = given if isinstance(given, int) else None
    said = _format_error(exc)
    if code is not None and code not in TRANSIENT_STATUSES:
        return RunTerminated(
            RunEnding.FAILED, f"the model's service refused the request: {said}; {_suggest_fix(code, said)}"
        )
    return FailedAttempt(f"{said}; {_suggest_transient_fix(code)}", _parse_retry_delay(exc))


def _suggest_fix(code: int, said: str) -> str:
    if code in (401, 403) or "key" in said.lower():
        return "see whether the key is valid, and for this service"
    return "see whether --model names one that it has" if code == 404 else "what it says is to be mended"


def _suggest_transient_fix(code: int | None) -> str:
    """Return a remedy for an error that may not recur. litellm also reports 500 if nothing listens at the address."""
    if code == TOO_MANY_REQUESTS:
        return "try later, or see what its quota allows"
    reach = "see whether this machine reaches the service"
    return reach if code is None else f"try later, or {reach}"


def _format_error(exc: Exception) -> str:
    """Format an error as one line."""
    parts = [getattr(exc, name, None) for name in ("code", "status", "message")]
    said = " ".join(str(part) for part in parts if part) or str(exc)
    return f"{type(exc).__name__.lstrip('_')}: {' '.join(said.split())}"[:MAX_ERROR_LENGTH].removesuffix(": ")


def _parse_retry_delay(exc: Exception) -> float | None:
    """Return how many seconds the service asks to wait, or None if it does not say.

    Read from the header Retry-After in seconds, or from Google's RetryInfo.
    https://cloud.google.com/apis/design/errors#error_details
    """
    headers: Mapping[str, str] = getattr(getattr(exc, "response", None), "headers", None) or {}
    try:
        pause = float(headers.get("retry-after", ""))
    except ValueError:
        pause = math.nan
    # A date in the header is read by no service of models.
    if math.isfinite(pause) and pause >= 0:
        return pause
    for detail in _get_error_details(exc):
        if found := DELAY_PATTERN.fullmatch(str(detail.get("retryDelay", ""))):
            return float(found[1])
    return None


def _get_error_details(exc: Exception) -> Sequence[Mapping[str, Any]]:
    told: object = getattr(exc, "details", None)
    error: object = told.get("error") if is_mapping(told) else None
    details: object = error.get("details") if is_mapping(error) else None
    if not is_list(details):
        return []
    return [each for each in details if is_mapping(each)]


def build_content_config(config: RunConfig) -> types.GenerateContentConfig | None:
    """Return the options of a model request, or None for the defaults."""
    if not config.thoughts:
        return None
    return types.GenerateContentConfig(thinking_config=types.ThinkingConfig(include_thoughts=True))
