"""Recording of calls: in the session's history, and in the audit log if enabled."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from pydantic import SecretStr

from handrail.api.call import Invocation, ToolCall
from handrail.api.observation import Observations
from handrail.api.result import ToolResult
from handrail.api.secret_refs import SECRET_PREFIX
from handrail.api.tool import Input
from handrail.api.verdict import Verdict
from handrail.audit.history import CallHistory
from handrail.audit.selectors import describe_targets, find_front_title, is_secret_input
from handrail.audit.writer import AuditWriter
from handrail.errors import Downstream
from handrail.json_types import PICTURE_KEYS
from handrail.pipeline.observers import ObservedResult, observer_actions_wire
from handrail.pipeline.secret_refs import SessionSecrets
from handrail.redaction import REDACTED_TEXT

if TYPE_CHECKING:
    from handrail.api.desktop import Desktop
    from handrail.artifacts.store import ArtifactStore
    from handrail.audit.step_recorder import StepRecorder

# The picture of a result that the agent sees.
AGENT_PICTURE = PICTURE_KEYS[0]


class CallRecorder:
    """Recorder of every call before it acts and after it ended. The history contains top-level calls only.

    `tape`: recorder of entire calls for a plan; None if no plan is being recorded.
    """

    __slots__ = ("_artifacts", "_audit", "_history", "_known_by", "_observations", "_secrets", "tape")

    def __init__(
        self,
        history: CallHistory,
        audit: AuditWriter | None,
        secrets: SessionSecrets,
        observations: Observations,
        artifacts: ArtifactStore,
    ) -> None:
        self._history = history
        self._audit = audit
        self._secrets = secrets
        self._observations = observations
        self._artifacts = artifacts
        self.tape: StepRecorder | None = None
        # What had been seen when something was last done on the screen: it may look otherwise since.
        self._known_by: str | None = None

    def decided(self, invocation: Invocation, verdict: Verdict, *, asked_for: str) -> None:
        """Write what is about to happen. Raises `Downstream` when the audit cannot be kept: then nothing may happen.

        `asked_for`: the tool that the host named, which may have handed on to this one.
        """
        if self._audit is None and self.tape is None:
            return
        # On a screen ids and points are good in this session only.
        meant = self._meant(invocation) if invocation.tool.inputs else {}
        args = self._args(invocation)
        if self.tape is not None and invocation.parent is None:
            self.tape.begun(invocation.call_id, self._secrets.kept(args), meant)
        if self._audit is None:
            return
        fields = self._fields(invocation, verdict)
        fields["args"] = self._shown(args)
        if meant:
            fields["meant"] = self._shown(meant)
        if invocation.tool.name != asked_for:
            fields["asked_for"] = asked_for
        try:
            self._audit.write("call", fields)
        except OSError as exc:
            raise Downstream(
                f"the audit cannot be written ({exc}), so nothing was done", hint="free some space, or turn [audit] off"
            ) from exc

    def _fields(self, invocation: Invocation, verdict: Verdict) -> dict[str, object]:
        """Return the audit fields of a call that was judged, without its arguments."""
        fields: dict[str, object] = {
            "call_id": invocation.call_id,
            "tool": invocation.tool.name,
            "call_hash": invocation.call_hash,
            "decision": verdict.decision,
            "route": verdict.route,
            **({} if verdict.view is None else {"view": verdict.view}),
            **({"hosts": list(verdict.hosts)} if verdict.hosts else {}),
            "rule": verdict.rule,
            "reasons": self._secrets.kept([reason.text for reason in verdict.reasons]),
        }
        if invocation.before is not None:
            fields["before"] = [
                {"args": self._shown(form.args), "call_hash": form.call_hash} for form in invocation.earlier_forms()
            ]
            fields["changed_by"] = list(invocation.changes())
        if invocation.seen is not None and invocation.seen.did:
            fields["observed"] = self._shown(observer_actions_wire(invocation.seen.did))
        if invocation.parent is not None:
            fields["parent"] = invocation.parent.call_id
        return fields

    def opened(self, desktop: Desktop) -> None:
        """Record the desktop the session works on, for the user to find it."""
        if self._audit is None:
            return
        with contextlib.suppress(OSError):
            self._audit.write("desktop", {**asdict(desktop), "switch": desktop.switch})

    def finished(
        self,
        call: ToolCall,
        invocation: Invocation | None,
        verdict: Verdict | None,
        result: ToolResult,
        looked: ObservedResult | None = None,
    ) -> None:
        """Remember the result; a call that never got to run is kept with its arguments. Of what observers changed both forms are kept."""
        if invocation is None or invocation.parent is None:
            self._history.add(call, invocation, verdict, result)
            if self.tape is not None:
                self.tape.ended(call, result)
        if self._audit is None:
            return
        fields: dict[str, object] = {"call_id": call.call_id, "tool": call.name, "status": result["status"]}
        if invocation is None:
            fields["args"] = self._shown(call.args)
        if AGENT_PICTURE in result and (picture := self._kept(result[AGENT_PICTURE])) is not None:
            fields["picture"] = picture
        if looked is not None and looked.did:
            fields["observed"] = self._shown(observer_actions_wire(looked.did))
        if looked is not None and looked.original is not None:
            fields["original"] = self._shown(looked.original)
        try:
            self._audit.write("result", {**fields, "result": self._shown(result)})
        except OSError as exc:
            result.setdefault("note", f"the audit could not be written: {exc}")

    def _kept(self, picture: object) -> str | None:
        """Store the picture of a result as the agent sees it, and return its file name; None if that fails."""
        try:
            return self._artifacts.picture(base64.b64decode(str(picture), validate=True))
        except (OSError, ValueError):
            return None

    def _meant(self, invocation: Invocation) -> dict[str, Any]:
        """Return a lasting description of the ids and points in a call (`selectors`), or of the window in front."""
        seen = self._observations.latest()
        fresh = seen is not None and seen.id != self._known_by
        self._known_by = seen.id if seen is not None else None
        if found := describe_targets(invocation.args, invocation.tool.fields, self._observations):
            return found
        front = find_front_title(seen) if seen is not None and fresh else ""
        return {"front": front} if front else {}

    def _args(self, invocation: Invocation) -> Mapping[str, Any]:
        """Return the arguments with input to password fields, and secrets that the user types by hand, redacted."""
        if not invocation.tool.inputs:
            return invocation.args
        if invocation.tool.by_hand:
            hidden = {name for name, value in invocation.params if isinstance(value, SecretStr)}
            return {name: REDACTED_TEXT if name in hidden else value for name, value in invocation.args.items()}
        if not is_secret_input(invocation.args, self._observations):
            return invocation.args
        typed = {effect.arg for effect in invocation.tool.effects if isinstance(effect, Input)}
        return {
            name: REDACTED_TEXT
            if name in typed and isinstance(value, str) and not value.startswith(SECRET_PREFIX)
            else value
            for name, value in invocation.args.items()
        }

    def close(self) -> None:
        """Close the audit log at the end of the session."""
        if self._audit is not None:
            self._audit.close()

    def _shown(self, value: Any) -> Any:
        """Return the value as the audit log shows it, or its error's type in brackets if it cannot be serialized."""
        from handrail.redaction import redact_value

        try:
            return redact_value(self._secrets.kept(value))
        except Exception as exc:  # noqa: BLE001 # handlers and hosts hand over anything: cycles, depths, objects that fail to print
            return f"[cannot be written down: {type(exc).__name__}]"
