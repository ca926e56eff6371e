"""The vision backend `gemini_computer_use`: asks Gemini what to do next, through Google's own client. It touches nothing."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, ClassVar, cast

import anyio.lowlevel
import anyio.to_thread
from pydantic import BaseModel

from handrail import BackendContext, BackendUnavailable, Cost, Frame, NotFound, Plan, Turn, VisionBackend
from handrail_gemini_cu.config import GeminiConfig
from handrail_gemini_cu.functions import FunctionCall, ModelSurface, map_call

if TYPE_CHECKING:
    import httpx
    from google.genai import Client, errors, types

    from handrail.api.vision import NetworkAccess

# Refused for the moment only.
RETRIED_STATUSES = [408, 429, 500, 502, 503, 504]
LONGEST_PAUSE_S = 30.0
MILLION = 1_000_000
# Turns of the loop that they take, with some to spare.
CLOSERS = 8
# gemini-3.5-flash, models/gemini-2.5-computer-use-preview-10-2025; what a person has tuned is called otherwise, and may do anything.
VERSION = re.compile(r"(?:.*/)?gemini-(\d+)(?:\.(\d+))?(-.*)?")
# Before it, only models that say so in their name use a computer, and from the next on there are other environments than a browser.
FIRST, FIRST_OF_ALL_KINDS = (3, 0), (3, 5)
# Models that do something else.
OTHER_MODEL_KINDS = re.compile(r"-(?:image|tts|live|audio|embedding|robotics|veo|imagen)(?:-|$)")
MODEL_HINT = "set backends.gemini_computer_use.model to one that does, such as 'gemini-3.5-flash'"

ROLE_PROMPTS = {
    "desktop": "You work on the desktop of a computer that runs {platform}.",
    "browser": "You work in a web browser on the desktop of a computer that runs {platform}.",
    "mobile": "You work on a phone whose screen shows on the desktop of a computer that runs {platform}.",
}
RULES_PROMPT = (
    "Each response says what became of the action: an error means that it did not happen. Do not repeat what was refused."
    " When the task is done, or cannot be done, say so in words and call nothing."
)


class GeminiComputerUse(VisionBackend):
    """Plans actions with Gemini's computer use tool; what it plans is judged and carried out by others."""

    name = "gemini_computer_use"
    capabilities: ClassVar[frozenset[str]] = frozenset({"plan_actions"})
    Config = GeminiConfig
    config: GeminiConfig

    def __init__(self, config: BaseModel | None = None) -> None:
        super().__init__(config)
        self.deadline = self.config.deadline
        self._client: Client | None = None
        self._http: httpx.AsyncClient | None = None
        self._key = ""

    @classmethod
    def missing(cls) -> str | None:
        """Return which package is missing, or None."""
        absent = [name for name in ("google.genai", "PIL") if not _is_installed(name)]
        return f"it needs {', '.join(absent)}; handrail install handrail-gemini-cu brings them" if absent else None

    @classmethod
    def unfit(cls, config: BaseModel) -> str | None:
        """Return why the model cannot plan, as far as its name shows; None if nothing prevents it."""
        assert isinstance(config, GeminiConfig)
        return explain_unsupported(config.model, config.environment)

    async def open(self, context: BackendContext) -> None:
        """Make the client; nothing is sent."""
        self._key = await self._found_key(context)
        # A third of a second of imports.
        self._client, self._http = await anyio.to_thread.run_sync(self._made, context.network)

    async def close(self) -> None:
        """Close its connections."""
        if self._client is not None:
            client, self._client = self._client, None
            await client.aio.aclose()
            client.close()
            # Let go, the client and what is in it close themselves once more, each in a task of its own; those end here, too.
            del client
            for _ in range(CLOSERS):
                await anyio.lowlevel.checkpoint()
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def plan(self, frame: Frame, instruction: str, history: Sequence[Turn]) -> Plan:
        """Return Gemini's next actions. Text beside a call is its reasoning; text alone ends the task."""
        from handrail_gemini_cu.conversation import ModelReply, compute_held_keys
        from handrail_gemini_cu.frame_encoder import compute_sent_size

        surface = ModelSurface(frame, compute_sent_size(frame, self.config.longest_side), self.config, sys.platform)
        held = compute_held_keys(history, surface)
        contents = await anyio.to_thread.run_sync(self._contents, frame, instruction, tuple(history))
        candidate = await self._asked(contents)
        content, calls = candidate.content, _list_calls(candidate)
        text = _get_text(candidate)
        if not calls and not text:
            raise BackendUnavailable(
                f"the model {self.config.model!r} answered nothing ({self._shown(_get_finish_reason(candidate))})"
            )
        assert content is not None
        now = ModelSurface(frame, surface.sent, self.config, sys.platform, held)
        actions = [action for call in calls for action in map_call(call, now)]
        return Plan(tuple(actions), text, done=not calls, ref=ModelReply(content, calls))

    async def _found_key(self, context: BackendContext) -> str:
        if (named := self.config.key) is not None:
            try:
                return await context.secret(named.removeprefix("secret:"))
            except NotFound as exc:
                raise BackendUnavailable(f"backends.{self.name}.key: {exc}; {exc.hint}") from exc
        if key := context.environment.get(self.config.key_variable):
            return key
        raise BackendUnavailable(
            f"there is no API key in the environment variable {self.config.key_variable}; get one from Google AI Studio,"
            f" or name another variable by backends.{self.name}.key_variable, or a secret by its key"
        )

    def _made(self, network: NetworkAccess) -> tuple[Client, httpx.AsyncClient]:
        """Create the client and the HTTP client it sends with.

        By default, the client would follow redirects and send the key and the pictures along.
        """
        import httpx
        from google.genai import Client, types

        from handrail.vision.backend_server import create_transport

        settings = self.config
        http = httpx.AsyncClient(
            transport=create_transport(settings.url, network=network), follow_redirects=False, trust_env=False
        )
        client = Client(
            api_key=self._key,
            vertexai=False,
            http_options=types.HttpOptions(
                base_url=settings.url,
                # Clients from 3.0 on would ask v1, which has no computer use.
                api_version="v1beta",
                timeout=int(settings.deadline * 1000),
                retry_options=types.HttpRetryOptions(
                    attempts=settings.attempts,
                    initial_delay=settings.pause,
                    max_delay=max(settings.pause, LONGEST_PAUSE_S),
                    http_status_codes=RETRIED_STATUSES,
                ),
                httpx_async_client=http,
            ),
        )
        return client, http

    def _contents(self, frame: Frame, instruction: str, history: Sequence[Turn]) -> list[types.Content]:
        from handrail_gemini_cu.conversation import TaskConversation

        settings = self.config
        return TaskConversation(
            instruction,
            history,
            frame,
            _create_picture_maker(settings.longest_side),
            settings.entries,
            settings.pictures,
            browsing=settings.environment == "browser",
        ).contents()

    async def _asked(self, contents: list[types.Content]) -> types.Candidate:
        """Return the model's answer, asking again if the model wrote a malformed call."""
        from google.genai import types

        for _ in range(self.config.attempts):
            candidate = await self._once(contents)
            if candidate.finish_reason is not types.FinishReason.MALFORMED_FUNCTION_CALL or _list_calls(candidate):
                return candidate
        raise BackendUnavailable(
            f"the model {self.config.model!r} wrote no valid call in {self.config.attempts} attempts"
        )

    async def _once(self, contents: list[types.Content]) -> types.Candidate:
        from google.genai import errors

        if self._client is None:
            raise BackendUnavailable("it is not open")
        try:
            response = await self._client.aio.models.generate_content(
                model=self.config.model,
                contents=cast("types.ContentListUnion", contents),
                config=self._request(),
            )
        except errors.APIError as exc:
            raise BackendUnavailable(self._refusal(exc)) from exc
        except BackendUnavailable:
            raise
        # The client works with one of three libraries, each with errors of its own, and lets them through.
        except Exception as exc:
            said = self._shown(str(exc)) or type(exc).__name__
            raise BackendUnavailable(f"no answer came from {self.config.url} ({said})") from exc
        self._count(response)
        if not response.candidates:
            feedback = response.prompt_feedback
            why = (
                feedback.block_reason.value
                if feedback is not None and feedback.block_reason is not None
                else "no reason"
            )
            raise BackendUnavailable(f"the model {self.config.model!r} refused to answer ({self._shown(why)})")
        return response.candidates[0]

    def _shown(self, said: str) -> str:
        from handrail.vision.backend_server import clean_server_text

        return clean_server_text(said, (self._key,))

    def _refusal(self, exc: errors.APIError) -> str:
        """Format the API's error, with a remedy if it is obvious."""
        config, message = self.config, self._shown(exc.message or "")
        said = " ".join(self._shown(str(word)) for word in (exc.code, exc.status) if word)
        told = f"the Gemini API answered {said} for the model {config.model!r}: {message}"
        if 300 <= exc.code < 400:
            return f"{told}; redirects are not followed: set backends.{self.name}.url to where the API is"
        if exc.code in (401, 403) or "API key" in message:
            return f"{told}; check the key in {config.key or config.key_variable}"
        return f"{told}; where this model does not use computers, {MODEL_HINT}" if exc.code in (400, 404) else told

    def _request(self) -> types.GenerateContentConfig:
        from google.genai import types

        settings = self.config
        computer = types.ComputerUse(
            environment=types.Environment[f"ENVIRONMENT_{settings.environment.upper()}"],
            excluded_predefined_functions=list(settings.excluded) or None,
            enable_prompt_injection_detection=settings.injection_check or None,
        )
        role = ROLE_PROMPTS[settings.environment].format(platform=sys.platform)
        return types.GenerateContentConfig(
            system_instruction=f"{role} {RULES_PROMPT}",
            tools=[types.Tool(computer_use=computer)],
            automatic_function_calling=types.AutomaticFunctionCallingConfig(disable=True),
        )

    def _count(self, response: types.GenerateContentResponse) -> None:
        used = response.usage_metadata
        if used is None:
            return
        read = used.prompt_token_count or 0
        written = (used.candidates_token_count or 0) + (used.thoughts_token_count or 0)
        dollars = (read * self.config.input_price + written * self.config.output_price) / MILLION
        self.cost += Cost(read, written, dollars)


def explain_unsupported(model: str, environment: str) -> str | None:
    """Return why a model cannot plan in an environment, judging by the generation in its name.

    Returns None for a suitable model and for a name that shows no generation.
    """
    found = VERSION.fullmatch(model)
    if found is None:
        other = re.fullmatch(r"(?:models/)?(?:gemma|imagen|veo|text-embedding|embedding|learnlm)\b.*", model)
        return f"the model {model!r} does not use computers; {MODEL_HINT}" if other else None
    generation, kind = (int(found[1]), int(found[2] or 0)), found[3] or ""
    if OTHER_MODEL_KINDS.search(kind) or (generation < FIRST and "computer-use" not in kind):
        return f"the model {model!r} does not use computers; {MODEL_HINT}"
    if generation < FIRST_OF_ALL_KINDS and environment != "browser":
        return f"the model {model!r} works in a browser only; {MODEL_HINT}, or backends.gemini_computer_use.environment to 'browser'"
    return None


def _is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _create_picture_maker(longest: int) -> Callable[[Frame], types.FunctionResponsePart]:
    """Return a function that encodes frames as parts, each frame only once."""
    from google.genai import types

    from handrail_gemini_cu.frame_encoder import encode_png

    made: dict[int, types.FunctionResponsePart] = {}

    def picture(frame: Frame) -> types.FunctionResponsePart:
        if id(frame) not in made:
            blob = types.FunctionResponseBlob(mime_type="image/png", data=encode_png(frame, longest))
            made[id(frame)] = types.FunctionResponsePart(inline_data=blob)
        return made[id(frame)]

    return picture


def _list_calls(candidate: types.Candidate) -> tuple[FunctionCall, ...]:
    parts = (candidate.content.parts if candidate.content else None) or []
    asked = [part.function_call for part in parts if part.function_call is not None]
    return tuple(
        FunctionCall(str(number), call.name or "", call.args or {}, call.id)
        for number, call in enumerate(asked, start=1)
    )


def _get_text(candidate: types.Candidate) -> str:
    """Return the text of the answer, without its thoughts."""
    parts = (candidate.content.parts if candidate.content else None) or []
    return "\n".join(part.text for part in parts if part.text and not part.thought).strip()


def _get_finish_reason(candidate: types.Candidate) -> str:
    return candidate.finish_reason.value if candidate.finish_reason is not None else "no reason is given"
