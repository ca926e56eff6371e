"""Models of others: the real litellm, which stands in a folder of its own, asks an endpoint as OpenAI documents it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.web_server import Answering, serving

# To import litellm takes seconds, and on a loaded machine minutes.
pytestmark = pytest.mark.timeout(300)

LITELLM = Path(sys.prefix) / "litellm"
HANDRAIL = Path(sys.executable).with_name("handrail")
WRITE = {
    "id": "1",
    "index": 0,
    "function": {"name": "write_file", "arguments": '{"file_path": "a.txt", "content": "hi"}'},
}


@dataclass
class Endpoint:
    """Asks for a file, and says that it is done once it hears of it."""

    port: int = 0
    asked: list[dict[str, Any]] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)


def _pieces(asked: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    told = asked["messages"][-1]["role"] == "tool"
    delta = {"content": "Done."} if told else {"tool_calls": [{"type": "function", **WRITE}]}
    yield _piece(asked, {"role": "assistant", **delta}, None)
    yield _piece(asked, {}, "stop" if told else "tool_calls")


def _piece(asked: Mapping[str, Any], delta: Mapping[str, Any], finish: str | None) -> dict[str, Any]:
    choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
    return {"id": "x", "object": "chat.completion.chunk", "created": 1, "model": asked["model"], "choices": choices}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()

    class Handler(Answering):
        def answer(self) -> None:
            asked = json.loads(self.body())
            endpoint.asked.append(asked)
            endpoint.keys.add(self.headers["authorization"])
            said = "".join(f"data: {json.dumps(piece)}\n\n" for piece in _pieces(asked))
            self.respond(f"{said}data: [DONE]\n\n".encode(), headers={"content-type": "text/event-stream"})

    with serving(Handler) as endpoint.port:
        yield endpoint


def test_a_model_of_others_is_asked_by_litellm(tmp_path: Path, endpoint: Endpoint) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(LITELLM),
        "OPENAI_API_KEY": "private-word",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{endpoint.port}/v1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    done = subprocess.run(
        [HANDRAIL, "run", "write a file", "--model", "openai/a-model", "--yes", "--json"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.txt").read_text() == "hi"
    assert endpoint.keys == {"Bearer private-word"}
    assert "write_file" in {tool["function"]["name"] for tool in endpoint.asked[0]["tools"]}
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "ended"


def test_a_service_that_litellm_does_not_know_is_refused_with_the_one_that_is_near(tmp_path: Path) -> None:
    done = subprocess.run(
        [HANDRAIL, "run", "x", "--model", "opnai/a-model"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(LITELLM)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 2
    assert "LiteLLM knows no service 'opnai', of the model 'opnai/a-model'; did you mean 'openai'?" in done.stderr
