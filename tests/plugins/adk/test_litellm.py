"""Models of others: the real litellm, which stands in a folder of its own, asks an endpoint as OpenAI documents it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

LITELLM = Path(sys.prefix) / "litellm"
HANDRAIL = Path(sys.executable).with_name("handrail")
WRITE = {
    "id": "1",
    "index": 0,
    "function": {"name": "write_file", "arguments": '{"file_path": "a.txt", "content": "hi"}'},
}


class Endpoint(ThreadingHTTPServer):
    """Asks for a file, and says that it is done once it hears of it."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str] = set()


class Answering(BaseHTTPRequestHandler):
    server: Endpoint

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.asked.append(asked)
        self.server.keys.add(self.headers["authorization"])
        said = "".join(f"data: {json.dumps(piece)}\n\n" for piece in _pieces(asked))
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"{said}data: [DONE]\n\n".encode())


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
    with Endpoint() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_a_model_of_others_is_asked_by_litellm(tmp_path: Path, endpoint: Endpoint) -> None:
    environment = {
        **os.environ,
        "PYTHONPATH": str(LITELLM),
        "OPENAI_API_KEY": "private-word",
        "OPENAI_BASE_URL": f"http://127.0.0.1:{endpoint.server_port}/v1",
        "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    }
    done = subprocess.run(
        [HANDRAIL, "run", "write a file", "--model", "openai/a-model", "--yes", "--json"],
        cwd=tmp_path,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "a.txt").read_text() == "hi"
    assert endpoint.keys == {"Bearer private-word"}
    assert "write_file" in {tool["function"]["name"] for tool in endpoint.asked[0]["tools"]}
    assert json.loads(done.stdout.splitlines()[-1])["event"] == "ended"
