"""Exception hierarchy, with one branch for each audience.

    HandrailError                the user: one line and a hint, no traceback
    ├── ConfigError              invalid configuration file, key or flag
    ├── PluginError              a plugin that cannot be loaded
    ├── DesktopError             a desktop that cannot be started or reached (in a call: desktop_unavailable)
    ├── BackendUnavailable       a vision backend that cannot work here (in a call: backend_unavailable)
    └── ToolError                the model: becomes the result of its call, under `code` (default: tool_error)
        ├── InvalidArguments     invalid_arguments
        ├── UnknownTool          unknown_tool
        ├── ToolUnavailable      tool_unavailable: hidden, disabled, or not able to run here
        ├── LimitReached         limit_reached: the session's time, calls or output are used up
        ├── LoopDetected         loop_detected: the same call again and again
        ├── Denied               denied_by_policy
        │   ├── DeniedByUser     denied_by_user
        │   ├── NoConfirmer      no_confirmer: approval is required, but there is no one to ask
        │   ├── NoSandbox        no_sandbox: the call may run only in a sandbox, and no working sandbox is available
        │   └── NotUndoable      not_undoable: the call may run only if it can be undone, and it could not be
        ├── SandboxDenied        sandbox_denied: the command failed in the sandbox, which apparently blocked it
        ├── Stopped              cancelled
        │   ├── TimedOut         timeout
        │   └── Failsafe         failsafe: the user stopped the desktop
        ├── NotFound             not_found
        │   ├── StaleElement     stale_element
        │   └── AmbiguousElement ambiguous_element
        ├── OutOfRange           out_of_range: a point outside its image
        ├── StaleObservation     stale_observation: the screenshot no longer matches the screen
        ├── ResultWithheld       result_withheld: the call ran, but an observer withholds its result
        └── Downstream           downstream_error: the tool or what it calls failed

Any other exception is a bug: it is logged in full and masked for the model.
"""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = [
    "ConfigError",
    "DeniedByUser",
    "Downstream",
    "HandrailError",
    "LimitReached",
    "NoConfirmer",
    "NotFound",
    "Stopped",
    "UnknownTool",
]


class HandrailError(Exception):
    """Base class of Handrail errors: a one-line message and an optional `hint` with the remedy.

    Raised inside a call, it becomes the call's result under `code` and `status`. `details` is plain data (JSON types).
    `voice` is one sentence suitable for speech, without paths or secrets.
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
    """Invalid configuration; nothing was changed.

    `key` is the location in the configuration, for callers that can map it to a file.

    Cure: Fix what the message names (file, line, key); `handrail config` shows each value with its source.
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
    """Session limit (`[limits]`) exhausted; nothing was run.

    Cure: Start a new session, or raise the limit.
    """

    code = "limit_reached"


class LoopDetected(ToolError):
    """The same call was made again and again to no effect; nothing was run.

    Cure: Do something else first, or raise `failures` or `repeats` in `[limits]`.
    """

    code = "loop_detected"


class Denied(ToolError):
    """Call denied by policy.

    Cure: The message names the rule that would allow the call; `handrail policy explain` shows how the call is judged.
    """

    code = "denied_by_policy"
    status = "denied"


class DeniedByUser(Denied):
    """Call denied by the user when prompted.

    Cure: Do it another way, or ask the user what they want.
    """

    code = "denied_by_user"


class NoConfirmer(Denied):
    """Call that requires approval when there is no one to ask.

    Cure: Provide someone to ask (a terminal, an MCP client, `handrail approvals`), pass `--yes`, or write a rule that
    allows the call.
    """

    code = "no_confirmer"


class NoSandbox(Denied):
    """Call that may run only in a sandbox when no working sandbox is available; nothing was run.

    Cure: Run `handrail doctor`, and install a sandbox: bubblewrap on Linux.
    """

    code = "no_sandbox"


class NotUndoable(Denied):
    """Call that may run without approval only if undo can save what it changes, and saving failed; nothing was run.

    Cure: Provide someone to ask, free space (`[undo]`), or write a rule that allows the call. The message says which
    limit was reached.
    """

    code = "not_undoable"


class SandboxDenied(ToolError):
    """Command that failed in the sandbox, apparently because of blocked accesses; `details["denied"]` lists them.

    Cure: Do it another way, or let the user approve running it on the host.
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
    """Desktop stopped by the user: no further input until they resume it.

    Cure: The user resumes it with `handrail resume`; there is no other way.
    """

    code = "failsafe"


class PersonAtWork(Stopped):
    """Call interrupted because the user began to use the mouse or keyboard; completed steps stay, the rest is skipped.

    Cure: Wait until they have finished, observe the screen again, and continue from there.
    """

    code = "person_at_work"
    retryable = True


class NotFound(ToolError):
    """Reference to something that does not exist.

    Cure: List what exists, and choose from that.
    """

    code = "not_found"


class StaleElement(NotFound):
    """Element that no longer exists; `details["candidates"]` may list possible replacements.

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
