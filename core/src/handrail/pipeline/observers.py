"""The observers of one session at work: around judging, and between a call and what the model sees of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from handrail.api.call import Invocation
from handrail.api.events import Judged, Observed
from handrail.api.observer import FIXED_KEYS, Change, Observer, ObserverAction, ObserverOpinions, Remark
from handrail.api.result import ToolResult
from handrail.api.verdict import Decision, Opinion, Reason, Verdict
from handrail.errors import HandrailError, InvalidArguments, PluginError, ResultWithheld, Stopped
from handrail.json_types import MAPPING_TYPES
from handrail.pipeline.call_task import is_cancelled

if TYPE_CHECKING:
    from pydantic import BaseModel

    from handrail.api.tool import Tool
    from handrail.pipeline.call_session import CallSession
    from handrail.pipeline.call_task import CallTask

log = logging.getLogger(__name__)
T = TypeVar("T")

EvaluateCall = Callable[[Invocation], Awaitable[Verdict]]

# How often security observers may change each other's arguments before nothing is run.
MAX_PASSES = 5
# Characters of one observer's words that the model is shown.
MAX_SAID_CHARS = 10_000


@dataclass(frozen=True, slots=True)
class ObservedResult:
    """A result as the model may see it, what it was before observers changed it (None: the same), and what they did to it."""

    result: ToolResult
    original: ToolResult | None = None
    did: tuple[ObserverAction, ...] = ()


async def observe_and_evaluate(
    session: CallSession, invocation: Invocation, judge: EvaluateCall
) -> tuple[Invocation, Verdict]:
    """Return the call as changed by observers, and the verdict on it."""
    verdict: Verdict | None = None
    if session.watch is not None:
        invocation, verdict = await session.watch.before(invocation)
    if verdict is None:
        verdict = await judge(invocation)
    if session.bus.listening:
        session.bus.publish(Judged(invocation.call_id, invocation.tool.name, verdict))
    return invocation, verdict


class SessionObservers:
    """Observers of a session; those with `security` run last, which lets them see the changes made by the others."""

    def __init__(self, session: CallSession, observers: Sequence[Observer]) -> None:
        self._session = session
        self._observers = tuple(sorted(observers, key=lambda observer: observer.security))
        self._looking: dict[Tool, tuple[tuple[Observer, ...], tuple[Observer, ...]]] = {}

    async def before(self, invocation: Invocation) -> tuple[Invocation, Verdict | None]:
        """Return the call with the changes and opinions of observers, and a verdict if one of them blocks it."""
        observers = self._of(invocation.tool)[0]
        if not observers:
            return invocation, None
        looked = await self._before(invocation, observers)
        # An observer that takes its cancellation for its own affair.
        if (why := self._session.running[invocation.call_id].why) is not None:
            raise why
        return looked

    async def finish(
        self, invocation: Invocation, verdict: Verdict | None, result: ToolResult, running: CallTask | None
    ) -> ObservedResult:
        """Return the result with the observers' remarks.

        Observers only inspect results of calls that were let through and not stopped.  `running`: the call, if this is
        its last work; cancelling the call then ends this, too.
        """
        seen = invocation.seen
        let_through = verdict is not None and verdict.decision is Decision.ALLOW
        observers = self._of(invocation.tool)[1] if let_through and result.status != Stopped.status else ()
        done = ObservedResult(result)
        if observers:
            assert verdict is not None
            try:
                look = self._after(invocation, verdict, result, observers)
                done = await (look if running is None else running.drive_on(look))
            # What guards did not get to look at is shown to nobody; and nothing that is raised here ends the program.
            except (Exception, SystemExit, asyncio.CancelledError) as exc:
                if isinstance(exc, asyncio.CancelledError) and is_cancelled():
                    raise
                why = str(exc) if isinstance(exc, HandrailError) else type(exc).__name__
                done = ObservedResult(_withhold_result(result, "observers", why), result)
        did = (*(seen.did if seen is not None else ()), *done.did)
        return replace(done, result=_add_remarks(done.result, did)) if did else done

    def _of(self, tool: Tool) -> tuple[tuple[Observer, ...], tuple[Observer, ...]]:
        """Return the observers to run before calls of the tool are judged, and those to run on their results."""
        looking = self._looking.get(tool)
        if looking is None:
            fitting = [observer for observer in self._observers if _is_applicable(observer, tool)]
            before = tuple(o for o in fitting if type(o).before is not Observer.before)
            after = tuple(o for o in fitting if type(o).after is not Observer.after)
            looking = self._looking[tool] = before, after
        return looking

    # Before

    async def _before(self, invocation: Invocation, observers: Sequence[Observer]) -> tuple[Invocation, Verdict | None]:
        form = invocation
        # By observer, the parameters that it was asked about last.
        known: dict[Observer, Any] = {}
        turn = observers
        for _ in range(MAX_PASSES):
            for observer in turn:
                try:
                    look = observer.before(form)
                    change = await (look if observer.timeout is None else _run_with_timeout(observer.timeout, look))
                    if change is not None:
                        form, blocked = self._changed(observer, change, form)
                        if blocked is not None:
                            return form, blocked
                except InvalidArguments:
                    raise
                # Observers are plugin code.
                except Exception as exc:  # noqa: BLE001
                    text = _describe_failure(observer, exc, form)
                    form = self._did(form, ObserverAction(observer.name, "failed", text))
                    if observer.security:
                        return form, _block_verdict(observer, text)
                known[observer] = form.params
            turn = [o for o in observers if o.security and known[o] is not form.params]
            if not turn:
                return form, None
        return form, _block_verdict(turn[0], "observers do not agree on the arguments")

    def _changed(self, observer: Observer, change: Change, form: Invocation) -> tuple[Invocation, Verdict | None]:
        """Return the call after one observer's change, and a verdict if the observer blocks it."""
        if not isinstance(change, Change):  # pyright: ignore[reportUnnecessaryIsInstance] # observers are plugin code
            raise PluginError(f"it gave a {type(change).__name__} and no Change")
        if change.args is not None:
            new = _replace_arguments(observer, change.args, form)
            # One that changes the arguments in place gives back what they are by now.
            if change.args != form.args or not _is_same_params(new.params, form.params):
                form = self._did(new, ObserverAction(observer.name, "replaced"))
        if change.note:
            form = self._did(form, ObserverAction(observer.name, "note", _shorten_text(change.note)))
        if change.context:
            form = self._did(form, ObserverAction(observer.name, "context", _shorten_text(change.context)))
        if change.block is not None:
            why = _shorten_text(change.block)
            return self._did(form, ObserverAction(observer.name, "blocked", why)), _block_verdict(observer, why)
        if change.confirm is not None:
            why = _shorten_text(change.confirm)
            reason = Reason("observer", f"{observer.name}: {why}")
            asks = Opinion(_rule_name(observer), floor=Decision.CONFIRM, reasons=(reason,), trusted=False)
            form = self._did(form, ObserverAction(observer.name, "confirm", why), asks)
        return form, None

    def _did(self, form: Invocation, did: ObserverAction, *opinions: Opinion) -> Invocation:
        """Publish an observer's action, and return the call with the action and opinions added."""
        self._publish(form, did)
        seen = form.seen or ObserverOpinions()
        return form.observed(ObserverOpinions((*seen.opinions, *opinions), (*seen.did, did)))

    def _publish(self, form: Invocation, did: ObserverAction) -> None:
        if self._session.bus.listening:
            self._session.bus.publish(Observed(form.call_id, form.tool.name, did.observer, did.what, did.text))

    # After

    async def _after(
        self, invocation: Invocation, verdict: Verdict, result: ToolResult, observers: Sequence[Observer]
    ) -> ObservedResult:
        now = result
        did: list[ObserverAction] = []
        for observer in observers:
            try:
                look = observer.after(invocation, verdict, MappingProxyType(now))
                remark = await (look if observer.timeout is None else _run_with_timeout(observer.timeout, look))
                if remark is not None:
                    now = self._remarked(observer, remark, now, did)
            # Observers are plugin code.
            except Exception as exc:  # noqa: BLE001
                text = _describe_failure(observer, exc, invocation)
                did.append(ObserverAction(observer.name, "failed", text))
                if observer.security:
                    now = _withhold_result(result, observer.name, text)
                    break
            if "withheld" in (each.what for each in did):
                break
        for each in did:
            self._publish(invocation, each)
        return ObservedResult(now, None if now is result else result, tuple(did))

    def _remarked(
        self, observer: Observer, remark: Remark, result: ToolResult, did: list[ObserverAction]
    ) -> ToolResult:
        """Return the result after one observer's remark, and append the resulting actions to `did`."""
        if not isinstance(remark, Remark):  # pyright: ignore[reportUnnecessaryIsInstance] # observers are plugin code
            raise PluginError(f"it gave a {type(remark).__name__} and no Remark")
        if remark.note:
            did.append(ObserverAction(observer.name, "note", _shorten_text(remark.note)))
        if remark.context:
            did.append(ObserverAction(observer.name, "context", _shorten_text(remark.context)))
        if remark.withhold is not None:
            why = _shorten_text(remark.withhold)
            did.append(ObserverAction(observer.name, "withheld", why))
            return _withhold_result(result, observer.name, why)
        if remark.replace is not None:
            if fixed := sorted(FIXED_KEYS.intersection(remark.replace)):
                raise PluginError(f"it would replace {fixed[0]!r} of the result, which no observer may")
            did.append(ObserverAction(observer.name, "replaced", ", ".join(map(str, remark.replace))))
            return ToolResult({**result, **remark.replace})
        return result


def _replace_arguments(observer: Observer, args: Mapping[str, Any], form: Invocation) -> Invocation:
    """Return the call with an observer's arguments. Raises `InvalidArguments` if they do not fit.

    Nothing is run then: the observer did not want the original arguments.
    """
    if not isinstance(args, MAPPING_TYPES):
        raise InvalidArguments(f"the observer {observer.name} replaced the arguments by a {type(args).__name__}")
    try:
        return form.edited(args, by=f"observer {observer.name}")
    except InvalidArguments as exc:
        told = f"the observer {observer.name} replaced the arguments, and they do not fit: {exc}"
        raise InvalidArguments(told, details=exc.details) from exc


def _rule_name(observer: Observer) -> str:
    return f"observer:{observer.name}"


def _block_verdict(observer: Observer, why: str) -> Verdict:
    reason = Reason("observer_blocked", f"the observer {observer.name} blocks it: {why}")
    return Verdict(Decision.DENY, rule=_rule_name(observer), reasons=(reason,), grantable=False)


def _withhold_result(result: ToolResult, observer: str, why: str) -> ToolResult:
    """Return the rest of a withheld result: that the call ran, and its status if it failed."""
    told = ToolResult.failure(
        ResultWithheld(
            f"the call ran and ended with {result.status!r}; its result is withheld by {observer}: {why}",
            details={"ended": result.status},
        ),
        title="The result",
    )
    if not result.ok:
        told["status"] = result.status
    return ToolResult({**told, **{key: result[key] for key in ("effect", "duration_ms") if key in result}})


def _add_remarks(result: ToolResult, did: Sequence[ObserverAction]) -> ToolResult:
    """Return the result with observers' messages to the model, and a note on each observer that failed."""
    from handrail.sanitize.envelope import clean_text

    said = [clean_text(each.text).text for each in did if each.what == "context"]
    notes = [f"The observer {each.observer} failed: {each.text}." for each in did if each.what == "failed"]
    if not said and not notes:
        return result
    result = ToolResult(result)
    if said:
        result["context"] = "\n".join(said)
    if notes:
        result.add_note(" ".join(notes))
    return result


def _is_same_params(some: BaseModel, others: BaseModel) -> bool:
    """Return True if two calls of a tool set the same parameters to equal values; defaults are not compared."""
    given = some.model_fields_set
    return given == others.model_fields_set and all(getattr(some, name) == getattr(others, name) for name in given)


def _shorten_text(said: object) -> str:
    """Convert an observer's message to text and truncate it: observers are plugin code, and may return anything."""
    text = str(said)
    return text if len(text) <= MAX_SAID_CHARS else f"{text[:MAX_SAID_CHARS]}…"


def _describe_failure(observer: Observer, exc: Exception, invocation: Invocation) -> str:
    """Log an observer's failure and return its description for the record and the model.

    Of a foreign exception, the description contains only the type.
    """
    log.warning("observer %s failed on %s", observer.name, invocation.tool.name, exc_info=exc)
    if isinstance(exc, HandrailError):
        return str(exc)
    if isinstance(exc, TimeoutError):
        return f"it took longer than {observer.timeout:g} s" if observer.timeout else "it took too long"
    return type(exc).__name__


async def _run_with_timeout(seconds: float, look: Awaitable[T]) -> T:
    async with asyncio.timeout(seconds):
        return await look


def _is_applicable(observer: Observer, tool: Tool) -> bool:
    """Return True if the observer applies to calls of the tool; one that crashes is treated as applying."""
    try:
        return observer.applies(tool)
    # Observers are plugin code, and one that crashes must not be left out.
    except Exception:
        log.exception("observer %s crashed on %s", observer.name, tool.name)
        return True


def observer_actions_wire(did: Sequence[ObserverAction]) -> list[Mapping[str, str]]:
    """Return observers' actions in the form stored in records."""
    return [
        {"observer": each.observer, "what": each.what, **({"text": each.text} if each.text else {})} for each in did
    ]
