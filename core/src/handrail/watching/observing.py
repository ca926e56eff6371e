"""The observers of one session at work: around judging, and between a call and what the model sees of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

from handrail.calls.invocation import Invocation
from handrail.calls.running import is_cancelled
from handrail.errors import HandrailError, InvalidArguments, PluginError, ResultWithheld, Stopped
from handrail.judging.verdicts import Decision, Opinion, Reason, Verdict
from handrail.plain import MAPPINGS
from handrail.results.values import ToolResult
from handrail.watching.events import Judged, Observed
from handrail.watching.observers import FIXED, Change, Did, Observer, Remark, Seen

if TYPE_CHECKING:
    from pydantic import BaseModel

    from handrail.calls.running import Running
    from handrail.session import Session
    from handrail.tools.contract import Tool

log = logging.getLogger(__name__)
T = TypeVar("T")

Judge = Callable[[Invocation], Awaitable[Verdict]]

# How often security observers may change each other's arguments before nothing is run.
PASSES = 5
# Characters of one observer's words that the model is shown.
SAID = 10_000


@dataclass(frozen=True, slots=True)
class Outcome:
    """A result as the model may see it, what it was before observers changed it (None: the same), and what they did to it."""

    result: ToolResult
    original: ToolResult | None = None
    did: tuple[Did, ...] = ()


async def considered(session: Session, invocation: Invocation, judge: Judge) -> tuple[Invocation, Verdict]:
    """The call as observers left it, and the verdict on that."""
    verdict: Verdict | None = None
    if session.watch is not None:
        invocation, verdict = await session.watch.before(invocation)
    if verdict is None:
        verdict = await judge(invocation)
    if session.bus.listening:
        session.bus.publish(Judged(invocation.call_id, invocation.tool.name, verdict))
    return invocation, verdict


class Watch:
    """The observers of a session. Those that guard look last, so that they see what the others have made of a call."""

    def __init__(self, session: Session, observers: Sequence[Observer]) -> None:
        self._session = session
        self._observers = tuple(sorted(observers, key=lambda observer: observer.security))
        self._looking: dict[Tool, tuple[tuple[Observer, ...], tuple[Observer, ...]]] = {}

    async def before(self, invocation: Invocation) -> tuple[Invocation, Verdict | None]:
        """The call as observers want it, with what they made of it; a verdict where one of them blocks it."""
        observers = self._of(invocation.tool)[0]
        if not observers:
            return invocation, None
        looked = await self._before(invocation, observers)
        # An observer that takes its cancellation for its own affair.
        if (why := self._session.running[invocation.call_id].why) is not None:
            raise why
        return looked

    async def finish(
        self, invocation: Invocation, verdict: Verdict | None, result: ToolResult, running: Running | None
    ) -> Outcome:
        """The result with what observers have to say; those after a call look at calls that were let through and not stopped.

        `running`: the call, when it is over but for this; a cancellation of it ends this, too.
        """
        seen = invocation.seen
        let_through = verdict is not None and verdict.decision is Decision.ALLOW
        observers = self._of(invocation.tool)[1] if let_through and result.status != Stopped.status else ()
        done = Outcome(result)
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
                done = Outcome(_withheld(result, "observers", why), result)
        did = (*(seen.did if seen is not None else ()), *done.did)
        return replace(done, result=_told(done.result, did)) if did else done

    def _of(self, tool: Tool) -> tuple[tuple[Observer, ...], tuple[Observer, ...]]:
        """Who looks at calls of the tool before they are judged, and who at their results."""
        looking = self._looking.get(tool)
        if looking is None:
            fitting = [observer for observer in self._observers if _applies(observer, tool)]
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
        for _ in range(PASSES):
            for observer in turn:
                try:
                    look = observer.before(form)
                    change = await (look if observer.timeout is None else _within(observer.timeout, look))
                    if change is not None:
                        form, blocked = self._changed(observer, change, form)
                        if blocked is not None:
                            return form, blocked
                except InvalidArguments:
                    raise
                # Observers are plugin code.
                except Exception as exc:  # noqa: BLE001
                    text = _failure(observer, exc, form)
                    form = self._did(form, Did(observer.name, "failed", text))
                    if observer.security:
                        return form, _blocked(observer, text)
                known[observer] = form.params
            turn = [o for o in observers if o.security and known[o] is not form.params]
            if not turn:
                return form, None
        return form, _blocked(turn[0], "observers do not agree on the arguments")

    def _changed(self, observer: Observer, change: Change, form: Invocation) -> tuple[Invocation, Verdict | None]:
        """The call after one observer's change; a verdict where it is blocked."""
        if not isinstance(change, Change):  # pyright: ignore[reportUnnecessaryIsInstance] # observers are plugin code
            raise PluginError(f"it gave a {type(change).__name__} and no Change")
        if change.args is not None:
            new = _replaced(observer, change.args, form)
            # One that changes the arguments in place gives back what they are by now.
            if change.args != form.args or not _same(new.params, form.params):
                form = self._did(new, Did(observer.name, "replaced"))
        if change.note:
            form = self._did(form, Did(observer.name, "note", _short(change.note)))
        if change.context:
            form = self._did(form, Did(observer.name, "context", _short(change.context)))
        if change.block is not None:
            why = _short(change.block)
            return self._did(form, Did(observer.name, "blocked", why)), _blocked(observer, why)
        if change.confirm is not None:
            why = _short(change.confirm)
            reason = Reason("observer", f"{observer.name}: {why}")
            asks = Opinion(_rule(observer), floor=Decision.CONFIRM, reasons=(reason,), trusted=False)
            form = self._did(form, Did(observer.name, "confirm", why), asks)
        return form, None

    def _did(self, form: Invocation, did: Did, *opinions: Opinion) -> Invocation:
        """The call with what an observer made of it, which those who listen are told."""
        self._publish(form, did)
        seen = form.seen or Seen()
        return form.observed(Seen((*seen.opinions, *opinions), (*seen.did, did)))

    def _publish(self, form: Invocation, did: Did) -> None:
        if self._session.bus.listening:
            self._session.bus.publish(Observed(form.call_id, form.tool.name, did.observer, did.what, did.text))

    # After

    async def _after(
        self, invocation: Invocation, verdict: Verdict, result: ToolResult, observers: Sequence[Observer]
    ) -> Outcome:
        now = result
        did: list[Did] = []
        for observer in observers:
            try:
                look = observer.after(invocation, verdict, MappingProxyType(now))
                remark = await (look if observer.timeout is None else _within(observer.timeout, look))
                if remark is not None:
                    now = self._remarked(observer, remark, now, did)
            # Observers are plugin code.
            except Exception as exc:  # noqa: BLE001
                text = _failure(observer, exc, invocation)
                did.append(Did(observer.name, "failed", text))
                if observer.security:
                    now = _withheld(result, observer.name, text)
                    break
            if "withheld" in (each.what for each in did):
                break
        for each in did:
            self._publish(invocation, each)
        return Outcome(now, None if now is result else result, tuple(did))

    def _remarked(self, observer: Observer, remark: Remark, result: ToolResult, did: list[Did]) -> ToolResult:
        """The result after one observer's remark."""
        if not isinstance(remark, Remark):  # pyright: ignore[reportUnnecessaryIsInstance] # observers are plugin code
            raise PluginError(f"it gave a {type(remark).__name__} and no Remark")
        if remark.note:
            did.append(Did(observer.name, "note", _short(remark.note)))
        if remark.context:
            did.append(Did(observer.name, "context", _short(remark.context)))
        if remark.withhold is not None:
            why = _short(remark.withhold)
            did.append(Did(observer.name, "withheld", why))
            return _withheld(result, observer.name, why)
        if remark.replace is not None:
            if fixed := sorted(FIXED.intersection(remark.replace)):
                raise PluginError(f"it would replace {fixed[0]!r} of the result, which no observer may")
            did.append(Did(observer.name, "replaced", ", ".join(map(str, remark.replace))))
            return ToolResult({**result, **remark.replace})
        return result


def _replaced(observer: Observer, args: Mapping[str, Any], form: Invocation) -> Invocation:
    """The call with an observer's arguments. Where they do not fit, nothing is run: it did not want those that were there."""
    if not isinstance(args, MAPPINGS):
        raise InvalidArguments(f"the observer {observer.name} replaced the arguments by a {type(args).__name__}")
    try:
        return form.edited(args, by=f"observer {observer.name}")
    except InvalidArguments as exc:
        told = f"the observer {observer.name} replaced the arguments, and they do not fit: {exc}"
        raise InvalidArguments(told, details=exc.details) from exc


def _rule(observer: Observer) -> str:
    return f"observer:{observer.name}"


def _blocked(observer: Observer, why: str) -> Verdict:
    reason = Reason("observer_blocked", f"the observer {observer.name} blocks it: {why}")
    return Verdict(Decision.DENY, rule=_rule(observer), reasons=(reason,), grantable=False)


def _withheld(result: ToolResult, observer: str, why: str) -> ToolResult:
    """What is left of a result that the model may not see: that the call ran, and how it ended when it failed."""
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


def _told(result: ToolResult, did: Sequence[Did]) -> ToolResult:
    """The result with what observers have to say to the model, and which of them failed."""
    from handrail.untrusted.envelope import clean

    said = [clean(each.text).text for each in did if each.what == "context"]
    notes = [f"The observer {each.observer} failed: {each.text}." for each in did if each.what == "failed"]
    if not said and not notes:
        return result
    result = ToolResult(result)
    if said:
        result["context"] = "\n".join(said)
    if notes:
        result.add_note(" ".join(notes))
    return result


def _same(some: BaseModel, others: BaseModel) -> bool:
    """Whether two calls of a tool are given the same; what a default makes anew each time is not given."""
    given = some.model_fields_set
    return given == others.model_fields_set and all(getattr(some, name) == getattr(others, name) for name in given)


def _short(said: object) -> str:
    """What an observer says, as text and to a length: observers are plugin code, and give anything."""
    text = str(said)
    return text if len(text) <= SAID else f"{text[:SAID]}…"


def _failure(observer: Observer, exc: Exception, invocation: Invocation) -> str:
    """What went wrong in an observer, for the record and the model: of a foreign error its type only."""
    log.warning("observer %s failed on %s", observer.name, invocation.tool.name, exc_info=exc)
    if isinstance(exc, HandrailError):
        return str(exc)
    if isinstance(exc, TimeoutError):
        return f"it took longer than {observer.timeout:g} s" if observer.timeout else "it took too long"
    return type(exc).__name__


async def _within(seconds: float, look: Awaitable[T]) -> T:
    async with asyncio.timeout(seconds):
        return await look


def _applies(observer: Observer, tool: Tool) -> bool:
    """Whether it wants to see calls of the tool; one that fails to say sees them."""
    try:
        return observer.applies(tool)
    # Observers are plugin code, and one that crashes must not be left out.
    except Exception:
        log.exception("observer %s crashed on %s", observer.name, tool.name)
        return True


def observed_wire(did: Sequence[Did]) -> list[Mapping[str, str]]:
    """What observers did, as records keep it."""
    return [
        {"observer": each.observer, "what": each.what, **({"text": each.text} if each.text else {})} for each in did
    ]
