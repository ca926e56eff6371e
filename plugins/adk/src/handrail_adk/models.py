"""The model that `--model` names."""

from __future__ import annotations

import importlib
import importlib.util
import os
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from google.adk.models.base_llm import BaseLlm
from google.adk.models.google_llm import Gemini
from google.adk.models.llm_request import LlmRequest
from google.adk.models.llm_response import LlmResponse
from google.genai import Client, types
from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, TypeAdapter, ValidationError

from handrail import ConfigError
from handrail.fs.yaml_files import find_yaml_traps
from handrail.text import format_suggestion

if TYPE_CHECKING:
    from handrail_adk.config import RunConfig

SCRIPT_PREFIX = "script:"
MODEL_NAME_HINT = "a model is a name of the Gemini API (gemini-…), SERVICE/NAME as LiteLLM has it, or script:FILE"


class ModelUnavailable(ConfigError):
    """Error: the model that the user named is unavailable."""


class ScriptedCall(BaseModel):
    """A call that the model makes."""

    model_config = ConfigDict(extra="forbid")
    tool: str
    args: dict[str, Any] = Field(default_factory=dict[str, Any])


class ScriptedStep(BaseModel):
    """One answer of the model: its words and its calls. One without calls ends the run."""

    model_config = ConfigDict(extra="forbid")
    text: str = ""
    calls: list[ScriptedCall] = Field(default_factory=list[ScriptedCall])


class ScriptedModel(BaseLlm):
    """A model that says what a file says, one step after another; at its end it says that it is done."""

    _steps: list[ScriptedStep] = PrivateAttr(default_factory=list[ScriptedStep])

    @classmethod
    def of(cls, steps: list[ScriptedStep], name: str) -> ScriptedModel:
        """Create a model that gives these answers in order."""
        script = cls(model=name)
        script._steps = list(steps)
        return script

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        """Yield the next answer, regardless of the request."""
        step = self._steps.pop(0) if self._steps else ScriptedStep(text="The script is at its end.")
        parts = [types.Part(text=step.text)] if step.text else []
        parts += [types.Part.from_function_call(name=call.tool, args=call.args) for call in step.calls]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


@asynccontextmanager
async def open_model(config: RunConfig, *, key: str | None) -> AsyncGenerator[BaseLlm]:
    """Yield the configured model as an ADK model, and close it afterwards; `key` is that of the Gemini API.

    Raises `ModelUnavailable`, with a remedy, if the model cannot be used.
    """
    name = config.model
    if name.startswith(SCRIPT_PREFIX):
        yield _load_script(Path(name.removeprefix(SCRIPT_PREFIX)))
    elif prefix := _get_prefix(name):
        raise ModelUnavailable(
            f"the model {name!r} has an unknown prefix {prefix!r}{format_suggestion(prefix, [SCRIPT_PREFIX])}",
            hint=MODEL_NAME_HINT,
        )
    elif "/" in name:
        yield _create_litellm_model(name)
    elif key:
        async with _open_client(config, key) as client:
            yield Gemini(model=name, client=client)
    else:
        raise ModelUnavailable(
            f"the model {name!r} of the Gemini API needs a key", hint=f"set GEMINI_API_KEY; {MODEL_NAME_HINT}"
        )


def _get_prefix(name: str) -> str:
    """Return the part of a name up to its first colon, including the colon.

    Empty if no colon precedes the first slash, which holds for every name of a model.
    """
    head, colon, _ = name.partition("/")[0].partition(":")
    return head + colon if colon else ""


def _create_litellm_model(name: str) -> BaseLlm:
    if importlib.util.find_spec("litellm") is None:
        raise ModelUnavailable(f"the model {name!r} needs litellm", hint="handrail install litellm")
    # Else importing it asks the network for a table of prices.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    from google.adk.models.lite_llm import LiteLlm

    litellm: Any = importlib.import_module("litellm")
    # It prints advice of its own beside each error.
    litellm.suppress_debug_info = True
    try:
        litellm.get_llm_provider(name)
    except litellm.exceptions.BadRequestError as exc:
        service = name.partition("/")[0]
        near = format_suggestion(service, (each.value for each in litellm.LlmProviders))
        raise ModelUnavailable(
            f"LiteLLM knows no service {service!r}, of the model {name!r}{near}", hint=MODEL_NAME_HINT
        ) from exc
    if lacking := _find_missing_keys(litellm.validate_environment(name)):
        raise ModelUnavailable(f"the model {name!r} needs a key", hint=f"set {' or '.join(lacking)}")
    return LiteLlm(model=name)


def _find_missing_keys(told: Mapping[str, Any]) -> Sequence[str]:
    """Return the variables of which the service needs one, if it accepts only a key.

    Empty for other services, which have more ways to sign in.
    """
    missing = told["missing_keys"]
    return missing if all(name.endswith("_API_KEY") for name in missing) else ()


@asynccontextmanager
async def _open_client(config: RunConfig, key: str) -> AsyncGenerator[Client]:
    """Open a client of the Gemini API, and close it afterwards.

    Retries are left to `RetryingModel`: the client ignores Retry-After, and does not check the content of a response.
    """
    options = types.HttpOptions(base_url=config.url, timeout=int(config.answer_seconds * 1000))
    client = Client(api_key=key, vertexai=False, http_options=options)
    try:
        yield client
    finally:
        await client.aio.aclose()
        client.close()


def _load_script(file: Path) -> ScriptedModel:
    try:
        text = file.read_text(encoding="utf-8")
        for line, why in find_yaml_traps(text, aliases=True):
            raise ModelUnavailable(f"the script {str(file)!r}, line {line}: {why}")
        content = yaml.safe_load(text)
        steps = TypeAdapter(list[ScriptedStep]).validate_python(content)
    except OSError as exc:
        raise ModelUnavailable(
            f"the script {str(file)!r} cannot be read: {exc.strerror}", hint="script:FILE names one that is there"
        ) from exc
    except (yaml.YAMLError, UnicodeDecodeError, RecursionError) as exc:
        raise ModelUnavailable(f"the script {str(file)!r} is no YAML: {exc}") from exc
    except ValidationError as exc:
        first = exc.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise ModelUnavailable(
            f"the script {str(file)!r}: {where or 'the whole'}: {first['msg']}",
            hint="it is a list of steps, each with `text`, or `calls` of {tool, args}, or both",
        ) from exc
    return ScriptedModel.of(steps, f"{SCRIPT_PREFIX}{file.name}")
