"""Errors, one tree for each reader.

    HandrailError                the user: one line and a hint, no traceback
    ├── ConfigError              a file, key or flag that is wrong
    ├── PluginError              a plugin that cannot be loaded
    ├── DesktopError             a desktop that cannot be started or reached (in a call: desktop_unavailable)
    ├── BackendUnavailable       a vision backend that cannot work here (in a call: backend_unavailable)
    └── ToolError                the model: becomes the result of its call, under `code` (tool_error where none is more exact)
        ├── InvalidArguments     invalid_arguments
        ├── UnknownTool          unknown_tool
        ├── ToolUnavailable      tool_unavailable: hidden, disabled, or not able to run here
        ├── LimitReached         limit_reached: the session's time, calls or output are used up
        ├── LoopDetected         loop_detected: the same call again and again
        ├── Denied               denied_by_policy
        │   ├── DeniedByUser     denied_by_user
        │   ├── NoConfirmer      no_confirmer: it needed a yes and nobody can give one
        │   ├── NoSandbox        no_sandbox: it may run in a sandbox only, and there is none that works
        │   └── NotUndoable      not_undoable: it may run only if it can be undone, and it could not be
        ├── SandboxDenied        sandbox_denied: the command failed in the sandbox, which seems to have refused what it needs
        ├── Stopped              cancelled
        │   ├── TimedOut         timeout
        │   └── Failsafe         failsafe: a person stopped the desktop
        ├── NotFound             not_found
        │   ├── StaleElement     stale_element
        │   └── AmbiguousElement ambiguous_element
        ├── OutOfRange           out_of_range: a point outside its image
        ├── StaleObservation     stale_observation: the picture no longer shows the screen
        ├── ResultWithheld       result_withheld: it ran, and an observer keeps its result back
        └── Downstream           downstream_error: the tool or what it calls failed

Anything else that is raised is a bug: it is logged whole and masked for the model.
"""

from __future__ import annotations

from typing import Any, ClassVar


class HandrailError(Exception):
    """What went wrong, in one line; `hint` says how to cure it.

    Raised inside a call it becomes the call's result under `code` and `status`. `details` is plain data (JSON types). `voice` is one
    speakable sentence without paths or secrets.
    """

    code: ClassVar[str] = "downstream_error"
    status: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False

    def __init__(
        self,
        message: str,
        *,
        hint: str | None = None,
        details: dict[str, Any] | None = None,
        voice: str | None = None,
    ) -> None:
        super().__init__(message)
        self.hint = hint
        if hint:
            # A traceback shows it, too.
            self.add_note(f"Hint: {hint}")
        self.details = details or {}
        self.voice = voice


class ConfigError(HandrailError):
    """A configuration that cannot be used; nothing was changed.

    `key` is where in the configuration it stands, for whoever can tell which file that is from.

    Cure: What it names (file, line, key) is to be mended; `handrail config` shows each value with its source.
    """

    def __init__(self, message: str, *, key: tuple[int | str, ...] = (), **more: Any) -> None:
        super().__init__(message, **more)
        self.key = key


class PluginError(HandrailError):
    """A plugin that cannot be loaded or breaks the rules of registration.

    Cure: Mend or remove the plugin that it names, or leave it out by `[plugins] disabled`; `handrail plugins` shows the reason.
    """


class DesktopError(HandrailError):
    """A desktop that cannot be started, found or reached.

    Cure: See `handrail doctor --desktop private`, or choose another desktop: `handrail desktop status` lists those there are.
    """

    code = "desktop_unavailable"


class BackendUnavailable(HandrailError):
    """A vision backend that is missing something here, or that failed.

    Cure: See `handrail doctor`, or name another one as `backend` or in `backend_fallback`.
    """

    code = "backend_unavailable"


class ToolError(HandrailError):
    """Meant for the model: the text is shown as it is, as the error of the call.

    Cure: The message says what to do otherwise.
    """

    code = "tool_error"


class InvalidArguments(ToolError):
    """Arguments that do not fit the tool's parameters; nothing was run.

    Cure: Call again with arguments that fit; `details` names each that does not.
    """

    code = "invalid_arguments"
    retryable = True


class UnknownTool(ToolError):
    """No tool has that name.

    Cure: Use one of the names that the message offers; `handrail tools` lists all.
    """

    code = "unknown_tool"


class ToolUnavailable(ToolError):
    """The tool exists, but cannot be called now.

    Cure: `handrail tools` says why each tool is not there: profile, policy, plugin, backend or platform.
    """

    code = "tool_unavailable"


class LimitReached(ToolError):
    """What the session may use (`[limits]`) is used up; nothing was run.

    Cure: Begin a new session, or raise the limit.
    """

    code = "limit_reached"


class LoopDetected(ToolError):
    """The same call was made again and again to no effect; nothing was run.

    Cure: Do something else first, or raise `failures` or `repeats` in `[limits]`.
    """

    code = "loop_detected"


class Denied(ToolError):
    """Policy refuses the call.

    Cure: The message says which rule a person could write; `handrail policy explain` shows how the call is judged.
    """

    code = "denied_by_policy"
    status = "denied"


class DeniedByUser(Denied):
    """A person was asked and said no.

    Cure: Do it another way, or ask the person what they want.
    """

    code = "denied_by_user"


class NoConfirmer(Denied):
    """The call needs a yes, and nobody is there to give it.

    Cure: Let somebody be asked (a terminal, an MCP client, `handrail approvals`), say `--yes`, or write a rule that allows it.
    """

    code = "no_confirmer"


class NoSandbox(Denied):
    """The call may only run in a sandbox, and there is none that works; nothing was run.

    Cure: See `handrail doctor`, and get one: bubblewrap on Linux.
    """

    code = "no_sandbox"


class NotUndoable(Denied):
    """The call may run without a question only where undo keeps what it changes, and that could not be kept; nothing was run.

    Cure: Let somebody be asked, make room (`[undo]`), or write a rule that allows it. The message says which bound was reached.
    """

    code = "not_undoable"


class SandboxDenied(ToolError):
    """The command ran in the sandbox and failed, on what that seems to have refused; `details["denied"]` says what.

    Cure: Do it another way, or let a person confirm it for the host.
    """

    code = "sandbox_denied"
    # Said to the model alone: a person is asked about the host, or has answered.
    INSTEAD = "do it another way, or let a person confirm it for the host"
    ALLOWED_HOSTS = "a person can allow the hosts when they are asked, or name them under [sandbox] as hosts in their own config.toml"


class Stopped(ToolError):
    """The call was cancelled before it was done.

    Cure: Call again if it is still wanted.
    """

    code = "cancelled"
    status = "cancelled"


class TimedOut(Stopped):
    """The call took longer than its timeout and was stopped.

    Cure: Give the call more time by its `timeout` argument where it has one, or do less at once.
    """

    code = "timeout"
    status = "timeout"
    retryable = True


class Failsafe(Stopped):
    """A person stopped the desktop: no further input until they resume it.

    Cure: The person resumes by `handrail resume`; nothing else does.
    """

    code = "failsafe"


class PersonAtWork(Stopped):
    """A person began to use mouse or keyboard while the call did: what was done stays, and the rest is not done.

    Cure: Wait until they have finished, look again, and go on from what is there.
    """

    code = "person_at_work"
    retryable = True


class NotFound(ToolError):
    """What the call names does not exist.

    Cure: Look again at what there is, and name one of that.
    """

    code = "not_found"


class StaleElement(NotFound):
    """The element is no longer there; `details["candidates"]` may name what is.

    Cure: Observe the screen again and use the new id.
    """

    code = "stale_element"
    retryable = True


class AmbiguousElement(NotFound):
    """Several elements fit; `details["candidates"]` names them.

    Cure: Name one of the candidates by its id.
    """

    code = "ambiguous_element"
    retryable = True


class OutOfRange(ToolError):
    """A point outside the image it was given for.

    Cure: Use a point within the size that the observation tells.
    """

    code = "out_of_range"
    retryable = True


class StaleObservation(ToolError):
    """The window the point was seen in has been closed, moved, resized or covered.

    Cure: Observe the screen again.
    """

    code = "stale_observation"
    retryable = True


class ResultWithheld(ToolError):
    """The call ran, and an observer keeps its result from the model; `details["ended"]` is how it ended.

    Cure: Ask the person who has set up the observer; the call is not to be made again.
    """

    code = "result_withheld"


class Downstream(ToolError):
    """The tool, or a program or service it relies on, failed.

    Cure: The message says what failed; `handrail doctor` says what is missing here.
    """

    code = "downstream_error"
